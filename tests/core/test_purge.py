"""What was taken back: which texts and messages, by which changes, until when, and by which words."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discoclaw.core.draft import Draft, Origin
from discoclaw.core.draft_patch import apply_patch
from discoclaw.core.item import Facets, Item, Source
from discoclaw.core.message import Said
from discoclaw.core.patch import Patch
from discoclaw.core.purge import Purge, terms_of
from discoclaw.core.view import EMPTY, View, fold
from tests.core.builders import proposed, shown

STATED = Origin("stated")


def talk(message: int, at: int = 0, text: str = "") -> Origin:
    """The origin of what extraction proposes from one message."""
    return Origin("inferred", Source("discord", "9", str(message)), said_at=at or message, evidence=text)


class Ann:
    """A memory and its clock: each change is one commit."""

    def __init__(self) -> None:
        self.view: View = EMPTY
        self.now = 1_000

    def draft(self) -> Draft:
        self.now += 1_000
        return Draft(self.view, now_ms=self.now)

    def keep(self, draft: Draft) -> None:
        commit = draft.commit("a change")
        if commit is not None:
            after = draft.after(commit)
            assert fold([commit], self.view) == after  # what is read back is what was drafted
            self.view = after

    def learn(self, text: str, message: int, *, at: int = 0, kind: str = "fact") -> str:
        draft = self.draft()
        _, outcome = draft.upsert(kind, text, talk(message, at or self.now, text))
        self.keep(draft)
        return outcome

    def item(self, text: str) -> Item:
        return next(item for item in self.view.items.values() if item.text == text)

    def forget(self, text: str, origin: Origin = STATED) -> None:
        draft = self.draft()
        draft.deprecate(self.item(text), origin)
        self.keep(draft)

    def edit(self, text: str, new: str, origin: Origin = STATED) -> None:
        draft = self.draft()
        item = self.item(text)
        draft.upsert(item.kind, new, origin, given_id=item.id)
        self.keep(draft)

    def mark(self, text: str, level: str) -> None:
        draft = self.draft()
        draft.mark(self.item(text), level, STATED)  # type: ignore[arg-type]
        self.keep(draft)

    def purge(self) -> Purge:
        (found,) = self.view.purges("user-1")
        return found

    def says(self, text: str, message: int = 50, at: int | None = None) -> Said:
        return Said(str(message), "1", "Ann", text, self.now if at is None else at)


@pytest.fixture
def ann() -> Ann:
    return Ann()


class TestWhatCounts:
    def test_a_forgetting_names_the_text_and_the_message_it_came_from(self, ann: Ann) -> None:
        ann.learn("User drinks coffee black.", 7)
        ann.forget("User drinks coffee black.")
        found = ann.purge()
        assert (found.texts, dict(found.messages)) == (("User drinks coffee black.",), {"7": "9"})
        assert found.at == ann.now

    def test_a_removal_does_too(self, ann: Ann) -> None:
        ann.learn("User drinks coffee black.", 7)
        draft = ann.draft()
        draft.remove(ann.item("User drinks coffee black."), STATED)
        ann.keep(draft)
        assert ann.purge().texts == ("User drinks coffee black.",)

    def test_a_correction_takes_the_old_text_back_and_not_the_new_one(self, ann: Ann) -> None:
        ann.learn("User lives in Lisbon.", 7)
        ann.edit("User lives in Lisbon.", "User lives in Oslo.")
        found = ann.purge()
        assert found.texts == ("User lives in Lisbon.",)
        assert found.covers(ann.says("Lisbon is lovely"))
        assert not found.covers(ann.says("Oslo is lovely"))

    def test_what_a_model_tidies_is_not_taken_back(self, ann: Ann) -> None:
        ann.learn("User drinks coffee black.", 7)
        ann.learn("User lives in Lisbon.", 8)
        ann.forget("User drinks coffee black.", talk(20, ann.now + 2_000))
        ann.edit("User lives in Lisbon.", "User lives in Oslo.", talk(21, ann.now + 2_000))
        assert ann.view.taken_back == {}

    def test_unless_the_person_asked_the_model_for_it(self, ann: Ann) -> None:
        ann.learn("User drinks coffee black.", 7)
        asked = Origin("inferred", Source("discord", "9", "20"), said_at=ann.now + 5_000, asked=True)
        ann.forget("User drinks coffee black.", asked)
        assert ann.purge().texts == ("User drinks coffee black.",)

    def test_what_is_made_private_is_taken_back_from_the_open_until_it_is_shared(self, ann: Ann) -> None:
        ann.learn("User drinks coffee black.", 7)
        ann.mark("User drinks coffee black.", "private")
        found, said = ann.purge(), ann.says("my coffee is black")
        assert found.open_only
        assert found.covers(said)
        assert not found.covers(said, in_private=True)
        ann.mark("User drinks coffee black.", "normal")
        assert ann.view.taken_back == {}

    def test_what_is_remembered_again_was_not_taken_back(self, ann: Ann) -> None:
        ann.learn("User drinks coffee black.", 7)
        ann.forget("User drinks coffee black.")
        draft = ann.draft()
        draft.upsert("fact", "user drinks  coffee black.", STATED)
        ann.keep(draft)
        assert ann.view.taken_back == {}


class TestSettling:
    def disputed(self, ann: Ann) -> None:
        """Ann said with a command that she lives in Rome; later talk says Oslo."""
        draft = ann.draft()
        draft.upsert("fact", "User lives in Rome.", STATED, facets=Facets(key="home"))
        ann.keep(draft)
        draft = ann.draft()
        oslo = talk(8, ann.now, "I live in Oslo")
        draft.upsert("fact", "User lives in Oslo.", oslo, facets=Facets(key="home"))
        ann.keep(draft)

    def settle(self, ann: Ann, how: str) -> None:
        (conflict,) = ann.view.conflicts
        draft = ann.draft()
        draft.settle(conflict, how, STATED)  # type: ignore[arg-type]
        ann.keep(draft)

    def test_against_the_new_text_takes_that_back_with_its_message(self, ann: Ann) -> None:
        self.disputed(ann)
        self.settle(ann, "keep_old")
        assert (ann.purge().texts, set(ann.purge().messages)) == (("User lives in Oslo.",), {"8"})
        assert ann.learn("User has a home in Oslo.", 8, at=1_500) == "ignored"
        assert ann.view.conflicts == ()

    def test_against_the_old_text_takes_that_back(self, ann: Ann) -> None:
        self.disputed(ann)
        self.settle(ann, "use_new")
        assert ann.purge().texts == ("User lives in Rome.",)

    def test_for_both_takes_nothing_back(self, ann: Ann) -> None:
        self.disputed(ann)
        self.settle(ann, "both_valid")
        assert ann.view.taken_back == {}


class TestWhatWaitsForAYes:
    def test_is_not_asked_any_more_if_it_has_the_words(self, ann: Ann) -> None:
        ann.learn("User drinks coffee black.", 7)
        for number, text in enumerate(["User takes black coffee.", "User plays the cello."]):
            draft = ann.draft()
            draft.upsert("preference", text, replace(talk(8 + number, ann.now, text), needs_yes=True))
            ann.keep(draft)
        assert len(ann.view.pending) == 2
        ann.forget("User drinks coffee black.")
        assert [one.text for one in ann.view.pending] == ["User plays the cello."]


class TestTheMessagesAnItemRestsOn:
    def test_another_message_that_says_the_same_is_one_of_them(self, ann: Ann) -> None:
        ann.learn("User drinks coffee black.", 7)
        for message in (8, 8, 9):
            draft = ann.draft()
            origin = talk(message, ann.now, "black coffee is what I drink")
            apply_patch(draft, Patch(upserts=[proposed("User drinks coffee black.")]), shown(origin))
            ann.keep(draft)
        item = ann.item("User drinks coffee black.")
        assert ann.view.sources[item.id] == ("discord:9/7", "discord:9/8", "discord:9/9")
        ann.forget(item.text)
        assert set(ann.purge().messages) == {"7", "8", "9"}

    def test_one_that_only_a_model_connects_with_it_is_none(self, ann: Ann) -> None:
        ann.learn("User drinks coffee black.", 7)
        draft = ann.draft()
        draft.confirm(ann.item("User drinks coffee black."), talk(8, ann.now, "what a nice day"))
        assert draft.events == []

    def test_a_new_text_rests_on_its_own_message(self, ann: Ann) -> None:
        ann.learn("User lives in Lisbon.", 7)
        ann.edit("User lives in Lisbon.", "User lives in Oslo.", talk(8, ann.now + 2_000))
        assert ann.view.sources[ann.item("User lives in Oslo.").id] == ("discord:9/8",)


class TestNothingComesBackFromOlderWords:
    @pytest.mark.parametrize(
        "again",
        ["User drinks coffee black.", "User takes black coffee", "The user's coffee is always black!"],
    )
    def test_however_a_model_words_it(self, ann: Ann, again: str) -> None:
        ann.learn("User drinks coffee black.", 7)
        ann.forget("User drinks coffee black.")
        before = ann.now
        assert ann.learn(again, 8, at=before) == "ignored"
        assert ann.learn(again, 8, at=before, kind="preference") == "ignored"
        assert [item.text for item in ann.view.active()] == []

    def test_what_is_said_anew_is_learned_again(self, ann: Ann) -> None:
        ann.learn("User drinks coffee black.", 7)
        ann.forget("User drinks coffee black.")
        assert ann.learn("User takes black coffee.", 8, at=ann.now + 1) == "added"

    def test_other_things_are_learned_from_older_words(self, ann: Ann) -> None:
        ann.learn("User drinks coffee black.", 7)
        ann.forget("User drinks coffee black.")
        assert ann.learn("User plays the cello.", 8, at=1) == "added"

    def test_words_of_what_is_still_remembered_are_no_evidence(self, ann: Ann) -> None:
        ann.learn("User drinks coffee black.", 7)
        ann.learn("User owns a coffee machine.", 8)
        ann.forget("User drinks coffee black.")
        assert not ann.purge().covers(ann.says("the coffee machine is broken"))
        assert ann.purge().covers(ann.says("as black as night"))


class TestTheWords:
    @pytest.mark.parametrize(
        ("taken", "said"),
        [
            ("User's salary is 90000.", "I earn 90,000 a year"),
            ("User's salary is 90000.", "so my salaries were paid"),
            ("User's sister lives in Lisbon.", "LISBON!"),
            ("User hat eine Katze namens Mieze.", "Mieze schläft"),
            ("User likes 寿司.", "昨日は寿司を食べた"),
            ("User is here.", "The user is here. Really."),
        ],
    )
    def test_are_recognised_in_other_forms(self, ann: Ann, taken: str, said: str) -> None:
        ann.learn(taken, 7)
        ann.forget(taken)
        assert ann.purge().covers(ann.says(said))

    @pytest.mark.parametrize("said", ["good morning", "I like people", "User prefers this", ""])
    def test_are_not_those_that_everybody_uses(self, ann: Ann, said: str) -> None:
        ann.learn("User likes good coffee in the morning with people.", 7)
        ann.forget("User likes good coffee in the morning with people.")
        assert not ann.purge().covers(ann.says(said))

    @pytest.mark.parametrize("short", ["e", "ok", "so what"])
    def test_of_a_short_text_that_says_little_are_only_that_text(self, ann: Ann, short: str) -> None:
        ann.learn(short, 7)
        ann.forget(short)
        assert ann.purge().covers(ann.says(f"{short}!"))
        assert not ann.purge().covers(ann.says(f"here we are {short} and there"))
        assert not ann.purge().words.hold("Everybody ate the cheese, so what else is there?")

    @pytest.mark.parametrize("text", ["User likes zebras.", "User mag Zebras", "J'aime les zebras"])
    def test_are_not_how_memories_are_worded(self, ann: Ann, text: str) -> None:
        ann.learn(text, 7)
        ann.forget(text)
        words = ann.purge().words
        assert words.hold("a zebra") and not words.hold("Bob likes pizza") and not words.hold("Bob mag Pizza")
        assert not words.hold("j'aime la pizza")

    def test_of_others_stay(self, ann: Ann) -> None:
        ann.learn("User drinks coffee black.", 7)
        ann.forget("User drinks coffee black.")
        bob = Said("8", "2", "Bob", "black coffee for me", ann.now)
        answer = Said("9", "5", "Bot", "Your coffee is black.", ann.now, by_us=True, to_id="1")
        assert not ann.purge().covers(bob)
        assert ann.purge().covers(answer)

    def test_said_later_stay_unless_they_answer_an_earlier_question(self, ann: Ann) -> None:
        ann.learn("User drinks coffee black.", 7)
        ann.forget("User drinks coffee black.")
        later = ann.says("black coffee", at=ann.now + 1)
        assert not ann.purge().covers(later)
        assert ann.purge().covers(later, asked_at=ann.now)

    @given(st.text(max_size=40))
    def test_terms_of_any_text_are_found_in_it_again(self, text: str) -> None:
        assert terms_of(text) <= terms_of(f"{text}\n{text}") | terms_of(text)
        view = View({"a": Item("a", "fact", text, (), "active", Source(), 1, 1, Facets())})
        assert view.purges("user-1") == []


class TestATextWithoutAWordOfItsOwn:
    @pytest.mark.parametrize(
        ("taken", "held", "gone", "stays"),
        [
            (
                "User's key lies under pot A.",
                ["User's bike lies under pot B.", "User has a key for stand A."],
                [
                    "my key lies under pot A",
                    "Ann: \u201cthe key lies under pot a\u201d, she said",
                    "(key lies under pot A)",
                ],
                ["my bike lies under pot B", "key for stand A"],
            ),
            (
                "notes/plan",
                ["notes/plan.old", "User has notes.", "User has a plan."],
                ["see notes/plan.", "it's in notes/plan, or was"],
                ["see notes/plan.old", "old notes/plan.old again"],
            ),
            (
                "User likes tea.",
                ["User likes tea with milk.", "User likes coffee."],
                ["Ann likes tea."],
                ["User likes tea with milk.", "tea is fine"],
            ),
            (
                "User's key lies here. The bike stands there.",
                ["User's key and bike"],
                ["Ann's key lies here.", "the bike stands there"],
                ["a key and a bike"],
            ),
        ],
    )
    def test_is_recognised_as_a_whole(
        self, ann: Ann, taken: str, held: list[str], gone: list[str], stays: list[str]
    ) -> None:
        for number, text in enumerate([taken, *held]):
            ann.learn(text, number + 1)
        ann.forget(taken)
        words = ann.purge().words
        assert [line for line in gone if not words.hold(line)] == []
        assert [line for line in (*stays, *held) if words.hold(line)] == []

    @given(
        st.lists(
            st.sampled_from(["key", "pot", "bike", "A", "B", "notes/plan", "notes/plan.old", "under", "the"]),
            min_size=1,
            max_size=6,
        ),
        st.lists(
            st.sampled_from(["key", "pot", "bike", "A", "B", "notes/plan", "notes/plan.old", "under", "the"]),
            min_size=1,
            max_size=6,
        ),
    )
    def test_leaves_no_line_and_takes_no_other_memorys(self, one: list[str], other: list[str]) -> None:
        first, second = " ".join(one), " ".join(other)
        ann = Ann()
        ann.learn(first, 1)
        ann.learn(second, 2)
        if len(ann.view.active()) < 2:
            return  # they are the same memory
        ann.forget(first)
        words = ann.purge().words
        assert not words.hold(f"{second}.") and not words.hold(f"Bob: {second}")
        if f" {first.lower()} " not in f" {second.lower()} " and not {"the", "under", "a", "b"} >= set(
            first.lower().split()
        ):
            assert words.hold(f"- {first}") and words.hold(f'Ann said "{first}" then.')


WORDS = st.sampled_from(["zebra", "quokka", "lemur", "okapi"])
STEPS = st.lists(
    st.tuples(st.sampled_from(["learn", "forget", "edit", "mark", "share", "tidy"]), WORDS, WORDS),
    max_size=12,
)


class TestOverAnyHistory:
    @given(STEPS)
    def test_no_word_is_both_taken_back_and_remembered_in_the_open(
        self, steps: list[tuple[str, str, str]]
    ) -> None:
        ann = Ann()
        for number, (verb, word, other) in enumerate(steps):
            text, held = f"User keeps a {word}.", [item.text for item in ann.view.active()]
            if verb == "learn":
                ann.learn(text, 100 + number)
            elif text in held:
                if verb == "forget":
                    ann.forget(text)
                elif verb == "edit":
                    ann.edit(text, f"User keeps a {other}.")
                elif verb == "tidy":
                    ann.forget(text, talk(100 + number, ann.now + 2_000))
                else:
                    ann.mark(text, "private" if verb == "mark" else "normal")
            open_now = {item.text for item in ann.view.visible(in_dm=False)}
            for one in ann.view.purges("user-1"):
                assert not set(one.texts) & open_now
                words = {text.split()[-1].rstrip(".") for text in open_now}
                assert not any(one.words.hold(word) for word in words)
