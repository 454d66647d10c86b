"""What docs/dev/adding says, done once each: no more than the files it names is needed."""

import dataclasses
import json
from collections.abc import AsyncGenerator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import typer
from pydantic import Field

from discoclaw.bot.commands.call import Call
from discoclaw.bot.commands.table import CATALOGUE
from discoclaw.cli import caller as caller_of_the_terminal
from discoclaw.cli.caller import shared_verbs
from discoclaw.commands.caller import Caller
from discoclaw.commands.spec import Command, Param, Terminal
from discoclaw.commands.table import COMMANDS
from discoclaw.core.consent import Consent
from discoclaw.core.model import (
    AssistantTurn,
    Finished,
    ModelRequest,
    StreamEvent,
    TextDelta,
    ToolCall,
    ToolTurn,
)
from discoclaw.core.purge import Derived, Outcome, Phase, Purge, Readable
from discoclaw.core.subject import dm_of, user_subject
from discoclaw.memory.audit import Audit
from discoclaw.memory.kept import Kept
from discoclaw.models.offline.model import OfflineModel
from discoclaw.session.toolbox import Tool, Toolbox, ToolContext, ToolInput
from discoclaw.session.tools import ALL
from discoclaw.show.answer import Answer, Row, Turn, message
from discoclaw.show.words import count
from discoclaw.store.port import Disk
from tests.contract.cards import every_page, said
from tests.contract.world import Start, World, starting


@pytest.fixture
def start(tmp_path: Path) -> Start:
    return starting(tmp_path)


async def shout(call: Call, text: str) -> str:
    return f"{text.upper()}!"


SHOUT = Command(
    "memory shout", "Say it louder", (Param("text", "What to say", required=True),), shout, needs=()
)


class TestACommand:
    """A function and a row of the table."""

    async def test_works_as_text_as_slash_command_and_in_the_help(self, start: Start) -> None:
        catalogue = dataclasses.replace(CATALOGUE, commands=(*CATALOGUE.commands, SHOUT))
        async with start(catalogue=catalogue) as world:
            await world.ann.send(world.general, "!memory shout more tea")
            assert world.answer(world.general) == "MORE TEA!"
            sent = await world.ann.slash(world.general, "memory shout", text="more tea")
            assert sent.response.content == "MORE TEA!"


async def how_many(caller: Caller) -> Answer:
    number = sum(one.active and caller.may_show(one) for one in await caller.items())
    return message(f"I remember {count(number, 'thing')}.", data={"memories": number})


HOW_MANY = Command(
    "memory history number",
    "How many memories you have",
    run=how_many,
    terminal=Terminal("number", help="Say how many memories a person has.", example="number 123"),
)


class TestACommandOfBothPlaces:
    """A function that takes a Caller, and a row with its name in the terminal."""

    async def test_is_a_sentence_in_discord_and_a_sentence_or_json_in_the_terminal(
        self, start: Start, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(caller_of_the_terminal, "COMMANDS", (*COMMANDS, HOW_MANY))
        verbs = typer.Typer()
        verbs.callback()(lambda: None)
        shared_verbs(verbs)
        catalogue = dataclasses.replace(CATALOGUE, commands=(*CATALOGUE.commands, HOW_MANY))
        async with start(catalogue=catalogue, extraction_enabled=False) as world:
            await world.remember(world.ann, "I like tea", "I like cake")
            assert await world.says(world.ann, world.general, "!memory history number") == (
                "I remember 2 things."
            )
            monkeypatch.setattr("tests.contract.world.cli", verbs)
            assert world.cli("number", str(world.ann.id)).stdout == "I remember 2 things.\n"
            assert json.loads(world.cli("number", str(world.ann.id), "--json").stdout) == {"memories": 2}


async def shelf(call: Call, books: int) -> Answer:
    titles = [f"Book {number}" for number in range(books)]
    turn = Turn(call.user_id, "history shelf", (books,)) if books < 20 else None
    return Answer("Your shelf", [Row(title, "unread") for title in titles], turn=turn, page=call.page)


SHELF = Command(
    "memory history shelf", "Your books", (Param("books", "How many", "number", default=7),), shelf, needs=()
)


class TestACard:
    """A function that makes rows; its command answers with it."""

    async def test_has_pages_and_is_a_text_in_a_text_command(self, start: Start) -> None:
        catalogue = dataclasses.replace(CATALOGUE, commands=(*CATALOGUE.commands, SHELF))
        async with start(catalogue=catalogue) as world:
            await world.ann.send(world.general, "!memory history shelf --books 2")
            assert world.answer(world.general) == "**Your shelf**\n- Book 0 (unread)\n- Book 1 (unread)"
            card = (await world.ann.slash(world.general, "memory history shelf")).response
            assert said(card).startswith("### Your shelf\nBook 0\n-# unread\n")
            everything = await every_page(world.ann, card)
            assert all(f"Book {number}\n" in everything for number in range(7))

    async def test_without_a_way_to_turn_goes_on_below(self, start: Start) -> None:
        catalogue = dataclasses.replace(CATALOGUE, commands=(*CATALOGUE.commands, SHELF))
        async with start(catalogue=catalogue) as world:
            shown = await world.ann.slash(world.general, "memory history shelf", books=20)
            everything = said(shown.response) + "".join(said(one) for one in shown.followups)
            assert all(f"Book {number}\n" in everything for number in range(20))


class Dice(ToolInput):
    """Throw a die with so many sides, and say what it shows."""

    sides: int = Field(ge=2, le=100, description="How many sides it has.")


async def throw(context: ToolContext, wanted: Dice) -> str:
    return f"It shows {wanted.sides // 2}, {context.speaker.user_id}."


class Thrower(OfflineModel):
    """A model that throws a die before it answers."""

    def __init__(self) -> None:
        super().__init__()
        self.offered: set[str] = set()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        self.offered = {tool.name for tool in request.tools}
        last = request.turns[-1]
        if isinstance(last, ToolTurn):
            text = last.results[0].text
            yield TextDelta(text)
            yield Finished(AssistantTurn(text), "end")
        else:
            yield Finished(AssistantTurn("", (ToolCall("1", "dice", {"sides": 6}),)), "tools")


class TestATool:
    """An input shape, a function and a row of a table."""

    async def test_is_offered_and_called(self, start: Start) -> None:
        model = Thrower()
        async with start(model=model, toolbox=Toolbox((*ALL.tools, Tool("dice", Dice, throw)))) as world:
            await world.ann.send(world.general, "throw a die")
            assert world.answer(world.general) == f"It shows 3, {world.ann.id}."
        assert "dice" in model.offered


@dataclass(frozen=True)
class Motto:
    """What somebody calls their motto, said at a time (ms)."""

    text: str
    said_at: int


def understood(value: Any) -> Motto:
    if not isinstance(value, dict) or not {"text", "saidAt"} <= value.keys():
        raise ValueError("no motto")
    return Motto(str(value["text"]), int(value["saidAt"]))


class Mottos(Derived):
    """People's mottos, `mottos/<user id>.json`."""

    name = "what people say of themselves"

    def __init__(self, disk: Disk, consent: Consent) -> None:
        self._consent = consent
        self._kept = Kept(
            disk.documents("mottos"),
            "motto",
            understood,
            lambda motto: {"text": motto.text, "saidAt": motto.said_at},
        )
        self._taken_back: set[str] = set()
        """The people of whom something is being taken back: until that is done, theirs is not used."""

    async def get(self, user_id: str) -> str | None:
        motto = None if user_id in self._taken_back else await self._kept.get(user_id)
        return motto.text if motto is not None else None

    async def put(self, user_id: str, motto: Motto) -> None:
        """Keep a motto, if its author lets anything be kept."""
        # Asked while nobody else writes, so no erasing and no opting out comes in between.
        await self._kept.change(
            user_id, lambda before: motto if self._consent.may_keep(user_id, motto.said_at) else None
        )

    def purge(self, purge: Purge, phase: Phase) -> Outcome:
        if not purge.user_id:
            return None
        if phase == "ram":
            self._taken_back.add(purge.user_id)
        elif phase == "disk":
            return self._remove(purge)
        else:
            self._taken_back.discard(purge.user_id)
        return None

    async def _remove(self, purge: Purge) -> None:
        if purge.erases:  # the file goes with all that have this name, when nobody is writing it
            return await self._kept.settled([purge.user_id])
        motto = await self._kept.get(purge.user_id)
        if motto is None or motto.said_at > purge.at or purge.open_only:
            return None  # it is shown to nobody else, so what was only made private stays
        if purge.everything or purge.words.hold(motto.text):
            await self._kept.remove(purge.user_id)
        return None

    def audit(self) -> Iterator[Readable]:
        for user_id, place, motto in self._kept.stored():
            owner = user_subject(user_id)
            yield Readable(place, motto.text, dm_of(user_id), owner, author=user_id, at=motto.said_at)


class TestAPartWithPersonalData:
    """A `Derived` that is joined to the memory; its folder is listed nowhere."""

    @staticmethod
    async def begun(world: World) -> Mottos:
        """The bot with mottos of Ann and of Bob; she has said hers to be remembered too."""
        storage = world.app.storage
        mottos = Mottos(storage.memory.disk, storage.consent)
        storage.memory.join(mottos)
        await world.remember(world.ann, "Zebras first", "I like tea")
        for person, text in ((world.ann, "zebras first"), (world.bob, "tea at five")):
            await mottos.put(str(person.id), Motto(text, int(world.env.now().timestamp() * 1000)))
        await world.env.advance_time(60)
        assert await mottos.get(str(world.ann.id)) == "zebras first"
        return mottos

    @staticmethod
    def found(world: World) -> set[tuple[str, str]]:
        """(part, why) of what an audit of everything finds."""
        memory = world.app.storage.memory
        return {(one.part, one.why) for one in Audit(memory.disk, memory.personal).on_disk(world.data)}

    @pytest.mark.parametrize(
        ("command", "why"),
        [("forget Zebras first", "taken back"), ("optout", "opted out"), ("erase --yes", "erased")],
    )
    async def test_is_reached_by_whatever_people_take_back_and_by_an_audit(
        self, start: Start, command: str, why: str
    ) -> None:
        async with start() as world:
            mottos = await self.begun(world)
            path = world.data / "memory" / "mottos" / f"{world.ann.id}.json"
            before = path.read_bytes()
            await world.says(world.ann, world.general, f"!memory {command}")
            assert await mottos.get(str(world.ann.id)) is None
            assert [one.stem for one in path.parent.iterdir()] == [str(world.bob.id)]
            assert self.found(world) == set()
            path.write_bytes(before)  # as a fault would leave it
            assert ("what people say of themselves", why) in self.found(world)

    async def test_stays_where_something_else_is_taken_back(self, start: Start) -> None:
        async with start() as world:
            mottos = await self.begun(world)
            await world.says(world.ann, world.general, "!memory forget I like tea")
            assert await mottos.get(str(world.ann.id)) == "zebras first"
            assert await mottos.get(str(world.bob.id)) == "tea at five"

    async def test_takes_nothing_of_people_who_opted_out(self, start: Start) -> None:
        async with start() as world:
            mottos = await self.begun(world)
            await world.says(world.bob, world.general, "!memory optout")
            await mottos.put(str(world.bob.id), Motto("tea at six", int(world.env.now().timestamp() * 1000)))
            assert await mottos.get(str(world.bob.id)) is None

    async def test_is_erased_by_the_command_line_too_which_may_not_know_it(self, start: Start) -> None:
        async with start() as world:
            await self.begun(world)
            await world.stop()
            result = world.cli("memory", "erase", str(world.ann.id), "--yes")
            assert result.exit_code == 0, result.output
            left = [path.name for path in (world.data / "memory" / "mottos").iterdir()]
            assert left == [f"{world.bob.id}.json"]

    async def test_keeps_no_damaged_copy_of_what_was_taken_back(self, start: Start) -> None:
        async with start() as world:
            await self.begun(world)
            folder = world.data / "memory" / "mottos"
            for word in ("zebras first", "tea at five"):
                (folder / f"1.json.corrupt-{word[:4].strip()}").write_text(f"{{{word}")
            await world.says(world.ann, world.general, "!memory forget Zebras first")
            assert [one.name for one in folder.iterdir() if "corrupt" in one.name] == ["1.json.corrupt-tea"]

    async def test_is_in_a_backup_and_comes_back_with_it(self, start: Start) -> None:
        async with start() as world:
            await self.begun(world)
            await world.stop()
            made = world.cli("backup", str(world.folder / "all.tar.gz"))
            assert made.exit_code == 0 and "mottos" not in made.output, made.output
            restored = world.cli(
                "restore", str(world.folder / "all.tar.gz"), "--into", str(world.folder / "new")
            )
            assert restored.exit_code == 0, restored.output
            before, after = (one / "memory" / "mottos" for one in (world.data, world.folder / "new"))
            assert {one.name: one.read_bytes() for one in after.iterdir()} == {
                one.name: one.read_bytes() for one in before.iterdir()
            }
