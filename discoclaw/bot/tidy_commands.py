"""Commands about what does not go together: open questions to settle, and tidying on demand."""

from discoclaw.bot import memory_text
from discoclaw.bot.answers import Page, Told
from discoclaw.bot.buttons import settle_view
from discoclaw.bot.decorators import command
from discoclaw.bot.memory_group import Context, MemoryGroup
from discoclaw.core.errors import ModelError, Refused
from discoclaw.core.view import Conflict
from discoclaw.show import text as shown
from discoclaw.show.words import PRIVATE, count

MOST_AT_ONCE = 5
"""Questions are a message each, because of their buttons."""
NO_MODEL = "the model that tidies did not answer, so nothing has changed; try again in a while"


class TidyCommands(MemoryGroup):
    """Settling and consolidating."""

    group = MemoryGroup.group

    @command(group, "settle", "What contradicts itself, and which of it holds")
    async def settle(self, ctx: Context) -> None:
        await self._queued(ctx, self._settle)

    @command(group, "consolidate", "Look for duplicates and contradictions now")
    async def consolidate(self, ctx: Context) -> None:
        await self._aside(ctx, self._consolidate)

    async def _settle(self, ctx: Context) -> Told:
        store, subject = self._store(), self._subject(ctx)
        branches = await store.branches(subject)
        here = self._branch(ctx)
        branch = here if here is not None and here in branches.all else branches.current
        view = await store.view(subject, branch)
        asked: list[tuple[Conflict, str]] = []
        hidden = 0
        for conflict in view.conflicts:
            question = shown.conflict(view, conflict, in_private=self._in_private(ctx))
            if question == PRIVATE:
                hidden += 1
            else:
                asked.append((conflict, question))
        user_id = str(ctx.author.id)
        pages = [
            Page(f"{question}. Which holds?", view=settle_view(user_id, conflict, branch))
            for conflict, question in asked[:MOST_AT_ONCE]
        ]
        if more := len(asked) - len(pages):
            pages.append(Page(f"({count(more, 'more question')}: answer these first)"))
        if hidden:
            pages.append(
                Page(f"({count(hidden, 'private question')}: use `/memory settle`, or ask me in a DM)")
            )
        return pages or "There is nothing to settle."

    async def _consolidate(self, ctx: Context) -> str:
        self._adding(ctx)
        if self._shelf.tidy is None:
            raise Refused("tidying is not to be had here")
        branches = await self._store().branches(self._subject(ctx))
        branch = self._named_branch(ctx, branches)
        try:
            report = await self._shelf.tidy(self._subject(ctx), branch, self._meta(ctx))
        except ModelError as error:
            raise Refused(NO_MODEL) from error
        asks = "\n`!memory settle` has the questions." if report.questions else ""
        return memory_text.plain(report.text(in_private=self._in_private(ctx))) + asks
