"""The doors' shapes, as the inner rooms see them. Declarations only."""

from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from pydantic import BaseModel

from discoclaw.core.item import Item
from discoclaw.core.message import Place, Said
from discoclaw.core.model import ModelRequest, StreamEvent
from discoclaw.core.query import Query
from discoclaw.core.visible import Line

Shape = TypeVar("Shape", bound=BaseModel)

Clock = Callable[[], int]
"""The present in milliseconds since 1970."""


class MirrorControl(Protocol):
    """A mirror of the memory elsewhere, as its owner sees it."""

    async def status_text(self) -> str:
        """How it is doing, in lines of plain text."""
        ...

    def push(self) -> None:
        """Bring it up to date now, and try again what was refused. Never waits."""
        ...


class NoMirror:
    """In place of a mirror where no relays are set."""

    async def status_text(self) -> str:
        """Nothing to report."""
        return ""

    def push(self) -> None:
        """Nothing is pushed."""


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


class Corpus(Protocol):
    """All documents that a search is about, of which it may see only candidates."""

    @property
    def total(self) -> int:
        """How many documents there are."""
        ...

    @property
    def average(self) -> float:
        """Their mean length, in terms."""
        ...

    def frequency(self, terms: Iterable[str]) -> Mapping[str, int]:
        """How many documents contain each of the terms."""
        ...


@dataclass(frozen=True, slots=True)
class Signals:
    """What is known of items beside their words, by item id.

    `cosines` of the query's vector with the item's (-1 to 1); when (ms) it was last `accessed`. `corpus`: the
    statistics of a memory of which only candidates are ranked. `own_name` is what the person is called here;
    only with it can be told that a question is about somebody else.
    """

    cosines: Mapping[str, float] = field(default_factory=dict)
    accessed: Mapping[str, int] = field(default_factory=dict)
    corpus: Corpus | None = None
    own_name: str | None = None


NO_SIGNALS = Signals()

LINKED_WITH = "linked with "
"""How the reason of a hit begins that was found by a link alone; the id of the other item follows."""


class Recall(Protocol):
    """Finds, among one person's items, those that matter for a query."""

    def rank(
        self, query: Query, items: Sequence[Item], *, now_ms: int, signals: Signals = NO_SIGNALS
    ) -> "Sequence[Hit]":
        """All items with real evidence for `query`, best first; ties are newer first, then by id."""
        ...

    def line(self, item: Item) -> Line:
        """An item's line in a prompt; made once for each item, which never changes."""
        ...

    def forget(self) -> None:
        """Keep nothing in RAM of what was ranked: somebody's words have to go."""
        ...


class Embedder(Protocol):
    """Turns texts into vectors. Every failure is an `EmbeddingError`; nothing of a vendor leaves the door."""

    @property
    def name(self) -> str:
        """Provider and model. Vectors of different names are not comparable."""
        ...

    @property
    def stays_here(self) -> bool:
        """Whether the texts stay on this machine."""
        ...

    async def embed(self, texts: Sequence[str], *, timeout_s: float) -> Sequence[Sequence[float]]:
        """A vector for each text, in their order, all of one length, of finite numbers."""
        ...

    async def close(self) -> None:
        """Give connections back."""
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


@dataclass(frozen=True, slots=True)
class HatchOffer:
    """We have no personality: an owner may begin to give us one with a button, or leave it."""

    user_id: str


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

    async def offer(self, offer: Offer | HatchOffer) -> None:
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
