"""Profiles of people and groups: values, their JSON, and the parts of them that mirror a ledger.

    profile  {"display_names": [[name, s]...], "first_seen": s, "notes": [text...],
              "preferences": {key: text}}
    group    {"purpose": text or null, "members": [[user id, name]...], "themes": [text...],
              "decisions": [[text, s]...]}

The schema is Snowclaw's; times are seconds since 1970. Names, first_seen, purpose and members exist only in
these files. Notes, preferences, themes and decisions are copied from the subject's ledger. Unknown keys are
kept. `is_owner` is only ever taken from the configuration; a file that has it is not believed.
Pure; knows nothing about files or Discord.
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
"""Names of one person that are kept: the first one and the newest."""
MOST_MEMBERS = 200
MOST_THEMES, MOST_DECISIONS = 20, 50
LONGEST_NAME = 100
LONGEST_PURPOSE = 1024
"""In characters; Discord's limit for a topic. A forum's guidelines may be longer, and are cut."""
LONGEST_NOTES = 1500
"""Longest text about a group in a prompt, in UTF-16 units."""
_LONGEST_THEMES = 600
"""The part of it for themes, so that there is space for decisions."""

Part = Literal["theme", "decision"]
_KEYS: Mapping[Part, str] = {"theme": "theme:", "decision": "decision:"}
_LONGEST_SLUG = 40


def tidy_name(name: str) -> str:
    """A display name on one line, at most `LONGEST_NAME` characters; "someone" if nothing is left of it."""
    return collapse(" ".join(scrub(name).splitlines()))[:LONGEST_NAME].strip() or "someone"


def slug(text: str) -> str:
    """A key for a text: its lower-case words joined by hyphens. A long one is cut and ends in a hash.

    Texts that differ in more than case and punctuation get different keys.
    """
    words = "-".join(re.findall(r"\w+", normalise(text)))
    if words and len(words) <= _LONGEST_SLUG:
        return words
    mark = sha256(normalise(text).encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{words[:_LONGEST_SLUG].rstrip('-')}-{mark}".lstrip("-")


# ---------------------------------------------------------------------- people


@dataclass(frozen=True, slots=True)
class Profile:
    """A person's names, and a copy of what the bot remembers about them.

    `display_names` are (name, s): a name and when it was first seen, oldest first. `other` has unknown keys.
    """

    display_names: tuple[tuple[str, int], ...] = ()
    first_seen: int = 0
    notes: tuple[str, ...] = ()
    preferences: Mapping[str, str] = field(default_factory=dict)
    other: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The person's current name, "" if it is not known."""
        return self.display_names[-1][0] if self.display_names else ""

    def was_called(self, name: str) -> bool:
        """Whether the person ever had this name."""
        return any(known == name for known, _ in self.display_names)

    def with_name(self, name: str, at_s: int) -> "Profile":
        """The profile with a new current name. Earlier names are kept, within `MOST_NAMES`."""
        if name == self.name:
            return self
        names = (*self.display_names, (name, at_s))
        if len(names) > MOST_NAMES:  # the first name stays, as people are known by it
            names = (names[0], *names[1 - MOST_NAMES :])
        return replace(self, display_names=names)

    def with_view(self, view: View) -> "Profile":
        """The profile with notes and preferences from a view: all active items except confidential ones.

        A preference whose text begins with its key has only the rest as its value.
        """
        items = [item for item in view.active() if may_show(item, in_dm=True)]
        preferences: dict[str, str] = {}
        for item in items:
            if item.kind == "preference":
                key = _free(item.facets.key or slug(item.text), preferences)
                preferences[key] = preference_value(key, item.text)
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
        """The record as it is published, with `is_owner` from the configuration."""
        return {**self.to_json(), "is_owner": is_owner}

    @classmethod
    def from_json(cls, value: object) -> "Profile":
        """The profile in a decoded file. Raises ValueError if it is not one."""
        fields = _fields(value)
        notes, preferences = fields.pop("notes", []), fields.pop("preferences", {})
        first_seen = fields.pop("first_seen", None)
        names = tuple(_dated(fields.pop("display_names", None)))
        if not _is_s(first_seen) or not _all_texts(notes) or not isinstance(preferences, Mapping):
            raise ValueError("first_seen, notes or preferences have the wrong type")
        if not _all_texts([*preferences, *preferences.values()]):
            raise ValueError("preferences must map text to text")
        fields.pop("is_owner", None)  # or it would be published again among the unknown keys
        return cls(names, first_seen, tuple(notes), dict(preferences), fields)


def preference_text(key: str, value: str) -> str:
    """A preference as a text of its own, without a key beside it."""
    return f"{key}: {value}"


def preference_value(key: str, text: str) -> str:
    """The value in such a text, which stands beside its key. Any other text is a value as it is."""
    start = preference_text(key, "")
    return text.removeprefix(start) if len(text) > len(start) else text


def _free(key: str, taken: Mapping[str, str]) -> str:
    """The key, with a number appended if it is taken."""
    found, count = key, 1
    while found in taken:
        count += 1
        found = f"{key}-{count}"
    return found


# ---------------------------------------------------------------------- groups


@dataclass(frozen=True, slots=True)
class Group:
    """A channel: its purpose and members, and a copy of what the bot remembers about it.

    `members` are (user id, name), the one who spoke last at the end. `decisions` are (text, s), with when
    they were recorded, oldest first. `other` has unknown keys.
    """

    purpose: str | None = None
    members: tuple[tuple[str, str], ...] = ()
    themes: tuple[str, ...] = ()
    decisions: tuple[tuple[str, int], ...] = ()
    other: Mapping[str, Any] = field(default_factory=dict)

    def with_view(self, view: View) -> "Group":
        """The group with themes and decisions from a view; private ones too, as only the group sees them."""
        themes, decisions = items_of(view, "theme", private=True), items_of(view, "decision", private=True)
        return replace(
            self,
            themes=tuple(item.text for item in themes),
            decisions=tuple((item.text, item.updated_at // 1000) for item in decisions),
        )

    def without(self, user_id: str) -> "Group":
        """The group without a member, and without any unknown key whose value names them."""
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
        """The group in a decoded file. Raises ValueError if it is not one."""
        fields = _fields(value)
        purpose, themes = fields.pop("purpose", None), fields.pop("themes", [])
        members = fields.pop("members", [])
        decisions = tuple(_dated(fields.pop("decisions", [])))
        if not isinstance(purpose, str | None) or not _all_texts(themes) or not isinstance(members, list):
            raise ValueError("purpose, themes or members have the wrong type")
        if not all(isinstance(one, list) and len(one) == 2 and _all_texts(one) for one in members):
            raise ValueError("members must be pairs of an id and a name")
        return cls(purpose, tuple((one, name) for one, name in members), tuple(themes), decisions, fields)


def key_of(part: Part, text: str) -> str:
    """The key of a theme's or decision's item in a group's ledger."""
    return f"{_KEYS[part]}{slug(text)}"


def items_of(view: View, part: Part, *, private: bool) -> list[Item]:
    """A group's themes or decisions, oldest first; private ones only if `private`."""
    found = [
        item
        for item in view.active()
        if (item.facets.key or "").startswith(_KEYS[part]) and may_show(item, in_dm=private)
    ]
    return sorted(found, key=lambda item: item.updated_at)  # stable: of one time, in the order of adding


def notes_of(view: View, *, private: bool) -> str:
    """A group's memory as text for a prompt: themes, then decisions, newest first. "" if there are none.

    At most `LONGEST_NOTES`; the oldest are left out. The purpose is not in it, since the prompt has it as the
    channel's topic.
    """
    themes = [_plain(item.text) for item in reversed(items_of(view, "theme", private=private))]
    decisions = reversed(items_of(view, "decision", private=private))
    lines = [f"- {date_of(item.updated_at)}: {_plain(item.text)}" for item in decisions]
    first = _fitting("Themes: ", themes, "; ", _LONGEST_THEMES)
    rest = _fitting("Decisions, newest first:\n", lines, "\n", LONGEST_NOTES - utf16_length(first) - 1)
    return "\n".join(filter(None, [first, rest]))


def _fitting(head: str, texts: Sequence[str], between: str, left: int) -> str:
    """The head, followed by as many whole texts as fit; "" if not even one does."""
    found: list[str] = []
    left -= len(head)
    for text in texts:
        left -= utf16_length(text) + (len(between) if found else 0)
        if left < 0:
            break
        found.append(text)
    return head + between.join(found) if found else ""


def _plain(text: str) -> str:
    return " ".join(scrub(text).splitlines())


# ---------------------------------------------------------------------- reading


def _fields(value: object) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise ValueError("it is not a JSON object")
    json.dumps(value, ensure_ascii=False).encode("utf-8")  # raises if it could not be written back
    return dict(value)


def _dated(value: object) -> Iterable[tuple[str, int]]:
    """Pairs of a text and a time (s). Raises ValueError if the value is anything else."""
    if not isinstance(value, list):
        raise ValueError("display_names and decisions must be lists")
    for one in value:
        if not (isinstance(one, list) and len(one) == 2 and isinstance(one[0], str) and _is_s(one[1])):
            raise ValueError("display_names and decisions must be pairs of a text and a time")
        yield one[0], one[1]


def _is_s(value: object) -> bool:
    return isinstance(value, int) and valid_ms(value) and valid_ms(value * 1000)


def _all_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


def _names(value: object, user_id: str) -> bool:
    """Whether a JSON value contains a user id anywhere."""
    text = json.dumps(value, ensure_ascii=False)
    # A whole number only: one id can be part of another.
    return re.search(rf"(?<!\w){re.escape(user_id)}(?!\w)", text) is not None
