"""A memory and its history as text: log, diff, items, branches, statistics, provenance, outcomes of merges.

Each thing is one line that starts with structure or has outside text in “quotes”, so nobody can forge a line.
`in_private` means that only the person reads the answer. Elsewhere, what is not of normal sensitivity is left
out or shown as "(private)". An item that was marked private later counts as private in its whole past.
What the person took back is shown as "(taken back)", except to themselves in private.
Commits are shown with their full id; commands accept its first 8 digits too.
"""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from discoclaw.core.event import Commit, Event, Record, Ref, author_of
from discoclaw.core.history import Branches, History
from discoclaw.core.item import KINDS, Item, Sensitivity, Source, by_newest, triple_text
from discoclaw.core.merge import ItemChange, MergeResult
from discoclaw.core.pending import is_proposal, settled_as
from discoclaw.core.reminder import Did, after, did_in
from discoclaw.core.times import iso_ms, ms_of_iso
from discoclaw.core.view import Conflict, Fold, View
from discoclaw.show.markup import name as name_in_markup
from discoclaw.show.purge import TAKEN_BACK, TakenFrom, taken_from
from discoclaw.show.words import ACTS, PRIVATE, UTC_TIMES, Times, acts, count, line, quoted, short, when, word

# Items as text: what holds at a point, what differs between two, the outcome of a merge, questions.

_SIGNS = {"added": "+", "removed": "-", "deprecated": "-", "restored": "+", "changed": "~"}
NOTHING = "nothing is remembered yet"
_LONGEST_SIDE = 600
"""Longest side of a conflict, in UTF-16 units, so that a question fits into one message with its links."""


def view(view: View, *, times: Times = UTC_TIMES) -> str:
    """The items at a point, newest first and forgotten ones last; then the questions that are open."""
    items = sorted(view.items.values(), key=lambda item: (not item.active, by_newest(item)))
    lines = [
        f"{short(item.id)} {times.day(item.updated_at)} [{', '.join(traits(item))}] {line(item.text)}"
        for item in items
    ]
    if view.conflicts:
        lines += ["", "to settle:", *(f"- {conflict(view, one)}" for one in view.conflicts)]
    return "\n".join(lines) or NOTHING


def traits(item: Item) -> list[str]:
    """An item's kind, and what else is not as usual about it: forgotten, private."""
    secret = [] if item.facets.sensitivity == "normal" else [item.facets.sensitivity]
    return [item.kind, *([] if item.active else [STATUS["deprecated"]]), *secret]


def is_open(item: Item | None, *, in_private: bool, hidden: Collection[str] = ()) -> bool:
    """Whether an item may be shown here. `hidden` are ids of items that are private at another point."""
    if in_private or item is None:
        return True
    return item.facets.sensitivity == "normal" and item.id not in hidden


def changes(changes: Sequence[ItemChange]) -> str:
    """A diff: `+` was added, `-` removed or forgotten, `~` changed (old text first)."""
    return "\n".join(map(_change, changes)) or "no difference"


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


def brought(brought: MergeResult) -> str:
    """The outcome of a merge, cherry-pick, revert or restore: what it changed, and what clashed."""
    lines = []
    if brought.commit is None:
        lines.append("nothing to do" if brought.clashes else "nothing to do: all of it is here already")
    else:
        done = count(len(brought.changes), "change") if brought.changes else "no item changed"
        lines.append(f"{quoted(brought.commit.message)}: {done}, commit {brought.commit.id}")
    return "\n".join([*lines, *brought_lines(brought)])


def brought_lines(brought: MergeResult, *, in_private: bool = True) -> list[str]:
    """The changes of a merge, and where both sides had changed the same; one line each."""

    def may_be_shown(*items: Item | None) -> bool:
        return all(is_open(item, in_private=in_private) for item in items)

    open_ = [change for change in brought.changes if may_be_shown(change.before, change.after)]
    lines = [_change(change) for change in open_]
    if hidden := len(brought.changes) - len(open_):
        lines.append(f"({count(hidden, 'private change')}, not shown here)")
    hidden = 0
    for clash in brought.clashes:
        item = clash.ours or clash.theirs
        if not may_be_shown(clash.ours, clash.theirs):
            hidden += 1
            continue
        ours, theirs = (
            "removed"
            if side is None
            else quoted(side.text)
            if side.active
            else f"forgotten {quoted(side.text)}"
            for side in (clash.ours, clash.theirs)
        )
        key = short(item.id) if item is not None else "-"
        lines.append(f"! {key} changed on both sides, ours stays: {ours}; theirs: {theirs}")
    if hidden:
        lines.append(f"! changed on both sides, ours stays: {count(hidden, 'private item')}, not shown here")
    return lines


# ---------------------------------------------------------------------- the log


def log(
    history: History,
    *,
    branch: str | None = None,
    oneline: bool = False,
    limit: int | None = None,
    in_private: bool = True,
    own: bool = True,
    times: Times = UTC_TIMES,
) -> str:
    """The commits of a branch, or of all, newest first, with what happened to branches in between.

    `limit` is the number of commits shown. `own`: the person reads it, or an admin, and no model. Raises
    Refused if there is no such branch.
    """
    branches, secrets = history.branches, Secrets(history, in_private=in_private, own=own, branch=branch)
    heads: dict[str, list[str]] = {}  # the names of the branches at each commit; HEAD comes first
    for name in sorted(branches.all, key=lambda name: name != branches.current):
        if (head := branches.all[name].head) is not None:
            named = f"HEAD -> {word(name)}" if name == branches.current else word(name)
            heads.setdefault(head, []).append(named)
    lines: list[str] = []
    records, earlier = newest(history, branch, limit)
    for record in records:
        at = when(record.timestamp, times)
        if oneline and isinstance(record, Commit):
            decorations = [word(record.branch), *(f"{act} {word(other)[:8]}" for act, other in acts(record))]
            lines.append(f"{record.id} {at} [{', '.join(decorations)}] {line(record.message)}")
        elif isinstance(record, Commit):
            there = f" ({', '.join(heads[record.id])})" if record.id in heads else ""
            lines += ["", f"commit {record.id} [{word(record.branch)}]{there}"]
            lines.append(f"  {at}{made_by(record.metadata)}")
            source = record.metadata.get("from")
            for act, other in acts(record):
                lines.append(f"  {_act(act, word(other), word(source) if isinstance(source, str) else '')}")
            lines.append(f"  {quoted(record.message)}")
            lines += [f"    {event_line(event, secrets)}" for event in secrets.mentioned(record)]
        elif not oneline:
            lines += ["", f"-- {at} {_moved(record, in_private=in_private)}{made_by(record.metadata)}"]
    if earlier:
        lines += ([] if oneline else [""]) + [f"… {count(earlier, 'earlier commit')}"]
    return "\n".join(lines).lstrip("\n") or "there are no commits yet"


def _act(act: str, other: str, source: str) -> str:
    if act == "merge":
        return f"merge{f' of {source}' if source else ''}, second parent {other}"
    if act == "cherry-pick":
        return f"cherry-pick of {other}{f' from {source}' if source else ''}"
    return f"undo of {other}" if act == "undo" else f"back to {other}"


def _moved(ref: Ref, *, in_private: bool) -> str:
    """What happened to a branch."""
    name, at = word(ref.branch), f" at {word(ref.head)}" if ref.head is not None else ""
    if ref.action == "create":
        secret = ref.metadata.get("private") is True and not in_private
        about = PRIVATE if secret else quoted(ref.persona)
        return f"branch {name} created{at or ' empty'}" + (f": {about}" if ref.persona else "")
    if ref.action == "switch":
        return f"HEAD moved to {name}"
    if ref.action == "delete":
        return f"branch {name} deleted" + (f", it stood{at}" if at else "")
    if ref.action == "union":
        return "records of another replica were taken in"
    return "repaired: " + (f"the lost commit {word(ref.head)} is accepted as lost" if at else "accepted")


def newest(
    history: History, branch: str | None = None, limit: int | None = None
) -> tuple[Sequence[Record], int]:
    """The records of a branch, or all, newest first, and how many earlier commits are left out.

    `limit` is the number of commits. Raises Refused if there is no such branch.
    """
    records: Sequence[Record] = history.records
    if branch is not None:
        found = history.branch(branch)
        chain = {commit.id for commit in history.chain(found.head)}
        records = [
            one
            for one in records
            if (one.id in chain if isinstance(one, Commit) else one.branch in (found.name, ""))
        ]
    commits = [record for record in records if isinstance(record, Commit)]
    left = len(commits) if limit is None else min(max(0, limit), len(commits))
    if left == 0:
        return (), len(commits)
    start = next((place for place, one in enumerate(records) if one is commits[-left]), 0)
    return records[start if left < len(commits) else 0 :][::-1], len(commits) - left


def made_by(metadata: Mapping[str, Any]) -> str:
    """The maker of a record, and the messages it is based on: `, by command, message 1/2`."""
    by = metadata.get("by")
    by_whom = f", by {word(by)}" if isinstance(by, str) else ""
    several = metadata.get("messages")
    places = [metadata.get("message"), metadata.get("at"), *(several if isinstance(several, list) else [])]
    messages = list(dict.fromkeys(word(one) for one in places if isinstance(one, str) and one))
    if not messages:
        return by_whom
    more = f" and {len(messages) - 3} more" if len(messages) > 3 else ""
    return f"{by_whom}, {'message' if len(messages) == 1 else 'messages'} {' '.join(messages[:3])}{more}"


# ---------------------------------------------------------------------- branches and statistics


def branches(branches: Branches, counts: Mapping[str, int], *, in_private: bool = True) -> str:
    """One line for each branch; `*` marks the current one. `counts` is the number of items by branch name."""
    wide = max(len(word(name)) for name in branches.all)
    rows = []
    for name, branch in branches.all.items():
        mark = "*" if name == branches.current else " "
        at = branch.head or "no commits yet"
        row = f"{mark} {word(name):<{wide}} {count(counts.get(name, 0), 'item'):>9}  {at}"
        about = PRIVATE if branch.private and not in_private else quoted(branch.persona)
        rows.append(f"{row}  {about}" if branch.persona else row)
    return "\n".join(rows)


@dataclass(frozen=True, slots=True)
class _Counted:
    """What a history has: the items of all branches, each once; the current view; who did what how often."""

    items: Collection[Item]
    view: View
    times: Sequence[int]
    events: Counter[str]
    by: Counter[str]
    acts: Counter[str]


def _counted(history: History) -> _Counted:
    events, by, did = Counter[str](), Counter[str](), Counter[str]()
    for commit in history.commits.values():
        events.update(event.verb for event in commit.events)
        did.update(name for name, _ in acts(commit))
        made_by = commit.metadata.get("by")
        by[word(made_by) if isinstance(made_by, str) else "unknown"] += 1
    view = history.view(history.branches.all[history.branches.current].head)
    times = sorted(ms_of_iso(commit.timestamp) for commit in history.commits.values())
    return _Counted(history.items().values(), view, times, events, by, did)


def figures(
    history: History, time: Callable[[int], str], *, people: bool = False, in_private: bool = True
) -> list[tuple[str, str]]:
    """Statistics, each with its name: how many items of which kinds, and since when; [] if there are none.

    For `people` as markup and in their words, else also who made the changes. Items are those of all
    branches, each once; questions are those of the current branch.
    """
    if not history.commits:
        return []
    found, branches = _counted(history), history.branches
    active = [item for item in found.items if item.active]
    shown = [item for item in active if is_open(item, in_private=in_private)]
    secret = sum(item.facets.sensitivity != "normal" for item in active)
    named: Callable[[str], str] = name_in_markup if people else word
    tags = Counter(named(tag) for item in shown for tag in item.tags if re.search(r"[^\W\d_]", tag))
    first, last = time(found.times[0]), time(found.times[-1])
    pending = f"{len(found.view.pending)} pending" if found.view.pending else ""
    rows = [
        ("memories", f"{len(active)}, of these {secret} private; {len(found.items) - len(active)} forgotten"),
        ("kinds", _counts(Counter(item.kind for item in shown))),
        ("tags", _counts(tags, 10)),
        ("to settle", count(len(found.view.conflicts), "question")),
    ]
    if people:
        several = len(branches.all) > 1
        here = f", with {count(len(found.view.active()), 'memory')}" if several else ""
        rows += [
            ("waiting for your yes", pending),
            ("changes", f"{len(history.commits)}, the first {first}, the last {last}"),
            ("personas", f"{len(branches.all)}; the current one is **{named(branches.current)}**{here}"),
        ]
    else:
        did = f", of these {_counts(found.acts)}" if found.acts else ""
        rows += [
            ("to answer", pending),
            ("commits", f"{len(history.commits)}{did}"),
            ("events", _counts(found.events)),
            ("made by", _counts(found.by, 10)),
            ("branches", f"{len(branches.all)}, HEAD is {word(branches.current)}"),
            ("since", f"{first}, last change {last}"),
        ]
    return [(name, text) for name, text in rows if text]


def stats(history: History, *, times: Times = UTC_TIMES) -> str:
    """The figures of a history, one on each line."""
    return "\n".join(f"{name:<10} {text}" for name, text in figures(history, times.time)) or NOTHING


def _counts(counted: Counter[str], most: int | None = None) -> str:
    ranked = sorted(counted.items(), key=lambda pair: (-pair[1], pair[0]))
    return ", ".join(f"{name} {number}" for name, number in ranked[:most])


def stats_json(history: History) -> dict[str, Any]:
    """The numbers of `stats` as JSON, complete."""
    found = _counted(history)
    items, times = found.items, found.times
    return {
        "head": history.branches.current,
        "commits": len(history.commits),
        "first": iso_ms(times[0]) if times else None,
        "last": iso_ms(times[-1]) if times else None,
        "acts": {name: found.acts[name] for name in ACTS.values()},
        "events": {name: found.events[name] for name in SIGNS},
        "by": dict(sorted(found.by.items())),
        "items": {
            "active": sum(item.active for item in items),
            "deprecated": sum(not item.active for item in items),
            "private": sum(item.active and item.facets.sensitivity != "normal" for item in items),
            "stated": sum(item.facets.author == "stated" for item in items),
            "kinds": {kind: sum(item.kind == kind and item.active for item in items) for kind in KINDS},
        },
        "conflicts": len(found.view.conflicts),
        "pending": len(found.view.pending),
        "branches": {
            name: {
                "head": branch.head,
                "commits": len(history.chain(branch.head)),
                "active": len(history.view(branch.head).active()),
            }
            for name, branch in history.branches.all.items()
        },
    }


# ---------------------------------------------------------------------- provenance


def why(
    history: History,
    item: Item,
    *,
    link: Callable[[Source], str],
    branch: str | None = None,
    in_private: bool = True,
    own: bool = True,
    times: Times = UTC_TIMES,
) -> str:
    """An item's provenance: every event about it, oldest first, with its commit and source.

    `link` makes a URL of a Discord message. `branch` limits the events to one branch; by default all count.
    `own`: the person reads it, or an admin, and no model. Raises Refused if there is no such branch.
    """
    secrets = Secrets(history, in_private=in_private, own=own, branch=branch)
    item = secrets.item(item)
    words = line(item.text) if is_open(item, in_private=in_private) else PRIVATE
    lines = [f"{short(item.id)} [{', '.join(traits(item))}] {words}"]
    for commit in commits_of(history, branch):
        for event in secrets.mentioned(commit):
            if secrets.target(event) != item.id:
                continue
            author, at = event.ext.get("facets", {}).get("author"), when(event.timestamp, times)
            by = f", {author}" if author in ("stated", "inferred") and event.verb != "observe" else ""
            said = Source.from_text(event.source)
            source = "by hand" if event.source == "manual" else word(event.source)
            lines += [
                "",
                f"{at} commit {commit.id} [{word(commit.branch)}]{made_by(commit.metadata)}",
                f"  {SIGNS[event.verb]} {event.event_type}{marks(event)} {secrets.words(event)}",
                f"  source: {line(link(said)) if said.type == 'discord' else source}{by}",
            ]
            if event.evidence:
                lines.append(f"  evidence: {secrets.instead_of_evidence(event) or quoted(event.evidence)}")
    return "\n".join(lines if len(lines) > 1 else [*lines, "", "the history does not say where it came from"])


def commits_of(history: History, branch: str | None) -> Iterator[Commit]:
    """The commits that a branch is based on, or all of them. Raises Refused."""
    kept = None if branch is None else history.ancestors(history.branch(branch).head)
    return (commit for commit in history.commits.values() if kept is None or commit.id in kept)


# ----------------------------------------------------------------------
# One event of a history, and whether it may be shown where it is read.

SIGNS = {"add": "+", "modify": "~", "forget": "-", "observe": "?"}
STATUS = {"deprecated": "forgotten"}
"""People's words for the status of an item, or a change of it, where they differ from ours."""
REMINDED: Mapping[Did, str] = {
    "set": "set a reminder",
    "changed": "changed a reminder",
    "delivered": "reminded you",
    "held": "could not remind you",
    "deleted": "deleted a reminder",
    "undone": "took back a reminder",
    "unsaid": "deleted a reminder",
}
"""What became of a reminder."""


class Secrets:
    """Which item an event is about, and whether its words may be shown here.

    `own`: the person, or an admin, reads it. They see what waits for the person's yes, and in private what
    was taken back on `branch`. A model sees neither.
    """

    def __init__(
        self, history: History, *, in_private: bool, own: bool = True, branch: str | None = None
    ) -> None:
        self._in_private = in_private
        self._own = own
        self._taken = TakenFrom() if in_private and own else taken_from(history, branch)
        fold = Fold()  # the item ids of events that don't name their item (bare triples)
        if not all(event.ext for commit in history.commits.values() for event in commit.events):
            for commit in history.commits.values():
                for event in commit.events:
                    fold.apply(event)
        self._bare: Mapping[str, str] = fold.triples
        last: dict[tuple[str, str], Sensitivity] = {}
        self._last_said: dict[str, Event] = {}
        for commit in history.commits.values():
            for event in commit.events:
                if "link" not in event.ext:
                    self._last_said[self.target(event)] = event
                if event.verb != "observe":
                    last[self.target(event), commit.branch] = event.sensitivity
        self.hidden = frozenset(item for (item, _), secret in last.items() if secret != "normal")
        """Items that are private on at least one branch, or were when they were removed."""

    def target(self, event: Event) -> str:
        """The id of the item that an event is about."""
        item_id = event.ext.get("item", {}).get("id")
        if isinstance(item_id, str):
            return item_id
        return self._bare.get(event.id) or self._bare.get(event.parent_id or "", "-")

    def mentioned(self, commit: Commit) -> Sequence[Event]:
        """The events of a commit that are mentioned."""
        return [event for event in commit.events if self._own or not is_proposal(event)]

    def text_of_item(self, item_id: str) -> str:
        """The latest text of an item; "" if that may not be shown."""
        event = self._last_said.get(item_id)
        return "" if event is None or self.instead(event) else text_of(event)

    def open(self, event: Event) -> bool:
        """Whether an event's text may be shown."""
        if self._in_private:
            return True
        return event.sensitivity == "normal" and self.target(event) not in self.hidden

    def instead(self, event: Event) -> str:
        """The text in place of an event's words: "(private)", "(taken back)", or "" if they may be."""
        if not self.open(event):
            return PRIVATE
        noted = event.ext.get("conflict")
        text = str(noted.get("text", "")) if isinstance(noted, Mapping) else text_of(event)
        return TAKEN_BACK if self._taken.of_event(event, self.target(event), text) else ""

    def instead_of_evidence(self, event: Event) -> str:
        """The text in place of the words that an event rests on; "" if they may be shown."""
        held = self._taken.holds(event.evidence, ms_of_iso(event.timestamp))
        return self.instead(event) or (TAKEN_BACK if held else "")

    def item(self, item: Item) -> Item:
        """An item, without its words if they were taken back."""
        return self._taken.item(item)

    def words(self, event: Event) -> str:
        """An event's text, or what is shown instead."""
        return self.instead(event) or _words(event)


def verb(event: Event) -> str:
    """The word for what an event did: learned, remembered, corrected, forgot, …"""
    body = event.ext.get("item", {})
    if is_proposal(event):
        return "asked about"
    if "conflict" in event.ext:
        return "settled" if "settled" in event.ext["conflict"] else "asked about"
    if "link" in event.ext:
        return "linked"
    if (did := did_in(event)) is not None:
        return REMINDED[did] if did != "undone" or after(event) is None else "restored a reminder"
    if event.verb == "modify":
        other = "corrected" if "text" in body or not event.ext else "changed"
        return {"deprecated": "forgot", "active": "restored"}.get(body.get("status"), other)
    stated = author_of(event) == "stated"
    return {"add": "remembered" if stated else "learned", "observe": "confirmed"}.get(event.verb, "removed")


def event_line(event: Event, secrets: Secrets) -> str:
    sign = SIGNS[event.verb]
    start = f"{sign} {event.event_type:<7} {short(secrets.target(event))}{marks(event)}"
    return f"{start} {secrets.words(event)} ({word(event.source)})"


def marks(event: Event) -> str:
    """` [preference, forgotten, private]`: an event's kind and what else is not as usual."""
    body = event.ext.get("item", {})
    kind = body.get("kind", event.predicate)
    found = [kind] if kind in KINDS else []
    if event.verb == "modify" and "status" in body:
        found.append(STATUS.get(body["status"], body["status"]))
    if event.sensitivity != "normal":
        found.append(event.sensitivity)
    return f" [{', '.join(found)}]" if found else ""


def text_of(event: Event) -> str:
    """The text of an item by an event; a bare triple speaks for itself."""
    text = event.ext.get("item", {}).get("text")
    if isinstance(text, str):
        return text
    if event.ext and not event.ext.get("triple"):
        return event.object
    return triple_text(event.subject, event.predicate, event.object)


def linked(link: Mapping[str, object], other: str = "") -> str:
    """The change to the link of an event's item with another one, named by `other` or by its id."""
    other = other or short(str(link.get("to", "")))
    return f"{'linked' if link.get('on') else 'no longer linked'} with {other}"


def _words(event: Event) -> str:
    link, noted = event.ext.get("link"), event.ext.get("conflict")
    if link is not None:
        return linked(link)
    if noted is not None:
        text = noted.get("text")
        other = quoted(text) if isinstance(text, str) and text else "it no longer holds"
        return f"settled, {word(noted['settled'])}: {other}" if "settled" in noted else f"against it: {other}"
    if is_proposal(event):
        how = settled_as(event)
        return f"{f'{word(how)}, no longer waiting' if how else 'waits for a yes'}: {quoted(text_of(event))}"
    return quoted(text_of(event))


def hidden(history: History) -> frozenset[str]:
    """The items that are shown in private only, in their past too: for `view` and `changes`."""
    return Secrets(history, in_private=False).hidden
