"""What talk adds to a group's memory: themes and decisions, tidied and drafted. Pure."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from discoclaw.core.draft import Draft, Origin
from discoclaw.core.item import Facets, Kind
from discoclaw.core.profile import MOST_DECISIONS, MOST_THEMES, Part, items_of, key_of
from discoclaw.core.redact import Redactor
from discoclaw.core.text import clip, collapse, scrub, visible

KINDS: Mapping[Part, Kind] = {"theme": "fact", "decision": "constraint"}
"""As what kind of item each is kept."""
_MOST: Mapping[Part, int] = {"theme": MOST_THEMES, "decision": MOST_DECISIONS}
_LONGEST: Mapping[Part, int] = {"theme": 80, "decision": 300}
_MOST_AT_ONCE: Mapping[Part, int] = {"theme": 5, "decision": 10}

Texts = Sequence[tuple[Part, str]]


@dataclass(frozen=True, slots=True)
class Known:
    """What a group's memory says, as far as it may be told where it is asked for, oldest first.

    `people` are those whose words all of it rests on, told or not, by user id; `erasings` how many people's
    memories were erased until then, since the start.
    """

    themes: tuple[str, ...] = ()
    decisions: tuple[str, ...] = ()
    people: Collection[str] = ()
    erasings: int = 0


@dataclass(frozen=True, slots=True)
class Learned:
    """What talk has added to a group's memory: texts as a model proposes them."""

    themes: Sequence[str] = ()
    decisions: Sequence[str] = ()


def tidied(learned: Learned, redactor: Redactor) -> Texts:
    """Proposed texts as items may have them, without empty ones and those beyond the most of one time."""
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
    """Draft themes and decisions; beyond the most of each, the oldest leave."""
    for part, text in texts:
        draft.upsert(KINDS[part], text, origin, facets=Facets(key=key_of(part, text), category="core"))
    for part, most in _MOST.items():
        items = items_of(draft.view, part, private=True)
        for item in items[: max(0, len(items) - most)]:
            draft.remove(item, origin)
