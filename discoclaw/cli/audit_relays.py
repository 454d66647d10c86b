"""The part of `discoclaw audit privacy` that asks relays: what anybody can read there of our events."""

import re

from discoclaw.cli.relays import nostr_context, relays_of
from discoclaw.core.audit import Finding
from discoclaw.memory.auditing import Audit
from discoclaw.nostr.event import Event
from discoclaw.nostr.relays.wire import Filter
from discoclaw.settings import Settings

_CIPHERTEXT = re.compile(r"[A-Za-z0-9+/=_-]{32,}")
"""Ciphertexts, hashes and pseudonyms, in which words would be chance."""


async def on_relays(settings: Settings, audit: Audit) -> tuple[list[Finding], list[str]]:
    """Findings about what is in the clear, and why a relay could not be asked. Raises SettingsError."""
    keys = nostr_context(settings).config.keys
    found: list[Finding] = []
    reasons = []
    async with relays_of(settings, keys) as relays:
        for relay in relays:

            async def take(events: list[Event], url: str = relay.url) -> None:
                for one in events:
                    place = f"{url}: {one.d or 'an event'} ({one.id[:12]})"
                    found.extend(audit.in_text("relays", place, _clear(one)))

            fetched = await relay.fetch([Filter(authors=(keys.public,))], take)
            if not fetched.complete:
                reasons.append(f"{relay.url} can't be asked: {fetched.reason}")
    return found, reasons


def _clear(event: Event) -> str:
    """The part of an event that is readable without a key."""
    return _CIPHERTEXT.sub(" ", "\n".join([event.content, *(" ".join(tag) for tag in event.tags)]))
