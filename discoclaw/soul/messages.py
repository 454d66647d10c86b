"""Texts for people in and around an interview.

The first four are refusals, which start in lower case and have no full stop. The others are sent as they are.
"""

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
