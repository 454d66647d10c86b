"""The log of a history: its commits, newest first, and what happened to branches in between."""

from collections.abc import Mapping, Sequence
from typing import Any

from discoclaw.core.event import Commit, Record, Ref
from discoclaw.core.history import Branches, History
from discoclaw.show.events import Secrets, event_line
from discoclaw.show.words import PRIVATE, UTC_TIMES, Times, acts, count, line, quoted, when, word


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
    heads = _heads(history.branches)
    secrets = Secrets(history, in_private=in_private, own=own, branch=branch)
    lines: list[str] = []
    records, earlier = newest(history, branch, limit)
    for record in records:
        if oneline:
            lines += [_one_line(record, times)] if isinstance(record, Commit) else []
        elif isinstance(record, Commit):
            lines += ["", *_commit(record, heads.get(record.id, ()), secrets, times)]
        else:
            lines += ["", _ref(record, times, in_private=in_private)]
    if earlier:
        lines += ([] if oneline else [""]) + [f"… {count(earlier, 'earlier commit')}"]
    return "\n".join(lines).lstrip("\n") or "there are no commits yet"


def newest(
    history: History, branch: str | None = None, limit: int | None = None
) -> tuple[Sequence[Record], int]:
    """The records of a branch, or all, newest first, and how many earlier commits are left out.

    `limit` is the number of commits. Raises Refused if there is no such branch.
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
    found = history.branch(branch)
    chain = {commit.id for commit in history.chain(found.head)}
    return [
        record
        for record in history.records
        if (record.id in chain if isinstance(record, Commit) else record.branch in (found.name, ""))
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


def _one_line(commit: Commit, times: Times) -> str:
    decorations = [word(commit.branch), *(f"{name} {word(other)[:8]}" for name, other in acts(commit))]
    return f"{commit.id} {when(commit.timestamp, times)} [{', '.join(decorations)}] {line(commit.message)}"


def _commit(commit: Commit, heads: Sequence[str], secrets: Secrets, times: Times) -> list[str]:
    decorations = f" ({', '.join(heads)})" if heads else ""
    lines = [
        f"commit {commit.id} [{word(commit.branch)}]{decorations}",
        f"  {when(commit.timestamp, times)}{made_by(commit.metadata)}",
    ]
    for name, other in acts(commit):
        lines.append(f"  {_act(name, word(other), commit.metadata.get('from'))}")
    lines.append(f"  {quoted(commit.message)}")
    return lines + [f"    {event_line(event, secrets)}" for event in secrets.mentioned(commit)]


def _act(name: str, other: str, origin: object) -> str:
    source = f" of {word(origin)}" if isinstance(origin, str) else ""
    if name == "merge":
        return f"merge{source}, second parent {other}"
    if name == "cherry-pick":
        return f"cherry-pick of {other}" + (f" from {word(origin)}" if source else "")
    return f"undo of {other}" if name == "undo" else f"back to {other}"


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


def _ref(ref: Ref, times: Times, *, in_private: bool) -> str:
    name, at = word(ref.branch), f" at {word(ref.head)}" if ref.head is not None else ""
    if ref.action == "create":
        secret = ref.metadata.get("private") is True and not in_private
        about = PRIVATE if secret else quoted(ref.persona)
        event = f"branch {name} created{at or ' empty'}" + (f": {about}" if ref.persona else "")
    elif ref.action == "switch":
        event = f"HEAD moved to {name}"
    elif ref.action == "delete":
        event = f"branch {name} deleted" + (f", it stood{at}" if at else "")
    elif ref.action == "union":
        event = "records of another replica were taken in"
    else:
        event = "repaired: " + (f"the lost commit {word(ref.head)} is accepted as lost" if at else "accepted")
    return f"-- {when(ref.timestamp, times)} {event}{made_by(ref.metadata)}"
