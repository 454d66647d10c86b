"""Long transcripts: an answer with many calls, and an interview, lose their middle and can be finished."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.contract.world import Start
from tests.servers import messages_api as api
from tests.servers.messages_api import Answer, Received

QUIET = {"extraction_enabled": False, "summary_every": 99}
Counted = Callable[[int], int]


def working(rounds: int, usage: Counted, words: int = 0) -> Callable[[Received], Answer]:
    """A model that looks for something else in each of so many rounds, then answers.

    `usage` is the number of tokens it counts in a request after so many rounds (0: it counts none), `words`
    how many a call has besides.
    """
    done = iter(range(1000))

    def answer(request: Received) -> Answer:
        number = next(done)
        counted = {"input_tokens": usage(number), "output_tokens": 0}
        if number < rounds and request.may_call:
            call = (f"t{number}", "memory_search", {"query": f"tea {number} {'w ' * words}".strip()})
            return api.tool_use(call, usage=counted)
        return api.text("That was long.", usage=counted)

    return answer


def ids(message: dict[str, Any], field: str) -> list[str]:
    return [block[field] for block in message["content"] if field in block]


class TestAnAnswerWithManyCalls:
    @pytest.mark.design(149, 150, 151, 152, 153)
    @pytest.mark.parametrize(
        ("rounds", "usage", "lengths"),
        [
            (30, lambda done: 10, [*range(1, 50, 2), 11, 13, 15, 17, 19, 21]),
            # The seventh request has 13 messages and 98,000 tokens by the provider's count.
            (
                10,
                lambda done: 14_000 * (done + 1) if done < 8 else 20_000,
                [1, 3, 5, 7, 9, 11, 13, 11, 11, 13, 15],
            ),
            # Of few messages nothing is lost, however long they are.
            (7, lambda done: 100_000 if done < 6 else 20_000, [1, 3, 5, 7, 9, 11, 11, 13]),
        ],
        ids=["more than fifty messages", "over 96,000 tokens", "few messages"],
    )
    async def test_loses_its_middle(
        self, start: Start, rounds: int, usage: Counted, lengths: list[int]
    ) -> None:
        async with start(**QUIET) as world:
            old = {"tool": "memory_list", "ok": True, "content": "nothing", "channel": None, "private": True}
            at = world._now() - 40 * 86_400_000
            log = world.data / "memory" / "tools" / f"user-{world.ann.id}.jsonl"
            log.parent.mkdir(parents=True, exist_ok=True)
            session = f"discord:dm:{world.ann.id}"
            log.write_text(json.dumps({**old, "id": "0123456789abcdef", "at": at, "session": session}) + "\n")
            world.brain.usual = working(rounds, usage)
            told = await world.says(world.ann, world.ann_dm, "What do you know about my tea?")
            assert told == "That was long."
            sent = [one.body for one in world.turns()]
            assert [len(body["messages"]) for body in sent] == lengths
            assert log.read_text(encoding="utf-8").count("memory_search") == rounds
            assert all(
                body["system"] == sent[0]["system"] and body["tools"] == sent[0]["tools"] for body in sent
            )
            if rounds == 30:
                assert "memory_list" not in log.read_text(encoding="utf-8")  # hygiene purged what was too old
                first, *rest = sent[25]["messages"]
                prompt, line = first["content"]
                assert prompt["text"] == sent[0]["messages"][0]["content"][0]["text"]
                left_out = "[40 earlier messages left out: 10 calls of tools; memory_search → "
                assert line["text"].startswith(left_out)
                assert [ids(one, "id") for one in rest[::2]] == [[f"t{n}"] for n in range(20, 25)]
                assert [ids(one, "tool_use_id") for one in rest[1::2]] == [[f"t{n}"] for n in range(20, 25)]

    @pytest.mark.long
    @pytest.mark.design(149, 153)
    async def test_loses_it_by_its_words_where_nobody_counts_tokens(self, start: Start) -> None:
        async with start(**QUIET) as world:
            world.brain.usual = working(10, lambda done: 0, words=9_700)
            told = await world.says(world.ann, world.ann_dm, "What do you know about my tea?")
            assert told == "That was long."
            # A call takes 12,610 tokens, the prompt and the tools less than 7,000: eight calls are too much.
            sent = [one.body["messages"] for one in world.turns()]
            assert [len(one) for one in sent] == [1, 3, 5, 7, 9, 11, 13, 15, 11, 13, 15]
            assert "[6 earlier messages left out: " in json.dumps(sent[8])


@pytest.mark.design(149, 150)
async def test_an_interview_loses_its_middle_too_and_can_be_finished(start: Start) -> None:
    async with start(**QUIET) as world:
        await world.restart(owners=frozenset({str(world.ann.id)}))
        await world.ann.user.slash("hatch start")
        world.brain.usual = "And why?"
        for number in range(24):
            await world.says(world.ann, world.ann_dm, f"Because {number}.")
        soul = {"identity": "You are Mog.", "user": "Ann.", "philosophy": "Be kind."}
        world.brain.usual = f"Thank you.<soul>{json.dumps(soul)}</soul>"
        assert (await world.says(world.ann, world.ann_dm, "That is all.")).startswith("Thank you.")
        assert world.files_with("You are Mog.") == ["memory/ledger/bot.jsonl"]
        before, request = (one.talk for one in world.turns()[-2:])
        assert len(before) == 49 and len(request) in (11, 12)
        assert request[0][1].startswith(before[0][1]) and "[40 earlier messages left out]" in str(request[:2])
        assert request[-10:] == [*before[-8:], ("assistant", "And why?"), ("user", "That is all.")]
