"""Background work whose answers can't be used: that blocks nothing else, and people are told."""

import re
from collections.abc import Callable
from typing import Any

import pytest

from tests.contract.brain import LINE, cited, own_lines
from tests.contract.shown import first
from tests.contract.world import Start, World
from tests.servers.messages_api import Behaviour, Received, failure, json_answer, refusal, text, tool_use

LIKED = ("snarks", "tea", "cake", "jazz", "chess", "maps", "rain", "bread", "moss", "kites", "wool", "salt")
LEARNING: dict[str, Any] = {"summary_enabled": False}
SUMMING_UP: dict[str, Any] = {"extraction_enabled": False, "summary_every": 1}
SORRY = text("I'm sorry, I can't.")


def is_talk(received: Received) -> bool:
    """Whether a request is for an answer, also where a server was found to take no schema."""
    return "tools" in received.body


def new_words(received: Received) -> list[str]:
    """What the messages that a loop reads anew are about, also when it asks once more."""
    prompt = first(received)
    new = "\n".join(own_lines(prompt).values()) or prompt.rpartition("New messages:")[2]
    return [word for word in LIKED if word in new]


def learning(of_snarks: Behaviour | None = None) -> Callable[[Received], Behaviour]:
    """A model that learns and sums up what people like, and answers this where snarks are among it."""

    def answer(received: Received) -> Behaviour:
        if is_talk(received):
            return text("Noted.")
        words, prompt = new_words(received), first(received)
        if "snarks" in words and of_snarks is not None:
            return of_snarks
        if "New messages:" in prompt:
            return json_answer({"summary": f"Liked: {', '.join(words)}.", "themes": [], "decisions": []})
        items = [{"kind": "fact", "text": f"User likes {', '.join(words)}."}] if words else []
        return json_answer(cited({"upserts": items, "deprecations": []}, prompt))

    return answer


def likes(world: World) -> set[str]:
    texts = [one.removeprefix("User likes ").removesuffix(".") for one in world.memories(world.ann)]
    return {word for one in texts for word in one.split(", ")}


async def say_all(world: World, words: tuple[str, ...] = LIKED) -> None:
    for word in words:
        await world.says(world.ann, world.general, f"I like {word}.")


class TestAMessageOfWhichAModelMakesNothing:
    @pytest.mark.parametrize(
        "of_snarks",
        [
            text('{"upserts": [', stop_reason="max_tokens"),
            tool_use(thought="Snarks?", stop_reason="end_turn"),
        ],
        ids=["cut off", "empty"],
    )
    async def test_blocks_no_other_and_is_learned_by_a_better_model_after_a_restart(
        self, start: Start, of_snarks: Behaviour
    ) -> None:
        async with start(**LEARNING) as world:
            world.server.default = learning(of_snarks)
            await say_all(world, LIKED[:8])
            assert likes(world) == {*LIKED[1:8]}
            world.server.default = learning()
            asked = len(world.server.requests)
            await world.restart()
            await say_all(world, ("fog",))
            assert likes(world) == {*LIKED[:8]}
            # Only what waited is read, beside what is new: no other of these words.
            asked_since = map(first, world.server.requests[asked:])
            read = [line for prompt in asked_since for line in own_lines(prompt).values()]
            assert len(read) == 2 and "snarks" in read[0] and "fog" in read[1]

    async def test_is_tried_again_alone_ever_more_rarely_and_left_out_in_the_end(
        self, start: Start, caplog: pytest.LogCaptureFixture
    ) -> None:
        async with start(**LEARNING) as world:
            world.server.default = learning(text("They like snarks."))
            await say_all(world)
            calls = []
            for number in range(25):
                asked = len(world.server.requests)
                await say_all(world, (LIKED[1 + number % 11],))
                made = world.server.requests[asked:]
                calls.append(len(made))
                if len(made) > 2:  # what is new, and then the one that was put off: twice
                    assert [new_words(one) for one in made[2:]] == [["snarks"], ["snarks"]]
            assert [number for number, count in enumerate(calls) if count > 2] == [0, 8, 24]
            assert set(calls) == {2, 4} and caplog.text.count("it is left out") == 1

    async def test_that_it_refuses_is_left_out_for_good_and_takes_none_along(
        self, start: Start, caplog: pytest.LogCaptureFixture
    ) -> None:
        async with start(**LEARNING, durable_every=2) as world:
            world.server.default = learning(refusal("no snarks"))
            await say_all(world, ("tea", "snarks", *LIKED[2:]) * 2)
            assert likes(world) == {*LIKED} - {"snarks"}
            await say_all(world, LIKED[2:])
            assert "it is left out" in caplog.text
            world.server.default = learning()
            await world.restart()
            await say_all(world, ("fog", "fog"))
            assert "snarks" not in likes(world)

    async def test_costs_no_message_while_a_server_rejects_everything_or_is_slow(self, start: Start) -> None:
        usual = learning()
        rejected = failure(400, "invalid_request_error", "no")
        slow = failure(504, "timeout_error")
        async with start(**LEARNING) as world:
            world.server.default = lambda one: usual(one) if is_talk(one) else rejected
            await say_all(world, LIKED[:6])
            assert likes(world) == set()
            world.server.default = usual
            for _ in range(3):
                await say_all(world, ("fog",))
            assert likes(world) >= {*LIKED[:6]}
            await world.restart(durable_every=5)
            world.server.default = lambda one: (
                slow if not is_talk(one) and len(new_words(one)) > 3 else usual(one)
            )
            for word in LIKED[6:]:
                await world.says(world.ann, world.general, f"I like {word}. " + "Really! " * 200)
            await say_all(world, ("fog",) * 4)
            assert likes(world) >= {*LIKED}  # a batch becomes smaller

    async def test_is_in_the_summary_in_the_end_and_keeps_nothing_else_out_or_in(self, start: Start) -> None:
        def paraphrasing(request: Received) -> str:
            """Tells a codename in other words."""
            lines = [match for line in request.prompt.splitlines() if (match := LINE.match(line))]
            said = [
                f"- {one[0].split()[2]} {one[3]}: {'see Zebulon' if 'codename' in one[4] else one[4]}"
                for one in lines
            ]
            return "\n".join(["Open:", *said, *re.findall(r"^- .*$", request.prompt, re.M)])

        async with start(**SUMMING_UP) as world:
            world.server.default = learning(SORRY)
            await say_all(world, LIKED[:8])
            assert world.files_with("Liked: ") and "bread" in await world.says(
                world.ann, world.general, "!memory show"
            )
            world.server.default = learning()
            asked = len(world.server.requests)
            await say_all(world, ("fog",))
            assert ["snarks"] in [new_words(one) for one in world.server.requests[asked:]]
            world.brain.writes("summary", lambda one: SORRY if "riddle" in one.prompt else paraphrasing(one))
            world.server.default = world.brain
            await world.says(world.ann, world.dev, "A riddle.")
            for word in LIKED[:6]:
                await world.says(world.ann, world.dev, f"I like {word}.")
            secret = await world.ann.send(world.dev, "our codename: Luftschiff")
            await world.settle()
            await world.says(world.ann, world.dev, "I like fog.")
            assert world.files_with("Zebulon")
            await world.ann.delete(secret)
            await world.settle()
            assert not [one for one in world.files_with("Zebulon") if one.startswith("memory/rolling")]
            assert "Zebulon" not in await world.says(world.ann, world.dev, "!memory show")

    @pytest.mark.design(143, 220, 255, 281, 321)
    async def test_changes_nothing_and_is_learned_when_the_model_makes_sense_again(
        self, start: Start
    ) -> None:
        nonsense = "Sure! Here is what I found."
        async with start(**LEARNING) as world:
            world.brain.writes("upserts", lambda _: text(nonsense))
            await world.remember(world.ann, "I like tea")
            before = world.durable(world.ann).read_bytes()
            for wrong in (
                nonsense,
                '```json\n{"upserts": []}',
                '{"upserts": "none"}',
                '{"upserts": [{"kind": "secret", "text": "x"}]}',
                '{"upserts": [], "more": 1}',
                "[" * 100_000,
                "x" * 100_000,
            ):
                nonsense = wrong
                assert await world.says(world.ann, world.general, "I prefer coffee") == "ok"
                assert world.durable(world.ann).read_bytes() == before, wrong[:40]
            world.server.default = lambda one: (
                world.brain(one)
                if is_talk(one)
                else json_answer(
                    cited({"upserts": [{"kind": "preference", "text": "User prefers coffee."}]}, first(one))
                )
            )
            await world.says(world.ann, world.general, "well?")
            assert "User prefers coffee." in world.memories(world.ann)


SMALL: dict[str, Any] = {"summary_model": "old-small", "durable_model": "old-small", "summary_every": 1}


async def stopped(world: World, command: str = "stats") -> list[str]:
    """What a command says about what stands still, as a text in a channel and as a card in a DM."""
    found = [
        re.findall(r"\*\*I stopped .*", await world.says(world.ann, place, f"!memory {command}"))
        for place in (world.general, world.ann_dm)
    ]
    assert found[0] == found[1]
    return found[0]


class TestAStandstill:
    async def test_is_told_to_whoever_looks_at_their_memory_and_more_to_an_owner(self, start: Start) -> None:
        retired = failure(404, "not_found_error", "model: old-small")
        async with start(**SMALL) as world:
            await world.says(world.ann, world.general, "I drink tea.")
            assert await stopped(world) == await stopped(world, "show") == []
            await world.env.advance_time(60)
            world.server.default = lambda one: world.brain(one) if is_talk(one) else retired
            since = int(world.env.now().timestamp())
            await world.says(world.ann, world.general, "I drink tea.")
            await world.env.advance_time(3600)
            await world.says(world.ann, world.general, "I drink tea.")
            for command in ("stats", "show"):
                learned, summed_up = await stopped(world, command)
                assert learned == (
                    f"**I stopped learning from what you say <t:{since}:R>**: I need a small model for it, "
                    "and its server doesn't have it any more. An admin has to look after that. What you say "
                    "waits until then."
                )
                assert f"**I stopped writing summaries <t:{since}:R>**" in summed_up
            await world.restart(owners=frozenset({str(world.ann.id)}))
            await world.says(world.ann, world.general, "I drink tea.")
            learned, summed_up = await stopped(world)
            assert "Check `DISCOCLAW_DURABLE_MODEL`; `discoclaw doctor` says more." in learned
            assert "Check `DISCOCLAW_SUMMARY_MODEL`" in summed_up
            world.server.default = world.brain
            await world.says(world.ann, world.general, "I drink tea.")
            assert await stopped(world) == []
        async with start(**SMALL) as world:
            for able, times in ((False, 2), (True, 1), (False, 2)):
                world.server.default = lambda one, able=able: (
                    world.brain(one) if able or is_talk(one) else SORRY
                )
                for _ in range(times):
                    await world.says(world.ann, world.general, "I drink tea.")
            assert await stopped(world) == []
            await world.says(world.ann, world.general, "I drink tea.")
            learned, _ = await stopped(world)
            assert "and its answers can't be used. An admin" in learned
