"""A memory and its history as text: log, diff, items, branches, statistics, provenance, outcomes of merges.

Each thing is one line that starts with structure or has outside text in “quotes”, so nobody can forge a line.
`in_private` means that only the person reads the answer. Elsewhere, what is not of normal sensitivity is left
out or shown as "(private)". An item that was marked private later counts as private in its whole past.
What the person took back is shown as "(taken back)", except to themselves in private.
Commits are shown with their full id; commands accept its first 8 digits too.
"""

from discoclaw.show.events import Secrets, hidden, text_of
from discoclaw.show.figures import branches, stats, stats_json
from discoclaw.show.items import (
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
from discoclaw.show.log import log, newest
from discoclaw.show.provenance import commits_of, why
from discoclaw.show.taken import TAKEN_BACK, TakenFrom, taken_from

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
