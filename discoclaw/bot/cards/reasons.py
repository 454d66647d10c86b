"""The cards that explain: where a memory comes from, what an answer was based on or would be based on."""

from collections.abc import Sequence

from discoclaw.bot.cards.card import GREY, Card, Entry, Turn
from discoclaw.bot.cards.memories import Where, entry_of
from discoclaw.bot.texts import history as texts
from discoclaw.bot.texts import preview as previews
from discoclaw.bot.texts.markup import for_people
from discoclaw.core.history import History
from discoclaw.core.item import Item
from discoclaw.session.prepare import Preview


def of_memory(
    history: History, item: Item, turn: Turn, *, where: Where, branch: str | None, page: int
) -> Card:
    """Everything that touched a memory, oldest first, with where it was said."""
    entries = [
        Entry(told, " · ".join(about))
        for told, about in texts.reasons(history, item, link=where, branch=branch)
    ]
    about = entry_of(item, lambda source: "")
    return Card(
        "Where this comes from",
        [about, *(entries or [Entry(texts.NO_REASON)])],
        turn=turn,
        page=page,
        colour=GREY,
    )


def of_preview(made: Preview, facts: previews.Facts, turn: Turn, *, page: int) -> Card:
    """A card of what the model would read about somebody, and what not."""
    parts = previews.parts(made, facts, previews.row)
    entries = [Entry(part, apart=number > 0) for number, part in enumerate(parts)]
    small = previews.small(made, facts)
    return Card(previews.title(made), entries, small=small, turn=turn, page=page, most=4, colour=GREY)


def of_answer(
    used: Sequence[tuple[Item | None, str]], also: str, link: str, where: Where, turn: Turn, *, page: int
) -> Card:
    """The memories (None: gone since) that an answer had, each with why it was chosen; `also` is the rest."""
    entries = []
    for item, chosen in used:
        if item is None:
            entries.append(Entry("*a memory that is gone since*"))
            continue
        row = entry_of(item, where)
        why = f"chosen: {for_people(chosen)}" if chosen else ""
        entries.append(Entry(row.text, " · ".join(filter(None, (row.small, why)))))
    return Card(
        "What my last answer was based on",
        entries or [Entry("Nothing I remember about you.")],
        small=[f"[my last answer here]({link})"],
        foot=[also],
        turn=turn,
        page=page,
        colour=GREY,
    )
