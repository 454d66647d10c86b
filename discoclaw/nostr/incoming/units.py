"""Finds the unit of an address when its event doesn't name it, by computing the addresses of all known units.

Pseudonyms can't be reversed, a tombstone has no content, and views for other readers name nobody. Pure.
"""

from collections.abc import Iterable, Mapping

from discoclaw.core.errors import NostrError
from discoclaw.core.subject import dm_of, group_of, user_of
from discoclaw.memory.changes import SESSION
from discoclaw.nostr.names import LEDGER, Names
from discoclaw.nostr.schemas import APP, PREFERENCE, SUMMARY, TOPICS, Address

_CHANNEL = "discord:channel:"


class UnitLookup:
    """Knows the addresses that units of these subjects and conversations (session keys) can have."""

    def __init__(self, names: Names, subjects: Iterable[str], sessions: Iterable[str] = ()) -> None:
        self._names = names
        self._ledgers: dict[str, str] = {}
        self._others: dict[Address, str] = {}
        for subject in subjects:
            self._add(subject)
        for session in sessions:
            self._add_session(session)

    def __call__(self, address: Address) -> str | None:
        """The unit of an address; None if it belongs to none of them."""
        kind, d = address
        if kind == APP and d.startswith(LEDGER):
            return self._ledgers.get(d[: d.find(":", len(LEDGER)) + 1])
        return self._others.get(address)

    def _add(self, subject: str) -> None:
        names = self._names
        self._ledgers[names.ledger_prefix(subject)] = subject
        if (user_id := user_of(subject)) is not None:
            self._others[APP, names.profile(user_id)] = subject
            self._others[PREFERENCE, f"{names.user_key(user_id)}:preference"] = subject
            self._add_session(dm_of(user_id))
        elif (channel_id := group_of(subject)) is not None:
            self._others[APP, names.group(channel_id)] = subject
            self._others[TOPICS, f"{names.group_key(channel_id)}:subscription_state"] = subject
            self._add_session(f"{_CHANNEL}{channel_id}")

    def _add_session(self, session: str) -> None:
        try:
            self._others[SUMMARY, f"{self._names.history_key(session)}:summary"] = f"{SESSION}{session}"
        except NostrError:
            return  # this conversation is not mirrored


def with_units(
    units: Mapping[Address, str], addresses: Iterable[Address], known: UnitLookup
) -> dict[Address, str]:
    """The units of these addresses, as far as they are known."""
    found = {address: units.get(address) or known(address) for address in addresses}
    return {address: unit for address, unit in found.items() if unit is not None}
