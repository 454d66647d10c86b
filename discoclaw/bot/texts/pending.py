"""Texts about what waits for a person's yes, and about what became of it."""

from collections.abc import Sequence

from discoclaw.bot.texts.markup import NOTE, ago, said, words
from discoclaw.core import draft_patch
from discoclaw.core.decay import DAY_MS
from discoclaw.core.item import Item
from discoclaw.core.pending import Pending
from discoclaw.core.privacy import may_show
from discoclaw.core.text import clip
from discoclaw.core.view import View
from discoclaw.core.yours import yours
from discoclaw.show.words import count, line

TITLE = "Waiting for your yes"
NOTHING = "Nothing waits for your yes."
_ROOM = 1_400
"""UTF-16 units for the words of a whole list, so that it fits into one message with everything around it."""
_LABEL = 100
"""The longest label of an option in a menu, in UTF-16 units."""


def shown(view: View, *, in_private: bool) -> list[Pending]:
    """The pending proposals that may be quoted here, oldest first."""
    return [one for one in view.pending if in_private or _is_open(view, one)]


def _is_open(view: View, one: Pending) -> bool:
    held = view.items.get(one.item.id)
    return may_show(one.item, in_dm=False) and (held is None or may_show(held, in_dm=False))


def listed(view: View, some: Sequence[Pending], *, others: int, hidden: int, days: float) -> str:
    """`some` of what is pending, numbered. `others` come later, `hidden` are not to be quoted here."""
    total = len(some) + others + hidden
    if not total:
        return NOTHING
    lines = [f"**{TITLE}** ({total})"]
    room = min(300, _ROOM // max(1, len(some)))
    for number, one in enumerate(some, 1):
        ends = lapses(one, days) if len(some) <= 10 else ""
        would_be = would(one, view.items.get(one.item.id), room)
        lines.append(f"{number}. {would_be}" + (f" ({ends})" if ends else ""))
    if others:
        lines.append(f"({more(others)})")
    if hidden:
        lines.append(f"({count(hidden, 'private one')}: use `/memory pending`, or ask me in a DM)")
    return "\n".join(lines)


def lapses(one: Pending, days: float) -> str:
    """When it lapses; "" if never."""
    return f"lapses {ago(one.at + int(days * DAY_MS))}" if days > 0 else ""


def more(others: int) -> str:
    return f"and {others} more, which come when these are answered"


def asked(one: Pending, held: Item | None) -> str:
    """A model's question about what is pending, and what exactly a yes would do, in small print."""
    question = words(one.question, draft_patch.LONGEST)
    return f"{NOTE}{question}\n{NOTE}With a yes, I {would(one, held, 300)}."


def would(one: Pending, held: Item | None, room: int) -> str:
    """The effect of a yes: `remember “You like tea.”`. `held` is the item that it would change."""
    if not one.item.active:
        return f"forget {said(yours(one.text), room)}"
    if held is None or not held.active:
        return f"remember {said(yours(one.text), room)}"
    return f"change {said(yours(held.text), room // 2)} to {said(yours(one.text), room // 2)}"


def label(number: int, one: Pending) -> str:
    """A pending one as an option of a menu."""
    return clip(f"{number}. {'' if one.item.active else 'forget: '}{line(yours(one.text), _LABEL)}", _LABEL)


def answered(items: Sequence[Item], *, yes: bool, in_private: bool) -> str:
    """The small print about proposals that were answered."""
    return "\n".join(NOTE + _became(item, yes=yes, in_private=in_private) for item in items)


def _became(item: Item, *, yes: bool, in_private: bool) -> str:
    text = line(yours(item.text), 200) if in_private or may_show(item, in_dm=False) else "something private"
    if not item.active:
        return f"forgotten: {text}" if yes else f"still remembered: {text}"
    return f"remembered: {text}" if yes else f"not remembered: {text}"


def counted(number: int, *, yes: bool) -> str:
    """That so many were answered."""
    return f"Done: you said {'yes' if yes else 'no'} to {number}."


def on(waiting: int) -> str:
    return (
        "From now on I ask before I remember something that I learned from what you said. "
        f"What you tell me with `!memory remember` I still remember at once.{_waiting(waiting)}"
    )


def off(waiting: int) -> str:
    return f"From now on I remember what I learn without asking.{_waiting(waiting)}"


def state(asks: bool, waiting: int) -> str:
    now = "I ask before I remember" if asks else "I remember without asking"
    other = "off" if asks else "on"
    return f"{now} what I learn from what you say; `!memory approve {other}` changes that.{_waiting(waiting)}"


def _waiting(number: int) -> str:
    return f" {number} still waiting for your yes: `!memory pending`." if number else ""
