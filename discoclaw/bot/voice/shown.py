"""The messages that show the words of a voice message: how they are written, and found again in the history.

    -# 🎤 “I moved to Porto.”
    -# 🎤 “Long ones go on ” …
    -# 🎤 … “in the next message.”

Such a message is ours, a silent reply to the voice message, and in small print; so it isn't talk. Answers of
the model are never silent, so none of them can pass for the words of a person.
"""

from collections.abc import Collection, Iterable, Iterator
from typing import Final

import discord

from discoclaw.bot.texts.markup import NOTE, plain, unmarked
from discoclaw.bot.wire import discord_errors
from discoclaw.core.text import utf16_length, utf16_prefix
from discoclaw.show.words import line

MARK: Final = NOTE + "🎤 "
"""How our notes about voice messages begin."""
MOST: Final = 12_000
"""Longest text taken from one voice message, in UTF-16 units: a quarter of an hour of talk."""
PIECE: Final = 1_800
"""Longest part of it in one message, with its escapes, in UTF-16 units."""
BEHIND: Final = 100
"""How many messages behind a voice message are searched for our notes about it."""
_OPEN, _CLOSE = "“", "”"
_GOES_ON, _FROM_ABOVE = " …", "… "
_PLAIN_QUOTES = str.maketrans(_OPEN + _CLOSE, '""')


def tidied(words: str) -> str:
    """Transcribed words as they are taken and shown: on one line, without the quotes that enclose them."""
    return line(words, MOST).translate(_PLAIN_QUOTES)


def notes(words: str) -> Iterator[str]:
    """The messages that show tidied words, one after the other. Nothing in them is markup."""
    before = ""
    while words:
        part = _beginning(words)
        words = words[len(part) :]
        yield f"{MARK}{before}{_OPEN}{_escaped(part)}{_CLOSE}{_GOES_ON if words else ''}"
        before = _FROM_ABOVE


def note_on(message: discord.Message) -> int | None:
    """The voice message (its id) that a message of ours is a note about; None if it is none."""
    reference = message.reference
    if reference is None or not message.flags.suppress_notifications or not message.content.startswith(MARK):
        return None
    return reference.message_id


def shows_words(message: discord.Message) -> bool:
    """Whether a message of ours shows words of a voice message."""
    return note_on(message) is not None and message.content.startswith((MARK + _OPEN, MARK + _FROM_ABOVE))


async def notes_behind(
    channel: discord.abc.Messageable, voice_ids: Collection[int], me: discord.abc.User | None
) -> list[discord.Message]:
    """The notes of `me` about these voice messages of a channel. Raises ChatError."""
    oldest = discord.Object(min(voice_ids))
    with discord_errors():
        behind = [one async for one in channel.history(limit=BEHIND, after=oldest)]
    return [one for one in behind if one.author == me and note_on(one) in voice_ids]


def words_in(messages: Iterable[discord.Message], me: discord.abc.Snowflake | None) -> dict[int, str]:
    """The words of voice messages, by their ids, as notes among these messages show them that `me` wrote.

    Not if the last notes are missing: we were killed between two of them, and will begin again.
    """
    found: dict[int, str] = {}
    unfinished = set[int]()
    for message in sorted(messages, key=lambda one: one.id):
        voice_id = note_on(message)
        if voice_id is None or me is None or message.author.id != me.id or not shows_words(message):
            continue
        text = message.content.removeprefix(MARK)
        before = found.get(voice_id, "") if text.startswith(_FROM_ABOVE) else ""
        goes_on = text.endswith(_CLOSE + _GOES_ON)
        (unfinished.add if goes_on else unfinished.discard)(voice_id)
        text = text.removeprefix(_FROM_ABOVE).removesuffix(_GOES_ON if goes_on else "")
        found[voice_id] = before + unmarked(text.removeprefix(_OPEN).removesuffix(_CLOSE).replace("\\<", "<"))
    return {one: words for one, words in found.items() if one not in unfinished}


def _beginning(words: str) -> str:
    """The beginning that fits into one message, up to a blank if there is one not far from the end."""
    if utf16_length(_escaped(words)) <= PIECE:
        return words
    most = PIECE
    while utf16_length(_escaped(part := utf16_prefix(words, most))) > PIECE:
        most -= 50
    cut = part.rfind(" ") + 1
    return part[:cut] if cut > len(part) // 2 else part


def _escaped(words: str) -> str:
    return plain(words).replace("<", "\\<")  # "<" begins mentions and times
