"""Reads views (events other than ledger records) back into the values that our files hold.

Each has to name the person or conversation it is about inside its encrypted content, and its address has
to match. So nobody who moves events between addresses can attach them to somebody else. Preferences as
text and topics are skipped: they are views of a ledger, published for other readers. Pure: knows nothing
about relays or files.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from discoclaw.core.errors import MemoryFault, NostrError, SettingsError, UnreadableContent
from discoclaw.core.profile import Group, Profile
from discoclaw.core.subject import group_subject, user_subject
from discoclaw.core.times import valid_ms
from discoclaw.memory.changes import SESSION
from discoclaw.memory.conversations.clears import clear_of
from discoclaw.memory.disk.files import safe_id
from discoclaw.memory.people import choices
from discoclaw.memory.people.tool_calls import call_of
from discoclaw.nostr.event import public_key
from discoclaw.nostr.incoming.restore_views import Dated, RecoveredViews, Summary
from discoclaw.nostr.incoming.selection import DecryptedEvent, UnreadableEvent
from discoclaw.nostr.names import CHOICES, GROUP, LENGTHS, NPUB, Names
from discoclaw.nostr.outgoing.views import CHOSEN
from discoclaw.nostr.schemas import APP, CLEAR, PREFERENCE, SUMMARY, TOOL, TOPICS, Address

MAX_SUMMARY_CHARS: Final = 20_000
"""Longest accepted summary, in characters: the highest value of DISCOCLAW_SUMMARY_MAX_CHARS."""


class ViewReader:
    """Reads events into `views`. `units` gets the unit of each address whose event names it.

    `people` and `channels` are ids known from elsewhere, for profiles by other programs that name no id.
    """

    def __init__(self, names: Names, *, people: Iterable[str] = (), channels: Iterable[str] = ()) -> None:
        self.views = RecoveredViews()
        self.units: dict[Address, str] = {}
        self._names = names
        self._people = list(people)
        self._channels = list(channels)
        self._readers: Mapping[int, Callable[[DecryptedEvent], str | None]] = {
            APP: self._record,
            SUMMARY: self._summary,
            TOOL: self._call,
            CLEAR: self._clear,
            PREFERENCE: self._skip,
            TOPICS: self._skip,
        }

    def read(self, events: Iterable[DecryptedEvent]) -> list[UnreadableEvent]:
        """Read events, one for each address. Returns those that can't be used."""
        unreadable = []
        # Two addresses can be about the same person (16 or 32 hex digits). The later event wins, so it is
        # read last; of a tie the lower id, as everywhere.
        for one in sorted(
            sorted(events, key=lambda one: one.event.id, reverse=True), key=lambda one: one.event.created_at
        ):
            try:
                unit = self._readers[one.event.kind](one)
            except (UnreadableContent, MemoryFault, NostrError) as why:
                unreadable.append(UnreadableEvent(one.event, str(why)))
                continue
            if unit is not None:
                self.units[one.address] = unit
        return unreadable

    def _skip(self, one: DecryptedEvent) -> str | None:
        return None

    # ------------------------------------------------------------------ people and channels

    def _record(self, one: DecryptedEvent) -> str:
        d = one.event.d
        if d.startswith(CHOICES):
            return self._choices(one)
        is_person = d.startswith(NPUB)
        if not is_person and not d.startswith(GROUP):
            raise UnreadableContent("its address has an unknown form")
        fits: Callable[[str, str], bool]
        fits = self._names.matches if is_person else self._names.matches_channel
        stated, pseudonym = one.body.get("x_discord"), _pseudonym(d.rpartition(":")[2])
        known = (
            [safe_id(stated)] if isinstance(stated, str) else self._people if is_person else self._channels
        )
        key = next((key for key in known if fits(pseudonym, key)), None)
        if key is None:
            raise UnreadableContent("it names nobody we know, or its address belongs to somebody else")
        body = {name: value for name, value in one.body.items() if name != "x_discord"}
        try:
            (self._profile if is_person else self._group)(key, body, one.event.created_at)
        except ValueError as why:
            raise UnreadableContent(str(why)) from None
        return user_subject(key) if is_person else group_subject(key)

    def _choices(self, one: DecryptedEvent) -> str:
        try:
            self.views.choices |= choices.checked(one.body["people"])
        except (KeyError, ValueError, TypeError, AttributeError):
            raise UnreadableContent("it has no valid list of people's choices") from None
        return CHOSEN

    def _profile(self, user_id: str, body: dict[str, Any], at: int) -> None:
        self.views.profiles[user_id] = Dated(Profile.from_json(body), at)

    def _group(self, channel_id: str, body: dict[str, Any], at: int) -> None:
        members = body.pop("x_members", None)
        if members is not None:  # `members` itself has pseudonyms
            body["members"] = members
        self.views.groups[channel_id] = Dated(Group.from_json(body), at)

    # ------------------------------------------------------------------ conversations

    def _summary(self, one: DecryptedEvent) -> str:
        body, session = one.body, self._session(one)
        text, at = body.get("summary"), body.get("x_updated_at")
        at = one.event.created_at * 1000 if at is None else at
        if not isinstance(text, str) or len(text) > MAX_SUMMARY_CHARS or not valid_ms(at):
            raise UnreadableContent("it is not a valid summary")
        seen: dict[str, Any] | None = None
        if isinstance(up_to := body.get("x_up_to"), str):
            count = body.get("message_count")
            seen = {"upTo": up_to, **({"count": count} if isinstance(count, int) and count else {})}
        people = body.get("x_people")
        if isinstance(people, list) and all(isinstance(user, str) for user in people):
            self.views.summaries[session] = Summary(text, at, seen, {"session": session, "people": people})
        else:
            self.views.summaries[session] = Summary(text, at, seen)
        return f"{SESSION}{session}"

    def _call(self, one: DecryptedEvent) -> str:
        body = one.body
        call = call_of(
            {
                "id": body.get("x_id"),
                "at": body.get("x_ms"),
                "tool": body.get("tool_name"),
                "ok": body.get("success"),
                "content": body.get("content"),
                "channel": body.get("x_channel"),
                "session": body.get("x_session"),
                "private": body.get("x_private"),
            }
        )
        user_id = body.get("x_discord")
        if call is None or not isinstance(user_id, str):
            raise UnreadableContent("it is not a valid tool call, or doesn't name its person")
        subject = user_subject(safe_id(user_id))
        self.views.calls.setdefault(subject, []).append(call)
        return subject

    def _clear(self, one: DecryptedEvent) -> str:
        body, session = one.body, self._session(one)
        fields = {"id": body.get("x_id"), "at": body.get("x_ms"), "session": session, "by": body.get("x_by")}
        if (clear := clear_of(fields)) is None:
            raise UnreadableContent("it is not a valid clear marker")
        self.views.clears.append(clear)
        return f"{SESSION}{session}"

    def _session(self, one: DecryptedEvent) -> str:
        """The conversation that an event names. Its address has to match."""
        session = one.body.get("x_session")
        if not isinstance(session, str):
            raise UnreadableContent("it does not name its conversation")
        if not one.event.d.startswith(f"{self._names.history_key(session)}:"):
            raise UnreadableContent("its address belongs to another conversation")
        return session


def _pseudonym(text: str) -> str:
    """The pseudonym in an address, in hex. Snowclaw's code writes it as a full npub, against its own spec."""
    if len(text) in LENGTHS or not text.startswith("npub1"):
        return text
    try:
        return public_key(text)
    except SettingsError:
        return text
