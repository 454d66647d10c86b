"""What a server refuses of a request is left out when it is asked again, and from then on."""

import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from pydantic import BaseModel

from discoclaw.core.errors import ModelBadRequest, ModelError, ModelTooLong, ModelUnreachable
from discoclaw.core.message import Encoded
from discoclaw.core.model import (
    AssistantTurn,
    Finished,
    ModelRequest,
    SystemBlock,
    ToolCall,
    ToolResult,
    ToolSpec,
    ToolTurn,
    UserTurn,
)
from discoclaw.models.anthropic import AnthropicModel, AnthropicProvider
from discoclaw.models.asking import ServedModel
from discoclaw.models.failing import FORGOTTEN_S, Refused
from tests.attaching import encoded, pdf, picture
from tests.models.conftest import AnyServer, Provider, each_api, one_dialect
from tests.servers import messages_api as api
from tests.servers.messages_api import MessagesServer, Received
from tests.tables import each_row

PICTURE = Encoded("cat.png", "image/png", encoded(picture()), tokens=2, label="Picture 1")
OLDER = Encoded("dog.png", "image/png", encoded(picture()), tokens=2, label="Picture 2", older=True)
PAPER = Encoded("paper.pdf", "application/pdf", encoded(pdf()), tokens=2_000, label="Document 1", pages=1)


async def finished(model: ServedModel, *media: Encoded) -> Finished:
    request = ModelRequest((), (UserTurn("Hello", media=media),))
    [last] = [event async for event in model.stream(request) if isinstance(event, Finished)]
    return last


def reasons(done: Finished) -> list[tuple[str, str]]:
    return [(one.media.label, one.why) for one in done.unseen]


@pytest.fixture
async def quick(once: Provider) -> AsyncIterator[ServedModel]:
    """A model of a server that isn't Anthropic's; nothing is tried again by the SDK."""
    yield once.model("llama", total_timeout_s=5)


def refusing(
    api: Any, *types: str, status: int = 400, kind: str = "invalid_request_error"
) -> Callable[[Any], Any]:
    """A server whose model doesn't take blocks of these types."""

    def answer(received: Any) -> Any:
        if set(types) & set(received.files):
            return api.failure(status, kind, "no such content")
        return api.text("ok")

    return answer


@each_api
class TestAModelWithoutEyes:
    @pytest.mark.parametrize("status", [400, 415, 422])
    async def test_is_asked_again_without_the_picture_once(
        self, server: AnyServer, quick: ServedModel, api: Any, status: int
    ) -> None:
        server.default = refusing(api, "image", status=status)
        assert reasons(await finished(quick, PICTURE)) == [("Picture 1", "blind")]
        assert reasons(await finished(quick, PICTURE)) == [("Picture 1", "blind")]
        assert [one.files for one in server.requests] == [["image"], [], []]
        assert server.requests[-1].prompt.startswith("(You can't see Picture 1 this time.")

    async def test_may_still_take_pictures_where_documents_are_refused(
        self, server: AnyServer, quick: ServedModel, api: Any
    ) -> None:
        server.default = refusing(api, "document")
        assert reasons(await finished(quick, PICTURE, PAPER)) == [("Document 1", "blind")]
        assert reasons(await finished(quick, PICTURE)) == []
        assert [one.files for one in server.requests] == [["image", "document"], ["image"], ["image"]]

    async def test_that_takes_neither_is_found_out_one_by_one(
        self, server: AnyServer, quick: ServedModel, api: Any
    ) -> None:
        server.default = refusing(api, "document", "image")
        assert dict(reasons(await finished(quick, PICTURE, PAPER))) == {
            "Picture 1": "blind",
            "Document 1": "refused",
        }
        assert reasons(await finished(quick, PAPER)) == [("Document 1", "blind")]
        await finished(quick, PICTURE, PAPER)
        assert server.requests[-1].files == []

    @pytest.mark.parametrize("status", [500, 501])
    async def test_whose_server_fails_is_believed_only_the_second_time(
        self, server: AnyServer, quick: ServedModel, api: Any, status: int
    ) -> None:
        """llama.cpp answers 500 to a picture; but so does a server that is unwell for a moment."""
        server.default = refusing(api, "image", status=status, kind="api_error")
        found = [reasons(await finished(quick, PICTURE)) for _ in range(3)]
        assert found == [[("Picture 1", "refused")], [("Picture 1", "blind")], [("Picture 1", "blind")]]
        assert [one.files for one in server.requests] == [["image"], [], ["image"], [], []]

    async def test_is_forgiven_a_failure_that_had_nothing_to_do_with_the_picture(
        self, server: AnyServer, quick: ServedModel, api: Any
    ) -> None:
        for _ in range(3):
            server.script(api.failure(500), api.text("ok"), api.text("ok"))
            assert reasons(await finished(quick, PICTURE)) == [("Picture 1", "refused")]
            assert reasons(await finished(quick, PICTURE)) == []


def fields(received: Received) -> set[str]:
    """The optional fields that a request has."""
    found = {field for field in ("tools", "tool_choice", "temperature") if field in received.body}
    return found | ({"cache_control"} if '"cache_control"' in json.dumps(received.body) else set())


async def asked(model: ServedModel, *media: Encoded) -> Finished:
    """A request with everything that may be left out."""
    system, clock = SystemBlock("Be kind.", cache=True), ToolSpec("clock", "The time.", {"type": "object"})
    turn = UserTurn("Hello", media=media)
    request = ModelRequest((system,), (turn,), tools=(clock,), may_call=False)
    [last] = [event async for event in model.stream(request) if isinstance(event, Finished)]
    return last


class TestAnErrorThatNamesAField:
    @pytest.fixture
    async def warm(self, server: MessagesServer) -> AsyncIterator[AnthropicModel]:
        provider = AnthropicProvider(base_url=server.base_url, max_retries=0)
        yield provider.model("llama", total_timeout_s=5, temperature=0.5)
        await provider.close()

    @pytest.mark.parametrize(
        ("said", "left"),
        [
            ("Unsupported parameter: 'temperature'", {"tools", "tool_choice", "cache_control"}),
            ("tool_choice: Input should be 'auto' or 'any'", {"tools", "temperature", "cache_control"}),
            ("Extra inputs are not permitted: cache_control", {"tools", "tool_choice", "temperature"}),
            ("llama does not support tools", {"temperature", "cache_control"}),
            ("unknown field `tools`, expected `messages` or `temperature`", {"temperature", "cache_control"}),
        ],
    )
    async def test_is_followed_by_a_request_without_that_and_by_no_other_with_it(
        self, server: MessagesServer, warm: AnthropicModel, said: str, left: set[str]
    ) -> None:
        server.script(api.failure(400, "invalid_request_error", said), api.text("ok"), api.text("ok"))
        await asked(warm)
        await asked(warm)
        assert [fields(one) for one in server.requests] == [
            {"tools", "tool_choice", "temperature", "cache_control"},
            left,
            left,
        ]

    async def test_but_goes_on_without_it_was_about_something_else(
        self, server: MessagesServer, warm: AnthropicModel
    ) -> None:
        """Else a picture would cost everybody the tools."""
        no = api.failure(400, "invalid_request_error", "no images beside tools or a temperature")
        server.script(no, no, no, api.text("ok"), api.text("ok"))
        assert reasons(await asked(warm, PICTURE)) == [("Picture 1", "blind")]
        await asked(warm)
        assert fields(server.requests[-1]) == fields(server.requests[0])

    async def test_of_anthropics_own_is_a_mistake_of_ours(
        self, server: MessagesServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(AnthropicProvider, "own_url", server.base_url)
        model = AnthropicProvider(api_key="sk", max_retries=0).model("haiku", total_timeout_s=5)
        server.script(api.failure(400, "invalid_request_error", "cache_control: Extra inputs"))
        with pytest.raises(ModelBadRequest):
            await asked(model)
        assert len(server.requests) == 1
        await model.close()


@each_api
class TestARequestThatIsTooLarge:
    async def test_goes_without_older_files_first(
        self, server: AnyServer, quick: ServedModel, api: Any
    ) -> None:
        server.script(api.failure(413, "request_too_large"), api.text("ok"))
        assert reasons(await finished(quick, PICTURE, OLDER)) == [("Picture 2", "too large")]
        assert [one.files for one in server.requests] == [["image", "image"], ["image"]]

    async def test_goes_without_any_then(self, server: AnyServer, quick: ServedModel, api: Any) -> None:
        server.script(*[api.failure(413, "request_too_large")] * 2, api.text("ok"))
        done = await finished(quick, PICTURE, OLDER)
        assert reasons(done) == [("Picture 2", "too large"), ("Picture 1", "too large")]
        assert reasons(await finished(quick, PICTURE)) == []

    async def test_is_an_error_if_nothing_is_left_to_leave_out(
        self, server: AnyServer, quick: ServedModel, api: Any
    ) -> None:
        server.script(*[api.failure(413, "request_too_large")] * 2)
        with pytest.raises(ModelTooLong):
            await finished(quick, PICTURE)


@each_api
class TestWhatIsNoRefusalOfAPicture:
    @each_row("status", [401, 429, 529, 503])
    async def test_is_not_asked_again(
        self, server: AnyServer, quick: ServedModel, api: Any, status: int
    ) -> None:
        server.requests.clear()
        server.script(api.failure(status))
        with pytest.raises(ModelError):
            await finished(quick, PICTURE)
        assert len(server.requests) == 1

    async def test_an_answer_that_has_begun_is_not_begun_again(
        self, server: AnyServer, quick: ServedModel, api: Any
    ) -> None:
        server.script(api.error_event("invalid_request_error", after=("Well,",)))
        with pytest.raises(ModelBadRequest):
            await finished(quick, PICTURE)
        assert len(server.requests) == 1


class TestAModelThatIsKnownToSee:
    async def test_is_none_of_anthropics_though_its_name_is_new(
        self, server: MessagesServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(AnthropicProvider, "own_url", server.base_url)
        model = AnthropicProvider(api_key="sk", max_retries=0).model("claude-of-tomorrow", total_timeout_s=5)
        server.script(api.failure(400, "invalid_request_error", "Could not process PDF"), api.text("ok"))
        assert reasons(await finished(model, PAPER)) == [("Document 1", "refused")]
        assert reasons(await finished(model, PAPER)) == []
        await model.close()

    async def test_is_asked_without_a_file_that_it_refuses_and_gets_the_next_one(
        self, server: MessagesServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(AnthropicProvider, "own_url", server.base_url)
        model = AnthropicProvider(api_key="sk", max_retries=0).model("haiku", total_timeout_s=5)
        server.script(api.failure(400, "invalid_request_error", "Could not process PDF"), api.text("ok"))
        assert reasons(await finished(model, PAPER)) == [("Document 1", "refused")]
        assert reasons(await finished(model, PAPER)) == []
        server.script(api.failure(500))
        with pytest.raises(ModelUnreachable):
            await finished(model, PAPER)
        await model.close()


async def test_a_request_without_files_and_optional_fields_is_asked_once(
    server: MessagesServer, quick: ServedModel
) -> None:
    server.script(api.failure(400, "invalid_request_error"))
    with pytest.raises(ModelBadRequest):
        await finished(quick)
    assert len(server.requests) == 1


def test_a_file_that_is_refused_is_tried_again_after_an_hour() -> None:
    """One bad PDF would otherwise keep everybody's from a model that reads them, until a restart."""
    now = [0.0]
    refused = Refused(certain=False, clock=lambda: now[0])
    found = []
    for at in (0.0, FORGOTTEN_S - 1, FORGOTTEN_S + 1, 2 * FORGOTTEN_S):
        now[0] = at
        found.append(refused.out("document"))
        if at in (0.0, FORGOTTEN_S + 1):
            refused.doubt("document", sure=True)
    assert found == [False, True, False, True]


@one_dialect
class TestAServerOfOpenAIsApi:
    """In the words of one of them each: what it refuses is left out, and from then on at once."""

    @pytest.mark.parametrize(
        ("said", "left"),
        [
            ("Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.", "max_tokens"),
            ("unknown field: stream_options", "stream_options"),
            ("Unsupported parameter: 'temperature' is not supported with this model.", "temperature"),
            ("tool_choice: Input should be 'auto'", "tool_choice"),
            ("registry.ollama.ai/library/gemma:2b does not support tools", "tools"),
            ("System role not supported", "system"),
        ],
    )
    async def test_that_names_a_field_gets_no_other_request_with_it(
        self, server: AnyServer, once: Provider, api: Any, said: str, left: str
    ) -> None:
        warm = once.model("llama", total_timeout_s=5, temperature=0.5)
        server.script(api.failure(400, "invalid_request_error", said), api.text("ok"), api.text("ok"))
        await asked(warm)
        await asked(warm)
        first, *others = (
            set(one.body) | {one["role"] for one in one.body["messages"]} for one in server.requests
        )
        gone = {left, "tool_choice"} if left == "tools" else {left}
        assert [first - one for one in others] == [gone, gone]
        assert all("Be kind." in str(one.body) for one in server.requests)
        if left == "max_tokens":  # it has a new name
            assert [one.room for one in server.requests] == [4096] * 3

    async def test_without_structured_output_gets_the_schema_in_words(
        self, server: AnyServer, once: Provider, api: Any
    ) -> None:
        class Plan(BaseModel):
            days: int

        model = once.model("llama")
        no = api.failure(400, "invalid_request_error", "'response_format.type' must be 'text'")
        server.script(no, api.text('{"days": 7}'), api.text('{"days": 7}'))
        for _ in range(2):
            assert (
                await model.structured(purpose="summary", system="Plan.", prompt="A week", shape=Plan)
            ).days == 7
        assert [one.schema is not None for one in server.requests] == [True, False, False]
        assert all('"days"' in one.system for one in server.requests)
        [found] = once.left_out()
        assert "`response_format`" in found.text

    async def test_that_takes_one_call_at_a_time_gets_them_one_by_one(
        self, server: AnyServer, once: Provider, api: Any
    ) -> None:
        clock = ToolSpec("clock", "The time.", {"type": "object"})
        calls = (ToolCall("a", "clock", {}), ToolCall("b", "clock", {"zone": "Bern"}))
        results = ToolTurn((ToolResult("a", "one"), ToolResult("b", "two")))
        turns = (UserTurn("?"), AssistantTurn("I look.", calls), results)
        no = api.failure(500, message="This model only supports single tool-calls at once!")
        server.script(no, api.text("ok"), api.text("ok"))
        for _ in range(2):
            async for _ in once.model("llama").stream(ModelRequest((), turns, (clock,))):
                pass
        together, *apart = ([what[:2] for what in one.talk[1:]] for one in server.requests)
        said = ("assistant", "I look.")
        assert together == [said, ("call", "a"), ("call", "b"), ("result", "a"), ("result", "b")]
        assert apart == [[said, ("call", "a"), ("result", "a"), ("call", "b"), ("result", "b")]] * 2
