"""Payloads in the schemas of Snowclaw and Aman, made from the values that our files hold.

Discord ids are in our own fields (`x_…`), which are always encrypted; other fields have pseudonyms. What is
confidential is left out, and secrets are redacted once more. A payload that doesn't fit into one event
loses its oldest entries: most of them are also in a ledger, which is mirrored completely. Pure: knows
nothing about files, nor about what was published before.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from discoclaw.core.errors import NostrError
from discoclaw.core.item import by_newest
from discoclaw.core.privacy import may_show
from discoclaw.core.profile import Group, Profile, preference_text
from discoclaw.core.redact import Redactor
from discoclaw.core.subject import person_of
from discoclaw.core.view import View
from discoclaw.memory.conversations.clears import Clear
from discoclaw.memory.people.tool_calls import Call
from discoclaw.nostr.encryption import canonical
from discoclaw.nostr.event import MAX_PLAINTEXT
from discoclaw.nostr.names import Names
from discoclaw.nostr.outgoing.ledger_view import Confidential
from discoclaw.nostr.schemas import (
    APP,
    CLEAR,
    PREFERENCE,
    SUMMARY,
    TOOL,
    TOPICS,
    EventTemplate,
    clear_body,
    tool_body,
    unique,
)

WITHHELD: Final = "(confidential)"
"""Replaces a tool's answer that quotes something confidential."""
MIN_QUOTE: Final = 8
"""A cut-off answer that ends in this many characters of a confidential text counts as quoting it."""
MAX_BODY_BYTES: Final = MAX_PLAINTEXT - 200
"""Longest payload: it leaves room for the time, which is filled in when the event is signed."""


@dataclass(frozen=True, slots=True)
class SummaryContent:
    """A conversation's summary: session key, text and time (ms).

    As far as known also the number of messages in it, the newest one's id, and the ids of its authors.
    """

    session: str
    text: str
    at: int
    count: int = 0
    up_to: str | None = None
    people: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Payloads:
    """Makes the templates of one bot. `names` has its pseudonyms."""

    names: Names
    redactor: Redactor

    # ------------------------------------------------------------------ people

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
        return EventTemplate(
            APP, self.names.profile(user_id), fitting(body, "notes", "preferences", "display_names")
        )

    def preference(self, user_id: str, view: View, confidential: Confidential) -> EventTemplate | None:
        """A person's preferences, one sentence a line, newest first; None if there are none.

        It may be published as plaintext only if nothing in it is private.
        """
        found = (item for item in view.active() if item.kind == "preference" and may_show(item, in_dm=True))
        items = sorted((item for item in found if item.id not in confidential.items), key=by_newest)
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

    def tool(self, user_id: str, call: Call, confidential: Confidential) -> EventTemplate:
        """A tool call, made while answering a person."""
        names, in_dm = self.names, person_of(call.session) is not None
        try:
            hk = names.history_key(call.session)
        # A call outside of any conversation we mirror belongs to the person.
        except NostrError:
            hk = names.user_key(user_id)
        quotes = any(_quotes(call.content, text) for text in confidential.texts)
        body = tool_body(
            hk,
            tool_name=self.redactor.clean(call.tool),
            success=call.ok,
            content=WITHHELD if quotes else self.redactor.clean(call.content),
            sender=names.user(user_id)[:32],
            # A DM has a channel id too, but in Aman's schema it has no group.
            group=names.channel(call.channel)[:32] if call.channel is not None and not in_dm else None,
            at=call.at // 1000,
            id=call.id,
            ms=call.at,
            channel=call.channel,
            session=call.session,
            private=call.private,
            discord=user_id,
        )
        return unique(TOOL, hk, body, salt=names.keyed_hash(canonical(body)), at=call.at // 1000)

    # ------------------------------------------------------------------ groups

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
        fits = fitting(body, "decisions", "themes", "members", "x_members")
        templates = [EventTemplate(APP, self.names.group(channel_id), fits, group=h)]
        if fits["themes"]:
            topics = {"history_key": hk, "topics": fits["themes"], "updated_at": None}
            templates.append(EventTemplate(TOPICS, f"{hk}:subscription_state", topics, hk=hk))
        return templates

    # ------------------------------------------------------------------ conversations

    def summary(self, summary: SummaryContent, cleared: int) -> EventTemplate:
        """A summary. It is dated after the second of the last clear (ms): Aman's readers hide older ones."""
        hk = self.names.history_key(summary.session)
        body: dict[str, Any] = {
            "history_key": hk,
            "summary": self.redactor.clean(summary.text),
            "message_count": summary.count,
            "updated_at": None,
            "x_session": summary.session,
            "x_updated_at": summary.at,
            "x_up_to": summary.up_to,
        }
        if person_of(summary.session) is None:
            body["x_people"] = list(summary.people)
        at = max(summary.at // 1000, cleared // 1000 + 1)
        return EventTemplate(SUMMARY, f"{hk}:summary", fitting(body), at, hk)

    def clear(self, one: Clear) -> EventTemplate:
        """The marker that a conversation was cleared."""
        hk, at = self.names.history_key(one.session), one.at // 1000
        sender = self.names.user(one.by)[:32] if one.by is not None else None
        body = clear_body(hk, sender=sender, at=at, id=one.id, ms=one.at, session=one.session, by=one.by)
        return unique(CLEAR, hk, body, salt=self.names.keyed_hash(canonical(body)), at=at)

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
    fits = dict(body)
    for name in fields:
        while fits[name] and (over := _over(fits)) > 0:
            fits[name] = _shorter(fits[name], over)
    if (over := _over(fits)) > 0:
        raise NostrError(f"{over} bytes too long for one event")
    return fits


def _over(body: Mapping[str, Any]) -> int:
    return len(canonical(body).encode("utf-8")) - MAX_BODY_BYTES


def _shorter(entries: Any, over: int) -> Any:
    """A list or an object without its first entries, which together have at least `over` bytes."""
    rest = list(entries.items()) if isinstance(entries, Mapping) else list(entries)
    while rest and over > 0:
        over -= len(canonical(rest.pop(0)).encode("utf-8"))
    return dict(rest) if isinstance(entries, Mapping) else rest
