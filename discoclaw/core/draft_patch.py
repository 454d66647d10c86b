"""Applies what extraction proposes (a `Patch`) to a draft, proposal by proposal.

A proposal that a rule rejects is noted and the others are applied. The rules:

- It names the line it rests on and quotes it; the quotation must be the person's own words in that line. So
  nothing is learned that nobody said.
- Lines and items have the short names under which the model was shown them. Unknown ones are rejected.
- At most `MOST` upserts and as many deprecations count. Whoever learns more from so little did not choose.
- A proposal with a question (`ask`) waits for the person's yes. It counts only where a question may be asked
  and no other one is open; else it stays out, since the model was unsure.
- A key is kept only where there can be one of a thing. A second dog does not replace the first.
- A model that learns from conversation never makes an item "core", nor takes one out of it.

Pure. Knows nothing about models.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from discoclaw.core.draft import Draft, Origin, Outcome, find
from discoclaw.core.errors import Refused
from discoclaw.core.item import Facets, Item
from discoclaw.core.own_words import is_quoted
from discoclaw.core.patch import Deprecation, Patch, Trait, Upsert
from discoclaw.core.privacy import may_show
from discoclaw.core.subject import is_bot_key
from discoclaw.core.text import collapse, normalise, scrub, utf16_length
from discoclaw.core.titles import ShortIds

Proposal = TypeVar("Proposal")

MOST = 5
"""Upserts of one patch that count, and items that it may deprecate."""
MOST_READ = 50
"""Upserts of one patch that are looked at, and deprecations: each is compared with a whole message."""
SINGLE = (
    "name",
    "pronouns",
    "birthday",
    "home",
    "timezone",
    "language",
    "employer",
    "job",
    "school",
    "deadline",
    "status",
    "version",
)
"""Endings of keys: things of which there is one at a time."""
MAX_KEY = 100
"""Longest key a model may propose, in code points."""
MOST_LINKS = 20
"""Links that one upsert may name."""


@dataclass(frozen=True, slots=True)
class ShownLine:
    """A line of the person's that may be learned from: where it comes from, and their own words in it."""

    origin: Origin
    passages: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Shown:
    """Prompt of a model: `lines` and `items` by their short names, `own` lines by message id.

    `may_ask`: it was told that it may ask the person something.
    """

    own: Mapping[str, ShownLine]
    lines: ShortIds
    items: ShortIds
    may_ask: bool = False

    def basis(self, proposal: Upsert | Deprecation | Trait) -> Origin:
        """The line that a proposal rests on. Raises Refused unless it quotes the person's own words there."""
        line = self.own.get(self.lines.meant(proposal.source) or "")
        if line is None:
            raise Refused(f"{collapse(scrub(proposal.source))[:20]!r} isn't a line of the person's")
        if not is_quoted(proposal.quote, line.passages):
            name = collapse(scrub(proposal.source))[:20]
            raise Refused(f"what it quotes from {name!r} is not what the person said there")
        return line.origin

    def item(self, short: str) -> str:
        """The id of an item. Raises Refused if no item was shown under that name."""
        found = self.items.meant(short)
        if found is None:
            raise Refused(f"there is no item {collapse(scrub(short))[:20]!r}")
        return found


def apply_patch(draft: Draft, patch: Patch, shown: Shown) -> list[str]:
    """Apply a patch to a draft. Returns why proposals were rejected, for the log.

    When and how privately something was said comes from the line quoted, never from the model. Links are made
    last, since an item may name one that is proposed after it.
    """
    refused: list[str] = []
    linking: list[tuple[Item, Upsert, Origin]] = []
    count = 0
    for upsert in _first(patch.upserts, refused):
        try:
            origin = shown.basis(upsert)
            if upsert.ask.strip():
                if not shown.may_ask:
                    raise Refused("it is unsure, and nothing may be asked now")
                if draft.view.pending or draft.view.conflicts:
                    raise Refused("it is unsure, and another question is open")
                origin = replace(origin, needs_yes=True, question=question(upsert.ask))
            given_id = shown.item(upsert.id) if upsert.id else None
            if count == MOST:
                raise Refused(f"more than {MOST} proposals in one run")
            item, outcome = _apply_upsert(draft, upsert, given_id, origin, shown, refused)
            count += 1
        except Refused as refusal:
            refused.append(str(refusal))
            continue
        if outcome == "unchanged":
            draft.confirm(item, origin)
        if outcome not in ("ignored", "proposed") and upsert.links:
            linking.append((item, upsert, origin))
    for item, upsert, origin in linking:
        for name in upsert.links[:MOST_LINKS]:
            other = _linkable(draft, name, origin, shown)
            if other is None or other.id == item.id or item.id not in draft.items:
                refused.append(f"there is no {collapse(scrub(name))[:60]!r} to link {item.id} with")
            else:
                draft.link(draft.items[item.id], other, origin)
    count = 0
    for deprecation in _first(patch.deprecations, refused):
        try:
            origin = replace(shown.basis(deprecation), evidence=deprecation.reason[:200])
            for item in _deprecated(draft, deprecation, shown):
                if count == MOST:
                    raise Refused(f"more than {MOST} deprecations in one run")
                count += 1
                draft.deprecate(item, origin)
        except Refused as refusal:
            refused.append(str(refusal))
    return refused


def _first(proposals: Sequence[Proposal], refused: list[str]) -> Sequence[Proposal]:
    """The proposals that are looked at; how many others there are is noted."""
    if len(proposals) > MOST_READ:
        refused.append(f"{len(proposals) - MOST_READ} more than {MOST_READ} proposals are left out")
    return proposals[:MOST_READ]


def _apply_upsert(
    draft: Draft, upsert: Upsert, given_id: str | None, origin: Origin, shown: Shown, refused: list[str]
) -> tuple[Item, Outcome]:
    """Apply one upsert. Raises Refused."""
    # Core items are in every prompt, so a model could crowd out everything else with them.
    category = "knowledge" if upsert.category == "core" else upsert.category
    # A proposal that waits is linked once the person agrees; else links are made when all items are there.
    names = upsert.links[:MOST_LINKS] if origin.needs_yes else ()
    links = [one.id for name in names if (one := _linkable(draft, name, origin, shown)) is not None]
    item, outcome = draft.upsert(
        upsert.kind,
        upsert.text,
        origin,
        tags=upsert.tags,
        given_id=given_id,
        marked=upsert.sensitivity,
        facets=Facets(
            key=_key(draft, upsert.key, refused),
            category=category or "knowledge",
            links=frozenset(links),
        ),
    )
    if upsert.category == "core" and item.facets.category != "core":
        refused.append("only the person decides what is core; it is kept as knowledge")
    # A short-lived item may become knowledge. Knowledge never becomes short-lived: it would then expire.
    if (
        category == "knowledge"
        and outcome not in ("ignored", "proposed")
        and item.facets.category == "conversation"
    ):
        draft.classify(item, category, origin)
    return draft.items.get(item.id, item), outcome


def _deprecated(draft: Draft, deprecation: Deprecation, shown: Shown) -> list[Item]:
    """The items that are no longer true. Raises Refused if there are none."""
    if deprecation.id:  # never fall back to the text: a wrong id means a misunderstanding
        wanted = shown.item(deprecation.id)
        found = [item for item in draft.items.values() if item.id == wanted]
    else:
        items = [item for item in draft.items.values() if shown.items.knows(item.id)]
        found = find(items, deprecation.matchText or "")
    if not found:
        raise Refused(f"no item matches {deprecation.id or collapse(deprecation.matchText or '')[:60]!r}")
    return found


def _key(draft: Draft, proposed: str | None, refused: list[str]) -> str | None:
    """A proposed key as an item already spells it, else in lower case; None if it is missing or too long."""
    plain = normalise(scrub(proposed or ""))
    if len(plain) > MAX_KEY:
        refused.append(f"a key can have at most {MAX_KEY} characters, so {plain[:40]!r}… is left out")
        return None
    # A reserved key is left to the draft, which refuses the whole proposal.
    if plain and plain.rpartition(":")[2] not in SINGLE and not is_bot_key(plain):
        refused.append(f"there can be more than one {plain[:40]!r}, so the key is left out")
        return None
    # Models vary the case of keys. A key that differs only in that is the same one.
    keys = (item.facets.key for item in draft.items.values() if item.facets.key is not None)
    return next((key for key in keys if normalise(key) == plain), plain or None)


def _linkable(draft: Draft, name: str, origin: Origin, shown: Shown) -> Item | None:
    """The active item with this name, key or text, of those that may be shown where the words were said."""
    wanted, plain = shown.items.meant(name), normalise(scrub(name))
    if not plain:
        return None
    # A link to an item that was not shown could only be a guess, and would reveal that the item exists.
    items = [one for one in draft.items.values() if one.active and may_show(one, in_dm=origin.private)]
    for one in items:
        if wanted == one.id or plain == normalise(one.facets.key or ""):
            return one
    return next((one for one in items if plain == normalise(one.text)), None)


# Questions in return: extraction may ask about one thing that it is unsure of, instead of leaving it out.

LONGEST = 200
"""Longest text of a question, in UTF-16 units."""
_ENDS = ("?", "？", "؟", "\u037e", "՞", "፧")
_LIVE = re.compile(r"<[@#:]|<a:|@(?:everyone|here)\b|[a-z]+://", re.IGNORECASE)
"""Texts that Discord turns into a mention, an emoji or a link."""


def question(text: str) -> str:
    """A model's question as it may be shown. Raises Refused."""
    asked = collapse(scrub(text))
    if len(text.strip().splitlines()) != 1:
        raise Refused("a question to the person must be one line")
    if utf16_length(asked) > LONGEST:
        raise Refused(f"a question to the person can have at most {LONGEST} characters")
    if not asked.endswith(_ENDS):
        raise Refused("what is to be asked is not a question")
    if _LIVE.search(asked):
        raise Refused("a question to the person can't hold mentions or links")
    return asked
