"""What a draft asks before it changes anything: which item is meant, do these words count, how private is it.

Only the answers. `draft` lists the rules, and makes the changes. Pure.
"""

from collections.abc import Collection, Mapping

from discoclaw.core.bot_memory import is_bot_key
from discoclaw.core.draft_events import Origin, is_older
from discoclaw.core.item import Author, Item, Kind, Sensitivity, by_newest, item_id
from discoclaw.core.matching import one_saying
from discoclaw.core.privacy import sensitivity
from discoclaw.core.taken_back import withdrawals
from discoclaw.core.text import normalise
from discoclaw.core.view import Fold

Items = Mapping[str, Item]

# ---------------------------------------------------------------------- which item


def meant(
    items: Items, kind: Kind, text: str, given_id: str | None, key: str | None, author: Author
) -> Item | None:
    """The item that an upsert changes: by id or key, else by its present text, else by its first text.

    A model that repeats an item's first text means that item, which was changed since. A person does not,
    unless the item is deprecated: remembering one thing must not overwrite another.
    """
    if given_id is not None and given_id in items:
        return items[given_id]
    if key is not None:
        keyed = [item for item in items.values() if item.facets.key == key]
        if keyed:  # more than one if replicas used the same key
            return min(keyed, key=lambda item: (not item.active, by_newest(item)))
    began = items.get(item_id(kind, text))
    if began is not None and began.active and author == "stated":
        began = None
    alike = one_saying(items.values(), kind, text) if author == "inferred" else None
    return with_text(items, kind, text) or alike or began


def with_text(items: Items, kind: Kind, text: str) -> Item | None:
    """The item that has this text now, preferably an active one."""
    plain = normalise(text)
    same = [item for item in items.values() if item.kind == kind and normalise(item.text) == plain]
    return min(same, key=lambda item: not item.active, default=None)


def is_taken(items: Items, key: str | None, current: Item) -> bool:
    """Whether a key is missing, or already names another item that is in use."""
    others = (item.facets.key for item in items.values() if item.active and item.id != current.id)
    return key is None or key in others


def beyond(items: Items, most: int, known: Collection[str]) -> list[Item]:
    """The items to remove so that `most` are left: forgotten ones first, those that are not `known` last.

    A clock that was wrong once may have dated the known ones in the future. What has a key reserved for the
    bot stays.
    """
    over = len(items) - most
    if over <= 0:
        return []
    others = [item for item in items.values() if not (item.active and is_bot_key(item.facets.key))]
    oldest_first = sorted(others, key=by_newest, reverse=True)
    return sorted(oldest_first, key=lambda item: (item.active, item.id not in known))[:over]


# ---------------------------------------------------------------------- whether the words count


def stands(current: Item, origin: Origin) -> bool:
    """Whether a stated item prevails over these words. A forgotten one does not, if they came later."""
    return current.active or origin.said_at <= current.updated_at


def too_old(current: Item, origin: Origin, erased_at: int) -> bool:
    """Whether inferred words are older than those the item is based on, or than the last erasure."""
    older = origin.said_at <= erased_at or is_older(origin, current.source)
    return origin.author == "inferred" and older


def was_taken_back(fold: Fold, current: Item | None, text: str, origin: Origin) -> bool:
    """Whether a model proposes what the person took back, on the basis of words from before that."""
    if origin.author != "inferred" or not fold.taken_back:
        return False
    if current is not None and current.active and normalise(current.text) == normalise(text):
        return False
    taken = fold.taken_back.values()
    if any(one.alone and str(origin.source) in one.messages for one in taken):
        return True  # the message was deleted; it says nothing any more
    later = [
        one
        for one in taken
        if not one.alone
        and one.at >= origin.said_at
        and not (one.open_only and (origin.private or current is not None))
    ]
    found = withdrawals("", later, fold.items)
    return any(one.words.hold(text) or normalise(text) in map(normalise, one.texts) for one in found)


# ---------------------------------------------------------------------- how private it is


def level_of(kind: Kind, text: str, marked: Sensitivity, origin: Origin) -> Sensitivity:
    """The sensitivity of what a change says."""
    return sensitivity(
        kind,
        f"{text}\n{origin.question}",  # shown wherever the item may be
        inferred=origin.author == "inferred" and not origin.of_channel,
        learned_privately=origin.private,
        marked=marked,
        rule=origin.dm_privacy,
    )
