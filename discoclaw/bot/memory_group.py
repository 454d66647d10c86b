"""`!memory` and `/memory`: the group of all commands, and what each of them needs.

Every command runs in its conversation's queue, behind what was said before it, so it never meets a turn
half done; the subject's lock does the same against the loops. Slash answers are seen by the person alone;
answers to text commands are public, so private items stay out of them outside DMs. Commands act on the
person who gives them and on nobody else, and on the persona of the place where there is one.
Knows nothing about what the single commands do: those are in the modules beside it.
"""

import asyncio
import difflib
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any

import discord
from discord.ext import commands

from discoclaw.bot import memory_text, wire
from discoclaw.bot.answers import (
    BUSY,
    DISABLED,
    FAILED,
    NOT_ALLOWED,
    OPTED_OUT,
    STOPPING,
    Told,
    outcome,
)
from discoclaw.bot.client import DiscoClaw
from discoclaw.bot.completion import Completion
from discoclaw.bot.decorators import Group, root
from discoclaw.bot.errors import discord_errors
from discoclaw.bot.pages import SILENT, send_pieces
from discoclaw.core.draft import Draft, Origin, find
from discoclaw.core.errors import ChatError, Refused
from discoclaw.core.history import Branches, History
from discoclaw.core.item import Item
from discoclaw.core.merge import Brought
from discoclaw.core.message import Place
from discoclaw.core.privacy import may_show
from discoclaw.core.subject import user_subject
from discoclaw.core.text import clip, normalise
from discoclaw.memory.subjects.store import Memory
from discoclaw.show import text as shown

log = logging.getLogger(__name__)

Context = commands.Context[DiscoClaw]


class MemoryGroup(Completion):
    """The group itself, and the ways that all commands share."""

    @root("memory", "See and correct what I remember of you")
    async def group(self, ctx: Context, *, rest: str = "") -> None:
        await self._queued(ctx, lambda ctx: self._bare(ctx, rest))

    async def _bare(self, ctx: Context, rest: str) -> Told:
        """`!memory` alone, or with a word that is no command."""
        raise NotImplementedError

    @staticmethod
    def _unknown(group: Group, word: str) -> str:
        """What is said of a command that is not there, with the one that was most likely meant."""
        near = difflib.get_close_matches(word.lower(), group.all_commands, n=1, cutoff=0.6)
        hint = f" Did you mean `!{group.qualified_name} {near[0]}`?" if near else ""
        return f"There is no `!{group.qualified_name} {clip(word, 40)}`.{hint}\n{memory_text.HELP}"

    # ------------------------------------------------------------------ whose, where, which

    def _store(self) -> Memory:
        if self._shelf.memory is None:
            raise Refused(DISABLED)
        return self._shelf.memory

    def _adding(self, ctx: Context) -> Memory:
        """The store, for a command that adds to it. Raises Refused for somebody who wants no memory."""
        if self._shelf.choices.opted_out(str(ctx.author.id)):
            raise Refused(OPTED_OUT)
        return self._store()

    def _subject(self, ctx: Context) -> str:
        return user_subject(str(ctx.author.id))

    def _place(self, ctx: Context) -> Place:
        return wire.place_of(ctx.channel)

    def _session_key(self, ctx: Context) -> str:
        return self._place(ctx).session_key(str(ctx.author.id))

    def _in_private(self, ctx: Context) -> bool:
        return ctx.interaction is not None or self._place(ctx).kind == "dm"

    def _branch(self, ctx: Context) -> str | None:
        """The persona of the place; None: the person's current one."""
        return self._client.settings.personas.of(self._place(ctx))

    def _named_branch(self, ctx: Context, branches: Branches, wanted: str | None = None) -> str:
        """The branch a command is about: the one named, else the place's, else HEAD's. Raises Refused."""
        if wanted:
            return branches.named(wanted).name
        here = self._branch(ctx)
        if here is not None and here not in branches.all:
            raise Refused(f"the persona {here!r} of this channel has no history yet; it begins with a change")
        return here or branches.current

    async def _history(self, ctx: Context) -> History:
        return await self._store().history(self._subject(ctx))

    def _origin(self, ctx: Context) -> Origin:
        """A command is the person's own hand, in this message."""
        now = int(discord.utils.utcnow().timestamp() * 1000)
        return Origin(
            "stated",
            said_at=now,
            private=self._place(ctx).private,
            evidence=self._at(ctx),
            dm_privacy=self._shelf.dm_privacy,
        )

    @staticmethod
    def _at(ctx: Context) -> str:
        return f"{ctx.channel.id}/{ctx.message.id}"

    def _meta(self, ctx: Context) -> dict[str, Any]:
        """What the records of a command say of how they came about."""
        return {"by": "command", "at": self._at(ctx)}

    # ------------------------------------------------------------------ naming items

    def _named(self, ctx: Context, items: Iterable[Item], text: str) -> list[Item]:
        """The active items a person means, of those that may be spoken of here."""
        return find([item for item in items if item.active and self._may_show(ctx, item)], text)

    def _may_show(self, ctx: Context, item: Item) -> bool:
        """Whether an item may be named in the answer: to its person alone, every one."""
        return self._in_private(ctx) or may_show(item, in_dm=False)

    def _nothing(self, ctx: Context, items: Iterable[Item], text: str) -> str:
        """No match: say the rule, and what comes near."""
        wanted = normalise(text)
        shown = [item for item in items if item.active and self._may_show(ctx, item)]
        near = [item for item in shown if wanted and wanted in normalise(item.text)]
        if near:
            lines = "\n".join(memory_text.line_of(item) for item in near[:10])
            return f"“{text[:100]}” is less than 60 % of these. Name one by its id:\n{lines}"
        return f"I remember nothing that matches “{text[:100]}”. `!memory show` lists everything with ids."

    def _which(self, ctx: Context, found: Sequence[Item], verb: str) -> str:
        lines = "\n".join(
            memory_text.line_of(item)
            if self._may_show(ctx, item)
            else f"- a private item (id {item.id.removeprefix('durable-')})"
            for item in found[:10]
        )
        return f"That matches {len(found)} items. Say which with `!memory {verb} <id>`:\n{lines}"

    async def _change(self, ctx: Context, why: str, wish: Callable[[Draft], str]) -> str:
        return await self._store().change(
            self._subject(ctx), why, wish, branch=self._branch(ctx), **self._meta(ctx)
        )

    def _brought(self, ctx: Context, done: Brought) -> str:
        """What a merge, a cherry-pick or an undo did."""
        text = memory_text.block(shown.brought(done, in_private=self._in_private(ctx)), "diff")
        opened = [
            change.item.id.removeprefix("durable-")
            for change in done.changes
            if change.before is not None
            and change.after is not None
            and change.before.facets.sensitivity != "normal" == change.after.facets.sensitivity
        ]
        if opened:
            ids = ", ".join(opened[:10]) + (", …" if len(opened) > 10 else "")
            text += f"\nWith that I use outside our DMs again: {ids}. `!memory private <id>` keeps it there."
        events = done.commit.events if done.commit is not None else ()
        asks = any("settled" not in event.ext["conflict"] for event in events if "conflict" in event.ext)
        return f"{text}\nWhich of them holds is yours to say: `!memory settle`." if asks else text

    # ------------------------------------------------------------------ answering

    async def _queued(self, ctx: Context, work: Callable[[Context], Awaitable[Told]]) -> None:
        """Run a command in its conversation's turn and send what it returns."""
        if not await self._admitted(ctx):
            return

        async def run() -> None:
            try:
                await self._answer(ctx, await outcome(work(ctx)))
            except asyncio.CancelledError:
                await self._answer(ctx, STOPPING)
                raise

        async def dropped() -> None:
            await self._answer(ctx, STOPPING)

        talk = self._client.talk
        if not talk.run(self._session_key(ctx), run, dropped):
            await self._answer(ctx, STOPPING if talk.desk.closed else BUSY)

    async def _aside(self, ctx: Context, work: Callable[[Context], Awaitable[Told]]) -> None:
        """Run a command that asks a model beside its conversation's turns: no reply waits for that."""
        if await self._admitted(ctx):
            await self._answer(ctx, await outcome(work(ctx)))

    async def _admitted(self, ctx: Context) -> bool:
        if ctx.interaction is not None:
            await ctx.defer(ephemeral=True)  # Discord waits 3 s for a sign of life; all below may take longer
        if await self._client.access.may_talk(ctx.author, ctx.guild):
            return True
        await self._answer(ctx, NOT_ALLOWED)
        return False

    async def _answer(self, ctx: Context, told: Told) -> None:
        async def send(**options: Any) -> None:
            if ctx.interaction is not None:
                await ctx.send(ephemeral=True, **options)
            else:
                await ctx.reply(mention_author=False, **options)

        try:
            if isinstance(told, str):
                await send_pieces(send, told, name="memory.md")
                return
            for page in told:
                more: dict[str, Any] = {"view": page.view} if page.view is not None else {}
                if page.files:
                    more["files"] = list(page.files)
                with discord_errors():
                    await send(content=clip(page.text, 2000), allowed_mentions=SILENT, **more)
        except ChatError as error:
            log.warning("the answer to a command could not be sent: %s", error)

    async def cog_command_error(self, ctx: Context, error: Exception) -> None:  # type: ignore[override]
        if isinstance(error, commands.UserInputError):
            usage = (
                f"!{ctx.command.qualified_name} {ctx.command.signature}" if ctx.command else "!memory help"
            )
            await self._answer(ctx, f"Please use it like this: `{usage.strip()}`")
            return
        log.error("a command failed", exc_info=error)
        await self._answer(ctx, FAILED)
