"""Applies what extraction proposes (a `Patch`) to a draft, entry by entry.

An entry that a rule rejects is noted and the others are applied, since a model's answer is rarely all wrong.
A model that learns from conversation never makes an item "core", nor takes one out of it.
Pure. Knows nothing about models.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from discoclaw.core.draft import Draft, Origin, Outcome, find
from discoclaw.core.errors import Refused
from discoclaw.core.item import Facets, Item
from discoclaw.core.patch import Deprecation, Patch, Upsert
from discoclaw.core.privacy import may_show
from discoclaw.core.text import collapse, normalise, scrub

MAX_KEY = 100
"""Longest key a model may propose, in code points."""
MOST_LINKS = 20
"""Links that one upsert may name."""


def apply_patch(
    draft: Draft, patch: Patch, origins: Mapping[tuple[str, str], Origin], fallback: Origin
) -> list[str]:
    """Apply a patch to a draft. Returns why entries were rejected, for the log.

    `origins` are the messages that the model was shown, by (channel id, message id). An entry that names none
    of them is based on `fallback`. When and how privately something was said comes from there, never from
    the model. Links are made last, since an item may name one that is proposed after it.
    """
    refused: list[str] = []
    linking: list[tuple[Item, Upsert, Origin]] = []
    for upsert in patch.upserts:
        origin = _origin_of(upsert, origins, fallback)
        try:
            item, outcome = _apply_upsert(draft, upsert, origin, refused)
        except Refused as refusal:
            refused.append(str(refusal))
            continue
        if outcome == "unchanged" and origin is not fallback:
            draft.confirm(item, origin)
        if outcome not in ("ignored", "proposed") and upsert.links:
            linking.append((item, upsert, origin))
    for item, upsert, origin in linking:
        _link(draft, item, upsert.links[:MOST_LINKS], origin, refused)
    for deprecation in patch.deprecations:
        _apply_deprecation(draft, deprecation, fallback, refused)
    return refused


def _apply_upsert(draft: Draft, upsert: Upsert, origin: Origin, refused: list[str]) -> tuple[Item, Outcome]:
    """Apply one upsert. Raises Refused."""
    # Core items are in every prompt, so a model could crowd out everything else with them.
    category = "knowledge" if upsert.category == "core" else upsert.category
    item, outcome = draft.upsert(
        upsert.kind,
        upsert.text,
        origin,
        tags=upsert.tags,
        given_id=upsert.id,
        marked=upsert.sensitivity,
        facets=Facets(
            key=_key(draft, upsert.key, refused),
            category=category or "knowledge",
            links=_proposed_links(draft, upsert, origin),
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


def _apply_deprecation(draft: Draft, deprecation: Deprecation, fallback: Origin, refused: list[str]) -> None:
    origin = replace(fallback, evidence=deprecation.reason[:200])
    if deprecation.id is not None:  # never fall back to the text: a wrong id means a misunderstanding
        targets = [item for item in draft.items.values() if item.id == deprecation.id]
    else:
        targets = find(draft.items.values(), deprecation.matchText or "")
    if not targets:
        refused.append(f"no item matches {deprecation.id or deprecation.matchText!r}")
    for item in targets:
        draft.deprecate(item, origin)


def _key(draft: Draft, proposed: str | None, refused: list[str]) -> str | None:
    """A proposed key as an item already spells it, else in lower case; None if it is missing or too long."""
    plain = normalise(scrub(proposed or ""))
    if len(plain) > MAX_KEY:
        refused.append(f"a key can have at most {MAX_KEY} characters, so {plain[:40]!r}… is left out")
        return None
    # Models vary the case of keys. A key that differs only in that is the same one.
    keys = (item.facets.key for item in draft.items.values() if item.facets.key is not None)
    return next((key for key in keys if normalise(key) == plain), plain or None)


def _link(draft: Draft, item: Item, names: Sequence[str], origin: Origin, refused: list[str]) -> None:
    """Link an item with those named. A name that fits none is noted and left out."""
    for name in names:
        other = _linkable(draft, name, origin)
        if other is None or other.id == item.id or item.id not in draft.items:
            refused.append(f"there is no {collapse(scrub(name))[:60]!r} to link {item.id} with")
        else:
            draft.link(draft.items[item.id], other, origin)


def _proposed_links(draft: Draft, upsert: Upsert, origin: Origin) -> frozenset[str]:
    """What a proposal is to be linked with once the person agrees: it waits too, so no link is made now."""
    names = upsert.links[:MOST_LINKS] if origin.needs_yes else ()
    return frozenset(item.id for name in names if (item := _linkable(draft, name, origin)) is not None)


def _linkable(draft: Draft, name: str, origin: Origin) -> Item | None:
    """The active item with this id, key or text, among those that may be shown where the words were said."""
    name, plain = collapse(scrub(name)), normalise(scrub(name))
    if not plain:
        return None
    # A link to an item that was not shown could only be a guess, and would reveal that the item exists.
    shown = [one for one in draft.items.values() if one.active and may_show(one, in_dm=origin.private)]
    for one in shown:
        if name == one.id or plain == normalise(one.facets.key or ""):
            return one
    return next((one for one in shown if plain == normalise(one.text)), None)


def _origin_of(upsert: Upsert, origins: Mapping[tuple[str, str], Origin], fallback: Origin) -> Origin:
    if upsert.source is None:
        return fallback
    return origins.get((upsert.source.channelId, upsert.source.messageId), fallback)
