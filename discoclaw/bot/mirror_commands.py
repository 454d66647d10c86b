"""`/nostr`: owners see how the encrypted mirror of the memory is doing. As text `!nostr`, the same."""

from discoclaw.bot import memory_text
from discoclaw.bot.answers import Told, said
from discoclaw.bot.decorators import command, root
from discoclaw.bot.memory_group import Context, MemoryGroup
from discoclaw.core.errors import Refused
from discoclaw.core.text import clip, collapse

NOT_MIRRORED = "Nothing is mirrored: no relays are set. Whoever runs me can name some with NOSTR_RELAYS."
ONLY_OWNERS = "only my owners can see that; whoever runs me names them with DISCOCLAW_OWNER_IDS"
THERE_IS = "There are `!nostr status` and `!nostr push`."
PUSHED = "What has changed is on its way. `!nostr status` shows what has arrived."


class MirrorCommands(MemoryGroup):
    """Looking at the mirror, and having it brought up to date."""

    @root("nostr", "How my encrypted mirror is doing (my owners only)", fallback="status")
    async def nostr(self, ctx: Context) -> None:
        rest = ctx.view.read_rest().strip() if ctx.interaction is None else ""
        if rest not in ("", "status"):
            wrong = f"There is no `!nostr {clip(collapse(rest), 40)}`. {THERE_IS}"
            await self._queued(ctx, lambda ctx: said(wrong))
            return
        await self._queued(ctx, self._mirror_status)

    @command(nostr, "push", "Send what has changed now, and try again what was refused")
    async def nostr_push(self, ctx: Context) -> None:
        await self._queued(ctx, self._mirror_push)

    async def _mirror_status(self, ctx: Context) -> Told:
        self._check_owner(ctx)
        mirrored = self._shelf.mirrored
        return memory_text.block(await mirrored.told()) if mirrored is not None else NOT_MIRRORED

    async def _mirror_push(self, ctx: Context) -> Told:
        self._check_owner(ctx)
        mirrored = self._shelf.mirrored
        if mirrored is None:
            return NOT_MIRRORED
        mirrored.push()
        return PUSHED

    def _check_owner(self, ctx: Context) -> None:
        if str(ctx.author.id) not in self._client.settings.owners:
            raise Refused(ONLY_OWNERS)
