"""Splits a filter into several that together ask for the same. Pure."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from discoclaw.nostr.relays.wire import Filter

CHUNK: Final = 200
"""Ids or identifiers in one request: relays refuse long lists."""


def split(filter_: Filter) -> Iterator[Filter]:
    """The filter, in parts of at most `CHUNK` ids or identifiers."""
    if filter_.ids:
        for ids in _chunks(filter_.ids):
            yield replace(filter_, ids=ids)
    elif filter_.d:
        for d in _chunks(filter_.d):
            yield replace(filter_, d=d)
    else:
        yield filter_


def narrower(filter_: Filter) -> list[Filter]:
    """Filters that each ask for less: one kind, else one author, else half of the identifiers.

    Empty if the filter can't be split.
    """
    if len(filter_.kinds) > 1:
        return [replace(filter_, kinds=(kind,)) for kind in filter_.kinds]
    if len(filter_.authors) > 1:
        return [replace(filter_, authors=(author,)) for author in filter_.authors]
    if len(filter_.d) > 1:
        half = len(filter_.d) // 2
        return [replace(filter_, d=filter_.d[:half]), replace(filter_, d=filter_.d[half:])]
    return []


def _chunks(values: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    for start in range(0, len(values), CHUNK):
        yield values[start : start + CHUNK]
