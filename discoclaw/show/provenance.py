"""An item's provenance: every event about it, with its commit and its source."""

from collections.abc import Callable, Iterator

from discoclaw.core.event import Commit, Event
from discoclaw.core.history import History
from discoclaw.core.item import Item, Source
from discoclaw.show.events import SIGNS, Secrets, marks
from discoclaw.show.items import is_open, traits
from discoclaw.show.log import made_by
from discoclaw.show.words import PRIVATE, UTC_TIMES, Times, line, quoted, short, when, word


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
