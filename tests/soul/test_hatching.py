"""The state machine of hatching: the table as a whole, and what follows from it whatever happens."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discoclaw.core.errors import Refused
from discoclaw.soul.interview import EVENTS, MOVES, STATES, State, step
from tests.tables import each_row

# Written from the words above the table, not from it.
LEGAL = {
    "asleep": {"start": "interviewing"},
    "interviewing": {
        "answer": "interviewing",
        "malformed": "interviewing",
        "soul": "hatched",
        "cancel": "asleep",
        "idle": "asleep",
    },
    "hatched": {"start": "interviewing"},
}


class TestTheTable:
    @each_row("state", STATES)
    @each_row("event", EVENTS)
    def test_every_event_in_every_state_moves_or_is_refused(self, state: State, event: str) -> None:
        after = LEGAL[state].get(event)
        if after is not None:
            assert step(state, event) == after
            return
        with pytest.raises(Refused, match="`/hatch"):
            step(state, event)

    def test_only_a_soul_hatches(self) -> None:
        assert [move for move, after in MOVES.items() if after == "hatched"] == [("interviewing", "soul")]

    @given(st.lists(st.sampled_from(EVENTS)))
    def test_every_life_can_be_ended_and_begun_anew(self, events: list[str]) -> None:
        state: State = "asleep"
        souls = 0
        for event in events:
            try:
                state = step(state, event)
            except Refused:
                continue
            souls += event == "soul"
            assert state != "hatched" or souls
        if state == "interviewing":
            state = step(state, "cancel")
        assert step(state, "start") == "interviewing"
