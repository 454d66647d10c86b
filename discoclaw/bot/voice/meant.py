"""What somebody means who points at a message: by a reply, a link, a menu or a button.

A voice message has its words in our note below it. Whoever points at the note means the voice message: the
words are its author's, so it is theirs to take them back.
"""

import discord

from discoclaw.bot import wire
from discoclaw.bot.voice.shown import note_on, notes_behind, shows_words, words_in


def voice_id(message: discord.Message, me: discord.abc.Snowflake | None) -> int | None:
    """The voice message that is meant by a message: itself, or the one that our note shows. None if none."""
    if wire.is_voice(message):
        return message.id
    ours = me is not None and message.author.id == me.id
    return note_on(message) if ours and shows_words(message) else None


async def words_below(message: discord.Message, me: discord.ClientUser | None) -> str:
    """The words of a voice message as we have shown them; "" for every other message. Raises ChatError."""
    if not wire.is_voice(message):
        return ""
    return words_in(await notes_behind(message.channel, {message.id}, me), me).get(message.id, "")
