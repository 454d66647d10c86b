"""The benchmark's values: people with items, conversations with turns, and what is asked about both.

Everything is made from a seed, the same for the same seed. Even seeds are for reports, odd ones for
development; they share no phrasing of a question and hardly a filler (see `grammar`). Nothing here knows a
ranker.
"""

from dataclasses import dataclass

from discoclaw.core.item import Item

REPORT_SEED = 2026
DEVELOP_SEED = 7

_NAMES = [
    "de",
    "German",
    "fr",
    "French",
    "es",
    "Spanish",
    "pt",
    "Portuguese",
    "it",
    "Italian",
    "pl",
    "Polish",
    "ru",
    "Russian",
    "tr",
    "Turkish",
    "ar",
    "Arabic",
    "hi",
    "Hindi",
    "ja",
    "Japanese",
    "zh",
    "Chinese",
    "ko",
    "Korean",
]
LANGUAGES = dict(zip(_NAMES[::2], _NAMES[1::2], strict=True))
"""What the languages' texts are filed under, and their names."""

EXACT, INFLECTED = "exact words", "inflected forms"
PARAPHRASE, NOTHING_SHARED = "paraphrase, only its name shared", "paraphrase, no word shared"
NEIGHBOUR = "words only in a neighbour"
ALIAS, NAME, DATE = "alias, short form", "name of a person", "date in words"
MULTI, CORRECTION, NEGATION = "several pieces of evidence", "correction", "negation"
TYPOS, CODE, NOISY = "typos", "code, identifiers", "long and chatty"
CHAT, UNKNOWN, UNKNOWN_THING = "chit-chat", "about nothing known", "about an unknown thing"
OTHER_PERSON, COMMON, SENSE = "about an unknown person", "only a common word shared", "another sense"
PRIVATE = "private, asked in the open"

ANSWERED = (EXACT, INFLECTED, PARAPHRASE, NOTHING_SHARED, ALIAS, NAME, DATE, MULTI, CORRECTION, NEGATION)
ITEM_KINDS = (*ANSWERED, TYPOS, CODE, NOISY)
TALK_KINDS = (
    *(EXACT, INFLECTED, NEIGHBOUR, NOTHING_SHARED, ALIAS, DATE, MULTI, CORRECTION, NEGATION),
    *(TYPOS, CODE, NOISY),
)
ITEM_MUST_NOT = (CHAT, UNKNOWN, UNKNOWN_THING, OTHER_PERSON, COMMON, SENSE, PRIVATE)
TALK_MUST_NOT = (CHAT, UNKNOWN, UNKNOWN_THING, OTHER_PERSON, COMMON)


@dataclass(frozen=True, slots=True)
class Question:
    """A message, and what should be remembered at it.

    `evidence` are the ids that should come back; empty means that nothing should. `forbidden` are ids that
    must not: superseded, or of another meaning. `in_dm` says whether private items may be shown.
    """

    text: str
    kind: str
    evidence: frozenset[str] = frozenset()
    forbidden: frozenset[str] = frozenset()
    in_dm: bool = True


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody's items, active and deprecated, open and private, and the questions about them."""

    name: str
    items: tuple[Item, ...]
    questions: tuple[Question, ...]


@dataclass(frozen=True, slots=True)
class Turn:
    """What somebody said at a time (ms since 1970, UTC)."""

    id: str
    speaker: str
    text: str
    at_ms: int


@dataclass(frozen=True, slots=True)
class Talk:
    """A conversation over many days, oldest turn first, and the questions about it."""

    name: str
    speakers: tuple[str, ...]
    turns: tuple[Turn, ...]
    questions: tuple[Question, ...]
