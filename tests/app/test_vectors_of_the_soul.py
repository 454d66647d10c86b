"""A personality is no memory that is searched: none of it goes to a provider of embeddings."""

import json

from tests.app.conftest import Start
from tests.app.models import Scripted
from tests.app.test_vectors import CAT, far, ready, remember
from tests.servers.embeddings_api import EmbeddingsServer

SOUL = {"identity": "You are Mog.", "user": "Ann builds boats.", "philosophy": "No lies.", "traits": ["dry"]}


class TestWhatIsSent:
    async def test_is_nothing_of_who_we_are_and_of_our_human(self, start: Start) -> None:
        model = Scripted()
        async with EmbeddingsServer() as server, start(model, **far(server)) as world:
            await world.restart(owners=frozenset({str(world.ann.id)}))
            await world.ann.slash(world.general, "hatch start")
            model.words = [f"I know now.\n<soul>{json.dumps(SOUL)}</soul>"]
            await world.ann.send(world.general, "Mog. I build boats.")
            await remember(world, CAT)
            await ready(world)
            await world.ann.send(world.general, "And who might you be?")
            assert "Ann builds boats." in str(model.requests[-1].system)
            await ready(world)
        assert CAT in server.texts
        assert not {"You are Mog.", "Ann builds boats.", "No lies.", "dry"} & set(server.texts)
