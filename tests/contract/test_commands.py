"""What people see and change with `!memory`, and with the same commands behind a slash."""

import re
from collections.abc import Iterator
from typing import Any

import discord
import pytest

from tests.contract.cards import said
from tests.contract.commands import card, told, typed
from tests.contract.world import Start, World

OFF = (
    "My memory is switched off here; whoever runs me can switch it on with "
    "DISCOCLAW_DURABLE_MEMORY_ENABLED and DISCOCLAW_STORE."
)
NAME = re.compile(r"[-_a-z]{1,32}")
NAMES = {
    "show": "memory show",
    "REMEMBER": "memory remember",
    "forget": "memory forget",
    "edit": "memory edit",
    "share": "memory share",
    "private": "memory private",
    "reset rolling": "memory data reset-summary",
    "why": "memory why",
    "undo": "memory undo",
    "log": "memory history log",
    "view": "memory history view",
    "diff": "memory history diff",
    "graph": "memory history graph",
    "stats": "memory data stats",
    "verify": "memory history verify",
    "revert": "memory history revert",
    "restore": "memory history restore",
    "branches": "memory persona list",
    "branch list": "memory persona list",
    "checkout": "memory persona switch",
    "branch switch": "memory persona switch",
    "create-branch": "memory persona create",
    "branch create": "memory persona create",
    "delete-branch": "memory persona delete",
    "branch delete": "memory persona delete",
    "merge": "memory persona merge",
    "branch merge": "memory persona merge",
    "cherry-pick": "memory persona copy",
    "branch cherry-pick": "memory persona copy",
    "autoswitch": "memory persona autoswitch",
    "branch auto": "memory persona autoswitch",
    "settle": "memory settle",
    "consolidate": "memory tidy",
    "export": "memory data export",
    "erase": "memory data erase",
    "optout": "memory data optout",
    "optin": "memory data optin",
    "hatch cancel": "hatch cancel",
    "nostr push": "nostr push",
}
"""Every name that a command has or had as text, and the command that it means."""


def walk(command: dict[str, Any], depth: int = 0) -> Iterator[tuple[int, dict[str, Any]]]:
    """A slash command and everything below it, with how deep it lies."""
    yield depth, command
    for option in command.get("options") or []:
        yield from walk(option, depth + 1)


def size(command: dict[str, Any]) -> int:
    """What Discord counts of a command: names, descriptions and values."""
    choices = sum(len(choice["name"]) + len(str(choice["value"])) for choice in command.get("choices") or [])
    below = sum(size(option) for option in command.get("options") or [])
    return len(command["name"]) + len(command.get("description") or "") + choices + below


def synced(world: World) -> list[Any]:
    """What Discord was told of the slash commands, each time."""
    asked = [one for one in world.env.http_requests if one.method == "PUT"]
    return [one.json for one in asked if one.path.endswith("/commands")]


class TestTextCommands:
    async def test_remember_show_and_forget(self, start: Start) -> None:
        async with start(summary_enabled=False) as world:
            first, hint = (await typed(world, "remember   I am   allergic to nuts ")).splitlines()
            assert first == "Remembered: I am allergic to nuts"
            assert hint.startswith("(used in every channel; `!memory private ")
            again = await typed(world, "remember i am ALLERGIC to nuts")
            assert again == "I already remember that: I am allergic to nuts"
            listed = await typed(world, "")
            assert re.search(r"- \[fact\] I am allergic to nuts \(id \w{8}.*, updated <t:\d+:R>\)", listed)
            assert world.general.last_message.components == []
            assert await typed(world, "forget allergic to nuts") == "Forgotten: I am allergic to nuts"
            assert "allergic" not in await typed(world, "show")
            assert "1 forgotten" in world.answer(world.general)
            await typed(world, "remember I am allergic to nuts")
            assert "- [fact] I am allergic to nuts" in await typed(world, "show")
            assert "at most 1000 characters" in await typed(world, "remember " + "x" * 1500)
            assert world.memories(world.ann) == ["I am allergic to nuts"]

    async def test_what_cannot_be_meant_is_answered_with_the_way_out(self, start: Start) -> None:
        usage = "Please use it like this: "
        log = f"{usage}`!memory log [--oneline] [--limit n] [persona]`"
        answers = {
            "remember": f"{usage}`!memory remember <text>`",
            "forget": f"{usage}`!memory forget <words or id>`",
            "forget nothing like it": "I remember nothing that matches",
            "share nothing": "I remember nothing that matches",
            "reset": "Did you mean `!memory reset rolling`?",
            "reset rollin": "Did you mean `!memory reset rolling`?",
            "zzz": "There is no `!memory zzz`.\n**How to see",
            "rember tea": "There is no `!memory rember`. Did you mean `!memory remember`?",
            "branch lst": "There is no `!memory branch lst`. Did you mean `!memory branch list`?",
            "history lgo": "There is no `!memory history lgo`. Did you mean `!memory history log`?",
            "edit": f"{usage}`!memory edit <words or id> => <new text>`",
            "edit nothing like it": f"{usage}`!memory edit ",
            "edit nothing => something": "I remember nothing that matches",
            "autoswitch maybe": "Choose one of on, off",
            "log --colour": f"There is no option `--colour`. {log}",
            "log --limit": f"`--limit` needs a value. {log}",
            "log --limit many": f"`--limit` is a number from 1 to 1000. {log}",
            "log --limit 0": f"`--limit` is a number from 1 to 1000. {log}",
            "log --oneline=perhaps": f"`--oneline` is yes or no. {log}",
            'checkout "coding': 'Expected closing ".',
            "search " + "x" * 501: "At most 500 characters, please",
            "import": "Attach a file",
        }
        async with start() as world:
            for words, answer in answers.items():
                assert (await typed(world, words)).startswith(answer), words
            assert world.env.errors == []

    async def test_every_name_from_before_still_means_its_command_and_has_a_page(self, start: Start) -> None:
        async with start() as world:
            for name, path in NAMES.items():
                page = await typed(world, f"help {name}")
                assert page.startswith(f"`!{path}"), name
                assert len(page) <= 2000
            assert await typed(world, "help memory history log") == await typed(world, "help log")
            assert "- `limit`: " in world.answer(world.general)
            for old, new in (("branch", "persona list"), ("", "show"), ("show everything", "show")):
                assert await typed(world, old) == await typed(world, new)
            for root, command in (("nostr", "nostr status"), ("hatch", "hatch start")):
                alone = await world.says(world.ann, world.general, f"!{root}")
                assert alone == await world.says(world.ann, world.general, f"!{command}")

    async def test_the_help_is_a_page_and_all_of_it_arrives_whole(self, start: Start) -> None:
        async with start() as world:
            overview = await typed(world, "HELP")
            assert overview.startswith(
                "**How to see and change what I remember about you**\n`!memory show` – "
            )
            # Discord's limit for a message is 2000; above this may stand a sentence about a name that isn't
            # there. What isn't for every day goes in a group, of which the overview says the name only.
            assert len(overview) <= 1800
            names = world.ann.available_commands(world.general)
            for name in names:
                if name.startswith("memory ") and name.count(" ") == 1:
                    assert f"`!{name}" in overview
            assert all(f"`!memory help {name}`" in overview for name in ("history", "persona", "data", "all"))
            before = len(world.shown(world.general))
            await typed(world, "help all")
            everything = "\n".join(world.shown(world.general)[before + 1 :])
            assert everything.startswith("**How to see and change what I remember about you**")
            slash_only = {"search", "usage", "ask", "settings", "model"}
            assert all(f"{name}" in everything for name in [*names, "Remember this", "Ask about this"])
            assert all(f"`!{name}" in everything for name in set(names) - slash_only)
            assert (await typed(world, "help data")).startswith("**Your data**: take your memory with you, ")
            assert "`!memory log`" in await typed(world, "history")

    async def test_a_memory_is_edited_by_its_id_or_its_words(self, start: Start) -> None:
        async with start() as world:
            for number, form in enumerate(
                ("{id} {new}", "durable-{id} => {new}", "{old} => {new}", "{old} → {new}")
            ):
                old, new = f"My cat is called Tom {number}", f"My cat {number} => Tim"
                await typed(world, f"remember {old}")
                short = world.items(world.ann)[-1]["id"].removeprefix("durable-")
                edited = await typed(world, "edit " + form.format(id=short, old=old, new=new))
                assert edited == f"Edited: {old} → {new}"
                assert f"- [fact] {new} (id {short}" in await typed(world, "show")
            assert await typed(world, f"edit {short} {new}") == f"It says that already: {new}"
            key = "ghp_" + "a1" * 20
            secret = await typed(world, f"edit {short} my key is {key}")
            assert secret.endswith("(I left out what looks like a secret key.)")
            assert key not in secret and world.files_with(key) == []

    async def test_a_new_memory_takes_the_place_of_another_only_at_the_limit_and_says_so(
        self, start: Start
    ) -> None:
        async with start(max_items=2) as world:
            for words in ("remember I like tea", "edit I like tea => I like coffee"):
                await typed(world, words)
            assert await typed(world, "remember I like tea") == "Remembered: I like tea"
            assert "I like coffee" in await typed(world, "show")
            assert "2 memories at most, so I forgot the oldest" in await typed(world, "remember I like milk")

    async def test_a_long_list_arrives_whole_as_a_file_with_its_times_spelled_out(self, start: Start) -> None:
        async with start(summary_enabled=False) as world:
            for number in range(20):
                await typed(world, f"remember {number} " + "long words " * 70)
            await typed(world, "show")
            (file,) = world.general.last_message.attachments
            content = (await file.read()).decode()
            assert file.filename == "memory.md" and "<t:" not in content
            assert content.count(f"updated {world.env.now():%a %Y-%m-%d %H:%M} UTC)") == 20
            assert all(len(text) <= 2000 for text in world.shown(world.general))

    async def test_memory_that_is_switched_off_says_so_everywhere(self, start: Start) -> None:
        async with start() as world:
            await typed(world, "remember I like tea")
            await world.env.advance_time(60)
            await typed(world, "erase")
            question = world.general.last_message
            await world.restart(durable_enabled=False)
            for words in ("show", "log", "undo", "branches", "erase", "export", "settle", "verify"):
                assert await typed(world, words) == OFF
            assert await world.ann.autocomplete(world.general, "memory forget", "memory", "") == []
            pressed = await world.ann.click(question, label="Erase everything")
            assert [one.content for one in pressed.followups] == [OFF]
            assert "by myself" in await typed(world, "autoswitch on")  # a choice needs no memory

    @pytest.mark.design(234)
    async def test_only_a_command_is_one_and_they_can_be_switched_off(self, start: Start) -> None:
        async with start() as world:
            await world.says(world.ann, world.general, "!memoryless is a word")
            assert "!memoryless is a word" in world.prompt
            await world.restart(commands_enabled=False)
            await typed(world, "show")
            assert "!memory show" in world.prompt
            assert len(synced(world)) == 2 and synced(world)[-1] == []

    @pytest.mark.design(233)
    async def test_a_command_waits_for_the_turn_before_it(self, start: Start) -> None:
        async with start() as world:
            world.brain.says("one answer", about="a question")
            await world.ann.send(world.general, "a question")
            await typed(world, "remember tea")
            assert world.shown(world.general)[1::2] == ["one answer", "Remembered: tea"]


class TestSlashCommands:
    async def test_do_the_same_while_only_the_person_sees_it(self, start: Start) -> None:
        async with start() as world:
            result = await world.ann.slash(world.general, "memory remember", text="I like tea")
            assert told(result) == "Remembered: I like tea"
            assert "I like tea\n-# fact" in said(await card(world))
            await card(world, "memory remember", text="My cat is called Tom")
            choices = await world.ann.autocomplete(world.general, "memory edit", "memory", "cat")
            assert [choice["name"] for choice in choices] == ["My cat is called Tom"]
            chosen = choices[0]["value"]
            edited = await card(world, "memory edit", memory=chosen, text="My cat is called Tim")
            assert edited.content == "Edited: My cat is called Tom → My cat is called Tim"
            forgotten = await card(world, "memory forget", memory=chosen)
            assert forgotten.content == "Forgotten: My cat is called Tim"
            assert await world.bob.autocomplete(world.general, "memory forget", "memory", "") == []
            for command, words in (("data reset-summary", ""), ("", "reset rolling")):
                cleared = (
                    await typed(world, words) if words else (await card(world, f"memory {command}")).content
                )
                assert cleared == "I cleared the summary of this conversation."
            assert world.shown(world.general) == ["!memory reset rolling", cleared]

    async def test_all_of_them_fit_into_what_discord_takes_and_are_sent_when_they_change(
        self, start: Start
    ) -> None:
        async with start() as world:
            (commands,) = synced(world)
            await world.restart()
            assert len(synced(world)) == 1
        slash = [one for one in commands if one.get("type", 1) == 1]
        menus = [one["name"] for one in commands if one.get("type", 1) == 3]
        roots = {"memory", "remind", "hatch", "nostr", "search", "usage", "ask", "settings", "model"}
        assert {one["name"] for one in slash} == roots
        assert len(menus) <= 5 and all(len(name) <= 32 for name in menus)
        for command in slash:
            assert size(command) <= 8000
            for depth, one in walk(command):
                below = one.get("options") or []
                assert NAME.fullmatch(one["name"]) and 1 <= len(one["description"]) <= 100
                assert len(below) <= 20 and len(one.get("choices") or []) <= 25
                assert not depth or one["type"] != 2 or depth == 1
                needed = [option.get("required", False) for option in below]
                assert needed == sorted(needed, reverse=True)


class TestPrivateMemories:
    @pytest.mark.design(318)
    async def test_what_was_said_in_a_dm_stays_there_until_it_is_shared(self, start: Start) -> None:
        async with start() as world:
            await typed(world, "remember I live in Oslo", privately=True)
            asked = "where do I live?"
            await world.says(world.ann, world.general, asked)
            assert "Oslo" not in world.prompt
            listed = await typed(world, "show")
            assert "(1 private memory: use `/memory show`, or ask me in a DM)" in listed
            assert "Only a private memory matches that" in await typed(world, "forget I live in Oslo")
            assert not any("Oslo" in text for text in world.shown(world.general)[:-2])
            assert "I live in Oslo" in said(await card(world))
            await world.says(world.ann, world.ann_dm, asked)
            assert "Oslo" in world.prompt
            assert "everywhere" in (await card(world, "memory share", memory="I live in Oslo")).content
            await world.says(world.ann, world.general, asked)
            assert "Oslo" in world.prompt
            await typed(world, "private I live in Oslo")
            await world.says(world.ann, world.dev, asked)
            assert "Oslo" not in world.prompt
            for place in ("Rome north", "Rome south"):
                await typed(world, f"remember I worked in {place}", privately=True)
            which = await typed(world, "share I worked in Rome")
            assert "Only 2 private memories match" in which and "Rome north" not in which

    async def test_what_is_personal_and_said_unseen_stays_unseen(self, start: Start) -> None:
        async with start() as world:
            first = await card(world, "memory remember", text="My doctor says I have diabetes")
            assert "(private: I use it in our DMs only" in first.content
            await typed(world, "remember I like tea")
            edited = await card(world, "memory edit", memory="I like tea", text="I take pills for anxiety")
            assert "private: I use it in our DMs only" in edited.content
            listed = await typed(world, "show")
            assert "pills" not in listed and "diabetes" not in listed
            again = await card(world, "memory edit", memory="I take pills for anxiety", text="I like cocoa")
            assert again.content == "Edited: I take pills for anxiety → I like cocoa"

    @pytest.mark.parametrize(("rule", "leaves"), [("strict", False), ("balanced", True), ("open", True)])
    @pytest.mark.design(318)
    async def test_preferences_leave_a_dm_as_the_rule_says(
        self, start: Start, rule: str, leaves: bool
    ) -> None:
        async with start(dm_privacy=rule) as world:
            world.brain.learns("User prefers short answers.", about="keep it short", kind="preference")
            await world.says(world.ann, world.ann_dm, "keep it short")
            await world.says(world.ann, world.general, "explain monads")
            assert ("User prefers short answers." in world.prompt) is leaves

    async def test_what_is_learned_in_a_hidden_channel_is_not_told_in_an_open_one(self, start: Start) -> None:
        async with start(summary_enabled=False) as world:
            staff = world.guild.create_role("staff", permissions=discord.Permissions.all())
            cleo = world.guild.add_member(world.env.create_user("cleo"), roles=[staff])
            world.brain.learns("User builds the Falcon rocket.", about="goes well", kind="project")
            await world.says(cleo, world.hidden, "the Falcon rocket goes well")
            await world.says(cleo, world.general, "how is the Falcon rocket?")
            assert "builds the Falcon" not in world.prompt
            await cleo.send_dm("how is the Falcon rocket?")
            await world.settle()
            assert "User builds the Falcon rocket." in world.prompt
