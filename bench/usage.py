"""What accounting adds to a turn: from a message to the first word, beside a bot that counts nothing.

The same bot three times, in turns: one whose answers bypass the accounts, one that counts them, and one with
a budget, where what a call may cost is put aside before it begins. The model takes a quarter of a second to
its first word, which is less than any real one needs. The files are on the disk of the system's temporary
files, so that syncing them is real.
"""

import asyncio
import random
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack
from pathlib import Path

from bench.discord_payloads import connect
from bench.figure import Figure, median, without_garbage
from bench.turn import Watch, settle_in
from bench.world import OWNER, EchoModel, fresh_folder, sentence, settings_in
from discoclaw.app import App, build
from discoclaw.core.budgets import Limit, limits_of
from discoclaw.core.model import ModelRequest, StreamEvent

TURNS, WARM_UP = 60, 5
FIRST_WORD_S = 0.25
MOST = 1.02
PRICES = "[sonnet]\ninput = 2\noutput = 10\n[haiku]\ninput = 0.1\noutput = 0.5\n"


class Slow(EchoModel):
    """Takes its time to the first word, and then stops the watch."""

    def __init__(self, watch: Watch) -> None:
        super().__init__()
        self._watch = watch

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        await asyncio.sleep(FIRST_WORD_S)
        self._watch.stop()
        async for event in super().stream(request):
            yield event


def bot(folder: Path, watch: Watch, limits: tuple[Limit, ...]) -> App:
    """A bot the models of which cost something."""
    folder.mkdir()
    (folder / "prices.toml").write_text(PRICES)
    allowed = {"allow_users": frozenset({str(OWNER)}), "shutdown_grace_s": 1.0}
    settings = settings_in(folder, budget=limits, prices=folder / "prices.toml", **allowed)
    return build(settings, model=Slow(watch), small_model=EchoModel())


async def measure() -> list[Figure]:
    """The medians, with and without a budget."""
    dice, watches = random.Random(7), [Watch(), Watch(), Watch()]
    limits = [(), (), limits_of("1000/day, 20000/month, person 500/day, channel 500/day")]
    async with AsyncExitStack() as stack:
        folder = stack.enter_context(fresh_folder())
        apps = [
            bot(folder / str(number), watch, limit)
            for number, (watch, limit) in enumerate(zip(watches, limits, strict=True))
        ]
        apps[0].talk.agent.conversation.model = Slow(watches[0])
        for app in apps:
            await stack.enter_async_context(app)
            await connect(app.client, lambda text: None)
            await settle_in(app, dice)
        with without_garbage():
            for number in range(WARM_UP + TURNS):
                if number == WARM_UP:
                    for watch in watches:
                        watch.times.clear()
                for app, watch in dice.sample(list(zip(apps, watches, strict=True)), 3):
                    await watch.time(app.client, number, f"what about {sentence(dice, 6)}?")
                    await app.settle()
    bare, counted, bounded = (median(one.times) for one in watches)
    return [
        _figure("counted", counted, bare),
        _figure("with budgets", bounded, bare),
    ]


def _figure(what: str, ours: float, bare: float) -> Figure:
    name = f"message to first word, {what}, median"
    return Figure(name, ours, bare, "ms", "not counted", f"<= {MOST}x", ours <= MOST * bare)
