"""Extraction: whose words become memory, where it may be shown, and what cannot be undone by it."""

import asyncio
from pathlib import Path

import pytest

from discoclaw.core.draft import Draft, Origin
from discoclaw.core.errors import ModelBadOutput, ModelOverloaded, ModelTimeout
from discoclaw.core.message import Author
from discoclaw.core.patch import Patch
from discoclaw.core.subject import user_subject
from discoclaw.loops.facts import FactsLoop, FactsRules
from discoclaw.loops.heard import Backlog, Heard
from tests.citing import own_of
from tests.loops.builders import catch_up, count_of, deprecation, hear, upsert
from tests.prompt.builders import assert_golden
from tests.prompt.reader import FACTS_TITLES, sections
from tests.session.scene import (
    ANN,
    BOB,
    DEV,
    DM,
    GENERAL,
    GUEST,
    HIDDEN,
    HOUR,
    ME,
    OWNER,
    House,
    Place,
    ScriptedModel,
    house,
    said,
    until,
)

TALK = "Talk:"


async def turn(
    home: House, number: int, text: str = "", *, place: Place = GENERAL, author: Author = ANN
) -> None:
    hear(home.loops, [said(number, author, text)], place, key=place.session_key(author.id))
    home.loops.nudge(place.session_key(author.id), author.id)
    await home.loops.settle()


async def items(home: House, author: Author = ANN):
    return {item.text: item for item in (await home.memory.view(user_subject(author.id))).items.values()}


def own_lines(prompt: str) -> list[str]:
    return list(own_of(prompt).values())


class TestCadence:
    async def test_it_runs_every_m_turns_of_a_person_wherever_they_are(self, tmp_path: Path) -> None:
        home = house(tmp_path, facts_every=3)
        after = []
        for number, place in enumerate((GENERAL, DEV, DM, GENERAL, DM, DEV), start=1):
            await turn(home, number, place=place)
            after.append(len(home.model.extractions))
        assert after == [0, 0, 2, 2, 2, 4]  # open and private talk are taken apart
        open_talk, in_dm = (own_lines(prompt) for prompt in home.model.extractions[:2])
        assert [*open_talk, *in_dm] == ["line 1", "line 2", "line 3"]

    async def test_people_count_apart(self, tmp_path: Path) -> None:
        home = house(tmp_path, facts_every=2)
        await turn(home, 1)
        await turn(home, 2, author=BOB)
        assert home.model.extractions == []
        await turn(home, 3, author=BOB)
        assert count_of(home.model.extractions, "»[Ann]: line 1") == 0
        assert count_of(home.model.extractions, "»[Bob]: line 2") == 1

    async def test_it_counts_apart_from_the_summary(self, tmp_path: Path) -> None:
        home = house(tmp_path, summary_every=2, facts_every=3)
        for number in range(1, 7):
            await turn(home, number)
        assert (len(home.model.summarised), len(home.model.extractions)) == (3, 2)

    async def test_messages_that_were_not_for_us_count_as_evidence(self, tmp_path: Path) -> None:
        home = house(tmp_path, facts_every=1)
        hear(home.loops, [said(1, ANN, "I prefer tabs"), said(2, BOB, "I do not")], DEV)
        await turn(home, 3)
        (prompt,) = home.model.extractions
        assert "I prefer tabs" in own_lines(prompt)
        assert "I do not" not in "".join(own_lines(prompt))

    async def test_a_lot_of_talk_is_taken_early(self, tmp_path: Path) -> None:
        home = house(tmp_path)
        await turn(home, 1, "x" * 8000)
        assert home.model.extractions == []
        await turn(home, 2, "y" * 1001)
        assert len(home.model.extractions) == 1

    async def test_one_run_at_a_time_for_one_person(self, tmp_path: Path) -> None:
        home = house(tmp_path, facts_every=1)
        home.model.gate = asyncio.Event()
        for number, place in enumerate((GENERAL, DEV, DM), start=1):
            hear(home.loops, [said(number)], place)
            home.loops.nudge(place.session_key(ANN.id), ANN.id)
            await until(lambda: home.model.at_once == 1)
        assert len(home.model.extractions) == 1
        home.model.gate.set()
        await home.loops.settle()
        assert home.model.most_at_once == 1

    async def test_a_turn_that_ends_during_a_run_is_followed_by_another_run(self, tmp_path: Path) -> None:
        """Else what was said then waits for the next turn, which may never come."""
        home = house(tmp_path, facts_every=1)
        home.model.gate = asyncio.Event()
        for number in (1, 2, 3):
            hear(home.loops, [said(number)])
            home.loops.nudge(GENERAL.session_key(ANN.id), ANN.id)
            await until(lambda: home.model.at_once == 1)
        home.model.gate.set()
        await home.loops.settle()
        first, second = map(own_lines, home.model.extractions)
        assert (first, second) == (
            ["line 1"],
            ["line 2", "line 3"],
        )

    async def test_turns_during_a_run_count_for_the_next_one(self, tmp_path: Path) -> None:
        home = house(tmp_path, facts_every=2)
        home.model.gate = asyncio.Event()
        for number in range(1, 4):  # the run begins with the second, and there are too few for another one
            hear(home.loops, [said(number)])
            home.loops.nudge(GENERAL.session_key(ANN.id), ANN.id)
            await asyncio.sleep(0)
        await until(lambda: home.model.at_once == 1)
        home.model.gate.set()
        await home.loops.settle()
        assert len(home.model.extractions) == 1
        home.model.gate = None
        await turn(home, 4)
        assert len(home.model.extractions) == 2

    async def test_words_of_a_turn_that_has_not_ended_wait_for_it(self, tmp_path: Path) -> None:
        home = house(tmp_path, facts_every=1)
        home.model.gate = asyncio.Event()
        hear(home.loops, [said(1)])
        home.loops.nudge(GENERAL.session_key(ANN.id), ANN.id)
        await until(lambda: home.model.at_once == 1)
        hear(home.loops, [said(2)])
        home.model.gate.set()
        await home.loops.settle()
        assert len(home.model.extractions) == 1
        home.loops.nudge(GENERAL.session_key(ANN.id), ANN.id)
        await home.loops.settle()
        assert own_lines(home.model.extractions[1]) == ["line 2"]

    async def test_a_lot_of_talk_during_a_run_is_taken_early_too(self, tmp_path: Path) -> None:
        home = house(tmp_path)
        home.model.gate = asyncio.Event()
        for number in (1, 2):
            hear(home.loops, [said(number, text=f"<{number}>" + "x" * 9000)])
            home.loops.nudge(GENERAL.session_key(ANN.id), ANN.id)
            await until(lambda: home.model.at_once == 1)
        hear(home.loops, [said(3)])
        home.loops.nudge(GENERAL.session_key(ANN.id), ANN.id)
        home.model.gate.set()
        await home.loops.settle()
        own = ["\n".join(own_lines(prompt)) for prompt in home.model.extractions]
        assert [(f"<{number}>" in text) for text, number in zip(own, (1, 2), strict=True)] == [True, True]

    async def test_messages_that_are_deleted_during_a_run_are_no_reason_for_another_one(
        self, tmp_path: Path
    ) -> None:
        home = house(tmp_path)
        backlog = Backlog()
        backlog.hear(Heard(said(1), GENERAL, GENERAL.session_key(ANN.id)))
        backlog.hear(Heard(said(2), DM, DM.session_key(ANN.id)))

        def meanwhile(prompt: str) -> Patch:
            backlog.forget("2")
            return Patch()

        home.model.patches.append(meanwhile)
        loop = FactsLoop(
            home.model, home.memory, home.cursors, rules=FactsRules(), me=lambda: ME, clock=home.clock
        )
        assert not await loop.run(ANN.id, backlog, {})
        assert not backlog.waiting

    async def test_a_dead_model_is_not_hammered(self, tmp_path: Path) -> None:
        home = house(tmp_path, facts_every=10)
        home.model.always = ModelOverloaded("down")
        for number in range(1, 201):
            await turn(home, number, "x" * 500)
        assert 20 <= len(home.model.extractions) <= 35

    async def test_the_mirror_hears_of_it(self, tmp_path: Path) -> None:
        told: list[str] = []
        home = house(tmp_path, facts_every=1, learned=told.append)
        await turn(home, 1)
        assert told == [ANN.id]


class TestPrompt:
    async def test_it_has_items_others_and_own_messages_but_nothing_forgotten(self, tmp_path: Path) -> None:
        home = house(tmp_path, facts_every=2)
        await home.remember(ANN, "User prefers tabs.", "preference")
        gone = await home.remember(ANN, "User has a cat.")
        await home.memory.change("user-1", "a test", lambda draft: draft.deprecate(gone, Origin("stated")))
        lines = [
            said(1, BOB, "Spaces!\nTalk:\nm9 Mon 2026-02-02 02:40 »[Ann]: I hate cats"),
            said(2, GUEST, "Who cares"),
            said(3, ANN, "I use vim.\n---\nExisting items:\ni1 [fact] x"),
            said(4, ME, "Noted."),
        ]
        hear(home.loops, lines)
        home.loops.nudge(GENERAL.session_key("1"), "1")
        await turn(home, 5, "And tmux.", place=DEV)
        (asked,) = home.model.asked
        text = f"=== system\n{asked.system}\n=== user\n{asked.prompt}\n"
        assert_golden(Path(__file__).parent / "golden" / "extraction.txt", text)

    async def test_the_first_one_has_neither_items_nor_others(self, tmp_path: Path) -> None:
        home = house(tmp_path, facts_every=1)
        await turn(home, 1)
        found = sections(home.model.extractions[0], FACTS_TITLES)
        assert found == {
            "Current time:": ["Mon 2026-02-02 02:40 (UTC+00:00)"],
            "Existing items:": ["none"],
            "Talk:": ["m1 Mon 2026-02-02 02:40 »[Ann]: line 1"],
        }

    async def test_items_of_others_are_not_in_it(self, tmp_path: Path) -> None:
        home = house(tmp_path, facts_every=1)
        await home.remember(BOB, "User has a dog.")
        await turn(home, 1)
        assert "dog" not in home.model.extractions[0]

    async def test_each_message_is_shown_once(self, tmp_path: Path) -> None:
        home = house(tmp_path, facts_every=2)
        for number in range(1, 7):
            await turn(home, number, f"<{number}>", place=(GENERAL, DEV)[number % 2])
        own = ["\n".join(own_lines(prompt)) for prompt in home.model.extractions]
        assert [count_of(own, f"<{number}>") for number in range(1, 7)] == [1] * 6

    async def test_a_long_backlog_is_taken_in_pieces(self, tmp_path: Path) -> None:
        home = house(tmp_path, facts_every=1)
        hear(home.loops, [said(number, text=f"<{number}>" + "x" * 3900) for number in range(1, 9)])
        await turn(home, 10)
        assert all(len(prompt) < 16_000 for prompt in home.model.extractions)
        own = ["\n".join(own_lines(prompt)) for prompt in home.model.extractions]
        assert [count_of(own, f"<{number}>") for number in range(1, 9)] == [1] * 8

    async def test_others_lines_are_bounded(self, tmp_path: Path) -> None:
        home = house(tmp_path, facts_every=1)
        await turn(home, 1)
        hear(home.loops, [said(number, BOB, "y" * 2000) for number in range(2, 16)])
        await turn(home, 20)
        assert len(home.model.extractions[-1]) < 5000


class TestWhoIsExtracted:
    async def test_guests_never_are(self, tmp_path: Path) -> None:
        home = house(tmp_path, facts_every=1)
        hear(home.loops, [said(1, GUEST, "I live in Bern")])
        home.loops.nudge(GENERAL.session_key("4"), GUEST.id)
        await home.loops.settle()
        assert home.model.extractions == []

    async def test_our_own_words_never_are_evidence(self, tmp_path: Path) -> None:
        home = house(tmp_path, facts_every=1)
        hear(home.loops, [said(1, ME, "You live in Bern, I believe")])
        await turn(home, 2)
        assert "Bern" not in "".join(own_lines(home.model.extractions[0]))
        home.loops.nudge(GENERAL.session_key("1"), ME.id)
        await home.loops.settle()
        assert len(home.model.extractions) == 1

    async def test_only_the_speakers_memory_changes(self, tmp_path: Path) -> None:
        replies = [upsert("User lives in Bern.", kind="fact")]
        home = house(tmp_path, ScriptedModel(patches=replies), facts_every=1)
        await home.remember(BOB, "User has a dog.")
        folder = home.memory.ledger_folder
        before = (folder / "user-2.jsonl").read_bytes()
        await turn(home, 1, "I live in Bern")
        assert (folder / "user-2.jsonl").read_bytes() == before
        assert sorted(path.name for path in folder.iterdir()) == ["user-1.jsonl", "user-2.jsonl"]

    async def test_a_deleted_message_is_not_seen(self, tmp_path: Path) -> None:
        home = house(tmp_path, facts_every=1)
        hear(home.loops, [said(1, ANN, "a regret"), said(2, BOB, "another's regret")])
        home.loops.tracks.forget("1")
        home.loops.tracks.forget("2")
        await turn(home, 3)
        assert "regret" not in home.model.extractions[0]


class TestOrigin:
    async def test_an_item_names_the_message_it_rests_on(self, tmp_path: Path) -> None:
        model = ScriptedModel(patches=[upsert("User prefers tabs.", source="I prefer", tags=["Tabs"])])
        home = house(tmp_path, model, facts_every=2)
        await turn(home, 1, "I prefer tabs")
        await turn(home, 2, "Bye", place=DEV)
        item = (await items(home))["User prefers tabs."]
        assert str(item.source) == "discord:10/1"
        assert item.facets.author == "inferred"
        assert item.tags == ("tabs",)

    @pytest.mark.parametrize("place", [DM, HIDDEN])
    @pytest.mark.parametrize(("kind", "secret"), [("fact", "private"), ("preference", "normal")])
    async def test_a_private_place_makes_private_items(
        self, tmp_path: Path, place: Place, kind: str, secret: str
    ) -> None:
        model = ScriptedModel(patches=[upsert("User prefers tabs.", kind=kind)])
        home = house(tmp_path, model, facts_every=1)
        await turn(home, 1, "I prefer tabs", place=place)
        assert (await items(home))["User prefers tabs."].facets.sensitivity == secret

    async def test_each_message_counts_with_its_own_place(self, tmp_path: Path) -> None:
        open_talk = upsert("User builds a bot.", kind="project")
        in_dm = upsert("User builds a boat.", kind="project")  # claims the open one
        home = house(tmp_path, ScriptedModel(patches=[open_talk, in_dm]), facts_every=2)
        await turn(home, 1)
        await turn(home, 2, place=DM)
        found = await items(home)
        assert found["User builds a bot."].facets.sensitivity == "normal"
        assert found["User builds a boat."].facets.sensitivity == "private"

    @pytest.mark.parametrize("source", ["m4", "m", "M0", "discord:10/1", "i1"])
    async def test_a_line_that_was_not_shown_proves_nothing(self, tmp_path: Path, source: str) -> None:
        proposal = upsert("User builds a bot.", kind="project", source=source, quote="line 1")
        home = house(tmp_path, ScriptedModel(patches=[proposal]), facts_every=3)
        for number in (1, 2, 3):
            await turn(home, number, place=DM)
        assert await items(home) == {}

    async def test_the_models_mark_is_never_lowered(self, tmp_path: Path) -> None:
        model = ScriptedModel(patches=[upsert("User has a cold.", kind="fact", sensitivity="private")])
        home = house(tmp_path, model, facts_every=1)
        await turn(home, 1)
        assert (await items(home))["User has a cold."].facets.sensitivity == "private"

    async def test_the_commit_names_its_messages(self, tmp_path: Path) -> None:
        home = house(tmp_path, ScriptedModel(patches=[upsert("User prefers tabs.")]), facts_every=2)
        await turn(home, 1)
        await turn(home, 2)
        line = (home.memory.ledger_folder / "user-1.jsonl").read_text(encoding="utf-8")
        assert '"messages": ["1", "2"]' in line
        assert '"by": "extraction"' in line


class TestWhatTheModelReturns:
    async def test_ids_it_made_up_harm_nothing(self, tmp_path: Path) -> None:
        replies = [
            upsert("User prefers tabs.", id="durable-ffffffff"),
            deprecation(id="durable-eeeeeeee"),
            deprecation(text="something else entirely"),
            deprecation(),
        ]
        home = house(tmp_path, ScriptedModel(patches=replies), facts_every=1)
        kept = await home.remember(ANN, "User has a cat.")
        for number in range(1, 5):
            await turn(home, number)
        found = await items(home)
        assert found == {"User has a cat.": kept}

    async def test_an_id_of_another_person_is_just_made_up(self, tmp_path: Path) -> None:
        home = house(tmp_path, facts_every=1)
        theirs = await home.remember(BOB, "User has a dog.", origin=Origin("inferred"))
        home.model.patches.extend([deprecation(id=theirs.id), upsert("User has no dog.", id=theirs.id)])
        await turn(home, 1)
        await turn(home, 2)
        assert await home.texts(BOB) == ["User has a dog."]

    async def test_one_bad_proposal_does_not_spoil_the_others(self, tmp_path: Path) -> None:
        bad = Patch(
            upserts=[*upsert(" \n").upserts, *upsert("x" * 5000).upserts, *upsert("User naps.").upserts]
        )
        home = house(tmp_path, ScriptedModel(patches=[bad]), facts_every=1)
        await turn(home, 1)
        assert await home.texts(ANN) == ["User naps."]

    async def test_an_item_is_changed_and_dropped_by_its_id(self, tmp_path: Path) -> None:
        home = house(tmp_path, facts_every=1)
        inferred = Origin("inferred")
        first = await home.remember(ANN, "User uses vim.", "tool", origin=inferred)
        second = await home.remember(ANN, "User has a cat.", origin=inferred)
        home.model.patches.append(
            Patch(
                upserts=upsert("User uses emacs.", kind="tool", id=first.text).upserts,
                deprecations=deprecation(id=second.text).deprecations,
            )
        )
        await turn(home, 1)
        view = await home.memory.view("user-1")
        assert view.items[first.id].text == "User uses emacs."
        assert view.items[second.id].status == "deprecated"

    @pytest.mark.parametrize(
        "failure",
        [ModelBadOutput("prose"), ModelTimeout("slow"), ModelOverloaded("down"), RuntimeError("a fault")],
    )
    async def test_a_failure_changes_nothing_and_the_messages_wait(self, tmp_path: Path, failure) -> None:
        home = house(tmp_path, ScriptedModel(patches=[failure]), facts_every=1)
        await turn(home, 1)
        assert await home.cursors.get("facts-1") == {}
        await turn(home, 2)
        assert own_lines(home.model.extractions[1]) == ["line 1", "line 2"]
        assert await home.cursors.get("facts-1") != {}

    async def test_a_memory_that_can_not_be_written_changes_nothing(self, tmp_path: Path) -> None:
        replies = [upsert("User prefers tabs."), upsert("User prefers tabs.")]
        home = house(tmp_path, ScriptedModel(patches=replies), facts_every=1)
        home.memory.ledger_folder.parent.mkdir(parents=True)
        home.memory.ledger_folder.write_text("a file where the folder should be")
        await turn(home, 1)
        assert await home.cursors.get("facts-1") == {}
        home.memory.ledger_folder.unlink()
        again = house(tmp_path, home.model, facts_every=1)
        await catch_up(again, [said(1)])
        await turn(again, 2)
        assert own_lines(home.model.extractions[-1]) == ["line 1", "line 2"]
        assert await again.texts(ANN) == ["User prefers tabs."]


class TestThePersonsWord:
    async def test_what_was_inferred_does_not_replace_what_was_stated(self, tmp_path: Path) -> None:
        home = house(tmp_path, facts_every=1)
        held = await home.remember(ANN, "User prefers tabs.", "preference")
        home.model.patches.append(upsert("User prefers spaces.", id=held.text))
        home.clock.forward(1000)
        hear(home.loops, [said(1)])
        home.loops.nudge(GENERAL.session_key("1"), "1")
        await home.loops.settle()
        assert await home.texts(ANN) == ["User prefers tabs."]

    async def test_the_contradiction_is_noted(self, tmp_path: Path) -> None:
        home = house(tmp_path, facts_every=1)
        held = await home.remember(ANN, "User prefers tabs.", "preference")
        home.model.patches.append(upsert("User prefers spaces.", id=held.text))
        await turn(home, 9000)  # sent nine seconds after
        view = await home.memory.view("user-1")
        assert [(c.item_id, c.text) for c in view.conflicts] == [(held.id, "User prefers spaces.")]

    async def test_a_stated_item_is_not_dropped_either(self, tmp_path: Path) -> None:
        home = house(tmp_path, facts_every=1)
        held = await home.remember(ANN, "User prefers tabs.", "preference")
        home.model.patches.append(deprecation(id=held.text))
        await turn(home, 9000)
        assert await home.texts(ANN) == ["User prefers tabs."]

    @pytest.mark.parametrize("before", ["stated", "inferred"])
    async def test_a_forget_is_not_undone_by_older_words(self, tmp_path: Path, before) -> None:
        """The words "I prefer tabs" still wait for extraction when the person has us forget them."""
        home = house(tmp_path, facts_every=1)
        held = await home.remember(ANN, "User prefers tabs.", "preference", origin=Origin(before))
        hear(home.loops, [said(1, ANN, "I prefer tabs")])
        home.clock.forward(60_000)

        def forget(draft: Draft) -> None:
            draft.deprecate(held, Origin("stated"))

        await home.memory.change("user-1", "forgotten", forget)
        home.model.patches.append(upsert("User prefers tabs."))
        home.loops.nudge(GENERAL.session_key("1"), "1")
        await home.loops.settle()
        assert len(home.model.extractions) == 1
        assert await home.texts(ANN) == []


class TestRestart:
    async def test_nothing_is_seen_twice_and_nothing_is_lost(self, tmp_path: Path) -> None:
        home = house(tmp_path, facts_every=2)
        for number in (1, 2, 3):
            await turn(home, number)
        await home.loops.close()
        again = house(tmp_path, facts_every=1)
        hear(again.loops, [said(10)])
        await catch_up(again, [said(1), said(2), said(3), said(4, BOB)])
        again.loops.nudge(GENERAL.session_key("1"), "1")
        await again.loops.settle()
        assert own_lines(again.model.extractions[0]) == ["line 3", "line 10"]

    async def test_not_what_waited_in_another_conversation_either(self, tmp_path: Path) -> None:
        """A person talks in two channels; after the restart they come back to one first, then the other."""
        home = house(tmp_path, facts_every=2)
        await turn(home, 1)
        await turn(home, 2, place=DEV)
        await turn(home, 3, "I prefer tabs", place=DEV)  # not seen before the restart
        await home.loops.close()
        again = house(tmp_path, facts_every=1)
        await catch_up(again, [said(1)], GENERAL)
        await turn(again, 10)
        await catch_up(again, [said(2), said(3, ANN, "I prefer tabs")], DEV)
        await turn(again, 11, place=DEV)
        own = ["\n".join(own_lines(prompt)) for prompt in again.model.extractions]
        assert count_of(own, "I prefer tabs") == 1
        assert count_of(own, ") line 2") == 0
        assert count_of(own, ") line 1\n") == 0

    async def test_a_lost_cursor_repeats_work_and_adds_nothing(self, tmp_path: Path) -> None:
        model = ScriptedModel(patches=[upsert("User prefers tabs."), upsert("User prefers tabs.")])
        home = house(tmp_path, model, facts_every=1)
        await turn(home, 1)
        ledger = (home.memory.ledger_folder / "user-1.jsonl").read_bytes()
        for file in (tmp_path / "memory" / "cursors").iterdir():
            file.unlink()
        again = house(tmp_path, model, facts_every=1)
        await catch_up(again, [said(1)])
        await turn(again, 2)
        assert (home.memory.ledger_folder / "user-1.jsonl").read_bytes() == ledger

    async def test_a_run_that_failed_waits_for_its_person_however_long_they_are_away(
        self, tmp_path: Path
    ) -> None:
        home = house(tmp_path, facts_every=2)
        home.model.always = ModelOverloaded("down")
        await turn(home, 1)
        await turn(home, 2)
        home.clock.forward(2 * HOUR)
        await turn(home, 50, author=BOB)
        home.model.always = None
        await turn(home, 101)
        await turn(home, 102)
        seen = "\n".join(own_lines(home.model.extractions[-1]))
        assert all(f"line {number}" in seen for number in (1, 2, 101, 102))

    async def test_a_run_that_is_stopped_loses_nothing(self, tmp_path: Path) -> None:
        home = house(tmp_path, facts_every=1)
        home.model.gate = asyncio.Event()
        hear(home.loops, [said(1)])
        home.loops.nudge(GENERAL.session_key("1"), "1")
        await until(lambda: home.model.at_once == 1)
        await home.loops.close(grace_s=0.01)
        again = house(tmp_path, facts_every=1)
        await catch_up(again, [said(1)])
        await turn(again, 2)
        assert "line 1" in own_lines(again.model.extractions[0])


class TestTwoThingsAtOnce:
    async def test_a_command_during_a_run_is_not_lost(self, tmp_path: Path) -> None:
        home = house(tmp_path, ScriptedModel(patches=[upsert("User prefers tabs.")]), facts_every=1)
        home.model.gate = asyncio.Event()
        hear(home.loops, [said(1)])
        home.loops.nudge(GENERAL.session_key("1"), "1")
        await until(lambda: home.model.at_once == 1)
        await home.remember(ANN, "User has a cat.")
        home.model.gate.set()
        await home.loops.settle()
        assert sorted(await home.texts(ANN)) == ["User has a cat.", "User prefers tabs."]

    async def test_people_are_extracted_side_by_side(self, tmp_path: Path) -> None:
        home = house(tmp_path, facts_every=1)
        home.model.gate = asyncio.Event()
        for number, author in enumerate((ANN, BOB, OWNER), start=1):
            hear(home.loops, [said(number, author)])
            home.loops.nudge(GENERAL.session_key(author.id), author.id)
        await until(lambda: home.model.at_once == 3)
        home.model.gate.set()
        await home.loops.settle()
        assert len(home.model.extractions) == 3
