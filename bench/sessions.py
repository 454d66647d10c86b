"""A thousand conversations of twenty messages at once, every one answered exactly once and in its order.

At the level of `Talk`, with memory, recall, windows and both loops on, on a real disk, and with models that
answer at once: what is measured is everything that is ours. The time ends when the last loop has written.
The baseline is the same messages through one task a conversation that asks the model and keeps the answer,
with no memory at all.
"""

import asyncio
import time
from collections import defaultdict
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field

from bench.discord_payloads import connect
from bench.figure import Figure, without_garbage
from bench.world import FIRST_MESSAGE, EchoModel, fresh_folder, message, settings_in
from discoclaw.app import App, build, now_ms
from discoclaw.core import titles
from discoclaw.core.message import Inbound, Place, Said
from discoclaw.core.model import ModelRequest, TextDelta, UserTurn
from discoclaw.core.policy import Policy
from discoclaw.core.ports import AnyOffer, Ending, Held
from discoclaw.session.talk import Talk

SESSIONS, EACH = 1_000, 20
LEAST = 300
KNOWN = 5_000
POLICY = Policy("all")

Answers = dict[int, list[str]]


@dataclass
class Listener:
    """The port `Reply` of one message: keeps what was answered, in the order of the answers."""

    answers: list[str]
    number: int
    said: list[str] = field(default_factory=list)

    async def push(self, text: str) -> None:
        self.said.append(text)

    async def note(self, sentences: Sequence[str]) -> None:
        pass

    async def retract(self, left: str) -> None:
        pass

    async def doing(self, line: str) -> None:
        pass

    @property
    def unsaid(self) -> str:
        return ""

    async def finish(self, ending: Ending = "other") -> str | None:
        self.answers.append("".join(self.said))
        return str(FIRST_MESSAGE + self.number)

    @property
    def held(self) -> Held:
        return Held("", str(self.number), "")

    def hold(self) -> None:
        pass

    async def branch_off(self, name: str) -> Place | None:
        return None

    async def drop(self) -> None:
        pass

    async def unsend(self) -> None:
        pass

    async def offer(self, offer: AnyOffer) -> None:
        pass

    async def fail(self, text: str, also: Sequence[str] = (), *, ending: Ending = "other") -> None:
        self.answers.append(f"failed: {text}")


class NoPast:
    """The port `History` of conversations that have just begun."""

    async def pages(self, place: Place, message_id: str) -> AsyncGenerator[list[Said], None]:
        yield []


async def measure() -> list[Figure]:
    """Messages a second, by the clock and by the processor, with nobody else known and with 5,000."""
    return [figure for known in (0, KNOWN) for figure in await _measured(known)]


async def _measured(known: int) -> list[Figure]:
    talk = [[message_of(session, number) for number in range(EACH)] for session in range(SESSIONS)]
    with fresh_folder() as folder, without_garbage():
        app = build(settings_in(folder), model=EchoModel(), history=NoPast())
        async with app:
            await connect(app.client, lambda text: None)
            await meet(app, known)
            began, busy = time.perf_counter(), time.process_time()
            answers = await converse(app.talk, talk)
            await app.settle()
            ours = SESSIONS * EACH / (time.perf_counter() - began)
            ours_cpu = SESSIONS * EACH / (time.process_time() - busy)
    _check(answers)
    with without_garbage():
        began, busy = time.perf_counter(), time.process_time()
        _check(await _plainly(talk))
        bare = SESSIONS * EACH / (time.perf_counter() - began)
        bare_cpu = SESSIONS * EACH / (time.process_time() - busy)
    name, beside = f"{SESSIONS:,} conversations of {EACH}, {known:,} others known", "tasks with no memory"
    return [
        Figure(name, ours, bare, "msg/s", beside, f">= {LEAST} msg/s", ours >= LEAST),
        Figure(f"{name}, CPU", ours_cpu, bare_cpu, "msg/s", beside),
    ]


async def meet(app: App, count: int) -> None:
    """Let the bot hear so many people, each in a conversation of their own, and write down what it notes."""
    inboxes = app.talk.inboxes
    for session in range(SESSIONS, SESSIONS + count):
        inbound = message_of(session, 0)
        assert inboxes.take(inbound.place, inbound.session_key, inbound.id)
        assert await app.talk.turns.claim(inbound)
        app.talk.listener.hear(app.talk.turns.under(inbound, POLICY))
        inboxes.heard(inbound.session_key, inbound.id)
        if session % 100 == 0:
            await app.settle()
    await app.settle()


def message_of(session: int, number: int) -> Inbound:
    """What is said in a conversation."""
    return message(session, 2 * number, f"{session}:{number}", sent_at=now_ms())


async def converse(talk: Talk, said: list[list[Inbound]]) -> Answers:
    """Everybody speaks at once: the first message of each, then the second, and so on."""
    answers: Answers = defaultdict(list)
    for number in range(len(said[0])):
        assert all(await asyncio.gather(*(talk.turns.claim(one[number]) for one in said)))
        for session in range(len(said)):
            inbound = said[session][number]
            turn = talk.turns.under(inbound, POLICY)
            talk.listener.hear(turn)
            reply = Listener(answers[session], (2 * number + 1) * 1_000_000 + session)
            talk.answer(turn, lambda shown, reply=reply: reply)
        await asyncio.sleep(0)
    await talk.desk.settle()
    return answers


async def _plainly(said: list[list[Inbound]]) -> Answers:
    model = EchoModel()
    answers: Answers = defaultdict(list)

    async def converse(session: int) -> None:
        for inbound in said[session]:
            request = ModelRequest((), (UserTurn(f"{titles.MESSAGE}\n{inbound.text}"),))
            pieces = [event.text async for event in model.stream(request) if isinstance(event, TextDelta)]
            answers[session].append("".join(pieces))

    await asyncio.gather(*(converse(session) for session in range(len(said))))
    return answers


def _check(answers: Answers) -> None:
    for session in range(SESSIONS):
        wanted = [f"{session}:{number}" for number in range(EACH)]
        if answers[session] != wanted:
            raise RuntimeError(f"conversation {session} was answered {answers[session]}, not {wanted}")
