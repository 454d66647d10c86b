"""What a few words may mean: what holds them all, and what comes nearest."""

import pytest

from discoclaw.core.item import MANUAL, Facets, Item, new_item
from discoclaw.recall.meant import like, nearest


def item(text: str, *tags: str) -> Item:
    return new_item("fact", text, tags=tags, source=MANUAL, now_ms=1, facets=Facets())


COFFEE = item("User takes coffee black.")
TEA = item("User likes tea", "beverage")
TEAM = item("User leads a team")
ACME = item("Works at Acme Corporation in Berlin")
KAFFEE = item("Nutzer trinkt Kaffee schwarz")
EVERY = [COFFEE, TEA, TEAM, ACME, KAFFEE]


@pytest.mark.parametrize(
    ("typed", "found"),
    [
        ("coffee", [COFFEE]),
        ("BLACK coffee", [COFFEE]),
        ("my coffee", [COFFEE]),
        ("taking coffee", [COFFEE]),
        ("coff", [COFFEE]),
        ("tea", [TEA]),
        ("te", [TEA, TEAM]),
        ("beverages", [TEA]),
        ("kaffee", [KAFFEE]),
        ("acme munich", []),
        ("cofee", []),
        ("", []),
        (" \n", []),
    ],
)
def test_all_words_are_in_what_is_like_them(typed: str, found: list[Item]) -> None:
    assert like(EVERY, typed) == found


@pytest.mark.parametrize(
    ("typed", "found"),
    [
        ("cofee", COFFEE),
        ("green coffee", COFFEE),
        ("Berln", ACME),
        ("acme munich", ACME),
        ("schwarzen kaffee", KAFFEE),
        ("the blue car of my aunt", None),
        ("zebra", None),
        ("user", None),
        ("", None),
    ],
)
def test_the_nearest_shares_words_or_spellings(typed: str, found: Item | None) -> None:
    assert nearest(EVERY, typed) == found


def test_among_nothing_nothing_is_near() -> None:
    assert nearest([], "coffee") is None
