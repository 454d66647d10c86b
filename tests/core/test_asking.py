"""Questions in return: what a model may ask, and what becomes of a proposal that carries a question."""

import json
from dataclasses import replace
from typing import Any

import pytest

from discoclaw.core.draft_patch import LONGEST, Shown, apply_patch, question
from discoclaw.core.errors import Refused
from discoclaw.core.event import decode_line, encode_line
from discoclaw.core.patch import AskingPatch, Deprecation, Patch
from discoclaw.core.view import fold
from discoclaw.memory.subjects.verbs import drop_proposed, keep_proposed
from tests.core.builders import Diary, inferred, proposed, shown, stated
from tests.tables import each_row

MOVED = "User has moved to Graz for good."
ASK = "Shall I remember that you moved to Graz for good?"


@pytest.fixture
def diary() -> Diary:
    return Diary()


def asking(**given: Any) -> Shown:
    return replace(shown(inferred(), **given), may_ask=True)


def take(diary: Diary, *upserts: Any, seen: Shown | None = None) -> list[str]:
    """Let a diary take a patch. Returns why proposals were rejected."""
    draft = diary.draft()
    refused = apply_patch(draft, Patch(upserts=list(upserts)), seen or asking())
    diary.keep(draft)
    return refused


def waiting(diary: Diary) -> list[tuple[str, str]]:
    return [(one.text, one.question) for one in diary.view.pending]


class TestAQuestion:
    @each_row("text", [ASK, "Wohnst du jetzt in Graz?", "グラーツに引っ越した？"])
    def test_is_taken_as_it_is(self, text: str) -> None:
        assert question(f"  {text}\n") == text

    @each_row(
        "text",
        [
            "You moved to Graz.",
            "Shall I remember\nthat you moved?",
            "Shall I remember\u2028that you moved?",
            f"Is it {'very ' * 40}true?",
            "Is <@123456> your boss?",
            "Are you in <#42>?",
            "Do you like <:tea:42>?",
            "Are you @everyone?",
            "Are you @Here?",
            "Is https://example.org yours?",
            "",
            "\x00",
        ],
    )
    def test_that_is_none_or_could_do_something_is_refused(self, text: str) -> None:
        with pytest.raises(Refused):
            question(text)

    def test_may_have_two_hundred_characters_as_discord_counts_them(self) -> None:
        assert question("😀" * 99 + "x?")
        with pytest.raises(Refused):
            question("😀" * 100 + "?")
        assert LONGEST == 200

    def test_survives_what_no_disk_can_hold(self) -> None:
        assert question("half of \ud83d?") == "half of \ufffd?"


class TestAProposalWithOne:
    def test_waits_with_its_question_and_the_others_are_learned(self, diary: Diary) -> None:
        assert take(diary, proposed("User likes tea."), proposed(MOVED, ask=ASK)) == []
        assert (diary.texts(), waiting(diary)) == (["User likes tea."], [(MOVED, ASK)])

    def test_is_the_persons_own_word_with_their_yes(self, diary: Diary) -> None:
        take(diary, proposed(MOVED, ask=ASK))
        draft = diary.draft()
        keep_proposed(draft, diary.view.pending[0], stated())
        diary.keep(draft)
        (item,) = diary.view.active()
        assert (item.text, item.facets.author, waiting(diary)) == (MOVED, "stated", [])

    def test_may_change_an_item(self, diary: Diary) -> None:
        held = diary.remember("User lives in Linz.", origin=inferred())
        take(diary, proposed(MOVED, id="i1", ask=ASK), seen=asking(items=[held.id]))
        assert (diary.texts(), waiting(diary)) == (["User lives in Linz."], [(MOVED, ASK)])
        assert diary.view.pending[0].item.id == held.id

    @pytest.mark.parametrize(
        ("text", "ask", "marked"),
        [
            (MOVED, ASK, "private"),
            ("User has diabetes.", "Is it so?", "normal"),
            ("User eats no sugar.", "Do you have diabetes?", "normal"),
        ],
    )
    def test_is_as_private_as_its_words_and_those_of_its_question(
        self, diary: Diary, text: str, ask: str, marked: Any
    ) -> None:
        take(diary, proposed(text, ask=ask, sensitivity=marked))
        assert diary.view.pending[0].sensitivity == "private"

    def test_is_open_where_neither_is_personal(self, diary: Diary) -> None:
        take(diary, proposed("User eats no sugar.", ask="Do you eat no sugar at all?"))
        assert diary.view.pending[0].sensitivity == "normal"

    def test_is_read_from_the_ledger_as_it_was_written(self, diary: Diary) -> None:
        take(diary, proposed(MOVED, ask=ASK))
        lines = [decode_line(encode_line(commit)) for commit in diary.commits]
        assert fold(lines).pending == diary.view.pending  # type: ignore[arg-type]

    def test_stays_out_where_nothing_may_be_asked(self, diary: Diary) -> None:
        refused = take(diary, proposed("User likes tea."), proposed(MOVED, ask=ASK), seen=shown(inferred()))
        assert refused == ["it is unsure, and nothing may be asked now"]
        assert (diary.texts(), waiting(diary)) == (["User likes tea."], [])

    def test_is_the_only_one_of_its_patch(self, diary: Diary) -> None:
        refused = take(diary, proposed(MOVED, ask=ASK), proposed("User likes Graz.", ask="Do you like it?"))
        assert refused == ["it is unsure, and another question is open"]
        assert (diary.texts(), waiting(diary)) == ([], [(MOVED, ASK)])

    def test_stays_out_while_another_question_is_open(self, diary: Diary) -> None:
        held = diary.remember("User lives in Linz.")
        take(diary, proposed("User lives in Rome.", id="i1"), seen=asking(items=[held.id]))
        assert diary.view.conflicts
        assert take(diary, proposed(MOVED, ask=ASK)) == ["it is unsure, and another question is open"]
        assert waiting(diary) == []

    def test_stays_out_if_it_quotes_what_the_person_did_not_say(self, diary: Diary) -> None:
        (refused,) = take(diary, proposed(MOVED, ask=ASK, quote="words that nobody said"))
        assert "not what the person said" in refused
        assert (diary.texts(), waiting(diary)) == ([], [])

    def test_stays_out_if_its_question_can_not_be_shown(self, diary: Diary) -> None:
        refused = take(diary, proposed(MOVED, ask="Graz @everyone?"), proposed("User likes tea."))
        assert refused == ["a question to the person can't hold mentions or links"]
        assert (diary.texts(), waiting(diary)) == (["User likes tea."], [])

    def test_never_overrides_what_the_person_stated(self, diary: Diary) -> None:
        held = diary.remember("User lives in Linz.")
        take(diary, proposed(MOVED, id="i1", ask=ASK), seen=asking(items=[held.id]))
        assert (diary.texts(), waiting(diary)) == (["User lives in Linz."], [])
        assert diary.view.conflicts == ()  # a guess isn't a contradiction to settle

    def test_is_not_proposed_again_after_a_no_to_the_same_words(self, diary: Diary) -> None:
        take(diary, proposed(MOVED, ask=ASK), seen=replace(shown(inferred(said_at=1)), may_ask=True))
        draft = diary.draft()
        drop_proposed(draft, diary.view.pending[0], stated())
        diary.keep(draft)
        take(diary, proposed(MOVED, ask=ASK), seen=replace(shown(inferred(said_at=2)), may_ask=True))
        assert (diary.texts(), waiting(diary)) == ([], [])

    @pytest.mark.parametrize(
        ("text", "ask"),
        [("User breeds axolotls.", "Is it so?"), ("User has pets.", "Do you breed axolotls?")],
    )
    def test_ends_when_the_person_takes_back_what_either_of_the_two_says(
        self, diary: Diary, text: str, ask: str
    ) -> None:
        held = diary.remember("User talks about axolotls.", origin=inferred())
        take(diary, proposed(text, ask=ask))
        assert waiting(diary) == [(text, ask)]
        diary.deprecate(held)
        assert waiting(diary) == []

    @pytest.mark.parametrize("ask", ["", "  ", None])
    def test_that_is_blank_is_none(self, diary: Diary, ask: str | None) -> None:
        draft = diary.draft()
        body = {"kind": "fact", "text": "User likes tea.", "source": "m1", "ask": ask}
        quote = proposed("x").quote
        patch = AskingPatch.model_validate({"upserts": [{**body, "quote": quote}]})
        assert apply_patch(draft, patch, asking()) == []
        diary.keep(draft)
        assert (diary.texts(), waiting(diary)) == (["User likes tea."], [])


class TestTheShape:
    def test_names_the_question_only_where_one_may_be_asked(self) -> None:
        assert '"ask"' in json.dumps(AskingPatch.model_json_schema())
        assert '"ask"' not in json.dumps(Patch.model_json_schema())

    def test_reads_a_question_that_nobody_asked_for_too(self) -> None:
        body = {"kind": "fact", "text": MOVED, "source": "m1", "quote": "moved to Graz", "ask": ASK}
        for shape in (Patch, AskingPatch):
            assert shape.model_validate({"upserts": [body]}).upserts[0].ask == ASK

    def test_has_the_other_lists_as_well(self) -> None:
        gone = {"id": "i1", "source": "m1", "quote": "no longer in Linz"}
        patch = AskingPatch.model_validate({"deprecations": [gone]})
        assert patch.deprecations == [Deprecation(id="i1", source="m1", quote="no longer in Linz")]
