"""The block in which a model hands over a soul: found in its answer, hidden from people, read strictly.

    <soul>{"identity": "…", "user": "…", "philosophy": "…", "traits": ["…"]}</soul>

Exactly one block, exactly these fields ("traits" may be missing), plain texts. Anything else that looks like
a block is malformed: nothing of it is used, and nothing of it is shown. Secrets are taken out of what is.
Knows nothing about who said it or where it goes.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError

from discoclaw.core.errors import Refused
from discoclaw.core.item import MAX_TEXT, check_text
from discoclaw.core.redact import redact
from discoclaw.core.text import collapse

MAX_PART = MAX_TEXT
"""Longest part of a soul, in code points: each is one item of memory."""
MAX_TRAIT = 200
MOST_TRAITS = 5

_TAG = re.compile(r"<\s*(?:(/)\s*)?soul\b[^>]*>?", re.IGNORECASE)
_BLOCK = re.compile(r"<soul>(.*?)</soul>", re.DOTALL)
_FENCED = re.compile(r"^[^\S\n]*(`{3,}|~{3,})[^\n`~]*\n\s*\1[^\S\n]*$", re.MULTILINE)
"""A code fence in which nothing is left."""
_HIDDEN = re.compile(r"<\s*soul\b.*?(?:<\s*/\s*soul\b[^>]*>?|\Z)", re.IGNORECASE | re.DOTALL)


def _part(text: str) -> str:
    """One line without secrets. Raises ValueError when there is nothing in it, or too much."""
    try:
        return check_text(redact(text).text)
    except Refused as refusal:
        raise ValueError(str(refusal)) from None


def _trait(text: str) -> str:
    """The same for a trait, which is a few words, with a letter or digit among them."""
    tidy = _part(text)
    if len(tidy) > MAX_TRAIT or trait_name(tidy) == "":
        raise ValueError(f"a trait is a few words, at most {MAX_TRAIT} characters")
    return tidy


Part = Annotated[str, AfterValidator(_part)]


class SoulBlock(BaseModel):
    """A soul as a model hands it over: who we are, who our human is, and what we hold to."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    identity: Part
    user: Part
    philosophy: Part
    traits: list[Annotated[str, AfterValidator(_trait)]] = []


@dataclass(frozen=True, slots=True)
class Answer:
    """What a model said in an interview: `text` for people, and a `soul`, or the `fault` of one."""

    text: str
    soul: SoulBlock | None = None
    fault: str = ""


def read(answer: str) -> Answer:
    """Take an answer apart."""
    text = _shown(answer)
    if _TAG.search(answer) is None:
        return Answer(text)
    blocks = _BLOCK.findall(answer)
    if len(blocks) != 1 or len(_TAG.findall(answer)) != 2:
        return Answer(text, fault="there has to be exactly one whole <soul>…</soul> block")
    try:
        soul = SoulBlock.model_validate(json.loads(blocks[0], object_pairs_hook=_once))
    except ValidationError as error:
        return Answer(text, fault=_told(error))
    except (ValueError, RecursionError):
        return Answer(text, fault="the block has to hold exactly one JSON object and nothing else")
    if len(soul.traits) > MOST_TRAITS:
        return Answer(text, fault=f"traits: at most {MOST_TRAITS}")
    return Answer(text, soul)


def trait_name(text: str) -> str:
    """The name of a trait as its key has it: lower-case words joined by "-"; "" when there are none."""
    return re.sub(r"[\W_]+", "-", collapse(text).casefold()).strip("-")[:40].strip("-")


def _shown(answer: str) -> str:
    """What people see: no block, no half of one, and none that comes about by leaving out another.

    Of a fence that a model put around the block in spite of what it is told, nothing is left either.
    """
    text = answer
    while _TAG.search(text) is not None:
        text = _FENCED.sub("", _TAG.sub("", _HIDDEN.sub("", text)))
    return text.strip()


def _once(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object whose names are all different. Raises ValueError."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name stands twice")
    return found


def _told(error: ValidationError) -> str:
    """What is wrong with which field, without repeating what was in it."""
    faults = error.errors(include_input=False, include_url=False)[:3]
    told = (
        f"{'.'.join(map(str, one['loc']))[:60] or 'the block'}: {one['msg'].removeprefix('Value error, ')}"
        for one in faults
    )
    return "; ".join(told)
