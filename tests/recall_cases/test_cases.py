"""The cases are sound: deterministic, consistent labels, parts with nothing in common, answers that exist."""

import os
import subprocess
import sys

import pytest

from bench.recall import cases_values, times
from bench.recall.cases import FRAMED, KINDS, OF_PEOPLE, cases
from bench.recall.cases_people import people
from bench.recall.cases_values import PARTS, frames, rows
from bench.recall.grammar import lines, read

EVERY = [(kind, part) for kind in KINDS for part in PARTS]
FILES = {kind: f"cases_{kind}" for kind in FRAMED}
FEWEST = {"develop": 30, "final": 15}
"""How many cases of people there are at least, of each kind."""
DIGEST = """
import hashlib
from bench.recall.cases import KINDS, cases
told = repr([
    (c.name, c.own_name, c.message, [str(i.to_json()) for i in c.items], sorted(c.must),
     sorted(c.must_not), c.first)
    for kind in KINDS for part in ("develop", "final") for c in cases(kind, part)
])
print(hashlib.sha256(told.encode()).hexdigest())
"""


def table(kind: str) -> str:
    return "domain" if kind == "preferences" else "frame"


@pytest.mark.parametrize(("kind", "part"), EVERY)
def test_every_label_is_an_item_and_no_item_has_two(kind, part):
    for case in cases(kind, part):
        ids = [item.id for item in case.items]
        assert len(set(ids)) == len(ids), case.name
        assert case.must | case.must_not <= set(ids), case.name
        assert not case.must & case.must_not, case.name
        assert case.first is None or case.first in case.must, case.name
        assert case.must_not, case.name
        if kind not in ("oneself", "inflected"):  # of these some find something, and some nothing
            assert bool(case.must) == (kind not in ("nothing", "unanswerable")), case.name


@pytest.mark.parametrize(("kind", "part"), [(kind, part) for kind in FRAMED for part in PARTS])
def test_no_text_has_an_empty_slot(kind, part):
    names = {name for frame in read(FILES[kind])[table(kind)] for name in frame.get("cols", "v x").split()}
    for case in cases(kind, part):
        for text in (case.message, *(item.text for item in case.items)):
            assert not any(f"{{{name}}}" in text for name in names), case.name


@pytest.mark.parametrize(("kind", "part"), EVERY)
def test_items_are_active_and_in_the_past(kind, part):
    for case in cases(kind, part):
        assert all(item.active and item.updated_at < case.now_ms for item in case.items), case.name


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "nothing"])
def test_no_message_has_the_same_items_twice(kind):
    found = [
        (case.message, frozenset(item.text for item in case.items))
        for part in PARTS
        for case in cases(kind, part)
    ]
    assert len(set(found)) == len(found)


def test_the_same_cases_are_made_by_another_process(capsys):
    exec(DIGEST, {})
    here = capsys.readouterr().out
    other_seed = "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"
    there = subprocess.run(
        [sys.executable, "-c", DIGEST],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONHASHSEED": other_seed},
    ).stdout
    assert here == there != ""


@pytest.mark.parametrize("kind", KINDS)
def test_the_parts_share_no_frame_and_no_message(kind):
    develop, final = (cases(kind, part) for part in PARTS)
    frames_of = [{name for case in some for name in case.frame.split(" + ")} for some in (develop, final)]
    assert frames_of[0].isdisjoint(frames_of[1])
    assert {case.message for case in develop}.isdisjoint(case.message for case in final)


@pytest.mark.parametrize("kind", KINDS)
def test_the_parts_share_no_memory(kind):
    develop, final = ({item.text for case in cases(kind, part) for item in case.items} for part in PARTS)
    assert develop.isdisjoint(final)


@pytest.mark.parametrize("part", PARTS)
def test_the_newest_is_first_and_older_ones_are_tolerated(part):
    for case in cases("replaced", part):
        if case.first:
            newest = next(item for item in case.items if item.id == case.first)
            older = [item for item in case.items if item.id not in case.must | case.must_not]
            assert older and all(item.updated_at < newest.updated_at for item in older), case.name


@pytest.mark.parametrize("part", PARTS)
def test_every_memory_of_a_person_is_in_each_of_their_cases_and_learned_in_a_talk(part):
    for person in people(part):
        items = frozenset(person.memories.values())
        assert 30 <= len({item.id for item in items}) == len(person.memories) <= 60
        assert len({item.created_at // times.DAY for item in items}) < len(items) / 2
        assert all(item.facets.links <= {one.id for one in items} for item in items)
        asked = [case for kind in OF_PEOPLE for case in cases(kind, part) if case.own_name == person.name]
        assert len(asked) == sum(len(lines) for lines in person.asked.values())
        assert all(frozenset(case.items) == items for case in asked)


@pytest.mark.parametrize("part", PARTS)
def test_what_has_to_come_first_of_the_latest_is_newer_than_what_is_tolerated_for_it(part):
    for case in cases("latest", part):
        if case.first:
            at = {item.id: item.updated_at for item in case.items}
            older = at.keys() - case.must - case.must_not
            assert older and min(at[one] for one in older) < at[case.first], case.name


@pytest.mark.parametrize("part", PARTS)
def test_a_full_name_is_in_what_it_finds(part):
    """A reader must be able to tell which item is meant: by its text, its key or an alias."""
    for frame in frames("cases_names", part):
        for row in rows(frame):
            name = row[frame["cols"].split()[0]]
            assert name in cases_values.filled(frame["must"], row), (frame["name"], name)


@pytest.mark.parametrize("part", PARTS)
def test_only_the_right_item_has_the_whole_name_and_the_right_sense(part):
    """Of the look-alikes (not the same words in another sense), none contains the whole name."""
    for frame in frames("cases_names", part):
        for row in rows(frame):
            name = row[frame["cols"].split()[0]]
            for line in lines(frame.get("near", "")) if frame["name"] != "pet and brand" else ():
                filled = f" {cases_values.filled(line, row)} "
                assert not any(f" {name}{end}" in filled for end in " .,:"), (frame["name"], name)
