"""A soul: who we are, as items of the bot's own memory and as sections of a prompt.

Three keyed items hold it (`soul:identity`, `soul:user`, `soul:philosophy`), one more each trait
(`personality:<name>`). Files an admin wrote win over the items, each by itself. Who the human is says the
tag of `soul:user`, their user id. What is about them is for talk with them alone, and where it was learned in
private, in their DMs alone. Pure. Knows nothing about prompts' quoting, files or models.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from discoclaw.core import titles
from discoclaw.core.bot_memory import SOUL_PREFIX, TRAIT_PREFIX
from discoclaw.core.draft import Draft, Origin
from discoclaw.core.item import Facets, Item, Kind, by_newest
from discoclaw.core.patch import Trait
from discoclaw.core.privacy import may_show, sensitivity
from discoclaw.core.redact import redact
from discoclaw.core.text import collapse, scrub, visible
from discoclaw.core.view import View
from discoclaw.soul.block import MAX_TRAIT, SoulBlock, trait_name

IDENTITY, USER, PHILOSOPHY = f"{SOUL_PREFIX}identity", f"{SOUL_PREFIX}user", f"{SOUL_PREFIX}philosophy"
CATEGORY = "core"
MOST_SHOWN = 5
MOST_KEPT = 20
"""Traits that are kept; the oldest that were learned from talk leave, what an owner settled on never does."""

# A kind of its own for each, so that equal words do not make one item of two parts.
_KINDS: dict[str, Kind] = {IDENTITY: "fact", USER: "person", PHILOSOPHY: "constraint"}
_TRAIT_KIND: Kind = "preference"


@dataclass(frozen=True, slots=True)
class Soul:
    """Who we are; an empty text is a part that nobody gave us. `traits` are newest first."""

    identity: str = ""
    user: str = ""
    philosophy: str = ""
    traits: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        """Whether anybody gave us a personality; traits alone are none."""
        return bool(self.identity or self.user or self.philosophy)

    def over(self, below: "Soul") -> "Soul":
        """This soul, and where it says nothing, what the other one says."""
        return Soul(
            self.identity or below.identity,
            self.user or below.user,
            self.philosophy or below.philosophy,
            self.traits or below.traits,
        )


Section = tuple[str, tuple[str, ...]]
"""A title and the texts below it, one entry each where there are several."""


def of_view(view: View, *, with_whom: str, in_dm: bool) -> Soul:
    """What the bot's memory says, for talk with one person; who its human is, only they are told."""
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
    """Whether the bot's memory holds a soul, for whomever."""
    return not _by_key(view.items.values()).keys().isdisjoint(_KINDS)


def sections(soul: Soul) -> tuple[Section, ...]:
    """The soul as sections of a prompt, in their order; what nobody gave us is left out."""
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
    """Make a soul ours in place of the one before: same keys, same ids; traits it lacks are set aside."""
    openly = replace(origin, private=False)  # who we are shows in all we say
    for key, text, tags, whence in (
        (IDENTITY, block.identity, (), openly),
        (USER, block.user, (human,), origin),
        (PHILOSOPHY, block.philosophy, (), openly),
    ):
        draft.upsert(_KINDS[key], text, whence, tags=tags, facets=Facets(key=key, category=CATEGORY))
    keys = set()
    for trait in block.traits:
        keys.add(key := f"{TRAIT_PREFIX}{trait_name(trait)}")
        draft.upsert(_TRAIT_KIND, trait, openly, facets=Facets(key=key, category=CATEGORY))
    for item in _traits(list(draft.items.values())):
        if item.facets.key not in keys:
            draft.deprecate(item, openly)


def learn(draft: Draft, traits: Sequence[Trait], origin: Origin) -> list[str]:
    """Take over traits that were inferred from an owner's talk. Returns why some were refused.

    None replaces what an owner settled on in an interview, and none is personal: everybody meets it.
    """
    refused = []
    for trait in traits[:MOST_SHOWN]:
        text, name = (
            collapse(scrub(redact(trait.text).text)),
            trait_name(trait.key.removeprefix(TRAIT_PREFIX)),
        )
        if not name or not visible(text).strip() or len(text) > MAX_TRAIT:
            refused.append(f"a trait has a name, and 1 to {MAX_TRAIT} characters")
            continue
        secret = sensitivity(
            _TRAIT_KIND, text, learned_privately=origin.private, marked="normal", rule=origin.dm_privacy
        )
        held = _held(draft.items.values(), f"{TRAIT_PREFIX}{name}", text)
        if secret != "normal" or (held is not None and held.facets.author == "stated"):
            why = "is private" if secret != "normal" else "is settled already"
            refused.append(f"the trait {name!r} {why}")
            continue
        draft.upsert(_TRAIT_KIND, text, origin, facets=Facets(key=f"{TRAIT_PREFIX}{name}"))
    traits_now = _traits(draft.items.values())
    learned = [item for item in traits_now if item.facets.author == "inferred"]
    for item in learned[max(0, MOST_KEPT - len(traits_now) + len(learned)) :]:
        draft.remove(item, origin)
    return refused


def _by_key(items: Iterable[Item]) -> dict[str, Item]:
    return {item.facets.key: item for item in items if item.active and item.facets.key is not None}


def _traits(items: Iterable[Item]) -> list[Item]:
    """The traits that hold, newest first."""
    found = [item for item in items if item.active and (item.facets.key or "").startswith(TRAIT_PREFIX)]
    return sorted(found, key=by_newest)


def _held(items: Iterable[Item], key: str, text: str) -> Item | None:
    """The item of a key, else the trait that says the same."""
    ours = [item for item in items if (item.facets.key or "").startswith(TRAIT_PREFIX)]
    keyed = next((item for item in ours if item.facets.key == key), None)
    return keyed or next((item for item in ours if item.text.casefold() == text.casefold()), None)
