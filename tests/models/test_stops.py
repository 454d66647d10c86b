"""Why a model stopped: the end, a limit, a pause, a refusal, or something nobody has heard of yet."""

import pytest

from discoclaw.core.errors import ModelTimeout, ModelTooLong
from discoclaw.core.model import Usage, UserTurn
from discoclaw.models.anthropic import AnthropicModel, AnthropicProvider
from tests.models.test_provider import answer_to, asking
from tests.servers import messages_api as api
from tests.servers.messages_api import MessagesServer


class TestStopping:
    async def test_a_paused_turn_is_sent_back_and_goes_on(
        self, server: MessagesServer, model: AnthropicModel
    ) -> None:
        server.script(
            api.tool_use(said="I will look. ", thought="Where?", stop_reason="pause_turn"),
            api.text("Still looking. ", stop_reason="pause_turn"),
            api.text("Here it is."),
        )
        pieces, last = await answer_to(model)
        assert "".join(pieces) == last.turn.text == "I will look. Still looking. Here it is."
        assert (last.stop, last.usage) == ("end", Usage(30, 15))
        assert [len(request.body["messages"]) for request in server.requests] == [1, 2, 2]
        so_far = [
            {"type": "thinking", "thinking": "Where?", "signature": "c2lnbmVk"},
            {"type": "text", "text": "I will look. "},
            {"type": "text", "text": "Still looking. "},
        ]
        assert server.requests[2].body["messages"][1] == {"role": "assistant", "content": so_far}
        await answer_to(model, asking(UserTurn("a"), last.turn, UserTurn("b")))
        whole = [*so_far, {"type": "text", "text": "Here it is."}]
        assert server.requests[3].body["messages"][1]["content"] == whole

    async def test_a_turn_that_is_paused_again_and_again_is_given_up_as_cut_off(
        self, server: MessagesServer, model: AnthropicModel
    ) -> None:
        server.default = lambda _: api.text("a", stop_reason="pause_turn")
        _, last = await answer_to(model)
        assert (last.turn.text, last.stop, len(server.requests)) == ("aaaaaa", "length", 6)

    async def test_all_parts_of_a_paused_turn_share_one_time_limit(
        self, server: MessagesServer, provider: AnthropicProvider
    ) -> None:
        server.script(api.text("I will look", stop_reason="pause_turn"), api.silence())
        with pytest.raises(ModelTimeout, match=r"0\.3 s"):
            await answer_to(provider.model("haiku", total_timeout_s=0.3))

    async def test_an_answer_that_fills_the_context_window_is_cut_off(
        self, server: MessagesServer, model: AnthropicModel
    ) -> None:
        server.script(api.text("and then", stop_reason="model_context_window_exceeded"))
        _, last = await answer_to(model)
        assert (last.turn.text, last.stop) == ("and then", "length")

    async def test_a_question_that_fills_the_context_window_is_too_long(
        self, server: MessagesServer, model: AnthropicModel
    ) -> None:
        server.script(api.text(stop_reason="model_context_window_exceeded"))
        with pytest.raises(ModelTooLong):
            await answer_to(model)
