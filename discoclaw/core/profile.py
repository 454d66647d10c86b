"""Profiles of people and of groups: values, their JSON, and what of them is a view of a ledger.

    profile  {"display_names": [[name, s]...], "first_seen": s, "notes": [text...],
              "preferences": {key: text}}
    group    {"purpose": text or null, "members": [[user id, name]...], "themes": [text...],
              "decisions": [[text, s]...]}

Times are seconds since 1970, as the schema of Snowclaw has them. Names, first_seen, purpose and members are
the files' own; notes, preferences, themes and decisions are a picture of what the subject's ledger says.
Keys that are not known here are kept as they are. Who is the owner stands in no file: configuration alone
says that, so a key `is_owner` that somebody wrote there counts for nothing.
Pure; knows nothing about files, Discord or prompts' other parts.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Any, Literal

from discoclaw.core.item import Item
from discoclaw.core.privacy import may_show
from discoclaw.core.text import collapse, normalise, scrub, utf16_length
from discoclaw.core.times import date_of, valid_ms
from discoclaw.core.view import View

MOST_NAMES = 200
"""Names of one person that are kept: the first, and the newest."""
MOST_MEMBERS = 200
MOST_THEMES, MOST_DECISIONS = 20, 50
LONGEST_NAME = 100
LONGEST_PURPOSE = 1024
"""Characters; Discord's own limit of a topic, but for forums, whose guidelines may be longer."""
LONGEST_NOTES = 1500
"""Of what a prompt says of a group, in UTF-16 units."""
_LONGEST_THEMES = 600

Part = Literal["theme", "decision"]
_KEYS: Mapping[Part, str] = {"theme": "theme:", "decision": "decision:"}
_LONGEST_SLUG = 40


def tidy_name(name: str) -> str:
    """A display name on one line; "someone" where nothing of it is left."""
    return collapse(" ".join(scrub(name).splitlines()))[:LONGEST_NAME].strip() or "someone"


def slug(text: str) -> str:
    """A short name for a text: its words with hyphens, in lower case; of a long one the beginning and a hash.

    Texts that differ in more than case and punctuation have different ones.
    """
    words = "-".join(re.findall(r"\w+", normalise(text)))
    if words and len(words) <= _LONGEST_SLUG:
        return words
    mark = sha256(normalise(text).encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{words[:_LONGEST_SLUG].rstrip('-')}-{mark}".lstrip("-")


# ---------------------------------------------------------------------- people


@dataclass(frozen=True, slots=True)
class Profile:
    """What is known of a person beside their memory, and what their memory says.

    `display_names` are (name, s), each from when on it was seen, oldest first.
    """

    display_names: tuple[tuple[str, int], ...] = ()
    first_seen: int = 0
    notes: tuple[str, ...] = ()
    preferences: Mapping[str, str] = field(default_factory=dict)
    other: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """What they are called now; "" when that is not known."""
        return self.display_names[-1][0] if self.display_names else ""

    def was_called(self, name: str) -> bool:
        """Whether they were ever called so."""
        return any(known == name for known, _ in self.display_names)

    def with_name(self, name: str, at_s: int) -> "Profile":
        """The profile with the name they have now: a new one is added, and none is ever overwritten."""
        if name == self.name:
            return self
        names = (*self.display_names, (name, at_s))
        if len(names) > MOST_NAMES:
            names = (names[0], *names[1 - MOST_NAMES :])
        return replace(self, display_names=names)

    def with_view(self, view: View) -> "Profile":
        """The profile with what the person's memory says: all that holds, but for what is confidential."""
        items = [item for item in view.active() if may_show(item, in_dm=True)]
        preferences: dict[str, str] = {}
        for item in items:
            if item.kind == "preference":
                preferences[_free(item.facets.key or slug(item.text), preferences)] = item.text
        notes = tuple(item.text for item in items if item.kind != "preference")
        return replace(self, notes=notes, preferences=preferences)

    def to_json(self) -> dict[str, Any]:
        return {
            "display_names": [list(one) for one in self.display_names],
            "first_seen": self.first_seen,
            "notes": list(self.notes),
            "preferences": dict(self.preferences),
            **self.other,
        }

    def published(self, *, is_owner: bool) -> dict[str, Any]:
        """The record as others read it, with who the owner is by configuration."""
        return {**self.to_json(), "is_owner": is_owner}

    @classmethod
    def from_json(cls, value: object) -> "Profile":
        """The profile of a decoded file. Raises ValueError when it is none."""
        fields = _fields(value)
        notes, preferences = fields.pop("notes", []), fields.pop("preferences", {})
        first_seen = fields.pop("first_seen", None)
        names = tuple(_dated(fields.pop("display_names", None)))
        if not _is_s(first_seen) or not _all_texts(notes) or not isinstance(preferences, Mapping):
            raise ValueError("first_seen, notes or preferences are not what they should be")
        if not _all_texts([*preferences, *preferences.values()]):
            raise ValueError("preferences are not texts by texts")
        fields.pop("is_owner", None)
        return cls(names, first_seen, tuple(notes), dict(preferences), fields)


def _free(key: str, taken: Mapping[str, str]) -> str:
    """A key that nothing has yet."""
    found, count = key, 1
    while found in taken:
        count += 1
        found = f"{key}-{count}"
    return found


# ---------------------------------------------------------------------- groups


@dataclass(frozen=True, slots=True)
class Group:
    """A channel: its purpose, who was seen there (id, name), the one who spoke last at the end; and what its
    memory says: themes, and decisions with when (s) they were noted, oldest first."""

    purpose: str | None = None
    members: tuple[tuple[str, str], ...] = ()
    themes: tuple[str, ...] = ()
    decisions: tuple[tuple[str, int], ...] = ()
    other: Mapping[str, Any] = field(default_factory=dict)

    def with_view(self, view: View) -> "Group":
        """The group with what its memory says, private talk included: it stays in the group."""
        themes, decisions = items_of(view, "theme", private=True), items_of(view, "decision", private=True)
        return replace(
            self,
            themes=tuple(item.text for item in themes),
            decisions=tuple((item.text, item.updated_at // 1000) for item in decisions),
        )

    def without(self, user_id: str) -> "Group":
        """The group without a member, and without what is not known here and names them."""
        return replace(
            self,
            members=tuple(one for one in self.members if one[0] != user_id),
            other={key: one for key, one in self.other.items() if not _names([key, one], user_id)},
        )

    def to_json(self) -> dict[str, Any]:
        return {
            "purpose": self.purpose,
            "members": [list(one) for one in self.members],
            "themes": list(self.themes),
            "decisions": [list(one) for one in self.decisions],
            **self.other,
        }

    @classmethod
    def from_json(cls, value: object) -> "Group":
        """The group of a decoded file. Raises ValueError when it is none."""
        fields = _fields(value)
        purpose, themes = fields.pop("purpose", None), fields.pop("themes", [])
        members = fields.pop("members", [])
        decisions = tuple(_dated(fields.pop("decisions", [])))
        if not isinstance(purpose, str | None) or not _all_texts(themes) or not isinstance(members, list):
            raise ValueError("purpose, themes or members are not what they should be")
        if not all(isinstance(one, list) and len(one) == 2 and _all_texts(one) for one in members):
            raise ValueError("members are not pairs of an id and a name")
        return cls(purpose, tuple((one, name) for one, name in members), tuple(themes), decisions, fields)


def key_of(part: Part, text: str) -> str:
    """The key of a theme or a decision in a group's ledger."""
    return f"{_KEYS[part]}{slug(text)}"


def items_of(view: View, part: Part, *, private: bool) -> list[Item]:
    """A group's themes or decisions, oldest first; what was said in private only for a `private` place."""
    found = [
        item
        for item in view.active()
        if (item.facets.key or "").startswith(_KEYS[part]) and may_show(item, in_dm=private)
    ]
    return sorted(found, key=lambda item: item.updated_at)  # of one time, in the order they were added


def notes_of(view: View, *, private: bool) -> str:
    """What a prompt says of a group's memory: themes, then decisions, newest first; "" when there are none.

    At most `LONGEST_NOTES`: what is oldest is left out. The purpose is said with the place itself.
    """
    themes = [_plain(item.text) for item in reversed(items_of(view, "theme", private=private))]
    decisions = reversed(items_of(view, "decision", private=private))
    told = [f"- {date_of(item.updated_at)}: {_plain(item.text)}" for item in decisions]
    first = _fitting("Themes: ", themes, "; ", _LONGEST_THEMES)
    rest = _fitting("Decisions, newest first:\n", told, "\n", LONGEST_NOTES - utf16_length(first) - 1)
    return "\n".join(filter(None, [first, rest]))


def _fitting(head: str, texts: Sequence[str], between: str, room: int) -> str:
    """A head and as many of the texts as fit behind it, each whole; "" when none does."""
    found: list[str] = []
    room -= len(head)
    for text in texts:
        room -= utf16_length(text) + (len(between) if found else 0)
        if room < 0:
            break
        found.append(text)
    return head + between.join(found) if found else ""


def _plain(text: str) -> str:
    return " ".join(scrub(text).splitlines())


# ---------------------------------------------------------------------- reading


def _fields(value: object) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise ValueError("it is no JSON object")
    json.dumps(value, ensure_ascii=False).encode("utf-8")  # else it could not be written again
    return dict(value)


def _dated(value: object) -> Iterable[tuple[str, int]]:
    """Pairs of a text and a time (s). Raises ValueError when they are none."""
    if not isinstance(value, list):
        raise ValueError("there is no list where one has to be")
    for one in value:
        if not (isinstance(one, list) and len(one) == 2 and isinstance(one[0], str) and _is_s(one[1])):
            raise ValueError("a pair of a text and a time is none")
        yield one[0], one[1]


def _is_s(value: object) -> bool:
    return isinstance(value, int) and valid_ms(value) and valid_ms(value * 1000)


def _all_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


def _names(value: object, user_id: str) -> bool:
    """Whether a JSON value holds an id, anywhere."""
    text = json.dumps(value, ensure_ascii=False)
    return re.search(rf"(?<!\w){re.escape(user_id)}(?!\w)", text) is not None
