"""A thousand missed messages in twenty conversations, of which forty are questions, heard and answered.

What is measured is everything of ours behind Discord's history, until the last answer. The baseline is the
same messages as they would have come one by one, so the ratio says what an absence costs.
"""

import time
from collections.abc import Awaitable, Callable
from dataclasses import replace

from bench.discord_payloads import connect
from bench.figure import Figure, without_garbage
from bench.sessions import Listener, NoPast
from bench.world import EchoModel, fresh_folder, message, settings_in
from discoclaw.app import build, now_ms
from discoclaw.core.message import Inbound
from discoclaw.core.ports import MakeReply
from discoclaw.session.talk import Missed, Talk

ROOMS, EACH, ASKED = 20, 50, (24, 49)


async def measure() -> list[Figure]:
    """Messages a second."""
    missed, live = await _measured(_missed), await _measured(_live)
    name = f"catching up on {ROOMS * EACH:,} missed messages"
    return [Figure(name, missed, live, "msg/s", "the same messages one by one")]


async def _measured(take: Callable[[Talk, list[list[Inbound]]], Awaitable[None]]) -> float:
    rooms = [[_message(room, number) for number in range(EACH)] for room in range(ROOMS)]
    with fresh_folder() as folder, without_garbage():
        app = build(settings_in(folder), model=EchoModel(), history=NoPast())
        async with app:
            await connect(app.client, lambda text: None)
            began = time.perf_counter()
            await take(app.talk, rooms)
            await app.talk.desk.settle()
            took = time.perf_counter() - began
    return ROOMS * EACH / took


def _message(room: int, number: int) -> Inbound:
    said = message(room, 2 * number, f"{room}:{number} is what I say", sent_at=now_ms())
    return replace(said, mentions_us=number in ASKED)


def _reply(number: int) -> MakeReply:
    return lambda shown: Listener([], number)


async def _missed(talk: Talk, rooms: list[list[Inbound]]) -> None:
    for room, said in enumerate(rooms):
        new = [one for one in said if await talk.first_time(one)]
        await talk.take_missed([Missed(one, _reply(2 * int(one.id) + room)) for one in new], now_ms())
        for one in new:
            talk.inboxes.heard(one.session_key, one.id)


async def _live(talk: Talk, rooms: list[list[Inbound]]) -> None:
    for number in range(EACH):
        for room, said in enumerate(rooms):
            if await talk.first_time(said[number]):
                await talk.receive(said[number], _reply(2 * int(said[number].id) + room))
                talk.inboxes.heard(said[number].session_key, said[number].id)
