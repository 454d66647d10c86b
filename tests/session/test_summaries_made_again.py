"""A summary that was purged is made again, however the purges of its conversation overlap."""

from itertools import combinations
from pathlib import Path

from discoclaw.core.purge import Purge
from tests.contract.test_deleting_messages import question, repeating, summaries
from tests.contract.world import starting

STEPS = ("ram", "disk", "done")


async def test_two_purges_in_every_order_of_their_steps_leave_a_new_summary(tmp_path: Path) -> None:
    async with starting(tmp_path)(summary_every=1, extraction_enabled=False) as world:
        repeating(world)
        for person, words in ((world.ann, "A zebra."), (world.bob, "An otter."), (world.ann, "A newt.")):
            await world.says(person, world.general, words)
        channel, purges = str(world.general.id), list[Purge]()
        for person, words in ((world.ann, "A zebra."), (world.bob, "An otter.")):
            gone = {str(question(world.general, words).id): channel}
            here = frozenset({f"discord:channel:{channel}"})
            purges.append(Purge(f"user-{person.id}", 1, changed=gone, alone=True, sessions=here))
        parts = world.app.storage.memory.personal
        for places in combinations(range(6), 3):
            assert "newt" in summaries(world)
            steps = [iter(STEPS), iter(STEPS)]
            for number in range(6):
                whose = int(number in places)
                step, purge = next(steps[whose]), purges[whose]
                if step == "disk":
                    assert not (await parts.disk(purge)).left
                else:
                    getattr(parts, step)(purge)
                await world.settle()
            assert "newt" in summaries(world), places
