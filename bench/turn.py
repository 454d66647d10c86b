"""From a message to the request that leaves for the model, beside a bare echo bot.

This is what a person waits for that is ours: routing, redaction, memory, recall, summary and prompt, with 200
items, a summary, a full window and both loops at work. The baseline is the least that a bot can do: a
discord.py client that sends back what it hears. Both are handed the same MESSAGE_CREATE inside their
connection, in turns; ours is timed until `Model.stream` is called, the echo until its message leaves for
Discord. No network is in either. Both are measured by the clock and by the processor; a ratio is the median
of the ratios of pairs. All of it is done with nobody else known, and with 5,000 people and conversations.
"""

import asyncio
import random
import time

import discord

from bench.discord_payloads import connect, message_payload
from bench.figure import Figure, median, p99, without_garbage
from bench.sessions import meet
from bench.world import OWNER, EchoModel, fill, fresh_folder, sentence, settings_in
from discoclaw.app import App, build
from discoclaw.core.subject import user_subject

TURNS, KNOWN = 600, 5_000
WARM_UP = 40
MOST, MOST_P99 = 13.0, 2.0


class Echo(discord.Client):
    """The bare bot."""

    def __init__(self) -> None:
        intents = discord.Intents.none()
        intents.guilds = intents.messages = intents.message_content = True
        super().__init__(intents=intents)

    async def on_message(self, message: discord.Message) -> None:
        if message.author != self.user:
            await message.channel.send(message.content)


class Watch:
    """Times one bot from a message's arrival to the moment that counts."""

    def __init__(self) -> None:
        self.times: list[float] = []
        self.cpu: list[float] = []
        self._came = asyncio.Event()
        self._began = self.busy = 0.0

    def stop(self, _text: str = "") -> None:
        self.times.append((time.perf_counter() - self._began) * 1e3)
        self.cpu.append((time.process_time() - self.busy) * 1e3)
        self._came.set()

    async def time(self, client: discord.Client, number: int, text: str) -> None:
        self._came.clear()
        self._began, self.busy = time.perf_counter(), time.process_time()
        client._connection.parse_message_create(message_payload(number, text))
        await asyncio.wait_for(self._came.wait(), 10)


async def measure() -> list[Figure]:
    """Medians and p99 of several hundred turns."""
    return [figure for known in (0, KNOWN) for figure in await _measured(known)]


async def _measured(known: int) -> list[Figure]:
    ours, bare = Watch(), Watch()
    echo, whole = Echo(), list[float]()
    dice = random.Random(7)
    with fresh_folder() as folder:
        settings = settings_in(folder, allow_users=frozenset({str(OWNER)}), shutdown_grace_s=1.0)
        app = build(settings, model=EchoModel(ours.stop), small_model=EchoModel())
        async with app, echo:
            await connect(app.client, lambda text: None)
            await connect(echo, bare.stop)
            await settle_in(app, dice)
            await meet(app, known)
            with without_garbage():
                for number in range(WARM_UP + TURNS):
                    if number == WARM_UP:
                        await app.settle()
                        del whole[:], ours.times[:], ours.cpu[:], bare.times[:], bare.cpu[:]
                    await ours.time(app.client, number, f"what about {sentence(dice, 6)}?")
                    await app.settle()
                    whole.append((time.process_time() - ours.busy) * 1e3)
                    await bare.time(echo, number, f"what about {sentence(dice, 6)}?")
    name, beside = f"message to model request, {known:,} others known", "echo bot, message to send"
    paired = [
        median([one / other for one, other in zip(*pair, strict=True)])
        for pair in ((ours.times, bare.times), (ours.cpu, bare.cpu))
    ]
    busy, most = median(ours.cpu), p99(ours.cpu)
    target = f"<= {MOST:g}x"
    return [
        Figure(f"{name}, median", median(ours.times), median(bare.times), "ms", beside, paired=paired[0]),
        Figure(f"{name}, p99", p99(ours.times), p99(bare.times), "ms", beside),
        Figure(f"{name}, CPU", busy, median(bare.cpu), "ms", beside, target, paired[1] <= MOST, paired[1]),
        Figure(
            f"a turn until all is written, {known:,} others known, CPU",
            median(whole),
            busy,
            "ms",
            "the request",
        ),
        Figure(
            f"{name}, CPU, p99", most, busy, "ms", "its median", f"<= {MOST_P99:g}x", most <= MOST_P99 * busy
        ),
    ]


async def settle_in(app: App, dice: random.Random) -> None:
    assert app.storage.memory is not None
    subject = user_subject(str(OWNER))
    await app.storage.memory.change(subject, "fill", lambda draft: fill(draft, 200, dice))
    view = await app.storage.memory.view(subject)
    assert len(view.active()) == 200
