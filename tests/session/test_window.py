"""The sliding window of a conversation."""

from hypothesis import given, settings
from hypothesis import strategies as st

from discoclaw.session.window import Window, Windows
from tests.session.scene import ANN, BOB, HOUR, ME, Clock, said


def filled(capacity: int, *numbers: int) -> Window:
    window = Window(capacity)
    for number in numbers:
        window.remember(said(number))
    return window


def ids(window: Window) -> list[int]:
    return [int(one.id) for one in window.recent()]


class TestWhatItHolds:
    def test_the_newest_messages_oldest_first(self) -> None:
        assert ids(filled(3, 1, 2, 3, 4, 5)) == [3, 4, 5]

    def test_order_is_by_id_whatever_came_first(self) -> None:
        assert ids(filled(10, 5, 1, 9, 3)) == [1, 3, 5, 9]

    def test_ids_are_numbers_not_text(self) -> None:
        assert ids(filled(10, 10, 9, 100)) == [9, 10, 100]

    def test_each_message_once(self) -> None:
        assert ids(filled(3, 1, 2, 2, 1, 3)) == [1, 2, 3]

    def test_history_goes_behind_what_was_heard_live_and_pushes_none_of_it_out(self) -> None:
        window = filled(4, 100, 101)
        for number in range(90, 100):
            window.remember(said(number))
        assert ids(window) == [98, 99, 100, 101]

    def test_before_a_message_there_is_neither_itself_nor_what_others_said_since(self) -> None:
        window = filled(9, 1, 2, 3)
        window.remember(said(4, ME))
        assert [one.id for one in window.before("2")] == ["1", "4"]

    @settings(max_examples=80, deadline=None)
    @given(st.integers(1, 12), st.lists(st.integers(1, 40)))
    def test_it_is_always_the_greatest_ids_seen(self, capacity: int, numbers: list[int]) -> None:
        assert ids(filled(capacity, *numbers)) == sorted(set(numbers))[-capacity:]


class TestResizing:
    def test_smaller_drops_the_oldest_at_once(self) -> None:
        window = filled(5, 1, 2, 3, 4, 5)
        window.resize(2)
        assert ids(window) == [4, 5]

    def test_larger_keeps_all_and_takes_more(self) -> None:
        window = filled(2, 1, 2)
        window.resize(4)
        for number in (3, 4, 5):
            window.remember(said(number))
        assert ids(window) == [2, 3, 4, 5]


class TestChangesInTheChat:
    def test_an_edited_message_keeps_its_place(self) -> None:
        window = filled(3, 1, 2, 3)
        window.amend(said(2, text="better words"))
        assert [one.text for one in window.recent()] == ["line 1", "better words", "line 3"]

    def test_an_edit_of_a_message_that_has_left_does_not_bring_it_back(self) -> None:
        window = filled(2, 1, 2, 3)
        window.amend(said(1, text="better words"))
        assert ids(window) == [2, 3]

    def test_a_deleted_message_leaves(self) -> None:
        window = filled(3, 1, 2, 3)
        window.forget("2")
        window.forget("77")
        assert ids(window) == [1, 3]


class TestAllWindows:
    def test_conversations_are_apart(self) -> None:
        windows = Windows(clock=Clock())
        windows.use("one").remember(said(1, ANN))
        windows.use("two").remember(said(2, BOB))
        assert ids(windows.use("one")) == [1]
        assert ids(windows.use("two")) == [2]

    def test_idle_ones_are_let_go_and_will_be_filled_again(self) -> None:
        clock = Clock()
        windows = Windows(clock=clock, idle_ms=HOUR)
        windows.use("one").remember(said(1))
        windows.use("one").refilled = True
        clock.forward(HOUR // 2)
        assert ids(windows.use("one")) == [1]
        clock.forward(2 * HOUR)
        assert ids(windows.use("one")) == []
        assert not windows.use("one").refilled
