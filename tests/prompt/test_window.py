"""The sliding window of a conversation: always the newest messages, in the order of their ids."""

from hypothesis import given
from hypothesis import strategies as st

from discoclaw.core.message import Said
from discoclaw.session.turn import Window


def said(number: int, text: str = "") -> Said:
    return Said(str(number), "1", "Ann", text or f"line {number}", 1_770_000_000_000 + number)


def filled(capacity: int, *numbers: int) -> Window:
    window = Window(capacity)
    for number in numbers:
        window.remember(said(number))
    return window


def ids(window: Window) -> list[int]:
    return [int(one.id) for one in window.recent()]


@given(st.integers(1, 12), st.lists(st.integers(1, 120)), st.integers(1, 12))
def test_it_holds_the_greatest_ids_seen_in_their_order_each_once(
    capacity: int, numbers: list[int], smaller: int
) -> None:
    window = filled(capacity, *numbers)
    assert ids(window) == sorted(set(numbers))[-capacity:]
    window.resize(smaller)
    assert ids(window) == sorted(set(numbers))[-min(capacity, smaller) :]


def test_an_edit_keeps_its_place_and_brings_nothing_back() -> None:
    window = filled(3, 1, 2, 3, 4)
    window.amend(said(3, "better words"))
    window.amend(said(1, "better words"))
    assert [one.text for one in window.recent()] == ["line 2", "better words", "line 4"]
    window.forget("3")
    window.forget("77")
    assert ids(window) == [2, 4]
