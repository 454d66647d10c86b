"""The block with which a model ends an interview: found in its answer, hidden from people, parsed strictly.

    <soul>{"identity": "…", "user": "…", "philosophy": "…", "traits": ["…"]}</soul>

There has to be exactly one block with exactly these fields ("traits" is optional), all plain text. Anything
else that looks like a block is malformed: none of it is used, and none of it is shown. Secrets are redacted.
Knows nothing about who is interviewed, or where the personality is stored.
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
"""Longest part of a personality, in code points, since each is stored as one item of memory."""
MAX_TRAIT = 200
"""Longest trait, in code points."""
MOST_TRAITS = 5

_TAG = re.compile(r"<\s*(?:(/)\s*)?soul\b[^>]*>?", re.IGNORECASE)
_BLOCK = re.compile(r"<soul>(.*?)</soul>", re.DOTALL)
_FENCED = re.compile(r"^[^\S\n]*(`{3,}|~{3,})[^\n`~]*\n\s*\1[^\S\n]*$", re.MULTILINE)
"""A code fence with nothing left in it."""
_HIDDEN = re.compile(r"<\s*soul\b.*?(?:<\s*/\s*soul\b[^>]*>?|\Z)", re.IGNORECASE | re.DOTALL)


def _part(text: str) -> str:
    """The text on one line, without secrets. Raises ValueError if it is empty or too long."""
    try:
        return check_text(redact(text).text)
    except Refused as refusal:
        raise ValueError(str(refusal)) from None


def _trait(text: str) -> str:
    """A trait on one line, as `_part`. Raises ValueError too if it is long or has no letter or digit."""
    tidy = _part(text)
    if len(tidy) > MAX_TRAIT or trait_name(tidy) == "":
        raise ValueError(f"a trait is a few words, at most {MAX_TRAIT} characters")
    return tidy


Part = Annotated[str, AfterValidator(_part)]


class SoulBlock(BaseModel):
    """A personality as the model proposes it: who the bot is, who its human is, and what it believes in."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    identity: Part
    user: Part
    philosophy: Part
    traits: list[Annotated[str, AfterValidator(_trait)]] = []


@dataclass(frozen=True, slots=True)
class Answer:
    """A model's answer in an interview: the `text` for people, and a `soul` or what is wrong with it.

    `fault` is told to the model, so that it can correct the block.
    """

    text: str
    soul: SoulBlock | None = None
    fault: str = ""


def read(answer: str) -> Answer:
    """Split an answer into what people see and the block, if there is one. Never raises."""
    text = _shown(answer)
    if _TAG.search(answer) is None:
        return Answer(text)
    # Tags are counted apart from blocks, since a nested or half block would hide in the other's text.
    blocks = _BLOCK.findall(answer)
    if len(blocks) != 1 or len(_TAG.findall(answer)) != 2:
        return Answer(text, fault="there has to be exactly one whole <soul>…</soul> block")
    try:
        soul = SoulBlock.model_validate(json.loads(blocks[0], object_pairs_hook=_once))
    except ValidationError as error:
        return Answer(text, fault=_faults(error))
    except (ValueError, RecursionError):
        return Answer(text, fault="the block has to hold exactly one JSON object and nothing else")
    if len(soul.traits) > MOST_TRAITS:
        return Answer(text, fault=f"traits: at most {MOST_TRAITS}")
    return Answer(text, soul)


def trait_name(text: str) -> str:
    """A trait's name for its key: lower-case words joined by "-", at most 40 characters, or ""."""
    return re.sub(r"[\W_]+", "-", collapse(text).casefold()).strip("-")[:40].strip("-")


def _shown(answer: str) -> str:
    """The answer as people see it: without any block or part of one.

    Repeated, since removing one block can join two halves into another. A code fence that the model put
    around the block, although it is told not to, is removed as well.
    """
    text = answer
    while _TAG.search(text) is not None:
        text = _FENCED.sub("", _TAG.sub("", _HIDDEN.sub("", text)))
    return text.strip()


def _once(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object as a dict. Raises ValueError if a name occurs twice; JSON would keep only the last."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name occurs twice")
    return found


def _faults(error: ValidationError) -> str:
    """The first faults by field, without the values: those may contain what should not be repeated."""
    faults = error.errors(include_input=False, include_url=False)[:3]
    lines = (
        f"{'.'.join(map(str, one['loc']))[:60] or 'the block'}: {one['msg'].removeprefix('Value error, ')}"
        for one in faults
    )
    return "; ".join(lines)
