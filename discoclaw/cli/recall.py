"""`discoclaw recall`: which items would be put into a prompt for a message, and why, or why not.

Only reads, so it works while the bot runs. Ranks by words, links and time as a reply does, but without
vectors, which only the running bot has.
"""

from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from discoclaw import settings as settings_module
from discoclaw.cli.common import (
    AsJson,
    OnBranch,
    SubjectArg,
    inspect_subject,
    now_ms,
    print_table,
    say,
    say_json,
    stores_of,
)
from discoclaw.core.item import Item
from discoclaw.core.ports import Signals
from discoclaw.core.visible import is_standing
from discoclaw.memory.people import last_used as access
from discoclaw.recall.query import parse
from discoclaw.recall.rank import Ranked, Ranker
from discoclaw.recall.select import Selection, select
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
    if as_json:
        say_json([_json(*row) for row in _rows(items, made, candidates)])
    elif explain:
        _table(_rows(items, made, candidates))
    elif made.chosen:
        say("\n".join(line(chosen.line, settings.inject_max_chars) for chosen in made.chosen))
    else:
        say("No item would be used.")


Row = tuple[Item, Ranked | None, str]


def _rows(items: tuple[Item, ...], made: Selection, candidates: list[Ranked]) -> list[Row]:
    """Every item that was considered, with what became of it. Those that would be used come first."""
    ranked = {one.item.id: one for one in candidates}
    used = {chosen.item.id for chosen in made.chosen}
    why_not = made.left_out()
    rows: list[Row] = [
        (chosen.item, ranked.get(chosen.item.id), f"shown: {chosen.why}") for chosen in made.chosen
    ]
    others = [*(one.item for one in candidates), *filter(is_standing, items)]
    for item in dict.fromkeys(item for item in others if item.id not in used):
        one, why = ranked.get(item.id), why_not[item.id]
        if is_standing(item):
            why = f"standing, {why}"
        elif one is not None and one.dropped:
            why = one.dropped
        rows.append((item, one, f"left out: {why}"))
    return rows


def _json(item: Item, one: Ranked | None, what: str) -> dict[str, Any]:
    facets = item.facets
    return {
        "id": item.id,
        "key": facets.key,
        "content": item.text,
        "category": facets.category,
        "timestamp": item.updated_at // 1000,
        "links": sorted(facets.links),
        "score": round(one.score, 6) if one is not None else None,
        "matched": one.why if one is not None else "",
        "parts": {name: round(part, 6) for name, part in one.parts.items()} if one is not None else {},
        "outcome": what,
    }


def _table(rows: list[Row]) -> None:
    table = Table("id", "score", "parts", "matched", "text", "outcome")
    table.columns[0].no_wrap = True
    table.columns[1].justify = "right"
    for item, one, what in rows:
        parts = ", ".join(f"{name} {part:.2f}" for name, part in one.parts.items()) if one is not None else ""
        cells = [
            short(item.id),
            f"{one.score:.3f}" if one is not None else "",
            parts,
            line(one.why) if one is not None else "",
            line(item.text, LONGEST),
            what,
        ]
        table.add_row(*map(Text, cells), style="dim" if what.startswith("left out") else None)
    if rows:
        print_table(table)
    else:
        say("No candidates.")
