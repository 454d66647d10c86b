"""The doors' shapes, as the inner rooms see them. Declarations only."""

from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from pydantic import BaseModel

from discoclaw.core.item import Item
from discoclaw.core.message import Place, Said
from discoclaw.core.model import ModelRequest, StreamEvent

Shape = TypeVar("Shape", bound=BaseModel)

Clock = Callable[[], int]
"""The present in milliseconds since 1970."""


class Model(Protocol):
    """A language model. Every failure is a `ModelError`; nothing of a vendor leaves the door."""

    def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        """Yield `TextDelta`s and, last, exactly one `Finished`."""
        ...

    async def structured(
        self, *, system: str, prompt: str, shape: type[Shape], max_tokens: int = 2048
    ) -> Shape:
        """One answer as a checked value of `shape`; no tools, one strict time limit for the whole call.

        Raises `ModelBadOutput` when the model returns anything that is not exactly that shape.
        """
        ...

    async def close(self) -> None:
        """Give connections back."""
        ...


class Recall(Protocol):
    """Finds, among one person's items, those that matter for a query."""

    def rank(self, query: str, items: Sequence[Item], *, now_ms: int) -> "Sequence[Hit]":
        """All items with real evidence for `query`, best first; ties are newer first, then by id."""
        ...


class Hit(Protocol):
    """A ranked item: `score` > 0, and `why` in a few words (matched terms)."""

    @property
    def item(self) -> Item: ...
    @property
    def score(self) -> float: ...
    @property
    def why(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Offer:
    """The model proposes that a person switches to a persona; they do it with a button, or leave it."""

    user_id: str
    branch: str


class Reply(Protocol):
    """The answer to one message, on its way out. Built by the chat's door for each turn."""

    async def push(self, text: str) -> None:
        """A further piece of the answer; shown when the chat's rate limits allow."""
        ...

    async def finish(self) -> str | None:
        """Show everything pushed, completely. Returns the id of the first message, None if there was no text.

        Raises `ChatError` when the chat did not take it.
        """
        ...

    async def drop(self) -> None:
        """Nothing will be said: stop what shows that an answer is coming."""
        ...

    async def offer(self, offer: Offer) -> None:
        """Show a proposal with its button below the answer. Called after `finish`; raises `ChatError`."""
        ...

    async def fail(self, text: str) -> None:
        """Tell the person, in `text`, why there is no (further) answer. What was pushed stays."""
        ...


class History(Protocol):
    """Reads a conversation's past from the chat."""

    async def before(self, place: Place, message_id: str, limit: int) -> list[Said]:
        """At most `limit` messages before `message_id`, oldest first; empty when the chat can not say."""
        ...
