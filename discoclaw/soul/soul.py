"""The bot's personality ("soul") as items of its own memory, as sections of a prompt, and as a model's block.

It is stored in keyed items: `soul:identity`, `soul:user`, `soul:philosophy`, and one `personality:<name>` for
each trait. A file that an admin wrote replaces the item of that part. The tag of `soul:user` is the user id
of the bot's human. That part is used only in conversations with them and, if it was learned in private, only
in their DMs.
Pure. Knows nothing about quoting, files or models.
"""

import json
import re
from collections.abc import Iterable, Sequence
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError

from discoclaw.core import titles
from discoclaw.core.draft import Draft, Origin
from discoclaw.core.errors import Refused
from discoclaw.core.item import MAX_TEXT, Facets, Item, Kind, by_newest, check_text
from discoclaw.core.patch import Trait
from discoclaw.core.privacy import may_show, sensitivity
from discoclaw.core.redact import redact
from discoclaw.core.subject import SOUL_PREFIX, TRAIT_PREFIX
from discoclaw.core.text import collapse, scrub, visible
from discoclaw.core.values import dataclass, replace
from discoclaw.core.view import View

# ----------------------------------------------------------------------
# The block with which a model ends an interview: found in its answer, hidden from people, parsed strictly.
#
#     <soul>{"identity": "…", "user": "…", "philosophy": "…", "traits": ["…"]}</soul>
#
# There has to be exactly one block with exactly these fields ("traits" is optional), all plain text.
# Anything else that looks like a block is malformed: none of it is used, and none of it is shown. Secrets
# are redacted. Knows nothing about who is interviewed, or where the personality is stored.

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


# ----------------------------------------------------------------------


IDENTITY, USER, PHILOSOPHY = f"{SOUL_PREFIX}identity", f"{SOUL_PREFIX}user", f"{SOUL_PREFIX}philosophy"
CATEGORY = "core"
MOST_SHOWN = 5
"""Traits in a prompt, and traits that one extraction may teach."""
MOST_KEPT = 20
"""Traits that are stored. The oldest ones learned from conversation are removed; stated ones never are."""

# Each part has a kind of its own. An id is derived from kind and text, so parts with equal texts stay apart.
_KINDS: dict[str, Kind] = {IDENTITY: "fact", USER: "person", PHILOSOPHY: "constraint"}
_TRAIT_KIND: Kind = "preference"


@dataclass(frozen=True, slots=True)
class Soul:
    """A personality. A part is "" if it was never given. `traits` are newest first."""

    identity: str = ""
    user: str = ""
    philosophy: str = ""
    traits: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        """Whether there is a personality. Traits alone don't count."""
        return bool(self.identity or self.user or self.philosophy)

    def over(self, below: "Soul") -> "Soul":
        """This personality, with parts that it lacks taken from another one."""
        return Soul(
            self.identity or below.identity,
            self.user or below.user,
            self.philosophy or below.philosophy,
            self.traits or below.traits,
        )


Section = tuple[str, tuple[str, ...]]
"""A title and the texts below it. Several texts are a list, one entry each."""


def of_view(view: View, *, with_whom: str, in_dm: bool) -> Soul:
    """The personality in the bot's memory, as far as it may be used with one person (a user id).

    The part about the bot's human is only used with that human.
    """
    by_key = _by_key(view.items.values())

    def text(key: str, *, private: bool = False) -> str:
        item = by_key.get(key)
        return item.text if item is not None and may_show(item, in_dm=private) else ""

    about = by_key.get(USER)
    human = about is not None and with_whom in about.tags
    return Soul(
        text(IDENTITY),
        text(USER, private=in_dm) if human else "",
        text(PHILOSOPHY),
        tuple(item.text for item in _traits(view.items.values()) if may_show(item, in_dm=False))[:MOST_SHOWN],
    )


def exists(view: View) -> bool:
    """Whether the bot's memory has a personality, whoever it may be used with."""
    return not _by_key(view.items.values()).keys().isdisjoint(_KINDS)


def sections(soul: Soul) -> tuple[Section, ...]:
    """The personality as sections of a prompt, in order, without the parts it lacks."""
    found: list[Section] = [
        (title, (text,))
        for title, text in (
            (titles.SOUL_IDENTITY, soul.identity),
            (titles.SOUL_USER, soul.user),
            (titles.SOUL_PHILOSOPHY, soul.philosophy),
        )
        if text
    ]
    return (*found, (titles.TRAITS, soul.traits)) if soul.traits else tuple(found)


def keep(draft: Draft, block: SoulBlock, human: str, origin: Origin) -> None:
    """Replace the bot's personality by the one in a block. Traits that are not in it are deprecated."""
    openly = replace(origin, private=False)  # who the bot is shows in everything it says
    for key, text, tags, basis in (
        (IDENTITY, block.identity, (), openly),
        (USER, block.user, (human,), origin),
        (PHILOSOPHY, block.philosophy, (), openly),
    ):
        draft.upsert(_KINDS[key], text, basis, tags=tags, facets=Facets(key=key, category=CATEGORY))
    keys = set()
    for trait in block.traits:
        keys.add(key := f"{TRAIT_PREFIX}{trait_name(trait)}")
        draft.upsert(_TRAIT_KIND, trait, openly, facets=Facets(key=key, category=CATEGORY))
    for item in _traits(list(draft.items.values())):
        if item.facets.key not in keys:
            draft.deprecate(item, openly)


def learn(draft: Draft, traits: Sequence[Trait], origin: Origin) -> list[str]:
    """Store traits that were inferred from an owner's messages. Returns why some were rejected, for the log.

    A trait never replaces what an owner decided in an interview. Nor may it be personal, since everybody the
    bot talks with will notice it.
    """
    refused = []
    for trait in traits[:MOST_SHOWN]:
        text, name = (
            collapse(scrub(redact(trait.text).text)),
            trait_name(trait.key.removeprefix(TRAIT_PREFIX)),
        )
        if not name or not visible(text).strip() or len(text) > MAX_TRAIT:
            refused.append(f"a trait needs a name and 1 to {MAX_TRAIT} characters of text")
            continue
        # A trait shows in every conversation, so what may not be shown everywhere cannot be one.
        secret = sensitivity(
            _TRAIT_KIND,
            text,
            inferred=True,
            learned_privately=origin.private,
            marked="normal",
            rule=origin.dm_privacy,
        )
        key = f"{TRAIT_PREFIX}{name}"
        ours = [item for item in draft.items.values() if (item.facets.key or "").startswith(TRAIT_PREFIX)]
        keyed = next((item for item in ours if item.facets.key == key), None)
        current = keyed or next((item for item in ours if item.text.casefold() == text.casefold()), None)
        if secret != "normal" or (current is not None and current.facets.author == "stated"):
            why = "is private" if secret != "normal" else "was set by an owner"
            refused.append(f"the trait {name!r} {why}")
            continue
        draft.upsert(_TRAIT_KIND, text, origin, facets=Facets(key=f"{TRAIT_PREFIX}{name}"))
    traits_now = _traits(draft.items.values())
    learned = [item for item in traits_now if item.facets.author == "inferred"]
    # Stated traits use up the limit first; what is left of it goes to the newest learned ones.
    for item in learned[max(0, MOST_KEPT - len(traits_now) + len(learned)) :]:
        draft.remove(item, origin)
    return refused


def _by_key(items: Iterable[Item]) -> dict[str, Item]:
    return {item.facets.key: item for item in items if item.active and item.facets.key is not None}


def _traits(items: Iterable[Item]) -> list[Item]:
    """The active traits, newest first."""
    found = [item for item in items if item.active and (item.facets.key or "").startswith(TRAIT_PREFIX)]
    return sorted(found, key=by_newest)
