"""What extraction is shown of a large memory: what comes near to the talk, by words and by vectors."""

import asyncio
import random
import re
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from discoclaw.core.draft import Draft, Origin
from discoclaw.core.errors import ModelOverloaded
from discoclaw.core.message import Place, Said
from discoclaw.core.patch import Patch
from discoclaw.core.visible import VisibleItems
from discoclaw.embed.http import HttpEmbedder
from discoclaw.embed.providers import OLLAMA
from discoclaw.loops.embedding import Embedding
from discoclaw.loops.facts import FactsLoop, FactsRules
from discoclaw.loops.heard import Backlog, Heard
from discoclaw.loops.nearest import MOST_CLUES, Clue, Nearest, few
from discoclaw.memory.subjects.store import Memory
from discoclaw.search.vectors import VectorCache
from tests.citing import cited_patch, items_of
from tests.core.builders import item
from tests.loops.builders import upsert
from tests.memory.kit import refusing
from tests.servers.embeddings_api import EmbeddingsServer, Held, failure
from tests.session.scene import ANN, DM, GENERAL, ME, NOW, House, ScriptedModel, house, said

SUBJECT = f"user-{ANN.id}"
LINZ = f"User lives in Linz, beside {', '.join(f'house{number}' for number in range(20))}."
"""Longer than the others, so that it is not shown only because it fits in."""
LEFT = "we left Linz, all books of the shelf are in Graz now"
"""It shares more words with the shelves than with the old home, but common ones."""
MOVED = "we packed everything and moved to Graz"


@dataclass
class Settled:
    """Ann's memory of thousands of items, and an extraction that finds things by vectors of `server`."""

    home: House
    server: EmbeddingsServer
    stack: AsyncExitStack
    embedding: Embedding | None = None
    opted_out: bool = False

    async def begin(self, *, here: bool = True, wait_s: float = 10.0, others: int = 400) -> FactsLoop:
        memory, url = self.home.memory, self.server.url if here else self.server.elsewhere
        door = HttpEmbedder(OLLAMA, model="m", base_url=url)
        vectors = VectorCache(memory.ledger_folder.parent / "vectors.sqlite")
        consent = refusing(lambda user_id: self.opted_out)
        self.embedding = Embedding(door, memory, vectors, consent=consent, rest_s=0.01)
        memory.join(vectors, self.embedding)
        self.stack.callback(vectors.close)  # the last: what still works would open the file again
        for close in (door.close, self.embedding.close):
            self.stack.push_async_callback(close)
        await fill(memory, LINZ, others)
        self.embedding.want(SUBJECT, (await memory.view(SUBJECT)).active())
        await self.embedding.settle()
        self.server.requests.clear()
        return extraction(self.home, Nearest(self.embedding, wait_s=wait_s))


async def fill(memory: Memory, text: str, others: int) -> None:
    """Let Ann's memory have one item and, later, many long ones about other things."""

    def wish(draft: Draft) -> None:
        draft.upsert("fact", text, Origin("inferred", said_at=1))

    def more(draft: Draft) -> None:
        for number in range(others):
            one = item(f"Shelf {number} holds {'books ' * 12}.", updated_at=NOW + 60_000)
            draft.emit("add", one, one.to_json(), Origin("inferred"))  # an upsert would compare all

    await memory.change(SUBJECT, "a test", wish)
    await memory.change(SUBJECT, "a test", more)


def extraction(home: House, nearest: Nearest | None = None) -> FactsLoop:
    rules = FactsRules(nearest=nearest) if nearest is not None else FactsRules()
    return FactsLoop(home.model, home.memory, home.cursors, rules=rules, me=lambda: ME, clock=home.clock)


def backlog(*messages: Said, place: Place = GENERAL) -> Backlog:
    waiting = Backlog()
    for one in messages:
        waiting.hear(Heard(one, place, place.session_key(one.author_id)))
    return waiting


def at(number: int, text: str) -> Said:
    """What Ann says an hour after all that the tests remember."""
    return Said(str(number), ANN.id, ANN.name, text, NOW + 3_600_000 + number)


def moves(prompt: str) -> Patch:
    """What a model would propose, given what it is shown: it changes the old home, if that is there."""
    known = {text: short for short, text in items_of(prompt).items()}
    return cited_patch(upsert("User lives in Graz.", kind="fact", id=known.get(LINZ)), prompt)


@pytest.fixture
async def settled(tmp_path: Path) -> AsyncIterator[Settled]:
    async with EmbeddingsServer(same={"moved": "lives", "graz": "linz"}) as server, AsyncExitStack() as stack:
        home = house(tmp_path, ScriptedModel(patches=[moves] * 9), max_items=10_000)
        yield Settled(home, server, stack)


class TestByWords:
    async def test_the_old_home_is_found_among_three_thousand_and_updated(self, tmp_path: Path) -> None:
        home = house(tmp_path, ScriptedModel(patches=[moves]), max_items=10_000)
        await fill(home.memory, LINZ, 3_000)
        await extraction(home).run(ANN.id, backlog(at(1, LEFT)), {})
        texts = await home.texts(ANN)
        assert "User lives in Graz." in texts and LINZ not in texts and len(texts) == 3_001

    async def test_a_short_answer_is_understood_by_what_it_answers(self, tmp_path: Path) -> None:
        home = house(tmp_path, ScriptedModel(patches=[Patch()]), max_items=10_000)
        await fill(home.memory, LINZ, 400)
        context = {GENERAL.session_key(ANN.id): [said(1, ME, "So Linz is over?")]}
        await extraction(home).run(ANN.id, backlog(at(2, "yes")), context)
        assert LINZ in items_of(home.model.extractions[0]).values()

    async def test_every_fact_of_a_long_message_finds_its_own(self, tmp_path: Path) -> None:
        home = house(tmp_path, ScriptedModel(patches=[Patch()]), max_items=10_000)
        await fill(home.memory, LINZ, 400)
        long = f"{' '.join(f'word{number}' for number in range(300))} and no more Linz"
        await extraction(home).run(ANN.id, backlog(at(2, long)), {})
        assert LINZ in items_of(home.model.extractions[0]).values()

    async def test_a_text_that_is_only_quoted_finds_nothing(self, tmp_path: Path) -> None:
        home = house(tmp_path, ScriptedModel(patches=[Patch()]), max_items=10_000)
        await fill(home.memory, LINZ, 400)
        await extraction(home).run(ANN.id, backlog(at(2, "> Linz is a nice place")), {})
        assert LINZ not in items_of(home.model.extractions[0]).values()

    async def test_the_order_of_storing_makes_no_difference(self) -> None:
        words = ["tea", "cat", "dog", "lamp", "boat", "kite", "drum", "Linz", "Graz", "vim", "rust", "piano"]
        dice = random.Random(5)
        many = [
            item(f"User's {number} {' '.join(dice.sample(words, 3))}.", updated_at=NOW + number // 7)
            for number in range(120)
        ]
        clues = [Clue("the cat and the lamp"), Clue("Linz or Graz"), Clue("rust")]
        found = await Nearest().to(SUBJECT, VisibleItems(many), clues, private=False)
        for _ in range(5):
            dice.shuffle(many)
            again = await Nearest().to(SUBJECT, VisibleItems(many), clues, private=False)
            assert again == found

    def test_five_hundred_messages_are_forty_queries_that_say_all_of_it(self) -> None:
        made = few([Clue(f"fact{number} is true") for number in range(500)])
        assert len(made) <= MOST_CLUES
        assert re.findall(r"fact\d+", " ".join(one.text for one in made)) == [f"fact{n}" for n in range(500)]
        assert few([Clue(""), Clue("  ")]) == []
        assert few([Clue("x" * 1000, "before")])[0] == Clue("x" * 300, "before")

    async def test_the_event_loop_goes_on_while_ten_thousand_are_ranked(self) -> None:
        many = [item(f"User keeps box {number} in cellar {number % 97}.") for number in range(10_000)]
        turns = 0

        async def others() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        beside = asyncio.create_task(others())
        await Nearest().to(SUBJECT, VisibleItems(many), [Clue("the box in cellar 7")], private=False)
        beside.cancel()
        assert turns > 20  # it would be two or three if the ranking were done on the loop


class TestByMeaning:
    async def test_an_item_that_shares_no_word_is_found_and_updated(self, settled: Settled) -> None:
        facts = await settled.begin()
        await facts.run(ANN.id, backlog(at(1, MOVED)), {})
        texts = await settled.home.texts(ANN)
        assert "User lives in Graz." in texts and LINZ not in texts
        assert settled.server.texts[0] == MOVED

    async def test_without_vectors_it_is_left_for_the_tidying(self, settled: Settled) -> None:
        await settled.begin()
        await extraction(settled.home).run(ANN.id, backlog(at(1, MOVED)), {})
        assert {"User lives in Graz.", LINZ} <= set(await settled.home.texts(ANN))

    async def test_what_is_said_in_private_goes_to_no_provider_elsewhere(self, settled: Settled) -> None:
        facts = await settled.begin(here=False)
        await facts.run(ANN.id, backlog(at(1, MOVED), place=DM), {})
        assert settled.server.texts == [] and len(settled.home.model.extractions) == 1

    async def test_others_words_go_nowhere(self, settled: Settled) -> None:
        facts = await settled.begin()
        context = {GENERAL.session_key(ANN.id): [said(1, ME, "Where do you live?")]}
        await facts.run(ANN.id, backlog(at(2, f"> I hate all cats\n{MOVED}")), context)
        assert settled.server.texts[0].strip() == MOVED
        assert not [text for text in settled.server.texts if "cats" in text or "Where" in text]

    async def test_nothing_is_sent_about_somebody_who_wants_no_memory(self, settled: Settled) -> None:
        facts = await settled.begin()
        settled.opted_out = True
        await facts.run(ANN.id, backlog(at(1, MOVED)), {})
        assert settled.server.texts == []

    @pytest.mark.parametrize("fault", [Held(), failure(500), failure(401)])
    async def test_a_provider_that_hangs_or_fails_leaves_it_to_the_words(
        self, settled: Settled, fault: Any
    ) -> None:
        facts = await settled.begin(wait_s=0.05)
        settled.server.default = fault
        await facts.run(ANN.id, backlog(at(1, LEFT)), {})
        texts = await settled.home.texts(ANN)
        assert "User lives in Graz." in texts and LINZ not in texts

    async def test_what_a_place_may_not_show_is_never_in_the_prompt(self, settled: Settled) -> None:
        facts = await settled.begin()
        await settled.home.remember(ANN, "User moved to Graz for therapy.", marked="private")
        assert settled.embedding is not None
        await settled.embedding.settle()
        await facts.run(ANN.id, backlog(at(1, MOVED)), {})
        await facts.run(ANN.id, backlog(at(2, MOVED), place=DM), {})
        in_the_open, in_the_dm = settled.home.model.extractions
        assert "therapy" not in in_the_open and "therapy" in in_the_dm

    async def test_what_was_stated_becomes_a_question(self, settled: Settled) -> None:
        facts = await settled.begin()
        await settled.home.remember(ANN, LINZ)
        await facts.run(ANN.id, backlog(at(1, MOVED)), {})
        view = await settled.home.memory.view(SUBJECT)
        assert [conflict.text for conflict in view.conflicts] == ["User lives in Graz."]
        assert LINZ in await settled.home.texts(ANN)


class TestMeanwhile:
    async def begun(self, settled: Settled) -> tuple[asyncio.Task[bool], Held, Backlog]:
        """An extraction that waits for the provider."""
        facts, held, waiting = await settled.begin(), Held(asyncio.Event()), backlog(at(1, MOVED))
        settled.server.default = held
        run = asyncio.create_task(facts.run(ANN.id, waiting, {}))
        await settled.server.wait_for_text(MOVED)
        return run, held, waiting

    async def test_what_is_erased_is_shown_to_no_model(self, settled: Settled) -> None:
        run, held, _ = await self.begun(settled)
        await settled.home.memory.erase(SUBJECT, asked_at=NOW + 7_200_000)
        assert held.until is not None
        held.until.set()
        await run
        assert settled.home.model.extractions == [] and await settled.home.texts(ANN) == []

    async def test_what_is_taken_back_is_shown_to_no_model(self, settled: Settled) -> None:
        run, held, _ = await self.begun(settled)
        view = await settled.home.memory.view(SUBJECT)
        linz = next(one for one in view.active() if one.text == LINZ)
        forget = Origin("stated")
        await settled.home.memory.change(SUBJECT, "a test", lambda draft: draft.deprecate(linz, forget))
        assert held.until is not None
        held.until.set()
        await run
        (prompt,) = settled.home.model.extractions
        assert LINZ not in prompt

    async def test_a_run_that_is_killed_there_is_done_by_the_next(self, settled: Settled) -> None:
        run, _, waiting = await self.begun(settled)
        run.cancel()
        await asyncio.wait([run])
        assert len(waiting.waiting) == 1
        settled.server.default = None
        assert settled.embedding is not None
        facts = extraction(settled.home, Nearest(settled.embedding))
        await facts.run(ANN.id, waiting, {})
        texts = await settled.home.texts(ANN)
        assert "User lives in Graz." in texts and LINZ not in texts

    async def test_a_model_that_fails_after_it_changes_nothing(self, settled: Settled) -> None:
        facts, waiting = await settled.begin(), backlog(at(1, MOVED))
        settled.home.model.always = ModelOverloaded("down")
        with pytest.raises(ModelOverloaded):
            await facts.run(ANN.id, waiting, {})
        assert len(waiting.waiting) == 1 and LINZ in await settled.home.texts(ANN)
