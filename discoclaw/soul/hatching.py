"""How a personality comes about, as a state machine: asleep → interviewing → hatched.

The theory. The states are those of the hatching, not of the soul: "asleep" is that nobody is being asked,
and says nothing about whether there is a soul from before. There is one machine, so one interview at a time.
An event either has a row below, or it makes no sense in that state and is refused. From the rows follows:

- The soul changes with one move alone, interviewing ── soul ─→ hatched, and the move is made only when the
  soul is stored. So whatever fails or is cancelled leaves the old soul as it was.
- An interview is never stuck: "cancel" and "idle" lead out of it from anywhere, whatever the model does.
- Being hatched is no end: "start" begins anew.

    state          start          answer         malformed      soul      cancel   idle
    asleep         interviewing   –              –              –         –        –
    interviewing   –              interviewing   interviewing   hatched   asleep   asleep
    hatched        interviewing   –              –              –         –        –

Pure: knows nothing about models, people or where a soul is kept.
"""

from collections.abc import Mapping
from typing import Literal, TypeAlias, get_args

from discoclaw.core.errors import Refused

State: TypeAlias = Literal["asleep", "interviewing", "hatched"]
Event: TypeAlias = Literal["start", "answer", "soul", "malformed", "cancel", "idle"]
"""`start`: an owner wants it. The model said something: `answer` (no soul in it), `soul` (one, and it is
stored), `malformed` (one that can not be used). `cancel`: the owner ends it. `idle`: nobody goes on."""

STATES: tuple[State, ...] = get_args(State)
EVENTS: tuple[Event, ...] = get_args(Event)

MOVES: Mapping[tuple[State, Event], State] = {
    ("asleep", "start"): "interviewing",
    ("interviewing", "answer"): "interviewing",
    ("interviewing", "malformed"): "interviewing",
    ("interviewing", "soul"): "hatched",
    ("interviewing", "cancel"): "asleep",
    ("interviewing", "idle"): "asleep",
    ("hatched", "start"): "interviewing",
}

UNDER_WAY = "an interview is under way already; `/hatch cancel` by whoever began it ends it"
NONE_UNDER_WAY = "no interview is under way; `/hatch start` begins one"


def step(state: State, event: Event) -> State:
    """The state after an event. Raises Refused where the event makes no sense."""
    after = MOVES.get((state, event))
    if after is None:
        raise Refused(UNDER_WAY if event == "start" else NONE_UNDER_WAY)
    return after
