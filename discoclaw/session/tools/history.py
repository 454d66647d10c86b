"""The tools for a memory as a whole: show its history, and consolidate it."""

import asyncio

from pydantic import Field

from discoclaw.session.deadline import in_time
from discoclaw.session.tools.base import Text, Tool, ToolContext, ToolInput
from discoclaw.show import text as shown


class HistoryOf(ToolInput):
    """How the memory came about: its newest changes, or all that happened to one item."""

    item: Text | None = Field(default=None, description="Its id, key or text.")
    limit: int = Field(default=10, ge=1, le=50)


class Consolidate(ToolInput):
    """Tidy the memory now: merge duplicates, set aside what is outdated. Returns a report."""


async def history_of(context: ToolContext, wanted: HistoryOf) -> str:
    history = await context.memory.history(context.speaker.subject)
    branch, in_dm = await context.branch_name(), context.speaker.in_dm
    if wanted.item is None:
        return await asyncio.to_thread(
            shown.log, history, branch=branch, limit=wanted.limit, in_private=in_dm, own=False
        )
    view = await context.view()
    item = context.the_one(shown.TakenFrom([view]).items(view.items.values()), wanted.item)
    why = await asyncio.to_thread(
        shown.why, history, item, link=str, branch=branch, in_private=in_dm, own=False
    )
    return f"[{context.name(item)}] {why}"


async def consolidate(context: ToolContext, _wanted: Consolidate) -> str:
    speaker, why = context.speaker, context.why("memory_consolidate")
    await in_time(context.view())  # a model may take its time, but not a disk
    return await context.consolidation.run(speaker.subject, context.branch, why, in_dm=speaker.in_dm)


TOOLS = (
    Tool("memory_history", HistoryOf, history_of, more=True),
    Tool("memory_consolidate", Consolidate, consolidate, more=True, waits=True),
)
