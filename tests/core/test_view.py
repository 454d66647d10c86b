"""The fold: what a chain of events adds up to, however it is cut."""

from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from discoclaw.core.draft import Draft, Origin
from discoclaw.core.errors import Refused
from discoclaw.core.event import Commit, Event
from discoclaw.core.item import KINDS, item_id
from discoclaw.core.times import iso_ms, ms_of_iso
from discoclaw.core.view import EMPTY, View, fold
from discoclaw.memory.subjects.durable_file import apply_edits
from tests.core.builders import NOW, Diary, as_file, inferred, item, stated
from tests.examples import FEW

WORDS = ["likes tea", "Likes  TEA", "likes coffee", "works at Acme", "lives in Oslo", "two\nlines", "", "ok"]

ORIGINS = st.builds(
    Origin,
    author=st.sampled_from(["stated", "inferred"]),
    said_at=st.sampled_from([0, NOW, NOW * 2]),
    private=st.booleans(),
    evidence=st.sampled_from(["", "said so"]),
)
WISHES = st.one_of(
    st.tuples(
        st.just("upsert"),
        ORIGINS,
        st.sampled_from([*KINDS[:3], "note"]),
        st.sampled_from(WORDS),
        st.lists(st.sampled_from(["a", "b", "C"]), max_size=2),
        st.none() | st.integers(0, 5),
    ),
    st.tuples(
        st.sampled_from(["deprecate", "remove", "private", "share", "edit", "cut"]),
        ORIGINS,
        st.integers(0, 5),
    ),
)
HISTORIES = st.lists(st.lists(WISHES, max_size=4), max_size=8)


def wish(draft: Draft, action: str, origin: Origin, *rest: Any) -> None:
    """Put one random wish to a draft; a refusal is an answer too."""
    held = list(draft.items.values())
    if action == "upsert":
        kind, text, tags, number = rest
        given_id = held[number].id if number is not None and number < len(held) else None
        try:
            draft.upsert(kind, text, origin, tags=tags, given_id=given_id)
        except Refused:
            return
    elif rest[0] < len(held):
        target = held[rest[0]]
        if action == "deprecate":
            draft.deprecate(target, origin)
        elif action == "remove":
            draft.remove(target, origin)
        elif action in ("private", "share"):
            draft.mark(target, "private" if action == "private" else "normal", stated())
        else:
            base = dict(draft.items)
            edited = as_file(held, **{target.id: {"text": f"{target.text} edited"}})
            apply_edits(
                draft, base, [one for one in edited if action == "edit" or one.id != target.id], origin
            )


def live(history: list[list[tuple[Any, ...]]], diary: Diary) -> None:
    """Go through a random history, checking on the way that a draft foresees the view."""
    for wishes in history:
        draft = diary.draft()
        for one in wishes:
            wish(draft, *one)
        diary.keep(draft)
        assert list(draft.items.items()) == list(diary.view.items.items())


def same(one: View, other: View) -> None:
    assert one == other
    assert list(one.items) == list(other.items), "the order of the items differs"


class TestAFoldIsTheSameHoweverItIsCut:
    @FEW
    @given(HISTORIES, st.integers(0, 10))
    def test_step_by_step_at_once_or_in_two_parts_which_leave_where_they_start_alone(
        self, history: list[Any], cut: int
    ) -> None:
        diary = Diary(max_items=4)
        live(history, diary)
        same(fold(diary.commits), diary.view)
        start = fold(diary.commits[:cut])
        items, last_event = dict(start.items), dict(start.last_event)
        same(fold(diary.commits[cut:], start), diary.view)
        assert (dict(start.items), dict(start.last_event)) == (items, last_event)
        assert (EMPTY.items, EMPTY.conflicts) == ({}, ())

    @FEW
    @given(HISTORIES)
    def test_the_commits_are_a_chain_whose_times_rise_and_the_view_says_where_it_stands(
        self, history: list[Any]
    ) -> None:
        diary = Diary(max_items=3)
        live(history, diary)
        ids = [commit.id for commit in diary.commits]
        assert [commit.parent_id for commit in diary.commits] == [None, *ids][: len(ids)]
        times = [ms_of_iso(commit.timestamp) for commit in diary.commits]
        assert times == sorted(set(times))
        assert len(set(ids)) == len(ids) == diary.view.commits
        assert len(diary.view.items) <= 3
        assert diary.view.head == (ids[-1] if ids else None)
        assert set(diary.view.last_event) == set(diary.view.items)
        known = {event.id for commit in diary.commits for event in commit.events}
        assert set(diary.view.last_event.values()) <= known


class TestChangesAreEventsOnTopOfEvents:
    def test_a_modify_names_the_event_it_changes_and_the_view_shows_the_new_value(self) -> None:
        diary = Diary()
        held = diary.remember("lives in Oslo")
        diary.remember("lives in Rome", given_id=held.id)
        diary.remember("lives in Bonn", given_id=held.id)
        events = [event for commit in diary.commits for event in commit.events]
        assert [event.event_type for event in events] == ["add", "modify", "modify"]
        assert [event.parent_id for event in events] == [None, events[0].id, events[1].id]
        assert diary.texts() == ["lives in Bonn"]

    def test_a_forget_is_a_new_event_and_history_still_shows_the_original(self) -> None:
        diary = Diary()
        held = diary.remember("lives in Oslo")
        draft = diary.draft()
        draft.remove(held, stated(evidence="please forget it"))
        diary.keep(draft)
        assert diary.view.items == {}
        added, forgotten = [event for commit in diary.commits for event in commit.events]
        assert (added.event_type, added.object) == ("add", "lives in Oslo")
        assert (forgotten.event_type, forgotten.parent_id) == ("forget", added.id)
        assert forgotten.evidence == "please forget it"

    def test_what_was_forgotten_and_is_said_again_is_a_new_beginning(self) -> None:
        diary = Diary()
        held = diary.remember("lives in Oslo")
        draft = diary.draft()
        draft.remove(held, stated())
        diary.keep(draft)
        again = diary.remember("lives in Oslo")
        assert again.id == held.id
        assert again.created_at > held.created_at
        assert diary.commits[-1].events[0].parent_id is None


def bare(event_type: str = "add", **fields: Any) -> Event:
    """An event of the ledger's design, without our extension."""
    given_fields = {"subject": "user", "predicate": "prefers", "object": "Python", "timestamp": iso_ms(NOW)}
    return Event(event_type=event_type, **{**given_fields, **fields})  # type: ignore[arg-type]


def commit_of(*events: Event) -> Commit:
    return Commit(branch="main", events=events, message="", parent_id=None, timestamp=iso_ms(NOW))


class TestABareTripleIsAnItemToo:
    def test_its_text_is_made_from_it(self) -> None:
        view = fold([commit_of(bare(scope="work", confidence=0.5, sensitivity="private"))])
        (held,) = view.items.values()
        assert (held.kind, held.text) == ("fact", "User prefers Python")
        assert held.id == item_id("fact", "User prefers Python")
        assert (held.facets.scope, held.facets.confidence, held.facets.sensitivity) == (
            "work",
            0.5,
            "private",
        )

    def test_a_modify_finds_it_by_its_parent(self) -> None:
        first = bare()
        view = fold([commit_of(first, bare("modify", object="Rust", parent_id=first.id))])
        assert [held.text for held in view.items.values()] == ["User prefers Rust"]

    def test_a_forget_finds_it_by_its_parent_or_by_its_words(self) -> None:
        first = bare()
        assert fold([commit_of(first, bare("forget", object="", parent_id=first.id))]).items == {}
        assert fold([commit_of(first, bare("forget"))]).items == {}

    def test_an_event_may_name_any_earlier_event_of_the_item_as_its_parent(self) -> None:
        first = bare()
        second = bare("modify", object="Rust", parent_id=first.id)
        third = bare("forget", object="", parent_id=first.id)
        assert fold([commit_of(first, second, third)]).items == {}

    def test_an_observation_changes_nothing(self) -> None:
        assert fold([commit_of(bare("observe"))]).items == {}

    def test_changing_or_forgetting_what_is_not_here_changes_nothing(self) -> None:
        view = fold([commit_of(bare("modify", parent_id="0" * 16), bare("forget", parent_id="0" * 16))])
        assert view.items == {}

    def test_a_triple_longer_than_an_item_can_be_is_taken_and_cut(self) -> None:
        (held,) = fold([commit_of(bare(object="x" * 5000))]).items.values()
        assert held.text.startswith("User prefers xxx")
        assert len(held.text) <= 1000

    def test_a_triple_of_nothing_is_taken(self) -> None:
        assert len(fold([commit_of(bare(subject="", predicate="\ufeff", object="\x00"))]).items) == 1


class TestLinks:
    def test_forgetting_an_item_drops_the_links_to_it(self) -> None:
        events = [
            bare(ext={"item": {"id": "durable-1", "text": "one"}}),
            bare(
                ext={
                    "item": {"id": "durable-2", "text": "two"},
                    "facets": {"links": ["durable-1", "durable-3"]},
                }
            ),
            bare("forget", ext={"item": {"id": "durable-1"}}),
        ]
        view = fold([commit_of(*events)])
        assert view.items["durable-2"].facets.links == {"durable-3"}

    def test_a_change_that_says_nothing_of_links_keeps_them(self) -> None:
        diary = Diary()
        facets = {"links": ["durable-2"], "key": "k"}
        diary.view = fold(
            [commit_of(bare(ext={"item": {"id": "durable-1", "text": "one"}, "facets": facets}))]
        )
        held = diary.remember("uno", given_id="durable-1")
        assert (held.facets.links, held.facets.key) == ({"durable-2"}, "k")


class TestTimeNeverStandsStill:
    def test_commits_rise_though_the_clock_stands_or_goes_back(self) -> None:
        view, times = EMPTY, []
        for number, clock in enumerate([NOW, NOW, NOW - 5_000_000, 0, NOW + 1]):
            draft = Draft(view, now_ms=clock)
            draft.upsert("fact", f"fact number {number}", inferred())
            commit = draft.commit("a test")
            assert commit is not None
            view = view.after(commit)
            times.append(ms_of_iso(commit.timestamp))
        assert times == [NOW, NOW + 1, NOW + 2, NOW + 3, NOW + 4]


class TestWhatMayBeShown:
    def test_an_unchanged_view_gives_the_same_items_again(self) -> None:
        view = View({"a": item("likes tea"), "b": item("is ill", sensitivity="private")})
        assert [one.text for one in view.visible(in_dm=False)] == ["likes tea"]
        assert len(view.visible(in_dm=True)) == 2
        assert view.visible(in_dm=True) is view.visible(in_dm=True)

    def test_another_view_does_not_take_them_over(self) -> None:
        view = View({"a": item("likes tea")})
        assert len(view.visible(in_dm=True)) == 1
        assert not replace(view, items={}).visible(in_dm=True)
