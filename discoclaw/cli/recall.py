"""`discoclaw recall`: which items would be put into a prompt for a message, and why, or why not.

Only reads, so it works while the bot runs. Ranks by words, links and time as a reply does, but without
vectors, which only the running bot has.
"""

from typing import Annotated

import typer

from discoclaw import settings as settings_module
from discoclaw.cli.common import (
    AsJson,
    OnBranch,
    SubjectArg,
    inspect_subject,
    now_ms,
    print_grid,
    say,
    say_json,
    stores_of,
)
from discoclaw.core.item import Item
from discoclaw.core.ports import Signals
from discoclaw.core.text import clip
from discoclaw.core.visible import is_standing
from discoclaw.memory.people import last_used as access
from discoclaw.recall.document import parse
from discoclaw.recall.rank import Ranked, Ranker
from discoclaw.recall.select import Selection, select
from discoclaw.show.answer import Grid
from discoclaw.show.words import line, short
from discoclaw.store.port import CURSORS

LONGEST = 90
"""Longest text in the table, in UTF-16 units."""


def recall(
    who: SubjectArg,
    query: Annotated[str, typer.Argument(help="What the person says or asks.")],
    explain: Annotated[
        bool, typer.Option("--explain", help="Show every candidate and how its score came about.")
    ] = False,
    public: Annotated[
        bool, typer.Option("--public", help="As in a channel, where nothing private is used.")
    ] = False,
    branch: OnBranch = None,
    as_json: AsJson = False,
) -> None:
    """Show which items about a person the bot would use to answer a message.

    Example: discoclaw recall 123456789012345678 "where does my sister live?" --explain
    """
    settings, one, now = settings_module.load(), inspect_subject(who), now_ms()
    name = one.history.branches.named(branch).name if branch is not None else None
    view = one.view if name is None else one.history.view(one.history.branches.all[name].head)
    items = view.visible(in_dm=not public)
    found = Ranker(settings.fade, depth=settings.enrich_depth)
    with stores_of(settings) as stores:
        known = Signals(accessed=access.kept(stores.used.documents(CURSORS), one.subject))
    asked = parse(query)
    made = select(found, asked, items, max_chars=settings.inject_max_chars, now_ms=now, signals=known)
    candidates = [] if asked.everything else found.consider(asked, items, now_ms=now, signals=known)
    rows = _rows(items, made, candidates)
    if as_json:
        say_json(
            [
                {
                    "id": item.id,
                    "key": item.facets.key,
                    "content": item.text,
                    "category": item.facets.category,
                    "timestamp": item.updated_at // 1000,
                    "links": sorted(item.facets.links),
                    "score": round(ranked.score, 6) if ranked is not None else None,
                    "matched": ranked.why if ranked is not None else "",
                    "parts": {name: round(part, 6) for name, part in ranked.parts.items()} if ranked else {},
                    "outcome": outcome,
                }
                for item, ranked, outcome in rows
            ]
        )
    elif explain and rows:
        cells = []
        for item, ranked, outcome in rows:
            parts = ranked.parts if ranked is not None else {}
            cells.append(
                [
                    short(item.id),
                    f"{ranked.score:.3f}" if ranked is not None else "",
                    ", ".join(f"{name} {part:.2f}" for name, part in parts.items()),
                    ranked.why if ranked is not None else "",
                    clip(item.text, LONGEST),
                    outcome,
                ]
            )
        columns = ("id", "score", "parts", "matched", "text", "outcome")
        faint = [number for number, row in enumerate(rows) if row[2].startswith("left out")]
        print_grid(Grid(columns, cells, whole=("id",), right=("score",), faint=faint))
    elif explain:
        say("No candidates.")
    elif made.chosen:
        say("\n".join(line(chosen.line, settings.inject_max_chars) for chosen in made.chosen))
    else:
        say("No item would be used.")


def _rows(
    items: tuple[Item, ...], made: Selection, candidates: list[Ranked]
) -> list[tuple[Item, Ranked | None, str]]:
    """Every item that was considered, with what became of it. Those that would be used come first."""
    ranked = {one.item.id: one for one in candidates}
    used = {chosen.item.id for chosen in made.chosen}
    why_not = made.left_out()
    rows = [(chosen.item, ranked.get(chosen.item.id), f"shown: {chosen.why}") for chosen in made.chosen]
    others = [*(one.item for one in candidates), *filter(is_standing, items)]
    for item in dict.fromkeys(item for item in others if item.id not in used):
        one, why = ranked.get(item.id), why_not[item.id]
        if is_standing(item):
            why = f"standing, {why}"
        elif one is not None and one.dropped:
            why = one.dropped
        rows.append((item, one, f"left out: {why}"))
    return rows
