"""Commands about personas, which are branches: list, switch, create, delete, merge, cherry-pick, auto.

As slash commands they are children of `/memory branch`; as text each has a flat name too, as in git.
A channel may have a persona of its own; what is said there goes to it, whatever a person's current one is.
"""

from collections.abc import Awaitable, Callable
from typing import Literal

from discord import app_commands
from discord.ext import commands

from discoclaw.bot import memory_text
from discoclaw.bot.decorators import as_text, command, subgroup
from discoclaw.bot.memory_group import Context, MemoryGroup
from discoclaw.bot.options import Options
from discoclaw.core.history import MAIN, Branches
from discoclaw.core.privacy import is_personal, sensitivity
from discoclaw.memory.subjects import verbs
from discoclaw.memory.subjects.store import Memory
from discoclaw.show import text as shown


class CreateOptions(Options):
    """As text: `<name> [description]`; the description may be named `--persona` too."""

    positional = ("name", "persona")
    phrases = ("persona",)
    name: str = commands.flag(description="One word, for example coding")
    persona: str | None = commands.flag(default=None, description="What this side of you is about")


class PersonaCommands(MemoryGroup):
    """Separate memories of one person, and bringing them together."""

    group = MemoryGroup.group

    @subgroup(group, "branch", "Your personas: separate memories")
    async def branch(self, ctx: Context, *, rest: str = "") -> None:
        await self._queued(ctx, lambda ctx: self._branch_word(ctx, rest))

    @command(branch, "list", "Your personas; the current one is marked")
    async def branch_list(self, ctx: Context) -> None:
        await self._queued(ctx, self._list)

    @command(branch, "switch", "Talk to me as another persona")
    @app_commands.describe(name="The persona")
    async def branch_switch(self, ctx: Context, name: str) -> None:
        await self._queued(ctx, lambda ctx: self._switch(ctx, name))

    @command(branch, "create", "A new persona", usage="<name> [description]")
    async def branch_create(self, ctx: Context, *, options: CreateOptions) -> None:
        await self._queued(ctx, lambda ctx: self._create(ctx, options))

    @command(branch, "delete", "Remove a persona; its history stays")
    @app_commands.describe(name="The persona")
    async def branch_delete(self, ctx: Context, name: str) -> None:
        await self._queued(ctx, lambda ctx: self._delete(ctx, name))

    @command(branch, "merge", "Bring another persona's changes into this one")
    @app_commands.describe(name="The persona to bring in")
    async def branch_merge(self, ctx: Context, name: str) -> None:
        await self._queued(ctx, lambda ctx: self._bring(ctx, self._merge, name))

    @command(branch, "cherry-pick", "Bring one change of another persona into this one")
    @app_commands.describe(commit="The commit's id")
    async def branch_pick(self, ctx: Context, commit: str) -> None:
        await self._queued(ctx, lambda ctx: self._bring(ctx, self._pick, commit))

    @command(branch, "auto", "Whether I may switch your persona by myself")
    async def branch_auto(self, ctx: Context, state: Literal["on", "off"]) -> None:
        await self._queued(ctx, lambda ctx: self._auto(ctx, state == "on"))

    # As text, the names that git has.

    @as_text(group, "branches")
    async def branches(self, ctx: Context) -> None:
        await self._queued(ctx, self._list)

    @as_text(group, "checkout")
    async def checkout(self, ctx: Context, branch: str) -> None:
        await self._queued(ctx, lambda ctx: self._switch(ctx, branch))

    @as_text(group, "create-branch", usage="<name> [description]")
    async def create_branch(self, ctx: Context, *, options: CreateOptions) -> None:
        await self._queued(ctx, lambda ctx: self._create(ctx, options))

    @as_text(group, "delete-branch")
    async def delete_branch(self, ctx: Context, branch: str) -> None:
        await self._queued(ctx, lambda ctx: self._delete(ctx, branch))

    @as_text(group, "merge")
    async def merge(self, ctx: Context, branch: str) -> None:
        await self._queued(ctx, lambda ctx: self._bring(ctx, self._merge, branch))

    @as_text(group, "cherry-pick")
    async def cherry_pick(self, ctx: Context, commit: str) -> None:
        await self._queued(ctx, lambda ctx: self._bring(ctx, self._pick, commit))

    @as_text(group, "autoswitch", usage="on|off")
    async def autoswitch(self, ctx: Context, state: Literal["on", "off"]) -> None:
        await self._queued(ctx, lambda ctx: self._auto(ctx, state == "on"))

    branch_switch.autocomplete("name")(MemoryGroup._complete_branches)
    branch_delete.autocomplete("name")(MemoryGroup._complete_branches)
    branch_merge.autocomplete("name")(MemoryGroup._complete_branches)
    branch_pick.autocomplete("commit")(MemoryGroup._complete_commits)

    # ------------------------------------------------------------------ what they do

    async def _branch_word(self, ctx: Context, rest: str) -> str:
        words = rest.split()
        return self._unknown(self.branch, words[0]) if words else await self._list(ctx)

    async def _list(self, ctx: Context) -> str:
        store, subject = self._store(), self._subject(ctx)
        branches = await store.branches(subject)
        counts = {name: len((await store.view(subject, name)).active()) for name in branches.all}
        listed = shown.branches(branches, counts, in_private=self._in_private(ctx))
        return memory_text.block(listed) + self._here(ctx)

    async def _switch(self, ctx: Context, name: str) -> str:
        store, subject = self._store(), self._subject(ctx)
        before = await store.branches(subject)
        said_at = int(ctx.message.created_at.timestamp() * 1000)
        after = await verbs.switch(store, subject, name, said_at=said_at, **self._meta(ctx))
        if after.current == before.current:
            return f"You are on `{after.current}` already.{self._here(ctx)}"
        return f"You are on `{after.current}` now, everywhere.{self._about(ctx, after)}{self._here(ctx)}"

    async def _create(self, ctx: Context, options: CreateOptions) -> str:
        store, subject = self._adding(ctx), self._subject(ctx)
        before = await store.branches(subject)
        here = self._branch(ctx)
        about = self._client.redactor.clean(options.persona or "")
        secret = bool(about) and self._is_private(ctx, about)
        after = await verbs.create_branch(
            store,
            subject,
            options.name,
            about,
            start=here if here is None or here in before.all else MAIN,
            **self._meta(ctx),
            **({"private": True} if secret else {}),
        )
        (name,) = after.all.keys() - before.all.keys()
        note = "\n(Its description is shown and used in our DMs only; its name is shown everywhere.)"
        return (
            f"Created the persona `{name}`; it knows what `{here or before.current}` knows now. "
            f"`!memory checkout {name}` switches to it.{note if secret else ''}"
        )

    async def _delete(self, ctx: Context, name: str) -> str:
        store, subject = self._store(), self._subject(ctx)
        gone = (await store.branches(subject)).named(name).name
        await verbs.delete_branch(store, subject, gone, **self._meta(ctx))
        return f"The persona `{gone}` is gone; its commits stay in the history, for `!memory cherry-pick`."

    async def _bring(self, ctx: Context, bring: "_Bring", name: str) -> str:
        """Bring something into the persona of this place."""
        store = self._adding(ctx)
        into = self._named_branch(ctx, await store.branches(self._subject(ctx)))
        return await bring(ctx, store, name, into)

    async def _merge(self, ctx: Context, store: Memory, name: str, into: str) -> str:
        done = await verbs.merge(
            store, self._subject(ctx), name, self._origin(ctx), into=into, **self._meta(ctx)
        )
        return self._brought(ctx, done)

    async def _pick(self, ctx: Context, store: Memory, commit: str, onto: str) -> str:
        done = await verbs.cherry_pick(
            store, self._subject(ctx), commit, self._origin(ctx), onto=onto, **self._meta(ctx)
        )
        return self._brought(ctx, done)

    async def _auto(self, ctx: Context, on: bool) -> str:
        await self._shelf.choices.choose(str(ctx.author.id), auto_switch=on)
        if on:
            return "I may switch your persona by myself now, when the talk turns to what another one is for."
        return "I ask before I switch your persona."

    def _here(self, ctx: Context) -> str:
        """What is said where the place decides about the persona."""
        here = self._branch(ctx)
        return f"\nThis channel always uses the persona `{here}`." if here is not None else ""

    def _is_private(self, ctx: Context, about: str) -> bool:
        """Whether a description is for our DMs only, by the rule that holds for what is remembered."""
        hushed = ctx.interaction is not None and is_personal(about)
        return (
            sensitivity(
                "fact",
                about,
                learned_privately=self._place(ctx).private,
                marked="private" if hushed else "normal",
                rule=self._shelf.dm_privacy,
            )
            != "normal"
        )

    def _about(self, ctx: Context, branches: Branches) -> str:
        now = branches.all[branches.current]
        shown_here = now.persona and (self._in_private(ctx) or not now.private)
        return f" It is about: {now.persona}" if shown_here else ""


_Bring = Callable[[Context, Memory, str, str], Awaitable[str]]
