"""The part of `discoclaw audit privacy` that reads channels: what next prompts there would be made of.

What people said is recognised by its author when a prompt is made. Looked at is what nobody can be recognised
by: the bot's own messages of which it isn't known whom they were for, and the names of threads.
"""

from contextlib import aclosing

import discord

from discoclaw.bot import wire
from discoclaw.bot.looking import logged_in
from discoclaw.bot.past import Past
from discoclaw.bot.wire import channel_of
from discoclaw.core.audit import Finding, Readable
from discoclaw.core.errors import ChatError
from discoclaw.core.message import Me, Said
from discoclaw.loops.heard import BACKLOG
from discoclaw.memory.auditing import Audit
from discoclaw.memory.conversations.inboxes import channels_in
from discoclaw.settings import Settings
from discoclaw.storage import Storage

PART = "recent talk in Discord"
WITHIN_S = 600.0
"""For all channels together."""


async def _anybody(message: discord.Message) -> bool:
    """Return True: it makes no difference here who is a guest."""
    return True


async def in_channels(settings: Settings, storage: Storage, audit: Audit) -> tuple[list[Finding], list[str]]:
    """Findings about what would be in prompts and should not, and which channels could not be read, and why.

    Only reads. Raises SettingsError for a token that Discord refuses, ChatError and MemoryFault.
    """
    assert settings.token is not None
    found: list[Finding] = []
    reasons: list[str] = []
    token = settings.token.get_secret_value()
    async with logged_in(token, api=settings.discord_api, within_s=WITHIN_S) as session:
        client, user = session.client, session.client.user
        assert user is not None  # it has logged in
        me = Me(str(user.id), user.display_name)
        past = Past(client, _anybody, lambda: me, settings.owners)
        for key, channel_id in channels_in(storage.cursors.documents).items():
            try:
                place = wire.place_of(await channel_of(client, channel_id))
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
            found += audit.in_texts(PART, texts)
    return found, reasons
