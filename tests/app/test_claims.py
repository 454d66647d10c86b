"""What a process asks of the others that share its store: once for each message, command and press."""

from collections.abc import Collection

from discoclaw.app.monitoring import LoopLag, Watch
from discoclaw.app.sharding import Sharding
from discoclaw.core.processes import Alone
from discoclaw.models.offline.model import OfflineModel
from tests.app.conftest import Start, World, running
from tests.contract.cards import said


class Asked(Alone):
    """Notes what it is asked. `ours` says whether a message is this process's."""

    def __init__(self) -> None:
        self.claims: dict[str, list[str]] = {}
        self.looks: list[list[str]] = []
        self.ours = True

    async def claim(self, message_id: str, about: Collection[str] = ()) -> bool:
        assert message_id not in self.claims, "it is asked once"
        self.claims[message_id] = list(about)
        return self.ours

    async def look(self, about: Collection[str]) -> None:
        self.looks.append(list(about))


def share(world: World) -> Asked:
    """From now on the store has other processes."""
    asked = Asked()
    world.app.client.processes = world.app.talk.arrivals._processes = asked
    return asked


async def test_a_message_costs_one_question_about_all_that_its_turn_reads(start: Start) -> None:
    async with start(OfflineModel()) as world:
        asked = share(world)
        message = await world.ann.send(world.general, "hello there")
        await world.settle()
        assert len(world.shown(world.general)) == 2
        (names,) = asked.claims.values()
        assert list(asked.claims) == [str(message.id)]
        assert len(set(names)) == len(names)
        assert {
            f"ledger/user-{world.ann.id}.jsonl",
            f"ledger/group-{world.general.id}.jsonl",
            "ledger/bot.jsonl",
            f"rolling/discord:channel:{world.general.id}.json",
            f"profiles/{world.ann.id}.json",
            f"groups/{world.general.id}.json",
            f"choices/{world.ann.id}.json",
            "tombstones.jsonl",
            "clears.jsonl",
            "config.json",
            "signed.json",
            f"cursors/summary-discord:channel:{world.general.id}.json",
            f"cursors/people-discord:channel:{world.general.id}.json",
            f"cursors/facts-{world.ann.id}.json",
        } <= set(names)


async def test_a_message_of_another_process_is_neither_answered_nor_heard(start: Start) -> None:
    async with start(OfflineModel()) as world:
        asked = share(world)
        asked.ours = False
        message = await world.ann.send(world.general, "hello there")
        await world.ann.send(world.general, "!memory show")
        await world.settle()
        assert len(world.shown(world.general)) == 2
        key = f"discord:channel:{world.general.id}"
        assert not world.app.talk.inboxes.waits(key, message.id)
        assert not world.app.talk.inboxes.interrupted(key)
        assert world.app.talk.listener.recent(key) == ()
        assert len(asked.claims) == 2


async def test_the_messages_of_strangers_in_private_ask_nobody(start: Start) -> None:
    async with start(OfflineModel(), allow_roles=frozenset()) as world:
        asked = share(world)
        await world.ann.send_dm("hello there")
        await world.settle()
        assert asked.claims == {}


async def test_a_command_is_carried_out_by_the_process_that_has_it(start: Start) -> None:
    async with start(OfflineModel()) as world:
        asked = share(world)
        await world.ann.send(world.general, "I prefer tabs over spaces")
        await world.settle()
        card = (await world.ann.slash(world.general, "memory show")).response
        await world.settle()
        assert len(asked.claims) == 2
        names = list(asked.claims.values())[-1]
        assert f"ledger/user-{world.ann.id}.jsonl" in names and f"choices/{world.ann.id}.json" in names
        assert "tabs over spaces" in said(card)
        asked.ours = False
        card = (await world.ann.slash(world.general, "memory forget", memory="tabs")).response
        await world.settle()
        assert said(card) == ""
        assert len(asked.claims) == 3


async def test_shards_are_given_back_last_of_all_as_the_process_leaves_the_store(start: Start) -> None:
    async with start(OfflineModel()) as world:
        shards = world.app.services.index(running(world.app, Sharding))
        before, after = world.app.services[:shards], world.app.services[shards + 1]
        assert [type(one) for one in before] == [LoopLag, Watch]
        assert after.starting.__self__._storage is world.app.storage
