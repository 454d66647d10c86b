"""The wrappers around models: whatever is asked, they pass it on, count it, and put enough aside for it."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from dataclasses import replace
from typing import Any

import pytest
from pydantic import BaseModel

from discoclaw.core.budgets import Limit
from discoclaw.core.errors import EmbeddingUnavailable, ModelSpent, ModelUnreachable
from discoclaw.core.model import (
    AssistantTurn,
    Finished,
    ModelRequest,
    StreamEvent,
    SystemBlock,
    TextDelta,
    ToolCall,
    ToolResult,
    ToolSpec,
    ToolTurn,
    Usage,
    UserTurn,
)
from discoclaw.core.usage import DOLLAR, NOBODY, Call, Payer, paid_by, payer, used
from discoclaw.usage.accounts import Accounts, Rules
from discoclaw.usage.metered import Metered, MeteredEmbedder, Rates, prices
from tests.tables import each_row

NOON = 1_763_985_600_000
MODEL = "claude-sonnet-5-5"
HALF = "half an emoji \ud83d"
REQUEST = ModelRequest(
    (SystemBlock(HALF),),
    (
        UserTurn(HALF),
        AssistantTurn(HALF, (ToolCall("1", "look", {"q": HALF}),)),
        ToolTurn((ToolResult("1", HALF),)),
    ),
    (ToolSpec("look", HALF, {"type": "object"}),),
)


class Answer(BaseModel):
    text: str = "yes"


class Counting:
    """A model, and an embedder, that reports this for each answer; with `fails` it breaks off then."""

    name, stays_here = "openai/text-embedding-3-small", False

    def __init__(self, usage: Usage | None = None, *, fails: bool = False) -> None:
        self.usage = usage
        self.fails = fails

    def _report(self) -> None:
        if self.usage is not None:
            used(MODEL, self.usage)
        if self.fails:
            raise ModelUnreachable("gone")

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        yield TextDelta("yes and no")
        self._report()
        yield Finished(AssistantTurn("yes and no"), "end")

    async def structured(self, **asked: Any) -> Any:
        self._report()
        return Answer()

    async def embed(self, texts: Sequence[str], *, timeout_s: float) -> Sequence[Sequence[float]]:
        self._report()
        return [[1.0] for _ in texts]

    async def close(self) -> None:
        pass


class Calling(Counting):
    """A model that looks something up, and says nothing before it."""

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        yield Finished(AssistantTurn("", (ToolCall("1", "look_up", {"words": "tea " * 20}),)), "tools")


class Silent(Counting):
    """A model whose server reads the prompt and says nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.reads = asyncio.Event()

    async def _wait(self) -> None:
        self.reads.set()
        await asyncio.Event().wait()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        await self._wait()
        yield TextDelta("never")

    async def structured(self, **asked: Any) -> Any:
        await self._wait()


def accounts(*limits: Limit) -> Accounts:
    return Accounts(None, clock=lambda: NOON, rules=Rules(limits))


def metered(model: Counting, books: Accounts) -> Metered:
    return Metered(model, books, Rates(prices()), name=MODEL)


async def heard(model: Metered, request: ModelRequest = REQUEST) -> list[StreamEvent]:
    return [event async for event in model.stream(request)]


ASKED: dict[str, Any] = {"purpose": "summary", "system": HALF, "prompt": HALF, "shape": Answer}


class TestACall:
    async def test_may_have_texts_that_utf_8_cannot_encode(self) -> None:
        books = accounts(Limit("all", "day", DOLLAR))
        model = metered(Counting(Usage(7, 3)), books)
        await heard(model)
        await model.structured(**ASKED)
        embedder = MeteredEmbedder(Counting(Usage(5)), books, Rates(prices()))
        await embedder.embed([HALF], timeout_s=1)
        assert {key: total.usage for key, total in books.ended.items()} == {
            ("answer", MODEL): Usage(7, 3),
            ("summary", MODEL): Usage(7, 3),
            ("embedding", MODEL): Usage(5),
        }

    async def test_is_estimated_where_nobody_counts(self) -> None:
        books = accounts()
        await heard(metered(Counting(), books))
        usage = books.ended["answer", MODEL].usage
        assert usage.output_tokens == 3 and usage.input_tokens > 10

    async def test_is_estimated_too_where_the_model_only_calls_a_tool(self) -> None:
        books = accounts()
        await heard(metered(Calling(), books))
        usage = books.ended["answer", MODEL].usage
        assert usage.input_tokens > 10 and 20 < usage.output_tokens < 60

    async def test_counts_what_was_reported_before_it_failed(self) -> None:
        books = accounts(Limit("all", "day", DOLLAR))
        model = metered(Counting(Usage(7, 3), fails=True), books)
        with pytest.raises(ModelUnreachable):
            await heard(model)
        with pytest.raises(ModelUnreachable):
            await model.structured(**ASKED)
        assert sum(total.usage.input_tokens for total in books.ended.values()) == 14

    async def test_counts_nothing_of_what_others_use_at_the_same_time(self) -> None:
        books = accounts()
        stream = metered(Counting(Usage(7, 3)), books).stream(REQUEST)
        await anext(stream)
        used(MODEL, Usage(1_000, 1_000))  # between two steps the task is busy elsewhere
        await stream.aclose()
        assert books.ended["answer", MODEL].usage.output_tokens < 10


class TestWhoPays:
    def test_is_whoever_is_named_around_it(self) -> None:
        with paid_by(Payer("1")):
            with paid_by(NOBODY):
                assert payer() == NOBODY
            assert payer() == Payer("1")
        assert payer() == NOBODY

    async def test_for_embeddings_that_nobody_waits_for_is_nobody(self) -> None:
        books = accounts(Limit("person", "day", DOLLAR), Limit("all", "day", DOLLAR))
        for background in (False, True):
            embedder = MeteredEmbedder(
                Counting(Usage(5)), books, Rates(prices(), id_of=lambda _: MODEL), background=background
            )
            with paid_by(Payer("1")):
                await embedder.embed(["tea"], timeout_s=1)
        assert {one.limit.scope: one.nano for one in books.all_spent()} == {"person": 10_000, "all": 20_000}


class TestABudgetThatIsAheadOfTime:
    async def test_puts_off_what_nobody_waits_for_and_nothing_else(self) -> None:
        books = accounts(Limit("all", "day", DOLLAR))
        books.end(Call("1", NOON, "answer", MODEL, Usage(1), DOLLAR * 7 // 10))  # half of the day is over
        model = metered(Counting(Usage(7, 3)), books)
        with pytest.raises(ModelSpent):
            await model.structured(**ASKED)
        assert await heard(model, replace(REQUEST, purpose="title"))  # somebody tries another model


class TestASpentBudget:
    async def test_is_an_error_with_a_sentence_and_a_time(self) -> None:
        books = accounts(Limit("all", "day", 0))
        model = metered(Counting(Usage(7, 3)), books)
        with pytest.raises(ModelSpent) as refused:
            await heard(model)
        assert refused.value.after_s == 43_200
        assert str(refused.value) == "the budget for the day has no room for it now"
        assert refused.value.user_message.startswith("I can't do that now: my budget for today doesn't")
        with pytest.raises(ModelSpent):
            await model.structured(**ASKED)
        with pytest.raises(EmbeddingUnavailable) as unavailable:
            await MeteredEmbedder(Counting(), books, Rates(prices())).embed(["tea"], timeout_s=1)
        assert unavailable.value.after_s == 43_200


@each_row("how", ["stream", "structured"])
async def test_who_stops_an_answer_before_its_first_word_pays_for_the_prompt(how: str) -> None:
    books, model, prompt = accounts(Limit("person", "day", DOLLAR)), Silent(), "tea " * 1000
    asking = metered(model, books)
    with paid_by(Payer("1")):
        call = (
            heard(asking, ModelRequest((), (UserTurn(prompt),)))
            if how == "stream"
            else asking.structured(purpose="answer", system="", prompt=prompt, shape=Answer)
        )
        task = asyncio.create_task(call)
    await model.reads.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    ((whole, spent),) = [(one.limit.nano, one.nano) for one in books.all_spent()]
    tokens = len(prompt) // 4
    assert spent == prices().of(MODEL)[0].cost(Usage(tokens)) and spent < whole
