"""The tools that search: what is remembered about the person, and what was said where they speak."""

import logging
from collections.abc import Sequence

from pydantic import Field

from discoclaw.core.errors import MemoryFault
from discoclaw.core.item import Item, by_newest, durable_line
from discoclaw.core.replaced import alike, ends, newest_first
from discoclaw.core.text import normalise
from discoclaw.core.view import View
from discoclaw.core.words import Gist, gist_of
from discoclaw.prompt.quote import memory_block
from discoclaw.session.meaning import Question
from discoclaw.session.tools.base import Category, Name, Text, Tool, ToolContext, ToolInput

log = logging.getLogger(__name__)

NOTHING_FITS = "Nothing is remembered that fits."
TALK_NOT_SEARCHED = "(What was said here before cannot be searched right now.)"


class Recall(ToolInput):
    """The few memories that fit a question best, with their keys and links, or none."""

    query: Text
    limit: int | None = Field(default=None, ge=1, le=50)
    category: Category | None = None
    depth: int = Field(default=0, ge=0, le=2, description="How many links to follow.")


class Search(Recall):
    """Look for what you were not given: memories of the person you answer, the newest if none fits, and what
    was said here before, where that is archived."""

    query: Text = Field(description="In the person's words.")
    scope: Name | None = Field(default=None, description="Only this scope.")
    subject: Name | None = Field(default=None, description='Only what is about a name, or "user".')


async def search(context: ToolContext, wanted: Search) -> str:
    """Search memory and, where talk is archived, also what was said, as a separate part of the answer."""
    narrowed = (wanted.scope, wanted.subject) != (None, None) or wanted.category in ("core", "knowledge")
    question = context.ask(wanted.query, of_talk=not narrowed)
    items = await _items(context, wanted, question)
    if narrowed:
        return items
    try:
        said = await context.talk(wanted.query, wanted.limit or context.items.usual_limit, question)
    except MemoryFault as fault:
        log.warning("what was said cannot be searched: %s", fault)
        said = TALK_NOT_SEARCHED
    return f"{items}\n\n{said}" if said else items


async def _items(context: ToolContext, wanted: Search, question: Question | None) -> str:
    view = await context.view()
    everything = context.visible(view.active())
    items = [item for item in everything if _fits(item, wanted)]
    if not items:
        return "No item fits." if everything else "Nothing is remembered of this person yet."
    limit = wanted.limit or context.items.usual_limit
    found, more = await context.found(wanted.query, items, limit, question)
    head = [] if found else ["No item has these words. The newest items, should one of them be meant:"]
    chosen = found or sorted(items, key=by_newest)[:limit]
    linked = _linked(context, view, chosen, wanted.depth)[:limit]
    until = ends([*chosen, *linked], _gist)

    def line(item: Item) -> str:
        return f"{durable_line(item, until_ms=until.get(item.id))} [{context.name(item)}]"

    return "\n".join(
        [
            *head,
            *map(line, newest_first(chosen, alike(chosen, _gist))),
            *(f"{line(item)} (linked)" for item in linked),
            *([f"({len(chosen)} of {len(chosen) + more} shown; narrow it down.)"] if more else []),
        ]
    )


def _gist(item: Item) -> Gist:
    return gist_of(item.text)


async def recall(context: ToolContext, wanted: Recall) -> str:
    view, limit = await context.view(), wanted.limit or context.items.usual_limit
    everything = context.visible(view.active())
    items = [item for item in everything if wanted.category in (None, item.facets.category)]
    found, _ = await context.found(wanted.query, items, limit, context.ask(wanted.query))
    shown = [*found, *_linked(context, view, found, wanted.depth)[:limit]]
    links = {link for item in shown for link in item.facets.links}
    near = [item for item in everything if item.id in links]
    return memory_block(shown, {one.id: _called(context, one) for one in [*shown, *near]}) or NOTHING_FITS


def _called(context: ToolContext, item: Item) -> str:
    """The name of an item in a block: its key, or else its short id."""
    return item.facets.key or context.name(item)


def _linked(context: ToolContext, view: View, start: Sequence[Item], depth: int) -> list[Item]:
    """The visible, active items within `depth` links, nearest first."""
    seen = {item.id for item in start}
    edge, found = list(start), []
    for _ in range(depth):
        near = sorted({link for item in edge for link in item.facets.links} - seen)
        seen.update(near)
        edge = context.visible([view.items[one] for one in near if one in view.items])
        edge = [item for item in edge if item.active]
        found += edge
    return found


def _fits(item: Item, wanted: Search) -> bool:
    facets = item.facets
    return (
        wanted.scope in (None, facets.scope)
        and wanted.category in (None, facets.category)
        and (wanted.subject is None or normalise(wanted.subject) == normalise(_subject(item)))
    )


def _subject(item: Item) -> str:
    return item.facets.triple[0] if item.facets.triple is not None else "user"


TOOLS = (
    Tool("memory_search", Search, search),
    Tool("memory_recall", Recall, recall, more=True),
)
