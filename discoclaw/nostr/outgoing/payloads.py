"""The views of memory in the words of Snowclaw's and Aman's schemas: what a file says, as it is published.

Discord ids stand in fields of ours, `x_…`, which are only ever encrypted; everybody else reads pseudonyms.
What is confidential is left out, and secret keys are taken out once more. What does not fit into one event
loses its oldest entries: most of it is a picture of a ledger, which is mirrored whole.
Pure; knows nothing about files, and nothing about what was published before.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from discoclaw.core.errors import NostrError
from discoclaw.core.item import by_newest
from discoclaw.core.privacy import may_show
from discoclaw.core.profile import Group, Profile
from discoclaw.core.redact import Redactor
from discoclaw.core.subject import person_of
from discoclaw.core.view import View
from discoclaw.memory.conversations.clears import Clear
from discoclaw.memory.people.tool_log import Call
from discoclaw.nostr.event import MOST_PLAIN
from discoclaw.nostr.names import Names
from discoclaw.nostr.outgoing.ledger_view import Secrets
from discoclaw.nostr.schemas import (
    APP,
    CLEAR,
    PREFERENCE,
    SUMMARY,
    TOOL,
    TOPICS,
    Wanted,
    clear_body,
    tool_body,
    unique,
)
from discoclaw.nostr.sealed import canonical

WITHHELD: Final = "(confidential)"
"""Stands for what a tool answered, where that quotes something confidential."""
LEAST: Final = 8
"""Characters of the beginning of something confidential that tell too much of it."""
ROOM: Final = MOST_PLAIN - 200
"""Bytes of a payload, leaving room for the time that is written when it is signed."""


@dataclass(frozen=True, slots=True)
class Summarised:
    """A conversation's summary: session key, text and time (ms).

    As far as it is known: how many messages are in it, the newest one's id, and whose words (user ids).
    """

    session: str
    text: str
    at: int
    count: int = 0
    up_to: str | None = None
    people: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Payloads:
    """Makes payloads for one bot, in whose `names` people go by pseudonyms."""

    names: Names
    redactor: Redactor

    # ------------------------------------------------------------------ people

    def profile(self, user_id: str, profile: Profile, secrets: Secrets, *, is_owner: bool) -> Wanted:
        """The record of a person."""
        body = self.redactor.value(profile.published(is_owner=is_owner))
        body["notes"] = self._clean(text for text in profile.notes if text not in secrets.texts)
        body["preferences"] = {
            self.redactor.clean(key): self.redactor.clean(text)
            for key, text in profile.preferences.items()
            if text not in secrets.texts
        }
        body["x_discord"] = user_id
        return Wanted(
            APP, self.names.profile(user_id), fitting(body, "notes", "preferences", "display_names")
        )

    def preference(self, user_id: str, view: View, secrets: Secrets) -> Wanted | None:
        """What a person prefers, a sentence a line, newest first; None without any.

        It may be in clear only if nothing in it is private.
        """
        held = (item for item in view.active() if item.kind == "preference" and may_show(item, in_dm=True))
        items = sorted((item for item in held if item.id not in secrets.items), key=by_newest)
        if not items:
            return None
        hk, is_open = self.names.user_key(user_id), all(may_show(item, in_dm=False) for item in items)
        lines = self._clean(item.text for item in reversed(items))
        body: dict[str, Any] = {"history_key": hk, "preference": lines, "updated_at": None}
        if not is_open:  # said, so that what turns private is another version
            body["x_private"] = True
        body = fitting(body, "preference")
        body["preference"] = "\n".join(reversed(body["preference"]))
        return Wanted(PREFERENCE, f"{hk}:preference", body, hk=hk, open=is_open)

    def tool(self, user_id: str, call: Call, secrets: Secrets) -> Wanted:
        """A call of a tool, made to answer a person."""
        names, in_dm = self.names, person_of(call.session) is not None
        try:
            hk = names.history_key(call.session)
        except NostrError:
            hk = names.user_key(user_id)
        quotes = any(_quotes(call.content, text) for text in secrets.texts)
        body = tool_body(
            hk,
            tool_name=self.redactor.clean(call.tool),
            success=call.ok,
            content=WITHHELD if quotes else self.redactor.clean(call.content),
            sender=names.user(user_id)[:32],
            group=names.channel(call.channel)[:32] if call.channel is not None and not in_dm else None,
            at=call.at // 1000,
            id=call.id,
            ms=call.at,
            channel=call.channel,
            session=call.session,
            private=call.private,
            discord=user_id,
        )
        return unique(TOOL, hk, body, salt=names.mark(canonical(body)), at=call.at // 1000)

    # ------------------------------------------------------------------ groups

    def group(self, channel_id: str, group: Group, secrets: Secrets, *, h: str = "") -> list[Wanted]:
        """The record of a channel, and its themes as topics. `h` is its group on a NIP-29 relay."""
        hk, body = self.names.group_key(channel_id), self.redactor.value(group.to_json())
        decisions = [(text, when) for text, when in group.decisions if text not in secrets.texts]
        body["members"] = [[self.names.user(user)[:32], name] for user, name in body["members"]]
        body["themes"] = self._clean(text for text in group.themes if text not in secrets.texts)
        body["decisions"] = [[self.redactor.clean(text), when] for text, when in decisions]
        body["x_members"] = self.redactor.value(group.members)
        body["x_discord"] = channel_id
        fits = fitting(body, "decisions", "themes", "members", "x_members")
        wanted = [Wanted(APP, self.names.group(channel_id), fits, group=h)]
        if fits["themes"]:
            topics = {"history_key": hk, "topics": fits["themes"], "updated_at": None}
            wanted.append(Wanted(TOPICS, f"{hk}:subscription_state", topics, hk=hk))
        return wanted

    # ------------------------------------------------------------------ conversations

    def summary(self, said: Summarised, cleared: int) -> Wanted:
        """A summary, dated behind the second of the last clear (ms): Aman's readers hide what is not."""
        hk = self.names.history_key(said.session)
        body: dict[str, Any] = {
            "history_key": hk,
            "summary": self.redactor.clean(said.text),
            "message_count": said.count,
            "updated_at": None,
            "x_session": said.session,
            "x_updated_at": said.at,
            "x_up_to": said.up_to,
        }
        if person_of(said.session) is None:
            body["x_people"] = list(said.people)
        at = max(said.at // 1000, cleared // 1000 + 1)
        return Wanted(SUMMARY, f"{hk}:summary", fitting(body), at, hk)

    def clear(self, one: Clear) -> Wanted:
        """That a conversation was cleared."""
        hk, at = self.names.history_key(one.session), one.at // 1000
        sender = self.names.user(one.by)[:32] if one.by is not None else None
        body = clear_body(hk, sender=sender, at=at, id=one.id, ms=one.at, session=one.session, by=one.by)
        return unique(CLEAR, hk, body, salt=self.names.mark(canonical(body)), at=at)

    def _clean(self, texts: Iterable[str]) -> list[str]:
        return [self.redactor.clean(text) for text in texts]


def _quotes(content: str, text: str) -> bool:
    """Whether an answer has a text in it, or ends in its beginning: a long one was cut off."""
    if text in content:
        return True
    kept = content.removesuffix("…")
    return kept != content and any(text.startswith(kept[at:]) for at in range(len(kept) - LEAST + 1))


def fitting(body: Mapping[str, Any], *parts: str) -> dict[str, Any]:
    """A body that fits into one event: of these parts, in that order, the first entries are left out.

    Raises NostrError when that is not enough.
    """
    fits = dict(body)
    for name in parts:
        while fits[name] and (over := _over(fits)) > 0:
            fits[name] = _shorter(fits[name], over)
    if (over := _over(fits)) > 0:
        raise NostrError(f"it is {over} bytes too long for one event")
    return fits


def _over(body: Mapping[str, Any]) -> int:
    return len(canonical(body).encode("utf-8")) - ROOM


def _shorter(entries: Any, over: int) -> Any:
    """A list or an object without its first entries, which have so many bytes together."""
    rest = list(entries.items()) if isinstance(entries, Mapping) else list(entries)
    while rest and over > 0:
        over -= len(canonical(rest.pop(0)).encode("utf-8"))
    return dict(rest) if isinstance(entries, Mapping) else rest
