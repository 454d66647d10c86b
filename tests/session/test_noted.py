"""What is noted of the tools that the model calls: what is the person's, and no more."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from discoclaw.core.draft import Origin
from discoclaw.core.message import Inbound, Place
from discoclaw.core.model import ToolCall, ToolResult
from discoclaw.core.redact import Redactor
from discoclaw.core.subject import user_subject
from discoclaw.memory.people import tool_calls
from discoclaw.memory.people.tool_calls import Call
from discoclaw.session.archive_search import HEADING
from discoclaw.session.noted import WITHHELD, CallLog
from tests.session.of_tools import call
from tests.session.scene import (
    ANN,
    DM,
    GENERAL,
    HIDDEN,
    House,
    Recorder,
    calls,
    house,
    inbound,
)

SUBJECT = user_subject(ANN.id)
OURS = "ab" * 32


@pytest.fixture
async def home(tmp_path: Path) -> AsyncIterator[House]:
    made = house(tmp_path, redactor=Redactor(own=frozenset({OURS})))
    yield made
    await made.tool_log.close()


def note(home: House, message: Inbound, call: ToolCall, result: ToolResult) -> None:
    """Note a call as a turn does."""
    CallLog(home.memory, home.tool_log).note(home.arrival(message), call, result)


async def noted(home: House) -> list[Call]:
    await home.tool_log.settle()
    return tool_calls.read(tool_calls.log_of(home.memory.disk, SUBJECT))


async def test_each_call_is_noted_with_where_it_was_made_and_how_it_went(home: House) -> None:
    await home.remember(ANN, "User has a cat called Tom.")
    await call(home, "memory_search", query="cat")
    await call(home, "memory_nonsense", number=1001)
    found, unknown = await noted(home)
    assert (found.tool, found.ok, found.channel, found.session) == (
        "memory_search",
        True,
        GENERAL.channel_id,
        "discord:channel:10",
    )
    assert "cat called Tom" in found.content
    assert not found.private
    assert (unknown.tool, unknown.ok) == ("memory_nonsense", False)


@pytest.mark.parametrize("place", [DM, HIDDEN])
async def test_what_is_answered_where_not_everybody_reads_is_private(home: House, place: Place) -> None:
    await call(home, "memory_store", place, text="User prefers tabs.", kind="preference")
    (one,) = await noted(home)
    assert one.private


async def test_so_is_a_private_item_that_was_stored_in_the_open(home: House) -> None:
    await call(home, "memory_store", text="User owes Bob 5 euros.", private=True)
    await call(home, "memory_store", number=1001, text="User prefers tabs.")
    assert [(one.private, "owes Bob" in one.content) for one in await noted(home)] == [
        (True, True),
        (False, False),
    ]


async def test_of_what_is_confidential_no_word_is_noted(home: House) -> None:
    text = "User's code word is Kanarie."
    await home.remember(ANN, text, marked="confidential", origin=Origin("stated"))
    note(home, inbound(1, "?"), ToolCall("1", "memory_store", {}), ToolResult("1", f"Known: {text}"))
    (one,) = await noted(home)
    assert (one.content, one.private) == (WITHHELD, True)


async def test_what_others_said_is_not_noted(home: House) -> None:
    await home.remember(ANN, "User likes zebras.")
    answer = f"- [fact] User likes zebras.\n\n{HEADING}\n- Bob in #general: “I like Kanarie”"
    note(home, inbound(1, "?"), ToolCall("1", "memory_search", {}), ToolResult("1", answer))
    (one,) = await noted(home)
    assert one.content == "- [fact] User likes zebras."


async def test_nothing_is_noted_of_who_wants_no_memory(home: House) -> None:
    await home.choose(ANN.id, opted_out=True)
    note(home, inbound(1, "?"), ToolCall("1", "memory_search", {}), ToolResult("1", "x"))
    assert await noted(home) == []


async def test_secrets_that_the_model_puts_in_are_taken_out(home: House) -> None:
    await call(home, "memory_store", text=f"User's key is {OURS}.", tags=[OURS[:10], OURS])
    assert await home.texts(ANN) == ["User's key is [REDACTED key]."]
    ledger = (home.memory.ledger_folder / f"{SUBJECT}.jsonl").read_text()
    assert OURS[:16] not in ledger + (await noted(home))[0].content


async def test_an_answer_of_ours_is_cleaned_before_it_is_remembered(home: House) -> None:
    home.model.answers.append(f"Here: {OURS.upper()}")
    home.answer(inbound(1000, "hello"), Recorder())
    await home.desk.settle()
    (said,) = home.windows.use("discord:channel:10").recent()
    assert said.text == "Here: [REDACTED key]"


async def test_a_log_that_can_not_be_written_costs_no_reply(home: House, tmp_path: Path) -> None:
    (tmp_path / "memory").mkdir()
    (tmp_path / "memory" / "tools").write_text("in the way")
    home.model.answers.extend([calls(("memory_search", {"query": "cat"})), "Done."])
    home.answer(inbound(1000, "please"), reply := Recorder())
    await home.desk.settle()
    await home.tool_log.settle()
    assert reply.text == "Done."


async def test_the_answer_to_a_request_to_forget_says_nothing_of_it(home: House) -> None:
    await home.remember(ANN, "User has a cat called Zanzibar.")
    await call(home, "memory_forget", item="User has a cat called Zanzibar.")
    (one,) = await noted(home)
    assert (one.tool, one.ok) == ("memory_forget", True)
    assert "Zanzibar" not in one.content
