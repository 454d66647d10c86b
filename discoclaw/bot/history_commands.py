"""Commands that look at a person's history and go back in it: log, view, diff, graph, why, undo, revert.

What they show is made by `show`; what they do is made by `memory/verbs`. Knows Discord's commands.
"""

import asyncio
from collections.abc import Awaitable, Callable
from io import BytesIO
from typing import Literal

import discord
from discord.ext import commands

from discoclaw.bot import memory_text
from discoclaw.bot.answers import Page, Told
from discoclaw.bot.decorators import as_text, command
from discoclaw.bot.links import message_link, source_link
from discoclaw.bot.memory_group import Context, MemoryGroup
from discoclaw.bot.options import Options
from discoclaw.core.draft import find
from discoclaw.core.errors import Refused
from discoclaw.core.event import Ref
from discoclaw.core.history import History
from discoclaw.core.item import Item
from discoclaw.core.merge import Brought, diff
from discoclaw.core.text import utf16_length
from discoclaw.core.view import EMPTY, View
from discoclaw.memory.subjects import verbs
from discoclaw.memory.subjects.inspect import held, view_at
from discoclaw.session.explained import Shown
from discoclaw.show import graph, picture
from discoclaw.show import text as shown
from discoclaw.show.words import count

UNKNOWN_ANSWER = (
    "I do not know any more what my last answer to you here was made from; ask me something, then again. "
    "`!memory why <text or id>` says where an item comes from."
)
WHOLE_AS_TEXT = 1900
"""The longest diagram, in UTF-16 units, that stands in the message itself; a longer one is a file."""


class LogOptions(Options):
    positional = ("branch",)
    branch: str | None = commands.flag(default=None, description="Only this persona")
    oneline: bool = commands.flag(default=False, description="One line for each commit")
    limit: commands.Range[int, 1, 1000] = commands.flag(default=20, description="How many commits at most")


class ViewOptions(Options):
    positional = ("at",)
    phrases = ("at",)
    at: str | None = commands.flag(default=None, description="A date, a time, a commit or a persona")
    branch: str | None = commands.flag(default=None, description="Of this persona")


class DiffOptions(Options):
    positional = ("old", "new")
    old: str | None = commands.flag(default=None, description="From here: a commit, persona or date")
    new: str | None = commands.flag(default=None, description="To here; now, if left out")


class GraphOptions(Options):
    positional = ("form",)
    form: Literal["picture", "timeline"] = commands.flag(default="picture", description="How to draw it")


class HistoryCommands(MemoryGroup):
    """Looking at the past, and bringing it back."""

    group = MemoryGroup.group

    @command(group, "log", "What changed, newest first", usage="[--oneline] [--limit n] [persona]")
    async def log(self, ctx: Context, *, options: LogOptions) -> None:
        await self._queued(ctx, lambda ctx: self._log(ctx, options))

    @command(group, "view", "What I remember now, or remembered then", usage="[--at 2026-02-01] [--branch b]")
    async def view(self, ctx: Context, *, options: ViewOptions) -> None:
        await self._queued(ctx, lambda ctx: self._view(ctx, options))

    @command(group, "diff", "What differs between two points", usage="[<from> [<to>]]")
    async def diff(self, ctx: Context, *, options: DiffOptions) -> None:
        await self._queued(ctx, lambda ctx: self._diff(ctx, options))

    @command(group, "graph", "The history as a picture, or as text", usage="[timeline]")
    async def graph(self, ctx: Context, *, options: GraphOptions) -> None:
        await self._queued(ctx, lambda ctx: self._graph(ctx, options.form))

    @command(group, "stats", "How much I remember of you, in figures")
    async def stats(self, ctx: Context) -> None:
        await self._queued(ctx, self._stats)

    @command(group, "verify", "Check that your history is whole and unchanged")
    async def verify(self, ctx: Context) -> None:
        await self._queued(ctx, self._verify)

    @command(
        group, "why", "What my last answer was given, or where an item comes from", usage="[<text or id>]"
    )
    async def why(self, ctx: Context, *, item: str = "") -> None:
        await self._queued(ctx, lambda ctx: self._why(ctx, item))

    @command(group, "undo", "Take back the last change of my memory")
    async def undo(self, ctx: Context) -> None:
        await self._queued(ctx, self._undo)

    @command(group, "revert", "Take one change back, whichever")
    async def revert(self, ctx: Context, commit: str) -> None:
        await self._queued(ctx, lambda ctx: self._go_back(ctx, verbs.revert, commit))

    @as_text(group, "restore", usage="<commit>")
    async def restore(self, ctx: Context, *, commit: str) -> None:
        await self._queued(ctx, lambda ctx: self._go_back(ctx, verbs.restore, commit))

    log.autocomplete("branch")(MemoryGroup._complete_branches)
    view.autocomplete("at")(MemoryGroup._complete_commits)
    view.autocomplete("branch")(MemoryGroup._complete_branches)
    diff.autocomplete("old")(MemoryGroup._complete_commits)
    diff.autocomplete("new")(MemoryGroup._complete_commits)
    why.autocomplete("item")(MemoryGroup._complete_items)
    revert.autocomplete("commit")(MemoryGroup._complete_commits)

    # ------------------------------------------------------------------ looking

    async def _log(self, ctx: Context, options: LogOptions) -> str:
        history = await self._history(ctx)
        branch = self._named_branch(ctx, history.branches, options.branch) if history.records else None
        told = await asyncio.to_thread(
            shown.log,
            history,
            branch=branch,
            oneline=options.oneline,
            limit=options.limit,
            in_private=self._in_private(ctx),
        )
        return memory_text.block(told)

    async def _view(self, ctx: Context, options: ViewOptions) -> str:
        hidden: frozenset[str] = frozenset()
        if options.at is None and options.branch is None:
            view = await self._store().view(self._subject(ctx), self._branch(ctx))
        else:
            history = await self._history(ctx)
            branch = self._named_branch(ctx, history.branches, options.branch)
            view, hidden = await asyncio.to_thread(_then, history, options.at or "HEAD", branch)
        return memory_text.block(shown.view(view, in_private=self._in_private(ctx), hidden=hidden))

    async def _diff(self, ctx: Context, options: DiffOptions) -> str:
        history = await self._history(ctx)
        branch = self._named_branch(ctx, history.branches)
        told = await asyncio.to_thread(
            _difference, history, branch, options, in_private=self._in_private(ctx)
        )
        return memory_text.block(told, "diff")

    async def _graph(self, ctx: Context, form: str) -> Told:
        history = await self._history(ctx)
        if not history.commits:
            raise Refused("there is nothing to draw yet: nothing is remembered")
        if form == "timeline":
            return memory_text.block(await asyncio.to_thread(graph.timeline, history))
        drawn = await asyncio.to_thread(picture.png, history, title=f"Memory of {ctx.author.display_name}")
        files = [discord.File(BytesIO(drawn), filename="memory.png")]
        mermaid = await asyncio.to_thread(graph.mermaid, history)
        text = memory_text.block(mermaid, "mermaid")
        if utf16_length(text) > WHOLE_AS_TEXT:
            files.append(discord.File(BytesIO(mermaid.encode()), filename="memory.mmd"))
            text = f"{count(len(history.commits), 'commit')}; the diagram is in `memory.mmd`."
        return [Page(text, files=tuple(files))]

    async def _stats(self, ctx: Context) -> str:
        history, in_private = await self._history(ctx), self._in_private(ctx)
        return memory_text.block(await asyncio.to_thread(shown.stats, history, in_private=in_private))

    async def _verify(self, ctx: Context) -> str:
        found = await asyncio.to_thread(held, self._store().disk, self._subject(ctx))
        if found.faults:
            faults = "\n".join(f"- {fault}" for fault in found.faults[:20])
            return f"Your history is not as it should be; tell whoever runs me:\n{memory_text.block(faults)}"
        refs = sum(isinstance(record, Ref) for record in found.history.records)
        return (
            f"All is well: {count(len(found.commits), 'commit')} and {count(refs, 'step')} of branches, "
            "every one with the hash it was written with."
        )

    # ------------------------------------------------------------------ why

    async def _why(self, ctx: Context, wanted: str) -> str:
        if not wanted.strip():
            return await self._why_answered(ctx)
        history = await self._history(ctx)
        branch = self._named_branch(ctx, history.branches) if history.records else None
        view = history.view(history.branch(branch).head) if branch is not None else EMPTY
        found = find([item for item in view.items.values() if self._may_show(ctx, item)], wanted)
        if not found:
            return self._nothing(ctx, view.items.values(), wanted)
        if len(found) > 1:
            return self._which(ctx, found, "why")
        told = await asyncio.to_thread(
            shown.why,
            history,
            found[0],
            link=lambda source: source_link(self._client, source),
            branch=branch,
            in_private=self._in_private(ctx),
        )
        return memory_text.plain(told)

    async def _why_answered(self, ctx: Context) -> str:
        user_id = str(ctx.author.id)
        last = self._client.talk.parts.explained.last(self._session_key(ctx), user_id)
        if last is None:
            return UNKNOWN_ANSWER
        view = await self._store().view(self._subject(ctx), last.branch)
        answer = message_link(self._client, str(ctx.channel.id), last.answer_id)
        lines = [f"For [my last answer to you here](<{answer}>) I was given:"]
        lines += [self._used(ctx, view, item_id, why) for item_id, why in last.items] or [
            "- nothing of what I remember of you"
        ]
        return "\n".join([*lines, _surroundings(last)])

    def _used(self, ctx: Context, view: View, item_id: str, why: str) -> str:
        item = view.items.get(item_id)
        if item is None:
            return f"- an item that is gone since (id {item_id.removeprefix('durable-')})"
        if not self._may_show(ctx, item):
            return f"- a private item (id {item_id.removeprefix('durable-')})"
        chosen = f"; chosen for {why}" if why else ""
        return f"{memory_text.line_of(item)}{chosen}; {self._learned(item)}"

    def _learned(self, item: Item) -> str:
        link = source_link(self._client, item.source)
        return link if item.source.type == "manual" else f"said in {link}"

    # ------------------------------------------------------------------ going back

    async def _undo(self, ctx: Context) -> str:
        branch = self._named_branch(ctx, await self._store().branches(self._subject(ctx)))
        done = await verbs.undo(
            self._store(), self._subject(ctx), self._origin(ctx), on=branch, **self._meta(ctx)
        )
        return self._brought(ctx, done)

    async def _go_back(self, ctx: Context, verb: Callable[..., Awaitable[Brought]], commit: str) -> str:
        branch = self._named_branch(ctx, await self._store().branches(self._subject(ctx)))
        done = await verb(
            self._store(), self._subject(ctx), commit, self._origin(ctx), on=branch, **self._meta(ctx)
        )
        return self._brought(ctx, done)


def _then(history: History, at: str, branch: str) -> tuple[View, frozenset[str]]:
    """What held at a point, and the items that are shown in private only."""
    return view_at(history, at, branch=branch), shown.hidden(history)


def _difference(history: History, branch: str, options: DiffOptions, *, in_private: bool) -> str:
    """What differs between two points of a branch; of one point and now; or by the last change."""
    head = history.branch(branch).head
    if options.old is not None:
        old = view_at(history, options.old, branch=branch)
    else:
        chain = history.chain(head)
        old = history.view(chain[-2].id) if len(chain) > 1 else EMPTY
    new = view_at(history, options.new, branch=branch) if options.new is not None else history.view(head)
    return shown.changes(diff(old, new), in_private=in_private, hidden=shown.hidden(history))


def _surroundings(last: Shown) -> str:
    """What else went into an answer."""
    summary = "this conversation's summary" if last.summary else "no summary"
    return f"and {summary}, {count(last.window, 'recent message')}, and your message."
