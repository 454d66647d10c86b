"""The JSON shapes in which a small model proposes changes. `draft` and `consolidate` decide on them.

Extraction's shape is DNAM's: {"upserts": [{id?, kind, text, tags, source}], "deprecations": [{id | matchText,
reason}]}, with the short ids of the prompt, and with a quotation that each proposal rests on. An answer that
is not JSON, or has none of the fields, is rejected as a whole and changes nothing. Of one that has them, each
proposal is checked on its own: a flawed one is dropped, since a model's answer is rarely all wrong. One of
which all are flawed is rejected too, so that what was said waits. Only a summary may also come as prose.
"""

import json
import re
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, Literal, Self, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError, ValidationInfo, model_validator
from pydantic.json_schema import SkipJsonSchema

from discoclaw.core.item import Kind
from discoclaw.core.text import collapse

# ----------------------------------------------------------------------
# Reads answers that should have been JSON alone: the objects between other words, and a summary in prose.
#
# Servers without structured output may ignore the schema, and a summary in prose is still a summary. That is
# true of nothing else: whatever changes somebody's memory is a whole JSON object.


LONGEST = 20_000
"""The longest prose, in characters. What is longer isn't a summary, but the talk once more."""
_FEWEST_LETTERS = 20
_FEWEST_WORDS = 4
_MOST_STARTS = 20
"""How many opening braces are tried."""

_THOUGHT = re.compile(r"<think(?:ing)?>.*?</think(?:ing)?>", re.DOTALL | re.IGNORECASE)
_FENCE = re.compile(r"^[ \t]*```[\w-]*[ \t]*$", re.MULTILINE)
_BEGINS = re.compile(r'\{\s*["}]')
"""How an object begins, and a brace in a sentence doesn't."""
_BLANK = " \t\r\n\ufeff"
_HEADING = re.compile(
    r"\A(?:(?:sure|okay|certainly|of course)\b[^\n:]{0,40}[,.!:]\s*)?"
    r"(?:here(?: i|['’])s\b[^\n:]{0,80}:|[#*_\s]*(?:new |running |updated )?summary[*_\s]*:[*_]*)\s*",
    re.IGNORECASE,
)
_WRECKAGE = re.compile(
    r"\A[\[{\"<]|(?:summary|themes|decisions|add|change|done|drop)[\"']\s*:|</?think", re.IGNORECASE
)
_NO_SUMMARY = re.compile(
    r"""\A\W*(?:
      (?:i['’]?\s?a?m\s+(?:(?:really|very|so)\s+)?)?(?:sorry|afraid)\b
    | i\s+(?:apologi[sz]e|must\s+decline|am\s+(?:unable|not\s+able)|cannot|can\s+not|won['’]t)\b
    | i\s+(?:can|could|do|did)n?['’]t\b
    | my\s+apologies | as\s+an?\s+(?:ai|language\s+model)\b
    | there\s+(?:is|are|was|were)\s+(?:no|nothing)\s+(?:new\s+)?(?:messages?|conversation|content|text|to)\b
    | please\b | could\s+you\b | how\s+can\s+i\b | error\b
    | (?:es\s+)?tut\s+mir\s+leid | entschuldigung | ich\s+kann\s+(?:\w+\s+){0,3}(?:nicht|kein)
    | (?:je\s+suis\s+)?d[ée]sol[ée] | lo\s+siento | mi\s+dispiace | desculpe
    )""",
    re.VERBOSE | re.IGNORECASE,
)


class ProseShape(BaseModel):
    """A shape that a model may also answer in prose."""

    @classmethod
    @abstractmethod
    def from_prose(cls, text: str) -> Self | None:
        """The value that an answer holds which is not JSON as a whole, or None if it holds none."""


def objects_in(text: str) -> Iterator[str]:
    """The JSON objects in a text, as they stand in a code fence or between sentences; "" for a broken one.

    What follows the brace of a broken one is searched too.
    """
    decoder, at = json.JSONDecoder(), -1
    for _ in range(_MOST_STARTS):
        at = text.find("{", at + 1)
        if at < 0:
            return
        try:
            _, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            if _BEGINS.match(text, at):
                yield ""
            continue
        yield text[at:end]
        at = end - 1


def bare(text: str) -> str:
    """The text without what models put around JSON: a code fence, a list's brackets, a byte order mark."""
    plain = _FENCE.sub("", text).strip(_BLANK)
    return plain[1:-1].strip(_BLANK) if plain[:1] == "[" and plain[-1:] == "]" else plain


def summary_in(text: str) -> str | None:
    """The summary that a text without an object is: None if it is an apology, a wreck, empty or too long."""
    plain = _FENCE.sub("", _THOUGHT.sub("", text)).strip()
    plain = _HEADING.sub("", plain).strip()
    letters = sum(char.isalpha() for char in plain)
    # Scripts without spaces have long words.
    words = max(len(plain.split()), letters // 8)
    if letters < _FEWEST_LETTERS or words < _FEWEST_WORDS or len(plain) > LONGEST:
        return None
    if letters * 2 < len("".join(plain.split())) or _WRECKAGE.search(plain) or _NO_SUMMARY.match(plain):
        return None
    return plain


# ----------------------------------------------------------------------
# The shapes.


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _Proposal(BaseModel):
    """One proposal. Fields that nobody asked for are ignored: they change nothing."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class _Proposals(BaseModel):
    """Lists of proposals. Faults of single ones are added to the validation's context, if that is a list."""

    needs_sound: ClassVar[tuple[str, ...]] = ()
    """The lists of which something has to be sound, if there is anything in them."""
    model_config = ConfigDict(extra="ignore", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _one_by_one(cls, value: object, info: ValidationInfo) -> object:
        if not isinstance(value, Mapping):
            return value
        given = {name: value[name] for name in cls.model_fields if name in value}
        if value and not given:
            raise ValueError("has none of the fields that were asked for")
        flawed = info.context if isinstance(info.context, list) else []
        for name, entries in given.items():
            if entries is None:
                given[name] = []
            elif isinstance(entries, list):
                given[name] = list(_sound(cls.model_fields[name].annotation, name, entries, flawed))
        entries = [value[name] for name in cls.needs_sound if value.get(name)]
        if entries and not any(given[name] for name in cls.needs_sound if name in given):
            raise ValueError("none of the proposals is what was asked for")
        return given


def _sound(annotation: Any, name: str, entries: list[object], flawed: list[str]) -> list[BaseModel]:
    """The entries that are what was asked for. The others' faults name fields, never values."""
    (kind,) = get_args(annotation)
    sound = []
    for number, entry in enumerate(entries):
        try:
            sound.append(kind.model_validate(entry, strict=True))
        except ValidationError as error:
            faults = error.errors(include_url=False, include_input=False, include_context=False)
            shown = ", ".join(
                f"{'.'.join(map(str, fault['loc']))} {fault['type']}".strip() for fault in faults
            )
            flawed.append(f"{name} {number}: {shown}")
    return sound


def _tidy_word(value: object) -> object:
    return collapse(value).lower() if isinstance(value, str) else value


def _private_in_doubt(value: object) -> object:
    """Whatever a model says other than "normal" is a reason to be careful."""
    plain = _tidy_word(value)
    return "normal" if plain is None else plain if plain in ("normal", "private") else "private"


Words = Annotated[list[str], BeforeValidator(lambda value: [] if value is None else value)]
Ask = Annotated[str, BeforeValidator(lambda value: "" if value is None else value)]


class Upsert(_Proposal):
    """Add an item, or change the one named by `id` or `key`.

    `source` is the line it rests on, `quote` some words copied from that. `source`, `id` and `links` are
    short names of the prompt; links may also be keys or texts, of items of the same patch too. Without a
    `category` an existing item keeps its own, and a new one is knowledge.
    """

    id: str | None = None
    kind: Annotated[Kind, BeforeValidator(_tidy_word)]
    text: str
    tags: Words = []
    source: str
    quote: str
    sensitivity: Annotated[Literal["normal", "private"], BeforeValidator(_private_in_doubt)] = "normal"
    key: str | None = None
    links: Words = []
    category: Annotated[Literal["core", "knowledge", "conversation"] | None, BeforeValidator(_tidy_word)] = (
        None
    )
    ask: SkipJsonSchema[Ask] = ""  # read wherever it turns up, but a model sees it only in AskingUpsert


class AskingUpsert(Upsert):
    """Add an item, or change the one named by `id` or `key`.

    `ask` is a yes-or-no question to the person, if it is unsure whether this is so; else "".
    """

    ask: Ask = ""


class Deprecation(_Proposal):
    """An item is no longer true. It is named by `id`, or by `matchText` with at least 60 % of its text."""

    id: str | None = None
    matchText: str | None = None  # noqa: N815 - the schema's spelling
    reason: str = ""
    source: str
    quote: str


class Trait(_Proposal):
    """How the bot itself should behave, as its owner said. `key` is a name of one or two words."""

    key: str
    text: str
    source: str
    quote: str


class Patch(_Proposals):
    """What extraction returns."""

    needs_sound: ClassVar = ("upserts", "deprecations")
    upserts: list[Upsert] = []
    deprecations: list[Deprecation] = []
    traits: list[Trait] = []
    """The bot's traits; used only if the messages are an owner's."""


class AskingPatch(Patch):
    """What extraction returns when it may ask the person something."""

    upserts: list[AskingUpsert] = []  # type: ignore[assignment]  # never changed, so the narrower list fits


class NewLine(_Proposal):
    """A line to add. `source` is the message it rests on, `quote` some words copied from that."""

    section: Annotated[Literal["now", "open", "decided", "wanted"], BeforeValidator(_tidy_word)]
    text: str
    source: str
    quote: str


SECTIONS: tuple[str, ...] = get_args(NewLine.model_fields["section"].annotation)
"""The sections in the order of `rolling_text.HEADINGS`."""


class EndedLine(_Proposal):
    """A line that is done, or that goes."""

    id: str
    source: str
    quote: str


class ChangedLine(EndedLine):
    """A line of which a new message makes another."""

    text: str


class Lines(_Proposals):
    """What changes in a summary; its lines have the short names of the prompt."""

    needs_sound: ClassVar = ("add", "change", "done", "drop")
    add: list[NewLine] = []
    change: list[ChangedLine] = []
    done: list[EndedLine] = []
    drop: list[EndedLine] = []


class Summary(_Strict, ProseShape):
    """What the summary loop returns: the summary's changes, and new themes and decisions for the channel."""

    summary: Lines | SkipJsonSchema[str]  # a model that ignores the shape may write the whole summary
    themes: list[str] = []
    decisions: list[str] = []

    @classmethod
    def from_prose(cls, text: str) -> Self | None:
        """The summary in prose, or in JSON with something around it.

        Themes and decisions become the channel's memory, so they count only from an object of exactly this
        shape.
        """
        for found in filter(None, objects_in(text)):
            try:
                return cls.model_validate_json(found, strict=True)
            except ValidationError:
                alone = json.loads(found).get("summary")
                if isinstance(alone, str) and alone.strip():
                    return cls(summary=alone)
        plain = summary_in(text)
        return cls(summary=plain) if plain is not None else None


class Duplicate(_Proposal):
    """Items that say the same. `keep` stays, with the merged `text` if its own would lose something."""

    keep: str
    drop: list[str]
    text: str | None = None


class Contradiction(_Proposal):
    """Two items that cannot both be true."""

    older: str
    newer: str
    reason: str = ""


class Outdated(_Proposal):
    """An item that is no longer true because time has passed."""

    id: str
    reason: str = ""


class Consolidation(_Proposals):
    """What consolidation returns. All items are named by id."""

    duplicates: list[Duplicate] = []
    contradictions: list[Contradiction] = []
    outdated: list[Outdated] = []


class Suggestion(_Strict):
    """How a small model would settle a conflict. The person decides; this is only shown to them."""

    how: Literal["keep_old", "use_new", "both_valid"]
    reason: str = ""
