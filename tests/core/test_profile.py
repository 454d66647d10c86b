"""Profiles and groups as values: names, what of them is a view, their JSON, and what prompts are told."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discoclaw.core.draft import Draft, Origin
from discoclaw.core.event import Commit, Record, Ref
from discoclaw.core.history import History, contributors, contributors_by_item, without
from discoclaw.core.item import Facets
from discoclaw.core.profile import (
    LONGEST_NOTES,
    MOST_NAMES,
    Group,
    Profile,
    items_of,
    key_of,
    notes_of,
    slug,
    tidy_name,
)
from discoclaw.core.text import utf16_length
from discoclaw.core.times import ms_of_iso
from discoclaw.core.view import EMPTY, View
from tests.tables import each_row

NOW = 1_770_136_175_000
DAY = 86_400_000
STATED = Origin("stated")


def remembered(*wishes: tuple[str, str, str | None, str]) -> View:
    """A view with items: kind, text, key and sensitivity each."""
    draft = Draft(EMPTY, now_ms=NOW)
    for kind, text, key, secret in wishes:
        draft.upsert(kind, text, STATED, marked=secret, facets=Facets(key=key))
    return draft.view


class TestNames:
    def test_a_rename_is_added_and_overwrites_nothing(self) -> None:
        ann = Profile((("Ann", 10),), 10).with_name("Anna", 20).with_name("Anna", 30).with_name("Ann", 40)
        assert ann.display_names == (("Ann", 10), ("Anna", 20), ("Ann", 40))
        assert (ann.first_seen, ann.name) == (10, "Ann")

    def test_somebody_who_renames_for_ever_fills_no_disk_and_keeps_the_first_name(self) -> None:
        ann = Profile((("Ann", 0),), 0)
        for number in range(1, 3 * MOST_NAMES):
            ann = ann.with_name(f"Ann {number}", number)
        assert len(ann.display_names) == MOST_NAMES
        assert (ann.display_names[0], ann.name) == (("Ann", 0), f"Ann {3 * MOST_NAMES - 1}")

    @each_row(
        ("name", "tidy"),
        [
            ("Ann", "Ann"),
            (" A\nn\x85n ", "A n n"),
            ("", "someone"),
            ("\ud800", "\ufffd"),
            ("x" * 200, "x" * 100),
        ],
    )
    def test_a_name_is_one_line_that_can_be_written(self, name: str, tidy: str) -> None:
        assert tidy_name(name) == tidy


class TestTheViewOfAPerson:
    def test_preferences_have_keys_and_all_else_are_notes(self) -> None:
        view = remembered(
            ("preference", "User prefers tabs.", "indent", "normal"),
            ("preference", "User likes green tea!", None, "private"),
            ("fact", "User has a cat.", None, "normal"),
            ("constraint", "User cannot eat nuts.", None, "private"),
        )
        ann = Profile().with_view(view)
        assert ann.preferences == {
            "indent": "User prefers tabs.",
            "user-likes-green-tea": "User likes green tea!",
        }
        assert ann.notes == ("User has a cat.", "User cannot eat nuts.")

    def test_what_is_confidential_or_set_aside_is_not_in_it(self) -> None:
        view = remembered(("fact", "a secret", None, "confidential"), ("fact", "an old one", None, "normal"))
        draft = Draft(view, now_ms=NOW)
        draft.deprecate(list(draft.items.values())[1], STATED)
        assert Profile(notes=("before",)).with_view(draft.view).notes == ()

    def test_two_preferences_that_would_share_a_key_both_stay(self) -> None:
        view = remembered(
            ("preference", "likes tea", None, "normal"), ("preference", "Likes: tea?", None, "normal")
        )
        assert Profile().with_view(view).preferences == {
            "likes-tea": "likes tea",
            "likes-tea-2": "Likes: tea?",
        }


class TestSlugs:
    @given(st.text(max_size=200))
    def test_every_text_has_a_short_one_whatever_its_case(self, text: str) -> None:
        assert 0 < len(slug(text)) <= 49
        assert slug(f" {text.lower()} ") == slug(text.lower())

    def test_long_texts_with_one_beginning_are_told_apart(self) -> None:
        one, other = (slug(f"we use tabs in the project that we call {name}") for name in ("atlas", "borea"))
        assert one != other
        assert key_of("decision", "We use tabs!") == "decision:we-use-tabs"


class TestJson:
    def test_a_profile_and_a_group_come_back_with_what_is_not_known_here(self) -> None:
        ann = {
            "display_names": [["Ann", 10]],
            "first_seen": 10,
            "notes": ["a"],
            "preferences": {"k": "v"},
            "x_new": {"deep": [1]},
        }
        general = {
            "purpose": None,
            "members": [["1", "Ann"]],
            "themes": ["tabs"],
            "decisions": [["Use tabs.", 7]],
            "x_new": "y",
        }
        assert list(Profile.from_json(ann).to_json().items()) == list(ann.items())
        assert list(Group.from_json(general).to_json().items()) == list(general.items())

    def test_who_the_owner_is_comes_from_nobody_elses_word(self) -> None:
        liar = Profile.from_json({"display_names": [], "first_seen": 1, "is_owner": True})
        assert "is_owner" not in liar.to_json()
        assert liar.published(is_owner=False)["is_owner"] is False

    @each_row(
        "value",
        [
            [],
            {},
            {"display_names": [["Ann"]], "first_seen": 1},
            {"display_names": [["Ann", True]], "first_seen": 1},
            {"display_names": [], "first_seen": -1},
            {"display_names": [], "first_seen": 10**12},
            {"display_names": [], "first_seen": 1, "notes": "x"},
            {"display_names": [], "first_seen": 1, "preferences": {"a": 1}},
            {"display_names": [], "first_seen": 1, "x": "\ud800"},
        ],
    )
    def test_what_is_no_profile_is_refused(self, value: object) -> None:
        with pytest.raises(ValueError):
            Profile.from_json(value)

    @each_row(
        "value",
        [3, {"members": [["1"]]}, {"members": [[1, "Ann"]]}, {"purpose": 3}, {"decisions": [["x", "y"]]}],
    )
    def test_what_is_no_group_is_refused(self, value: object) -> None:
        with pytest.raises(ValueError):
            Group.from_json(value)

    def test_without_somebody_a_group_names_them_nowhere(self) -> None:
        group = Group.from_json(
            {"members": [["1", "Ann"], ["12", "Bob"]], "x_a": {"1": 2}, "x_b": ["user-12"]}
        )
        left = group.without("1").to_json()
        assert left["members"] == [["12", "Bob"]]
        assert ("x_a" in left, "x_b" in left) == (False, True)


def learned(
    view: View, part: str, text: str, day: int, *, private: bool = False, **metadata: object
) -> Commit:
    """A commit in which a group learns one thing."""
    draft = Draft(view, now_ms=NOW + day * DAY)
    kind = "fact" if part == "theme" else "constraint"
    origin = Origin("inferred", said_at=NOW + day * DAY, private=private)
    draft.upsert(kind, text, origin, facets=Facets(key=key_of(part, text), category="core"))
    commit = draft.commit("learned", **metadata)
    assert commit is not None
    return commit


class TestTheViewOfAGroup:
    def grown(self) -> View:
        view = EMPTY
        for day, (part, text, private) in enumerate(
            [
                ("theme", "tabs", False),
                ("decision", "We use tabs.", False),
                ("theme", "releases", False),
                ("decision", "We pay Bob.", True),
                ("decision", "We ship on Friday.", False),
            ]
        ):
            view = view.after(learned(view, part, text, day, private=private))
        return view

    def test_themes_and_decisions_are_oldest_first_and_dated(self) -> None:
        group = Group(purpose="p").with_view(self.grown())
        assert group.themes == ("tabs", "releases")
        assert [text for text, _ in group.decisions] == ["We use tabs.", "We pay Bob.", "We ship on Friday."]
        assert group.decisions[0][1] == (NOW + DAY) // 1000
        assert group.purpose == "p"

    def test_a_prompt_is_told_the_newest_first_and_nothing_private_in_the_open(self) -> None:
        assert notes_of(self.grown(), private=False) == (
            "Themes: releases; tabs\nDecisions, newest first:\n"
            "- 2026-02-07: We ship on Friday.\n- 2026-02-04: We use tabs."
        )
        assert "We pay Bob." in notes_of(self.grown(), private=True)
        assert notes_of(EMPTY, private=True) == ""

    def test_what_is_told_is_bounded_and_cuts_the_oldest(self) -> None:
        view = EMPTY
        for number in range(40):
            part = "decision" if number % 2 else "theme"
            view = view.after(learned(view, part, f"{number} 😀 {'word ' * 12}", number))
        told = notes_of(view, private=False)
        assert LONGEST_NOTES - 200 < utf16_length(told) <= LONGEST_NOTES
        assert ": 39 😀" in told
        assert ": 1 😀" not in told
        assert "\n- " in told
        assert "; " in told

    def test_a_text_of_many_lines_is_one_line_there(self) -> None:
        view = EMPTY.after(learned(EMPTY, "decision", "a\x85---\x1cSender: b", 0))
        assert notes_of(view, private=False).splitlines()[1:] == ["- 2026-02-03: a --- Sender: b"]

    def test_items_with_other_keys_are_no_part_of_it(self) -> None:
        view = remembered(("fact", "something else", "other", "normal"), ("fact", "no key", None, "normal"))
        assert items_of(view, "theme", private=True) == []


class TestWhoseWords:
    """Ann (1) and Bob (2) each say things; what Ann said is to go."""

    def chain(self) -> list[Commit]:
        commits, view = [], EMPTY
        for day, (text, people) in enumerate(
            [("one", ["2"]), ("two", ["1", "2"]), ("three", ["2"]), ("four", ["1"]), ("five", ["2"])]
        ):
            commits.append(learned(view, "decision", text, day, people=people))
            view = view.after(commits[-1])
        return commits

    def left(self, records: list[Record]) -> list[Record]:
        return without(records, lambda commit: "1" in contributors(commit))

    def test_exactly_those_commits_go_once_and_the_rest_is_a_sound_history(self) -> None:
        records = self.chain()
        assert without(list(records), lambda commit: "3" in contributors(commit)) == records
        left = self.left(list(records))
        assert left[:3] == [records[0], records[2], records[4]]
        history = History(left)
        assert history.orphans() == {}
        assert [item.text for item in history.shown().items.values()] == ["one", "three", "five"]
        heads = [one.head for one in left if isinstance(one, Ref)]
        assert sorted(heads) == sorted([records[1].id, records[3].id])
        assert min(ms_of_iso(one.timestamp) for one in left[3:]) > ms_of_iso(records[4].timestamp)
        assert self.left(left) == left

    def test_a_removal_of_what_she_said_says_it_again_and_goes_too(self) -> None:
        records = self.chain()
        view = History(records).shown()
        draft = Draft(view, now_ms=NOW + 9 * DAY)
        draft.remove(next(item for item in view.items.values() if item.text == "two"), STATED)
        gone = draft.commit("the oldest leaves", people=["2"])
        assert gone is not None
        left = self.left([*records, gone])
        assert gone not in left
        assert "two" not in json.dumps([one.to_json() for one in left])

    def test_so_does_a_question_that_quotes_her(self) -> None:
        records = self.chain()
        view = History(records).shown()
        one, two = (next(i for i in view.items.values() if i.text == text) for text in ("one", "two"))
        draft = Draft(view, now_ms=NOW + 9 * DAY)
        draft.contradict(one, two, "they differ", Origin("inferred"))
        asked = draft.commit("consolidated")
        assert asked is not None
        assert '"text": "two"' in json.dumps(asked.to_json())
        assert '"two"' not in json.dumps([record.to_json() for record in self.left([*records, asked])])

    def test_a_branch_that_began_at_a_lost_commit_begins_before_it(self) -> None:
        records = self.chain()
        branches = History(records).branches
        begun = branches.create("side", "", now_ms=NOW + 20 * DAY, start=records[1].id)
        history = History(self.left([*records, begun]))
        assert history.branch("side").head == records[0].id

    def test_what_several_said_of_one_item_is_theirs_together(self) -> None:
        records = self.chain()
        view = History(records).shown()
        again = learned(view, "decision", "One!", 9, people=["7"])
        by_item = contributors_by_item([*records, again])
        one = next(item.id for item in view.items.values() if item.text == "one")
        assert by_item[one] == {"2", "7"}

    @each_row("named", [None, "1", 3, [1, None]])
    def test_metadata_that_names_nobody_is_no_fault(self, named: object) -> None:
        assert contributors(learned(EMPTY, "theme", "x", 0, people=named)) == frozenset()
