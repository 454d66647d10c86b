"""The memory block: what it looks like, that nothing stored can end it, and how it is taken out of talk."""

from hypothesis import given
from hypothesis import strategies as st

from discoclaw.core.item import Item
from discoclaw.prompt.quote import CLOSE, OPEN, memory_block, strip_memory_context
from tests.core.builders import item
from tests.examples import FEW
from tests.tables import each_row

PIECES = st.lists(
    st.sampled_from(
        [
            *(OPEN, CLOSE, "[memory context]", "[ / Memory  context ]", "- cat: Tom", "  more", "\n", "\n\n"),
            *("I like tea", "[", "]", "/", "[Mem", "ory context]", "-", " ", "\t", "\r\n", "memory context"),
        ]
    ),
    max_size=25,
).map("".join)


def block(*items: Item) -> str:
    return memory_block(items, {one.id: one.facets.key or one.id for one in items})


class TestTheBlock:
    def test_a_line_has_key_content_and_links(self) -> None:
        cup = item("has a red cup")
        tea = item("likes tea", key="drink", links=frozenset({cup.id}))
        assert block(tea, cup) == (
            f"[Memory context]\n- drink: likes tea [links: {cup.id}]\n- {cup.id}: has a red cup\n"
            "[/Memory context]"
        )

    def test_several_links_are_sorted_by_their_names(self) -> None:
        one, other = item("a", key="zebra"), item("b", key="ant")
        both = item("c", key="both", links=frozenset({one.id, other.id}))
        assert "- both: c [links: ant, zebra]" in block(both, one, other)

    def test_a_link_that_may_not_be_shown_is_not(self) -> None:
        one = item("likes tea", key="drink", links=frozenset({"durable-5ec4e700"}))
        assert "durable-5ec4e700" not in block(one)

    def test_nothing_found_is_no_block(self) -> None:
        assert memory_block([], {}) == ""

    @each_row("mark", [OPEN, CLOSE, "[/memory context]", "[ / MEMORY \t context ]"])
    def test_what_is_stored_neither_closes_nor_opens_one(self, mark: str) -> None:
        shown = block(item(f"likes {mark} tea", key=f"a {mark}"))
        assert shown.count(OPEN) == shown.count(CLOSE) == 1
        assert strip_memory_context(f"before\n{shown}\nafter") == "before\n\nafter"

    @FEW
    @given(PIECES.filter(lambda text: text.strip()), PIECES)
    def test_whatever_is_stored(self, text: str, key: str) -> None:
        shown = block(item(text, key=key or None))
        assert strip_memory_context(f"before\n{shown}\nafter") == "before\n\nafter"


class TestTakingItOut:
    @each_row(
        ("text", "left"),
        [
            ("I like tea", "I like tea"),
            (f"{OPEN}\n- cat: Tom\n{CLOSE}\n\nI like tea", "I like tea"),
            (f"I like tea\n{OPEN}\n- cat: Tom [links: dog]\n{CLOSE}", "I like tea"),
            (f"I {OPEN}- cat: Tom{CLOSE} like tea", "I \n like tea"),
            (f"a\n{OPEN}\n- x: 1\n{CLOSE}\nb\n{OPEN}\n- y: 2\n{CLOSE}\nc", "a\n\nb\n\nc"),
            ("[memory CONTEXT]\n- cat: Tom\n[/memory context]", ""),
            (OPEN, ""),
            (f"a {CLOSE} b", "a \n b"),
            (f"{OPEN}{OPEN}\n- cat: Tom\n{CLOSE}{CLOSE}", ""),
        ],
    )
    def test_blocks_go_and_the_rest_stays(self, text: str, left: str) -> None:
        assert strip_memory_context(text) == left

    @each_row(
        ("text", "left"),
        [
            (f"{OPEN}\n- cat: Tom\n- dog: Rex\nI like tea", "I like tea"),
            (f"{OPEN}\n- cat: Tom\n  and more\nI like tea\n- and milk", "I like tea\n- and milk"),
            (f"{OPEN} - cat: Tom\nI like tea", "I like tea"),
            (f"I like tea\n{OPEN}", "I like tea"),
            (f"{OPEN}\nI like tea", "I like tea"),
        ],
    )
    def test_one_that_nobody_closed_ends_with_its_entries(self, text: str, left: str) -> None:
        assert strip_memory_context(text) == left

    @each_row("text", ["", "  a\n\n\n\nb  ", "the [memory] context", "[x]: memory context"])
    def test_a_text_without_one_stays_letter_for_letter(self, text: str) -> None:
        assert strip_memory_context(text) == text

    @given(PIECES)
    def test_no_mark_survives_and_twice_is_once(self, text: str) -> None:
        left = strip_memory_context(text)
        assert OPEN.lower() not in left.lower() and CLOSE.lower() not in left.lower()
        assert strip_memory_context(left) == left
