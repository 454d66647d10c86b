"""An answer on its way into Discord: shown while it is written, complete at the end.

Knows nothing about models, memory or what the answer says; `split` decides where messages end, `sending`
calls Discord.

`push` never waits for Discord. It starts a short task, the pen, which waits until the rate limit allows,
writes what there is by then, and ends; there is at most one. `finish` lets the pen end and writes the rest
itself, so its errors reach the caller. A message that is full is final; only the last one is edited.

Five messages are enough for people to scroll past, and as many as Discord takes at once: what does not fit
into one more message then comes as a file. The live view ends there, for only the end tells which it is.

When Discord fails, what is visible stays and the rest is said again elsewhere: a deleted message (404) is
followed by a new one; a failed edit ends the live view, and what its message already shows counts as said.

While the model uses tools, the live view ends with a line that says so (`doing`). That isn't part of the
answer: the next words replace it, and a message that shows nothing else is deleted if no words come.
What turns out to be no part of the answer (`retract`) is replaced by it, as half of one is after a restart.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Self

import discord

from discoclaw.bot import wire
from discoclaw.bot.proposals import offered
from discoclaw.bot.sending import ANSWER, NO_BUTTONS, REST, Below, Channel, Row, Sender, Sent, elsewhere, stop
from discoclaw.bot.split import LIMIT, Attachment, Message, Piece, Splitter, is_enough, split
from discoclaw.bot.threads import OpenThreads
from discoclaw.bot.wire import discord_errors
from discoclaw.core.errors import ChatBlocked, ChatError, ChatGone, ChatTooLong, ChatUnavailable
from discoclaw.core.message import Place
from discoclaw.core.ports import AnyOffer, Ending, Held
from discoclaw.core.text import collapse, ends_blank, scrub, shows_nothing, speaker, utf16_length
from discoclaw.show.markup import NOTE, plain

log = logging.getLogger(__name__)

MOST_MESSAGES = 5
ANSWER_FILE = "answer.md"


class DiscordReply:
    """The port `Reply` for one message. A context manager; or call `start` first and `close` last.

    `shown` is called with the ids of each message that is sent, and of its channel. `onto` are messages that
    the answer replaces, because they show a part of one. `below` are the buttons of its last message, if it
    is to have any.
    """

    def __init__(
        self,
        channel: Channel,
        to: discord.Message | discord.PartialMessage | None,
        *,
        edit_every_s: float = 1.25,
        now: Callable[[], float] = time.monotonic,
        retry_after_s: Sequence[float] = (0.5, 2.0),
        shown: Callable[[str, str], None] = lambda message_id, channel_id: None,
        onto: Sequence[Sent] = (),
        below: Below | None = None,
    ) -> None:
        self._sender = Sender(channel, to, retry_after_s, shown)
        self._edit_every_s = edit_every_s
        self._now = now
        self._text = Splitter()
        self._pushed: list[str] = []  # all of it
        self._arrived: list[str] = []
        self._files = True  # until Discord refuses one
        self._full: list[Sent] = []  # messages that are complete
        self._retracted = False
        self._below = below
        self._row: Row | None = None  # the buttons of the live message, if they are known
        self._live: Sent | None = None
        self._onto: list[Sent] = []  # the next live messages
        self._replace(onto)
        self._shown: Piece | None = None
        self._doing = ""  # the line below the text
        self._noted = ""  # that line, as the live message shows it
        self._streaming = True
        self._news = False
        self._began = False
        self._due: float | None = None
        self._hurry = asyncio.Event()
        self._pen: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def start(self) -> None:
        """Show that we are typing, until the first text."""
        if self._sender.first is None:
            self._sender.typing.start()

    async def branch_off(self, name: str) -> Place | None:
        """Stay here, and return None."""
        return None

    async def go_to(self, thread: discord.Thread, half: Sequence[str]) -> None:
        """Give the answer in a thread; `half` are the ids of messages there that it replaces."""
        await self._sender.typing.stop()
        self.be_in(thread, half)
        self.start()

    def be_in(self, thread: discord.Thread, half: Sequence[str] = ()) -> None:
        """Give the answer, which is not started yet, in a thread; `half` as for `go_to`."""
        self._sender = self._sender.to(thread)
        self._replace([discord.PartialMessage(channel=thread, id=int(one)) for one in half])

    def hold(self) -> None:
        """Show nothing before `finish`."""
        self._streaming = False

    def _replace(self, messages: Sequence[Sent]) -> None:
        """Show the answer in these messages, and the rest of it in new ones."""
        self._onto = list(messages)
        self._sender.count = len(messages)
        self._live = self._next()

    def _next(self) -> Sent | None:
        return self._onto.pop(0) if self._onto else None

    @property
    def held(self) -> Held:
        """The answer so far, as it may be shown later."""
        there = [one.id for one in (*self._full, self._live, *self._onto) if one is not None]
        return Held("".join(self._pushed), "", self._sender.turn_id, shown=tuple(map(str, there)))

    async def close(self) -> None:
        """Stop whatever still runs. Text that `finish` has not shown is given up."""
        await self._sender.typing.stop()
        await stop(self._pen)

    async def drop(self) -> None:
        """Stop typing and remove the note, because nothing will be said."""
        await self.close()
        await self._drop_note()

    @property
    def unsaid(self) -> str:
        """The pushed text that can't be seen: after an error of `finish`, the part to say elsewhere."""
        shown = self._shown.source if isinstance(self._shown, Message) else ""
        left = (self._text.left + "".join(self._arrived))[len(shown) :]
        return left if shown or not left else self._text.opened + left

    async def push(self, text: str) -> None:
        """A further piece of the answer; shown when the rate limit allows. Does not wait for Discord."""
        if not text:
            return
        self._pushed.append(text)
        self._arrived.append(text)
        if not ends_blank(text):
            self._doing = ""
        if self._due is None:
            self._due = self._now() + self._edit_every_s
        if not self._began and is_enough("".join(self._arrived)):
            self._due = self._now()
            self._hurry.set()
        self._wake()

    async def retract(self, left: str) -> None:
        """Take back what was pushed but `left`. Does not wait for Discord."""
        self._pushed, self._arrived, self._retracted = [left], [left], True
        self._wake()

    async def doing(self, line: str) -> None:
        """Show below the text what is being done, until more text comes. Does not wait for Discord.

        It comes late enough that what takes a moment only is not shown.
        """
        if self._live is not None and self._shown is None and not self._noted:
            return  # an answer that was interrupted, and is not to vanish for this
        self._doing = line
        self._due = self._now() + self._edit_every_s
        self._wake()

    async def note(self, sentences: Sequence[str]) -> None:
        """Small print below the answer, with other people's words in it, such as the names of files."""
        await self.push("\n\n" + "\n".join(f"{NOTE}{plain(collapse(one))}" for one in sentences))

    def _wake(self) -> None:
        self._news = True
        if self._streaming and (self._pen is None or self._pen.done()):
            self._pen = asyncio.create_task(self._write_while_news())

    async def finish(self, ending: Ending = "other") -> str | None:
        """Show everything pushed, completely. Returns the id of the first message, None if nothing was said.

        Raises `ChatError` when Discord did not take it; `unsaid` then holds what is missing.
        """
        await self._end_live_view()
        if self._retracted:
            self._begin_anew()
        self._take_arrived(last=True)
        if shows_nothing(self._text.left):
            await self._drop_note()
        if self._sender.first is not None or not shows_nothing(self._text.left):
            while piece := self._text.rest():
                last = ends_blank(self._text.left, len(piece.source))
                if len(self._full) >= MOST_MESSAGES and not last:
                    if not self._files:
                        raise ChatTooLong("the answer is too long for messages, and files are refused there")
                    piece, last = self._text.remainder(ANSWER_FILE), True
                await self._say(piece, self._row_after(ending) if last else NO_BUTTONS)
            # What is left of the messages that this answer replaced goes.
            for one in (one for one in (self._live, *self._onto) if one is not None):
                try:
                    await self._sender.delete(one)
                except ChatError as error:
                    log.info("what an answer replaces stays: %s", error)
                self._sender.forget(one)
        self._live = self._shown = None
        self._onto.clear()
        return str(self._sender.first.id) if self._sender.first else None

    async def _end_live_view(self) -> None:
        self._streaming = False
        self._hurry.set()
        if self._pen is not None:
            await asyncio.wait([self._pen])  # not awaited itself: a cancel of ours must not end up in it
            if not self._pen.cancelled() and (fault := self._pen.exception()) is not None:
                log.error("the live view of an answer failed", exc_info=fault)
        await self._sender.typing.stop()

    async def unsend(self) -> None:
        """Remove all that was shown, also half an answer that this one was to replace."""
        await self._end_live_view()  # a message on its way has its id afterwards
        there = (one for one in (self._live, *self._onto) if one is not None)
        self._sender.sent += [one for one in there if one not in self._sender.sent]
        await self._sender.unsend()

    def _row_after(self, ending: Ending) -> Row:
        above = [one.id for one in self._full]
        return self._below.after(ending, above) if self._below is not None else NO_BUTTONS

    async def offer(self, offer: AnyOffer) -> None:
        """Show a proposal with its buttons, as a card below the answer. Raises `ChatError`."""
        await self._sender.send_offer(offered(offer))

    async def fail(self, text: str, also: Sequence[str] = (), *, ending: Ending = "other") -> None:
        """Show what was pushed, and below it, in a message of its own, why there is no more."""
        if also:
            text += f"\nThe same goes for {', '.join(plain(speaker(name)) for name in also)}."
        try:
            await self.finish()
        except ChatError:
            await self._notice(text, ending)
            raise
        await self._notice(text, ending)

    async def _notice(self, text: str, ending: Ending = "other") -> None:
        pieces = split(scrub(text))
        for piece in pieces:
            row = self._row_after(ending) if piece is pieces[-1] else NO_BUTTONS
            self._full.append(await self._sender.send(piece, row))

    # --- the live view ---

    async def _write_while_news(self) -> None:
        while self._news:
            wait = (self._due or 0.0) - self._now()
            if wait > 0:  # the rate limit, or `_hurry`
                with suppress(TimeoutError):
                    async with asyncio.timeout(wait):
                        await self._hurry.wait()
            self._began = True
            if not self._streaming:
                return  # `finish` has come, and writes
            self._hurry.clear()
            try:
                await self._write()
            except ChatError as error:
                self._streaming = False
                log.info("the live view of an answer ends: %s", error)
                return
            self._due = self._now() + self._edit_every_s

    async def _write(self) -> None:
        if self._retracted:
            self._begin_anew()
        self._take_arrived()
        if self._sender.first is None and shows_nothing(self._text.left):
            if self._doing:
                await self._show(None)
            return
        while len(self._full) < MOST_MESSAGES and (piece := self._text.settled()):
            await self._say(piece)
        if len(self._full) >= MOST_MESSAGES:
            return
        draft = self._text.draft()
        if self._doing != self._noted or (draft is not None and not self._is_shown(draft)):
            await self._show(draft)

    def _take_arrived(self, *, last: bool = False) -> None:
        """Hand what has arrived to the splitter; half an emoji waits for its other half."""
        text, self._arrived, self._news = "".join(self._arrived), [], False
        if not last and "\ud800" <= text[-1:] <= "\udbff":
            self._arrived.append(text[-1])
            text = text[:-1]
        self._text.add(scrub(text))

    async def _show(self, draft: Piece | None) -> None:
        """Show the text so far, and the line below it if there is room for both."""
        text, doing = draft.text if draft is not None else "", self._doing
        both = f"{text.rstrip()}\n\n{doing}".lstrip() if doing else text
        if utf16_length(both) > LIMIT:
            both, doing = text, ""
        if not both:
            return
        row = self._below.live() if self._below is not None else NO_BUTTONS
        if self._live is not None:
            try:
                await self._sender.edit(self._live, Message(both), row if row != self._row else None)
            except ChatGone:
                self._forget_live()
        if self._live is None:
            self._live = await self._sender.send(Message(both), row)
        self._shown, self._noted, self._row = draft, doing, row

    async def _drop_note(self) -> None:
        """Delete the live message if it shows nothing but what was being done."""
        if self._live is None or self._shown is not None or not self._noted:
            return
        try:
            await self._sender.delete(self._live)
        except ChatError as error:
            log.info("a line that is over could not be deleted: %s", error)
        self._forget_live()

    def _begin_anew(self) -> None:
        """Forget what was written, and replace the messages that show it."""
        self._replace([one for one in (*self._full, self._live, *self._onto) if one is not None])
        self._retracted, self._text, self._full, self._shown, self._noted = False, Splitter(), [], None, ""

    async def _say(self, piece: Piece, row: Row = NO_BUTTONS) -> None:
        """Show `piece` for good and go on behind it; if the live message fails us, behind what that shows."""
        message = self._live
        if self._live is None:
            try:
                message = await self._sender.send(piece, row)
            except ChatError as error:
                if not _is_about_file(error, piece):
                    raise
                self._give_up_files(error)
                return
        elif isinstance(piece, Attachment) or not self._is_shown(piece) or row != self._row:
            live, buttons = self._live, row if row != self._row else None
            try:
                await self._sender.repeated(lambda: self._sender.edit(live, piece, buttons))
            except ChatGone:
                self._forget_live()
                self._live = self._next()
                return
            except ChatError as error:
                if _is_about_file(error, piece):
                    self._give_up_files(error)
                    return
                if self._shown is None and not self._noted and isinstance(error, ChatUnavailable):
                    raise  # what it replaces stays, and it can be tried again
                log.info("an answer goes on in a new message: %s", error)
                await self._drop_note()
                if isinstance(self._shown, Message):
                    self._accept(self._shown, live)
                self._live = self._shown = None
                return
        self._accept(piece, message)

    def _accept(self, piece: Piece, message: Sent | None) -> None:
        self._text.accept(piece)
        self._full += [message] if message is not None else []
        self._live, self._shown = self._next(), None
        self._noted = ""

    def _give_up_files(self, error: ChatError) -> None:
        """Say in messages what was to be a file."""
        log.info("an answer goes on without files: %s", error)
        self._files = False
        self._text.without_files()

    def _is_shown(self, piece: Piece) -> bool:
        """Whether an edit would change nothing: Discord trims the ends."""
        return not self._noted and self._shown is not None and self._shown.text.strip() == piece.text.strip()

    def _forget_live(self) -> None:
        """Somebody deleted our message; what it showed is said again."""
        self._sender.forget(self._live)
        self._live = self._shown = None
        self._noted = ""


async def in_dm(
    person: discord.User | discord.Member,
    text: str,
    shown: Callable[[str, str], None] = lambda message_id, channel_id: None,
    replies: list[DiscordReply] | None = None,
) -> str | None:
    """Send somebody a text in a DM. Returns its first message's id. Raises `ChatError`.

    `shown` is as in `DiscordReply`, which `replies` gets before anything is sent.
    """
    with discord_errors():
        channel = await person.create_dm()
    async with DiscordReply(channel, None, edit_every_s=0.0, shown=shown) as reply:
        if replies is not None:
            replies.append(reply)
        await reply.push(text)
        return await reply.finish()


def _is_about_file(error: ChatError, piece: Piece) -> bool:
    """Whether a message may have been refused for its file: for its size, or because none are allowed."""
    return isinstance(piece, Attachment) and not isinstance(error, (ChatBlocked, ChatGone, ChatUnavailable))


# ----------------------------------------------------------------------
# The answer to one message of a person, who is told when Discord refuses it.

NO_THREADS = "\n\n-# I'm set to answer in threads here, but Discord doesn't let me open one."
AGAIN = "\n\n-# I was restarted in the middle of this answer, so I wrote it again."


class Answer(DiscordReply):
    """A reply that reaches its person in a DM when Discord refuses it where they asked: nobody is ignored.

    `half`: the messages of an answer that was interrupted. They become this answer. `turn_id`: what it
    answers, which is the message unless a button asked for it. `anew`: that was another answer.
    """

    def __init__(
        self,
        message: discord.Message,
        threads: OpenThreads,
        edit_every_s: float,
        shown: Callable[[str, str], None],
        half: Sequence[str] = (),
        below: Below | None = None,
        turn_id: str = "",
        anew: bool = True,
    ) -> None:
        onto = [discord.PartialMessage(channel=message.channel, id=int(one)) for one in half]
        super().__init__(
            message.channel, message, edit_every_s=edit_every_s, shown=shown, onto=onto, below=below
        )
        self._turn_id = turn_id or str(message.id)
        # Messages of the answer that it replaces have these nonces, and maybe not all of them are known.
        self._sender.turn_id = "" if half and anew else self._turn_id
        self._asked = message
        self._shown_id = shown
        self._in_dm: list[DiscordReply] = []
        self._threads = threads
        self._half = half
        self._said = False
        self._last = AGAIN if half and anew else ""
        self._channel: discord.abc.Snowflake = message.channel

    async def branch_off(self, name: str) -> Place | None:
        """Go on in a thread, as the port says. Where there can be none, one answer says so."""
        try:
            thread = await self._threads.open(self._asked, name)
        except ChatError as error:
            log.info("no thread for the answer to %s: %s", self._asked.id, error)
            passing = isinstance(error, ChatUnavailable | ChatGone)  # or the question was deleted
            if self._asked.channel.id not in self._threads.told and not passing:
                self._threads.told.add(self._asked.channel.id)
                self._last += NO_THREADS
            return None
        await self.go_to(thread, self._half)
        return wire.place_of(thread)

    def be_in(self, thread: discord.Thread, half: Sequence[str] = ()) -> None:
        super().be_in(thread, half)
        self._channel = thread

    @property
    def held(self) -> Held:
        """The answer so far, and what it is a reply to."""
        asked_in, asked_id = str(self._asked.channel.id), str(self._asked.id)
        held, channel_id = super().held, str(self._channel.id)
        return Held(held.text, channel_id, self._turn_id, asked_in, asked_id, held.shown)

    async def push(self, text: str) -> None:
        await super().push(text)
        self._said = self._said or not ends_blank(text)

    async def finish(self, ending: Ending = "other") -> str | None:
        """Show everything pushed. Returns its first message's id, also if only a part could be shown."""
        if self._said and self._last:
            await super().push(self._last)
            self._last = ""
        try:
            return await super().finish(ending)
        except ChatUnavailable:
            raise  # it is tried again later
        except ChatError as error:
            await self._elsewhere(self.unsaid, error)
            if self._sender.first is None or isinstance(error, ChatGone):
                raise
            log.warning("the rest of an answer could not be said where it was asked for: %s", error)
            return str(self._sender.first.id)

    async def unsend(self) -> None:
        """Remove all that was shown, also in a DM. A thread that was opened for it gets another name."""
        await super().unsend()
        for reply in self._in_dm:
            await reply.unsend()
        await self._threads.deleted([self._asked.id])

    async def _notice(self, text: str, ending: Ending = "other") -> None:
        try:
            await super()._notice(text, ending)
        except ChatUnavailable:
            raise
        except ChatError as error:
            await self._elsewhere(text, error)
            raise

    async def _elsewhere(self, text: str, error: ChatError) -> None:
        async def to_person(sentence: str) -> None:
            await in_dm(self._asked.author, f"{sentence}\n\n{text}", self._shown_id, self._in_dm)

        await elsewhere(
            error,
            what=ANSWER if self._sender.first is None else REST,
            place=getattr(self._asked.channel, "mention", "that channel"),
            in_dm=to_person if self._asked.guild is not None else None,
            there=super()._notice,
        )
