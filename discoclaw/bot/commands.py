"""The memory commands: those about single items here, the others from the modules beside it.

One definition for `!memory …` and `/memory …`. Discord takes at most 25 children of a slash group, so what
has a group of its own there (`/memory branch merge`) has a flat name as text too (`!memory merge`).
"""

import re
from collections.abc import Iterable

from discord import app_commands
from discord.ext import commands

from discoclaw.bot import memory_text
from discoclaw.bot.answers import Told, said
from discoclaw.bot.decorators import command, subgroup
from discoclaw.bot.hatch_commands import HatchCommands
from discoclaw.bot.history_commands import HistoryCommands
from discoclaw.bot.memory_group import Context, MemoryGroup
from discoclaw.bot.mirror_commands import MirrorCommands
from discoclaw.bot.options import Options
from discoclaw.bot.own_data import OwnData
from discoclaw.bot.persona_commands import PersonaCommands
from discoclaw.bot.tidy_commands import TidyCommands
from discoclaw.core.draft import Draft, find
from discoclaw.core.errors import Refused
from discoclaw.core.item import Item, Sensitivity
from discoclaw.core.privacy import is_personal
from discoclaw.core.text import collapse
from discoclaw.memory.conversations.rolling import NOTHING
from discoclaw.memory.subjects import verbs

SECRET = "\n(I left out what looks like a secret key.)"
RESET_WHAT = "Did you mean `!memory reset rolling`? It clears this conversation's summary."

_ID = re.compile(r"(durable-)?[0-9a-f]{8}")
_ARROW = re.compile(r"\s*(?:=>|→)\s*")


class EditOptions(Options):
    """As text: `<id or text> => <new text>`, or `<id> <new text>`."""

    item: str = commands.flag(description="The item's id, or at least 60 % of its text")
    text: str = commands.flag(description="What it should say")

    @classmethod
    def parse_flags(cls, argument: str, *, ignore_extra: bool = True) -> dict[str, list[str]]:
        """The item and its new text; what is missing is left out."""
        first, _, rest = collapse(argument).partition(" ")
        if _ID.fullmatch(first):
            arrow = _ARROW.match(rest)
            item, text = first, rest[arrow.end() :] if arrow else rest
        else:
            parts = _ARROW.split(collapse(argument), maxsplit=1)
            item, text = parts[0], parts[1] if len(parts) == 2 else ""
        return {name: [value] for name, value in (("item", item), ("text", text)) if value}


class MemoryCommands(HistoryCommands, PersonaCommands, TidyCommands, OwnData, HatchCommands, MirrorCommands):
    """All commands; the composition root builds this one."""

    group = MemoryGroup.group

    @command(group, "show", "What I remember of you, and this conversation's summary")
    async def show(self, ctx: Context) -> None:
        await self._queued(ctx, self._show)

    @command(group, "remember", "Remember something")
    @app_commands.describe(text="What I should remember, as one sentence")
    async def remember(self, ctx: Context, *, text: str) -> None:
        await self._queued(ctx, lambda ctx: self._remember(ctx, text))

    @command(group, "forget", "No longer use something I remember")
    @app_commands.describe(text="The item's id, or at least 60 % of its text")
    async def forget(self, ctx: Context, *, text: str) -> None:
        await self._queued(ctx, lambda ctx: self._forget(ctx, text))

    @command(group, "edit", "Put something I remember differently", usage="<id or text> => <new text>")
    async def edit(self, ctx: Context, *, options: EditOptions) -> None:
        await self._queued(ctx, lambda ctx: self._edit(ctx, options.item, options.text))

    @command(group, "share", "Let me use a private item outside our DMs")
    @app_commands.describe(text="The item's id, or at least 60 % of its text")
    async def share(self, ctx: Context, *, text: str) -> None:
        await self._queued(ctx, lambda ctx: self._mark(ctx, text, "normal"))

    @command(group, "private", "Use an item in our DMs only")
    @app_commands.describe(text="The item's id, or at least 60 % of its text")
    async def private(self, ctx: Context, *, text: str) -> None:
        await self._queued(ctx, lambda ctx: self._mark(ctx, text, "private"))

    @subgroup(group, "reset", "Clear a part of my memory")
    async def reset(self, ctx: Context, *, rest: str = "") -> None:
        await self._queued(ctx, lambda ctx: said(RESET_WHAT))

    @command(reset, "rolling", "Clear the summary of this conversation")
    async def reset_rolling(self, ctx: Context) -> None:
        await self._queued(ctx, self._reset_rolling)

    @command(group, "help", "How to see and change my memory", usage="[all]")
    @app_commands.describe(what="“all” for every command")
    async def help(self, ctx: Context, *, what: str = "") -> None:
        everything = what.strip().casefold() == "all"
        await self._queued(ctx, lambda ctx: said(memory_text.HELP_ALL if everything else memory_text.HELP))

    forget.autocomplete("text")(MemoryGroup._complete_items)
    edit.autocomplete("item")(MemoryGroup._complete_items)
    share.autocomplete("text")(MemoryGroup._complete_items)
    private.autocomplete("text")(MemoryGroup._complete_items)

    # ------------------------------------------------------------------ what they do

    async def _bare(self, ctx: Context, rest: str) -> Told:
        words = rest.split()
        return self._unknown(self.group, words[0]) if words else await self._show(ctx)

    async def _show(self, ctx: Context) -> str:
        key, branch = self._session_key(ctx), self._branch(ctx)
        store, rolling = self._store(), self._shelf.rolling
        view = await store.view(self._subject(ctx), branch)
        branches = await store.branches(self._subject(ctx))
        text = memory_text.show(
            view,
            await rolling.get(key) if rolling is not None else NOTHING,
            in_private=self._in_private(ctx),
            persona="" if branch is None and len(branches.all) == 1 else branch or branches.current,
        )
        opted_out = self._shelf.choices.opted_out(str(ctx.author.id))
        return f"{memory_text.NOT_USED}\n{text}" if opted_out else text

    async def _remember(self, ctx: Context, text: str) -> str:
        self._adding(ctx)
        clean = self._client.redactor(text)

        def wish(draft: Draft) -> str:
            item, done = draft.upsert(
                "fact", clean.text, self._origin(ctx), marked=self._hushed(ctx, clean.text)
            )
            if done == "unchanged":
                return f"I already remember that: {item.text}"
            note = ""
            if item.facets.sensitivity != "normal":
                note = _kept_private(item)
            if clean.redacted or clean.flagged:
                note += SECRET
            if len(draft.items) > (most := self._client.settings.max_items) and all(
                one.active for one in draft.items.values()
            ):
                note += (
                    f"\n(I keep {most} items at most, so the oldest one went; `!memory undo` brings it back.)"
                )
            return f"Remembered: {item.text}{note}"

        return await self._change(ctx, "remembered by command", wish)

    async def _forget(self, ctx: Context, text: str) -> str:
        def wish(draft: Draft) -> str:
            found = self._named(ctx, draft.items.values(), text)
            if not found:
                return self._nothing(ctx, draft.items.values(), text)
            if len(found) > 1:
                return self._which(ctx, found, "forget")
            draft.deprecate(found[0], self._origin(ctx))
            return f"Forgotten: {found[0].text}"

        return await self._change(ctx, "forgotten by command", wish)

    async def _edit(self, ctx: Context, wanted: str, text: str) -> str:
        store, branch = self._adding(ctx), self._branch(ctx)
        items = (await store.view(self._subject(ctx), branch)).items.values()
        found = self._named(ctx, items, wanted)
        if not found:
            return self._nothing(ctx, items, wanted)
        if len(found) > 1:
            return self._which(ctx, found, "edit")
        clean = self._client.redactor(text)
        before, after = await verbs.edit(
            store,
            self._subject(ctx),
            lambda draft: _still(draft.items.values(), found[0].id),
            clean.text,
            self._origin(ctx),
            branch=branch,
            marked=self._hushed(ctx, clean.text),
            **self._meta(ctx),
        )
        if before == after:
            return f"It says that already: {after.text}"
        note = SECRET if clean.redacted or clean.flagged else ""
        if before.facets.sensitivity == "normal" != after.facets.sensitivity:
            note = f"{_kept_private(after)}{note}"
        if not self._may_show(ctx, after):
            return f"Edited; it is private now.{note}"
        return f"Edited: {before.text} → {after.text}{note}"

    async def _mark(self, ctx: Context, text: str, secret: Sensitivity) -> str:
        def wish(draft: Draft) -> str:
            # To share an item one has to be able to name it, wherever one is; its text is not repeated.
            found = [item for item in find(draft.items.values(), text) if item.active]
            if not found:
                return self._nothing(ctx, draft.items.values(), text)
            if len(found) > 1:
                return self._which(ctx, found, "share" if secret == "normal" else "private")
            draft.mark(found[0], secret, self._origin(ctx))
            where = "everywhere" if secret == "normal" else "in our DMs only"
            return f"I use that item {where} now ({found[0].id.removeprefix('durable-')})."

        return await self._change(ctx, f"marked {secret} by command", wish)

    def _hushed(self, ctx: Context, text: str) -> Sensitivity:
        """What one says for nobody else to see, and is personal, stays so."""
        return "private" if ctx.interaction is not None and is_personal(text) else "normal"

    async def _reset_rolling(self, ctx: Context) -> str:
        if self._shelf.rolling is None:
            return "Summaries are switched off here (DISCOCLAW_SUMMARY_ENABLED)."
        key = self._session_key(ctx)
        await self._shelf.rolling.clear(key, by=str(ctx.author.id))
        self._shelf.cleared(key, ctx.message.id)
        return "The summary of this conversation is cleared."


def _kept_private(item: Item) -> str:
    short = item.id.removeprefix("durable-")
    return f"\n(private: I use it in our DMs only; `!memory share {short}` changes that)"


def _still(items: Iterable[Item], item_id: str) -> Item:
    """The item that was found a moment ago. Raises Refused when it went meanwhile."""
    for item in items:
        if item.id == item_id and item.active:
            return item
    raise Refused("that item has just been forgotten")
