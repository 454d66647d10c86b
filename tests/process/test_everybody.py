"""What a message costs doesn't depend on how many people, conversations and servers are known."""

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from discoclaw.core.draft import Draft, Origin
from discoclaw.core.subject import user_subject
from discoclaw.memory.conversations import inboxes
from discoclaw.memory.subjects import follow
from tests.contract.world import GUILD_ID, Start, World, starting
from tests.counting import Counts, counted, grown, least

FEW, MANY = 10, 200
SERVERS = [GUILD_ID + number * 2**22 for number in range(MANY + 3)]
"""Far enough apart to be on all shards, if there were any. Whoever is on one of them may talk."""
WARM_UP, TIMES = 4, 4


@pytest.fixture
def start(tmp_path: Path) -> Start:
    return starting(tmp_path)


class Crowd:
    """People who are remembered and who talk, each on a server of their own."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.places: list[tuple[int, int]] = []

    async def of(self, count: int) -> None:
        """Let there be so many. They are remembered since before a restart, and talk after it."""
        env = self.world.env
        for number in range(len(self.places) + 1, count + 1):
            guild = env.create_guild(f"Server {number}", id=SERVERS[number])
            user = env.create_user(f"person{number}")
            guild.add_member(user)
            self.places.append((guild.create_text_channel("talk").id, user.id))

            def wish(draft: Draft) -> None:
                draft.upsert("fact", "Likes tea.", Origin("stated"))

            await self.world.app.storage.memory.change(user_subject(str(user.id)), "a test", wish)
        await self.world.settle()
        await self.world.restart()
        for number, (channel, user_id) in enumerate(self.places, 1):
            env.backend.create_message(channel, user_id, "hello everybody")
            if number % 50 == 0 or number == count:
                env._mark_mutation()
                await self.world.settle()


def acts(world: World, server: int) -> dict[str, Callable[[], Awaitable[object]]]:
    """What people do, some of them somebody new on the newest server."""
    newest, numbers = world.env.create_guild("Newest", id=server), iter(range(1_000))
    eve, room = newest.add_member(world.env.create_user("eve")), newest.create_text_channel("room")

    def remember() -> Awaitable[object]:
        return eve.send(room, f"!memory remember My dog number {next(numbers)} is called Rex")

    return {
        "a turn": lambda: world.ann.send(world.general, f"{us(world)} how is my tea?"),
        "a turn on the newest server": lambda: eve.send(room, f"{us(world)} how is my tea?"),
        "talk": lambda: eve.send(room, "nobody is asked"),
        "a turn in a DM": lambda: world.ann.send_dm("how is my tea?"),
        "a commit": remember,
        "a command": lambda: eve.send(room, "!memory show dog number 1"),
    }


def us(world: World) -> str:
    return f"<@{world.app.client.me().id}>"


async def costs(world: World, ways: dict[str, Callable[[], Awaitable[object]]]) -> dict[str, Counts]:
    """The least that each of these takes, once everything is warm."""
    found: dict[str, Counts] = {}
    for time in range(WARM_UP + TIMES):
        for name, act in ways.items():
            with counted() as counts:
                await act()
                await world.settle()
            if time >= WARM_UP:
                found[name] = least(found.get(name, counts), counts)
    return found


@pytest.mark.long
async def test_nothing_that_people_do_costs_more_when_twenty_times_as_many_are_known(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follow, "MOST_RECENT", 8)  # as many as are written again with each change
    monkeypatch.setattr(inboxes, "MOST", MANY)
    roles = frozenset(map(str, SERVERS))
    changes = {"respond_mode": "mention", "extraction_enabled": False, "context_history": 4}
    async with start(allow_roles=roles, **changes) as world:
        crowd = Crowd(world)
        await crowd.of(FEW)
        few = await costs(world, acts(world, SERVERS[-2]))
        await crowd.of(MANY)
        many = await costs(world, acts(world, SERVERS[-1]))
        # A worker that had just ended begins another task.
        more = {name: grown(few[name], many[name], most_steps=MANY // 4, tasks=1) for name in few}
        assert more == {name: {} for name in many}
        known = world.app.talk.inboxes
        known.fall_behind()
        assert MANY - 50 < len(known.behind()) <= MANY
