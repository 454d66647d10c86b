"""The whole bot and a model whose answers are wrong or half wrong: what is learned, and what still waits."""

import re

import pytest

from discoclaw.models.anthropic.provider import AnthropicModel
from tests.app.conftest import Start, World
from tests.citing import talk_of
from tests.loops.answers import KNOWN, SEEN, TALK, as_shown, cases, know, spelled_out
from tests.servers.messages_api import Behaviour, MessagesServer, Received, text
from tests.session.scene import ANN, BOB

CASES = {case["name"]: case for case in cases()}
SOUND = CASES["two sound proposals"]
A_DOZEN = [
    "two sound proposals",
    "a fence",
    "thinking before",
    "cut within a string",
    "a refusal in German",
    "memories instead of upserts",
    "the quote is invented",
    "the quote is from a quoted line",
    "the quote is from a forward that ends a code block",
    "the source is another person's line",
    "the id is a durable id",
    "a key that is reserved",
    "deprecations of everything",
    "a thousand proposals that quote nothing",
    "a text with a mention of everyone",
]


def answering(raw: str) -> Behaviour:
    """A model that gives this answer, with the names that the lines of `TALK` have in its prompt."""

    def answer(received: Received) -> Behaviour:
        if "output_config" not in received.body:
            return text("ok")
        prompt = "".join(block["text"] for block in received.body["messages"][0]["content"])
        shown = {said.partition("\n")[0]: short for short, _, _, said in talk_of(prompt)}
        short = {
            f"m{number}": shown.get(one.text.partition("\n")[0], "m99") for number, one in enumerate(TALK, 1)
        }
        return text(re.sub(r"\bm\d+\b", lambda match: short.get(match[0], match[0]), as_shown(raw, prompt)))

    return answer


async def texts(world: World) -> set[str]:
    return {item.text for item in (await world.memory.view(f"user-{world.ann.id}")).active()}


@pytest.mark.parametrize("name", A_DOZEN)
async def test_only_what_is_sound_is_learned_and_the_rest_waits(
    start: Start, server: MessagesServer, model: AnthropicModel, name: str
) -> None:
    case = CASES[name]
    server.default = answering(spelled_out(case["raw"]))
    quiet = {"summary_enabled": False, "respond_mode": "mention"}
    async with start(model, **quiet) as world:
        await world.memory.change(f"user-{world.ann.id}", "a test", know)
        for one in TALK[SEEN:]:
            if one.author_id in (ANN.id, BOB.id):
                await (world.ann if one.author_id == ANN.id else world.bob).send(world.general, one.text)
        await world.ann.send(world.general, f"<@{world.env.backend.bot_user.id}> hello")
        await world.settle()
        assert world.answer(world.general) == "ok"
        expected = (set(KNOWN) - set(case.get("gone", []))) | set(case.get("learned", []))
        assert await texts(world) == expected
        server.default = answering(SOUND["raw"])
        await world.ann.send(world.general, f"<@{world.env.backend.bot_user.id}> hello again")
        await world.settle()
        # What an answer was made of counts as seen; what an unusable one was about still waits.
        assert (await texts(world) == expected | set(SOUND["learned"])) is (
            case.get("waits", False) or case is SOUND
        )
