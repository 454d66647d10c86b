"""Turns what was learned from talk into drafts for a group's memory: themes and decisions. Pure."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from discoclaw.core.draft import Draft, Origin
from discoclaw.core.item import Facets, Kind
from discoclaw.core.profile import MOST_DECISIONS, MOST_THEMES, Part, items_of, key_of
from discoclaw.core.redact import Redactor
from discoclaw.core.text import clip, collapse, scrub, visible

KINDS: Mapping[Part, Kind] = {"theme": "fact", "decision": "constraint"}
"""The kind of item for each part."""
_MOST: Mapping[Part, int] = {"theme": MOST_THEMES, "decision": MOST_DECISIONS}
_LONGEST: Mapping[Part, int] = {"theme": 80, "decision": 300}
_MOST_AT_ONCE: Mapping[Part, int] = {"theme": 5, "decision": 10}

Texts = Sequence[tuple[Part, str]]


@dataclass(frozen=True, slots=True)
class Known:
    """The items of a group's memory that the place may see, oldest first.

    `people` are the user ids of everybody whose words the whole memory rests on, visible here or not.
    `erasings` counts the erasings since the start, up to that moment.
    """

    themes: tuple[str, ...] = ()
    decisions: tuple[str, ...] = ()
    people: Collection[str] = ()
    erasings: int = 0


@dataclass(frozen=True, slots=True)
class Learned:
    """Additions to a group's memory, as texts that a model proposes, and the ids of the messages it read."""

    themes: Sequence[str] = ()
    decisions: Sequence[str] = ()
    messages: Sequence[str] = ()


def tidied(learned: Learned, redactor: Redactor) -> Texts:
    """Proposed texts cleaned up for use as items, without empty ones and those over the limit."""
    found: list[tuple[Part, str]] = []
    parts: tuple[tuple[Part, Iterable[str]], ...] = (
        ("theme", learned.themes),
        ("decision", learned.decisions),
    )
    for part, texts in parts:
        plain = [collapse(redactor.clean(" ".join(scrub(text).splitlines()))) for text in texts]
        shown = [clip(text, _LONGEST[part]) for text in plain if visible(text).strip()]
        found += [(part, text) for text in shown[: _MOST_AT_ONCE[part]]]
    return found


def propose(draft: Draft, texts: Texts, origin: Origin) -> None:
    """Draft themes and decisions; if there are too many of one, the oldest leave."""
    for part, text in texts:
        draft.upsert(KINDS[part], text, origin, facets=Facets(key=key_of(part, text), category="core"))
    for part, most in _MOST.items():
        items = items_of(draft.view, part, private=True)
        for item in items[: max(0, len(items) - most)]:
            draft.remove(item, origin)
