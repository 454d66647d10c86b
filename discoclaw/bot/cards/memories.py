"""The cards of what is remembered: all of it, or one memory with what can be done about it."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

from discoclaw.bot.asked import stamp
from discoclaw.bot.cards.card import GREY, Button, Card, Entry, Turn
from discoclaw.bot.cards.turning import back
from discoclaw.bot.texts import history as history_texts
from discoclaw.bot.texts import memory as texts
from discoclaw.bot.texts.markup import ago, name, opening, words
from discoclaw.core.item import Item, Source, by_newest
from discoclaw.core.view import View
from discoclaw.core.yours import yours
from discoclaw.memory.conversations.rolling import Rolling
from discoclaw.show import text as shown
from discoclaw.show.words import count

Where = Callable[[Source], str]
"""The place where something was said, as markup."""
TITLE = "What I remember about you"
MENU = "⋯"


@dataclass(frozen=True, slots=True)
class About:
    """Notes about a memory: see `texts.memory.show`, whose words these are."""

    persona: str = ""
    rebuilding: bool = False
    presumed: int = 0
    opted_out: bool = False
    notes: Sequence[str] = ()


def all_of(
    view: View,
    rolling: Rolling,
    turn: Turn,
    branch: str,
    where: Where,
    about: About,
    *,
    page: int,
) -> Card:
    """Everything that is remembered here, newest first, then what is to be settled, then the summary."""
    items = sorted(view.active(), key=by_newest)
    entries = [
        replace(entry_of(item, where), control=_menu(turn.user_id, item, branch)) for item in items
    ] or [Entry(texts.NOTHING_YET)]
    entries += _titled("To settle", _questions(view, items))
    entries.append(_summary(rolling, rebuilding=about.rebuilding))
    gone = sum(not item.active for item in view.items.values())
    small = [count(len(items), "memory"), *([f"persona {name(about.persona)}"] if about.persona else [])]
    if gone:
        small.append(f"{gone} forgotten")
    return Card(
        TITLE,
        entries,
        small=[*([texts.NOT_USED] if about.opted_out else []), " · ".join(small)],
        foot=[*about.notes, *([texts.presumed_private(about.presumed)] if about.presumed else [])],
        turn=turn,
        page=page,
    )


def at_a_point(view: View, turn: Turn, where: Where, *, at: str | None, page: int) -> Card:
    """A card of the memories at a point, newest first, then forgotten ones, then what is to be settled."""
    title = f"What I remembered at {words(at, 60)}" if at else "What I remember, and what I forgot"
    items = sorted(view.items.values(), key=lambda item: (not item.active, by_newest(item)))
    entries = [entry_of(item, where) for item in items] or [Entry(history_texts.NOTHING)]
    conflicts = [shown.conflict(*texts.asked(view, one), in_private=True) for one in view.conflicts]
    entries += _titled("To settle", [opening(one) for one in conflicts])
    active = sum(item.active for item in items)
    gone = [f"{len(items) - active} forgotten"] if active < len(items) else []
    small = [" · ".join([count(active, "memory"), *gone])] if items else []
    return Card(title, entries, small=small, turn=turn, page=page, colour=GREY)


def one_of(item: Item, user_id: str, branch: str, page: int, where: Where) -> Card:
    """One memory, and what can be done about it. `page` is the one to go back to."""
    known = f"{stamp(item)}:{page}:{branch}"
    is_open = item.facets.sensitivity == "normal"
    verb, label = ("private", "Use in our DMs only") if is_open else ("share", "Use everywhere")
    return Card(
        "",
        [entry_of(item, where)],
        controls=[
            Button(f"change:{user_id}:{known}", "Edit", "blue"),
            Button(f"do:{user_id}:{verb}:{known}", label),
            Button(f"why:{user_id}:{known}", "Why"),
            Button(f"do:{user_id}:forget:{known}", "Forget", "red"),
            back(Turn(user_id, "show"), page),
        ],
    )


def entry_of(item: Item, where: Where) -> Entry:
    """A memory as a row: its text, and below it what it is, since when, where it was said, who sees it."""
    secret = "" if item.facets.sensitivity == "normal" else f"🔒 {item.facets.sensitivity}"
    gone = "" if item.active else "forgotten"
    about = (secret, gone, item.kind, ago(item.updated_at), where(item.source))
    return Entry(opening(yours(item.text)) or "…", " · ".join(part for part in about if part))


def _menu(user_id: str, item: Item, branch: str) -> Button:
    return Button(f"item:{user_id}:{stamp(item)}:{{page}}:{branch}", MENU)


def _questions(view: View, items: Collection[Item]) -> list[str]:
    ids = {item.id for item in items}
    return [
        f"{opening(shown.conflict(*texts.asked(view, one), in_private=True))}. {texts.UNTIL_THEN}"
        for one in view.conflicts
        if one.item_id in ids
    ]


def _titled(title: str, lines: Sequence[str]) -> list[Entry]:
    if not lines:
        return []
    first, *rest = lines
    return [Entry(f"**{title}**\n{first}", apart=True), *map(Entry, rest)]


def _summary(rolling: Rolling, *, rebuilding: bool) -> Entry:
    text, updated = texts.summed_up(rolling, rebuilding=rebuilding)
    return Entry(f"**{texts.SUMMARY}**\n{text}", updated, apart=True)
