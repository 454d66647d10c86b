"""`!memory` and `/memory`: people see and correct what is remembered of them. One definition for both.

Every command runs in its conversation's queue, behind what was said before it, so it never meets a turn
half done; the subject's lock does the same against the loops. Slash answers are seen by the person alone;
answers to text commands are public, so private items stay out of them outside DMs.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import discord
from discord import app_commands
from discord.ext import commands

from discoclaw.bot import memory_text, wire
from discoclaw.bot.client import DiscoClaw
from discoclaw.bot.memory_text import HELP
from discoclaw.bot.pages import send_pieces
from discoclaw.core.draft import Draft, Origin, find
from discoclaw.core.errors import ChatError, MemoryFault, Refused
from discoclaw.core.item import Item, Sensitivity
from discoclaw.core.message import Place
from discoclaw.core.privacy import DmPrivacy, is_personal, may_show
from discoclaw.core.redact import redact
from discoclaw.core.text import normalise
from discoclaw.memory.rolling import NOTHING, RollingMemory
from discoclaw.memory.store import Memory
from discoclaw.memory.subject import user_subject

log = logging.getLogger(__name__)

Context = commands.Context[DiscoClaw]

NOT_ALLOWED = "You are not on my allowlist. An admin can add you with DISCORD_ALLOW_USER_IDS."
DISABLED = "Durable memory is switched off here (DISCOCLAW_DURABLE_MEMORY_ENABLED)."
BUSY = "This conversation is too busy right now. Please try again in a moment."
FAILED = "I could not change my memory just now, so nothing has changed. Please try again later."
RESET_WHAT = "Did you mean `!memory reset rolling`? It clears this conversation's summary."
STOPPING = "I am shutting down; please try again in a moment."
CHOICES = 25
"""Discord's limit for autocompletion."""


class MemoryCommands(commands.Cog):
    """The commands. `memory` and `rolling` are None when switched off; `cleared` hears of a reset summary."""

    def __init__(
        self,
        client: DiscoClaw,
        memory: Memory | None,
        rolling: RollingMemory | None,
        *,
        dm_privacy: DmPrivacy,
        cleared: Callable[[str, int], None],
    ) -> None:
        self._client = client
        self._memory = memory
        self._rolling = rolling
        self._dm_privacy = dm_privacy
        self._cleared = cleared

    # ------------------------------------------------------------------ the commands

    @commands.hybrid_group(
        name="memory", description="See and correct what I remember of you", case_insensitive=True
    )
    async def group(self, ctx: Context, *, rest: str = "") -> None:
        if rest:
            await self._queued(
                ctx, lambda ctx: _said(f"There is no `!memory {rest.split()[0][:40]}`.\n{HELP}")
            )
        else:
            await self._queued(ctx, self._show)

    @group.command(name="show", description="What I remember of you, and this conversation's summary")
    async def show(self, ctx: Context) -> None:
        await self._queued(ctx, self._show)

    @group.command(name="remember", description="Remember something")
    @app_commands.describe(text="What I should remember, as one sentence")
    async def remember(self, ctx: Context, *, text: str) -> None:
        await self._queued(ctx, lambda ctx: self._remember(ctx, text))

    @group.command(name="forget", description="No longer use something I remember")
    @app_commands.describe(text="The item's id, or at least 60 % of its text")
    async def forget(self, ctx: Context, *, text: str) -> None:
        await self._queued(ctx, lambda ctx: self._forget(ctx, text))

    @group.command(name="share", description="Let me use a private item outside our DMs")
    @app_commands.describe(text="The item's id, or at least 60 % of its text")
    async def share(self, ctx: Context, *, text: str) -> None:
        await self._queued(ctx, lambda ctx: self._mark(ctx, text, "normal"))

    @group.command(name="private", description="Use an item in our DMs only")
    @app_commands.describe(text="The item's id, or at least 60 % of its text")
    async def private(self, ctx: Context, *, text: str) -> None:
        await self._queued(ctx, lambda ctx: self._mark(ctx, text, "private"))

    @group.group(name="reset", description="Clear a part of my memory", case_insensitive=True)
    async def reset(self, ctx: Context, *, rest: str = "") -> None:
        await self._queued(ctx, lambda ctx: _said(RESET_WHAT))

    @reset.command(name="rolling", description="Clear the summary of this conversation")
    async def reset_rolling(self, ctx: Context) -> None:
        await self._queued(ctx, self._reset_rolling)

    @group.command(name="help", description="How to see and change my memory")
    async def help(self, ctx: Context) -> None:
        await self._queued(ctx, lambda ctx: _said(HELP))

    @forget.autocomplete("text")
    @share.autocomplete("text")
    @private.autocomplete("text")
    async def _complete(
        self, interaction: discord.Interaction[DiscoClaw], typed: str
    ) -> list[app_commands.Choice[str]]:
        if self._memory is None or not await self._client.access.may_talk(
            interaction.user, interaction.guild
        ):
            return []
        try:
            view = await self._memory.view(user_subject(str(interaction.user.id)))
        except MemoryFault:
            return []
        wanted = normalise(typed)
        fitting = [item for item in view.active() if wanted in normalise(item.text) or wanted in item.id]
        return [app_commands.Choice(name=item.text[:100], value=item.id) for item in fitting[:CHOICES]]

    # ------------------------------------------------------------------ what they do

    async def _show(self, ctx: Context) -> str:
        key = self._session_key(ctx)
        view = await self._store().view(self._subject(ctx))
        rolling = await self._rolling.get(key) if self._rolling is not None else NOTHING
        return memory_text.show(view, rolling, in_private=self._in_private(ctx))

    async def _remember(self, ctx: Context, text: str) -> str:
        clean = redact(text)

        def wish(draft: Draft) -> str:
            # What one says for nobody else to see, and is personal, stays so.
            hushed = ctx.interaction is not None and is_personal(clean.text)
            item, done = draft.upsert(
                "fact", clean.text, self._origin(ctx), marked="private" if hushed else "normal"
            )
            if done == "unchanged":
                return f"I already remember that: {item.text}"
            note = ""
            if item.facets.sensitivity != "normal":
                short = item.id.removeprefix("durable-")
                note = f"\n(private: I use it in our DMs only; `!memory share {short}` changes that)"
            if clean.redacted or clean.flagged:
                note += "\n(I left out what looks like a secret key.)"
            return f"Remembered: {item.text}{note}"

        return await self._change(ctx, "remembered by command", wish)

    async def _forget(self, ctx: Context, text: str) -> str:
        def wish(draft: Draft) -> str:
            found = self._named(ctx, draft, text)
            if not found:
                return self._nothing(ctx, draft, text)
            if len(found) > 1:
                return _which(found, "forget", in_private=self._in_private(ctx))
            draft.deprecate(found[0], self._origin(ctx))
            return f"Forgotten: {found[0].text}"

        return await self._change(ctx, "forgotten by command", wish)

    async def _mark(self, ctx: Context, text: str, secret: Sensitivity) -> str:
        def wish(draft: Draft) -> str:
            # To share an item one has to be able to name it, wherever one is; its text is not repeated.
            found = [item for item in find(draft.items.values(), text) if item.active]
            if not found:
                return self._nothing(ctx, draft, text)
            if len(found) > 1:
                verb = "share" if secret == "normal" else "private"
                return _which(found, verb, in_private=self._in_private(ctx))
            draft.mark(found[0], secret, self._origin(ctx))
            where = "everywhere" if secret == "normal" else "in our DMs only"
            return f"I use that item {where} now ({found[0].id.removeprefix('durable-')})."

        return await self._change(ctx, f"marked {secret} by command", wish)

    async def _reset_rolling(self, ctx: Context) -> str:
        if self._rolling is None:
            return "Summaries are switched off here (DISCOCLAW_SUMMARY_ENABLED)."
        key = self._session_key(ctx)
        await self._rolling.clear(key)
        self._cleared(key, ctx.message.id)
        return "The summary of this conversation is cleared."

    # ------------------------------------------------------------------ shared

    def _named(self, ctx: Context, draft: Draft, text: str) -> list[Item]:
        """The active items a person means, of those that may be spoken of here."""
        in_private = self._in_private(ctx)
        items = [item for item in draft.items.values() if item.active and may_show(item, in_dm=in_private)]
        return find(items, text)

    def _nothing(self, ctx: Context, draft: Draft, text: str) -> str:
        """No match: say the rule, and what comes near."""
        wanted = normalise(text)
        in_private = self._in_private(ctx)
        near = [
            item
            for item in draft.items.values()
            if item.active and may_show(item, in_dm=in_private) and wanted and wanted in normalise(item.text)
        ]
        if near:
            lines = "\n".join(memory_text.line_of(item) for item in near[:10])
            return f"“{text[:100]}” is less than 60 % of these. Name one by its id:\n{lines}"
        return f"I remember nothing that matches “{text[:100]}”. `!memory show` lists everything with ids."

    async def _change(self, ctx: Context, why: str, wish: Callable[[Draft], str]) -> str:
        source = self._origin(ctx).evidence
        return await self._store().change(self._subject(ctx), why, wish, by="command", at=source)

    def _store(self) -> Memory:
        if self._memory is None:
            raise Refused(DISABLED)
        return self._memory

    def _subject(self, ctx: Context) -> str:
        return user_subject(str(ctx.author.id))

    def _place(self, ctx: Context) -> Place:
        return wire.place_of(ctx.channel)

    def _session_key(self, ctx: Context) -> str:
        return self._place(ctx).session_key(str(ctx.author.id))

    def _in_private(self, ctx: Context) -> bool:
        return ctx.interaction is not None or self._place(ctx).kind == "dm"

    def _origin(self, ctx: Context) -> Origin:
        at = f"{ctx.channel.id}/{ctx.message.id}"
        now = int(discord.utils.utcnow().timestamp() * 1000)
        return Origin(
            "stated", said_at=now, private=self._place(ctx).private, evidence=at, dm_privacy=self._dm_privacy
        )

    async def _queued(self, ctx: Context, work: Callable[[Context], Awaitable[str]]) -> None:
        """Run a command in its conversation's turn and send what it returns."""
        if ctx.interaction is not None:
            await ctx.defer(ephemeral=True)  # Discord waits 3 s for a sign of life; all below may take longer
        if not await self._client.access.may_talk(ctx.author, ctx.guild):
            await self._answer(ctx, NOT_ALLOWED)
            return

        async def run() -> None:
            try:
                await self._answer(ctx, await _outcome(work(ctx)))
            except asyncio.CancelledError:
                await self._answer(ctx, STOPPING)
                raise

        async def dropped() -> None:
            await self._answer(ctx, STOPPING)

        talk = self._client.talk
        if not talk.run(self._session_key(ctx), run, dropped):
            await self._answer(ctx, STOPPING if talk.desk.closed else BUSY)

    async def _answer(self, ctx: Context, text: str) -> None:
        async def send(**options: Any) -> None:
            if ctx.interaction is not None:
                await ctx.send(ephemeral=True, **options)
            else:
                await ctx.reply(mention_author=False, **options)

        try:
            await send_pieces(send, text, name="memory.md")
        except ChatError as error:
            log.warning("the answer to a command could not be sent: %s", error)

    async def cog_command_error(self, ctx: Context, error: Exception) -> None:  # type: ignore[override]
        if isinstance(error, commands.UserInputError):
            usage = (
                f"!{ctx.command.qualified_name} {ctx.command.signature}" if ctx.command else "!memory help"
            )
            await self._answer(ctx, f"Please use it like this: `{usage}`")
            return
        log.error("a command failed", exc_info=error)
        await self._answer(ctx, FAILED)


async def _said(text: str) -> str:
    return text


async def _outcome(work: Awaitable[str]) -> str:
    """What a command has to say, its failures included."""
    try:
        return await work
    except Refused as refusal:
        return str(refusal)[:1].upper() + str(refusal)[1:] + "."
    except MemoryFault as fault:
        log.warning("a command changed nothing: %s", fault)
        return FAILED
    except Exception:  # a named edge: nobody waits for an answer that does not come
        log.exception("a command failed")
        return FAILED


def _which(found: list[Item], verb: str, *, in_private: bool) -> str:
    lines = "\n".join(
        memory_text.line_of(item)
        if may_show(item, in_dm=in_private)
        else f"- a private item (id {item.id.removeprefix('durable-')})"
        for item in found[:10]
    )
    return f"That matches {len(found)} items. Say which with `!memory {verb} <id>`:\n{lines}"
