"""How the mirror is doing, in lines that its owner understands. Knows nothing about where they are shown."""

from collections.abc import Iterable

from discoclaw.core.text import clip, collapse
from discoclaw.core.times import iso_ms
from discoclaw.nostr.outgoing.delivery import Standing

_LONGEST = 160


def told(standings: Iterable[Standing], npub: str, now_ms: int, quarantined: int = 0) -> str:
    """The lines. `quarantined` events came from relays and could not be used."""
    lines = [f"mirrored as {npub}"]
    for one in standings:
        lines += ["", *_relay(one, now_ms)]
    if quarantined:
        lines += ["", f"{quarantined} events that came back could not be used; they are kept"]
    return "\n".join(lines)


def _relay(one: Standing, now_ms: int) -> list[str]:
    relay, queue = one.relay, one.queue
    since = relay.connected_since_ms
    lines = [relay.name if relay.name == relay.address else f"{relay.name} ({relay.address})"]
    lines.append(f"  connected: {'since ' + _minute(since) if since is not None else 'no'}")
    lines.append(
        f"  last full answer: {_minute(relay.last_eose_ms) if relay.last_eose_ms is not None else 'none yet'}"
    )
    waits = (
        f", the oldest for {_span(now_ms - queue.since)}" if queue.depth and queue.since is not None else ""
    )
    lines.append(f"  waiting: {queue.depth}{waits}")
    for reason, count in queue.parked:
        lines.append(f"  refused for good: {count} ({clip(collapse(reason), _LONGEST)})")
    if one.rests_s > 0 and queue.depth:
        lines.append(f"  tried again in {_span(round(one.rests_s * 1000))}")
    for label, text in (("last error", relay.last_error or one.trouble), ("last notice", relay.last_notice)):
        if text:
            lines.append(f"  {label}: {clip(collapse(text), _LONGEST)}")
    return lines


def _minute(ms: int) -> str:
    return f"{iso_ms(ms)[:16].replace('T', ' ')}Z"


def _span(ms: int) -> str:
    seconds = max(0, ms) // 1000
    for unit, size in (("d", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"
