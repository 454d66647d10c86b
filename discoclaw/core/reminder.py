"""Reminders, as a person's ledger has them: what to say, when, how often, and where.

An event "observe" with `ext["reminder"]` says all of a reminder as it is from then on, or that it is over
(`gone`), and in `did` why. A reminder is no item: it isn't in the durable file, recall doesn't know it, and
no limit counts it. It belongs to the person and not to a persona, so its state is a fold over all records of
a ledger in their order (`Branches.reminders`). Programs that don't know reminders read a triple about nothing
they have.

`wall` is a time on the clock of whatever zone the person is in, and moves with them; `at` is a moment. What a
rule means, and which moment a `wall` is, is in `discoclaw.reminders.when`. Pure.
"""

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any, Final, Literal, TypeAlias, get_args

from discoclaw.core.event import Event
from discoclaw.core.times import valid_ms

EXT: Final = "reminder"
"""Its key in an event's `ext`."""
Did: TypeAlias = Literal["set", "changed", "delivered", "held", "deleted", "undone", "unsaid"]
"""Why a reminder became what it is. `held`: it was due, and could not be sent. `unsaid`: the message that
asked for it was deleted."""


@dataclass(frozen=True, slots=True)
class Reminder:
    """One reminder that is still to come. Either `wall` (YYYY-MM-DDTHH:MM) or `at` (ms) says when next.

    `rule` says how it repeats, "" if it doesn't. `channel` is the id of the channel to say it in, "" for the
    person's direct messages. `asked` is the message that asked for it ("<channel>/<message>"), "" if there is
    none that one can link to; `said`: in talk, so that it is over when that message is deleted. `private`:
    nobody but the person may read it. `held`: it was due, could not be sent, and waits until the person
    looks; one that repeats is tried again at its next time. `event` is the event that made it so.
    """

    id: str
    text: str
    wall: str = ""
    at: int = 0
    rule: str = ""
    channel: str = ""
    asked: str = ""
    said: bool = False
    private: bool = False
    held: bool = False
    event: str = field(default="", compare=False)

    @property
    def target(self) -> str:
        """What events about it name as their item: none has this id."""
        return f"reminder-{self.id}"


def new_id(text: str, now_ms: int) -> str:
    """The id of a reminder that is set now: eight hex digits."""
    return hashlib.sha256(f"{now_ms} {text}".encode("utf-8", "surrogatepass")).hexdigest()[:8]


def ext_of(reminder: Reminder, did: Did, *, gone: bool) -> dict[str, Any]:
    """The part of an event's `ext` that makes a reminder so, or ends it."""
    body = {name: value for name, value in asdict(reminder).items() if value and name != "event"}
    return {EXT: {**body, "did": did, **({"gone": True} if gone else {})}}


def did_in(event: Event) -> Did | None:
    """Why an event changed a reminder; None if it is about none."""
    body = event.ext.get(EXT)
    did = body.get("did") if isinstance(body, Mapping) else None
    return did if did in get_args(Did) else None


def id_in(event: Event) -> str:
    """The id of the reminder that an event is about; "" if it is about none."""
    body = event.ext.get(EXT)
    found = body.get("id") if isinstance(body, Mapping) else None
    return found if isinstance(found, str) else ""


_TEXTS: Final[Mapping[str, re.Pattern[str]]] = {
    name: re.compile(pattern, re.ASCII | re.DOTALL)
    for name, pattern in {
        "id": r"[0-9a-f]{8}",
        "text": r".{1,2000}",
        "wall": r"(?:\d{4}-\d\d-\d\dT\d\d:\d\d)?",
        "channel": r"(?:\d{1,20})?",
    }.items()
}
_ASKED: Final = re.compile(r"\d{1,20}/\d{1,20}", re.ASCII)
_EVERY = r"(?:;INTERVAL=[1-9]\d{0,2})?"
_DAY = "(?:MO|TU|WE|TH|FR|SA|SU)"
_RULES: Final = {
    "at": re.compile(rf"(?:FREQ=HOURLY{_EVERY})?", re.ASCII),
    "wall": re.compile(
        rf"(?:FREQ=DAILY{_EVERY}"
        rf"|FREQ=WEEKLY{_EVERY};BYDAY={_DAY}(?:,{_DAY})*"
        rf"|FREQ=MONTHLY{_EVERY};(?:BYDAY=(?:-1|[1-5]){_DAY}|BYMONTHDAY=(?:-1|[1-9]|[12]\d|3[01]))"
        rf"|FREQ=YEARLY{_EVERY};BYMONTH=(?:[1-9]|1[0-2]);BYMONTHDAY=(?:[1-9]|[12]\d|3[01]))?",
        re.ASCII,
    ),
}
"""The rules that a reminder may have, by what says when it comes next."""


def after(event: Event) -> Reminder | None:
    """The reminder as an event leaves it; None if it is over, or if we can't read what it says.

    A history may come from elsewhere, and one that made no sense would stop its person's others.
    """
    body = event.ext.get(EXT)
    if not isinstance(body, Mapping) or body.get("gone"):
        return None
    texts = {name: body.get(name, "") for name in (*_TEXTS, "rule", "asked")}
    at = body.get("at", 0)
    if not all(isinstance(one, str) for one in texts.values()) or not valid_ms(at):
        return None
    wall = texts["wall"]
    if bool(wall) == bool(at) or not _RULES["wall" if wall else "at"].fullmatch(texts["rule"]):
        return None
    if not all(pattern.fullmatch(texts[name]) for name, pattern in _TEXTS.items()):
        return None
    try:
        if wall and not 1970 <= datetime.fromisoformat(wall).year < 9000:
            return None
    except ValueError:
        return None
    if not _ASKED.fullmatch(texts["asked"]):
        texts["asked"] = ""
    said, private, held = (body.get(name) is True for name in ("said", "private", "held"))
    return Reminder(**texts, at=at, said=said, private=private, held=held, event=event.id)


def folded(known: Mapping[str, Reminder], events: Iterable[Event]) -> Mapping[str, Reminder]:
    """The reminders (by id) after more events; the same mapping if none is about any."""
    for event in events:
        if EXT not in event.ext or not (key := id_in(event)):
            continue
        known = {other: one for other, one in known.items() if other != key}
        if (one := after(event)) is not None:
            known[key] = one
    return known
