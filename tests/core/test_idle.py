"""A map that lets go of what nobody uses."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discoclaw.core.idle import IdleMap


class TestIdleEntriesAreLetGo:
    def test_an_entry_is_made_once_and_told_of(self) -> None:
        told: list[str] = []
        rooms = IdleMap(list, idle_ms=10, created=told.append)
        first = rooms.use("ab", 0)
        assert first == ["a", "b"]
        assert rooms.use("ab", 5) is first
        assert told == ["ab"]

    @pytest.mark.design(148)
    def test_only_what_is_idle_longer_than_the_limit_goes_and_is_told_of_before(self) -> None:
        gone: list[tuple[str, str, bool]] = []
        rooms: IdleMap[str] = IdleMap(
            str.upper, idle_ms=10, evicted=lambda key, value: gone.append((key, value, key in list(rooms)))
        )
        rooms.use("old", 0)
        rooms.use("young", 5)
        assert rooms.evict_idle(10) == []
        assert rooms.evict_idle(11) == ["old"]
        assert gone == [("old", "OLD", True)]
        assert list(rooms) == ["young"]

    def test_looking_is_not_using(self) -> None:
        rooms = IdleMap(str, idle_ms=10)
        rooms.use("a", 0)
        assert rooms.peek("a") == "a"
        assert rooms.peek("b") is None
        assert rooms.evict_idle(11) == ["a"]

    def test_what_is_busy_stays_and_those_behind_it_still_go(self) -> None:
        rooms = IdleMap(str, idle_ms=10)
        for key in ("busy", "idle"):
            rooms.use(key, 0)
        assert rooms.evict_idle(100, busy=lambda value: value == "busy") == ["idle"]
        assert list(rooms) == ["busy"]

    def test_dropping_what_is_not_there_is_no_fault(self) -> None:
        rooms = IdleMap(str, idle_ms=10)
        rooms.drop("a")
        rooms.use("a", 0)
        rooms.drop("a")
        assert len(rooms) == 0

    @given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 7)), max_size=20), st.integers(0, 20))
    def test_what_is_left_are_the_keys_used_within_the_limit(
        self, uses: list[tuple[str, int]], limit: int
    ) -> None:
        rooms = IdleMap(str, idle_ms=limit)
        now, last = 0, {}
        for key, pause in uses:
            now += pause
            rooms.use(key, now)
            last[key] = now
        rooms.evict_idle(now + 3)
        assert set(rooms) == {key for key, used in last.items() if now + 3 - used <= limit}
