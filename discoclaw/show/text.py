"""A memory and its history as text: log, diff, items, branches, statistics, provenance, outcomes of merges.

Each thing is one line that starts with structure or has outside text in “quotes”, so nobody can forge a line.
`in_private` means that only the person reads the answer. Elsewhere, what is not of normal sensitivity is left
out or shown as "(private)". An item that was marked private later counts as private in its whole past.
Commits are shown with their full id; commands accept its first 8 digits too.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from discoclaw.core.compare import Clash, ItemChange
from discoclaw.core.event import Commit, Event, Record, Ref
from discoclaw.core.history import Branches, History
from discoclaw.core.item import KINDS, Item, Sensitivity, Source, by_newest, triple_text
from discoclaw.core.merge import MergeResult
from discoclaw.core.times import date_of, iso_ms, ms_of_iso
from discoclaw.core.view import Conflict, Fold, View
from discoclaw.show.words import ACTS, PRIVATE, acts, count, line, quoted, short, when, word

_SIGNS = {"add": "+", "modify": "~", "forget": "-", "observe": "?"}
_CHANGE_SIGNS = {"added": "+", "removed": "-", "deprecated": "-", "restored": "+", "changed": "~"}
_STATUS = {"deprecated": "forgotten"}
"""What people call the status of an item, or a change of it, where that is another word."""
_NOTHING = "nothing is remembered yet"
_LONGEST_SIDE = 600
"""Longest side of a conflict, in UTF-16 units, so that a question fits into one message with its links."""


# ---------------------------------------------------------------------- log


def log(
    history: History,
    *,
    branch: str | None = None,
    oneline: bool = False,
    limit: int | None = None,
    in_private: bool = True,
) -> str:
    """The commits of a branch, or of all of them, newest first, with what happened to branches in between.

    `limit` is the most commits shown. Raises Refused when there is no such branch.
    """
    heads = _heads(history.branches)
    secrets = Secrets(history, in_private=in_private)
    lines: list[str] = []
    records, earlier = newest(history, branch, limit)
    for record in records:
        if oneline:
            lines += [_one_line(record)] if isinstance(record, Commit) else []
        elif isinstance(record, Commit):
            lines += ["", *_commit(history, record, heads.get(record.id, ()), secrets)]
        else:
            lines += ["", _ref(record, in_private=in_private)]
    if earlier:
        lines += ([] if oneline else [""]) + [f"… {count(earlier, 'earlier commit')}"]
    return "\n".join(lines).lstrip("\n") or "there are no commits yet"


def newest(
    history: History, branch: str | None = None, limit: int | None = None
) -> tuple[Sequence[Record], int]:
    """The records of a branch, or all, newest first, and how many earlier commits are left out.

    `limit` is the most commits. Raises Refused when there is no such branch.
    """
    records = _records(history, branch)
    commits = [record for record in records if isinstance(record, Commit)]
    left = len(commits) if limit is None else min(max(0, limit), len(commits))
    if left == 0:
        return (), len(commits)
    start = next((place for place, one in enumerate(records) if one is commits[-left]), 0)
    return records[start if left < len(commits) else 0 :][::-1], len(commits) - left


def _records(history: History, branch: str | None) -> Sequence[Record]:
    if branch is None:
        return history.records
    held = history.branch(branch)
    chain = {commit.id for commit in history.chain(held.head)}
    return [
        record
        for record in history.records
        if (record.id in chain if isinstance(record, Commit) else record.branch in (held.name, ""))
    ]


def _heads(branches: Branches) -> dict[str, list[str]]:
    """The names of the branches at each commit, by its id; HEAD comes first."""
    found: dict[str, list[str]] = {}
    for name, branch in branches.all.items():
        if branch.head is not None:
            found.setdefault(branch.head, []).append(word(name))
    current = branches.all[branches.current].head
    if current is not None and current in found:
        rest = [name for name in found[current] if name != word(branches.current)]
        found[current] = [f"HEAD -> {word(branches.current)}", *rest]
    return found


def _one_line(commit: Commit) -> str:
    marks = [word(commit.branch), *(f"{name} {word(other)[:8]}" for name, other in acts(commit))]
    return f"{commit.id} {when(commit.timestamp)} [{', '.join(marks)}] {line(commit.message)}"


def _commit(history: History, commit: Commit, heads: Sequence[str], secrets: "Secrets") -> list[str]:
    marks = f" ({', '.join(heads)})" if heads else ""
    lines = [
        f"commit {commit.id} [{word(commit.branch)}]{marks}",
        f"  {when(commit.timestamp)}{_made_by(commit.metadata)}",
    ]
    for name, other in acts(commit):
        lines.append(f"  {_act(name, word(other), commit.metadata.get('from'))}")
    lines.append(f"  {quoted(commit.message)}")
    return lines + [f"    {_event(event, secrets)}" for event in commit.events]


def _act(name: str, other: str, origin: object) -> str:
    source = f" of {word(origin)}" if isinstance(origin, str) else ""
    if name == "merge":
        return f"merge{source}, second parent {other}"
    if name == "cherry-pick":
        return f"cherry-pick of {other}" + (f" from {word(origin)}" if source else "")
    return f"undo of {other}" if name == "undo" else f"back to {other}"


def _made_by(metadata: Mapping[str, Any]) -> str:
    """Who made a record, and the messages it is based on: `, by command, message 1/2`."""
    by = metadata.get("by")
    told = f", by {word(by)}" if isinstance(by, str) else ""
    several = metadata.get("messages")
    given = [metadata.get("message"), metadata.get("at"), *(several if isinstance(several, list) else [])]
    messages = list(dict.fromkeys(word(one) for one in given if isinstance(one, str) and one))
    if not messages:
        return told
    more = f" and {len(messages) - 3} more" if len(messages) > 3 else ""
    return f"{told}, {'message' if len(messages) == 1 else 'messages'} {' '.join(messages[:3])}{more}"


def _ref(ref: Ref, *, in_private: bool) -> str:
    name, at = word(ref.branch), f" at {word(ref.head)}" if ref.head is not None else ""
    if ref.action == "create":
        secret = ref.metadata.get("private") is True and not in_private
        about = PRIVATE if secret else quoted(ref.persona)
        told = f"branch {name} created{at or ' empty'}" + (f": {about}" if ref.persona else "")
    elif ref.action == "switch":
        told = f"HEAD moved to {name}"
    elif ref.action == "delete":
        told = f"branch {name} deleted" + (f", it stood{at}" if at else "")
    elif ref.action == "union":
        told = "records of another replica were taken in"
    else:
        told = "repaired: " + (f"the lost commit {word(ref.head)} is accepted as lost" if at else "accepted")
    return f"-- {when(ref.timestamp)} {told}{_made_by(ref.metadata)}"


def _event(event: Event, secrets: "Secrets") -> str:
    sign = _SIGNS[event.event_type]
    start = f"{sign} {event.event_type:<7} {short(secrets.target(event))}{_marks(event)}"
    return f"{start} {secrets.words(event)} ({word(event.source)})"


def _marks(event: Event) -> str:
    """` [preference, forgotten, private]`: an event's kind and what else is not as usual."""
    body = event.ext.get("item", {})
    kind = body.get("kind", event.predicate)
    marks = [kind] if kind in KINDS else []
    if event.event_type == "modify" and "status" in body:
        marks.append(_STATUS.get(body["status"], body["status"]))
    if event.sensitivity != "normal":
        marks.append(event.sensitivity)
    return f" [{', '.join(marks)}]" if marks else ""


def text_of(event: Event) -> str:
    """What an item says with an event; a bare triple speaks for itself."""
    text = event.ext.get("item", {}).get("text")
    if isinstance(text, str):
        return text
    if event.ext and not event.ext.get("triple"):
        return event.object
    return triple_text(event.subject, event.predicate, event.object)


def _words(event: Event) -> str:
    link, noted = event.ext.get("link"), event.ext.get("conflict")
    if link is not None:
        return f"{'linked' if link.get('on') else 'no longer linked'} with {short(str(link.get('to', '')))}"
    if noted is not None:
        text = noted.get("text")
        told = quoted(text) if isinstance(text, str) and text else "it no longer holds"
        return f"settled, {word(noted['settled'])}: {told}" if "settled" in noted else f"against it: {told}"
    return quoted(text_of(event))


class Secrets:
    """Which item an event is about, and whether its words may be shown here."""

    def __init__(self, history: History, *, in_private: bool) -> None:
        self._in_private = in_private
        self._bare = _targets_of_bare(history)
        last: dict[tuple[str, str], Sensitivity] = {}
        for commit in history.commits.values():
            for event in commit.events:
                if event.event_type != "observe":
                    last[self.target(event), commit.branch] = event.sensitivity
        self.hidden = frozenset(item for (item, _), secret in last.items() if secret != "normal")
        """Items that are private on at least one branch, or were when they were removed."""

    def target(self, event: Event) -> str:
        """The id of the item that an event is about."""
        given = event.ext.get("item", {}).get("id")
        if isinstance(given, str):
            return given
        return self._bare.get(event.id) or self._bare.get(event.parent_id or "", "-")

    def open(self, event: Event) -> bool:
        """Whether an event's text may be shown."""
        if self._in_private:
            return True
        return event.sensitivity == "normal" and self.target(event) not in self.hidden

    def words(self, event: Event) -> str:
        """An event's text, or "(private)"."""
        return _words(event) if self.open(event) else PRIVATE


def _targets_of_bare(history: History) -> Mapping[str, str]:
    """The item ids of events that don't name their item (bare triples), by event id."""
    fold = Fold()
    if not all(event.ext for commit in history.commits.values() for event in commit.events):
        for commit in history.commits.values():
            for event in commit.events:
                fold.apply(event)
    return fold.triples


def hidden(history: History) -> frozenset[str]:
    """The items that are shown in private only, in their past too: what `view` and `changes` are given."""
    return Secrets(history, in_private=False).hidden


# ---------------------------------------------------------------------- items, diffs, conflicts


def view(view: View, *, in_private: bool = True, hidden: Collection[str] = ()) -> str:
    """What holds at a point, newest first; what was forgotten last; then what is to be settled.

    `hidden` are ids of items that became private later: an earlier point does not know of it.
    """
    items = sorted(view.items.values(), key=lambda item: (not item.active, by_newest(item)))
    shown = [item for item in items if is_open(item, in_private=in_private, hidden=hidden)]
    lines = [_item(item) for item in shown]
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
    return "\n".join(lines) or _NOTHING


def _item(item: Item) -> str:
    """`3720777d 2026-02-09 [preference, private] text`."""
    return f"{short(item.id)} {date_of(item.updated_at)} [{', '.join(traits(item))}] {line(item.text)}"


def traits(item: Item) -> list[str]:
    secret = [] if item.facets.sensitivity == "normal" else [item.facets.sensitivity]
    return [item.kind, *([] if item.active else [_STATUS["deprecated"]]), *secret]


def is_open(item: Item | None, *, in_private: bool, hidden: Collection[str] = ()) -> bool:
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
    start = f"{_CHANGE_SIGNS[change.kind]} {short(item.id)} [{', '.join(traits(item))}]"
    if change.kind != "changed" or before is None:
        told = "" if change.kind in ("added", "removed") else f" ({_STATUS.get(change.kind, change.kind)})"
        words = quoted(item.text) if before is None or before.text == item.text else _from_to(before, item)
        return f"{start} {words}{told}"
    if before.text != item.text:
        return f"{start} {_from_to(before, item)}"
    return f"{start} {quoted(item.text)} ({', '.join(_fields(before, item)) or 'confirmed'})"


def _from_to(before: Item, after: Item) -> str:
    return f"{quoted(before.text)} → {quoted(after.text)}"


def _fields(before: Item, after: Item) -> list[str]:
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
    told = [name for name, old, new in fields if old != new]
    if one.sensitivity != other.sensitivity:
        told.append("shared" if other.sensitivity == "normal" else f"now {other.sensitivity}")
    if one.author != other.author:
        told.append(f"now {other.author}")
    return told


def conflict(view: View, conflict: Conflict, *, in_private: bool = True) -> str:
    """A question to the person in one line: You told me “tabs”; later talk suggests “spaces”.

    "(private)" if it may not be shown.
    """
    item, other = view.items.get(conflict.item_id), view.items.get(conflict.other_id)
    secret = not in_private and conflict.sensitivity != "normal"
    if secret or not all(is_open(one, in_private=in_private) for one in (item, other)):
        return PRIVATE
    stated = item is not None and item.facets.author == "stated"
    reason = line(conflict.reason, 200)
    words = quoted(item.text, _LONGEST_SIDE) if item is not None else short(conflict.item_id)
    start = f"{'You told me' if stated else 'I remember'} {words}"
    if conflict.other_id:
        why_ = f" ({quoted(reason)})" if reason else ""
        return f"{start} and also {quoted(conflict.text, _LONGEST_SIDE)}; both can hardly hold{why_}"
    against = quoted(conflict.text, _LONGEST_SIDE) if conflict.text else "that it no longer holds"
    if reason.startswith(("the persona ", "another persona ")):
        return f"{start}; another persona says {against}"
    return f"{start}; later talk suggests {against}"


# ---------------------------------------------------------------------- branches and figures


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
class _Figures:
    view: View
    events: Counter[str]
    by: Counter[str]
    acts: Counter[str]


def _figures(history: History) -> _Figures:
    events: Counter[str] = Counter()
    by: Counter[str] = Counter()
    did: Counter[str] = Counter()
    for commit in history.commits.values():
        events.update(event.event_type for event in commit.events)
        did.update(name for name, _ in acts(commit))
        made_by = commit.metadata.get("by")
        by[word(made_by) if isinstance(made_by, str) else "unknown"] += 1
    return _Figures(history.view(history.branches.all[history.branches.current].head), events, by, did)


def stats(history: History, *, in_private: bool = True) -> str:
    """Statistics: how many items of which kinds, since when, and who made the changes.

    Items are those of the current branch.
    """
    if not history.commits:
        return _NOTHING
    found = _figures(history)
    items = list(found.view.items.values())
    secret = sum(item.facets.sensitivity != "normal" for item in items)
    shown = [item for item in items if is_open(item, in_private=in_private)]
    active = sum(item.active for item in items)
    tags = Counter(word(tag) for item in shown if item.active for tag in item.tags)
    times = [commit.timestamp for commit in history.commits.values()]
    rows = [
        ("items", f"{active} active, {len(items) - active} forgotten, {secret} private"),
        ("kinds", _told(Counter(item.kind for item in shown if item.active))),
        ("tags", _told(tags, 10)),
        ("to settle", count(len(found.view.conflicts), "question")),
        ("commits", _told_after(len(history.commits), found.acts)),
        ("events", _told(found.events)),
        ("made by", _told(found.by, 10)),
        ("branches", f"{len(history.branches.all)}, HEAD is {word(history.branches.current)}"),
        ("since", f"{when(min(times, key=ms_of_iso))}, last change {when(max(times, key=ms_of_iso))}"),
    ]
    return "\n".join(f"{name:<10} {told}" for name, told in rows if told)


def _told(counted: Counter[str], most: int | None = None) -> str:
    ranked = sorted(counted.items(), key=lambda pair: (-pair[1], pair[0]))
    return ", ".join(f"{name} {number}" for name, number in ranked[:most])


def _told_after(number: int, counted: Counter[str]) -> str:
    return f"{number}" + (f", of these {told}" if (told := _told(counted)) else "")


def stats_json(history: History) -> dict[str, Any]:
    """The numbers of `stats` as JSON, complete."""
    found = _figures(history)
    items = list(found.view.items.values())
    times = sorted(ms_of_iso(commit.timestamp) for commit in history.commits.values())
    return {
        "head": history.branches.current,
        "commits": len(history.commits),
        "first": iso_ms(times[0]) if times else None,
        "last": iso_ms(times[-1]) if times else None,
        "acts": {name: found.acts[name] for name in ACTS.values()},
        "events": {name: found.events[name] for name in _SIGNS},
        "by": dict(sorted(found.by.items())),
        "items": {
            "active": sum(item.active for item in items),
            "deprecated": sum(not item.active for item in items),
            "private": sum(item.facets.sensitivity != "normal" for item in items),
            "stated": sum(item.facets.author == "stated" for item in items),
            "kinds": {kind: sum(item.kind == kind and item.active for item in items) for kind in KINDS},
        },
        "conflicts": len(found.view.conflicts),
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
) -> str:
    """An item's provenance: every event about it, oldest first, with its commit and source.

    `link` makes a URL of a Discord message. `branch` limits the events to one branch; by default all count.
    Raises Refused if there is no such branch.
    """
    secrets = Secrets(history, in_private=in_private)
    words = line(item.text) if is_open(item, in_private=in_private) else PRIVATE
    lines = [f"{short(item.id)} [{', '.join(traits(item))}] {words}"]
    for commit in commits_of(history, branch):
        for event in commit.events:
            if secrets.target(event) == item.id:
                lines += ["", *_reason(commit, event, secrets, link)]
    return "\n".join(lines if len(lines) > 1 else [*lines, "", "the history does not say where it came from"])


def commits_of(history: History, branch: str | None) -> Iterator[Commit]:
    kept = None if branch is None else history.ancestors(history.branch(branch).head)
    return (commit for commit in history.commits.values() if kept is None or commit.id in kept)


def _reason(commit: Commit, event: Event, secrets: Secrets, link: Callable[[Source], str]) -> Iterator[str]:
    author = event.ext.get("facets", {}).get("author")
    yield f"{when(event.timestamp)} commit {commit.id} [{word(commit.branch)}]{_made_by(commit.metadata)}"
    yield f"  {_SIGNS[event.event_type]} {event.event_type}{_marks(event)} {secrets.words(event)}"
    by = f", {author}" if author in ("stated", "inferred") and event.event_type != "observe" else ""
    yield f"  source: {_source(event.source, link)}{by}"
    if event.evidence:
        yield f"  evidence: {quoted(event.evidence) if secrets.open(event) else PRIVATE}"


def _source(text: str, link: Callable[[Source], str]) -> str:
    kind, _, place = text.partition(":")
    channel, _, message = place.partition("/")
    source = Source.from_json({"type": kind, "channelId": channel, "messageId": message})
    if kind == "discord" and source.type == "discord":
        return line(link(source))
    return "by hand" if text == "manual" else word(text)


# ---------------------------------------------------------------------- what an act did


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
    """What it changed, and where both sides had changed the same; one line each."""
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
