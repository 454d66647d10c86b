"""A memory and its history as text: log, diff, items, branches, statistics, provenance, outcomes of merges.

Each thing is one line that starts with structure or has outside text in “quotes”, so nobody can forge a line.
`in_private` means that only the person reads the answer. Elsewhere, what is not of normal sensitivity is left
out or shown as "(private)". An item that was marked private later counts as private in its whole past.
What the person took back is shown as "(taken back)", except to themselves in private.
Commits are shown with their full id; commands accept its first 8 digits too.
"""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from discoclaw.core.event import Commit, Event
from discoclaw.core.history import Branches, History
from discoclaw.core.item import KINDS, Item, Source
from discoclaw.core.times import iso_ms, ms_of_iso
from discoclaw.core.view import View
from discoclaw.show.events import SIGNS, Secrets, hidden, marks, text_of
from discoclaw.show.items import (
    NOTHING,
    brought,
    brought_lines,
    changes,
    conflict,
    fields,
    is_open,
    sides,
    traits,
    view,
)
from discoclaw.show.log import log, made_by, newest
from discoclaw.show.taken import TAKEN_BACK, TakenFrom, taken_from
from discoclaw.show.words import ACTS, PRIVATE, UTC_TIMES, Times, acts, count, line, quoted, short, when, word

__all__ = (
    "log",
    "newest",
    "view",
    "changes",
    "brought",
    "brought_lines",
    "conflict",
    "fields",
    "is_open",
    "sides",
    "traits",
    "branches",
    "stats",
    "stats_json",
    "why",
    "commits_of",
    "Secrets",
    "hidden",
    "text_of",
    "TAKEN_BACK",
    "TakenFrom",
    "taken_from",
)


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
class _Figures:
    items: Collection[Item]
    view: View
    events: Counter[str]
    by: Counter[str]
    acts: Counter[str]


def _figures(history: History) -> _Figures:
    events: Counter[str] = Counter()
    by: Counter[str] = Counter()
    did: Counter[str] = Counter()
    for commit in history.commits.values():
        events.update(event.verb for event in commit.events)
        did.update(name for name, _ in acts(commit))
        made_by = commit.metadata.get("by")
        by[word(made_by) if isinstance(made_by, str) else "unknown"] += 1
    shown = history.view(history.branches.all[history.branches.current].head)
    return _Figures(history.items().values(), shown, events, by, did)


def stats(history: History, *, in_private: bool = True, times: Times = UTC_TIMES) -> str:
    """Statistics: how many items of which kinds, since when, and who made the changes.

    Items are those of all branches, each once; questions are those of the current branch.
    """
    if not history.commits:
        return NOTHING
    found = _figures(history)
    items = found.items
    secret = sum(item.active and item.facets.sensitivity != "normal" for item in items)
    shown = [item for item in items if is_open(item, in_private=in_private)]
    active = sum(item.active for item in items)
    tags = Counter(
        word(tag) for item in shown if item.active for tag in item.tags if re.search(r"[^\W\d_]", tag)
    )
    made = [commit.timestamp for commit in history.commits.values()]
    rows = [
        ("memories", f"{active}, of these {secret} private; {len(items) - active} forgotten"),
        ("kinds", _counts(Counter(item.kind for item in shown if item.active))),
        ("tags", _counts(tags, 10)),
        ("to settle", count(len(found.view.conflicts), "question")),
        ("to answer", f"{len(found.view.pending)} pending" if found.view.pending else ""),
        ("commits", _with_counts(len(history.commits), found.acts)),
        ("events", _counts(found.events)),
        ("made by", _counts(found.by, 10)),
        ("branches", f"{len(history.branches.all)}, HEAD is {word(history.branches.current)}"),
        (
            "since",
            f"{when(min(made, key=ms_of_iso), times)}, last change {when(max(made, key=ms_of_iso), times)}",
        ),
    ]
    return "\n".join(f"{name:<10} {text}" for name, text in rows if text)


def _counts(counted: Counter[str], most: int | None = None) -> str:
    ranked = sorted(counted.items(), key=lambda pair: (-pair[1], pair[0]))
    return ", ".join(f"{name} {number}" for name, number in ranked[:most])


def _with_counts(number: int, counted: Counter[str]) -> str:
    return f"{number}" + (f", of these {counts}" if (counts := _counts(counted)) else "")


def stats_json(history: History) -> dict[str, Any]:
    """The numbers of `stats` as JSON, complete."""
    found = _figures(history)
    items = found.items
    times = sorted(ms_of_iso(commit.timestamp) for commit in history.commits.values())
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
            if secrets.target(event) == item.id:
                lines += ["", *_reason(commit, event, secrets, link, times)]
    return "\n".join(lines if len(lines) > 1 else [*lines, "", "the history does not say where it came from"])


def commits_of(history: History, branch: str | None) -> Iterator[Commit]:
    """The commits that a branch is based on, or all of them. Raises Refused."""
    kept = None if branch is None else history.ancestors(history.branch(branch).head)
    return (commit for commit in history.commits.values() if kept is None or commit.id in kept)


def _reason(
    commit: Commit, event: Event, secrets: Secrets, link: Callable[[Source], str], times: Times
) -> Iterator[str]:
    author, at = event.ext.get("facets", {}).get("author"), when(event.timestamp, times)
    yield f"{at} commit {commit.id} [{word(commit.branch)}]{made_by(commit.metadata)}"
    yield f"  {SIGNS[event.verb]} {event.event_type}{marks(event)} {secrets.words(event)}"
    by = f", {author}" if author in ("stated", "inferred") and event.verb != "observe" else ""
    yield f"  source: {_source(event.source, link)}{by}"
    if event.evidence:
        yield f"  evidence: {secrets.instead_of_evidence(event) or quoted(event.evidence)}"


def _source(text: str, link: Callable[[Source], str]) -> str:
    kind, _, place = text.partition(":")
    channel, _, message = place.partition("/")
    source = Source.from_json({"type": kind, "channelId": channel, "messageId": message})
    if kind == "discord" and source.type == "discord":
        return line(link(source))
    return "by hand" if text == "manual" else word(text)
