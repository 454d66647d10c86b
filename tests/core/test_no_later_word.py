"""What says nothing new of an item does not make it newer than one that replaced it."""

from collections.abc import Callable

from discoclaw.core.consolidate import apply_proposal
from discoclaw.core.draft import Draft, Origin
from discoclaw.core.item import Item
from discoclaw.core.patch import Consolidation, Duplicate
from discoclaw.core.replaced import ends
from discoclaw.core.view import View
from discoclaw.core.words import gist_of
from tests.core.builders import DAY, NOW, item
from tests.tables import each_row

ME, BOT = Origin("stated", said_at=NOW), Origin("inferred", said_at=NOW)
LINZ, GRAZ = "User lives in Linz.", "User lives in Graz."


def homes(author: str) -> tuple[Draft, Item, Item]:
    """A draft with two homes, the older one first."""
    linz = item(LINZ, author=author, updated_at=NOW - 60 * DAY)
    graz = item(GRAZ, author=author, updated_at=NOW - 30 * DAY)
    return Draft(View(items={one.id: one for one in (linz, graz)}), now_ms=NOW), linz, graz


def ended(draft: Draft) -> list[str]:
    """The texts of what a newer item replaced."""
    over = ends([one for one in draft.items.values() if one.active], lambda one: gist_of(one.text))
    return [draft.items[one].text for one in over]


@each_row(
    "change",
    [
        lambda draft, old: draft.mark(old, "private", ME),
        lambda draft, old: draft.mark(old, "private", BOT),
        lambda draft, old: draft.classify(old, "core", ME),
    ],
)
@each_row("author", ["inferred", "stated"])
def test_marking_an_old_home_does_not_end_the_present_one(
    change: Callable[[Draft, Item], object], author: str
) -> None:
    draft, linz, _ = homes(author)
    change(draft, linz)
    assert draft.items[linz.id].updated_at == linz.updated_at
    assert GRAZ not in ended(draft)


def test_merging_what_says_the_same_of_an_old_home_does_not_end_the_present_one() -> None:
    draft, linz, graz = homes("inferred")
    again = item(
        "User is at home in Linz.", author="inferred", updated_at=NOW - 50 * DAY, tags=("home", "linz")
    )
    draft.emit("add", again, again.to_json(), BOT)
    shown = {one.id: one for one in draft.items.values()}
    same = Consolidation(duplicates=[Duplicate(keep=linz.id, drop=[again.id], text=None)])
    assert apply_proposal(draft, same, shown, BOT).merged == 1
    assert draft.items[linz.id].tags == again.tags
    assert draft.items[linz.id].updated_at == again.updated_at
    assert ended(draft) == [LINZ]
    assert draft.items[graz.id] == graz


@each_row("author", ["inferred", "stated"])
def test_two_that_the_person_says_are_both_true_stay_so(author: str) -> None:
    draft, linz, graz = homes(author)
    assert ended(draft) == [LINZ]
    draft.contradict(linz, graz, "", BOT)
    draft.settle(draft.view.conflicts[0], "both_valid", ME)
    assert ended(draft) == []


@each_row("forgotten", [True, False])
def test_so_does_one_that_was_no_memory_yet(forgotten: bool) -> None:
    draft, linz, graz = homes("stated")
    (draft.deprecate if forgotten else draft.remove)(graz, ME)
    draft.upsert("fact", GRAZ, Origin("inferred", said_at=NOW + DAY), given_id=linz.id)
    draft.settle(draft.view.conflicts[0], "both_valid", ME)
    assert {one.text for one in draft.items.values() if one.active} == {LINZ, GRAZ}
    assert ended(draft) == []
