"""What events beside the ledgers say, read back into the values that our files hold.

Each has to name whom or which conversation it is about, inside of what is encrypted, and its address has to
be the one that goes with that. Preferences as text and topics are views of a ledger for others to read: there
is nothing in them for us. Pure; knows nothing about relays or files.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from discoclaw.core.errors import MemoryFault, NostrError, NotOpened, SettingsError
from discoclaw.core.profile import Group, Profile
from discoclaw.core.subject import group_subject, user_subject
from discoclaw.core.times import valid_ms
from discoclaw.memory.changes import SESSION
from discoclaw.memory.conversations.clears import clear_of
from discoclaw.memory.disk.files import safe_id
from discoclaw.memory.people import choices
from discoclaw.memory.people.tool_log import call_of
from discoclaw.nostr.event import public_key
from discoclaw.nostr.incoming.restore_views import Dated, Summary, Views
from discoclaw.nostr.incoming.sift import Opened, Unread
from discoclaw.nostr.names import CHOICES, GROUP, LENGTHS, NPUB, Names
from discoclaw.nostr.outgoing.views import CHOSEN
from discoclaw.nostr.schemas import APP, CLEAR, PREFERENCE, SUMMARY, TOOL, TOPICS, Address

MOST_SUMMARY: Final = 20_000
"""Characters of a summary that is taken in."""


class ReadViews:
    """Reads events into `views`. `units` names the unit of each address, where it says so itself.

    `people` and `channels` are ids that are known otherwise: for records of others that name none.
    """

    def __init__(self, names: Names, *, people: Iterable[str] = (), channels: Iterable[str] = ()) -> None:
        self.views = Views()
        self.units: dict[Address, str] = {}
        self._names = names
        self._people = list(people)
        self._channels = list(channels)
        self._readers: Mapping[int, Callable[[Opened], str | None]] = {
            APP: self._record,
            SUMMARY: self._summary,
            TOOL: self._call,
            CLEAR: self._clear,
            PREFERENCE: self._nothing,
            TOPICS: self._nothing,
        }

    def read(self, events: Iterable[Opened]) -> list[Unread]:
        """Take events, of which each address is there once; those that can not be used are returned."""
        unread = []
        # The later one counts where two addresses are of the same person, and of a tie the lower id.
        for one in sorted(
            sorted(events, key=lambda one: one.event.id, reverse=True), key=lambda one: one.event.created_at
        ):
            try:
                unit = self._readers[one.event.kind](one)
            except (NotOpened, MemoryFault, NostrError) as why:
                unread.append(Unread(one.event, str(why)))
                continue
            if unit is not None:
                self.units[one.address] = unit
        return unread

    def _nothing(self, one: Opened) -> str | None:
        return None

    # ------------------------------------------------------------------ people and channels

    def _record(self, one: Opened) -> str:
        d = one.event.d
        if d.startswith(CHOICES):
            return self._choices(one)
        is_person = d.startswith(NPUB)
        if not is_person and not d.startswith(GROUP):
            raise NotOpened("its address is none that this version knows")
        fits: Callable[[str, str], bool]
        fits = self._names.matches if is_person else self._names.matches_channel
        given, pseudonym = one.body.get("x_discord"), _pseudonym(d.rpartition(":")[2])
        known = [safe_id(given)] if isinstance(given, str) else self._people if is_person else self._channels
        key = next((key for key in known if fits(pseudonym, key)), None)
        if key is None:
            raise NotOpened("it does not say whom it is about, or its address is another one's")
        body = {name: value for name, value in one.body.items() if name != "x_discord"}
        try:
            (self._profile if is_person else self._group)(key, body, one.event.created_at)
        except ValueError as why:
            raise NotOpened(str(why)) from None
        return user_subject(key) if is_person else group_subject(key)

    def _choices(self, one: Opened) -> str:
        try:
            self.views.choices |= choices.checked(one.body["people"])
        except (KeyError, ValueError, TypeError, AttributeError):
            raise NotOpened("it does not say what people have chosen") from None
        return CHOSEN

    def _profile(self, user_id: str, body: dict[str, Any], at: int) -> None:
        self.views.profiles[user_id] = Dated(Profile.from_json(body), at)

    def _group(self, channel_id: str, body: dict[str, Any], at: int) -> None:
        members = body.pop("x_members", None)
        if members is not None:  # those beside it are pseudonyms
            body["members"] = members
        self.views.groups[channel_id] = Dated(Group.from_json(body), at)

    # ------------------------------------------------------------------ conversations

    def _summary(self, one: Opened) -> str:
        body, session = one.body, self._session(one)
        text, at = body.get("summary"), body.get("x_updated_at")
        at = one.event.created_at * 1000 if at is None else at
        if not isinstance(text, str) or len(text) > MOST_SUMMARY or not valid_ms(at):
            raise NotOpened("it is no summary")
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

    def _call(self, one: Opened) -> str:
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
        whose = body.get("x_discord")
        if call is None or not isinstance(whose, str):
            raise NotOpened("it does not say which call of a tool it is, and for whom")
        subject = user_subject(safe_id(whose))
        self.views.calls.setdefault(subject, []).append(call)
        return subject

    def _clear(self, one: Opened) -> str:
        body, session = one.body, self._session(one)
        given = {"id": body.get("x_id"), "at": body.get("x_ms"), "session": session, "by": body.get("x_by")}
        if (clear := clear_of(given)) is None:
            raise NotOpened("it does not say what was cleared, and when")
        self.views.clears.append(clear)
        return f"{SESSION}{session}"

    def _session(self, one: Opened) -> str:
        """The conversation that an event names, and to which its address belongs."""
        session = one.body.get("x_session")
        if not isinstance(session, str):
            raise NotOpened("it does not say which conversation it is about")
        if not one.event.d.startswith(f"{self._names.history_key(session)}:"):
            raise NotOpened("its address is that of another conversation")
        return session


def _pseudonym(told: str) -> str:
    """The pseudonym in an address, in hex: others write it as an npub."""
    if len(told) in LENGTHS or not told.startswith("npub1"):
        return told
    try:
        return public_key(told)
    except SettingsError:
        return told
