"""The store that several processes share is out of reach: the bot answers without memory."""

from collections.abc import Collection

import pytest

from discoclaw.core.processes import Alone
from tests.app.conftest import Start
from tests.app.models import Scripted
from tests.memory.sharing import until
from tests.servers.postgres import Postgres


async def test_a_bot_without_its_store_answers_from_what_is_said_now_and_says_so_once(
    start: Start, database: str, postgres: Postgres, caplog: pytest.LogCaptureFixture
) -> None:
    model = Scripted("noted", then="hello")
    # What waits for its lease would keep the simulated Discord waiting too.
    async with start(model, store=database, durable_every=100, summary_every=100) as world:
        await world.ann.send(world.general, "!memory remember My favourite shell is zsh")
        await world.ann.send(world.general, "my cat is called Minka")
        await world.settle()
        await world.ann.send(world.general, "What is my favourite shell?")
        assert "shell is zsh" in model.prompt
        assert "Minka" in model.prompt
        processes = world.app.storage.processes
        postgres.kill9()
        await until(lambda: "out of touch" in caplog.text)
        assert not processes.in_touch
        await world.ann.send(world.general, "And my favourite shell?")
        assert world.answer(world.general) == "hello"
        assert "zsh" not in model.prompt
        assert "Minka" not in model.prompt
        await world.ann.send(world.general, "Still there?")
        assert world.answer(world.general) == "hello"
        assert "zsh" not in model.prompt
        postgres.start()
        await until(lambda: processes.in_touch)
        await world.ann.send(world.general, "What is my favourite shell, again?")
        assert "shell is zsh" in model.prompt
    said = [one.getMessage().split(":")[0].split(",")[0] for one in caplog.records if "touch" in one.message]
    assert said == ["out of touch with the store", "in touch with the store again"]


class Overtaken(Alone):
    """Another process has its shards by now, and what it had begun."""

    in_touch = False

    async def claim(self, message_id: str, about: Collection[str] = ()) -> bool:
        return False


async def test_what_became_of_a_command_is_told_by_the_process_that_has_its_shard_by_then(
    start: Start,
) -> None:
    async with start() as world:
        await world.ann.send(world.general, "!memory remember I use zsh")
        assert world.answer(world.general).startswith("Remembered: I use zsh")
        world.app.client.processes = Overtaken()  # the command is claimed by then
        await world.ann.send(world.general, "!memory remember I use vim")
        assert world.answer(world.general) == "!memory remember I use vim"
