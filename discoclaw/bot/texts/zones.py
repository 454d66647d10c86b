"""Texts about a person's time zone."""

from collections.abc import Sequence
from datetime import UTC, timezone, tzinfo

from discoclaw.bot.texts.markup import said
from discoclaw.core import zones

_TYPED = 100
_FIXED = "It has no summer time: if your clock does, name a large city that has the same time instead."


def own(zone: tzinfo, now_ms: int) -> str:
    return f"Your time zone is {_named(zone, now_ms)}."


def default(zone: tzinfo, now_ms: int, *, hidden: bool) -> str:
    """The server's zone is used here. `hidden`: the person has one, which may not be shown here."""
    why = "Your time zone is private, so here" if hidden else "I don't know your time zone, so"
    how = "to see yours, use `/memory timezone`" if hidden else "`!memory timezone <city>` sets yours"
    return f"{why} I use the server's, {_named(zone, now_ms)}; {how}."


def servers(zone: tzinfo, now_ms: int) -> str:
    """The server's zone is used, and the person can't change that now."""
    return f"I use the server's time zone, {_named(zone, now_ms)}."


def chosen(zone: tzinfo, now_ms: int) -> str:
    return (
        f"From now on your time zone is {_named(zone, now_ms)}. I use it everywhere, also outside our DMs. "
        "`!memory timezone off` forgets it."
        + (f" {_FIXED}" if isinstance(zone, timezone) and zone is not UTC else "")
    )


def unchanged(zone: tzinfo, now_ms: int) -> str:
    return f"Your time zone is already {_named(zone, now_ms)}."


def dropped(zone: tzinfo, now_ms: int, *, known: bool) -> str:
    """The server's zone counts. `known`: there was one to forget."""
    done = "Forgotten. From now on" if known else "I don't know your time zone, so"
    return f"{done} I use the server's, {_named(zone, now_ms)}."


def unknown(typed: str, near: Sequence[str]) -> str:
    """The answer to a text that names no zone, or several; `near` are those that it could mean."""
    text = f"I don't know which time zone {said(typed, _TYPED)} is."
    if near:
        meant = " or ".join(f"`{name}`" for name in near)
        return f"{text} Did you mean {meant}?"
    return (
        f"{text} Name a large city that has the same time, for example Berlin or New York, "
        "or the difference from UTC, for example UTC+2."
    )


def _named(zone: tzinfo, now_ms: int) -> str:
    return f"`{zone}`, where it is now {zones.now(now_ms, zone)}"
