"""Cards: whatever they hold, Discord takes them, and nothing is lost over all pages."""

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
import simcord.components
from hypothesis import given
from hypothesis import strategies as st

from discoclaw.bot.cards import memories
from discoclaw.bot.cards.card import MOST_BUTTONS, MOST_MENUS, Button, Card, Entry, Menu, Picture, Turn
from discoclaw.bot.cards.layout import rendered
from discoclaw.bot.cards.turning import asked_in, read, turn_buttons, written
from discoclaw.bot.commands.parsing import read_back
from discoclaw.bot.commands.table import CATALOGUE
from discoclaw.bot.texts.markup import opening
from discoclaw.core.item import Facets, Source, new_item
from discoclaw.core.text import collapse, scrub, utf16_length, visible
from discoclaw.core.view import View
from discoclaw.memory.conversations.rolling import Rolling
from discoclaw.show.words import line

V2 = 1 << 15
USER = "1" * 20
WILD = st.text(min_size=1, max_size=1000) | st.text(
    st.sampled_from("*_`|\\# >-1.\n😀 a"), min_size=1, max_size=3000
)


def payload(card: Card) -> list[dict[str, Any]]:
    """What goes to Discord."""

    async def made() -> list[dict[str, Any]]:
        return list(rendered(card).view.to_components())

    return asyncio.run(made())


def texts(parts: Any) -> Iterator[str]:
    for part in simcord.components.walk_components(parts):
        if part["type"] == 10:
            yield part["content"]


def check(card: Card) -> list[str]:
    """The texts of each page, after checking that Discord takes them all."""
    found: list[str] = []
    for page in range(1, len(card.pages()) + 1):
        parts = payload(replace(card, page=page))
        simcord.components.validate_components(parts, flags=V2)
        shown = list(texts(parts))
        assert sum(map(utf16_length, shown)) <= 4000
        found += shown
    return found


@st.composite
def cards(draw: st.DrawFn) -> Card:
    def button(label: str) -> Button:
        numbers.append(0)
        return Button(f"some:{USER}:{len(numbers)}", label)

    numbers: list[int] = []
    entries = [
        Entry(opening(text), small, button("⋯") if pressed else None, apart)
        for text, small, pressed, apart in draw(
            st.lists(st.tuples(WILD, st.text(max_size=400), st.booleans(), st.booleans()), max_size=12)
        )
    ]
    card = Card(
        draw(WILD),
        entries,
        small=draw(st.lists(WILD, max_size=3)),
        foot=draw(st.lists(WILD, max_size=3)),
        controls=[button("Do") for _ in range(draw(st.integers(0, 10)))],
        pictures=[Picture("a.png", b"")] * draw(st.integers(0, 1)),
        turn=draw(
            st.none()
            | st.builds(Turn, st.just(USER), st.just("search"), st.tuples(WILD.map(lambda t: t[:500])))
        ),
        most=draw(st.integers(1, 25)),
    )
    undo = button("Undo") if draw(st.booleans()) else None
    return card.said(draw(WILD), undo) if draw(st.booleans()) else card


class TestACard:
    @given(cards())
    def test_is_one_that_discord_takes(self, card: Card) -> None:
        check(card)

    @given(st.lists(WILD, min_size=1, max_size=60))
    def test_loses_nothing_over_all_its_pages(self, memories: list[str]) -> None:
        card = Card("All", [Entry(opening(text) or "…") for text in memories], turn=Turn(USER, "show"))
        shown = "".join("".join(check(card)).split())
        for text in memories:
            assert "".join(opening(text).split()) in shown

    @pytest.mark.parametrize("length", [1, 990, 3000])
    def test_with_everything_at_its_limit_is_taken_too(self, length: int) -> None:
        text, ids = "*" * length, iter(range(1000))

        def button() -> Button:
            return Button(f"some:{USER}:{next(ids)}", "⋯")

        card = Card(
            text,
            [Entry(text, text, button(), apart=True) for _ in range(30)],
            small=[text] * 3,
            foot=[text] * 3,
            pictures=[Picture("a.png", b"")],
            controls=[button() for _ in range(MOST_BUTTONS)],
            menus=[Menu(f"menu:{number}", "…", [("a", "b", "c")]) for number in range(MOST_MENUS)],
            turn=Turn(USER, "search", ("*" * 500,)),
            most=30,
        ).said(text, button())
        check(card)
        assert sum(one.control is not None for page in card.pages() for one in page) == 30

    def test_shows_its_last_page_when_it_became_shorter(self) -> None:
        card = Card("All", [Entry(str(number)) for number in range(7)], page=9)
        assert card.shown() == (2, 2, (Entry("5"), Entry("6")))

    def test_reads_as_text_too(self) -> None:
        card = Card("All", [Entry("tea", "now")], small=["1 memory"], foot=["end"]).said("Done.")
        assert card.as_text() == "Done.\n### All\n-# 1 memory\ntea\n-# now\n-# end"


def is_sayable(text: str) -> bool:
    """Whether a memory can have this text."""
    return bool(visible(collapse(scrub(text))).strip())


SAYABLE = WILD.map(lambda text: text[:1000]).filter(is_sayable)


class TestAMemory:
    @given(st.lists(SAYABLE, max_size=30), WILD, st.booleans())
    def test_of_any_text_is_on_one_of_the_pages(self, said: list[str], summary: str, private: bool) -> None:
        facets = Facets(sensitivity="private" if private else "normal")
        source = Source("discord", "1", "2")
        made = [new_item("fact", text, source=source, now_ms=1, facets=facets) for text in said]
        items = {item.id: item for item in made}
        turn, link = Turn(USER, "show"), "[where you said it](https://discord.com/channels/1/2/3)"
        about = memories.About("persona", True, 3, True)
        rolling = Rolling(summary, 1)
        card = memories.all_of(View(items), rolling, turn, "b" * 32, lambda _: link, about, page=1)
        shown = "".join("".join(check(card)).split())
        for item in items.values():
            assert "".join(opening(item.text).split()) in shown
            check(memories.one_of(item, USER, "b" * 32, 9999, lambda _: link))


class TestAMark:
    def test_at_the_start_of_a_memory_stays_a_character(self) -> None:
        for text in ("# big", "> quote", "- list", "-# small", "+ list", "12. list", "3) list"):
            said = opening(text)
            assert said.replace("\\", "", 1) == text and "\\" in said
        assert opening("a # b - c 1. d") == "a # b - c 1. d"


class TestWhatWasAsked:
    def test_comes_back_from_a_button_or_from_the_card(self) -> None:
        log = CATALOGUE.command("memory history log").params
        back = Turn(USER, "history log", (True, 50, "coding"))
        button = turn_buttons(back, 3, 9)[0].custom_id
        assert button == f"turn:{USER}:2:history log:1|50|coding"
        assert read_back(log, "1|50|coding") == {"oneline": True, "limit": 50, "persona": "coding"}
        assert read_back(log, written((False, 20, None))) == {"oneline": False, "limit": 20, "persona": None}

    @given(st.text(min_size=1, max_size=500))
    def test_is_kept_in_the_card_if_it_is_long(self, query: str) -> None:
        kept = asked_in(Turn(USER, "search", (query,)))
        assert not kept or read(f"-# {kept}") == line(query)
