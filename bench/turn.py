"""From a message to the request that leaves for the model, beside a bare echo bot.

This is what a person waits for that is ours: routing, redaction, memory, recall, summary and prompt, with 200
items, a summary, a full window and both loops at work. The baseline is the least that a bot can do: a
discord.py client that sends back what it hears. Both are handed the same MESSAGE_CREATE inside their
connection, in turns; ours is timed until `Model.stream` is called, the echo until its message leaves for
Discord. No network is in either.
"""

import asyncio
import random
import time

import discord

from bench.discord_payloads import connect, message_payload
from bench.figure import Figure, median, p99, without_garbage
from bench.world import OWNER, EchoModel, fill, fresh_folder, sentence, settings_in
from discoclaw.app import App, build
from discoclaw.core.subject import user_subject

TURNS = 600
WARM_UP = 40
MEDIAN_MS, P99_MS = 2.0, 10.0


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
        self._came = asyncio.Event()
        self._began = 0.0

    def stop(self, _text: str = "") -> None:
        self.times.append((time.perf_counter() - self._began) * 1e3)
        self._came.set()

    async def time(self, client: discord.Client, number: int, text: str) -> None:
        self._came.clear()
        self._began = time.perf_counter()
        client._connection.parse_message_create(message_payload(number, text))
        await asyncio.wait_for(self._came.wait(), 10)


async def measure() -> list[Figure]:
    """Median and p99 of several hundred turns."""
    ours, bare = Watch(), Watch()
    echo = Echo()
    dice = random.Random(7)
    with fresh_folder() as folder:
        settings = settings_in(folder, allow_users=frozenset({str(OWNER)}), shutdown_grace_s=1.0)
        app = build(settings, model=EchoModel(ours.stop), small_model=EchoModel())
        async with app, echo:
            await connect(app.client, lambda text: None)
            await connect(echo, bare.stop)
            await settle_in(app, dice)
            with without_garbage():
                for number in range(WARM_UP + TURNS):
                    if number == WARM_UP:
                        await app.settle()
                        del ours.times[:], bare.times[:]
                    await ours.time(app.client, number, f"what about {sentence(dice, 6)}?")
                    await app.talk.desk.settle()
                    await bare.time(echo, number, f"what about {sentence(dice, 6)}?")
    return [
        _figure("median", median(ours.times), median(bare.times), MEDIAN_MS),
        _figure("p99", p99(ours.times), p99(bare.times), P99_MS),
    ]


async def settle_in(app: App, dice: random.Random) -> None:
    assert app.storage.memory is not None
    subject = user_subject(str(OWNER))
    await app.storage.memory.change(subject, "fill", lambda draft: fill(draft, 200, dice))
    view = await app.storage.memory.view(subject)
    assert len(view.active()) == 200


def _figure(what: str, ours: float, bare: float, most_ms: float) -> Figure:
    name = f"message to model request, {what}"
    return Figure(name, ours, bare, "ms", "echo bot, message to send", f"<= {most_ms:g} ms", ours <= most_ms)
