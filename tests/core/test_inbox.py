"""The inbox of a conversation: which messages were handled, and what missed questions get."""

from hypothesis import given
from hypothesis import strategies as st

from discoclaw.core.inbox import KEPT, LATE_MS, MOST_BEHIND, MOST_UNHEARD, SEPARATE, Due, Inbox, Question, due

NOW = 10 * LATE_MS
IDS = st.lists(st.integers(1, 300), max_size=200)


class TestEveryMessageOnce:
    @given(ids=IDS)
    def test_a_message_is_taken_once_whatever_the_order(self, ids: list[int]) -> None:
        inbox = Inbox("1", 0, behind=True)
        taken = [one for one in ids if inbox.take(one)]
        assert sorted(taken) == sorted(set(ids))
        assert all(inbox.has(one) for one in ids)

    @given(ids=IDS, later=IDS)
    def test_nothing_is_taken_again_after_it_was_written_down_and_read(
        self, ids: list[int], later: list[int]
    ) -> None:
        before = Inbox("1", 0)
        for one in ids:
            before.take(one)
            before.heard(one)
        after = Inbox.of_json(before.as_json())
        assert after is not None
        assert not any(after.take(one) for one in ids)
        assert [after.take(one) for one in later] == [before.take(one) for one in later]

    def test_what_was_given_back_is_taken_again_and_nothing_newer_is_lost(self) -> None:
        inbox = Inbox("1", 0)
        for one in range(1, 100):
            inbox.take(one)
            if one != 7:
                inbox.heard(one)
        inbox.give_back(7)
        assert inbox.take(7) and not inbox.take(8) and not inbox.take(99)

    @given(ids=IDS, hearing=st.integers(0, 300))
    def test_what_was_being_handled_at_a_crash_is_taken_again(self, ids: list[int], hearing: int) -> None:
        before = Inbox("1", 0)
        for one in ids:
            if before.take(one) and one != hearing:
                before.heard(one)
        after = Inbox.of_json(before.as_json())
        assert after is not None
        assert after.take(hearing) == (hearing > 0 and (hearing in before.hearing or not before.has(hearing)))

    def test_only_the_newest_are_remembered_one_by_one(self) -> None:
        inbox = Inbox("1", 0)
        for one in range(1, 100):
            inbox.take(one)
            inbox.heard(one)
        assert (inbox.floor, len(inbox.handled), inbox.newest) == (99 - KEPT, KEPT, 99)

    def test_a_gap_keeps_the_floor_below_it_until_it_was_read(self) -> None:
        inbox = Inbox("1", 5, behind=True)
        for one in range(50, 50 + MOST_BEHIND):
            inbox.take(one)
            inbox.heard(one)
        assert inbox.floor == 5 and not inbox.has(6)
        inbox.caught_up()
        assert inbox.has(6)

    @given(
        value=st.recursive(
            st.none() | st.booleans() | st.integers() | st.text(max_size=5),
            lambda inner: (
                st.lists(inner, max_size=3)
                | st.dictionaries(st.sampled_from(["channel", "floor", "handled", "open", "id"]), inner)
            ),
            max_leaves=10,
        )
    )
    def test_what_is_damaged_on_disk_is_left_out(self, value: object) -> None:
        inbox = Inbox.of_json(value)
        assert inbox is None or Inbox.of_json(inbox.as_json()) == inbox


def asked(*pairs: tuple[int, str], sent_at: int = NOW) -> list[Question]:
    return [Question(str(number), author, sent_at) for number, author in pairs]


class TestMissedQuestions:
    def test_few_are_answered_one_by_one(self) -> None:
        found = due(asked((1, "ann"), (2, "ann"), (3, "bob")), NOW)
        assert found == [Due(("1",), False), Due(("2",), False), Due(("3",), False)]

    def test_many_of_one_person_are_answered_together_and_nobody_elses_with_them(self) -> None:
        found = due(asked((1, "ann"), (2, "bob"), (3, "ann"), (4, "ann")), NOW)
        assert found == [Due(("2",), False), Due(("1", "3", "4"), False)]

    def test_old_ones_get_one_word_for_each_person(self) -> None:
        old = asked((1, "ann"), (2, "ann"), (3, "bob"), sent_at=NOW - LATE_MS - 1)
        found = due([*old, *asked((4, "ann"))], NOW)
        assert found == [Due(("1", "2"), True), Due(("3",), True), Due(("4",), False)]

    @given(
        questions=st.lists(
            st.tuples(st.integers(1, 1000), st.sampled_from("abc"), st.integers(0, NOW)),
            unique_by=lambda one: one[0],
        )
    )
    def test_each_is_due_exactly_once(self, questions: list[tuple[int, str, int]]) -> None:
        found = due([Question(str(number), who, at) for number, who, at in questions], NOW)
        assert sorted(int(one) for part in found for one in part.ids) == sorted(q[0] for q in questions)
        author = {str(number): who for number, who, _ in questions}
        assert all(len({author[one] for one in part.ids}) == 1 for part in found)
        assert len(questions) > SEPARATE or all(part.late or len(part.ids) == 1 for part in found)


class TestWhatIsNotForOurEars:
    def test_is_not_taken_and_ends_with_what_is_heard_next(self) -> None:
        inbox = Inbox("1", 10)
        assert inbox.take(11) and inbox.pass_over(12) and not inbox.pass_over(15)
        assert inbox.take(20) and inbox.pass_over(30)
        assert inbox.unheard == [(12, 15), (30, 30)] and inbox.newest == 30
        assert not inbox.take(13) and not inbox.pass_over(11) and inbox.take(31)

    def test_is_known_after_it_was_written_down_and_read(self) -> None:
        inbox = Inbox("1", 10)
        inbox.pass_over(12)
        inbox.pass_over(15)
        after = Inbox.of_json(inbox.as_json())
        assert after is not None and after.unheard == [(12, 15)]
        damaged = {**inbox.as_json(), "unheard": [["9", "7"], ["x", "8"], 3, ["1"]]}
        other = Inbox.of_json(damaged)
        assert other is not None and other.unheard == []

    def test_is_bounded_and_none_of_it_is_heard_for_that(self) -> None:
        inbox = Inbox("1", 0)
        for one in range(1, 4 * MOST_UNHEARD, 2):
            inbox.pass_over(one)
            inbox.take(one + 1)
        assert len(inbox.unheard) == MOST_UNHEARD
        assert all(inbox.passed(one) for one in range(1, 4 * MOST_UNHEARD, 2))
