"""The loopback server itself: a test double that lies would make every other test lie."""

from anthropic import AsyncAnthropic

from tests.servers import messages_api as api
from tests.servers.messages_api import Answer, MessagesServer


async def both_ways(server: MessagesServer, answer: Answer) -> list[dict[str, object]]:
    """The same answer, asked for whole and as a stream, as the SDK puts them together."""
    server.script(answer, answer)
    ask = {"model": "claude-haiku-5-5", "max_tokens": 9, "messages": [{"role": "user", "content": "Hi"}]}
    async with AsyncAnthropic(api_key="k", base_url=server.base_url) as sdk:
        whole = await sdk.messages.create(**ask)
        async with sdk.messages.stream(**ask) as stream:
            streamed = await stream.get_final_message()
    return [message.to_dict(exclude_none=True) | {"id": "-"} for message in (whole, streamed)]


class TestWholeAndStreamed:
    async def test_a_text_is_the_same(self, server: MessagesServer) -> None:
        whole, streamed = await both_ways(server, api.text("Hel", "lo"))
        assert whole == streamed and whole["content"] == [{"type": "text", "text": "Hello"}]

    async def test_thoughts_and_calls_are_the_same(self, server: MessagesServer) -> None:
        answer = api.tool_use(("t1", "clock", {"zone": "Bern"}), said="Well.", thought="Hm.")
        whole, streamed = await both_ways(server, answer)
        assert whole == streamed and whole["stop_reason"] == "tool_use"
