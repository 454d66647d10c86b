"""A message until the model is asked, with a mirror whose only relay is dead, beside the same without Nostr.

A reply never waits for a relay, so the two are to be the same. Both bots have the same memory, both loops at
work, and are handed the same messages in turns. The mirror signs what the loops learn meanwhile, and finds
nobody to give it to.
"""

import random
import socket

from pydantic import SecretStr

from bench.discord_payloads import connect
from bench.figure import Figure, median, without_garbage
from bench.turn import Watch, settle_in
from bench.world import OWNER, EchoModel, fresh_folder, sentence, settings_in
from discoclaw.app import App, build

TURNS, WARM_UP = 600, 40
MOST = 1.05
KEY = "67dea2ed018072d675f5415ecfaed7d2597555e202d85b3d65ea4e58d2d92ffa"  # the example of NIP-19


async def measure() -> list[Figure]:
    """The median of several hundred turns."""
    mirrored, plain = Watch(), Watch()
    dice = random.Random(7)
    with fresh_folder() as folder, socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))  # taken, and nobody listens: every connection is refused
        relay = f"ws://127.0.0.1:{nobody.getsockname()[1]}"
        nostr = {"nostr_relays": (relay,), "nostr_key": SecretStr(KEY), "nostr_flush_s": 0.0}
        shared = {"allow_users": frozenset({str(OWNER)}), "shutdown_grace_s": 1.0}
        ours = build(
            settings_in(folder / "mirrored", **shared, **nostr),
            model=EchoModel(mirrored.stop),
            small_model=EchoModel(),
        )
        bare = build(
            settings_in(folder / "plain", **shared), model=EchoModel(plain.stop), small_model=EchoModel()
        )
        async with ours, bare:
            for app in (ours, bare):
                await connect(app.client, lambda text: None)
                await settle_in(app, dice)
            with without_garbage():
                for number in range(WARM_UP + TURNS):
                    if number == WARM_UP:
                        del mirrored.times[:], plain.times[:]
                    text = f"what about {sentence(dice, 6)}?"
                    pair: list[tuple[Watch, App]] = [(mirrored, ours), (plain, bare)]
                    for watch, app in pair if number % 2 else pair[::-1]:
                        await watch.time(app.client, number, text)
                        await app.talk.desk.settle()
    ratio = median(mirrored.times) / median(plain.times)
    name = "message to model request, mirrored to a dead relay, median"
    return [
        Figure(
            name,
            median(mirrored.times),
            median(plain.times),
            "ms",
            "without Nostr",
            f"<= {MOST:g}x",
            ratio <= MOST,
        )
    ]
