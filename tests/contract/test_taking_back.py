"""What a person takes back is in nothing that is used afterwards: by this promise people judge the bot."""

import json
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from pydantic import SecretStr

from tests.contract.brain import is_talk, message_of, sum_up
from tests.contract.meanwhile import until
from tests.contract.world import Start, World
from tests.servers.embeddings_api import EmbeddingsServer
from tests.servers.messages_api import Received, failure
from tests.servers.nostr_relay import LyingRelay

WORD = "Zwölfkanarie"
FORMS = (WORD, WORD.lower(), "zwolfkanari", json.dumps(WORD)[1:-1])
"""How it is written anywhere: as said, as an index has it, and as JSON has it."""
ITEM = f"User keeps a {WORD}."
DROP = "please drop that now"
HISTORY = ("memory/ledger/", "memory/durable/", "cache/views/")
"""The person's own history, which has it until they erase it."""


def holds(text: str) -> bool:
    return any(form in text for form in FORMS)


def left(world: World) -> list[str]:
    """The files that have the word, without the person's own history."""
    found = {path for form in FORMS for path in world.files_with(form)}
    return sorted(path for path in found if not path.startswith(HISTORY))


def summaries(world: World) -> str:
    """The words of all summaries on disk."""
    folder = world.data / "memory" / "rolling"
    return "\n".join(path.read_text() for path in sorted(folder.glob("*.json")))


async def says(world: World, text: str, place: Any = None) -> str:
    """Ann types a command; returns its answer."""
    return await world.says(world.ann, place or world.general, f"!memory {text}")


# --- the ways to take something back


async def forget(world: World) -> None:
    await says(world, f"forget {ITEM}")


async def undo(world: World) -> None:
    await says(world, "history undo")


async def edit(world: World) -> None:
    await says(world, f"edit {ITEM} => User keeps a dog.")


async def make_private(world: World) -> None:
    await says(world, f"private {ITEM}")


async def ask_the_model(world: World) -> None:
    await world.says(world.ann, world.general, DROP)


async def edit_the_file(world: World) -> None:
    path = world.durable(world.ann)
    path.write_text(path.read_text().replace(WORD, "dog"))
    await says(world, "show")


async def settle_a_question(world: World) -> None:
    await says(world, f"remember {ITEM}")
    await world.env.advance_time(60)
    await world.says(world.ann, world.general, "it is a dog")
    (question,) = world.ann_dm.history()
    await world.ann.user.click(question, label="Use the new")


async def opt_out(world: World) -> None:
    await says(world, "optout")


async def erase(world: World) -> None:
    await says(world, "erase --yes")


WAYS = (forget, opt_out, erase)
LONG_WAYS = (undo, edit, make_private, ask_the_model, edit_the_file, settle_a_question)
"""These take the same way through the program as `forget`."""


def repeating(world: World) -> None:
    """Have the model learn, sum up and say again whatever it reads of the word."""

    def summary(request: Received) -> dict[str, Any]:
        spoke = {"summary": f"Ann keeps a {WORD}.\nThey like tea.", "themes": [f"{WORD} care"]}
        return spoke if holds(request.prompt) else {"summary": "They like tea."}

    world.brain.writes("summary", summary)
    world.brain.learns({"id": ITEM, "kind": "fact", "text": "User keeps a dog."}, about="it is a dog")
    world.brain.learns(ITEM, about=WORD)
    world.brain.calls("memory_search", {"query": WORD}, "Found.", about="search for my pet")
    world.brain.calls("memory_forget", {"item": ITEM}, f"A {WORD}, gone.", about=DROP)
    world.brain.says(f"A {WORD}, yes.", about=WORD)


@asynccontextmanager
async def living(start: Start, **changes: Any) -> AsyncIterator[tuple[World, EmbeddingsServer]]:
    """The word was said, learned, summed up, searched for, embedded, cached and shown in the open."""
    async with EmbeddingsServer() as embeddings, start(summary_every=1) as world:
        usual = {"response_cache": True, "receipts": True, "auto_save": "all", "embedding_provider": "openai"}
        usual |= {"embedding_url": embeddings.openai_url, "embedding_key": SecretStr("sk-secret")}
        await world.restart(memory_channel=str(world.dev.id), **{**usual, **changes})
        repeating(world)
        await world.says(world.ann, world.general, f"I keep a {WORD}")
        await world.says(world.ann, world.general, "search for my pet")
        await world.says(world.bob, world.general, "What does Ann like?")
        await until(lambda: any(holds(text) for text in embeddings.texts))
        await world.settle()
        await world.env.advance_time(60)
        kinds = {path.partition(".sqlite")[0].rpartition("/")[0] for path in left(world)}
        assert kinds >= {"memory", "memory/rolling", "memory/tools", "memory/groups", "cache/responses"}
        assert holds(str(world.shown(world.dev)))
        yield world, embeddings


@pytest.mark.parametrize(
    "act",
    [*WAYS, *(pytest.param(act, marks=pytest.mark.long) for act in LONG_WAYS)],
    ids=lambda act: act.__name__,
)
async def test_it_is_in_nothing_that_is_used_afterwards(
    start: Start, act: Callable[[World], Awaitable[None]]
) -> None:
    async with living(start) as (world, embeddings):
        read = len(world.server.requests)
        await act(world)
        await world.settle()
        if act is settle_a_question:
            read = len(world.server.requests)  # the question was asked before
        assert [text for text in world.shown(world.dev) if holds(text)] == []
        if act is erase:
            assert world.files_with(str(world.ann.id)) == []
        embedded, sent = len(embeddings.texts), len(world.env.http_requests)
        await world.says(world.bob, world.general, "Which tea is good?")
        await world.restart()
        await world.env.advance_time(60)
        await world.says(world.ann, world.general, "Tell me about my pet")
        given = [
            one for one in world.server.requests[read:] if not (is_talk(one) and DROP in message_of(one))
        ]
        assert len(given) > 2
        assert [one for one in given if holds(json.dumps(one.body, ensure_ascii=False))] == []
        assert [text for text in embeddings.texts[embedded:] if holds(text)] == []
        assert [one for one in world.env.http_requests[sent:] if holds(str(one.json))] == []
        assert [text for text in world.shown(world.dev) if holds(text)] == []
        private = ("memory/profiles/",) if act in (make_private, opt_out) else ()
        # Who comes back after opting out finds what is remembered, and so its view.
        assert [path for path in left(world) if not path.startswith(private)] == []
        if act is erase:
            assert [path for form in FORMS for path in world.files_with(form)] == []
        assert world.cli("audit", "privacy").stdout == "Nothing is readable that shouldn't be.\n"


async def test_a_recovery_from_relays_brings_back_only_ones_history(start: Start) -> None:
    async with LyingRelay() as relay:
        relays = {"nostr_relays": (relay.url,), "nostr_flush_s": 0.0, "nostr_key": SecretStr("11" * 32)}
        async with start(summary_every=1, **relays) as world:
            repeating(world)
            await world.says(world.ann, world.general, f"I keep a {WORD}")
            await world.settle()
            assert any("rolling" in path for path in left(world))
            await forget(world)
            await world.settle()
            await world.restart(meanwhile=lambda: shutil.rmtree(world.data), nostr_mode="canonical")
            await world.settle()
            assert left(world) == []
            assert any(path.startswith("memory/ledger/") for form in FORMS for path in world.files_with(form))


class TestTheSummary:
    writes: Callable[[Received], Any] = staticmethod(sum_up)
    """What the model makes of what it is to sum up."""

    async def live(self, world: World) -> None:
        world.brain.writes("summary", lambda request: self.writes(request))
        world.brain.learns("User lives in Lisbon.", about="live in Lisbon")
        for text in ("I live in Lisbon", "How do zebras sleep?"):
            await world.says(world.ann, world.general, text)
        assert "Lisbon" in summaries(world)

    async def test_is_written_again_from_what_is_left(self, start: Start) -> None:
        async with start(summary_every=1) as world:
            await self.live(world)
            await says(world, "forget User lives in Lisbon.")
            assert "Lisbon" not in summaries(world) and "zebras" in summaries(world)
            asked = len(world.server.requests)
            await world.says(world.ann, world.general, "And what do lemurs eat?")
            await world.says(world.ann, world.dev, "What else do you know about me?")
            await world.restart()
            await world.says(world.ann, world.general, "Do you remember me?")
            told = "".join(str(one.body) for one in world.server.requests[asked:])
            assert "lemurs" in told and "zebras" in told and "Lisbon" not in told
            await says(world, "undo")
            assert "You live in Lisbon." in (await says(world, "show")).partition("**Summary of")[0]
            assert "Lisbon" not in summaries(world)
            await says(world, "forget User lives in Lisbon.")
            await world.env.advance_time(60)
            await world.says(world.ann, world.general, "I live in Lisbon")  # which is learned again
            assert "You live in Lisbon." in await says(world, "show")
            assert "Lisbon" in summaries(world)

    @pytest.mark.parametrize(
        ("writes", "kept"),
        [
            ("Ann lives in Lisbon. They spoke of zebras.", "They spoke of zebras."),
            ("Everybody knows Lisbon!", ""),
        ],
    )
    async def test_may_be_written_by_a_model_that_says_what_it_likes(
        self, start: Start, writes: str, kept: str
    ) -> None:
        async with start(summary_every=1) as world:
            await self.live(world)
            self.writes = lambda _: writes
            await says(world, "forget User lives in Lisbon.")
            await world.says(world.ann, world.general, "Thanks")
            assert "Lisbon" not in summaries(world) and kept in summaries(world)

    async def test_waits_for_a_model_that_is_down(self, start: Start) -> None:
        async with start(summary_every=1) as world:
            await self.live(world)
            self.writes = lambda _: failure(500)
            await says(world, "forget User lives in Lisbon.")
            assert summaries(world) == ""
            asked = len(world.server.requests)
            await world.says(world.ann, world.general, "Do you hear me?")
            assert "Lisbon" not in "".join(str(one.body) for one in world.server.requests[asked:])
            self.writes = sum_up
            await world.restart()
            await world.says(world.ann, world.general, "And now?")
            assert "zebras" in summaries(world) and "Lisbon" not in summaries(world)


class TestOnesOwnHistory:
    """After taking something back: whole in private, without its words for everybody else."""

    LOOKS = ("history log", "history view", "history view --at HEAD~2", "history diff HEAD~2", "why {}")

    async def took_back(self, world: World) -> str:
        """Ann corrects one thing and forgets the other, whose id this returns."""
        await world.remember(world.ann, "I play the banjo", "I live in Oslo")
        banjo = str(world.items(world.ann)[0]["id"])[8:]
        await says(world, "edit I live in Oslo => I live in Bergen")
        await says(world, "forget I play the banjo")
        return banjo

    async def test_is_whole_in_a_dm_and_has_no_such_words_in_the_open(self, start: Start) -> None:
        async with start() as world:
            banjo = await self.took_back(world)
            for look in self.LOOKS:
                answer = await says(world, look.format(banjo), world.ann_dm)
                assert "banjo" in answer and "(taken back)" not in answer, look
                answer = await says(world, look.format(banjo))
                assert "(taken back)" in answer and not {"banjo", "Oslo"} & set(answer.split()), look
                assert ("Bergen" in answer) == (not look.startswith("why") and "--at" not in look)
            answer = await says(world, "why I play the banjo")
            assert "(id " not in answer and "(taken back)" not in answer
            await says(world, "undo")
            answer = await says(world, "history log")
            assert "banjo" in answer and "Oslo" not in answer
            await says(world, "private I live in Bergen")
            assert "Bergen" not in await says(world, "history log")
            assert "Bergen" in await says(world, "history log", world.ann_dm)

    async def test_has_no_such_words_for_the_model(self, start: Start) -> None:
        async with start() as world:
            banjo = await self.took_back(world)
            results = []
            for number, given in enumerate(({}, {"item": banjo}, {"item": "I play the banjo"})):
                world.brain.calls("memory_history", given, "Fine.", about=f"look {number}")
                await world.says(world.ann, world.ann_dm, f"look {number}")
                results += [str(one[2]) for one in world.turns()[-1].talk if one[0] == "result"]
            log, one, failed = results
            assert "Bergen" in log and "(taken back)" in log and "(taken back)" in one
            assert "banjo" not in log + one and "Oslo" not in log + one
            assert "no item matches" in failed
