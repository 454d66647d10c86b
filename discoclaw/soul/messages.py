"""What people are told while a personality comes about, or does not. Text only.

Texts of refusals begin small and have no full stop, as all refusals; the others are said as they are.
"""

ONLY_OWNERS = "only my owners can give me a personality; whoever runs me names them with DISCOCLAW_OWNER_IDS"
MEMORY_OFF = (
    "my memory is switched off here (DISCOCLAW_DURABLE_MEMORY_ENABLED), so I could not keep a personality; "
    "write it into content/soul/identity.md, user.md and philosophy.md instead"
)
OPTED_OUT = (
    "you have opted out of memory, and a personality rests on what you tell me; `!memory optin` switches "
    "memory on again, or write content/soul/ yourself"
)
NOT_YOURS = "somebody else is being interviewed; only they can end it, or an hour of silence does"

NO_WORDS = "I did not find words for that. Please put it another way."
MALFORMED = (
    "I tried to write down who I am, and made a mess of it. Say anything, and I try again; "
    "`/hatch cancel` ends this."
)
NOT_STORED = (
    "I could not store that just now. Nothing is lost and nothing has changed: say anything, and I try again."
)
OVER_MEANWHILE = "The interview is over, so I leave it at that."
ENDLESS = "We have come to no end, so I stop here; nothing has changed. `/hatch start` begins anew."
IDLE = (
    "\n\n*(Our interview lay idle for an hour, so it is over and nothing has changed; "
    "`/hatch start` begins anew.)*"
)
HATCHED = "That is who I am from now on. `/hatch show` shows it, `/hatch undo` takes it back."
