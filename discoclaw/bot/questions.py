"""Asks people in a DM which side of a contradiction is right.

`Questions` follows the ledger, and `ask` may be called as often as one likes: which questions were asked is
kept in a cursor for each person. A few wait at a time, and the next comes when one is answered, here or with
a command. What only the model that tidies raised comes one a day at most, when a day later something changes
or is said. Whoever takes no DMs is not asked again; `!memory show` and `!memory settle` have the same
questions. People who have opted out are left alone.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial

import discord

from discoclaw.bot.access import Access
from discoclaw.bot.layout import rendered, send_either
from discoclaw.bot.links import source_words
from discoclaw.bot.wire import discord_errors
from discoclaw.bot.words import can_be_pressed, closed, words_of
from discoclaw.commands.memories import as_read
from discoclaw.commands.questions import ANSWERS, TITLE, Open, answers, open_on
from discoclaw.core.errors import ChatError, ChatForbidden, ChatGone
from discoclaw.core.history import History
from discoclaw.core.item import Source
from discoclaw.core.patch import Suggestion
from discoclaw.core.subject import user_of, user_subject
from discoclaw.core.text import clip
from discoclaw.core.times import ms_of_iso
from discoclaw.core.usage import Payer, paid_by
from discoclaw.core.view import Conflict, View
from discoclaw.memory.cursors import Cursors
from discoclaw.memory.people.asked_back import AskedBack
from discoclaw.memory.people.choices import Choices
from discoclaw.memory.subjects.store import Memory
from discoclaw.show import text as shown
from discoclaw.show.answer import GREY, YELLOW, Answer, Row
from discoclaw.show.markup import NOTE, ago, plain, said

log = logging.getLogger(__name__)

# ---------------------------------------------------------------------- asking in a DM

MOST_OPEN = 3
NOT_SENT = ""
"""Stands in the cursor for the message of a question that could not be asked."""
MEANWHILE = f"{NOTE}settled meanwhile"
TAKEN_BACK = f"{NOTE}a question about something that you took back"

Suggest = Callable[[View, Conflict], Awaitable[Suggestion | None]]
"""How a small model would settle a conflict of the view; None when it does not say."""


class _Noted:
    """The cursor of one person: the messages of what was asked, by the event asked about.

    Nothing is noted any more once the person's memory was erased.
    """

    def __init__(self, cursors: Cursors, memory: Memory, subject: str, name: str) -> None:
        self._cursors = cursors
        self._name = name
        self._erased_at = partial(memory.erased_at, subject)
        self._began = self._erased_at()

    async def all(self) -> dict[str, str]:
        return {key: str(value) for key, value in (await self._cursors.get(self._name)).items()}

    async def add(self, event_id: str, message_id: str) -> None:
        await self._update(lambda known: {**known, event_id: message_id})

    async def drop(self, event_id: str) -> None:
        await self._update(lambda known: {key: value for key, value in known.items() if key != event_id})

    async def _update(self, change: Callable[[Mapping[str, object]], Mapping[str, object]]) -> None:
        await self._cursors.update(
            self._name, lambda known: change(known) if self._erased_at() == self._began else None
        )


@dataclass(frozen=True, slots=True)
class Questions:
    """Asks. `suggest` may be None: questions then come without a suggestion."""

    client: discord.Client
    access: Access
    memory: Memory
    choices: Choices
    cursors: Cursors
    asked_back: AskedBack
    suggest: Suggest | None = None

    async def ask(self, subject: str) -> None:
        """Ask a person what they were not asked yet. Raises ChatError or MemoryFault when that fails."""
        user_id = user_of(subject)
        if user_id is None or not user_id.isdigit() or self.choices.opted_out(user_id):
            return
        found = await self._open(subject)
        noted = _Noted(self.cursors, self.memory, subject, f"questions-{user_id}")
        asked = await noted.all()
        for gone in [key for key in asked if key not in found]:
            await self._close(user_id, asked.pop(gone))
            await noted.drop(gone)
        # The questions for today: those about what the person stated, and one that a model raised.
        new = [one for key, one in found.items() if key not in asked]
        raised = [one for one in new if _is_of_a_model(one.conflict)]
        today = raised[:1] if raised and await self.asked_back.may_ask(user_id) else []
        waiting = sum(message != NOT_SENT for message in asked.values())
        new = [one for one in new if one in today or not _is_of_a_model(one.conflict)]
        new = new[: max(0, MOST_OPEN - waiting)]
        if not new:
            return
        try:
            with discord_errors():
                user = self.client.get_user(int(user_id)) or await self.client.fetch_user(int(user_id))
        except ChatGone:
            return
        if not await self.access.may_talk(user):
            return
        history = await self.memory.history(subject)
        for one in new:
            event_id, card = one.conflict.event_id, await self._card(user_id, one, history)
            if event_id in await self._open(subject):  # a suggestion takes its time
                if _is_of_a_model(one.conflict):
                    await self.asked_back.note(user_id, event_id)
                try:
                    message_id = str((await send_either(user.send, card)).id)
                except ChatForbidden as error:
                    log.info("%s takes no questions: %s", user_id, error)
                    message_id = NOT_SENT
                await noted.add(event_id, message_id)

    async def _open(self, subject: str) -> Mapping[str, Open]:
        """The open questions by the event that noted each; on HEAD's branch where it is on several."""
        branches = await self.memory.branches(subject)
        names = sorted(branches.all, key=lambda name: name != branches.current)
        return await open_on(names, partial(self.memory.view, subject), confidential=False)

    async def _card(self, user_id: str, one: Open, history: History) -> Answer:
        with paid_by(Payer(user_id)):
            hint = await self.suggest(one.view, one.conflict) if self.suggest is not None else None
        guess = []
        if hint is not None:
            guess.append(f"my guess: {ANSWERS[hint.how].lower()} ({said(hint.reason, 200)})")
        first, second, why = shown.sides(*as_read(one.view, one.conflict))
        about = " · ".join(filter(None, (self._second(one, history), plain(why))))
        item = one.view.items.get(one.conflict.item_id)
        since = self._where(item.updated_at, item.source) if item is not None else ""
        known = f"settle:{user_id}:{one.conflict.event_id}:{{how}}:{one.branch}"
        return Answer(
            TITLE,
            [Row(plain(first), since), Row(plain(second[:1].upper() + second[1:]), about)],
            small=["a question about what I remember about you"],
            foot=guess,
            controls=answers(one.conflict, known),
            colour=YELLOW,
        )

    def _second(self, one: Open, history: History) -> str:
        """When and where the other side was said: as an item, or in the talk that an event rests on."""
        other, event = one.view.items.get(one.conflict.other_id), history.event(one.conflict.event_id)
        if other is not None:
            return self._where(other.updated_at, other.source)
        if event is None or (source := Source.from_text(event.source)).type != "discord":
            return ""
        return self._where(ms_of_iso(event.timestamp), source)

    def _where(self, time_ms: int, source: Source) -> str:
        return f"{ago(time_ms)} · {source_words(self.client, source)}"

    async def _close(self, user_id: str, message_id: str) -> None:
        """A question was answered: below the message where it was asked nothing is left to press."""
        if not message_id.isdigit():
            return
        try:
            with discord_errors():
                user = self.client.get_user(int(user_id)) or await self.client.fetch_user(int(user_id))
                dm = user.dm_channel or await user.create_dm()
                message = await dm.fetch_message(int(message_id))
                if not can_be_pressed(message):
                    return  # a button was pressed, and the message says the outcome
                gone = await self._was_taken_back(user_subject(user_id), words_of(message))
                if message.flags.components_v2:
                    row = [Row(f"{TAKEN_BACK}\n{MEANWHILE}")]
                    card = Answer(rows=row, colour=GREY) if gone else closed(message, MEANWHILE)
                    await message.edit(view=rendered(card).view)
                else:
                    content = f"{TAKEN_BACK if gone else message.content}\n{MEANWHILE}"
                    await message.edit(content=clip(content, 2000), view=None)
        except ChatError as error:
            log.info("an answered question could not be closed: %s", error)

    async def _was_taken_back(self, subject: str, text: str) -> bool:
        """Whether a question says what the person took back, in any persona. Raises MemoryFault."""
        for name in (await self.memory.branches(subject)).all:
            taken = (await self.memory.view(subject, name)).purges(subject)
            if any(one.words.hold(text) for one in taken if not one.open_only):
                return True
        return False


def _is_of_a_model(conflict: Conflict) -> bool:
    """Whether tidying raised it, which compares two items. What talk says against an item is none yet."""
    return conflict.other_id != ""
