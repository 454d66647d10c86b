"""What docs/dev/adding says, done once each: no more than the files it names is needed."""

import dataclasses
import json
from collections.abc import AsyncGenerator
from pathlib import Path

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
from discoclaw.core.model import (
    AssistantTurn,
    Finished,
    ModelRequest,
    StreamEvent,
    TextDelta,
    ToolCall,
    ToolTurn,
)
from discoclaw.models.offline.model import OfflineModel
from discoclaw.session.toolbox import Tool, Toolbox, ToolContext, ToolInput
from discoclaw.session.tools import ALL
from discoclaw.show.answer import Answer, Row, Turn, message
from discoclaw.show.words import count
from tests.contract.cards import every_page, said
from tests.contract.world import Start, starting


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
