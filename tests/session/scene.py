"""A conversation in which all is real but the model, the chat and the time: small scripted parts."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from discoclaw.core.consent import Consent
from discoclaw.core.consolidate import ConsolidationReport
from discoclaw.core.draft import Draft, Origin
from discoclaw.core.errors import ChatUnavailable, Refused
from discoclaw.core.item import Item
from discoclaw.core.message import Author, FileRef, Inbound, Me, Place, Said, Unreadable
from discoclaw.core.message import Content as FileContent
from discoclaw.core.model import (
    AssistantTurn,
    Finished,
    ModelRequest,
    Purpose,
    StreamEvent,
    TextDelta,
    ToolCall,
    ToolTurn,
    UserTurn,
)
from discoclaw.core.patch import Patch, Summary
from discoclaw.core.policy import DEFAULT, AutoSave, Personas, Policy
from discoclaw.core.ports import Ending, Held, Offer, Shape
from discoclaw.core.purge import Derived
from discoclaw.core.redact import PLAIN, Redactor
from discoclaw.core.subject import user_subject
from discoclaw.loops.facts import FactsLoop, FactsRules
from discoclaw.loops.schedule import Cadence, Loops
from discoclaw.loops.summary import SummaryLoop, SummaryRules
from discoclaw.memory.conversations.answers import Answers
from discoclaw.memory.conversations.inboxes import Inboxes
from discoclaw.memory.conversations.rolling import RollingMemory
from discoclaw.memory.conversations.undelivered import Undelivered, Unsent
from discoclaw.memory.cursors import Cursors
from discoclaw.memory.live import LiveConfig
from discoclaw.memory.off import NoGroups
from discoclaw.memory.people.asked_back import AskedBack
from discoclaw.memory.people.choices import Choices, KnownConsent
from discoclaw.memory.people.groups import Groups
from discoclaw.memory.people.last_used import LastUsed
from discoclaw.memory.people.profiles import Profiles
from discoclaw.memory.people.tool_log import ToolLog
from discoclaw.memory.purge import Purger
from discoclaw.memory.subjects.store import Memory
from discoclaw.prompt.assemble import Budget
from discoclaw.recall.rank import Ranker
from discoclaw.search.archive import Archive
from discoclaw.search.archive_file import ArchiveFile
from discoclaw.session import tools
from discoclaw.session.agent import Agent, Asking, Explained
from discoclaw.session.archiving import Archiving, Rules
from discoclaw.session.branching import Branching
from discoclaw.session.conversation import Conversation
from discoclaw.session.delivery import Delivery, Record
from discoclaw.session.desk import Desk
from discoclaw.session.files.attaching import Attachments, Bounds
from discoclaw.session.files.shelf import Shelf
from discoclaw.session.gather import Content, Gatherer
from discoclaw.session.hatch import Hatchery, HatchingRules
from discoclaw.session.kept_terms import KeptTerms
from discoclaw.session.listen import Listener
from discoclaw.session.meaning import NoMeaning
from discoclaw.session.prepare import AnswerRules, ItemSearch, Preparation
from discoclaw.session.refill import Refill
from discoclaw.session.talk import Talk
from discoclaw.session.talk_in_ram import TalkInRam
from discoclaw.session.toolbox import ToolParts
from discoclaw.session.turn import Stops, Turn, Turns
from discoclaw.session.window import Windows
from discoclaw.store.plain import FileDocuments
from tests.citing import cited_patch

NOW = 1_770_000_000_000  # 2026-02-02T02:40
MINUTE = 60_000
HOUR = 3_600_000

ME = Me("900", "DiscoClaw")
ANN = Author("1", "Ann")
BOB = Author("2", "Bob")
OWNER = Author("3", "Olga", is_owner=True)
GUEST = Author("4", "Gus", allowed=False)

GENERAL = Place("channel", "10", "10", "general", private=False, group_name="general")
DEV = Place("channel", "11", "11", "dev", private=False, group_name="dev")
HIDDEN = Place("channel", "12", "12", "staff", private=True, group_name="staff")
THREAD = Place("thread", "13", "10", "release", private=False, group_name="general")
DM = Place("dm", "14", None, "direct message", private=True)


class Clock:
    """The present, moved by hand; each look is a millisecond later than the one before."""

    def __init__(self, now: int = NOW) -> None:
        self.now = now

    def __call__(self) -> int:
        self.now += 1
        return self.now

    def forward(self, ms: int) -> None:
        self.now += ms


@dataclass
class Asked:
    """One structured question, as the model got it."""

    system: str
    prompt: str
    shape: type[BaseModel]


Scripted = Any
"""A text, a list of stream events, an exception to raise, or a function that makes one of these."""


class ScriptedModel:
    """The port `Model`: replies come from queues, and what was asked is kept.

    With `gate` set, every call waits until somebody opens it. An empty queue gives harmless answers.
    """

    def __init__(
        self,
        answers: Iterable[Scripted] = (),
        *,
        patches: Iterable[Scripted] = (),
        summaries: Iterable[Scripted] = (),
    ) -> None:
        self.answers = deque(answers)
        self.patches = deque(patches)
        self.summaries = deque(summaries)
        self.always: Exception | None = None
        self.gate: asyncio.Event | None = None
        self.requests: list[ModelRequest] = []
        self.asked: list[Asked] = []
        self.at_once = 0
        self.most_at_once = 0

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        self.requests.append(request)
        await self._wait()
        reply = self.answers.popleft() if self.answers else "All right."
        if callable(reply):
            reply = reply(request)
        if isinstance(reply, BaseException):
            raise reply
        events = says(reply) if isinstance(reply, str) else reply
        for event in events:
            if isinstance(event, BaseException):
                raise event
            yield event

    async def structured(
        self, *, purpose: Purpose, system: str, prompt: str, shape: type[Shape], max_tokens: int = 2048
    ) -> Shape:
        self.asked.append(Asked(system, prompt, shape))
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            await self._wait()
        finally:
            self.at_once -= 1
        queue = self.patches if shape is Patch else self.summaries
        reply = queue.popleft() if queue else Patch() if shape is Patch else Summary(summary="Talk so far.")
        if callable(reply):
            reply = reply(prompt)
        if isinstance(reply, BaseException):
            raise reply
        assert isinstance(reply, shape)
        return cited_patch(reply, prompt) if isinstance(reply, Patch) else reply

    async def close(self) -> None:
        pass

    async def _wait(self) -> None:
        if self.always is not None:
            raise self.always
        if self.gate is not None:
            await self.gate.wait()

    @property
    def extractions(self) -> list[str]:
        """The prompts of all extractions."""
        return [asked.prompt for asked in self.asked if asked.shape is Patch]

    @property
    def summarised(self) -> list[str]:
        """The prompts of all summaries."""
        return [asked.prompt for asked in self.asked if asked.shape is Summary]

    def user_turn(self, number: int = -1) -> str:
        """The user message of a request."""
        turn = self.requests[number].turns[0]
        assert isinstance(turn, UserTurn)
        return turn.text

    def results(self, number: int = -1) -> list[tuple[bool, str]]:
        """The tool results a request carries last: whether each failed, and its text."""
        turn = self.requests[number].turns[-1]
        assert isinstance(turn, ToolTurn)
        return [(result.failed, result.text) for result in turn.results]


def says(text: str, *, stop: Any = "end") -> list[StreamEvent]:
    """A stream that says `text` in two pieces."""
    half = len(text) // 2
    pieces = [TextDelta(piece) for piece in (text[:half], text[half:]) if piece]
    return [*pieces, Finished(AssistantTurn(text), stop)]


def calls(*wanted: tuple[str, dict[str, object]], text: str = "") -> list[StreamEvent]:
    """A stream that asks for tools, after saying `text`."""
    made = tuple(ToolCall(f"call_{number}", name, given) for number, (name, given) in enumerate(wanted))
    said = [TextDelta(text)] if text else []
    return [*said, Finished(AssistantTurn(text, made), "tools")]


@dataclass
class Recorder:
    """The port `Reply`: keeps what was pushed and what was said instead. `refuses` makes acts fail."""

    id: str = "5000"
    pushed: list[str] = field(default_factory=list)
    did: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    offers: list[Offer] = field(default_factory=list)
    finished: bool = False
    refuses: dict[str, Exception] = field(default_factory=dict)
    unsaid: str = ""
    ending: Ending = "other"
    named: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "".join(self.pushed)

    async def push(self, text: str) -> None:
        self._check("push")
        self.pushed.append(text)

    async def note(self, sentences: Sequence[str]) -> None:
        await self.push("\n\n" + "\n".join(sentences))

    async def retract(self, left: str) -> None:
        self.pushed[:] = [left]

    async def doing(self, line: str) -> None:
        self.did.append(line)

    async def finish(self, ending: Ending = "other") -> str | None:
        self._check("finish")
        self.finished = True
        self.ending = ending
        return self.id if self.text.strip() else None

    @property
    def held(self) -> Held:
        return Held(self.text, "10", "")

    def hold(self) -> None:
        pass

    async def branch_off(self, name: str) -> Place | None:
        return None

    async def drop(self) -> None:
        pass

    async def unsend(self) -> None:
        self.pushed.clear()

    async def offer(self, offer: Offer) -> None:
        self._check("offer")
        self.offers.append(offer)

    async def fail(self, text: str, also: Sequence[str] = (), *, ending: Ending = "other") -> None:
        self._check("fail")
        self.ending = ending
        self.failed.append(text)
        self.named += also

    def _check(self, act: str) -> None:
        if act in self.refuses:
            raise self.refuses[act]


class NoThreads:
    """The port `Threads` of a chat without any."""

    async def rename(self, thread_id: str, before: str, after: str) -> None:
        raise AssertionError("no thread was opened")


class Past:
    """The port `History`: one list of messages, whatever the place. `fails` are raised first, in order."""

    def __init__(self, said: Iterable[Said] = (), fails: Iterable[Exception] = ()) -> None:
        self.said = list(said)
        self.fails = deque(fails)
        self.gate: asyncio.Event | None = None
        self.asked: list[tuple[str, str]] = []

    async def pages(self, place: Place, message_id: str) -> AsyncGenerator[list[Said], None]:
        self.asked.append((place.channel_id, message_id))
        if self.gate is not None:
            await self.gate.wait()
        if self.fails:
            raise self.fails.popleft()
        past = [one for one in self.said if int(one.id) < int(message_id)]
        for end in range(len(past), 0, -10):
            yield past[max(0, end - 10) : end]


@dataclass
class House:
    """One running program over the files in `folder`; a second one over the same folder is a restart."""

    folder: Path
    clock: Clock
    model: ScriptedModel
    memory: Memory
    rolling: RollingMemory
    cursors: Cursors
    choices: Choices
    consent: Consent
    loops: Loops
    windows: Windows
    history: Past
    desk: Desk
    talk: Talk
    tool_log: ToolLog
    last_used: LastUsed
    personal: Derived
    meaning: Any

    async def remember(self, author: Author, text: str, kind: str = "fact", **given: Any) -> Item:
        """Put an item into somebody's memory as a command would."""
        origin = given.pop("origin", None) or Origin("stated", dm_privacy="balanced")

        def wish(draft: Draft) -> Item:
            return draft.upsert(kind, text, origin, **given)[0]

        return await self.memory.change(user_subject(author.id), "a test", wish)

    async def texts(self, author: Author) -> list[str]:
        """The active items of a person."""
        return [item.text for item in (await self.memory.view(user_subject(author.id))).active()]

    async def choose(self, user_id: str, **chosen: Any) -> None:
        """Let somebody choose about being remembered, as a command would."""
        await self.choices.choose(user_id, **chosen)
        self.consent.changed(user_id)

    def turn(self, message: Inbound, policy: Policy = DEFAULT) -> Turn:
        return self.talk.turns.under(message, policy)

    def hear(self, message: Inbound, policy: Policy = DEFAULT) -> None:
        """A message of an allowed channel."""
        self.talk.listener.hear(self.turn(message, policy))

    def answer(self, message: Inbound, reply: Any, policy: Policy = DEFAULT) -> None:
        """Have a message answered in its turn."""
        self.talk.answer(self.turn(message, policy), lambda shown: reply)

    async def settle(self) -> None:
        await self.desk.settle()
        await self.loops.settle()


async def out_of_reach(kept: Unsent, late: bool, shown: Callable[[str, str], None]) -> None:
    """A chat that takes no late answer."""
    raise ChatUnavailable("503")


def house(folder: Path, model: ScriptedModel | None = None, **given: Any) -> House:
    """Build the parts; `given` replaces defaults."""
    clock: Clock = given.pop("clock", None) or Clock()
    model = model or ScriptedModel()
    root = folder / "memory"
    memory = Memory(root, clock=clock, max_items=given.pop("max_items", 200))
    rolling = RollingMemory(root / "rolling", clock=clock)
    cursors = Cursors(root / "cursors")
    choices = Choices(root, memory.changes)
    choices.load()
    consent = KnownConsent(choices, memory.erased_at)
    memory.join(consent)
    personas: Personas = given.pop("personas", Personas())
    loops = Loops(
        clock=clock,
        summary=SummaryLoop(
            model,
            rolling,
            cursors,
            me=lambda: ME,
            rules=SummaryRules(clock, given.pop("summary_max", 2000)),
            consent=consent,
        ),
        facts=FactsLoop(
            model,
            memory,
            cursors,
            rules=FactsRules(personas=personas),
            me=lambda: ME,
            clock=clock,
            consent=consent,
        ),
        cadence=Cadence(given.pop("summary_every", 1000), given.pop("facts_every", 1000)),
        learned=given.pop("learned", lambda user_id: None),
        consent=consent,
    )
    history: Past = given.pop("history", None) or Past()
    desk = Desk(waiting_limit=given.pop("waiting_limit", 20), running_limit=given.pop("running_limit", 16))
    windows = Windows(clock=clock, capacity=given.pop("capacity", 20))
    use_memory = given.pop("use_memory", memory)
    use_rolling = given.pop("use_rolling", rolling)
    archive = given.pop("archive", None) or Archiving(
        Archive(ArchiveFile(root / "archive.sqlite", clock=clock)), Rules(AutoSave(), 0, consent), clock=clock
    )
    tool_log = given.pop("tool_log", None) or ToolLog(memory.disk, clock=clock)
    last_used = given.pop("last_used", None) or LastUsed(memory, cursors, clock=clock)
    profiles = Profiles(root / "profiles", use_memory, clock=clock, consent=consent)
    groups = NoGroups()
    if use_memory is memory:
        groups = Groups(root / "groups", memory, clock=clock, consent=consent)
    memory.join(profiles, groups, last_used)
    redactor: Redactor = given.pop("redactor", PLAIN)
    answering = given.pop("answers_with", model)
    content = Content(folder / "content")
    explained, ranker = Explained(), given.pop("ranker", None) or Ranker()
    vectors = given.pop("meaning", None)
    meaning = NoMeaning() if vectors is None else vectors(memory)
    hatchery = Hatchery(
        HatchingRules(frozenset()),
        answering,
        use_memory,
        cursors,
        windows,
        loops,
        consent,
        clock=clock,
        me=lambda: ME,
    )
    purger = Purger(use_memory, memory.personal, cursors, consent)
    answers, stops = Answers(memory.disk), Stops()
    memory.join(answers)
    refill = Refill(history, consent, purger, answers, loops, archive, clock=clock)
    items = ItemSearch(
        ranker,
        KeptTerms(folder / "cache", use_memory),
        meaning,
        last_used,
        clock=clock,
        me=lambda: ME,
        usual_limit=given.pop("recall_limit", 5),
    )
    shelf = Shelf(given.pop("reader", None) or Unread(), clock=clock, most=1_000_000)
    memory.join(shelf)
    preparation = Preparation(
        refill,
        Gatherer(use_memory, content, last_used, use_rolling, cursors, groups, profiles, owners=[]),
        items,
        Attachments(shelf, NoLinks(), consent, given.pop("bounds", Bounds()), refill.usable),
        given.pop("budget", Budget()),
        clock=clock,
        me=lambda: ME,
    )
    live = LiveConfig(FileDocuments(root), clock=clock)
    turns = Turns(live, consent, windows, personas)
    inboxes = Inboxes(cursors, consent, catches_up=False)
    branching = Branching(turns, loops, model, NoThreads())
    record = Record(loops, archive, purger, branching, clock=clock, me=lambda: ME, redactor=redactor)
    agent = Agent(
        stops=stops,
        hatchery=hatchery,
        refill=refill,
        preparation=preparation,
        branching=branching,
        conversation=Conversation(
            answering,
            tools.ALL if given.pop("tools", True) else tools.NONE,
            ToolParts(use_memory, items, choices, given.pop("tidy", no_tidying), purger),
            archive,
            tool_log,
            rules=given.pop("rules", AnswerRules()),
            redactor=redactor,
            compacted=given.pop("compacted", lambda subject: None),
        ),
        record=record,
        loops=loops,
        asking=Asking(use_memory, AskedBack(use_memory, cursors, choices, clock=clock)),
        delivery=Delivery(
            Undelivered(cursors, consent, purger),
            inboxes,
            turns,
            answers,
            consent,
            out_of_reach,
            record,
            clock=clock,
        ),
        explained=explained,
        clock=clock,
    )
    listener = Listener(windows, loops, archive, hatchery, profiles, groups, shelf, stops)
    talk = Talk(
        turns,
        listener,
        inboxes,
        agent,
        desk,
        hatchery=hatchery,
        refill=refill,
        loops=loops,
        answers=answers,
    )
    assert not given, given
    return House(
        folder,
        clock,
        model,
        memory,
        rolling,
        cursors,
        choices,
        consent,
        loops,
        windows,
        history,
        desk,
        talk,
        tool_log,
        last_used,
        TalkInRam(windows, loops, hatchery, explained, ranker, refill, clock=clock),
        meaning,
    )


class Unread:
    """Reads no file."""

    async def read(self, file: FileRef) -> FileContent | Unreadable:
        return Unreadable(file.name, "Files are not read here.")


class NoLinks:
    """Finds no linked message."""

    async def messages(self, message: Inbound) -> Sequence[Said | Unreadable]:
        return ()


async def no_tidying(subject: str, branch: str | None, why: Mapping[str, str]) -> ConsolidationReport:
    raise Refused("consolidation is switched off here")


def said(number: int, author: Author | Me = ANN, text: str = "", **given: Any) -> Said:
    """A line of a window; by default its text is its number. We are the author when `author` is `ME`."""
    return Said(
        id=str(number),
        author_id=author.id,
        name=author.name,
        text=text or f"line {number}",
        sent_at=NOW + number,
        by_us=isinstance(author, Me),
        is_owner=getattr(author, "is_owner", False),
        guest=not getattr(author, "allowed", True),
        **given,
    )


def inbound(number: int, text: str, author: Author = ANN, place: Place = GENERAL, **given: Any) -> Inbound:
    """A message as the chat's door hands it in."""
    return Inbound(
        id=str(number),
        author=author,
        place=place,
        session_key=place.session_key(author.id),
        text=text,
        sent_at=given.pop("sent_at", NOW + number),
        **{"mentions_us": True, **given},
    )


def replying_to(author: str, text: str, *, by_us: bool = False) -> Said:
    return Said("1", ME.id if by_us else "4711", author, text, NOW, by_us=by_us)


async def until(holds: Callable[[], bool], *, seconds: float = 30.0) -> None:
    """Wait until something holds."""
    async with asyncio.timeout(seconds):
        while not holds():  # noqa: ASYNC110 - what is waited for knows nothing of us
            await asyncio.sleep(0.001)
