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


# ----------------------------------------------------------------------
# Texts for people in and around an interview.

ONLY_OWNERS = "only my owners can give me a personality; an admin sets them with DISCOCLAW_OWNER_IDS"
MEMORY_OFF = (
    "my memory is switched off here (DISCOCLAW_DURABLE_MEMORY_ENABLED), so I can't store a personality; "
    "write it to content/soul/identity.md, user.md and philosophy.md instead"
)
OPTED_OUT = (
    "you've opted out of memory, and a personality is based on what you tell me; switch memory on again with "
    "`!memory optin`, or write the files in content/soul/ yourself"
)
NOT_YOURS = "somebody else is being interviewed; only they can end it, or it ends after an hour of silence"

NO_WORDS = "I don't know what to say to that. Please put it another way."
MALFORMED = (
    "I tried to write down who I am, but got the format wrong. Say anything and I'll try again; "
    "`/hatch cancel` stops this."
)
NOT_STORED = (
    "I couldn't save that just now. Nothing is lost and nothing has changed: say anything and I'll try again."
)
OVER_MEANWHILE = "The interview is already over, so nothing has changed."
ENDLESS = "We aren't getting anywhere, so I'll stop here. Nothing has changed; `/hatch start` starts again."
IDLE = (
    "\n\n*(Our interview was idle for an hour, so it has ended and nothing has changed; "
    "`/hatch start` starts again.)*"
)
HATCHED = "That's who I am from now on. `/hatch show` shows it, `/hatch undo` takes it back."
