"""Bringing points together: merge, cherry-pick, revert, undo and restore; nothing said is lost on the way."""

import random
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discoclaw.core.draft import Origin
from discoclaw.core.errors import Refused
from discoclaw.core.event import encode_line
from discoclaw.core.history import History, union
from discoclaw.core.item import MAX_TAGS, Facets, Item, Sensitivity, Source
from discoclaw.core.merge import (
    Clash,
    MergeContext,
    MergeResult,
    diff,
    last_change,
    merge,
    three_way,
)
from discoclaw.core.text import normalise
from discoclaw.core.view import View
from tests.core.builders import (
    DEEDS,
    DEEDS_AND_REVERTS,
    MORE_DEEDS,
    NOW,
    PUBLIC_MESSAGE,
    Chronicle,
    inferred,
    live,
    question,
    stated,
    told,
)
from tests.examples import FEW
from tests.tables import each_row

RANKS = get_args(Sensitivity)


def claim(item: Item | None) -> tuple[str, bool] | None:
    return None if item is None else (normalise(item.text), item.active)


def claims(view: View) -> dict[str, tuple[str, bool] | None]:
    return {key: claim(item) for key, item in view.items.items()}


def rank(item: Item) -> int:
    return RANKS.index(item.facets.sensitivity)


def questions(view: View) -> set[tuple[str, str, str, str, str]]:
    return {question(one) for one in view.conflicts}


def says(view: View) -> tuple[dict[str, Item], set[tuple[str, str, str, str, str]]]:
    """Items with times, facets and links, and what is open: all but the order."""
    return dict(view.items), questions(view)


def forked(*texts: str) -> Chronicle:
    """`main` with these texts, and `coding`, which begins there."""
    chronicle = Chronicle()
    for text in texts:
        chronicle.remember(text)
    chronicle.fork("coding")
    return chronicle


# ---------------------------------------------------------------------- a second implementation

Plain = tuple[str, bool, bool, int, frozenset[str]]
"""An item as the oracle knows it: text, active, stated, privacy, tags."""


def oracle(
    base: Mapping[str, Plain], ours: Mapping[str, Plain], theirs: Mapping[str, Plain]
) -> tuple[dict[str, Plain], set[str]]:
    """A three-way merge, item by item and field by field, with the names of what clashes."""
    result, clashes = dict(ours), set()
    for key in {*base, *theirs}:
        b, o, t = base.get(key), ours.get(key), theirs.get(key)
        if t == b:
            continue
        says = [one and one[:2] for one in (b, o, t)]
        by_person = [one is not None and one[2] for one in (b, o, t)]
        we_spoke = says[1] != says[0] or (by_person[1] and not by_person[0] and not by_person[2])
        they_spoke = says[2] != says[0] or (by_person[2] and not by_person[0] and not by_person[1])
        disagree = o != b and says[1] != says[2] and we_spoke and they_spoke
        if disagree:
            clashes.add(key)
        if o is None and b is None:
            assert t is not None
            result[key] = t
        elif o is not None and t is not None:
            words = o if disagree or (we_spoke and says[1] != says[2]) else t
            stated_by = words[2] or (says[1] == says[2] and o[2])
            tags = (o[4] - ((b[4] if b else frozenset()) - t[4])) | (t[4] - (b[4] if b else frozenset()))
            result[key] = (words[0], words[1], stated_by, max(o[3], t[3]), tags)
        elif not disagree:
            result.pop(key, None)
    return result, clashes


_PLAIN = st.none() | st.tuples(
    st.sampled_from(["tea", "coffee", "juice"]),
    st.booleans(),
    st.booleans(),
    st.integers(0, 2),
    st.frozensets(st.sampled_from(["a", "b", "c"])),
)


def _alike(base: Plain | None, side: Plain | None, how: str) -> Plain | None:
    """A side that changed nothing, or not the words, or anything."""
    if how == "same" or base is None or side is None:
        return base if how == "same" else side
    return (*base[:2], *side[2:]) if how == "words" else side


_HOW = st.sampled_from(["same", "words", "any"])
_THREE = st.tuples(_PLAIN, _PLAIN, _PLAIN, _HOW, _HOW).map(
    lambda drawn: (drawn[0], _alike(drawn[0], drawn[1], drawn[3]), _alike(drawn[0], drawn[2], drawn[4]))
)
POINTS = st.lists(_THREE, max_size=4).map(
    lambda items: [
        {f"durable-{number}": one[point] for number, one in enumerate(items) if one[point] is not None}
        for point in range(3)
    ]
)
"""Base, ours and theirs, of which each item changed on one side, on both, or on none."""


def view_of(plain: Mapping[str, Plain]) -> View:
    return View(
        {
            key: Item(
                key,
                "fact",
                text,
                tuple(sorted(tags)),
                "active" if active else "deprecated",
                Source(),
                NOW,
                NOW,
                Facets("stated" if by_person else "inferred", RANKS[privacy]),
            )
            for key, (text, active, by_person, privacy, tags) in plain.items()
        }
    )


def plain_of(items: Mapping[str, Item]) -> dict[str, Plain]:
    return {
        key: (one.text, one.active, one.facets.author == "stated", rank(one), frozenset(one.tags))
        for key, one in items.items()
    }


class TestAThreeWayMergeIsWhatANaiveOneMakes:
    @settings(max_examples=2 * settings.default.max_examples)
    @given(POINTS)
    def test_for_any_three_points(self, points: Any) -> None:
        base, ours, theirs = points
        views = [view_of(one) for one in (base, ours, theirs)]
        takes, clashes = three_way(*views)
        merged = dict(views[1].items)
        for take in takes:
            assert take.before == merged.get(take.item.id)
            assert take.before != take.after
            merged.pop(take.item.id, None)
            if take.after is not None:
                merged[take.item.id] = take.after
        wanted, clashing = oracle(base, ours, theirs)
        assert plain_of(merged) == wanted
        assert {(clash.ours or clash.theirs).id for clash in clashes} == clashing  # type: ignore[union-attr]

    @given(POINTS)
    def test_who_changed_nothing_gets_what_the_other_has(self, points: Any) -> None:
        base, _, theirs = points
        takes, clashes = three_way(view_of(base), view_of(base), view_of(theirs), slots=False)
        assert clashes == []
        assert takes == diff(view_of(base), view_of(theirs))
        assert three_way(view_of(base), view_of(theirs), view_of(base)) == ([], [])
        assert three_way(view_of(base), view_of(theirs), view_of(theirs)) == ([], [])


class TestADiffSaysWhatDiffers:
    def test_and_of_which_kind_it_is(self) -> None:
        chronicle = Chronicle()
        tea, oslo, gone = (chronicle.remember(text) for text in ("likes tea", "lives in Oslo", "is gone"))
        old = chronicle.view()
        chronicle.change(lambda draft: draft.deprecate(tea, stated()))
        deprecated = chronicle.view()
        chronicle.remember("lives in Rome", given_id=oslo.id)
        chronicle.remember("plays chess")
        chronicle.change(lambda draft: draft.remove(gone, stated()))
        changes = diff(old, chronicle.view())
        assert [(change.kind, change.item.text) for change in changes] == [
            ("deprecated", "likes tea"),
            ("changed", "lives in Rome"),
            ("added", "plays chess"),
            ("removed", "is gone"),
        ]
        assert [change.kind for change in diff(deprecated, old)] == ["restored"]
        assert diff(old, old) == []

    @FEW
    @given(DEEDS_AND_REVERTS)
    def test_it_turns_one_view_into_the_other(self, deeds: Any) -> None:
        history = live(Chronicle(), deeds).history
        views = [history.view(key) for key in history.commits]
        for old in views[:3]:
            for new in views[-3:]:
                items = dict(old.items)
                for change in diff(old, new):
                    assert change.before == items.get(change.item.id)
                    items.pop(change.item.id, None)
                    if change.after is not None:
                        items[change.item.id] = change.after
                assert items == new.items


# ---------------------------------------------------------------------- merge


class TestAMerge:
    def test_of_disjoint_changes_is_both(self) -> None:
        chronicle = forked("likes tea", "lives in Oslo", "works at Acme", "is gone")
        tea, oslo, acme, gone = chronicle.view().items.values()
        chronicle.remember("likes juice", given_id=tea.id)
        chronicle.remember("plays chess")
        chronicle.remember("lives in Rome", given_id=oslo.id, on="coding")
        chronicle.change(lambda draft: draft.deprecate(acme, stated()), on="coding")
        chronicle.change(lambda draft: draft.remove(gone, stated()), on="coding")
        chronicle.remember("likes tabs", on="coding")
        brought = chronicle.merge("coding")
        assert chronicle.texts() == ["likes juice", "lives in Rome", "plays chess", "likes tabs"]
        assert [(change.kind, change.item.text) for change in brought.changes] == [
            ("changed", "lives in Rome"),
            ("deprecated", "works at Acme"),
            ("added", "likes tabs"),
            ("removed", "is gone"),
        ]
        assert brought.clashes == ()
        assert brought.commit is not None
        assert brought.commit.message == "merge coding into main"
        assert brought.commit.metadata["from"] == "coding"

    def test_takes_items_as_they_are_with_their_times_sources_and_facets(self) -> None:
        chronicle = forked("likes tea")
        triple = ("user", "works at", "Acme")
        facets = Facets(key="job", category="work", scope="session", confidence=0.5, triple=triple)
        said = inferred(source=PUBLIC_MESSAGE, private=True, evidence="“I work at Acme”")
        one = chronicle.remember("works at Acme", on="coding", origin=said, tags=["job"], facets=facets)
        two = chronicle.remember("likes tabs", on="coding")
        chronicle.change(lambda draft: draft.link(one, two, stated()), on="coding")
        theirs = chronicle.view("coding").items
        assert theirs[one.id].facets.links == {two.id}
        chronicle.merge("coding")
        assert dict(chronicle.view().items) == dict(theirs)
        assert chronicle.view().items[one.id].facets == replace(
            facets, sensitivity="private", links=frozenset([two.id])
        )
        event = chronicle.history.event(chronicle.view().last_event[one.id])
        assert event is not None
        assert event.source == "discord:123/456"
        assert event.evidence == "“I work at Acme”"

    @FEW
    @given(DEEDS_AND_REVERTS, st.randoms(use_true_random=False))
    @pytest.mark.design(287)
    def test_is_the_same_for_any_order_of_the_records(self, deeds: Any, dice: random.Random) -> None:
        chronicle = live(Chronicle(), deeds)
        shuffled = list(chronicle.records)
        dice.shuffle(shuffled)
        act = chronicle.act("main")
        for name in chronicle.history.branches.all.keys() - {"main"}:
            brought = merge(chronicle.history, name, act)
            assert merge(History(shuffled), name, act) == brought

    @FEW
    @given(DEEDS_AND_REVERTS)
    def test_twice_is_once(self, deeds: Any) -> None:
        chronicle = live(Chronicle(), deeds)
        for name in chronicle.history.branches.all.keys() - {"main"}:
            chronicle.merge(name)
            before = list(chronicle.records)
            assert chronicle.merge(name) == MergeResult(None)
            assert chronicle.records == before
            assert chronicle.head(name) in {None, *chronicle.history.ancestors(chronicle.head())}

    @FEW
    @given(DEEDS_AND_REVERTS, MORE_DEEDS)
    def test_of_an_ancestor_brings_nothing(self, deeds: Any, more: Any) -> None:
        chronicle = live(Chronicle(), deeds)
        live(chronicle, [("fork", 0, 1, True)])
        before = chronicle.history.branches.all
        live(chronicle, more)
        for name in before.keys() & chronicle.history.branches.all.keys() - {"main"}:
            if chronicle.head(name) in {None, *chronicle.history.ancestors(chronicle.head())}:
                assert chronicle.merge(name).commit is None

    @FEW
    @given(DEEDS_AND_REVERTS)
    def test_loses_no_claim_of_ours_and_no_privacy_and_asks_about_every_clash(self, deeds: Any) -> None:
        chronicle = live(Chronicle(), deeds)
        names = sorted(chronicle.history.branches.all)
        for into in names:
            for source in names:
                if source != into:
                    merges_well(chronicle, source, into)
                    links_hold_both_ways(chronicle.view(into))

    @FEW
    @given(DEEDS, MORE_DEEDS, MORE_DEEDS, st.sampled_from([0, 7]))
    def test_the_same_holds_after_replicas_were_united(
        self, before: Any, here: Any, there: Any, later: int
    ) -> None:
        start = live(Chronicle(), before)
        one, other = live(start.replica(), here), live(start.replica(later=later), there)
        both = Chronicle(union(one.records, other.records), now=NOW * 2)
        for source in sorted(both.history.branches.all.keys() - {"main"}):
            merges_well(both, source, "main")

    @FEW
    @given(DEEDS, MORE_DEEDS)
    def test_who_said_nothing_since_the_fork_says_what_the_other_says(self, deeds: Any, more: Any) -> None:
        chronicle = live(Chronicle(), deeds)
        before = chronicle.head(chronicle.fork("fresh"))
        live(chronicle, [deed for deed in more if deed[0] not in ("fork", "delete")])
        if chronicle.head("fresh") != before:
            return
        assert chronicle.merge("main", "fresh").clashes == ()
        assert claims(chronicle.view("fresh")) == claims(chronicle.view())
        assert {one[:2] for one in questions(chronicle.view("fresh"))} == {
            one[:2] for one in questions(chronicle.view())
        }

    def test_into_itself_or_of_nothing_is_refused(self) -> None:
        chronicle = forked("likes tea")
        for name in ("main", "HEAD", " Main "):
            with pytest.raises(Refused, match="'main' can't be merged into itself; name another branch"):
                chronicle.merge(name)
        with pytest.raises(Refused, match="did you mean 'coding'"):
            chronicle.merge("codnig")
        with pytest.raises(Refused, match="no branch 'x'"):
            chronicle.merge("coding", "x")

    def test_an_act_may_say_by_whom_it_was_done(self) -> None:
        chronicle = forked("likes tea")
        chronicle.remember("likes tabs", on="coding")
        act = MergeContext("main", stated(), NOW, metadata=(("by", "a command"), ("message", "456")))
        commit = merge(chronicle.history, "coding", act).commit
        assert commit is not None
        assert dict(commit.metadata) == {
            "merged": chronicle.head("coding"),
            "from": "coding",
            "by": "a command",
            "message": "456",
        }
        assert commit.timestamp > chronicle.records[-1].timestamp, "though the clock stands still"

    def test_keeps_to_the_most_items_a_branch_may_have(self) -> None:
        chronicle = forked("likes tea", "plays chess")
        for text in ("likes tabs", "likes vim"):
            chronicle.remember(text, on="coding")
        brought = merge(chronicle.history, "coding", MergeContext("main", stated(), NOW, max_items=3))
        assert brought.commit is not None
        assert [item.text for item in chronicle.view().after(brought.commit).active()] == [
            "plays chess",
            "likes tabs",
            "likes vim",
        ]
        assert ("removed", "likes tea") in [(change.kind, change.item.text) for change in brought.changes]

    def test_that_brings_nothing_new_is_recorded_all_the_same(self) -> None:
        chronicle = forked("likes tea")
        assert chronicle.merge("coding") == MergeResult(None), "it has no commit that is not here"
        for branch in ("main", "coding"):
            chronicle.remember("plays chess", on=branch)
        chronicle.undo("coding")
        ours = chronicle.view()
        brought = chronicle.merge("coding")
        assert brought.commit is not None
        assert (brought.commit.events, brought.changes, brought.clashes) == ((), (), ())
        assert dict(chronicle.view().items) == dict(ours.items)
        assert chronicle.pick(brought.commit.id, "coding") == MergeResult(None)

    def test_both_ways_ends_with_both_saying_the_same(self) -> None:
        chronicle = forked("likes tea", "lives in Oslo")
        tea, oslo = chronicle.view().items.values()
        chronicle.remember("likes juice", given_id=tea.id)
        chronicle.change(lambda draft: draft.mark(oslo, "private", stated()), on="coding")
        chronicle.merge("coding")
        chronicle.merge("main", "coding")
        assert dict(chronicle.view().items) == dict(chronicle.view("coding").items)
        assert chronicle.merge("coding").changes == ()

    def test_a_criss_cross_is_settled_the_same_way_by_everybody(self) -> None:
        chronicle = forked("likes tea")
        (tea,) = chronicle.view().items.values()
        chronicle.remember("plays chess")
        chronicle.remember("likes tabs", on="coding")
        here, there = chronicle.replica(), chronicle.replica(later=3)
        here.merge("coding", "main")
        there.merge("main", "coding")
        both = Chronicle(union(here.records, there.records), now=NOW * 2)
        both.remember("likes juice", given_id=tea.id)
        both.remember("likes milk", given_id=tea.id, on="coding")
        base = both.history.base(both.head(), both.head("coding"))
        assert base == both.history.base(both.head("coding"), both.head())
        brought = both.merge("coding")
        assert [(c.ours and c.ours.text, c.theirs and c.theirs.text) for c in brought.clashes] == [
            ("likes juice", "likes milk")
        ]
        assert both.texts() == ["likes juice", "plays chess", "likes tabs"]


def merges_well(chronicle: Chronicle, source: str, into: str) -> None:
    """Merge, and check what every merge keeps."""
    history, ours = chronicle.history, chronicle.view(into)
    theirs = chronicle.view(source)
    base = history.view(history.base(chronicle.head(into), chronicle.head(source)))
    brought = chronicle.merge(source, into)
    after = chronicle.view(into)
    for key, item in ours.items.items():
        if claim(item) != claim(base.items.get(key)):
            assert claim(after.items.get(key)) == claim(item), "what we said since stays said"
        if key in after.items:
            assert rank(after.items[key]) >= rank(item), "a merge lowers no privacy"
    for key, item in theirs.items.items():
        if key in after.items and item != base.items.get(key):
            words = [after.items[key].text, item.text]
            assert rank(after.items[key]) >= rank(item) or words[0] != words[1]
    stated_items = {**theirs.items, **ours.items}
    for key, item in after.items.items():
        if key in stated_items and claim(ours.items.get(key)) == claim(item) and key in ours.items:
            assert item.facets.author == "stated" or ours.items[key].facets.author == "inferred"
    open_ = {(one.item_id, one.text): one for one in after.conflicts}
    for clash in brought.clashes:
        if clash.ours is not None and clash.ours.id in after.items:
            text = clash.theirs.text if clash.theirs is not None and clash.theirs.active else ""
            noted = open_[clash.ours.id, text]
            assert RANKS.index(noted.sensitivity) >= rank(clash.ours)
    assert list(brought.changes) == (diff(ours, after) if brought.commit is not None else [])
    if brought.commit is not None:
        encode_line(brought.commit)
        assert ours.after(brought.commit) == after


def links_hold_both_ways(view: View) -> None:
    for key, item in view.items.items():
        for other in item.facets.links:
            assert key in view.items[other].facets.links


class TestWhatBothSidesSaid:
    def test_differently_stays_ours_and_becomes_a_question(self) -> None:
        chronicle = forked("likes tea")
        (tea,) = chronicle.view().items.values()
        ours = chronicle.remember("likes juice", given_id=tea.id)
        theirs = chronicle.remember("likes milk", given_id=tea.id, on="coding", marked="private")
        brought = chronicle.merge("coding")
        assert brought.clashes == (Clash(ours, theirs),)
        assert chronicle.texts() == ["likes juice"]
        (open_,) = chronicle.view().conflicts
        assert (open_.item_id, open_.text, open_.sensitivity) == (tea.id, "likes milk", "private")
        assert open_.reason == "the persona coding says otherwise"

    def test_gone_there_and_changed_here_stays_and_is_asked(self) -> None:
        chronicle = forked("likes tea")
        (tea,) = chronicle.view().items.values()
        chronicle.remember("likes juice", given_id=tea.id)
        chronicle.change(lambda draft: draft.remove(tea, stated()), on="coding")
        (clash,) = chronicle.merge("coding").clashes
        assert (clash.ours and clash.ours.text, clash.theirs) == ("likes juice", None)
        assert chronicle.texts() == ["likes juice"]
        assert [(one.item_id, one.text) for one in chronicle.view().conflicts] == [(tea.id, "")]

    def test_gone_here_and_changed_there_stays_gone_and_is_named(self) -> None:
        chronicle = forked("likes tea")
        (tea,) = chronicle.view().items.values()
        chronicle.change(lambda draft: draft.remove(tea, stated()))
        theirs = chronicle.remember("likes juice", given_id=tea.id, on="coding")
        assert chronicle.merge("coding").clashes == (Clash(None, theirs),)
        assert chronicle.texts() == []
        assert chronicle.view().conflicts == ()

    @each_row("gone_on", ["main", "coding"])
    def test_gone_on_one_side_and_only_tagged_on_the_other_is_gone(self, gone_on: str) -> None:
        chronicle = forked("likes tea")
        (tea,) = chronicle.view().items.values()
        other = "coding" if gone_on == "main" else "main"
        chronicle.change(lambda draft: draft.remove(tea, stated()), on=gone_on)
        chronicle.remember("likes tea", tags=["drinks"], on=other)
        assert chronicle.merge("coding").clashes == ()
        assert chronicle.texts() == []

    def test_what_a_person_removed_there_counts_as_forgotten_here(self) -> None:
        chronicle = forked("likes tea")
        (tea,) = chronicle.view().items.values()
        chronicle.change(lambda draft: draft.remove(tea, stated()), on="coding")
        chronicle.merge("coding")
        assert tea.id in chronicle.view().forgotten
        chronicle.change(lambda draft: draft.upsert("fact", "likes tea", inferred(said_at=NOW)))
        assert chronicle.texts() == []

    def test_what_only_the_cap_removed_there_may_be_learned_again_here(self) -> None:
        chronicle = forked("likes tea")
        (tea,) = chronicle.view().items.values()
        chronicle.change(lambda draft: draft.remove(tea, inferred()), on="coding")
        chronicle.merge("coding")
        assert (chronicle.texts(), dict(chronicle.view().forgotten)) == ([], {})

    def test_tags_and_links_of_both_are_kept_and_what_one_dropped_is_dropped(self) -> None:
        chronicle = forked("likes tea", "plays chess", "lives in Oslo")
        tea, chess, oslo = chronicle.view().items.values()
        for branch, tag, other in (("main", "hot", chess), ("coding", "drink", oslo)):
            chronicle.remember("likes tea", tags=[tag], on=branch)
            chronicle.change(lambda draft, far=other: draft.link(tea, far, stated()), on=branch)
        chronicle.merge("coding")
        held = chronicle.view().items
        assert held[tea.id].tags == ("hot", "drink")
        assert held[tea.id].facets.links == {chess.id, oslo.id}
        chronicle.change(lambda draft: draft.link(tea, chess, stated(), on=False), on="main")
        chronicle.remember("likes tea", tags=["hot", "drink", "daily"], on="coding")
        chronicle.merge("main", "coding")
        held = chronicle.view("coding").items
        assert held[tea.id].facets.links == {oslo.id}
        assert held[chess.id].facets.links == frozenset()
        links_hold_both_ways(chronicle.view("coding"))

    def test_there_are_never_more_tags_than_an_item_can_have(self) -> None:
        chronicle = forked("likes tea")
        for branch in ("main", "coding"):
            tags = [f"{branch} {number}" for number in range(MAX_TAGS)]
            chronicle.remember("likes tea", tags=tags, on=branch)
        chronicle.merge("coding")
        (tea,) = chronicle.view().items.values()
        assert tea.tags == tuple(f"main {number}" for number in range(MAX_TAGS))

    def test_in_a_clash_what_is_no_claim_is_kept_of_both(self) -> None:
        chronicle = forked("likes tea", "plays chess")
        tea, chess = chronicle.view().items.values()
        ours = chronicle.remember("likes juice", given_id=tea.id, tags=["cold"])
        chronicle.remember("likes milk", given_id=tea.id, tags=["white"], marked="private", on="coding")
        chronicle.change(lambda draft: draft.link(tea, chess, stated()), on="coding")
        chronicle.merge("coding")
        held = chronicle.view().items[tea.id]
        assert (held.text, held.tags) == ("likes juice", ("cold", "white"))
        assert (held.facets.sensitivity, held.facets.links) == ("private", {chess.id})
        assert held.updated_at == ours.updated_at, "it is the older word"
        links_hold_both_ways(chronicle.view())


class TestAPersonsWordSurvivesAMerge:
    def test_what_was_stated_here_is_not_replaced_by_what_was_inferred_there(self) -> None:
        chronicle = Chronicle()
        tea = chronicle.remember("likes tea", origin=inferred())
        chronicle.fork("coding")
        chronicle.remember("likes tea")
        chronicle.remember("likes juice", given_id=tea.id, origin=inferred(), on="coding")
        (clash,) = chronicle.merge("coding").clashes
        assert clash.theirs is not None
        assert chronicle.texts() == ["likes tea"]
        assert chronicle.view().items[tea.id].facets.author == "stated"
        assert [one.text for one in chronicle.view().conflicts] == ["likes juice"]

    def test_what_was_stated_there_is_asked_about_where_something_else_was_inferred(self) -> None:
        chronicle = Chronicle()
        tea = chronicle.remember("likes tea", origin=inferred())
        chronicle.fork("coding")
        chronicle.remember("likes juice", given_id=tea.id, origin=inferred())
        chronicle.remember("likes tea", on="coding")
        chronicle.merge("coding")
        assert [one.text for one in chronicle.view().conflicts] == ["likes tea"]

    @each_row("stated_on", ["main", "coding"])
    def test_the_same_words_are_stated_if_either_side_stated_them(self, stated_on: str) -> None:
        chronicle = forked("likes tea")
        for branch in ("main", "coding"):
            origin = stated() if branch == stated_on else inferred()
            chronicle.remember("plays chess", origin=origin, tags=[branch], on=branch)
        assert chronicle.merge("coding").clashes == ()
        chess = chronicle.view().active()[1]
        assert (chess.facets.author, set(chess.tags)) == ("stated", {"main", "coding"})
        assert chess.source == Source()


class TestPrivacyIsNeverLoweredByAMerge:
    @each_row("verb", ["merge", "pick"])
    def test_what_the_other_branch_shared_stays_private_here(self, verb: str) -> None:
        chronicle = Chronicle()
        oslo = chronicle.remember("lives in Oslo", marked="private")
        chronicle.fork("coding")
        commit = chronicle.change(lambda draft: draft.mark(oslo, "normal", stated()), on="coding")
        assert commit is not None
        chronicle.merge("coding") if verb == "merge" else chronicle.pick(commit.id)
        assert chronicle.view().items[oslo.id].facets.sensitivity == "private"

    def test_gone_and_said_again_there_in_the_open_stays_private_here(self) -> None:
        chronicle = Chronicle()
        oslo = chronicle.remember("lives in Oslo", marked="private")
        chronicle.fork("coding")
        chronicle.change(lambda draft: draft.remove(oslo, stated()), on="coding")
        chronicle.remember("lives in Oslo", on="coding")
        chronicle.merge("coding")
        assert chronicle.view().items[oslo.id].facets.sensitivity == "private"


class TestAPlaceForOneThing:
    """A key, and the subject and predicate of a triple, have one object."""

    @each_row("by", ["key", "triple"])
    def test_two_branches_that_filled_it_differently_clash(self, by: str) -> None:
        chronicle = forked("likes tea")
        for branch, editor in (("main", "vim"), ("coding", "emacs")):
            triple = ("user", "uses editor", editor)
            facets = Facets(key="editor") if by == "key" else Facets(triple=triple)
            chronicle.remember(f"uses {editor}", on=branch, facets=facets)
        (clash,) = chronicle.merge("coding").clashes
        assert (clash.ours and clash.ours.text, clash.theirs and clash.theirs.text) == (
            "uses vim",
            "uses emacs",
        )
        assert chronicle.texts() == ["likes tea", "uses vim"]
        assert [one.text for one in chronicle.view().conflicts] == ["uses emacs"]

    def test_who_had_it_before_gives_way_as_there(self) -> None:
        chronicle = Chronicle()
        vim = chronicle.remember("uses vim", facets=Facets(key="editor"))
        chronicle.fork("coding")
        chronicle.change(lambda draft: draft.remove(vim, stated()), on="coding")
        chronicle.remember("uses emacs", on="coding", facets=Facets(key="editor"))
        assert chronicle.merge("coding").clashes == ()
        assert chronicle.texts() == ["uses emacs"]

    def test_who_lived_with_two_before_lives_with_two_after(self) -> None:
        chronicle = Chronicle()
        chronicle.remember("User likes tea", facets=Facets(triple=("user", "likes", "tea")))
        chronicle.fork("coding")
        chronicle.remember("User likes juice", facets=Facets(triple=("user", "likes", "juice")), on="coding")
        assert chronicle.merge("coding").clashes == ()
        assert chronicle.texts() == ["User likes tea", "User likes juice"]

    def test_the_same_object_is_no_clash(self) -> None:
        chronicle = forked("likes tea")
        for branch, text in (("main", "uses vim"), ("coding", "Uses  VIM")):
            chronicle.remember(text, on=branch, kind="tool", facets=Facets(key="editor"))
        assert chronicle.merge("coding").clashes == ()
        assert len(chronicle.view().items) == 2


class TestOpenQuestionsAreMergedToo:
    def test_a_question_that_was_answered_before_the_fork_may_come_up_again(self) -> None:
        chronicle = Chronicle()
        chronicle.remember("likes tea")
        self.disputed(chronicle, "main")
        settle(chronicle, "keep_old")
        chronicle.fork("coding")
        self.disputed(chronicle, "coding")
        chronicle.merge("coding")
        assert [one.text for one in chronicle.view().conflicts] == ["hates tea"]

    @staticmethod
    def disputed(chronicle: Chronicle, on: str) -> None:
        (held,) = (one for one in chronicle.view(on).items.values() if one.text == "likes tea")
        chronicle.remember("hates tea", given_id=held.id, origin=inferred(), on=on)

    def test_a_question_from_there_is_asked_here(self) -> None:
        chronicle = forked("likes tea")
        self.disputed(chronicle, "coding")
        chronicle.merge("coding")
        assert questions(chronicle.view()) == questions(chronicle.view("coding"))
        assert len(chronicle.view().conflicts) == 1

    def test_an_answer_from_there_counts_here(self) -> None:
        chronicle = forked("likes tea")
        self.disputed(chronicle, "main")
        chronicle.fork("cooking")
        settle(chronicle, "keep_old", on="cooking")
        assert len(chronicle.view().conflicts) == 1
        chronicle.merge("cooking")
        assert chronicle.view().conflicts == ()

    @each_row("how", ["keep_old", "both_valid"])
    def test_what_was_answered_here_is_not_asked_again(self, how: Any) -> None:
        chronicle = forked("likes tea")
        for branch in ("main", "coding"):
            self.disputed(chronicle, branch)
        settle(chronicle, how)
        chronicle.merge("coding")
        assert chronicle.view().conflicts == ()
        chronicle.remember("likes tabs", on="coding")
        chronicle.merge("coding")
        assert chronicle.view().conflicts == ()

    @each_row("how", ["keep_old", "use_new", "both_valid"])
    def test_a_clash_that_was_settled_does_not_come_back(self, how: Any) -> None:
        chronicle = forked("likes tea")
        (tea,) = chronicle.view().items.values()
        chronicle.remember("likes juice", given_id=tea.id)
        chronicle.remember("likes milk", given_id=tea.id, on="coding")
        chronicle.merge("coding")
        settle(chronicle, how)
        said = chronicle.texts()
        chronicle.remember("likes tabs", on="coding")
        chronicle.fork("third", start="coding")
        assert chronicle.merge("coding").clashes == ()
        assert chronicle.merge("third").clashes == ()
        assert (chronicle.texts(), chronicle.view().conflicts) == ([*said, "likes tabs"], ())
        for commit in [one.id for one in chronicle.history.commits.values() if one.branch == "coding"]:
            assert chronicle.pick(commit) == MergeResult(None)

    def test_an_open_question_becomes_as_private_as_what_it_is_about(self) -> None:
        chronicle = forked("likes tea")
        (tea,) = chronicle.view().items.values()
        chronicle.remember("likes juice", given_id=tea.id)
        said = inferred(evidence="“milk!”")
        chronicle.remember("likes milk", given_id=tea.id, origin=said)
        chronicle.change(lambda draft: draft.mark(tea, "private", stated()))
        chronicle.remember("likes milk", given_id=tea.id, on="coding")
        chronicle.merge("coding")
        assert [(one.text, one.reason, one.sensitivity) for one in chronicle.view().conflicts] == [
            ("likes milk", "“milk!”", "private")
        ]

    def test_an_open_question_keeps_what_it_says(self) -> None:
        chronicle = forked("likes tea")
        milk = chronicle.remember("likes milk")
        (tea, _) = chronicle.view().items.values()
        chronicle.change(lambda draft: draft.contradict(tea, milk, "one drink only", stated()))
        before = chronicle.view().conflicts
        chronicle.remember("likes milk", given_id=tea.id, on="coding")
        chronicle.remember("likes juice", given_id=tea.id)
        chronicle.change(lambda draft: draft.contradict(tea, milk, "one drink only", stated()))
        chronicle.merge("coding")
        assert [question(one) for one in chronicle.view().conflicts] == [question(one) for one in before]


def settle(chronicle: Chronicle, how: Any, on: str = "main") -> None:
    (open_,) = chronicle.view(on).conflicts
    chronicle.change(lambda draft: draft.settle(open_, how, stated()), on=on)


# ---------------------------------------------------------------------- cherry-pick


class TestACherryPick:
    def test_brings_one_commit_and_nothing_else(self) -> None:
        chronicle = forked("likes tea")
        chronicle.remember("likes tabs", on="coding")
        wanted = chronicle.head("coding") or ""
        chronicle.remember("likes vim", on="coding")
        brought = chronicle.pick(wanted[:8])
        assert chronicle.texts() == ["likes tea", "likes tabs"]
        assert brought.commit is not None
        assert brought.commit.message == "cherry-pick: a test"
        assert dict(brought.commit.metadata) == {"picked": wanted, "from": "coding"}

    @FEW
    @given(DEEDS_AND_REVERTS, st.integers(0, 20))
    def test_twice_is_once(self, deeds: Any, number: int) -> None:
        chronicle = live(Chronicle(), [*deeds, ("add", 0, 0, True)])
        wanted = list(chronicle.history.commits)[number % len(chronicle.history.commits)]
        first = chronicle.pick(wanted)
        known = list(chronicle.records)
        again = chronicle.pick(wanted)
        assert again.commit is None
        assert again.changes == ()
        assert chronicle.records == known
        assert again == MergeResult(None) or not first.commit
        links_hold_both_ways(chronicle.view())

    def test_of_what_is_here_already_brings_nothing(self) -> None:
        chronicle = forked("likes tea", "plays chess")
        for wanted in ("HEAD", "HEAD~1", "main", "coding"):
            assert chronicle.pick(wanted) == MergeResult(None)
            assert chronicle.pick(wanted, "coding") == MergeResult(None)

    @each_row("way", ["merge", "pick"])
    def test_of_what_came_by_way_of_a_branch_that_was_merged_brings_nothing(self, way: str) -> None:
        chronicle = forked("likes tea")
        tabs = chronicle.remember("likes tabs", on="coding")
        wanted = chronicle.head("coding") or ""
        chronicle.fork("third")
        chronicle.merge("coding", "third") if way == "merge" else chronicle.pick(wanted, "third")
        chronicle.merge("third")
        chronicle.change(lambda draft: draft.remove(tabs, stated()))
        assert chronicle.pick(wanted) == MergeResult(None)
        assert chronicle.texts() == ["likes tea"]

    def test_of_a_change_to_an_item_that_was_never_here_brings_the_item(self) -> None:
        chronicle = forked("likes tea")
        tabs = chronicle.remember("likes tabs", on="coding", tags=["code"])
        chronicle.remember("likes vim", on="coding")
        chronicle.remember("likes spaces", given_id=tabs.id, on="coding")
        brought = chronicle.pick("coding")
        assert brought.clashes == ()
        assert chronicle.texts() == ["likes tea", "likes spaces"]
        assert chronicle.view().items[tabs.id] == chronicle.view("coding").items[tabs.id]

    def test_of_an_end_of_what_was_never_here_brings_nothing(self) -> None:
        chronicle = forked("likes tea")
        tabs = chronicle.remember("likes tabs", on="coding")
        chronicle.change(lambda draft: draft.deprecate(tabs, stated()), on="coding")
        assert chronicle.pick("coding") == MergeResult(None)
        chronicle.change(lambda draft: draft.remove(tabs, stated()), on="coding")
        assert chronicle.pick("coding") == MergeResult(None)

    @each_row("by", [stated(), inferred()])
    def test_of_a_change_to_what_the_person_or_the_cap_removed_here_is_a_clash(self, by: Origin) -> None:
        chronicle = forked("likes tea")
        (tea,) = chronicle.view().items.values()
        chronicle.change(lambda draft: draft.remove(tea, by))
        juice = chronicle.remember("likes juice", given_id=tea.id, on="coding")
        assert chronicle.pick("coding").clashes == (Clash(None, juice),)
        assert chronicle.texts() == []

    def test_of_a_change_to_what_was_picked_and_removed_again_is_a_clash(self) -> None:
        chronicle = forked("likes tea")
        tabs = chronicle.remember("likes tabs", on="coding")
        chronicle.pick("coding")
        chronicle.change(lambda draft: draft.remove(tabs, stated()))
        spaces = chronicle.remember("likes spaces", given_id=tabs.id, on="coding")
        assert chronicle.pick("coding").clashes == (Clash(None, spaces),)
        assert chronicle.texts() == ["likes tea"]

    def test_of_a_change_to_what_was_changed_here_is_a_clash_and_a_question(self) -> None:
        chronicle = forked("likes tea")
        (tea,) = chronicle.view().items.values()
        chronicle.remember("likes juice", given_id=tea.id)
        chronicle.remember("likes milk", given_id=tea.id, on="coding")
        brought = chronicle.pick("coding")
        assert len(brought.clashes) == 1
        assert [(one.text, one.reason) for one in chronicle.view().conflicts] == [
            ("likes milk", "another persona says so")
        ]
        assert chronicle.texts() == ["likes juice"]

    def test_of_no_commit_is_refused(self) -> None:
        with pytest.raises(Refused, match="there is no commit or branch 'ffff'"):
            forked("likes tea").pick("ffff")


# ---------------------------------------------------------------------- revert, undo, restore


class TestARevert:
    @given(DEEDS_AND_REVERTS)
    def test_of_the_newest_commit_says_what_was_said_before_it(self, deeds: Any) -> None:
        chronicle = live(Chronicle(), deeds)
        for name in list(chronicle.history.branches.all):
            chain = chronicle.history.chain(chronicle.head(name))
            if not chain:
                continue
            before = chronicle.history.view(chain[-2].id if len(chain) > 1 else None)
            brought = chronicle.revert(chain[-1].id, name)
            assert brought.clashes == ()
            assert says(chronicle.view(name)) == says(before)
            assert list(chronicle.history.chain(chronicle.head(name)))[: len(chain)] == list(chain)
            if brought.commit is not None:
                assert brought.commit.metadata["reverts"] == chain[-1].id

    def test_brings_back_a_removed_item_with_everything_it_had(self) -> None:
        chronicle = Chronicle()
        triple = ("user", "likes", "tea")
        tea = chronicle.remember("User likes tea", facets=Facets(key="drink", triple=triple), tags=["hot"])
        chess = chronicle.remember("plays chess")
        chronicle.change(lambda draft: draft.link(tea, chess, stated()))
        chronicle.remember("hates tea", given_id=tea.id, origin=inferred())
        before = chronicle.view()
        chronicle.change(lambda draft: draft.remove(tea, stated()))
        assert chronicle.view().items[chess.id].facets.links == frozenset()
        chronicle.revert("HEAD")
        assert says(chronicle.view()) == says(before)
        assert before.items[tea.id].facets.links == {chess.id}
        assert len(before.conflicts) == 1

    def test_leaves_what_changed_since_and_names_it(self) -> None:
        chronicle = Chronicle()
        tea = chronicle.remember("likes tea")

        def both(draft: Any) -> None:
            draft.upsert("fact", "likes juice", stated(), given_id=tea.id)
            draft.upsert("fact", "plays chess", stated())

        commit = chronicle.change(both)
        assert commit is not None
        milk = chronicle.remember("likes milk", given_id=tea.id)
        brought = chronicle.revert(commit.id)
        assert brought.clashes == (Clash(milk, tea),)
        assert [(change.kind, change.item.text) for change in brought.changes] == [("removed", "plays chess")]
        assert chronicle.texts() == ["likes milk"]
        assert chronicle.view().conflicts == (), "an undo asks no questions"

    def test_twice_is_once(self) -> None:
        chronicle = Chronicle()
        chronicle.remember("likes tea")
        commit = chronicle.head() or ""
        chronicle.remember("plays chess")
        assert chronicle.revert(commit).commit is not None
        assert chronicle.revert(commit).commit is None

    def test_what_is_not_on_the_branch_can_not_be_taken_back_there(self) -> None:
        chronicle = forked("likes tea")
        chronicle.remember("likes tabs", on="coding")
        with pytest.raises(Refused, match="is not on the branch 'main'; use `cherry-pick` to bring it over"):
            chronicle.revert("coding")

    def test_what_a_merge_brought_can_be_taken_back_commit_by_commit(self) -> None:
        chronicle = forked("likes tea")
        chronicle.remember("likes tabs", on="coding")
        wanted = chronicle.head("coding") or ""
        chronicle.remember("likes vim", on="coding")
        chronicle.merge("coding")
        chronicle.revert(wanted)
        assert chronicle.texts() == ["likes tea", "likes vim"]
        assert chronicle.texts("coding") == ["likes tea", "likes tabs", "likes vim"]

    def test_what_is_taken_back_is_not_learned_again_from_older_words(self) -> None:
        chronicle = Chronicle()
        chronicle.remember("likes tea", origin=inferred(said_at=NOW))
        chronicle.revert("HEAD")
        chronicle.change(lambda draft: draft.upsert("fact", "likes tea", inferred(said_at=NOW)))
        assert chronicle.texts() == []


class TestUndo:
    @FEW
    @given(DEEDS)
    def test_again_and_again_it_walks_back_to_the_beginning(self, deeds: Any) -> None:
        chronicle = live(Chronicle(), deeds)
        for name in list(chronicle.history.branches.all):
            walks_back(chronicle, name)

    @FEW
    @given(DEEDS_AND_REVERTS)
    def test_it_ends_whatever_was_taken_back_before(self, deeds: Any) -> None:
        chronicle = live(Chronicle(), deeds)
        most = len(chronicle.history.commits)
        for _ in range(most):
            try:
                chronicle.undo()
            except Refused:
                break
        with pytest.raises(Refused, match="there is nothing left to undo"):
            chronicle.undo()

    def test_an_undone_undo_is_a_change_again(self) -> None:
        chronicle = Chronicle()
        for text in ("likes tea", "plays chess"):
            chronicle.remember(text)
        tea, chess = list(chronicle.history.commits)
        assert last_change(chronicle.history, "main").id == chess
        chronicle.undo()
        undone = chronicle.head() or ""
        assert last_change(chronicle.history, "main").id == tea
        chronicle.revert(undone)
        assert chronicle.texts() == ["likes tea", "plays chess"]
        assert last_change(chronicle.history, "main").id == chess
        chronicle.undo()
        chronicle.undo()
        assert chronicle.texts() == []

    def test_a_new_change_after_an_undo_is_the_next_to_go(self) -> None:
        chronicle = Chronicle()
        for text in ("likes tea", "plays chess"):
            chronicle.remember(text)
        chronicle.undo()
        chronicle.remember("likes tabs")
        chronicle.undo()
        assert chronicle.texts() == ["likes tea"]
        chronicle.undo()
        assert chronicle.texts() == []

    def test_what_changed_nothing_is_passed_over(self) -> None:
        chronicle = forked("likes tea")
        live(chronicle, [("nothing", 1, 0, True), ("nothing", 0, 0, True)])
        assert len(chronicle.history.commits) == 3
        chronicle.merge("coding")
        chronicle.undo()
        assert chronicle.texts() == []


def walks_back(chronicle: Chronicle, name: str) -> None:
    """Undo until it is refused: each time the branch says what it said before, and at last nothing."""
    told_before = [
        says(chronicle.history.view(one.id)) for one in chronicle.history.chain(chronicle.head(name))
    ]
    told_before.insert(0, says(View()))
    for _ in range(len(told_before)):
        try:
            brought = chronicle.undo(name)
        except Refused:
            break
        assert brought.commit is not None
        assert brought.clashes == ()
        assert says(chronicle.view(name)) in told_before
    assert says(chronicle.view(name)) == says(View())


class TestRestore:
    @FEW
    @given(DEEDS_AND_REVERTS, st.integers(0, 20))
    def test_a_branch_says_exactly_what_the_point_said(self, deeds: Any, number: int) -> None:
        chronicle = live(Chronicle(), [*deeds, ("add", 0, 0, True)])
        for name in list(chronicle.history.branches.all):
            wanted = list(chronicle.history.commits)[number % len(chronicle.history.commits)]
            chronicle.restore(wanted, name)
            assert says(chronicle.view(name)) == says(chronicle.history.view(wanted))
            assert chronicle.restore(wanted, name) == MergeResult(None)

    def test_it_is_a_new_commit_and_nothing_of_the_history_goes(self) -> None:
        chronicle = Chronicle()
        for text in ("likes tea", "plays chess", "likes tabs"):
            chronicle.remember(text)
        known = list(chronicle.records)
        brought = chronicle.restore("HEAD~2")
        assert chronicle.texts() == ["likes tea"]
        assert chronicle.records[:-1] == known
        assert brought.commit is not None
        assert brought.commit.metadata["restores"] == known[0].id
        chronicle.undo()
        assert chronicle.texts() == ["likes tea", "plays chess", "likes tabs"]

    def test_a_question_that_was_open_at_both_points_stays_open(self) -> None:
        chronicle = Chronicle()
        tea = chronicle.remember("likes tea", origin=inferred())
        milk = chronicle.remember("likes milk")
        chronicle.fork("coding")
        chronicle.remember("likes juice", given_id=tea.id, on="coding")
        for branch in ("main", "coding"):
            chronicle.change(lambda draft: draft.contradict(tea, milk, "one only", stated()), on=branch)
        chronicle.restore("coding")
        assert says(chronicle.view()) == says(chronicle.view("coding"))
        assert [one.text for one in chronicle.view().conflicts] == ["likes milk"]

    def test_gone_and_said_again_comes_back_with_its_first_time(self) -> None:
        chronicle = Chronicle()
        tea = chronicle.remember("likes tea")
        first = chronicle.head() or ""
        chronicle.change(lambda draft: draft.remove(tea, stated()))
        assert chronicle.remember("likes tea").created_at > tea.created_at
        chronicle.restore(first)
        assert chronicle.view().items[tea.id] == tea

    def test_a_triple_that_came_later_goes_again(self) -> None:
        chronicle = Chronicle()
        tea = chronicle.remember("User likes tea", origin=inferred())
        chronicle.remember("User likes tea", facets=Facets(triple=("user", "likes", "tea")))
        assert chronicle.view().items[tea.id].facets.triple is not None
        chronicle.restore("HEAD~1")
        assert chronicle.view().items[tea.id] == tea

    def test_in_united_replicas_too(self) -> None:
        start = Chronicle()
        start.fork("coding")
        one, other = start.replica(), start.replica(later=5)
        one.remember("likes tea", tags=["here"])
        other.remember("likes tea", tags=["there"])
        both = Chronicle(union(one.records, other.records))
        wanted, before = both.head() or "", both.view()
        (tea,) = before.items.values()
        both.change(lambda draft: draft.remove(tea, stated()))
        both.restore(wanted)
        assert says(both.view()) == says(before)
        both.merge("main", "coding")
        assert dict(both.view("coding").items) == dict(before.items)


class TestWhatIsBroughtIsAnOrdinaryCommit:
    @FEW
    @given(DEEDS_AND_REVERTS)
    def test_its_events_are_told_apart_and_fold_to_what_was_promised(self, deeds: Any) -> None:
        chronicle = live(Chronicle(), deeds)
        for commit in chronicle.history.commits.values():
            ids = [event.id for event in commit.events]
            assert len(set(ids)) == len(ids)

    @FEW
    @given(DEEDS)
    def test_on_a_branch_alone_it_gives_what_the_records_give(self, deeds: Any) -> None:
        chronicle = live(Chronicle(), deeds)
        act = chronicle.act("main")
        for name in sorted(chronicle.history.branches.all.keys() - {"main"}):
            brought = merge(chronicle.history, name, act)
            if brought.commit is not None:
                after = History([*chronicle.records, brought.commit])
                assert after.branch("main").head == brought.commit.id
                assert told(after.view(brought.commit.id)) == told(chronicle.view().after(brought.commit))
                assert list(brought.changes) == diff(chronicle.view(), after.view(brought.commit.id))
