"""Voice messages become words before they are taken as talk.

Only recordings of people who may talk to us leave this process, from places where somebody may be answered;
those of people who want no memory only if the message is for us. A recording is kept nowhere. What can't be
transcribed is told to the person if the message was for us, and is talk without words.
"""

import asyncio
import logging
import re
from collections.abc import AsyncGenerator, Collection, Iterable, Iterator
from contextlib import asynccontextmanager
from typing import Final

import discord

from discoclaw.bot import wire
from discoclaw.bot.layout import SILENT
from discoclaw.bot.sending import Typing
from discoclaw.bot.wire import channel_of, discord_errors
from discoclaw.core.errors import (
    ChatError,
    TranscriptionError,
    TranscriptionRefused,
    TranscriptionUnavailable,
)
from discoclaw.core.message import FileRef, Inbound
from discoclaw.core.ports import Clock, Files, Passive, Transcriber
from discoclaw.core.redact import Redactor
from discoclaw.core.text import scrub, utf16_length, utf16_prefix
from discoclaw.core.usage import Payer, paid_by
from discoclaw.core.values import dataclass, replace
from discoclaw.session.desk import Slots
from discoclaw.session.talk import Talk
from discoclaw.show.markup import NOTE, plain, unmarked
from discoclaw.show.words import count, line

log = logging.getLogger(__name__)

AT_ONCE: Final = 2
"""The most recordings that are transcribed at the same time: a server at home does one after another."""
MAX_BYTES: Final = 25_000_000
"""The largest recording, as OpenAI takes it."""
BYTES_PER_S: Final = 16_000
"""The most bytes of a second, four times what phones record. Senders choose the length that is claimed."""
DAY_MS: Final = 86_400_000
NAME, TYPE = "voice-message.ogg", "audio/ogg"
OFF: Final = (
    "I can't listen to voice messages here; please write it. "
    "Whoever runs me can turn it on with DISCOCLAW_TRANSCRIBE_URL."
)
OFF_AGAIN: Final = "🔇"
"""The reaction to further voice messages of the same day: nobody is ignored, and nothing is repeated."""
TOO_LONG: Final = (
    "That voice message is too long for me: I listen to {}. Please send a shorter one, or write it."
)
NO_WORDS: Final = "I heard no words in that voice message. Please say it again, or write it."
NOT_LOADED: Final = "I couldn't load that voice message from Discord. Please send it again, or write it."

_NOISE = re.compile(r"\[[^\]]*\]|\([^)]*\)|\*[^*]*\*|<\|[^|]*\|>|♪")
"""Marks that servers write for sounds that aren't speech: `[BLANK_AUDIO]`, `(silence)`, `*music*`."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The longest voice message, and how long its transcription may take (s)."""

    longest_s: int
    timeout_s: float


@dataclass(frozen=True, slots=True)
class Spoken:
    """A message with its words. `told`: there are none, and its author was told so instead of answered."""

    message: Inbound
    told: bool = False


class Voices(Passive):
    """Listens to voice messages with `transcriber`, None if there is none."""

    def __init__(
        self,
        client: discord.Client,
        talk: Talk,
        files: Files,
        transcriber: Transcriber | None,
        limits: Limits,
        redactor: Redactor,
        *,
        clock: Clock,
    ) -> None:
        self._client = client
        self._talk = talk
        self._files = files
        self._transcriber = transcriber
        self._limits = limits
        self._redactor = redactor
        self._clock = clock
        self._slots = Slots(AT_ONCE)
        self._failed = 0
        """How many recordings in a row the server did not answer."""
        self._tasks: set[asyncio.Task[object]] = set()
        self._under_way: set[int] = set()
        self._deleted: set[int] = set()
        """Messages under way that were deleted meanwhile."""
        self._told: dict[str, int] = {}
        """The day on which a conversation was told last that we can't listen, by session key."""

    # ------------------------------------------------------------------ the lifecycle

    async def settle(self) -> None:
        """Wait until everything that was said is words."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def close(self) -> None:
        """Give up what is under way. It was not handled then, so it is read again after the next start."""
        for task in self._tasks:
            task.cancel()
        await self.settle()
        if self._transcriber is not None:
            await self._transcriber.close()

    # ------------------------------------------------------------------ listening

    async def listen(
        self, message: discord.Message, heard: Inbound, *, known: str = "", show: bool = True
    ) -> Spoken:
        """A message with the words of its recording; any other message as it is.

        `known` are the words, if they were shown before. Otherwise they are shown now, unless not `show`.
        """
        if known:
            return Spoken(replace(heard, text=known))
        if not wire.is_voice(message) or not heard.author.allowed:
            return Spoken(heard)
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self._under_way.add(message.id)
        try:
            return await self._listen(message, heard, show=show)
        finally:
            self._tasks.discard(task)
            self._under_way.discard(message.id)
            self._deleted.discard(message.id)

    async def _listen(self, message: discord.Message, heard: Inbound, *, show: bool) -> Spoken:
        turn = await self._talk.turns.of(heard)
        for_us = await self._talk.wants_answer(turn)
        if turn.policy.respond_mode == "none" or not (for_us or turn.permission.holds):
            return Spoken(heard)
        if self._transcriber is None:
            if for_us:
                await self._say_that_it_is_off(message, heard.session_key)
            return Spoken(heard, told=for_us)
        self._talk.inboxes.delay(heard.session_key, heard.id)
        typing = Typing(message.channel)
        try:
            recording, longest = message.attachments[0], self._limits.longest_s
            most_bytes = min(MAX_BYTES, (longest + 4) * BYTES_PER_S)
            if (recording.duration or 0) > longest or recording.size > most_bytes:
                raise TranscriptionRefused("it is too long", user_message=TOO_LONG.format(_at_most(longest)))
            async with self._turn(heard.author.id):
                if for_us:
                    typing.start()
                with paid_by(Payer.of(heard)):
                    words = await self._words(self._transcriber, heard.files[0])
        except TranscriptionError as error:
            log.warning("a voice message was not transcribed: %s", error)
            if for_us:
                await self._note(message, MARK + error.user_message)
            return Spoken(heard, told=for_us)
        finally:
            await typing.stop()
        if turn.permission.erased or not (for_us or turn.permission.holds):
            return Spoken(heard, told=True)  # they were erased meanwhile, or opted out, and get no answer
        if show:
            for text in notes(words):  # Discord takes no reply to a message that was deleted
                await self._note(message, text)
            if message.id in self._deleted:  # between two notes, perhaps
                await self.remove_notes(message.channel.id, {message.id})
        return Spoken(replace(heard, text=words, late=True), told=message.id in self._deleted)

    @asynccontextmanager
    async def _turn(self, user_id: str) -> AsyncGenerator[None, None]:
        """Wait for one's turn. Raises TranscriptionUnavailable if the server is gone by then.

        Whoever has waited behind recordings that it did not answer need not wait for it too.
        """
        waits = self._slots.busy(user_id)
        async with self._slots.of(user_id):
            if waits and self._failed >= AT_ONCE:
                raise TranscriptionUnavailable("the server did not answer those before it")
            try:
                yield
            except TranscriptionUnavailable:
                self._failed += 1
                raise
            self._failed = 0

    async def _words(self, transcriber: Transcriber, file: FileRef) -> str:
        """The words of a recording, without secrets. Raises TranscriptionError."""
        try:
            audio = await self._files.download(file, MAX_BYTES)
        except ChatError as error:
            raise TranscriptionError(f"Discord did not give it ({error})", user_message=NOT_LOADED) from error
        said = await transcriber.words(audio, NAME, TYPE, timeout_s=self._limits.timeout_s)
        # What is cut off here may begin in the middle of a secret, so it is far behind what is taken.
        words = tidied(self._redactor.clean(scrub(said[: 4 * MOST])))
        if not any(map(str.isalnum, _NOISE.sub("", words))):
            raise TranscriptionRefused("it has no words", user_message=NO_WORDS)
        return words

    # ------------------------------------------------------------------ what people see

    async def _note(self, message: discord.Message, text: str) -> None:
        """A silent reply. What Discord refuses is a line in the log: the talk goes on."""
        try:
            with discord_errors():
                await message.reply(text, silent=True, suppress_embeds=True, allowed_mentions=SILENT)
        except ChatError as error:
            log.info("a note about a voice message could not be sent: %s", error)

    async def _say_that_it_is_off(self, message: discord.Message, session_key: str) -> None:
        """Say it once a day in each conversation; a reaction says it after that."""
        today = self._clock() // DAY_MS
        if self._told.get(session_key) != today:
            self._told = {key: day for key, day in self._told.items() if day == today} | {session_key: today}
            await self._note(message, MARK + OFF)
            return
        try:
            with discord_errors():
                await message.add_reaction(OFF_AGAIN)
        except ChatError as error:
            log.info("a reaction to a voice message could not be set: %s", error)

    async def remove_notes(
        self, channel_id: int, message_ids: Collection[int], known: Iterable[discord.Message] = ()
    ) -> None:
        """Messages were deleted: our notes about those that were voice messages go too.

        `known` are those of which it can be seen whether they were. After a restart nothing else says it, so
        the messages behind the others are looked at.
        """
        gone = set(message_ids) - {one.id for one in known if not wire.is_voice(one)}
        self._deleted |= gone & self._under_way
        if not gone or self._transcriber is None:
            return
        try:
            channel = await channel_of(self._client, str(channel_id))
            for note in await notes_behind(channel, gone, self._client.user):
                with discord_errors():
                    await note.delete()
        except ChatError as error:
            log.info("notes about deleted voice messages were not looked for: %s", error)


def _at_most(seconds: int) -> str:
    return f"{seconds} seconds at most" if seconds < 120 else f"{count(seconds // 60, 'minute')} at most"


# ----------------------------------------------------------------------
# The messages that show the words of a voice message: how they are written, and found again in the history.
#
#     -# 🎤 “I moved to Porto.”
#     -# 🎤 “Long ones go on ” …
#     -# 🎤 … “in the next message.”
#
# Such a message is ours, a silent reply to the voice message, and in small print; so it isn't talk. Answers
# of the model are never silent, so none of them can pass for the words of a person.

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


# ----------------------------------------------------------------------
# What somebody means who points at a message: by a reply, a link, a menu or a button.
#
# A voice message has its words in our note below it. Whoever points at the note means the voice message: the
# words are its author's, so it is theirs to take them back.


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
