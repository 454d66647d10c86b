"""The table of commands: what Discord takes, which names work as text, and what is made from it."""

import inspect
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import discord
import pytest
from discord import app_commands

from discoclaw.bot.commands.parsing import Misused, resolve, values_of
from discoclaw.bot.commands.reference import renewed
from discoclaw.bot.commands.slash import Reach, slash_commands
from discoclaw.bot.commands.spec import Command, Found, Group, Missing
from discoclaw.bot.commands.table import CATALOGUE
from discoclaw.bot.texts import help as helping
from discoclaw.core.text import utf16_length

NAME = re.compile(r"^[-_\w]{1,32}$")
COMMAND, GROUP = 1, 2
"""The types of options that are commands and groups of commands."""
SLASH_ONLY = ("search", "usage", "ask", "settings", "model")
DOCUMENT = Path(__file__).parents[2] / "docs/members/commands.md"


def made() -> list[dict[str, Any]]:
    """The slash commands, as Discord is told of them."""

    async def nothing(*_: Any) -> Any:
        return []

    tree = app_commands.CommandTree(discord.Client(intents=discord.Intents.none()))
    return [one.to_dict(tree) for one in slash_commands(CATALOGUE, Reach(people=False), nothing, nothing)]


def walk(command: dict[str, Any], depth: int = 0) -> Iterator[tuple[int, dict[str, Any]]]:
    """A command and everything below it, with how deep it lies."""
    yield depth, command
    for option in command.get("options") or []:
        yield from walk(option, depth + 1)


def size(command: dict[str, Any]) -> int:
    """What Discord counts of a command: names, descriptions and values."""
    choices = sum(len(choice["name"]) + len(str(choice["value"])) for choice in command.get("choices") or [])
    below = sum(size(option) for option in command.get("options") or [])
    return len(command["name"]) + len(command.get("description") or "") + choices + below


def found(text: str) -> Found:
    """The command that a text names, which begins with its root."""
    root, _, rest = text.partition(" ")
    command = resolve(CATALOGUE, root, rest)
    assert isinstance(command, Found), text
    return command


class TestWhatDiscordTakes:
    def test_the_tree_has_every_command_with_its_parameters(self) -> None:
        paths: dict[str, list[str]] = {}

        def collect(path: str, one: dict[str, Any]) -> None:
            below = one.get("options") or []
            inner = [option for option in below if option["type"] in (COMMAND, GROUP)]
            if not inner:
                paths[path] = [option["name"] for option in below]
            for option in inner:
                collect(f"{path} {option['name']}", option)

        for command in made():
            collect(command["name"], command)
        assert paths == {
            command.path: [param.name for param in command.params] for command in CATALOGUE.commands
        }

    def test_at_most_25_children_at_each_level_and_room_for_more(self) -> None:
        for command in made():
            for _, one in walk(command):
                assert len(one.get("options") or []) <= 25
        for group in CATALOGUE.groups:
            children = len(CATALOGUE.below(group)) + len(CATALOGUE.inside(group))
            assert children <= 20, group.path

    def test_names_descriptions_and_choices(self) -> None:
        for command in made():
            for _, one in walk(command):
                assert NAME.match(one["name"]) and one["name"] == one["name"].lower()
                assert 1 <= len(one["description"]) <= 100
                assert one["description"] != "…"
                assert len(one.get("choices") or []) <= 25

    def test_groups_are_nested_two_levels_deep_at_most(self) -> None:
        for command in made():
            for depth, one in walk(command):
                kind = one.get("type") if depth else None
                assert kind != GROUP or depth == 1
                assert kind != COMMAND or depth <= 2

    def test_each_command_has_at_most_8000_characters_in_all(self) -> None:
        sizes = {command["name"]: size(command) for command in made()}
        assert set(sizes) == {"memory", "hatch", "nostr", *SLASH_ONLY}
        assert max(sizes.values()) <= 8000
        assert sizes["memory"] > 1000

    def test_required_parameters_come_first(self) -> None:
        for command in CATALOGUE.commands:
            required = [param.required for param in command.params]
            assert required == sorted(required, reverse=True)


class TestTheEntries:
    @pytest.mark.parametrize("command", CATALOGUE.commands, ids=lambda command: command.path)
    def test_each_function_takes_the_call_and_every_parameter_by_its_name(self, command: Command) -> None:
        call, *names = inspect.signature(command.run).parameters
        assert call == "call"
        assert names == [param.name for param in command.params]

    @pytest.mark.parametrize("command", CATALOGUE.menus, ids=lambda command: command.path)
    def test_each_function_of_a_menu_takes_the_message_too(self, command: Command) -> None:
        call, message, *names = inspect.signature(command.run).parameters
        assert (call, message) == ("call", "message")
        assert names == [param.name for param in command.params]

    def test_discord_takes_five_menus_and_their_names(self) -> None:
        assert len(CATALOGUE.menus) <= 5
        assert all(1 <= len(command.path) <= 32 and ":" not in command.path for command in CATALOGUE.menus)

    def test_every_command_is_in_a_group_or_at_the_root(self) -> None:
        groups = {group.path for group in CATALOGUE.groups} | {""}
        assert {command.path.rpartition(" ")[0] for command in CATALOGUE.commands} <= groups

    def test_what_is_a_command_as_text_is_a_group_at_the_root(self) -> None:
        roots = {group.path for group in CATALOGUE.groups if " " not in group.path}
        assert roots == CATALOGUE.text_roots

    def test_no_name_means_two_things(self) -> None:
        entries: list[Command | Group] = [*CATALOGUE.groups, *CATALOGUE.commands]
        names = Counter(
            name
            for one in entries
            if (root := one.path.partition(" ")[0]) in CATALOGUE.text_roots
            for name in CATALOGUE._called(root, one)
        )
        assert [name for name, number in names.items() if number > 1] == []

    def test_no_command_hides_a_longer_name(self) -> None:
        for name, one in CATALOGUE.names.items():
            if isinstance(one, Command):
                assert not any(other.startswith(f"{name} ") for other in CATALOGUE.names)


# Every text form there was before the commands were nested, with what it means.
BEFORE = [
    ("memory", "memory show", {}),
    ("memory show", "memory show", {}),
    ("memory show everything", "memory show", {}),
    ("memory remember I like  tea — really --yes", "memory remember", {"text": "I like  tea — really --yes"}),
    ("memory forget I like tea", "memory forget", {"memory": "I like tea"}),
    ("memory edit I like tea => I like it", "memory edit", {"memory": "I like tea", "text": "I like it"}),
    ("memory edit 2ed36192 I like it", "memory edit", {"memory": "2ed36192", "text": "I like it"}),
    ("memory share 2ed36192", "memory share", {"memory": "2ed36192"}),
    ("memory private 2ed36192", "memory private", {"memory": "2ed36192"}),
    ("memory reset rolling", "memory data reset-summary", {}),
    ("memory help", "memory help", {"what": None}),
    ("memory help all", "memory help", {"what": "all"}),
    ("memory why", "memory why", {"memory": None}),
    ("memory why I like tea", "memory why", {"memory": "I like tea"}),
    ("memory undo", "memory undo", {}),
    ("memory log", "memory history log", {"oneline": False, "limit": 20, "persona": None}),
    (
        "memory log --oneline --limit 5 coding",
        "memory history log",
        {"oneline": True, "limit": 5, "persona": "coding"},
    ),
    (
        "memory log —ONELINE --branch coding",
        "memory history log",
        {"oneline": True, "limit": 20, "persona": "coding"},
    ),
    ("memory view HEAD~1", "memory history view", {"at": "HEAD~1", "persona": None}),
    (
        "memory view 2026-02-01 10:00 --branch coding",
        "memory history view",
        {"at": "2026-02-01 10:00", "persona": "coding"},
    ),
    ("memory diff", "memory history diff", {"start": None, "end": None}),
    ("memory diff --new main HEAD~2", "memory history diff", {"start": "HEAD~2", "end": "main"}),
    ("memory graph", "memory history graph", {"form": "picture"}),
    ("memory graph timeline", "memory history graph", {"form": "timeline"}),
    ("memory graph --form timeline", "memory history graph", {"form": "timeline"}),
    ("memory stats", "memory data stats", {}),
    ("memory verify", "memory history verify", {}),
    ("memory revert 1a2b3c4d", "memory history revert", {"change": "1a2b3c4d"}),
    ("memory restore HEAD~2", "memory history restore", {"change": "HEAD~2"}),
    ("memory branch", "memory persona list", {}),
    ("memory branches", "memory persona list", {}),
    ("memory branch list", "memory persona list", {}),
    ("memory checkout coding now", "memory persona switch", {"name": "coding"}),
    ('memory checkout "coding"', "memory persona switch", {"name": "coding"}),
    ("memory branch switch coding", "memory persona switch", {"name": "coding"}),
    (
        "memory create-branch coding my own code",
        "memory persona create",
        {"name": "coding", "description": "my own code"},
    ),
    (
        "memory branch create coding --persona my own code",
        "memory persona create",
        {"name": "coding", "description": "my own code"},
    ),
    ("memory delete-branch coding", "memory persona delete", {"name": "coding"}),
    ("memory branch delete coding", "memory persona delete", {"name": "coding"}),
    ("memory merge coding", "memory persona merge", {"name": "coding"}),
    ("memory branch merge coding", "memory persona merge", {"name": "coding"}),
    ("memory cherry-pick 1a2b3c4d", "memory persona copy", {"change": "1a2b3c4d"}),
    ("memory branch cherry-pick 1a2b3c4d", "memory persona copy", {"change": "1a2b3c4d"}),
    ("memory autoswitch on", "memory persona autoswitch", {"state": "on"}),
    ("memory branch auto off", "memory persona autoswitch", {"state": "off"}),
    ("memory settle", "memory settle", {}),
    ("memory consolidate", "memory tidy", {}),
    ("memory export", "memory data export", {"format": "json", "history": False}),
    ("memory export markdown --history", "memory data export", {"format": "markdown", "history": True}),
    ("memory export --format objects", "memory data export", {"format": "objects", "history": False}),
    ("memory erase", "memory data erase", {"user": None, "yes": False}),
    ("memory erase --yes", "memory data erase", {"user": None, "yes": True}),
    ("memory erase <@123> --yes", "memory data erase", {"user": "<@123>", "yes": True}),
    ("memory optout", "memory data optout", {}),
    ("memory optin", "memory data optin", {}),
    ("hatch", "hatch start", {}),
    ("hatch cancel", "hatch cancel", {}),
    ("hatch show", "hatch show", {}),
    ("hatch undo", "hatch undo", {}),
    ("nostr", "nostr status", {}),
    ("nostr status", "nostr status", {}),
    ("nostr push", "nostr push", {}),
]


class TestNamesAsText:
    @pytest.mark.parametrize(("text", "path", "values"), BEFORE, ids=[text for text, _, _ in BEFORE])
    def test_every_name_from_before_works_as_it_did(
        self, text: str, path: str, values: dict[str, Any]
    ) -> None:
        one = found(text)
        assert one.command.path == path
        assert values_of(one.command, one.rest) == values

    @pytest.mark.parametrize("command", CATALOGUE.commands, ids=lambda command: command.path)
    def test_every_new_name_works_in_any_case(self, command: Command) -> None:
        if command.path in SLASH_ONLY:  # `!search` is talk
            return
        root, _, rest = command.path.partition(" ")
        one = resolve(CATALOGUE, root, rest.upper() + "  the rest")
        assert isinstance(one, Found)
        assert (one.command, one.rest) == (command, "the rest")

    def test_a_file_is_taken_from_the_message(self) -> None:
        take = CATALOGUE.command("memory data import")
        assert values_of(take, "whatever", ["a file", "another"]) == {"file": "a file"}
        with pytest.raises(Misused, match="attach a file"):
            values_of(take, "whatever")

    @pytest.mark.parametrize(
        ("text", "near"),
        [
            ("memory rember tea", "memory remember"),
            ("memory branch lst", "memory branch list"),
            ("memory persona lst", "memory persona list"),
            ("memory history lgo", "memory history log"),
            ("memory reset", "memory reset rolling"),
            ("memory reset rollin", "memory reset rolling"),
            ("hatch cancle", "hatch cancel"),
        ],
    )
    def test_a_typo_is_answered_with_the_name_that_was_meant(self, text: str, near: str) -> None:
        root, _, rest = text.partition(" ")
        missing = resolve(CATALOGUE, root, rest)
        assert isinstance(missing, Missing)
        assert missing.near == (near,)

    def test_a_group_alone_is_itself_where_no_command_stands_for_it(self) -> None:
        group = resolve(CATALOGUE, "memory", "history")
        assert isinstance(group, Group) and group.path == "memory history"

    @pytest.mark.parametrize(
        ("text", "why"),
        [
            ("memory remember", ""),
            ("memory edit I like tea", ""),
            ("memory autoswitch maybe", "choose one of on, off"),
            ("memory log --limit 0", "`--limit` is a number from 1 to 1000"),
            ("memory log --limit", "`--limit` needs a value"),
            ("memory log --oneline=perhaps", "`--oneline` is yes or no"),
            ('memory checkout "coding', 'Expected closing ".'),
            ("memory search " + "x" * 501, "at most 500 characters, please"),
        ],
    )
    def test_what_does_not_fit_is_misused_with_the_reason(self, text: str, why: str) -> None:
        one = found(text)
        with pytest.raises(Misused) as misused:
            values_of(one.command, one.rest)
        assert str(misused.value) == why

    def test_more_words_than_places_are_part_of_the_last_one_or_left_out(self) -> None:
        log, stats = found("memory log a b --limit 2 c"), found("memory stats --limit")
        assert values_of(log.command, log.rest) == {"oneline": False, "limit": 2, "persona": "a b c"}
        assert values_of(stats.command, stats.rest) == {}


class TestTheHelp:
    def test_the_overview_is_one_message_that_names_each_group(self) -> None:
        overview = helping.overview(CATALOGUE)
        assert utf16_length(overview) <= 1650
        for command in CATALOGUE.below(CATALOGUE.groups[0]):
            assert f"`!{command.path}" in overview
        for name in ("history", "persona", "data", "all"):
            assert f"`!memory help {name}`" in overview

    def test_all_of_it_has_every_command_with_its_usage(self) -> None:
        everything = helping.everything(CATALOGUE)
        for command in CATALOGUE.commands:
            assert f"`{helping.written(CATALOGUE, command)}` – " in everything
        assert all(f"`{command.path}` – " in everything for command in CATALOGUE.menus)

    def test_each_name_has_a_page_also_the_old_ones(self) -> None:
        for name, one in CATALOGUE.names.items():
            page = helping.page(CATALOGUE, name)
            assert page is not None
            assert utf16_length(page) <= 2000
            if isinstance(one, Command):
                assert page.startswith(f"`{helping.written(CATALOGUE, one)}`\n{one.help}.")
                assert all(f"- `{param.name}`: " in page for param in one.params)
        assert helping.page(CATALOGUE, "log") == helping.page(CATALOGUE, "memory history log")
        assert helping.page(CATALOGUE, "no such thing") is None


class TestTheDocument:
    def test_its_tables_are_those_of_the_table(self) -> None:
        document = DOCUMENT.read_text(encoding="utf-8")
        assert renewed(document) == document, "run `make docs`"

    def test_without_its_marks_it_is_not_written(self) -> None:
        with pytest.raises(ValueError, match="no marks"):
            renewed("# Commands\n")
