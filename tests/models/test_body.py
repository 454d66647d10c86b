"""A request with files is the one that the SDK would have written, and does not hold up the loop."""

from anthropic._utils._json import openapi_dumps

from discoclaw.models.asking import body_of
from tests.tables import each_row

LARGE = 300_000


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
