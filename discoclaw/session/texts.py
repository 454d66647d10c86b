"""The names of the texts in the store that a turn reads, by which to ask whether another process changed one.

Names are as in `core/processes`. Whoever reads one more text in a turn adds it here.
"""

from collections.abc import Iterator

from discoclaw.core.bot_memory import BOT
from discoclaw.core.message import Inbound
from discoclaw.core.subject import group_subject, user_subject
from discoclaw.memory.disk.files import session_name
from discoclaw.memory.disk.port import CURSORS, GROUPS, LEDGERS, PROFILES, ROLLING

_EVERYBODYS = (
    "config.json",
    "signed.json",
    "tombstones.jsonl",
    "clears.jsonl",
    f"{LEDGERS}/{BOT}.jsonl",
    f"{CURSORS}/hatch-offered.json",
)
"""The texts that every turn reads: the configuration, what was erased or cleared, the bot's personality."""


def texts_of(message: Inbound) -> Iterator[str]:
    """The texts that the turn of a message reads; a process that is alone asks for none of them."""
    yield from texts_about(message.author.id)
    session, group = session_name(message.session_key), message.place.group_id
    yield from (f"{ROLLING}/{session}", f"{CURSORS}/{session}")
    yield from (
        f"{CURSORS}/{session_name(f'{kind}-{message.session_key}')}" for kind in ("summary", "people")
    )
    if group is not None:
        yield from (f"{LEDGERS}/{group_subject(group)}.jsonl", f"{GROUPS}/{group}.json")


def texts_about(user_id: str) -> Iterator[str]:
    """The texts that a command or a press of a person reads."""
    subject = user_subject(user_id)
    cursors = (f"facts-{user_id}", f"asked-{user_id}", f"hatching-{user_id}", f"access-{subject}")
    yield from _EVERYBODYS
    yield from (f"{LEDGERS}/{subject}.jsonl", f"{PROFILES}/{user_id}.json", f"choices/{user_id}.json")
    yield from (f"{CURSORS}/{session_name(name)}" for name in cursors)
