"""Texts about a person's personas, and the figures of their memory."""

from collections import Counter
from collections.abc import Mapping

from discoclaw.bot.texts.history import NOTHING
from discoclaw.bot.texts.markup import ago, name, plain, said
from discoclaw.core.history import Branches, History
from discoclaw.core.times import ms_of_iso
from discoclaw.show import text as shown
from discoclaw.show.words import PRIVATE, count, word

_MOST_TAGS = 10


def personas(branches: Branches, counts: Mapping[str, int], *, in_private: bool) -> str:
    """One line for each persona. `counts` is how many memories each has, by name."""
    lines = ["**Your personas**"]
    for one, branch in branches.all.items():
        about = PRIVATE if branch.private and not in_private else said(branch.persona)
        now = " (current)" if one == branches.current else ""
        purpose = f" – {about}" if branch.persona else ""
        lines.append(f"- **{name(one)}**{now}: {count(counts.get(one, 0), 'memory')}{purpose}")
    return "\n".join(lines)


def always(name_: str) -> str:
    """The answer where the place decides about the persona."""
    return f"This channel always uses the persona {name(name_)}."


def stats(history: History, *, in_private: bool) -> str:
    """How much I remember, as a text."""
    rows = figures(history, in_private=in_private)
    return "\n".join(f"**{title}**: {text}" for title, text in rows) or NOTHING


def figures(history: History, *, in_private: bool) -> list[tuple[str, str]]:
    """How much I remember, of what kind and since when; memories are those of all personas, each once."""
    if not history.commits:
        return []
    branches = history.branches
    view = history.view(branches.all[branches.current].head)
    items = list(history.items().values())
    active = [item for item in items if item.active]
    open_ = [item for item in active if shown.is_open(item, in_private=in_private)]
    secret = sum(item.facets.sensitivity != "normal" for item in active)
    times = [ms_of_iso(commit.timestamp) for commit in history.commits.values()]
    several = len(branches.all) > 1
    here = f", with {count(len(view.active()), 'memory')}" if several else ""
    rows = [
        ("Memories", f"{len(active)}, of these {secret} private; {len(items) - len(active)} forgotten"),
        ("Kinds", _counted(Counter(item.kind for item in open_))),
        ("Tags", _counted(Counter(word(tag) for item in open_ for tag in item.tags), _MOST_TAGS)),
        ("To settle", count(len(view.conflicts), "question")),
        ("Waiting for your yes", f"{len(view.pending)} pending" if view.pending else ""),
        ("Changes", f"{len(history.commits)}, the first {ago(min(times))}, the last {ago(max(times))}"),
        ("Personas", f"{len(branches.all)}; the current one is **{name(branches.current)}**{here}"),
    ]
    return [(title, text) for title, text in rows if text]


def _counted(counted: Counter[str], most: int | None = None) -> str:
    ranked = sorted(counted.items(), key=lambda pair: (-pair[1], pair[0]))
    return ", ".join(f"{plain(one)} {number}" for one, number in ranked[:most])
