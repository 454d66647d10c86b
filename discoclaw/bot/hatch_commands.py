"""`/hatch`: owners give the bot a personality, see it, and take it back. As text `!hatch`, the same.

The interview itself is `session/hatch`; here it is begun and ended. Only owners are let in.
"""

from discoclaw.bot.answers import Told, said
from discoclaw.bot.decorators import command, root
from discoclaw.bot.memory_group import Context, MemoryGroup
from discoclaw.bot.memory_text import plain
from discoclaw.core.errors import Refused
from discoclaw.core.text import clip, collapse
from discoclaw.session.hatch import Hatchery
from discoclaw.soul.soul import of_view, sections
from discoclaw.soul.words import MEMORY_OFF

NOT_HERE = (
    "I do not listen in this channel (DISCORD_CHANNEL_IDS), so I would not hear your answers; ask in a DM"
)
THERE_IS = "There are `!hatch`, `!hatch cancel`, `!hatch show` and `!hatch undo`."
NO_SOUL = "I have no personality yet. `/hatch start` begins an interview that gives me one."
FILES = "\n-# Files in content/soul/ win over this, each by itself."


class HatchCommands(MemoryGroup):
    """Beginning, ending, showing and undoing."""

    @root("hatch", "Give me a personality, in a short interview (my owners only)", fallback="start")
    async def hatch(self, ctx: Context) -> None:
        rest = ctx.view.read_rest().strip() if ctx.interaction is None else ""
        if rest:
            wrong = f"There is no `!hatch {clip(collapse(rest), 40)}`. {THERE_IS}"
            await self._queued(ctx, lambda ctx: said(wrong))
            return
        await self._queued(ctx, self._hatch)

    @command(hatch, "cancel", "End the interview; nothing changes")
    async def hatch_cancel(self, ctx: Context) -> None:
        await self._queued(ctx, lambda ctx: self._hatchery().cancel(str(ctx.author.id)))

    @command(hatch, "show", "Who I am")
    async def hatch_show(self, ctx: Context) -> None:
        await self._queued(ctx, self._show_soul)

    @command(hatch, "undo", "Take back the last change of who I am")
    async def hatch_undo(self, ctx: Context) -> None:
        await self._queued(ctx, self._undo_soul)

    # ------------------------------------------------------------------ what they do

    def _hatchery(self) -> Hatchery:
        found = self._client.talk.parts.hatchery
        if found is None:
            raise Refused(MEMORY_OFF)
        return found

    async def _hatch(self, ctx: Context) -> Told:
        place = self._place(ctx)
        if not self._client.access.allowlist.channel(place.group_id, place.channel_id):
            raise Refused(NOT_HERE)
        return await self._hatchery().begin(str(ctx.author.id), place)

    async def _show_soul(self, ctx: Context) -> Told:
        user_id = str(ctx.author.id)
        view = await self._hatchery().view(user_id)
        found = sections(of_view(view, with_whom=user_id, in_dm=self._in_private(ctx)))
        if not found:
            return NO_SOUL
        told = (f"**{title}**\n" + "\n".join(plain(text) for text in texts) for title, texts in found)
        return "\n\n".join(told) + FILES

    async def _undo_soul(self, ctx: Context) -> Told:
        return await self._hatchery().undo(str(ctx.author.id), self._origin(ctx), **self._meta(ctx))
