"""Hatching, the interview that gives the bot a personality, as a state machine.

The states describe the interview, not the personality: "asleep" means that nobody is being interviewed, even
if there is a personality from before. There is one machine, so there is one interview at a time. An event
without an entry below is refused in that state. What follows from the table:

- The personality only changes on the way from "interviewing" to "hatched", and that step is taken only once
  the new one is stored. So whatever fails or is cancelled leaves the old personality as it was.
- An interview cannot get stuck: "cancel" and "idle" end it, whatever the model does.
- "hatched" is not final: "start" begins a new interview.

    state          start          answer         malformed      soul      cancel   idle
    asleep         interviewing   –              –              –         –        –
    interviewing   –              interviewing   interviewing   hatched   asleep   asleep
    hatched        interviewing   –              –              –         –        –

Pure. Knows nothing about models, people, or where the personality is stored.
"""

from collections.abc import Mapping
from typing import Literal, TypeAlias, get_args

from discoclaw.core.errors import Refused

State: TypeAlias = Literal["asleep", "interviewing", "hatched"]
Event: TypeAlias = Literal["start", "answer", "soul", "malformed", "cancel", "idle"]
"""An event of an interview.

`start`: an owner starts it. `answer`: the model asked or said something, without a <soul> block.
`malformed`: it sent an unusable block. `soul`: it sent a block, which is stored. `cancel`: the owner ended
it. `idle`: nobody has continued it for too long.
"""

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

UNDER_WAY = "an interview is already running; whoever started it can end it with `/hatch cancel`"
NONE_UNDER_WAY = "no interview is running; start one with `/hatch start`"


def step(state: State, event: Event) -> State:
    """The state after an event. Raises Refused if the event cannot happen in that state."""
    after = MOVES.get((state, event))
    if after is None:
        raise Refused(UNDER_WAY if event == "start" else NONE_UNDER_WAY)
    return after
