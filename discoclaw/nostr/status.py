"""The state of the mirror as plain text for its owner. Knows nothing about where it is shown."""

from collections.abc import Iterable

from discoclaw.core.text import clip, collapse
from discoclaw.core.times import iso_ms, span
from discoclaw.nostr.outgoing.delivery import RelayStatus

_MAX_CHARS = 160


def status_text(statuses: Iterable[RelayStatus], npub: str, now_ms: int, quarantined: int = 0) -> str:
    """Lines of text, a block for each relay. `quarantined` counts events from relays that can't be used."""
    lines = [f"mirrored as {npub}"]
    for one in statuses:
        lines += ["", *_relay(one, now_ms)]
    if quarantined:
        lines += ["", f"{quarantined} events from relays cannot be read; they are kept for inspection"]
    return "\n".join(lines)


def _relay(one: RelayStatus, now_ms: int) -> list[str]:
    connection, queue = one.connection, one.queue
    since, eose, name = connection.connected_since_ms, connection.last_eose_ms, connection.name
    lines = [name if name == connection.address else f"{name} ({connection.address})"]
    lines.append(f"  connected: {'since ' + _minute(since) if since is not None else 'no'}")
    lines.append(f"  last complete answer: {_minute(eose) if eose is not None else 'none yet'}")
    oldest = (
        f", the oldest for {span(now_ms - queue.since)}" if queue.depth and queue.since is not None else ""
    )
    lines.append(f"  waiting: {queue.depth}{oldest}")
    for reason, count in queue.parked:
        lines.append(f"  refused permanently: {count} ({clip(collapse(reason), _MAX_CHARS)})")
    if one.pause_s > 0 and queue.depth:
        lines.append(f"  next try in {span(round(one.pause_s * 1000))}")
    failure = connection.last_error or one.last_failure
    for label, text in (("last error", failure), ("last notice", connection.last_notice)):
        if text:
            lines.append(f"  {label}: {clip(collapse(text), _MAX_CHARS)}")
    return lines


def _minute(ms: int) -> str:
    """A time in UTC, to the minute."""
    return f"{iso_ms(ms)[:16].replace('T', ' ')}Z"
