"""Personal matters that somebody mentions in a channel stay between them and the bot, in any language."""

import json

import pytest

from tests.app.conftest import Start, World
from tests.app.models import Scripted
from tests.app.test_groups import Agreeing, agree
from tests.session.scene import ScriptedModel, calls


def facts(*texts: str) -> str:
    """What a model extracts that sees nothing private in it."""
    return json.dumps(
        {"upserts": [{"kind": "fact", "text": text, "sensitivity": "normal"} for text in texts]}
    )


async def learns(world: World, model: Scripted, said: str, *texts: str) -> None:
    """Ann says something in an open channel, and the model learns from it."""
    model.facts = [facts(*texts)]
    await world.ann.send(world.general, said)
    await world.settle()


class TestWhatAModelLearnsInAChannel:
    @pytest.mark.parametrize(
        ("said", "learned", "asked"),
        [
            ("Übrigens nehme ich Sertralin.", "Der User nimmt Sertralin.", "Was weißt du über Sertralin?"),
            ("De hecho, mi esposa es Lucía.", "La esposa del usuario es Lucía.", "¿Quién es Lucía?"),
            ("Я до воскресенья в отпуске.", "Пользователь в отпуске.", "Когда у меня отпуск?"),
            ("実は借金があります。", "ユーザーには借金がある。", "私の借金は?"),
            ("أنا مريض هذه الأيام.", "المستخدم مريض هذه الأيام.", "هل أنا مريض هذه الأيام؟"),
        ],
    )
    async def test_is_private_if_it_is_personal_although_the_model_calls_it_normal(
        self, start: Start, said: str, learned: str, asked: str
    ) -> None:
        model = Scripted()
        async with start(model) as world:
            await learns(world, model, said, learned)
            for place in (world.general, world.dev):
                await world.ann.send(place, asked)
                assert asked in model.prompt
                assert learned not in model.prompt
            await world.ann.send(world.general, "!memory show")
            assert learned not in world.answer(world.general)
            assert "(1 private memory" in world.answer(world.general)
            await world.ann.send_dm(asked)
            assert learned in model.prompt

    async def test_is_told_there_if_it_is_where_they_live_and_work(self, start: Start) -> None:
        model = Scripted()
        learned = ["User wohnt in Hamburg.", "User arbeitet bei Bosch.", "User's time zone is Europe/Berlin."]
        async with start(model) as world:
            await learns(world, model, "Ich wohne in Hamburg, arbeite bei Bosch, MEZ.", *learned)
            await world.ann.send(world.dev, "Hamburg, Bosch, time zone?")
            assert [one for one in learned if one not in model.prompt] == []

    async def test_is_told_there_once_the_person_shares_it(self, start: Start) -> None:
        model = Scripted()
        async with start(model) as world:
            await learns(world, model, "Ich nehme Sertralin.", "User nimmt Sertralin.")
            await world.ann.slash(world.general, "memory share", memory="User nimmt Sertralin.")
            await learns(world, model, "Sertralin hilft mir.", "User nimmt Sertralin.")
            await world.ann.send(world.dev, "Was weißt du über Sertralin?")
            assert "User nimmt Sertralin." in model.prompt

    async def test_is_open_if_the_admin_keeps_only_what_is_marked(self, start: Start) -> None:
        model = Scripted()
        async with start(model, dm_privacy="open") as world:
            await learns(world, model, "Ich nehme Sertralin.", "User nimmt Sertralin.")
            await world.ann.send(world.dev, "Was weißt du über Sertralin?")
            assert "User nimmt Sertralin." in model.prompt


class TestWhatAToolStoresInAChannel:
    async def test_is_private_if_it_is_personal(self, start: Start) -> None:
        model = ScriptedModel()
        async with start(model, extraction_enabled=False) as world:
            wife = "Żona użytkownika to Ewa; jego żona lubi jazz."
            model.answers += [calls(("memory_store", {"text": wife})), "Done.", "No.", "Ewa."]
            await world.ann.send(world.general, "please")
            await world.settle()
            assert "It is private: used in DMs with this person only." in model.results()[-1][1]
            await world.ann.send(world.dev, "Kto lubi jazz?")
            assert wife not in str(model.requests[-1].turns)
            await world.ann.send_dm("Kto lubi jazz?")
            assert wife in str(model.requests[-1].turns)


class TestWhatAPersonStatesInAChannel:
    async def test_stays_as_open_as_they_said_it(self, start: Start) -> None:
        model = Scripted()
        async with start(model) as world:
            await world.ann.send(world.general, "!memory remember Ich nehme Sertralin")
            await world.ann.send(world.dev, "Was weißt du über Sertralin?")
            assert "Ich nehme Sertralin" in model.prompt


class TestWhatAChannelRemembers:
    async def test_is_told_there_although_it_is_personal(self, start: Start) -> None:
        model = Agreeing(decisions=["We meet in the church on Friday."])
        async with start(model) as world:
            await agree(world)
            await world.ann.send(world.general, "and now?")
            assert "We meet in the church on Friday." in model.place()
