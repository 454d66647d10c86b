"""Random rounds of troubles for four processes on one database: `make rounds`, or

    python -m tests.process.rounds --rounds 300 --seed 1

In each round people talk, have things remembered, opt out and are erased, while something goes wrong. Then
everything is set right, and every promise is checked (`promises`). A round that failed is played again with
`--seed 1 --first 17 --rounds 1`: it has the same people, places and troubles, but not the same microseconds.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
import tempfile
import time
import traceback
from collections import Counter
from contextlib import AsyncExitStack
from pathlib import Path

from tests.process.fleet import RESTART_S, Fleet
from tests.process.forks import Source
from tests.process.troubles import EVERY, OF_THE_DATABASE, Trouble
from tests.servers.discord_server import Channel, User
from tests.servers.postgres import Postgres

A_FLEET = 15
"""Rounds until everything begins anew, from empty folders and tables."""
PEOPLE, ACTS = 3, 5
ROUND_S = 180.0
BEGIN = "Traceback (most recent call last)"


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


class Rounds:
    """The rounds of one run, and what they counted."""

    def __init__(self, seed: int, troubles: tuple[Trouble, ...]) -> None:
        self._seed = seed
        self._troubles = troubles
        self.counts: Counter[str] = Counter()
        self.failed: list[int] = []

    async def play(self, first: int, rounds: int) -> None:
        """Play so many rounds, and say how each went."""
        source = Source()
        with tempfile.TemporaryDirectory() as folder:
            numbers = [*range(first, first + rounds)]
            while numbers:
                played = await self._on_one_fleet(Path(folder), source, numbers[:A_FLEET])
                numbers = numbers[played:]
        source.close()

    async def _on_one_fleet(self, folder: Path, source: Source, numbers: list[int]) -> int:
        """Play these rounds, up to one that fails. Returns how many were played."""
        own = folder / str(numbers[0])
        own.mkdir()
        with Postgres(template=folder / "postgres", own_disk=True) as postgres:
            async with Fleet(own, postgres, forks=source) as fleet:
                for played, number in enumerate(numbers, 1):
                    if not await self._survived(fleet, number):
                        return played
                self.counts += fleet.promises.counts
        return len(numbers)

    async def _survived(self, fleet: Fleet, number: int) -> bool:
        by, began = random.Random(f"{self._seed}/{number}"), time.monotonic()
        over = [bot for bot in fleet.lives if not bot.runs]
        troubles = by.sample(self._troubles, min(by.choice((1, 1, 2)), len(self._troubles)))
        if OF_THE_DATABASE.issuperset(troubles):
            del troubles[1:]
        names = " and ".join(one.__name__ for one in troubles)
        try:
            async with asyncio.timeout(ROUND_S):
                await fleet.up()
                await fleet.greeted()
                await self._round(fleet, by, troubles)
                await fleet.up()
                await fleet.promises.kept()
                if said := tracebacks(fleet):
                    raise AssertionError(said)
        except Exception:  # noqa: BLE001 - whatever it was, the next rounds are played
            self.failed.append(number)
            say(f"round {number}: {names}: FAILED\n{traceback.format_exc()}")
            for member in fleet.members:
                say(f"--- {member.shards}: process {member.number}, {fleet.lives.index(member.bot)}")
            for life, bot in enumerate(fleet.lives):
                if bot not in over:
                    say(f"--- life {life}, {bot.process.returncode}\n{last(bot.stderr)}")
            return False
        self.counts["rounds"] += 1
        for one in troubles:
            self.counts[one.__name__] += 1
        say(f"round {number}: {names}: {time.monotonic() - began:.1f} s")
        return True

    async def _round(self, fleet: Fleet, by: random.Random, troubles: list[Trouble]) -> None:
        """People act, and in the midst of it everything goes wrong and comes right."""
        places = [fleet.place(guild, "talk") for guild in fleet.guilds]
        people = [fleet.person(name) for name in ("Ann", "Bea", "Cid")[:PEOPLE]]
        for one in people:  # a conversation of which nothing was written is not found after a crash
            await fleet.asks(one, fleet.discord.dm(one), "good morning")
        await fleet.promises.answered()
        async with asyncio.TaskGroup() as acting:
            busy = [
                acting.create_task(
                    acts(fleet, random.Random(by.random()), one, [*places, fleet.discord.dm(one)])
                )
                for one in people
            ]
            async with AsyncExitStack() as stack:
                for trouble in troubles:
                    await asyncio.sleep(by.uniform(0, 0.5))
                    await stack.enter_async_context(trouble(fleet, by))
                await asyncio.sleep(by.uniform(0, 2))
            while not all(one.done() for one in busy):  # one that was replaced ends only now
                await fleet.up()
                await asyncio.wait(busy, timeout=RESTART_S)


async def acts(fleet: Fleet, by: random.Random, person: User, places: list[Channel]) -> None:
    """What one person does in a round, in these places and in direct messages."""
    places = [*places, fleet.discord.dm(person)]
    talk = (fleet.asks, fleet.likes, fleet.likes, fleet.remember, fleet.remember)
    for _ in range(ACTS):
        await by.choice(talk)(person, by.choice(places))
        await asyncio.sleep(by.uniform(0, 0.4))
    end = by.choice(("erase", "erase", "opt out", "stay"))
    if end != "stay":
        # Nothing may be stored then that says that they wrote direct messages. Each is as a first one: if no
        # process has its shard when it is said, or that is killed meanwhile, Discord tells nobody of it.
        places = [one for one in places if one.guild is not None]
        if await fleet.promises.answered(person):
            return  # which is a fault by itself
    if end == "erase":
        await fleet.erased(person, by.choice(places))
    elif end == "opt out":
        await fleet.opted_out(person, by.choice(places))
    await by.choice(talk)(person, by.choice(places))


def last(log: str) -> str:
    """The end of a log, its lines cut."""
    return "\n".join(line[:300] for line in log.splitlines()[-40:])


def tracebacks(fleet: Fleet) -> str:
    """The unexpected errors in the logs of all processes."""
    found = [life.stderr.partition(BEGIN)[2] for life in fleet.lives if BEGIN in life.stderr]
    return "\n".join(f"{BEGIN}{one[:4000]}" for one in found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--only", action="append", help="names of troubles", metavar="TROUBLE")
    chosen = parser.parse_args()
    troubles = tuple(one for one in EVERY if not chosen.only or one.__name__ in chosen.only)
    rounds = Rounds(chosen.seed, troubles)
    say(f"seed {chosen.seed}")
    asyncio.run(rounds.play(chosen.first, chosen.rounds))
    say("\n".join(f"{count:6} {name}" for name, count in rounds.counts.most_common()))
    say(f"failed: {rounds.failed}" if rounds.failed else "none failed")
    sys.exit(bool(rounds.failed))


if __name__ == "__main__":
    main()
