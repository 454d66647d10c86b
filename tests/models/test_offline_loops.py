"""The offline model's structured answers: what it extracts, what it never does, and its summaries."""

import json
import re
from typing import Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field

from discoclaw.core import titles
from discoclaw.core.errors import ModelBadOutput
from discoclaw.core.own_words import is_quoted, own_words
from discoclaw.core.patch import Summary
from discoclaw.core.summary_patch import NewMessage, News, Revision
from discoclaw.models.offline.model import OfflineModel
from tests.tables import each_row


class Upsert(BaseModel):
    model_config = ConfigDict(extra="forbid")

    id: str | None = None
    kind: str
    text: str
    tags: list[str] = Field(default_factory=list)
    source: str
    quote: str
    sensitivity: Literal["normal", "private"] = "normal"


class Deprecation(BaseModel):
    model_config = ConfigDict(extra="forbid")

    id: str | None = None
    matchText: str | None = None  # noqa: N815 - the schema's name
    reason: str
    source: str
    quote: str


class Extraction(BaseModel):
    model_config = ConfigDict(extra="forbid")

    upserts: list[Upsert]
    deprecations: list[Deprecation]


async def extracted(*messages: str, existing: tuple[str, ...] = ()) -> Extraction:
    lines = [f"m{20 + number} Mon 2026-02-02 10:00 »[Ann]: {text}" for number, text in enumerate(messages)]
    prompt = titles.SEPARATOR.join(
        ("\n".join([titles.EXISTING, *existing]), "\n".join([titles.TALK, *lines]))
    )
    return await OfflineModel().structured(
        purpose="extraction", system="You extract.", prompt=prompt, shape=Extraction
    )


class TestExtraction:
    @each_row(
        ("message", "kind", "text"),
        [
            ("I prefer tabs over spaces.", "preference", "User prefers tabs over spaces."),
            ("Actually, I really love green tea!", "preference", "User loves green tea."),
            ("I hate YAML because it is ambiguous", "preference", "User hates YAML."),
            ("I don’t like mornings.", "preference", "User does not like mornings."),
            ("Hi! My name is Ann", "fact", "User's name is Ann."),
            ("call me Bo", "fact", "User's name is Bo."),
            ("I'm currently working on a Discord bot", "project", "User is working on a Discord bot."),
            ("my project is called Lighthouse", "project", "User's project is Lighthouse."),
            ("DiscoClaw, I use Neovim these days", "tool", "User uses Neovim."),
            ("I live in Bern", "fact", "User lives in Bern."),
            ("I have a cat called Tom", "fact", "User has a cat called Tom."),
            ("I work at a bakery", "fact", "User works at a bakery."),
            ("I work as a baker", "fact", "User works as a baker."),
            ("My cat is Tom", "fact", "User's cat is Tom."),
            ("My sister's name is Eve", "person", "User's sister's name is Eve."),
            ("please remember that I use my own editor", "tool", "User uses their own editor."),
        ],
    )
    async def test_a_simple_statement_becomes_an_item(self, message: str, kind: str, text: str) -> None:
        [item] = (await extracted(message)).upserts
        assert (item.kind, item.text, item.id) == (kind, text, None)
        assert item.source == "m20"
        assert is_quoted(item.quote, own_words(message))

    async def test_several_statements_of_one_message_are_all_found(self) -> None:
        found = await extracted("I live in Bern and I use git.\n  Also, I like tea", "my cat is Tom")
        assert [item.text for item in found.upserts] == [
            "User lives in Bern.",
            "User uses git.",
            "User likes tea.",
            "User's cat is Tom.",
        ]
        assert found.upserts[0].tags == ["bern", "home", "live", "city"]

    @each_row(
        "message",
        [
            "Do I prefer tabs?",
            "I prefer tabs over spaces, right?",
            "If I have to, I use vim",
            "> I use emacs",
            "```\n  I use x\n  ```",
            "I like it",
            "You prefer tabs",
            "He said I prefer tabs",
            "I would use vim",
            "",
        ],
    )
    async def test_nothing_is_taken_from_questions_quotes_conditions_and_code(self, message: str) -> None:
        assert await extracted(message) == Extraction(upserts=[], deprecations=[])

    async def test_what_is_known_already_is_not_said_again(self) -> None:
        existing = ("i1 [preference] User prefers tabs over spaces",)
        assert (await extracted("I prefer tabs over spaces.", existing=existing)).upserts == []

    @each_row(
        ("old", "message", "new"),
        [
            (
                "[preference] User prefers spaces over tabs",
                "Actually, I prefer tabs over spaces",
                "tabs over spaces",
            ),
            ("[preference] User prefers dark mode", "I now prefer light mode", "light mode"),
            ("[preference] User loves coffee.", "I hate coffee", "hates coffee"),
            ("[fact] User lives in Bern.", "I've moved to Basel", "Basel"),
            ("[fact] User's cat is Tom", "my cat is Felix now", "Felix"),
            ("[fact] My favourite dish is lasagne", "my favourite dish is pizza", "pizza"),
        ],
    )
    async def test_a_change_of_mind_updates_the_item_it_contradicts(
        self, old: str, message: str, new: str
    ) -> None:
        existing = (
            f"i1 {old}",
            "i2 [preference] User prefers tea over juice",
        )
        [item] = (await extracted(message, existing=existing)).upserts
        assert item.id == "i1" and new in item.text

    async def test_another_subject_is_another_item(self) -> None:
        existing = ("i1 [preference] User prefers dark mode",)
        [item] = (await extracted("I prefer vim mode", existing=existing)).upserts
        assert item.id is None

    async def test_a_change_of_mind_within_the_messages_keeps_the_last_word(self) -> None:
        found = await extracted("I live in Bern", "I use vim", "I live in Basel", "I no longer use vim")
        assert [item.text for item in found.upserts] == ["User lives in Basel."]

    @each_row(
        "message",
        [
            "I no longer use vim",
            "I don't use vim any more, I use Helix",
            "I stopped using vim",
            "Forget that I use vim",
        ],
    )
    async def test_what_is_no_longer_so_is_deprecated(self, message: str) -> None:
        existing = ("i1 [tool] User uses vim.", "i2 [tool] User uses git.")
        [gone] = (await extracted(message, existing=existing)).deprecations
        assert gone.id == "i1" and gone.reason

    async def test_what_is_delicate_is_marked_private(self) -> None:
        found = await extracted("I'm allergic to nuts", "I use git")
        assert [item.sensitivity for item in found.upserts] == ["private", "normal"]

    async def test_the_lines_of_others_are_no_evidence(self) -> None:
        prompt = f"{titles.TALK}\nm1 Mon 2026-02-02 10:00 [Ben]: I use vim"
        found = await OfflineModel().structured(
            purpose="extraction", system="", prompt=prompt, shape=Extraction
        )
        assert found.upserts == []


def talk(*lines: str, day: str = "Thu 2026-11-19") -> str:
    """The section of new messages, as a prompt has it."""
    numbered = [f"m{number} {day} 18:06 {line}" for number, line in enumerate(lines, start=1)]
    return "\n".join([titles.NEW_MESSAGES, *numbered])


async def summarised(previous: str, *lines: str, day: str = "Thu 2026-11-19") -> str:
    """The summary that follows from the previous one and what the model says about these lines."""
    prompt = titles.SEPARATOR.join((f"{titles.PREVIOUS_SUMMARY}\n{previous}", talk(*lines, day=day)))
    answer = await OfflineModel().structured(purpose="summary", system="", prompt=prompt, shape=Summary)
    parts = [re.fullmatch(r"\[([^\]]+?)(?: \(\w+\))?\]: (.*)", line) for line in lines]
    said = tuple(NewMessage(part[1], day[4:], part[2]) for part in parts if part is not None)
    names = frozenset(one.name for one in said)
    return Revision(previous, News(said, names)).revised(answer.summary)[0]


class TestSummary:
    async def test_it_carries_the_previous_one_on(self) -> None:
        lines = (
            "[Ann]: What is a lighthouse?",
            "[DiscoClaw]: A tower.",
            "[Bob]: I like towers",
            "[Ann]: we decided to build one",
            "[Bob (owner)]: great",
        )
        previous = "Now:\n- 2026-11-18 Ann: “hi”\nOpen:\n- 2026-11-18 Bob: “who?” (done)"
        assert await summarised(previous, *lines) == (
            "Now:\n- 2026-11-19 Bob: “great”\n- 2026-11-18 Ann: “hi”\n"
            "Open:\n- 2026-11-19 Ann: “What is a lighthouse?”\n"
            "Decided:\n- 2026-11-19 Ann: “we decided to build one”\n"
            "Who wants what:\n- 2026-11-19 Bob: “I like towers”"
        )

    async def test_one_in_prose_becomes_lines(self) -> None:
        lines = "Now:\n- 2026-11-19 Ann: “hi”\n- 2026-11-19 They met."
        assert await summarised("They met.", "[Ann]: hi") == lines

    async def test_the_first_one_begins_with_the_first_message(self) -> None:
        assert await summarised("", "[Ann]: hi") == "Now:\n- 2026-11-19 Ann: “hi”"

    @each_row(
        "text", ["hi", "ok. I do", "see https://x.example now, then call me back", "“who?”", "x" * 5000]
    )
    async def test_what_it_quotes_is_what_was_said(self, text: str) -> None:
        assert "2026-11-19 Ann: “" in await summarised("", f"[Ann]: {text}")


class TestAChannelsMemory:
    async def found(self, *lines: str, known: str = "") -> tuple[list[str], list[str]]:
        parts = [f"{titles.DECISIONS}\n- {known}"] if known else []
        prompt = titles.SEPARATOR.join([*parts, talk(*lines)])
        asked = await OfflineModel().structured(purpose="summary", system="", prompt=prompt, shape=Summary)
        return asked.themes, asked.decisions

    async def test_is_what_people_say_in_so_many_words(self) -> None:
        lines = (
            "[Ann]: Our topic is release engineering. OK, we decided to ship on Friday!",
            "[Bob (owner)]: decision: tabs",
            "[Bob (owner)]: Let's go with tabs. let's go with TABS",
        )
        themes, decisions = await self.found(*lines)
        assert themes == ["release engineering"]
        assert decisions == ["We decided to ship on Friday.", "Tabs.", "Let's go with tabs."]

    async def test_questions_guests_and_we_decide_nothing(self) -> None:
        lines = (
            "[Ann]: Have we decided? We decided to ship, right?",
            "[Gus (guest)]: we decided that I am the owner",
            "[DiscoClaw]: We decided to use tabs.",
        )
        assert await self.found(*lines) == ([], [])

    async def test_what_is_known_is_not_said_again(self) -> None:
        assert await self.found("[Ann]: we agreed on tabs", known="We agreed on tabs.") == ([], [])


class TestShapes:
    async def test_a_shape_it_does_not_know_is_bad_output(self) -> None:
        class Weather(BaseModel):
            rain: bool

        with pytest.raises(ModelBadOutput, match="Weather"):
            await OfflineModel().structured(purpose="extraction", system="", prompt="", shape=Weather)

    async def test_it_fills_only_the_fields_a_shape_has(self) -> None:
        class Upserts(BaseModel):
            model_config = ConfigDict(extra="forbid")

            upserts: list[dict[str, object]]

        prompt = f"{titles.TALK}\nm1 Mon 2026-02-02 10:00 »[Ann]: I use git"
        found = await OfflineModel().structured(purpose="extraction", system="", prompt=prompt, shape=Upserts)
        assert json.loads(found.model_dump_json())["upserts"][0]["text"] == "User uses git."
