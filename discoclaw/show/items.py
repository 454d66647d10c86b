"""Items as text: what holds at a point, what differs between two, the outcome of a merge, questions."""

from collections.abc import Collection, Sequence

from discoclaw.core.compare import Clash, ItemChange
from discoclaw.core.item import Item, by_newest
from discoclaw.core.merge import MergeResult
from discoclaw.core.view import Conflict, View
from discoclaw.show.events import STATUS
from discoclaw.show.words import PRIVATE, UTC_TIMES, Times, count, line, quoted, short

_SIGNS = {"added": "+", "removed": "-", "deprecated": "-", "restored": "+", "changed": "~"}
NOTHING = "nothing is remembered yet"
_LONGEST_SIDE = 600
"""Longest side of a conflict, in UTF-16 units, so that a question fits into one message with its links."""


def view(
    view: View, *, in_private: bool = True, hidden: Collection[str] = (), times: Times = UTC_TIMES
) -> str:
    """The items at a point, newest first and forgotten ones last; then the questions that are open.

    `hidden` are ids of items that became private later, which an earlier point does not know.
    """
    items = sorted(view.items.values(), key=lambda item: (not item.active, by_newest(item)))
    shown = [item for item in items if is_open(item, in_private=in_private, hidden=hidden)]
    lines = [_item(item, times) for item in shown]
    if left_out := len(items) - len(shown):
        lines.append(f"({count(left_out, 'private item')}, not shown here)")
    if view.conflicts:
        questions = [
            PRIVATE
            if not in_private and {one.item_id, one.other_id} & set(hidden)
            else conflict(view, one, in_private=in_private)
            for one in view.conflicts
        ]
        lines += ["", "to settle:", *(f"- {question}" for question in questions)]
    return "\n".join(lines) or NOTHING


def _item(item: Item, times: Times) -> str:
    """`3720777d 2026-02-09 [preference, private] text`."""
    return f"{short(item.id)} {times.day(item.updated_at)} [{', '.join(traits(item))}] {line(item.text)}"


def traits(item: Item) -> list[str]:
    """An item's kind, and what else is not as usual about it: forgotten, private."""
    secret = [] if item.facets.sensitivity == "normal" else [item.facets.sensitivity]
    return [item.kind, *([] if item.active else [STATUS["deprecated"]]), *secret]


def is_open(item: Item | None, *, in_private: bool, hidden: Collection[str] = ()) -> bool:
    """Whether an item may be shown here. `hidden` are ids of items that are private at another point."""
    if in_private or item is None:
        return True
    return item.facets.sensitivity == "normal" and item.id not in hidden


def changes(changes: Sequence[ItemChange], *, in_private: bool = True, hidden: Collection[str] = ()) -> str:
    """A diff: `+` was added, `-` removed or forgotten, `~` changed (old text first).

    `hidden` are ids of items that are private at a point other than these two.
    """
    return "\n".join(_change_lines(changes, in_private=in_private, hidden=hidden)) or "no difference"


def _change_lines(
    changes: Sequence[ItemChange], *, in_private: bool, hidden: Collection[str] = ()
) -> list[str]:
    lines: list[str] = []
    left_out = 0
    for change in changes:
        sides = (change.before, change.after)
        if all(is_open(item, in_private=in_private, hidden=hidden) for item in sides):
            lines.append(_change(change))
        else:
            left_out += 1
    return lines + ([f"({count(left_out, 'private change')}, not shown here)"] if left_out else [])


def _change(change: ItemChange) -> str:
    item, before = change.item, change.before
    start = f"{_SIGNS[change.kind]} {short(item.id)} [{', '.join(traits(item))}]"
    if change.kind != "changed" or before is None:
        note = "" if change.kind in ("added", "removed") else f" ({STATUS.get(change.kind, change.kind)})"
        words = quoted(item.text) if before is None or before.text == item.text else _from_to(before, item)
        return f"{start} {words}{note}"
    if before.text != item.text:
        return f"{start} {_from_to(before, item)}"
    return f"{start} {quoted(item.text)} ({', '.join(fields(before, item)) or 'confirmed'})"


def _from_to(before: Item, after: Item) -> str:
    return f"{quoted(before.text)} → {quoted(after.text)}"


def fields(before: Item, after: Item) -> list[str]:
    """The names of the fields that changed, other than the text."""
    one, other = before.facets, after.facets
    fields: list[tuple[str, object, object]] = [
        ("kind", before.kind, after.kind),
        ("tags", before.tags, after.tags),
        ("source", before.source, after.source),
        ("links", one.links, other.links),
        ("key", one.key, other.key),
        ("category", one.category, other.category),
        ("scope", one.scope, other.scope),
        ("confidence", one.confidence, other.confidence),
    ]
    names = [name for name, old, new in fields if old != new]
    if one.sensitivity != other.sensitivity:
        names.append("shared" if other.sensitivity == "normal" else f"now {other.sensitivity}")
    if one.author != other.author:
        names.append(f"now {other.author}")
    return names


def conflict(view: View, conflict: Conflict, *, in_private: bool = True) -> str:
    """A question to the person in one line: You told me “tabs”; later talk suggests “spaces”.

    "(private)" if it may not be shown.
    """
    item, other = view.items.get(conflict.item_id), view.items.get(conflict.other_id)
    secret = not in_private and conflict.sensitivity != "normal"
    if secret or not all(is_open(one, in_private=in_private) for one in (item, other)):
        return PRIVATE
    first, second, why_ = sides(view, conflict)
    if conflict.other_id:
        return f"{first} {second}; {why_}"
    return f"{first}; {second}"


def sides(view: View, conflict: Conflict) -> tuple[str, str, str]:
    """Both sides of a question, and why both can't hold if that is known: You told me “tabs”."""
    item = view.items.get(conflict.item_id)
    stated = item is not None and item.facets.author == "stated"
    reason = line(conflict.reason, 200)
    words = quoted(item.text, _LONGEST_SIDE) if item is not None else short(conflict.item_id)
    first = f"{'You told me' if stated else 'I remember'} {words}"
    if conflict.other_id:
        why_ = f" ({quoted(reason)})" if reason else ""
        return first, f"and also {quoted(conflict.text, _LONGEST_SIDE)}", f"both can hardly hold{why_}"
    against = quoted(conflict.text, _LONGEST_SIDE) if conflict.text else "that it no longer holds"
    if reason.startswith(("the persona ", "another persona ")):
        return first, f"another persona says {against}", ""
    return first, f"later talk suggests {against}", ""


# ---------------------------------------------------------------------- outcomes of merges


def brought(brought: MergeResult, *, in_private: bool = True) -> str:
    """The outcome of a merge, cherry-pick, revert or restore: what it changed, and what clashed."""
    lines = []
    if brought.commit is None:
        lines.append("nothing to do" if brought.clashes else "nothing to do: all of it is here already")
    else:
        done = count(len(brought.changes), "change") if brought.changes else "no item changed"
        lines.append(f"{quoted(brought.commit.message)}: {done}, commit {brought.commit.id}")
    return "\n".join([*lines, *brought_lines(brought, in_private=in_private)])


def brought_lines(brought: MergeResult, *, in_private: bool = True) -> list[str]:
    """The changes of a merge, and where both sides had changed the same; one line each."""
    lines = _change_lines(brought.changes, in_private=in_private)
    hidden = 0
    for clash in brought.clashes:
        if all(is_open(item, in_private=in_private) for item in (clash.ours, clash.theirs)):
            lines.append(_clash(clash))
        else:
            hidden += 1
    if hidden:
        lines.append(f"! changed on both sides, ours stays: {count(hidden, 'private item')}, not shown here")
    return lines


def _clash(clash: Clash) -> str:
    item = clash.ours or clash.theirs
    key = short(item.id) if item is not None else "-"
    sides = f"ours stays: {_side(clash.ours)}; theirs: {_side(clash.theirs)}"
    return f"! {key} changed on both sides, {sides}"


def _side(item: Item | None) -> str:
    if item is None:
        return "removed"
    return quoted(item.text) if item.active else f"forgotten {quoted(item.text)}"
