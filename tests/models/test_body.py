"""A request with files is the one that the SDK would have written, and does not hold up the loop."""

import json

from anthropic._utils._json import openapi_dumps

from discoclaw.core.message import Encoded
from discoclaw.core.model import Finished, ModelRequest, SystemBlock, UserTurn
from discoclaw.models.anthropic import AnthropicModel
from discoclaw.models.asking import body_of
from tests.attaching import content, encoded, noise
from tests.servers import messages_api as api
from tests.servers.messages_api import MessagesServer
from tests.tables import each_row

LARGE = 300_000
PHOTO = Encoded("photo.png", "image/png", encoded(noise(300, 300)), tokens=120, label="Picture 1")


def request_with(*data: str) -> dict[str, object]:
    blocks = [{"type": "image", "source": {"type": "base64", "data": one}} for one in data]
    messages = [{"role": "user", "content": [*blocks, {"type": "text", "text": 'Grüße, "quoted"\n'}]}]
    return {"model": "haiku", "messages": messages, "system": [{"type": "text", "text": "é"}]}


class TestTheBody:
    @each_row("data", [["A" * LARGE], ["A" * LARGE, "B" * (3 * LARGE)], ["x", "x"]])
    async def test_is_what_the_sdk_would_write(self, data: list[str]) -> None:
        request = request_with(*data)
        body = body_of(request)
        assert body is not None
        for _ in range(2):  # a request may be sent again
            sent = b"".join([chunk async for chunk in body])
            assert sent == openapi_dumps(request)
            assert len(sent) == body.size

    def test_is_left_to_the_sdk_where_there_is_no_file(self) -> None:
        assert body_of(request_with()) is None
        assert body_of({"model": "haiku", "messages": [{"role": "user", "content": "A" * LARGE}]}) is None


class TestALargePicture:
    async def test_arrives_whole_with_its_length_also_when_it_is_sent_again(
        self, server: MessagesServer, model: AnthropicModel
    ) -> None:
        server.script(api.failure(529, "overloaded_error", retry_after_ms="1"), api.text("A photo."))
        request = ModelRequest((SystemBlock("Be brief."),), (UserTurn("What is it?", media=(PHOTO,)),))
        [done] = [event async for event in model.stream(request) if isinstance(event, Finished)]
        assert (done.turn.text, done.unseen) == ("A photo.", ())
        first, second = server.requests
        assert first.body == second.body
        assert content(second)[1]["source"]["data"] == PHOTO.data
        assert content(second)[2] == {"type": "text", "text": "What is it?"}
        assert int(second.headers["content-length"]) == len(openapi_dumps(second.body))
        assert "transfer-encoding" not in second.headers
        assert json.dumps(second.body["system"]) == '[{"type": "text", "text": "Be brief."}]'
