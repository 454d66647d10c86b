"""`discoclaw audit`: looks for what should no longer be readable anywhere."""

import asyncio
import re
from contextlib import aclosing
from dataclasses import asdict
from typing import Annotated

import typer

from discoclaw import settings as settings_module
from discoclaw.cli.common import AsJson, note, note_other_stores, say, say_json, storage_of
from discoclaw.core.errors import ChatError, SettingsError
from discoclaw.core.message import Me, Said
from discoclaw.core.purge import Readable
from discoclaw.memory.audit import Audit, Finding
from discoclaw.memory.conversations.inboxes import channels_in
from discoclaw.settings import Settings
from discoclaw.show.words import count, line
from discoclaw.storage import Storage

commands = typer.Typer(no_args_is_help=True)

NOT_THERE = "what the bot would read in Discord wasn't looked at"
WITHIN_S = 600.0
"""For all channels together."""
_CIPHERTEXT = re.compile(r"[A-Za-z0-9+/=_-]{32,}")
"""Ciphertexts, hashes and pseudonyms, in which words would be chance."""
_ABOUT = {
    "taken back": "that they took back",
    "private": "that they made private, readable in the open",
    "opted out": "although they opted out",
    "erased": "although everything about them was erased",
}


@commands.command()
def privacy(
    relays: Annotated[
        bool, typer.Option("--relays", help="Look also at what is in the clear on the configured relays.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Look for what people took back, made private or never wanted kept: on disk, and in Discord.

    In Discord that is what the bot's next prompts would be made of. The output names places, people and
    numbers, and never the words. Nothing is changed, and the bot may run meanwhile; what somebody just took
    back may then still be on its way out. The exit code is 1 if something was found, or a relay couldn't be
    asked.

    Example: discoclaw audit privacy --relays
    """
    settings = settings_module.load()
    note_other_stores(settings)
    storage, silent = storage_of(settings), False
    try:
        audit = Audit(storage.memory.disk, storage.memory.personal)
        found = audit.on_disk(settings.data_dir)
        if settings.token is None:
            note(f"{NOT_THERE}: DISCORD_TOKEN is not set")
        else:
            try:
                more, reasons = asyncio.run(_in_channels(settings, storage, audit))
            except (ChatError, SettingsError) as error:
                more, reasons = [], [f"{NOT_THERE}: {error}"]
            found += more
            for reason in reasons:
                note(reason)
        if relays:
            more, reasons = asyncio.run(_on_relays(settings, audit))
            found, silent = found + more, bool(reasons)
            for reason in reasons:
                note(reason)
    finally:
        storage.close()
    if as_json:
        say_json([asdict(one) for one in found])
    elif found:
        for one in found:
            where = f"{one.part}: {line(one.place)}"
            say(f"{where}: {count(one.count, 'text')} of {one.subject} {_ABOUT[one.why]}")
        people = len({one.subject for one in found})
        say(f"Found {count(len(found), 'place')}, about {count(people, 'subject')}.")
    else:
        say("Nothing is readable that shouldn't be.")
    if found or silent:
        raise typer.Exit(1)


async def _in_channels(settings: Settings, storage: Storage, audit: Audit) -> tuple[list[Finding], list[str]]:
    """Findings about what would be in the next prompts and should not, and why channels could not be read.

    What people said is recognised by its author when a prompt is made. Looked at is what nobody can be
    recognised by: the bot's own messages of which it isn't known whom they were for, and names of threads.
    Only reads. Raises SettingsError for a token that Discord refuses, ChatError and MemoryFault.
    """
    import discord  # slow imports, which other commands don't need

    from discoclaw.bot import wire
    from discoclaw.bot.looking import logged_in
    from discoclaw.bot.past import Past
    from discoclaw.loops.heard import BACKLOG

    async def anybody(message: discord.Message) -> bool:
        """Return True: it makes no difference here who is a guest."""
        return True

    assert settings.token is not None
    found: list[Finding] = []
    reasons: list[str] = []
    token = settings.token.get_secret_value()
    async with logged_in(token, api=settings.discord_api, within_s=WITHIN_S) as session:
        client, user = session.client, session.client.user
        assert user is not None  # it has logged in
        me = Me(str(user.id), user.display_name)
        past = Past(client, anybody, lambda: me, settings.owners)
        for key, channel_id in channels_in(storage.cursors.documents).items():
            try:
                place = wire.place_of(await wire.channel_of(client, channel_id))
                said: list[Said] = []
                async with aclosing(past.pages(place, str((1 << 63) - 1))) as pages:
                    async for page in pages:
                        said = [*page, *said]
                        if len(said) >= BACKLOG:
                            break
            except ChatError as error:
                reasons.append(f"the channel {channel_id} wasn't looked at: {error}")
                continue
            told = await storage.conversations.answers.known(said, channel_id)
            texts = [
                Readable(f"message {one.id} in channel {channel_id}", one.text, key, at=one.sent_at)
                for one in told
                if one.by_us and not one.to_id
            ]
            if place.kind == "thread":
                texts.append(Readable(f"the name of thread {channel_id}", place.name, key))
            found += audit.in_texts("recent talk in Discord", texts)
    return found, reasons


async def _on_relays(settings: Settings, audit: Audit) -> tuple[list[Finding], list[str]]:
    """Findings about what is in the clear, and why a relay could not be asked. Raises SettingsError."""
    from discoclaw.cli.nostr import nostr_context, relays_of  # slow imports, as above
    from discoclaw.nostr.event import Event
    from discoclaw.nostr.relays.protocol import Filter

    keys = nostr_context(settings).config.keys
    found: list[Finding] = []
    reasons = []
    async with relays_of(settings, keys) as relays:
        for relay in relays:

            async def take(events: list[Event], url: str = relay.url) -> None:
                for one in events:
                    place = f"{url}: {one.d or 'an event'} ({one.id[:12]})"
                    clear = "\n".join([one.content, *(" ".join(tag) for tag in one.tags)])
                    found.extend(audit.in_text("relays", place, _CIPHERTEXT.sub(" ", clear)))

            fetched = await relay.fetch([Filter(authors=(keys.public,))], take)
            if not fetched.complete:
                reasons.append(f"{relay.url} can't be asked: {fetched.reason}")
    return found, reasons
