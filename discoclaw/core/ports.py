"""Interfaces that the inner packages use and the adapters implement. Declarations only."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Literal, Protocol, TypeAlias, TypeVar

from pydantic import BaseModel

from discoclaw.core.actions import Act, Typed
from discoclaw.core.item import Item
from discoclaw.core.message import FileRef, Inbound, Place, Said, Unreadable
from discoclaw.core.model import ModelRequest, Purpose, StreamEvent
from discoclaw.core.pending import Pending
from discoclaw.core.query import Query
from discoclaw.core.shards import Shards
from discoclaw.core.values import dataclass, field
from discoclaw.core.visible import Line

Shape = TypeVar("Shape", bound=BaseModel)

Clock = Callable[[], int]
"""Returns the current time in milliseconds since 1970."""


class MirrorControl(Protocol):
    """The mirror of the memory on relays, as far as the bot's owners control it from the chat."""

    async def status_text(self) -> str:
        """Its state, as lines of plain text."""
        ...

    def push(self) -> None:
        """Start bringing it up to date, and retry what relays refused. Returns at once."""
        ...


class NoMirror:
    """In place of a mirror where no relays are set."""

    async def status_text(self) -> str:
        """An empty text: there is no relay to report on."""
        return ""

    def push(self) -> None:
        """Do nothing: there is no relay to push to."""


class Model(Protocol):
    """A language model. Every failure is a `ModelError`; vendors' exceptions never get past the adapter."""

    def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        """Yield any number of `TextDelta`s, then exactly one `Finished`."""
        ...

    async def structured(
        self, *, purpose: Purpose, system: str, prompt: str, shape: type[Shape], max_tokens: int = 2048
    ) -> Shape:
        """One answer as a validated value of `shape`, without tools. One time limit covers the whole call.

        `max_tokens` is the room for the answer itself: the provider adds what thinking needs.

        Raises `ModelBadOutput` if the answer is not exactly that shape, `ModelCut` if it is not whole and
        `ModelEmpty` if there is none.
        """
        ...

    async def close(self) -> None:
        """Release connections."""
        ...


class WrappedModel:
    """The port `Model` around another one: passes on whatever a derived class doesn't do itself."""

    def __init__(self, model: Model) -> None:
        self._model = model

    def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        """The other model's stream."""
        return self._model.stream(request)

    async def structured(
        self, *, purpose: Purpose, system: str, prompt: str, shape: type[Shape], max_tokens: int = 2048
    ) -> Shape:
        """The other model's answer."""
        return await self._model.structured(
            purpose=purpose, system=system, prompt=prompt, shape=shape, max_tokens=max_tokens
        )

    async def close(self) -> None:
        """Release the other model's connections."""
        await self._model.close()


@dataclass(frozen=True, slots=True)
class Signals:
    """Signals for ranking beside the items' words. The maps are by item id.

    `cosines`: the cosine of the query's vector and the item's, -1 to 1; `floor`: the cosine from which, with
    the model that made them, an item may be what the query means; unrelated texts practically never reach it.
    `accessed`: when (ms) the item was last found. `own_name`: the person's name here; without it, ranking
    cannot tell that a question is about somebody else.
    """

    cosines: Mapping[str, float] = field(default_factory=dict)
    accessed: Mapping[str, int] = field(default_factory=dict)
    own_name: str | None = None
    floor: float = 0.0


NO_SIGNALS = Signals()

LINKED_WITH = "linked with "
"""The start of `Hit.why` for an item found only through a link; the other item's id follows."""
POSSIBLE = "possibly related"
"""What is said of items that are shown without evidence of their own."""
IDLE = "idle for too long"
"""`Hit.dropped` of an item that nobody has used for so long that it is not found any more."""


class Recall(Protocol):
    """Finds the items of one person that matter for a query."""

    def rank(
        self, query: Query, items: Sequence[Item], *, now_ms: int, signals: Signals = NO_SIGNALS
    ) -> "Sequence[Hit]":
        """All items with real evidence for `query`, best first; equal ones newer first, then by id."""
        ...

    def consider(
        self, query: Query, items: Sequence[Item], *, now_ms: int, signals: Signals = NO_SIGNALS
    ) -> "Sequence[Hit]":
        """The hits of `rank`, followed by the candidates that it drops, which say why."""
        ...

    def prepare(self, items: Sequence[Item]) -> Iterator[None]:
        """Compute ahead what ranking needs of items, with a rest after each that is new to it."""
        ...

    def faded(self, item: Item, *, now_ms: int, signals: Signals = NO_SIGNALS) -> bool:
        """Whether an item is not found any more, whatever the query, because it was idle for too long."""
        ...

    def line(self, item: Item) -> Line:
        """An item's line in a prompt; made once for each item, which never changes."""
        ...


class Embedder(Protocol):
    """Turns texts into vectors. Every failure is an `EmbeddingError`, as for `Model`."""

    @property
    def name(self) -> str:
        """Provider and model. Vectors made under different names cannot be compared."""
        ...

    @property
    def stays_here(self) -> bool:
        """Whether texts stay on this machine. Private items are only embedded if they do."""
        ...

    async def embed(self, texts: Sequence[str], *, timeout_s: float) -> Sequence[Sequence[float]]:
        """A vector of finite numbers for each text, in the same order and all of the same length."""
        ...

    async def close(self) -> None:
        """Release connections."""
        ...


class Hit(Protocol):
    """A ranked item. `score` is above 0; `why` names the matched terms. `dropped` is why it is left out.

    `possible`: it has no evidence of its own, and comes behind all that have.
    """

    @property
    def item(self) -> Item: ...
    @property
    def score(self) -> float: ...
    @property
    def why(self) -> str: ...
    @property
    def dropped(self) -> str: ...
    @property
    def possible(self) -> bool: ...


@dataclass(frozen=True, slots=True)
class Offer:
    """The model's proposal to switch a person to a persona. It is shown as a button; the person decides."""

    user_id: str
    branch: str


@dataclass(frozen=True, slots=True)
class ChoiceOffer:
    """The model's proposal to forget what is `about` something, or to change it to `text` if there is one.

    `about` is topics and ids with ";" between. The person gets a list, and decides.
    """

    user_id: str
    branch: str
    about: str
    text: str = ""


@dataclass(frozen=True, slots=True)
class HatchOffer:
    """The offer to an owner to give the bot a personality, which it lacks. It is shown as a button."""

    user_id: str


@dataclass(frozen=True, slots=True)
class AskOffer:
    """A question in return: whether something that extraction was unsure of is to be remembered.

    It is shown with buttons for yes and no. `commit` is the change that proposed it on `branch`, `held` the
    item that a yes would change.
    """

    user_id: str
    commit: str
    branch: str
    pending: Pending
    held: Item | None


@dataclass(frozen=True, slots=True)
class ReminderOffer:
    """A reminder that the model has set, to take back: what it says, when it comes, and where, as markup.

    `asks_zone`: it goes by a clock that may not be the person's.
    """

    user_id: str
    reminder_id: str
    text: str
    asks_zone: bool = False


AnyOffer = Offer | ChoiceOffer | HatchOffer | AskOffer | ReminderOffer
"""A proposal that may be shown below an answer, with buttons."""


Ending: TypeAlias = Literal["whole", "cut", "missing", "other"]
"""How an answer ends. The chat may offer another one, and the rest of one that was `cut` off or stopped.

`missing`: there is none, and why is said in its place. `other`: it is nothing that can be given again.
"""


@dataclass(frozen=True, slots=True)
class Held:
    """All of an answer that was pushed, and what the chat needs to show it later.

    It is given in `channel_id`, as a reply to the message `asked_id` in the channel `asked_in`; both are ""
    if only one person sees it. By `turn_id` the chat knows a double. `shown` are its messages that are there.
    """

    text: str
    channel_id: str
    turn_id: str
    asked_in: str = ""
    asked_id: str = ""
    shown: tuple[str, ...] = ()


class Reply(Protocol):
    """The answer to one message while it is being written. The chat adapter makes one for each turn."""

    async def push(self, text: str) -> None:
        """Append text to the answer. It is shown as soon as the chat's rate limits allow."""
        ...

    async def retract(self, left: str) -> None:
        """Take back all that was pushed but `left`, its beginning: the rest was never meant to be said."""
        ...

    async def doing(self, line: str) -> None:
        """Show that the model works on the answer, until more text comes. It isn't part of the answer."""
        ...

    async def note(self, sentences: Sequence[str]) -> None:
        """Append sentences in small print, below all that was pushed. Nothing in them is markup."""
        ...

    async def finish(self, ending: Ending = "other") -> str | None:
        """Show everything that was pushed. Returns the id of its first message, None if there was no text.

        Raises `ChatError` if the chat did not accept it. If it accepted a part, that part's id is returned.
        """
        ...

    @property
    def unsaid(self) -> str:
        """The pushed text that is not shown: after `finish`, the part that the chat did not accept."""
        ...

    async def branch_off(self, name: str) -> Place | None:
        """Go on in a thread of its own below the message, which has this name if it is a new one.

        Called before anything is pushed. Returns None if there can be none: the answer stays where it is.
        """
        ...

    @property
    def held(self) -> Held:
        """The answer so far, as it may be shown later."""
        ...

    def hold(self) -> None:
        """Show nothing before `finish`: other answers come first."""
        ...

    async def drop(self) -> None:
        """Give up without an answer: stop showing that one is being written."""
        ...

    async def unsend(self) -> None:
        """Remove all that was shown, and show nothing more: what it answers was deleted. Never raises."""
        ...

    async def offer(self, offer: AnyOffer) -> None:
        """Show a proposal and its button below the answer. Called after `finish`. Raises `ChatError`."""
        ...

    async def fail(self, text: str, also: Sequence[str] = (), *, ending: Ending = "other") -> None:
        """Tell the person with `text` why the answer is missing or incomplete. Text already shown stays.

        `also` are the names of others to whom the same is told with it.
        """
        ...


class MakeReply(Protocol):
    """Begins the answer to one message; it is called only if there will be one."""

    def __call__(self, shown: Callable[[str, str], None]) -> Reply:
        """The answer. `shown` is called with the ids of each message that it sends, and of its channel."""
        ...


class Threads(Protocol):
    """Names threads in the chat."""

    async def rename(self, thread_id: str, before: str, after: str) -> None:
        """Rename a thread unless it has another name than `before` by now. Raises ChatError."""
        ...


class Transcriber(Protocol):
    """Turns recordings of speech into words. Every failure is a `TranscriptionError`."""

    async def words(self, audio: bytes, name: str, type: str, *, timeout_s: float) -> str:
        """The words of a recording; "" if there are none. `name` is a file name, `type` a media type."""
        ...

    async def close(self) -> None:
        """Close its connections."""
        ...


class History(Protocol):
    """Reads earlier messages of a conversation from the chat."""

    def pages(self, place: Place, message_id: str) -> AsyncGenerator[list[Said], None]:
        """The messages before `message_id`, newest page first, and oldest first in each page.

        A page may be empty although others follow. Raises ChatError.
        """
        ...


class Files(Protocol):
    """Downloads the files of messages from the chat."""

    async def download(self, file: FileRef, most: int) -> bytes:
        """A file's content. Raises `FileTooLarge` if it has more than `most` bytes, and other ChatErrors."""
        ...


class Hands(Protocol):
    """Does in the chat what people ask for, with their own rights: it moderates nothing.

    Raises Refused, whose text is a sentence for the person, and ChatError.
    """

    async def typed(self, message: Inbound) -> Sequence[Typed]:
        """What its author typed, as it stands in the chat now, for each message that this one stands for."""
        ...

    async def act(self, act: Act, message: Inbound, typed: Sequence[Typed]) -> str:
        """Do it if its asker and then the bot may do it there at this moment, and show it with Undo.

        Returns what was done, in a few words.
        """
        ...


class Linked(Protocol):
    """Reads the messages that a message links to."""

    async def messages(self, message: Inbound) -> "Sequence[Said | Unreadable]":
        """The linked messages in the order of the links, or why one may not be read. Raises nothing."""
        ...


# ----------------------------------------------------------------------
# The lifecycle of every part that runs.
#
# The composition root starts services in order and closes them in reverse. What is switched off is not among
# them, and has a stand-in where another part needs one, so no code asks whether a part exists.


class Service(Protocol):
    """A part with work of its own: a connection, a file, a background task."""

    async def start(self) -> None:
        """Begin to work. Called once, before anything arrives from the chat."""
        ...

    async def settle(self) -> None:
        """Return when everything that can be done now is done. Retries that come later are not awaited."""
        ...

    async def close(self) -> None:
        """Finish or save what is under way within a few seconds, then release everything.

        May be called again, and without `start`.
        """
        ...


class Passive:
    """A `Service` with nothing to start, finish or release: a base for parts that need only some of it."""

    async def start(self) -> None:
        """Do nothing."""

    async def settle(self) -> None:
        """Return at once."""

    async def close(self) -> None:
        """Release nothing."""


class Hearer:
    """Hears of the gateway's sessions, each of which is about some of Discord's shards; here in vain."""

    def began(self, shards: Shards) -> None:
        """A new session: what was missed before will not be sent again."""

    async def ready(self, shards: Shards) -> None:
        """The servers of a new session are known."""

    def resumed(self, shards: Shards) -> None:
        """A session goes on after its connection was lost; Discord sends what was missed."""


# ----------------------------------------------------------------------
# Several processes that share one store: what a part may ask of the others, and the answers of one alone.
#
#     claim   the right to handle one message or press of a button: one living process has it
#     lease   the right to do one piece of work: one process at a time, until it ends or isn't heard from
#
# A process that isn't heard from is replaced by whoever needs what it has: the store then refuses what it
# writes, and it ends.
#
# A name of a text is its path in the store: "ledger/user-1.jsonl", "rolling/discord:dm:1.json",
# "config.json".


class Processes(Service, Protocol):
    """The processes that share the store, as one of them sees them."""

    @property
    def shared(self) -> bool:
        """Whether there may be others at all."""
        ...

    @property
    def in_touch(self) -> bool:
        """Whether what is in RAM may be used: the store was reached lately, and the others count on us."""
        ...

    async def claim(self, message_id: str, about: Iterable[str] = ()) -> bool:
        """Claim a message, and let go of what others changed in these texts. One question to the store.

        Returns False if another process has it that is still heard from: what a dead one had claimed and not
        ended is to be handled after it. True without an answer in time: `in_touch` is then false.
        """
        ...

    async def look(self, about: Iterable[str]) -> None:
        """Let go of what others changed in these texts, as `claim` does."""
        ...

    def lease(self, name: str) -> AbstractAsyncContextManager[None]:
        """Have a lease while this is entered; waits for whoever has it.

        Leases keep processes apart: the tasks of one process share the lease until the last of them leaves.
        A process that is replaced loses all. Then nothing is written any more, and the task that entered is
        cancelled and gets LeaseLost where it leaves, because no store can refuse what it sends elsewhere.
        """
        ...

    def free(self, name: str) -> AbstractAsyncContextManager[bool]:
        """Enter a lease without waiting: gives False, and no lease, while another process has it.

        Also while the store does not answer.
        """
        ...

    async def holders(self, prefix: str) -> Mapping[str, str]:
        """The leases of other living processes whose names begin so, and in a few words who has each.

        Raises MemoryFault if the store does not answer.
        """
        ...

    async def all_know(self) -> None:
        """Wait until each other process let go of everything written so far, or may write no more.

        Raises MemoryFault if the store does not answer.
        """
        ...


class Alone(Passive):
    """The only process on its store."""

    shared = False
    in_touch = True

    async def claim(self, message_id: str, about: Iterable[str] = ()) -> bool:
        return True

    async def look(self, about: Iterable[str]) -> None:
        """Nobody else changes anything."""

    @asynccontextmanager
    async def lease(self, name: str) -> AsyncIterator[None]:
        yield

    @asynccontextmanager
    async def free(self, name: str) -> AsyncIterator[bool]:
        yield True

    async def holders(self, prefix: str) -> Mapping[str, str]:
        return {}

    async def all_know(self) -> None:
        """There is nobody else."""


ALONE = Alone()
