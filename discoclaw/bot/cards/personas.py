"""The cards of one's personas, and of the figures of a memory."""

from collections.abc import Mapping

from discoclaw.bot.cards.card import GREY, Button, Card, Entry, Turn
from discoclaw.bot.texts import personas as texts
from discoclaw.bot.texts.history import NOTHING
from discoclaw.bot.texts.markup import name, said
from discoclaw.core.history import Branches, History
from discoclaw.show.words import count


def overview(
    branches: Branches, counts: Mapping[str, int], turn: Turn, *, always: str | None, page: int
) -> Card:
    """A row for each persona, with a button to switch to it. `always` is the one that the place uses."""
    entries = []
    for one, branch in branches.all.items():
        current = one == branches.current
        about = [count(counts.get(one, 0), "memory"), *(["current"] if current else [])]
        text = f"**{name(one)}**" + (f"\n{said(branch.persona)}" if branch.persona else "")
        switch = None if current else Button(f"be:{turn.user_id}:{{page}}:{one}", "Switch")
        entries.append(Entry(text, " · ".join(about), switch))
    foot = [texts.always(always)] if always is not None else []
    return Card("Your personas", entries, foot=foot, turn=turn, page=page)


def figures(history: History, turn: Turn, notes: list[str], *, page: int) -> Card:
    """How much is remembered; `notes` is what else is to be said."""
    rows = texts.figures(history, in_private=True)
    entries = [Entry(f"**{title}**\n{text}") for title, text in rows] or [Entry(NOTHING)]
    return Card("Your memory in numbers", entries, foot=notes, turn=turn, page=page, most=10, colour=GREY)
