"""Which memory somebody means, by its id or by its text; and what to answer when that is not clear."""

from collections.abc import Iterable, Sequence

from discoclaw.bot.answers import Unclear
from discoclaw.bot.commands.call import Call
from discoclaw.bot.texts.markup import said
from discoclaw.bot.texts.memory import line_of
from discoclaw.core.draft import find
from discoclaw.core.item import Item
from discoclaw.core.text import normalise
from discoclaw.show.words import short

MOST_NAMED = 10
_LONGEST = 100
"""Of what somebody typed, in UTF-16 units."""


def the_one(
    call: Call, items: Iterable[Item], wanted: str, verb: str, *, gone: bool = False, unseen: bool = False
) -> Item:
    """The one memory that is meant. Raises Unclear, with what comes near and how to name it.

    `gone`: one that was forgotten counts too, by its id. `unseen`: one that may not be shown here counts too,
    since its text is not repeated. `verb` is the command that is to be used with an id.
    """
    known = [item for item in items if gone or item.active]
    found = find([item for item in known if unseen or call.may_show(item)], wanted)
    if not found:
        raise Unclear(_nothing(call, [item for item in known if item.active], wanted, verb))
    if len(found) > 1:
        raise Unclear(
            f"That matches {len(found)} memories. Say which one with {_by_id(verb, '<id>')}:\n"
            + _listed(call, found)
        )
    return found[0]


def _nothing(call: Call, items: Sequence[Item], wanted: str, verb: str) -> str:
    """No match: what comes near, or where everything is listed."""
    text = normalise(wanted)
    near = [item for item in items if call.may_show(item) and text and text in normalise(item.text)]
    if len(near) == 1:
        number = short(near[0].id)
        return (
            f"I found one memory like that: {said(near[0].text)} (id {number}). "
            f"If you mean it, use {_by_id(verb, number)}."
        )
    if near:
        return (
            f"I found {len(near)} memories like that. Say which one with {_by_id(verb, '<id>')}:\n"
            + _listed(call, near)
        )
    return (
        f"I remember nothing that matches {said(wanted, _LONGEST)}. "
        "`!memory show` lists everything, with ids."
    )


def _listed(call: Call, items: Sequence[Item]) -> str:
    return "\n".join(
        line_of(item) if call.may_show(item) else f"- a private memory (id {short(item.id)})"
        for item in items[:MOST_NAMED]
    )


def _by_id(verb: str, number: str) -> str:
    return f"`!memory {verb} {number}{' <new text>' if verb == 'edit' else ''}`"
