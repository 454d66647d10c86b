"""Documents: what is published beside ledgers, each kind as it is written into events and read from them.

    profile      a person's names, notes and preferences       30078   united with the one on disk
    group        a channel's members, themes and decisions     30078   and its themes as topics, 30097
    choices      what people have chosen about being remembered  30078
    preferences  as sentences, for other readers               30093   never read: the ledger has them
    summary      of a conversation                             30094
    tool call    one that the model made for a person          30095
    clear        of a conversation                             30096

Other readers of the two schemas find their own fields in the bodies; what only we need begins with `x_`. A
document that names its person, channel or conversation is read only at an address that belongs to them.
Nothing confidential is written: texts that a ledger ever marked so are left out or withheld. Pure: knows
nothing about relays, and of the disk only the values that lie on it.
"""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

from discoclaw.core.errors import MemoryFault, NostrError, SettingsError, UnreadableContent
from discoclaw.core.item import by_newest
from discoclaw.core.privacy import may_show
from discoclaw.core.profile import Group, Profile, preference_text
from discoclaw.core.redact import PLAIN, Redactor
from discoclaw.core.subject import dm_of, group_of, group_subject, person_of, user_of, user_subject
from discoclaw.core.times import valid_ms
from discoclaw.core.view import View
from discoclaw.memory.changes import SESSION
from discoclaw.memory.conversations.clears import Clear, clear_of
from discoclaw.memory.people import choices
from discoclaw.memory.people.choices import Chosen
from discoclaw.memory.people.tool_log import Call, call_of
from discoclaw.nostr.event import MAX_PLAINTEXT, canonical, public_key
from discoclaw.nostr.ledgers import Confidential
from discoclaw.nostr.schemas import (
    APP,
    CHOICES,
    CLEAR,
    GROUP,
    LEDGER,
    LENGTHS,
    NPUB,
    PREFERENCE,
    SUMMARY,
    TOOL,
    TOPICS,
    Address,
    DecryptedEvent,
    EventTemplate,
    Names,
    UnreadableEvent,
    fits,
    unique,
)
from discoclaw.store.files import safe_id

CHOSEN: Final = "choices"
"""The unit of what people have chosen about being remembered."""
WITHHELD: Final = "(confidential)"
"""Replaces a tool's answer that quotes something confidential."""
MIN_QUOTE: Final = 8
"""A cut-off answer that ends in this many characters of a confidential text counts as quoting it."""
MAX_BODY_BYTES: Final = MAX_PLAINTEXT - 200
"""Longest payload: it leaves room for the time, which is filled in when the event is signed."""
MAX_SUMMARY_CHARS: Final = 20_000
"""Longest accepted summary, in characters: the highest value of DISCOCLAW_SUMMARY_MAX_CHARS."""
_PEOPLE_PER_EVENT: Final = 300


@dataclass(frozen=True, slots=True)
class Summary:
    """A conversation's summary and when it was updated (ms).

    As far as known also the number of messages in it, the newest one's id, and the ids of its authors.
    """

    text: str
    updated_at: int
    count: int = 0
    up_to: str | None = None
    people: tuple[str, ...] | None = None


@dataclass(slots=True)
class FoundDocuments:
    """The documents in events: profiles by user id, summaries by session key, groups by channel
    id, each with the time (s) of its event.

    Calls are by subject, choices by user id. `units` has the unit of each address whose event names it.
    """

    profiles: dict[str, Profile] = field(default_factory=dict)
    groups: dict[str, tuple[Group, int]] = field(default_factory=dict)
    summaries: dict[str, Summary] = field(default_factory=dict)
    calls: dict[str, list[Call]] = field(default_factory=dict)
    clears: list[Clear] = field(default_factory=list)
    choices: dict[str, Chosen] = field(default_factory=dict)
    units: dict[Address, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DocumentCodec:
    """Writes and reads the documents of one bot. `names` has its pseudonyms; `redactor` removes secrets."""

    names: Names
    redactor: Redactor = PLAIN

    def read(
        self, events: Iterable[DecryptedEvent], *, people: Iterable[str] = (), channels: Iterable[str] = ()
    ) -> tuple[FoundDocuments, list[UnreadableEvent]]:
        """The documents in events, one for each address, and the events that can't be used.

        `people` and `channels` are ids known from elsewhere, for profiles by other programs that name no id.
        """
        found, unreadable = FoundDocuments(), []
        known = list(people), list(channels)
        readers = {
            APP: self._read_choices,
            SUMMARY: self._read_summary,
            TOOL: self._read_tool,
            CLEAR: self._read_clear,
        }
        # Two addresses can be about the same person (16 or 32 hex digits). The later event wins, so it is
        # read last; of a tie the lower id, as everywhere.
        for one in sorted(
            sorted(events, key=lambda one: one.event.id, reverse=True), key=lambda one: one.event.created_at
        ):
            try:
                if one.event.kind == APP and not one.event.d.startswith(CHOICES):
                    unit: str | None = self._read_about(one, found, *known)
                else:
                    read = readers.get(one.event.kind)
                    unit = read(one, found) if read is not None else None
            except (UnreadableContent, MemoryFault, NostrError) as why:
                unreadable.append(UnreadableEvent(one.event, str(why)))
                continue
            if unit is not None:
                found.units[one.address] = unit
        return found, unreadable

    # ------------------------------------------------------------------ people and channels

    def profile(
        self, user_id: str, profile: Profile, confidential: Confidential, *, is_owner: bool
    ) -> EventTemplate:
        """A person's profile."""
        body = self.redactor.value(profile.published(is_owner=is_owner))
        body["notes"] = self._clean(text for text in profile.notes if text not in confidential.texts)
        body["preferences"] = {
            self.redactor.clean(key): self.redactor.clean(text)
            for key, text in profile.preferences.items()
            if confidential.texts.isdisjoint((text, preference_text(key, text)))
        }
        body["x_discord"] = user_id
        body = fitting(body, "notes", "preferences", "display_names")
        return EventTemplate(APP, self.names.profile(user_id), body)

    def group(
        self, channel_id: str, group: Group, confidential: Confidential, *, h: str = ""
    ) -> list[EventTemplate]:
        """A channel's group memory, and its themes as topics. `h` is its group on a NIP-29 relay."""
        hk, body = self.names.group_key(channel_id), self.redactor.value(group.to_json())
        decisions = [(text, when) for text, when in group.decisions if text not in confidential.texts]
        # Pseudonyms for other readers; our own ids are in `x_members`.
        body["members"] = [[self.names.user(user)[:32], name] for user, name in body["members"]]
        body["themes"] = self._clean(text for text in group.themes if text not in confidential.texts)
        body["decisions"] = [[self.redactor.clean(text), when] for text, when in decisions]
        body["x_members"] = self.redactor.value(group.members)
        body["x_discord"] = channel_id
        body = fitting(body, "decisions", "themes", "members", "x_members")
        templates = [EventTemplate(APP, self.names.group(channel_id), body, group=h)]
        if body["themes"]:
            topics = {"history_key": hk, "topics": body["themes"], "updated_at": None}
            templates.append(EventTemplate(TOPICS, f"{hk}:subscription_state", topics, hk=hk))
        return templates

    def _read_about(
        self, one: DecryptedEvent, found: FoundDocuments, people: list[str], channels: list[str]
    ) -> str:
        """Read a profile or a group. Returns its subject."""
        d = one.event.d
        is_person = d.startswith(NPUB)
        if not is_person and not d.startswith(GROUP):
            raise UnreadableContent("its address has an unknown form")
        pseudonym = d.rpartition(":")[2]
        if len(pseudonym) not in LENGTHS and pseudonym.startswith("npub1"):
            with suppress(SettingsError):  # Snowclaw's code writes a full npub, against its own spec
                pseudonym = public_key(pseudonym)
        full = self.names.user if is_person else self.names.channel
        stated = one.body.get("x_discord")
        known = [safe_id(stated)] if isinstance(stated, str) else people if is_person else channels
        key = next((key for key in known if fits(pseudonym, full(key))), None)
        if key is None:
            raise UnreadableContent("it names nobody we know, or its address belongs to somebody else")
        body = {name: value for name, value in one.body.items() if name != "x_discord"}
        try:
            if is_person:
                found.profiles[key] = Profile.from_json(body)
                return user_subject(key)
            members = body.pop("x_members", None)
            if members is not None:  # `members` itself has pseudonyms
                body["members"] = members
            found.groups[key] = Group.from_json(body), one.event.created_at
            return group_subject(key)
        except ValueError as why:
            raise UnreadableContent(str(why)) from None

    def preferences(self, user_id: str, view: View, confidential: Confidential) -> EventTemplate | None:
        """A person's preferences, one sentence a line, newest first; None if they have none.

        They may be published as plaintext only if nothing in them is private.
        """
        kept = (item for item in view.active() if item.kind == "preference" and may_show(item, in_dm=True))
        items = sorted((item for item in kept if item.id not in confidential.items), key=by_newest)
        if not items:
            return None
        hk, is_open = self.names.user_key(user_id), all(may_show(item, in_dm=False) for item in items)
        # Oldest first, because `fitting` drops the first entries; reversed again below.
        lines = self._clean(item.text for item in reversed(items))
        body: dict[str, Any] = {"history_key": hk, "preference": lines, "updated_at": None}
        if not is_open:  # in the payload, so that turning private makes it another version
            body["x_private"] = True
        body = fitting(body, "preference")
        body["preference"] = "\n".join(reversed(body["preference"]))
        return EventTemplate(PREFERENCE, f"{hk}:preference", body, hk=hk, plaintext_ok=is_open)

    def choices(self, chosen: Mapping[str, Chosen]) -> list[EventTemplate]:
        """What people have chosen about being remembered, a few hundred of them in one event."""
        people = sorted(chosen.items())
        starts = enumerate(range(0, len(people), _PEOPLE_PER_EVENT))
        return [
            EventTemplate(
                APP, f"{CHOICES}{number}", {"people": dict(people[start : start + _PEOPLE_PER_EVENT])}
            )
            for number, start in starts
        ]

    def _read_choices(self, one: DecryptedEvent, found: FoundDocuments) -> str:
        try:
            found.choices |= choices.checked(one.body["people"])
        except (KeyError, ValueError, TypeError, AttributeError):
            raise UnreadableContent("it has no valid list of people's choices") from None
        return CHOSEN

    # ------------------------------------------------------------------ conversations

    def summary(self, session: str, summary: Summary, cleared: int) -> EventTemplate:
        """A summary. It is dated after the second of the last clear (ms): Aman's readers hide older ones."""
        hk = self.names.history_key(session)
        body: dict[str, Any] = {
            "history_key": hk,
            "summary": self.redactor.clean(summary.text),
            "message_count": summary.count,
            "updated_at": None,
            "x_session": session,
            "x_updated_at": summary.updated_at,
            "x_up_to": summary.up_to,
        }
        if person_of(session) is None:
            body["x_people"] = list(summary.people or ())
        at = max(summary.updated_at // 1000, cleared // 1000 + 1)
        return EventTemplate(SUMMARY, f"{hk}:summary", fitting(body), at, hk)

    def _read_summary(self, one: DecryptedEvent, found: FoundDocuments) -> str:
        body, session = one.body, self._session(one)
        text, at = body.get("summary"), body.get("x_updated_at")
        at = one.event.created_at * 1000 if at is None else at
        if not isinstance(text, str) or len(text) > MAX_SUMMARY_CHARS or not valid_ms(at):
            raise UnreadableContent("it is not a valid summary")
        count, up_to, people = body.get("message_count"), body.get("x_up_to"), body.get("x_people")
        named = isinstance(people, list) and all(isinstance(user, str) for user in people)
        found.summaries[session] = Summary(
            text,
            at,
            count if isinstance(count, int) else 0,
            up_to if isinstance(up_to, str) else None,
            tuple(people) if named and people is not None else None,
        )
        return f"{SESSION}{session}"

    def tool(self, user_id: str, call: Call, confidential: Confidential) -> EventTemplate:
        """A tool call, made while answering a person. The fields are in Aman's order."""
        names, in_dm = self.names, person_of(call.session) is not None
        try:
            hk = names.history_key(call.session)
        # A call outside of any conversation we mirror belongs to the person.
        except NostrError:
            hk = names.user_key(user_id)
        quotes = any(_quotes(call.content, text) for text in confidential.texts)
        body = {
            "history_key": hk,
            "tool_name": self.redactor.clean(call.tool),
            "success": call.ok,
            "content": WITHHELD if quotes else self.redactor.clean(call.content),
            "sender_id": names.user(user_id)[:32],
            # A DM has a channel id too, but in Aman's schema it has no group.
            "group_id": names.channel(call.channel)[:32] if call.channel is not None and not in_dm else None,
            "created_at": call.at // 1000,
            "x_id": call.id,
            "x_ms": call.at,
            "x_channel": call.channel,
            "x_session": call.session,
            "x_private": call.private,
            "x_discord": user_id,
        }
        return unique(TOOL, hk, body, salt=names.keyed_hash(canonical(body)), at=call.at // 1000)

    def _read_tool(self, one: DecryptedEvent, found: FoundDocuments) -> str:
        body = one.body
        fields = {name: body.get(f"x_{name}") for name in ("id", "channel", "session", "private")}
        call = call_of(
            fields
            | {"at": body.get("x_ms"), "tool": body.get("tool_name"), "ok": body.get("success")}
            | {"content": body.get("content")}
        )
        user_id = body.get("x_discord")
        if call is None or not isinstance(user_id, str):
            raise UnreadableContent("it is not a valid tool call, or doesn't name its person")
        subject = user_subject(safe_id(user_id))
        found.calls.setdefault(subject, []).append(call)
        return subject

    def clear(self, one: Clear) -> EventTemplate:
        """The marker that a conversation was cleared. The fields are in Aman's order."""
        hk, at = self.names.history_key(one.session), one.at // 1000
        body = {
            "history_key": hk,
            "sender_id": self.names.user(one.by)[:32] if one.by is not None else None,
            "created_at": at,
            "x_id": one.id,
            "x_ms": one.at,
            "x_session": one.session,
            "x_by": one.by,
        }
        return unique(CLEAR, hk, body, salt=self.names.keyed_hash(canonical(body)), at=at)

    def _read_clear(self, one: DecryptedEvent, found: FoundDocuments) -> str:
        body, session = one.body, self._session(one)
        fields = {"id": body.get("x_id"), "at": body.get("x_ms"), "session": session, "by": body.get("x_by")}
        if (clear := clear_of(fields)) is None:
            raise UnreadableContent("it is not a valid clear marker")
        found.clears.append(clear)
        return f"{SESSION}{session}"

    def _session(self, one: DecryptedEvent) -> str:
        """The conversation that an event names. Its address has to match."""
        session = one.body.get("x_session")
        if not isinstance(session, str):
            raise UnreadableContent("it does not name its conversation")
        if not one.event.d.startswith(f"{self.names.history_key(session)}:"):
            raise UnreadableContent("its address belongs to another conversation")
        return session

    def _clean(self, texts: Iterable[str]) -> list[str]:
        return [self.redactor.clean(text) for text in texts]


def _quotes(content: str, text: str) -> bool:
    """Whether an answer contains a text, or was cut off in the middle of it."""
    if text in content:
        return True
    kept = content.removesuffix("…")
    return kept != content and any(text.startswith(kept[at:]) for at in range(len(kept) - MIN_QUOTE + 1))


def fitting(body: Mapping[str, Any], *fields: str) -> dict[str, Any]:
    """A body that fits into one event: first entries of these fields are dropped, field by field.

    Raises NostrError when that isn't enough.
    """
    fitted = dict(body)
    over = len(canonical(fitted).encode("utf-8")) - MAX_BODY_BYTES
    for name in fields:
        while fitted[name] and over > 0:
            entries = fitted[name]
            rest = list(entries.items()) if isinstance(entries, Mapping) else list(entries)
            while rest and over > 0:
                over -= len(canonical(rest.pop(0)).encode("utf-8"))
            fitted[name] = dict(rest) if isinstance(entries, Mapping) else rest
            over = len(canonical(fitted).encode("utf-8")) - MAX_BODY_BYTES
    if over > 0:
        raise NostrError(f"{over} bytes too long for one event")
    return fitted


# ---------------------------------------------------------------------- whose address it is


class UnitLookup:
    """Knows the addresses that units of these subjects and conversations (session keys) can have."""

    def __init__(self, names: Names, subjects: Iterable[str], sessions: Iterable[str] = ()) -> None:
        self._ledgers: dict[str, str] = {}
        self._others: dict[Address, str] = {}
        talks = list(sessions)
        for subject in subjects:
            self._ledgers[names.ledger_prefix(subject)] = subject
            if (user_id := user_of(subject)) is not None:
                self._others[APP, names.profile(user_id)] = subject
                self._others[PREFERENCE, f"{names.user_key(user_id)}:preference"] = subject
                talks.append(dm_of(user_id))
            elif (channel_id := group_of(subject)) is not None:
                self._others[APP, names.group(channel_id)] = subject
                self._others[TOPICS, f"{names.group_key(channel_id)}:subscription_state"] = subject
                talks.append(f"discord:channel:{channel_id}")
        for session in talks:
            try:
                self._others[SUMMARY, f"{names.history_key(session)}:summary"] = f"{SESSION}{session}"
            except NostrError:
                continue  # this conversation is not mirrored

    def __call__(self, address: Address) -> str | None:
        """The unit of an address; None if it belongs to none of them."""
        kind, d = address
        if kind == APP and d.startswith(LEDGER):
            return self._ledgers.get(d[: d.find(":", len(LEDGER)) + 1])
        return self._others.get(address)
