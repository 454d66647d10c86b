"""The commands that Discord alone has: what a person decides about themselves, and what owners and admins do.

What a file says is `memory/exchange`; a file that somebody attaches is what they state about themselves.
"""

import asyncio
import logging
from collections import Counter
from dataclasses import replace
from datetime import UTC, tzinfo
from datetime import timezone as fixed
from typing import Any, Literal, cast

import discord

from discoclaw.bot import naming
from discoclaw.bot.commands.call import MOST_BYTES, Call, Interaction
from discoclaw.bot.commands.context import Unclear
from discoclaw.bot.links import message_address
from discoclaw.bot.live_settings import Admin, main_card, scope_of
from discoclaw.bot.proposals import waiting
from discoclaw.bot.wire import can_read, discord_errors, may_read
from discoclaw.commands.caller import OPTED_OUT
from discoclaw.commands.memories import NOT_USED, SECRET, kept_private, presumed, presumed_private, still
from discoclaw.core import privacy, zones
from discoclaw.core.draft import Draft, Origin, Outcome
from discoclaw.core.errors import ChatError, MemoryFault, ModelError, ModelSpent, Refused
from discoclaw.core.item import Facets, Item, Sensitivity
from discoclaw.core.live import GLOBAL
from discoclaw.core.policy import FIELDS
from discoclaw.core.privacy import PRESUMED, DmPrivacy, is_personal, stricter
from discoclaw.core.redact import Redactor
from discoclaw.core.subject import person_of
from discoclaw.core.text import collapse, speaker
from discoclaw.core.view import View
from discoclaw.core.yours import halves, yours
from discoclaw.core.zones import KEY, names_like, own_zone, text_of, zone_named
from discoclaw.memory.exchange.load import Items, load_bytes
from discoclaw.memory.exchange.take import current_items
from discoclaw.search.archive import Visible
from discoclaw.session.archiving import ArchiveHit, Archiving
from discoclaw.session.meaning import Asker
from discoclaw.show.answer import Answer, Reply, Row, Turn
from discoclaw.show.markup import ago, block, for_people, plain, said, words
from discoclaw.show.words import count, line, short
from discoclaw.soul.soul import of_view, sections

IMPORTED = "imported"
"""The word by which `share` takes all memories that are private only because they came in from files."""
NO_MODEL = "the model that looks for them didn't answer, so nothing has changed; try again in a while"


# ---------------------------------------------------------------------- add


async def remember(call: Call, text: str) -> Reply:
    told = await keep(call, text, call.origin(), "remembered by command")
    if halves(text) is None:
        return told
    item = next((one for one in await call.items() if one.active and one.text == collapse(text)), None)
    if item is None:  # it is worded otherwise, or held anything secret
        return told
    branch = call.persona_here or (await call.memory.branches(call.subject)).current
    return naming.about_one(f"{told}\n{naming.TWO_THINGS}", call.user_id, "history split", item, branch)


async def split(call: Call, memory: str) -> str:
    """Make two memories of one that says two things."""
    meant = await call.the_one(await call.items(), memory, "history split")
    if (parts := halves(meant.text)) is None:
        raise Refused("that memory says one thing, as far as I can tell; `!memory edit` changes it")

    def make(draft: Draft) -> str:
        item, secret = still(draft, meant), meant.facets.sensitivity
        draft.upsert(item.kind, parts[0], call.origin(), given_id=item.id, marked=secret, tags=item.tags)
        draft.upsert(item.kind, parts[1], call.origin(), marked=secret, tags=item.tags)
        return "Remembered as two: " + " ".join(words(yours(part)) for part in parts)

    return await call.change("split by command", make)


async def keep(
    call: Call, text: str, origin: Origin, why: str, *, marked: Sensitivity = "normal", **metadata: Any
) -> str:
    """Remember a text on the person's word. `marked`: it is at least so private."""
    clean = call.client.redactor(text)
    most = call.client.settings.max_items
    marked = privacy.stricter(marked, call.marked(clean.text))

    def make(draft: Draft) -> str:
        item, done = draft.upsert("fact", clean.text, origin, marked=marked)
        if done == "ignored":
            raise Refused("that message was deleted, so I remember nothing from it")
        if done == "unchanged":
            return f"I already remember that: {words(yours(item.text))}"
        answer = f"Remembered: {words(yours(item.text))}{kept_private(item)}"
        answer += SECRET if clean.redacted or clean.flagged else ""
        if (
            not call.in_private
            and item.facets.sensitivity == "normal"
            and is_personal(item.text, in_the_open=True)
        ):
            answer += f"\n(used in every channel; `!memory private {short(item.id)}` keeps it between us)"
        return answer + crowded(draft, most)

    return await call.change(why, make, **metadata)


def crowded(draft: Draft, most: int) -> str:
    """The note if a new memory takes the place of the oldest one."""
    if len(draft.items) > most and all(one.active for one in draft.items.values()):
        return f"\n(I keep {most} memories at most, so I forgot the oldest; `!memory undo` restores it.)"
    return ""


# ---------------------------------------------------------------------- who sees it


async def share(call: Call, memory: str) -> str:
    if memory.strip().lower() == IMPORTED:
        view = await call.memory.view(call.subject, call.persona_here)
        if imported := await presumed(call, view):

            def make(draft: Draft) -> str:
                shared = sum(draft.mark(item, "normal", call.origin()) == "updated" for item in imported)
                many = count(shared, "memory")
                return f"From now on I use {many} from files everywhere. `!memory undo` takes it back."

            return await call.change("shared by command", make)
    return await _mark(call, memory, "normal")


async def private(call: Call, memory: str) -> str:
    return await _mark(call, memory, "private")


async def _mark(call: Call, memory: str, secret: Sensitivity) -> str:
    # To share a memory one has to be able to name it, wherever one is; its text is not repeated.
    verb = "share" if secret == "normal" else "private"
    meant = await call.those(await call.items(), memory, verb, unseen=True)

    def make(draft: Draft) -> str:
        items = [still(draft, one) for one in meant]
        for item in items:
            draft.mark(item, secret, call.origin())
        where = "everywhere" if secret == "normal" else "in our DMs only"
        which = "that memory" if len(items) == 1 else f"these {count(len(items), 'memory')}"
        ids = "" if call.on_card else f" (id {', '.join(short(item.id) for item in items)})"
        return f"From now on I use {which} {where}{ids}."

    return await call.change(f"marked {secret} by command", make)


# ---------------------------------------------------------------------- decide


async def approve(call: Call, state: str | None) -> str:
    choices = call.context.choices
    if state is not None:
        await choices.choose(call.user_id, asks_first=state == "on")
    number = len((await _here(call))[1].pending)
    left = f" {number} still waiting for your yes: `!memory pending`." if number else ""
    if state is None:
        asks = choices.asks_first(call.user_id, call.place)
        now = "I ask before I remember" if asks else "I remember without asking"
        other = "off" if asks else "on"
        return f"{now} what I learn from what you say; `!memory approve {other}` changes that.{left}"
    if state == "off":
        return f"From now on I remember what I learn without asking.{left}"
    return (
        "From now on I ask before I remember something that I learned from what you said. "
        f"What you tell me with `!memory remember` I still remember at once.{left}"
    )


async def pending(call: Call) -> Answer:
    branch, view = await _here(call)
    days = call.client.settings.pending_days
    return waiting(call.user_id, view, branch, in_private=call.in_private, days=days, page=call.page)


async def autoswitch(call: Call, state: str) -> str:
    await call.context.choices.choose(call.user_id, auto_switch=state == "on")
    if state == "on":
        return "From now on I switch your persona by myself when we talk about what another one is for."
    return "From now on I ask before I switch your persona."


async def tidy(call: Call) -> str:
    branch = call.persona(await call.memory.branches(call.subject))
    try:
        report = await call.context.consolidate(call.subject, branch, call.metadata)
    except ModelSpent as error:
        raise Refused(error.user_message) from error
    except ModelError as error:
        raise Refused(NO_MODEL) from error
    asks = "\nTo answer the questions, use `!memory settle`." if report.questions else ""
    return plain(for_people(report.text(in_private=call.in_private))) + asks


async def _here(call: Call) -> tuple[str, View]:
    """The persona that counts here, and its view; a place's own persona begins with what is known."""
    branches = await call.memory.branches(call.subject)
    here = call.persona_here
    branch = here if here is not None and here in branches.all else branches.current
    return branch, await call.memory.view(call.subject, branch)


# ----------------------------------------------------------------------
# A person's time zone: an item of their memory with a key, which names it.

OFF = ("off", "none")
MOST_NEAR = 3
FIXED = " It has no summer time: if your clock does, name a large city that has the same time instead."
_TYPED = 100


async def timezone(call: Call, name: str | None) -> str:
    wanted, opted_out = (name or "").strip(), call.opted_out
    default, origin = call.client.settings.zone, call.origin()
    if not wanted and opted_out:
        return f"{NOT_USED}\nI use the server's time zone, {_named(default, origin.said_at)}."
    if not wanted:
        items = (await call.memory.view(call.subject, call.persona_here)).active()
        if (found := own_zone(items, in_dm=call.in_private)) is not None:
            item, zone = found
            return f"Your time zone is {_named(zone, origin.said_at)}.{kept_private(item)}"
        if own_zone(items, in_dm=True) is not None:  # which may not be shown here
            why, how = "Your time zone is private, so here", "to see yours, use `/memory timezone`"
        else:
            why, how = "I don't know your time zone, so", "`!memory timezone <city>` sets yours"
        return f"{why} I use the server's, {_named(default, origin.said_at)}; {how}."

    if wanted.lower() in OFF:

        def forget(draft: Draft) -> str:
            known = _keyed(draft)
            for item in known:
                draft.deprecate(item, origin)
            done = "Forgotten. From now on" if known else "I don't know your time zone, so"
            return f"{done} I use the server's, {_named(default, origin.said_at)}."

        return await call.change("time zone forgotten by command", forget)

    if (chosen := await asyncio.to_thread(zone_named, wanted)) is None:
        text = f"I don't know which time zone {said(wanted, _TYPED)} is."
        if near := await asyncio.to_thread(names_like, wanted, MOST_NEAR):
            raise Unclear(f"{text} Did you mean {' or '.join(f'`{one}`' for one in near)}?")
        raise Unclear(
            f"{text} Name a large city that has the same time, for example Berlin or New York, "
            "or the difference from UTC, for example UTC+2."
        )
    if opted_out:
        raise Refused(OPTED_OUT)
    # Where somebody lives is private if they say it in a DM. This they say so that it is used everywhere.
    origin = replace(origin, private=False)

    def make(draft: Draft) -> str:
        item, done = draft.upsert("fact", text_of(chosen), origin, facets=Facets(key=KEY))
        marked = draft.mark(item, "normal", origin)
        for other in _keyed(draft):
            if other.id != item.id:  # replicas can have given it to two
                draft.deprecate(other, origin)
        now = _named(chosen, origin.said_at)
        if done == marked == "unchanged":
            answer = f"Your time zone is already {now}."
        else:
            answer = (
                f"From now on your time zone is {now}. I use it everywhere, also outside our DMs. "
                "`!memory timezone off` forgets it."
            ) + (FIXED if isinstance(chosen, fixed) and chosen is not UTC else "")
        return answer + crowded(draft, call.client.settings.max_items)

    return await call.change("time zone set by command", make)


def _keyed(draft: Draft) -> list[Item]:
    """The active items with the key of the time zone."""
    return [item for item in draft.items.values() if item.facets.key == KEY and item.active]


def _named(zone: tzinfo, now_ms: int) -> str:
    return f"`{zone}`, where it is now {zones.now(now_ms, zone)}"


# ----------------------------------------------------------------------
# One's data as a whole: bringing it, and having none.

log = logging.getLogger(__name__)

STAYS = (
    "What I already have stays on disk, unused. `!memory export` gives you a copy, `!memory erase` destroys "
    "it, and `!memory optin` turns memory on again."
)
STILL_ARCHIVED = "What you said is still in my archive, unused; I remove it when I start the next time. "


async def reset_summary(call: Call) -> str:
    await call.context.summaries.clear(call.session_key, by=call.user_id)
    call.context.loops.reset(call.session_key, call.source.id)
    return "I cleared the summary of this conversation."


async def take(call: Call, file: discord.Attachment) -> str:
    content = await _content(file)
    rule = call.context.dm_privacy
    found = await asyncio.to_thread(_loaded, file.filename, content, call.user_id, call.client.redactor, rule)
    most = call.client.settings.max_items
    if len(found.items) > most:
        raise Refused(f"the file has {len(found.items)} memories, and I keep at most {most}")
    presumed: list[str] = []  # filled below, before the commit is made

    def make(draft: Draft) -> str:
        done: Counter[str] = Counter(rejected=len(found.rejected))
        presumed.clear()  # another process may have overtaken the first try
        for item in found.items:
            if found.skips_known and (
                item.id in draft.items
                or item.facets.key in {one.facets.key for one in draft.items.values()} - {None}
            ):
                done["unchanged"] += 1
                continue
            told = item.id not in found.unmarked
            now, outcome = _taken(call, draft, item, told=told, snapshot=found.skips_known)
            done[outcome] += 1
            if now is not None and outcome == "added" and now.facets.sensitivity == "private" and not told:
                presumed.append(now.id)
        if (over := sum(item.active for item in draft.items.values()) - most) > 0:
            raise Refused(f"I keep {most} memories at most, and this is {over} too many; forget some first")
        new = done["added"] + done["restored"]
        parts = [
            f"{count(new, 'memory')} added",
            *([f"{done['updated']} updated"] if done["updated"] else []),
            *([f"{done['unchanged']} known already"] if done["unchanged"] else []),
            *([f"{done['rejected']} not accepted"] if done["rejected"] else []),
        ]
        back = ". `!memory undo` takes it back." if new or done["updated"] else "."
        return ", ".join(parts) + back + (f"\n{presumed_private(len(presumed))}" if presumed else "")

    # Not what the file is called: others may read the history too.
    return await call.change("imported by command", make, aside=True, **{PRESUMED: presumed})


async def _content(file: discord.Attachment) -> bytes:
    too_large = f"the file is too large; I read at most {MOST_BYTES // 1024 // 1024} MB"
    if file.size > MOST_BYTES:
        raise Refused(too_large)
    try:
        with discord_errors():
            content = await file.read()
    except ChatError as error:
        raise Refused("Discord didn't give me the file; attach it again") from error
    if len(content) > MOST_BYTES:
        raise Refused(too_large)
    return content


def _loaded(name: str, content: bytes, user_id: str, redactor: Redactor, rule: DmPrivacy) -> Items:
    """The active items of a file. Raises Refused."""
    found = load_bytes(name, content, redactor).content(user_id)
    if isinstance(found, Items):
        return replace(found, items=tuple(item for item in found.items if item.active))
    return current_items(found, rule)


def _taken(
    call: Call, draft: Draft, item: Item, *, told: bool, snapshot: bool
) -> tuple[Item | None, Outcome | Literal["rejected"]]:
    """Take one item over, as if the person had typed it, but as private as the file says.

    An entry of a `snapshot` has a key and a category, and nobody stated it, so it may expire. What a file
    doesn't say (not `told`) counts as learned in private. What is personal, and given in private, is private
    too. Returns the item as it is now, and what was done.
    """
    unseen = call.slash or call.place.private
    marked: Sensitivity = "private" if unseen and is_personal(item.text) else "normal"
    clean = call.client.redactor.clean
    origin = replace(call.origin(), private=not told)
    if snapshot:
        origin = replace(origin, author=item.facets.author)
    try:
        return draft.upsert(
            item.kind,
            clean(item.text),
            origin,
            tags=list(map(clean, item.tags)),
            marked=stricter(item.facets.sensitivity, marked),
            facets=Facets(key=item.facets.key, category=item.facets.category) if snapshot else Facets(),
        )
    except Refused:
        return None, "rejected"


async def optout(call: Call) -> str:
    choices = call.context.choices
    if choices.opted_out(call.user_id):
        return f"You have opted out already. {STAYS}"
    await choices.choose(call.user_id, opted_out=True)
    try:
        gone = await call.context.archiving.forget_person(call.user_id)
        archived = f"I removed {count(gone, 'message')} from the archive. " if gone else ""
    except MemoryFault as fault:
        log.warning("somebody opted out, and what they said is still archived: %s", fault)
        archived = STILL_ARCHIVED
    return f"Done. I won't learn anything about you or use what I already know. {archived}{STAYS}"


async def optin(call: Call) -> str:
    choices = call.context.choices
    if not choices.opted_out(call.user_id):
        return "You haven't opted out. `!memory show` lists what I remember about you."
    await choices.choose(call.user_id, opted_out=False, since=call.asked_at)
    return "Welcome back! I use what I know about you again, and learn from what you say from now on."


# ----------------------------------------------------------------------
# What owners and admins do: give the bot a personality, look after its encrypted backup, change settings.

NOT_HERE = (
    "I don't listen in this channel (DISCORD_CHANNEL_IDS or `/settings`), so I wouldn't hear your answers; "
    "ask me in a DM"
)
NO_SOUL = "I have no personality yet."
BEGIN = "`/hatch start` begins an interview that gives me one."
INTERVIEWED = "Somebody else is being interviewed about who I am."
FILES = "\n-# Files in content/soul/ replace these, each by itself."
PUSHED = "What has changed is on its way. `!nostr status` shows what has arrived."


async def hatch_start(call: Call) -> str:
    if not call.client.access.listens(call.place):
        raise Refused(NOT_HERE)
    return await call.context.hatchery.begin(call.user_id, call.place)


async def hatch_cancel(call: Call) -> str:
    return await call.context.hatchery.cancel(call.user_id)


async def hatch_show(call: Call) -> str:
    hatchery = call.context.hatchery
    view = await hatchery.view(call.user_id)
    found = sections(of_view(view, with_whom=call.user_id, in_dm=call.in_private))
    interview = ""
    if (one := hatchery.under_way) is not None and one.human == call.user_id:
        here = "our DMs" if person_of(one.session_key) else f"<#{one.session_key.rpartition(':')[2]}>"
        interview = f"Our interview about who I am is under way in {here}; `/hatch cancel` ends it."
    elif one is not None:
        interview = INTERVIEWED
    if not found:
        return f"{NO_SOUL} {interview or BEGIN}"
    parts = [f"**{title}**\n" + "\n".join(plain(text) for text in texts) for title, texts in found]
    return "\n\n".join([*([interview] if interview else []), *parts]) + FILES


async def hatch_undo(call: Call) -> str:
    return await call.context.hatchery.undo(call.user_id, call.origin(), **call.metadata)


async def mirror_status(call: Call) -> str:
    return block(await call.context.mirror.status_text())


async def mirror_push(call: Call) -> str:
    call.context.mirror.push()
    return PUSHED


async def settings(call: Call) -> Answer:
    return main_card(await _admin(call), scope_of(call.place))


async def model(call: Call, name: str | None) -> str:
    """Show or set the model that answers here; in a DM, everywhere."""
    admin, scope = await _admin(call), scope_of(call.place)
    admin.check(scope)
    where = "everywhere" if scope == GLOBAL else f"in <#{scope.id}>"
    if name is None:
        now = words(admin.settings.answers(str(admin.settings.row(scope, "model").effective.value)))
        named = ", ".join(words(one) for one in admin.settings.models)
        how = f"{named}, or any other name" if named else "name its provider too, as in `ollama:qwen3:8b`"
        return f"{now} answers {where}. `/model name` chooses another one: {how}."
    value = FIELDS["model"].typed(name)
    changed = await admin.settings.change(scope, "model", value, admin.by)
    return f"{words(admin.settings.answers(str(value)))} {'now' if changed else 'already'} answers {where}."


async def _admin(call: Call) -> Admin:
    await call.context.settings.refresh()
    return Admin(cast(Interaction, call.source), call.context.settings, call.client.settings.owners)


# ----------------------------------------------------------------------
# `search`: what was said, found again by somebody who may read it in Discord right now.

MOST_SHOWN = 25
MOST_THREADS = 25
"""Private threads of which Discord is asked whether somebody is in them, the newest."""
LONGEST_SHOWN = 300
"""UTF-16 units of a message that are shown."""
NOTHING = "I found nothing like that in the messages I kept and you can read."
NOT_NOW = "I can't search the archive right now. Please try again in a while."
ONLY_FOR_YOU = "only you may see what I find; use `/memory search` here, or ask me in a DM"


async def search(call: Call, query: str) -> Reply:
    if not call.in_private:
        raise Refused(ONLY_FOR_YOU)
    archiving, guild = call.context.archiving, call.source.guild
    if not archiving.on(call.place):
        what = f"this server's id, `{guild.id}`" if guild is not None else "`dm`"
        return (
            "Messages here aren't kept, so there is nothing to search. Whoever runs me can change that with "
            f"DISCOCLAW_AUTO_SAVE in `.env`: it takes {what}, or `all`."
        )
    try:
        by = Asker(call.user_id, private=call.in_private)
        found = await archiving.search(query, await _visible(call, archiving), limit=MOST_SHOWN, by=by)
    except MemoryFault as fault:
        log.warning("a search failed: %s", fault)
        return NOT_NOW
    if not found:
        return NOTHING
    matching = [_row(hit) for hit in found if not hit.beside]
    beside = [_row(hit) for hit in found if hit.beside]
    if beside:
        beside[0] = replace(beside[0], title="Said right before or after")
    nothing = "nothing matches, but this was said near it"
    return Answer(
        f"Found for {said(query, 80)}",
        [*matching, *beside],
        small=[count(len(matching), "message") if matching else nothing],
        turn=Turn(call.user_id, "search", (query,)),
        page=call.page,
    )


async def _visible(call: Call, archiving: Archiving) -> Visible:
    """The places somebody may read at this moment."""
    guild, person = call.source.guild, call.author
    if guild is None or not isinstance(person, discord.Member):
        return Visible(dm_of=call.user_id if guild is None else None)
    open_ = {str(one.id) for one in guild.channels if may_read(one, person)}
    closed = await _closed(guild, person, archiving)
    return Visible(await archiving.present(open_) | closed)


async def _closed(guild: discord.Guild, person: discord.Member, archiving: Archiving) -> frozenset[str]:
    """The private threads that a person is in, or looks after, of those we have anything of."""
    threads = {
        str(thread.id): thread
        for thread in sorted(guild.threads, key=lambda one: one.id, reverse=True)
        if thread.is_private() and thread.parent is not None and may_read(thread.parent, person)
    }
    kept = await archiving.present(threads)
    asked = [thread for key, thread in threads.items() if key in kept][:MOST_THREADS]

    async def is_in(thread: discord.Thread) -> bool:
        try:
            return await can_read(thread, person)
        except ChatError:
            return False  # what Discord does not say is a no

    inside = await asyncio.gather(*map(is_in, asked))
    return frozenset(str(thread.id) for thread, inside_it in zip(asked, inside, strict=True) if inside_it)


def _row(hit: ArchiveHit) -> Row:
    """One message: nothing in it is markup, a mention, or a link but ours."""
    entry = hit.entry
    link = message_address(entry.guild_id, entry.channel_id, entry.id)
    where = f"<#{entry.channel_id}>" if entry.guild_id is not None else "in our DMs"
    kept = line(entry.text, LONGEST_SHOWN).replace("`", "'") or " "
    small = f"{ago(entry.sent_at)} · {where} · [open it]({link})"
    return Row(f"**{plain(speaker(entry.name))}**: `{kept}`", small)
