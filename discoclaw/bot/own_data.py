"""Commands by which people own their data: export, import, erase, opt out and in.

What an export looks like and what a file holds is `memory/exchange`, what erasing does is `memory/erase`.
Only the person themselves gets anything; an owner of the bot may have another's memory erased, unseen.
"""

import asyncio
import logging
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from io import BytesIO
from typing import Literal

import discord
from discord.ext import commands

from discoclaw.bot import memory_text
from discoclaw.bot.answers import Page, Told
from discoclaw.bot.buttons import erase_view
from discoclaw.bot.decorators import command
from discoclaw.bot.errors import discord_errors
from discoclaw.bot.memory_group import Context, MemoryGroup
from discoclaw.bot.options import Options
from discoclaw.bot.pages import SILENT
from discoclaw.core.draft import Draft
from discoclaw.core.errors import ChatError, ChatForbidden, MemoryFault, Refused
from discoclaw.core.history import History
from discoclaw.core.item import Facets, Item, Sensitivity
from discoclaw.core.privacy import is_personal, stricter
from discoclaw.core.redact import Redactor
from discoclaw.core.subject import user_subject
from discoclaw.memory.exchange import (
    Items,
    export_json,
    export_markdown,
    export_objects,
    export_snapshot,
    load_bytes,
)
from discoclaw.show.words import count

log = logging.getLogger(__name__)

MOST_BYTES = 8 * 1024 * 1024
"""What every server takes as a file, with room to spare; and what we read of one."""
STAYS = (
    "What I have stays on disk, unused; `!memory export` gives it to you, `!memory erase` destroys it, "
    "and `!memory optin` brings it back."
)
TOO_LARGE = (
    "your memory is larger than a file in Discord may be; whoever runs me can give it to you with "
    "`discoclaw memory export`"
)
DMS_CLOSED = "I can not send you DMs, and your memory does not belong in public; use `/memory export` here"
DESTROYED = (
    "and the summaries of conversations they are part of. It is destroyed on disk, and nobody can "
    "bring it back."
)
KEEP_A_COPY = "`!memory export` keeps a copy."

_USER = re.compile(r"(?:<@!?)?(\d{1,20})>?")
_FORMATS = {
    "json": "memories.json",
    "markdown": "memory.md",
    "objects": "memory.zip",
    "snapshot": "snapshot.json",
}


class ExportOptions(Options):
    positional = ("format",)
    format: Literal["json", "markdown", "objects", "snapshot"] = commands.flag(
        default="json", description="For import, for reading, every object, or a list for other programs"
    )
    history: bool = commands.flag(default=False, description="With everything that ever was")


class EraseOptions(Options):
    positional = ("user",)
    user: str | None = commands.flag(default=None, description="For my owners: whose memory, by id")
    yes: bool = commands.flag(default=False, description="At once, without asking")


class OwnData(MemoryGroup):
    """Taking one's memory along, bringing it, destroying it, and having none."""

    group = MemoryGroup.group

    @command(
        group,
        "export",
        "Your memory as a file, in a DM",
        usage="[json|markdown|objects|snapshot] [--history]",
    )
    async def export(self, ctx: Context, *, options: ExportOptions) -> None:
        await self._queued(ctx, lambda ctx: self._export(ctx, options))

    @command(group, "import", "Remember what an export says", usage="(with a file)")
    async def take(self, ctx: Context, file: discord.Attachment) -> None:
        await self._queued(ctx, lambda ctx: self._import(ctx, file))

    @command(group, "erase", "Destroy everything I remember of you", usage="[--yes]")
    async def erase(self, ctx: Context, *, options: EraseOptions) -> None:
        await self._queued(ctx, lambda ctx: self._erase(ctx, options))

    @command(group, "optout", "Have no memory: nothing is learned of you or used")
    async def optout(self, ctx: Context) -> None:
        await self._queued(ctx, self._optout)

    @command(group, "optin", "Be remembered again")
    async def optin(self, ctx: Context) -> None:
        await self._queued(ctx, self._optin)

    # ------------------------------------------------------------------ export

    async def _export(self, ctx: Context, options: ExportOptions) -> Told:
        history = await self._history(ctx)
        if not history.records:
            return "I remember nothing of you, so there is nothing to export."
        now_ms = int(discord.utils.utcnow().timestamp() * 1000)
        access = self._client.talk.parts.access
        accessed = await access.load(self._subject(ctx)) if access is not None else {}
        content, number = await asyncio.to_thread(
            _rendered, history, self._subject(ctx), options, now_ms, accessed
        )
        if len(content) > MOST_BYTES:
            raise Refused(TOO_LARGE)
        name = _FORMATS[options.format]

        def file() -> discord.File:
            return discord.File(BytesIO(content), filename=name)

        about = f"Your memory: {count(number, 'item')} in `{name}`."
        if self._place(ctx).kind == "dm":
            return [Page(about, files=(file(),))]
        try:
            with discord_errors():
                await ctx.author.send(memory_text.NOTE + about, file=file(), allowed_mentions=SILENT)
        except ChatForbidden:
            if ctx.interaction is None:
                raise Refused(DMS_CLOSED) from None
            return [Page(about, files=(file(),))]
        except ChatError as error:
            raise Refused("Discord did not take the file just now; try again later") from error
        return f"I have sent it to you in a DM ({count(number, 'item')})."

    # ------------------------------------------------------------------ import

    async def _import(self, ctx: Context, file: discord.Attachment) -> str:
        store = self._adding(ctx)
        if file.size > MOST_BYTES:
            raise Refused(f"the file is too large; I read at most {MOST_BYTES // 1024 // 1024} MB")
        try:
            with discord_errors():
                content = await file.read()
        except ChatError as error:
            raise Refused("Discord did not give me the file; attach it again") from error
        if len(content) > MOST_BYTES:
            raise Refused(f"the file is too large; I read at most {MOST_BYTES // 1024 // 1024} MB")
        clean, user_id = self._client.redactor, str(ctx.author.id)
        found = await asyncio.to_thread(_loaded, file.filename, content, user_id, clean)
        most = self._client.settings.max_items
        if len(found.items) > most:
            raise Refused(f"the file has {len(found.items)} items, and I remember at most {most}")
        done: Counter[str] = Counter(rejected=len(found.rejected))

        def wish(draft: Draft) -> str:
            for item in found.items:
                if found.skips_known and _is_held(draft, item):
                    done["unchanged"] += 1
                    continue
                facets = Facets(key=item.facets.key, category=item.facets.category)
                done[self._taken(ctx, draft, item, facets if found.skips_known else Facets())] += 1
            if (over := sum(item.active for item in draft.items.values()) - most) > 0:
                raise Refused(
                    f"there is room for {most} items, and this is {over} too many; forget some first"
                )
            return _told(done)

        return await store.change(
            self._subject(ctx),
            "imported by command",  # not what the file is called: the log is shown in the open too
            wish,
            branch=self._branch(ctx),
            **self._meta(ctx),
        )

    def _taken(self, ctx: Context, draft: Draft, item: Item, facets: Facets) -> str:
        """Take one item over, as if the person had typed it, but as private as the file says.

        Not every file says it; what is personal and given in private then stays so.
        """
        unseen = ctx.interaction is not None or self._place(ctx).private
        hushed: Sensitivity = "private" if unseen and is_personal(item.text) else "normal"
        clean = self._client.redactor.clean
        try:
            return draft.upsert(
                item.kind,
                clean(item.text),
                replace(self._origin(ctx), private=False),
                tags=list(map(clean, item.tags)),
                marked=stricter(item.facets.sensitivity, hushed),
                facets=facets,
            )[1]
        except Refused:
            return "rejected"

    # ------------------------------------------------------------------ erase

    async def _erase(self, ctx: Context, options: EraseOptions) -> Told:
        store = self._store()
        own = str(ctx.author.id)
        target = self._target(ctx, options.user)
        if options.yes and target == own:
            asked_at = int(ctx.message.created_at.timestamp() * 1000)
            done = await store.erase(self._subject(ctx), asked_at=asked_at)
            return memory_text.erased(done, own=True)
        if target == own:
            size = await asyncio.to_thread(_size, await store.history(user_subject(own)))
            text = f"**Erase everything I remember of you?** That is {size}, {DESTROYED} {KEEP_A_COPY}"
        else:
            text = f"**Erase everything I remember of {target}?** That is all of it, {DESTROYED}"
        return [Page(text, view=erase_view(own, target))]

    def _target(self, ctx: Context, wanted: str | None) -> str:
        """Whose memory is to go: one's own, or for owners anybody's."""
        own = str(ctx.author.id)
        if wanted is None:
            return own
        found = _USER.fullmatch(wanted.strip())
        if found is None:
            raise Refused(f"{wanted[:40]!r} is no user id; `!memory erase` alone is about you")
        if found[1] != own and own not in self._client.settings.owners:
            raise Refused("only my owners may erase somebody else's memory; `!memory erase` is about yours")
        return found[1]

    # ------------------------------------------------------------------ out and in

    async def _optout(self, ctx: Context) -> str:
        user_id = str(ctx.author.id)
        if self._shelf.choices.opted_out(user_id):
            return f"You have opted out already. {STAYS}"
        await self._shelf.choices.choose(user_id, opted_out=True)
        self._client.talk.parts.explained.forget(user_id)
        archived = await self._unarchived(user_id)
        return f"Done: from now on I learn nothing of you and use nothing I know. {archived}{STAYS}"

    async def _unarchived(self, user_id: str) -> str:
        """Remove a person's talk from the archive, and say so if there was any."""
        archiving = self._client.talk.parts.archiving
        try:
            gone = await archiving.forget_person(user_id) if archiving is not None else 0
        except MemoryFault as fault:
            log.warning("somebody opted out, and what they said is still archived: %s", fault)
            return "What you said is still in my archive, unused, and is removed when I start the next time. "
        return f"From the archive of talk I removed {count(gone, 'message')}. " if gone else ""

    async def _optin(self, ctx: Context) -> str:
        user_id = str(ctx.author.id)
        if not self._shelf.choices.opted_out(user_id):
            return "You have not opted out; I remember you. `!memory show` says what."
        since = int(ctx.message.created_at.timestamp() * 1000)
        await self._shelf.choices.choose(user_id, opted_out=False, since=since)
        return "Welcome back: I use what I know of you, and learn from what you say from now on."


def _rendered(
    history: History, subject: str, options: ExportOptions, now_ms: int, accessed: Mapping[str, int]
) -> tuple[bytes, int]:
    if options.format == "objects":
        return export_objects(history)
    if options.format == "snapshot":
        return export_snapshot(history, accessed)
    export = export_json if options.format == "json" else export_markdown
    return export(history, subject, history_too=options.history, now_ms=now_ms)


def _size(history: History) -> str:
    items = {item for branch in history.branches.all.values() for item in history.view(branch.head).items}
    parts = [count(len(items), "item"), count(len(history.commits), "commit")]
    if len(history.branches.all) > 1:
        parts.append(count(len(history.branches.all), "persona"))
    return ", ".join(parts)


def _loaded(name: str, content: bytes, user_id: str, redactor: Redactor) -> Items:
    """The active items of a file. Raises Refused."""
    found = load_bytes(name, content, redactor).content(user_id)
    if isinstance(found, Items):
        return replace(found, items=tuple(item for item in found.items if item.active))
    return Items(tuple(History(found.records).shown().active()))


def _is_held(draft: Draft, item: Item) -> bool:
    """Whether an item of this id or key is held already."""
    key = item.facets.key
    return item.id in draft.items or (
        key is not None and any(key == one.facets.key for one in draft.items.values())
    )


def _told(done: Counter[str]) -> str:
    new = done["added"] + done["restored"]
    parts = [
        f"{count(new, 'item')} remembered",
        *([f"{done['updated']} updated"] if done["updated"] else []),
        *([f"{done['unchanged']} known already"] if done["unchanged"] else []),
        *([f"{done['rejected']} not taken"] if done["rejected"] else []),
    ]
    return ", ".join(parts) + (". `!memory undo` takes it back." if new or done["updated"] else ".")
