"""Writing when items were used takes the subjects that changed, and not all that are in RAM."""

from pathlib import Path

from discoclaw.core.draft import Origin
from discoclaw.memory.cursors import Cursors
from discoclaw.memory.people.last_used import LastUsed
from discoclaw.memory.subjects.store import Memory
from tests.counting import Counts, counted, grown


async def test_times_of_use_are_written_in_the_same_steps_among_many_people(tmp_path: Path) -> None:
    memory = Memory(tmp_path / "memory", clock=lambda: 7)
    used = LastUsed(memory, Cursors(tmp_path / "cursors"), clock=lambda: 7)
    memory.join(used)

    async def among(count: int) -> Counts:
        for number in range(count):
            await memory.change(
                f"user-{number}", "a test", lambda draft: draft.upsert("fact", "Likes tea.", Origin("stated"))
            )
        await used.flush()
        used.touch("user-3", (await memory.view("user-3")).items)
        with counted() as counts:
            await used.flush()
        return counts

    few, many = await among(10), await among(60)
    assert grown(few, many, most_steps=20) == {}
    assert few.steps
    memory.close()
