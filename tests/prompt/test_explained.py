"""What answers rested on is found by the conversation, however many others there are."""

from discoclaw.core.purge import erasing
from discoclaw.session.agent import DAY_MS, Explained, Shown
from tests.counting import Counts, counted, grown
from tests.purging import from_ram


def shown(answer_id: int, at: int = 1) -> Shown:
    return Shown("1", str(answer_id), at, "main", (), summary=False, window=0)


def test_an_answer_is_found_in_the_same_steps_among_many_conversations() -> None:
    explained = Explained()

    def among(first: int, count: int) -> Counts:
        for number in range(first, count):
            explained.note(f"discord:channel:{number}", "7", shown(number))
        with counted() as counts:
            assert explained.answer("discord:channel:3", "3", later_part=False) == ("7", shown(3))
            assert explained.last("discord:channel:3", "7") == shown(3)
        return counts

    few, many = among(0, 10), among(10, 1_000)
    assert grown(few, many, most_steps=0) == {}
    assert few.steps


def test_nobody_is_kept_for_longer_than_a_day_in_a_conversation_that_goes_on() -> None:
    explained = Explained()
    for number in range(100):
        explained.note("discord:channel:1", str(number), shown(number, at=number * DAY_MS))
    assert explained.last("discord:channel:1", "99") and explained.last("discord:channel:1", "98")
    assert explained.last("discord:channel:1", "97") is None
    from_ram(explained, erasing("user-99", 99 * DAY_MS))
    assert explained.last("discord:channel:1", "99") is None
    assert explained.answer("discord:channel:1", "99", later_part=False) is None
