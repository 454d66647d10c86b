"""One command that somebody gave: who, where, and by which means. Every command is carried out from this.

Commands act on the person who gives them and on nobody else, and on the persona of the place where there is
one. Answers to slash commands are seen by that person alone; answers to text commands are public, so private
memories stay out of them outside direct messages.
"""

import itertools
import logging
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, cast

import discord

from discoclaw.bot import naming, wire, words
from discoclaw.bot.client import DiscoClaw
from discoclaw.bot.commands.context import OFF, CommandContext, Unclear
from discoclaw.bot.layout import send_answer
from discoclaw.bot.links import message_address, source_words
from discoclaw.commands.caller import Caller, Used
from discoclaw.commands.memories import SECRET, Asked, row_of, stamp, standstill
from discoclaw.commands.spec import Command, Values
from discoclaw.core.draft import Origin
from discoclaw.core.errors import ChatError, ChatForbidden, MemoryFault, Refused
from discoclaw.core.item import Item, Sensitivity, Source
from discoclaw.core.message import Place
from discoclaw.core.ports import LINKED_WITH
from discoclaw.core.privacy import is_personal, sensitivity
from discoclaw.core.subject import user_subject
from discoclaw.core.text import utf16_length
from discoclaw.core.usage import Call as UsedCall
from discoclaw.core.usage import Payer
from discoclaw.core.yours import yours
from discoclaw.memory.subjects.inspect import Inspection, held
from discoclaw.memory.subjects.store import AnyMemory, Memory
from discoclaw.recall.named_items import Found, find, has_all, named
from discoclaw.session.agent import Shown
from discoclaw.show.answer import GREY, Answer, File, Reply, Row, Turn, message
from discoclaw.show.markup import NOTE, ago, for_people, said
from discoclaw.show.markup import words as words_of_others
from discoclaw.show.words import count, short
from discoclaw.store.files import read_in_thread

log = logging.getLogger(__name__)

TOOLS_OFF = (
    "**Tools**: switched off here, so I can't look things up or change your memory while I answer. Commands "
    "still work. Whoever runs me can switch them on with `DISCOCLAW_TOOLS_ENABLED`."
)

SUMMARY = "Summary of this conversation"
REBUILDING = "being rebuilt. What it said is not used any more; I write it again from our earlier messages."

MOST_BYTES = 8 * 1024 * 1024
"""The size of a file that every server takes, with room to spare; and the most we read of one."""
TOO_LARGE = (
    "that is larger than a file in Discord may be; whoever runs me can give it to you with "
    "`discoclaw memory export`"
)
DMS_CLOSED = (
    "I can't send you DMs, and your memory doesn't belong in public; use `/memory data export` here instead"
)
ONLY_YOURS = "only my owners can see everybody's usage; `/usage` alone shows yours"
UNREADABLE = "I can't read what was written down about calls of models just now; try again later"
UNNAMED = "I don't write down whom calls are for, so I can't tell which were yours."
NOT_WRITTEN = "I don't write down what models are used for: nothing is stored here (DISCOCLAW_STORE=none)."
NOT_COUNTED = "You have opted out, so I don't write down which calls are for you."
SENT = "I sent it to you in a DM."
USAGE_IN_DM = "I can't send you DMs, and your usage is nobody else's business; use `/usage` here instead"
_LONGEST_NAME = 60
_USER = re.compile(r"(?:<@!?)?(\d{1,20})>?")

Interaction = discord.Interaction[DiscoClaw]


@dataclass(frozen=True)
class Call(Caller):
    """A command as it was given: as a text, in a message, or as a slash command, in an interaction.

    `asked`: it is given again, by a press below a question about which memory is meant. `page`: the page of
    its card, if it is given again for another one. `opened`: by a press, for the one who pressed alone.
    """

    source: discord.Message | Interaction
    client: DiscoClaw
    context: CommandContext
    asked: Asked | None = None
    page: int = 1
    opened: bool = False
    _sent: Iterator[int] = field(default_factory=lambda: itertools.count(1), compare=False, repr=False)

    # ------------------------------------------------------------------ who and where

    @property
    def author(self) -> discord.User | discord.Member:
        """The person who gave it."""
        return self.source.user if isinstance(self.source, discord.Interaction) else self.source.author

    @property
    def user_id(self) -> str:
        """Their Discord id."""
        return str(self.author.id)

    @property
    def subject(self) -> str:
        """Their subject: whose memory the command is about."""
        return user_subject(self.user_id)

    @property
    def typed(self) -> bool:
        """Whether it was given as a text, in a message."""
        return not isinstance(self.source, discord.Interaction)

    @property
    def slash(self) -> bool:
        """Whether only its author sees its answer: it is a slash command, or a press below such an answer."""
        return isinstance(self.source, discord.Interaction) and (
            self.opened or self.source.message is None or self.source.message.flags.ephemeral
        )

    @property
    def on_card(self) -> bool:
        """Whether a press on a card gave it: there a memory needs no id, since it has buttons."""
        pressed = self.source.message if isinstance(self.source, discord.Interaction) else None
        return pressed is not None and pressed.flags.components_v2 and not self.opened

    @cached_property
    def channel(self) -> "wire.Channel":
        """The channel in which it was given; Discord names no more than the id of one that we do not know."""
        channel: Any = self.source.channel
        if channel is None and isinstance(self.source, discord.Interaction):
            number, guild = self.source.channel_id or 0, self.source.guild_id
            channel = self.client.get_partial_messageable(number, guild_id=guild)
        return cast("wire.Channel", channel)

    @cached_property
    def place(self) -> Place:
        """The place where it was given. A DM between others, or of a group, is none that we can see."""
        if isinstance(self.source, discord.Interaction) and self.source.context.private_channel:
            return wire.unknown_place(self.channel.id, None)
        return wire.place_of(self.channel, self.client.redactor)

    def worded(self, command: Command, values: Values) -> Values:
        """Its values, with the texts as people read them; an id is a value of its own, and stays."""
        named = words.names_of(self.source)
        texts = {one.name for one in command.params if one.kind == "text" and values.get(one.name)}
        return values | {name: words.resolved(values[name], named) for name in texts}

    @property
    def session_key(self) -> str:
        """The conversation it was given in."""
        return self.place.session_key(self.user_id)

    @property
    def payer(self) -> Payer:
        """For whom it calls models."""
        return Payer(self.user_id, self.place.group_id, self.place.guild_id)

    @property
    def in_private(self) -> bool:
        """Whether nobody else reads the answer."""
        return self.slash or self.place.kind == "dm"

    @property
    def files(self) -> Sequence[discord.Attachment]:
        """The files attached to a text command."""
        return () if isinstance(self.source, discord.Interaction) else self.source.attachments

    @property
    def asked_at(self) -> int:
        """When (ms) it was given."""
        return int(self.source.created_at.timestamp() * 1000)

    async def send(self, **message: Any) -> None:
        """Send one message of the answer."""
        if isinstance(self.source, discord.Interaction):
            await self.source.followup.send(ephemeral=True, **message)
        else:
            # As in `bot/sending`: another process that carries it out too then says nothing more.
            nonce = f"{self.source.id}.{next(self._sent)}"
            await self.source.reply(mention_author=False, nonce=nonce, **message)

    # ------------------------------------------------------------------ the memory it is about

    @property
    def memory(self) -> AnyMemory:
        """The memory, for a command that needs it."""
        return self.context.store

    @property
    def persona_here(self) -> str | None:
        """The persona that this place always uses; None where the person's current one counts.

        Of a question it is the persona that it was asked about.
        """
        if self.asked is not None:
            return self.asked.branch
        return self.context.places.of(self.place)

    async def last_uses(self) -> Mapping[str, int]:
        return await self.context.last_used.load(self.subject)

    async def calls(self) -> Sequence[UsedCall]:
        return await self.context.accounts.calls(0, self.user_id)

    @property
    def owner(self) -> bool:
        return self.user_id in self.client.settings.owners

    async def used(self, everybody: bool) -> Used:
        if everybody and not self.owner:
            raise Refused(ONLY_YOURS)
        accounts = self.context.accounts
        try:
            found = await accounts.lately(None if everybody else self.user_id)
        except MemoryFault as fault:
            log.warning("a person's usage can't be shown: %s", fault)
            raise Refused(UNREADABLE) from fault
        notes = [] if accounts.written else [NOT_WRITTEN]
        if not everybody and not accounts.rules.names_people:
            notes.append(UNNAMED)
        elif not everybody and self.opted_out:
            notes.append(NOT_COUNTED)
        budgets = accounts.all_spent() if everybody else accounts.spent(self.payer)
        return Used(found, accounts.rules.zone, {"server": self._server}, budgets, notes)

    def _server(self, guild_id: str) -> str:
        """The name of a server, or its id if we are not in it."""
        guild = self.client.get_guild(int(guild_id))
        return words_of_others(guild.name if guild is not None else guild_id, _LONGEST_NAME)

    async def answered_apart(self, answer: Answer) -> Reply:
        try:
            await in_dm(self, replace(answer, above=[f"You asked for this in <#{self.channel.id}>."]))
        except ChatForbidden:
            raise Refused(USAGE_IN_DM) from None
        return SENT

    @property
    def now_ms(self) -> int:
        return int(discord.utils.utcnow().timestamp() * 1000)

    @property
    def confirmed(self) -> bool:
        return self.asked is not None

    @property
    def memory_off(self) -> str:
        return OFF["memory"] if "memory" in self.context.off else ""

    def erasable(self, user: str | None) -> str:
        if user is None:
            return self.subject
        found = _USER.fullmatch(user.strip())
        if found is None:
            raise Refused(f"{user[:40]!r} isn't a user id; `!memory erase` alone is about you")
        if found[1] != self.user_id and not self.owner:
            if self.confirmed:  # they were an owner when they were asked
                raise Refused("only the person themselves or one of my owners can do that")
            raise Refused("only my owners may erase somebody else's memory; `!memory erase` is about yours")
        return user_subject(found[1])

    async def sent(self, text: str, file: File, held: str) -> Reply:
        """Send it in a DM, or where their DMs are closed, below their slash command."""
        if len(file.data) > MOST_BYTES:
            raise Refused(TOO_LARGE)
        answer = message(text, files=[file])
        if self.place.kind == "dm":
            return answer
        try:
            await in_dm(self, answer)
        except ChatForbidden:
            if not self.slash:
                raise Refused(DMS_CLOSED) from None
            return answer
        return f"I sent it to you in a DM ({held})."

    async def checked(self) -> Sequence[tuple[Inspection, Sequence[str]]]:
        assert isinstance(self.memory, Memory)  # the command needs one
        return [(await read_in_thread(held, self.memory.disk, self.subject), ())]

    @property
    def name(self) -> str:
        return self.author.display_name

    @property
    def opted_out(self) -> bool:
        return self.context.choices.opted_out(self.user_id)

    async def summary(self) -> Sequence[Row]:
        rolling = await self.context.summaries.get(self.session_key)
        if rolling.summary:
            return [Row(rolling.summary, f"updated {ago(rolling.updated_at)}", title=SUMMARY)]
        rebuilding = await self.context.loops.summary_lost(self.session_key)
        return [Row(REBUILDING if rebuilding else "none yet", title=SUMMARY)]

    async def answer_explained(self) -> Reply:
        # An answer that only they saw is told of only to them.
        aside = self.place.aside().session_key(self.user_id)
        known = (
            self.context.explained.last(one, self.user_id)
            for one in (self.session_key, *([aside] if self.slash else []))
        )
        last = max((one for one in known if one is not None), key=lambda one: one.at, default=None)
        if last is None:
            return UNKNOWN_ANSWER
        answer = await explained(self, last, "my last answer")
        return replace(answer, turn=Turn(self.user_id, "why"), page=self.page)

    @property
    def standstill(self) -> list[str]:
        return standstill(self.context.models_seen, owner=self.owner)

    def troubles(self) -> list[str]:
        return [*self.standstill, *([] if self.client.settings.tools_enabled else [TOOLS_OFF])]

    async def those(
        self, items: Collection[Item], wanted: str, verb: str, *, unseen: bool = False
    ) -> list[Item]:
        """The memories that are meant, one or several. Raises Unclear, which is a question, if not certain.

        `unseen`: one that may not be shown here counts too, if it is named exactly, since its text is not
        repeated. `verb` is the command that asks.
        """
        if self.asked is not None:
            return _as_asked(self, items, self.asked, unseen=unseen)
        if (certain := _certain(self, items, wanted, unseen=unseen)) is not None:
            return [certain]
        key = self.user_id, self.session_key
        if (stamps := self.context.listed.numbered(key, wanted)) is not None:
            branch = self.persona_here or (await self.memory.branches(self.subject)).current
            return _as_asked(self, items, Asked(verb, ",".join(stamps), branch), unseen=unseen)
        found, hidden = await _shown(self, items, wanted, verb)
        if len(found.meant) == 1 and not found.near:
            raise await _question(self, verb, found.meant, naming.one(verb, found.meant[0], hidden=hidden))
        if not found.meant and len(found.near) == 1:
            raise await _question(self, verb, found.near, naming.near(found.near[0]))
        ticked = {item.id for item in found.meant}
        every = [*found.meant, *found.near]
        self.context.listed.keep(key, map(stamp, every))
        page = max(1, min(self.page, -(-len(every) // naming.ON_A_PAGE)))
        text = naming.listed(verb, wanted, every, ticked, page, hidden=hidden, by_text=not self.slash)
        branch = self.persona_here or (await self.memory.branches(self.subject)).current
        raise Unclear(naming.about_list(text, self.user_id, verb, every, ticked, branch, page))

    async def the_one(
        self, items: Collection[Item], wanted: str, verb: str, *, gone: bool = False, new: str = ""
    ) -> Item:
        """The one memory that is meant. Raises Unclear, which is a question, if that is not certain.

        `gone`: one that was forgotten counts too, by its id. `new` is what the memory shall say then.
        """
        if self.asked is not None:
            return _as_asked(self, items, self.asked, gone=gone)[0]
        if (certain := _certain(self, items, wanted, gone=gone)) is not None:
            return certain
        found, hidden = await _shown(self, items, wanted, verb)
        if verb == READS and len(found.meant) == 1:
            return found.meant[0]
        every = [*found.meant, *found.near]
        if len(every) > 1:
            text = naming.several(verb, len(every), new=new, hidden=hidden)
        elif found.meant:
            text = naming.one(verb, every[0], new=new, hidden=hidden)
        else:
            text = naming.near(every[0], new=new)
        raise await _question(self, verb, every, text)

    # ------------------------------------------------------------------ what is recorded, what is shown

    @property
    def metadata(self) -> dict[str, Any]:
        """The metadata of a change: how it came about."""
        return {"by": "button" if self.asked is not None else "command", "at": self._at}

    @property
    def _at(self) -> str:
        pressed = self.source.message if isinstance(self.source, discord.Interaction) else None
        return f"{self.channel.id}/{(pressed or self.source).id}"

    def origin(self) -> Origin:
        """A command is the person's own statement, in this message."""
        return Origin(
            "stated",
            said_at=self.now_ms,
            private=self.place.private,
            evidence=self._at,
            dm_privacy=self.context.dm_privacy,
        )

    def marked(self, text: str) -> Sensitivity:
        """How private a text is because of how it was given: personal, and for nobody else to see."""
        return "private" if self.slash and is_personal(text) else "normal"

    def where(self, source: Source, words: str = "where you said it") -> str:
        """A link to where something was said: as words in a card, as an address in a text."""
        return source_words(self.client, source, "" if self.typed else words)

    def called(self, item: Item) -> str:
        return words_of_others(yours(item.text))

    def clean(self, text: str) -> tuple[str, str]:
        clean = self.client.redactor(text)
        return clean.text, SECRET if clean.redacted or clean.flagged else ""

    def hides(self, about: str) -> bool:
        """By the rule that holds for what is remembered."""
        secret = sensitivity(
            "fact",
            about,
            inferred=False,
            learned_privately=self.place.private,
            marked=self.marked(about),
            rule=self.context.dm_privacy,
        )
        return secret != "normal"


# ----------------------------------------------------------------------
# Which memories somebody means: by id, key or text at once, by some of their words after a question.
#
# The question has buttons and a menu (`naming`), and whoever answers it gives the same command again, with
# `Call.asked`. For a command that takes several it is a list: what is likely meant is ticked, what came near
# is not, and "1 3" as text names two of the list that was shown last.

READS = "why"
"""The command that changes nothing: if one memory matches, it needs no question."""
_LONGEST = 2000


def _certain(
    call: Call, items: Iterable[Item], wanted: str, *, gone: bool = False, unseen: bool = False
) -> Item | None:
    """The item that is named exactly. A list that is turned acts on nothing."""
    if isinstance(call.source, discord.Interaction) and call.source.message is not None:
        return None
    return named([one for one in items if (gone or one.active) and (unseen or call.may_show(one))], wanted)


async def _shown(call: Call, items: Iterable[Item], wanted: str, verb: str) -> tuple[Found, int]:
    """The items found of those that may be shown, and how many others have all the words.

    Raises Unclear if there is nothing to show.
    """
    active = [item for item in items if item.active]
    # Ten thousand memories take seconds, in which everybody else is answered.
    found = await read_in_thread(find, [item for item in active if call.may_show(item)], wanted)
    others = [item for item in active if not call.may_show(item)]
    hidden = sum(has_all(item, wanted) for item in others) or int(named(others, wanted) is not None)
    if found.certain is not None:  # a list that is turned acts on nothing
        found = Found(meant=(found.certain,))
    if not (found.meant or found.near):
        raise Unclear(naming.only_private(hidden, verb) if hidden else naming.nothing(wanted))
    return found, hidden


async def _question(call: Call, verb: str, items: Sequence[Item], text: str) -> Unclear:
    """The question with its buttons for one memory, with a menu for several."""
    if utf16_length(text) > _LONGEST:
        return Unclear(naming.too_long(items))
    branch = call.persona_here or (await call.memory.branches(call.subject)).current
    if len(items) == 1:
        return Unclear(naming.about_one(text, call.user_id, verb, items[0], branch))
    return Unclear(naming.about_several(text, call.user_id, verb, items, branch))


def as_shown(
    call: Call, items: Iterable[Item], asked: Asked, *, gone: bool = False, unseen: bool = False
) -> Item:
    """The memory that somebody was shown, whatever it says now. Raises Refused if it can't be shown."""
    item = next((one for one in items if asked.names(one)), None)
    if item is None or not (gone or item.active):
        raise Refused("that memory was forgotten since I asked")
    if not (unseen or call.may_show(item)):
        raise Refused(f"that memory is private now; use `/memory {asked.verb}`, or ask me in a DM")
    return item


def _as_asked(
    call: Call, items: Iterable[Item], asked: Asked, *, gone: bool = False, unseen: bool = False
) -> list[Item]:
    """The memories that a question was about, without those that are no longer as the person was shown them.

    Raises Refused if none is.
    """
    known, found, refused = list(items), [], Refused("")
    for one in asked.each():
        try:
            item = as_shown(call, known, one, gone=gone, unseen=unseen)
            if stamp(item) != one.item and not gone:
                now = f"; it says now {said(yours(item.text))}" if call.may_show(item) else ""
                raise Refused(f"that memory has changed since I asked, so I left it as it is{now}")
            found.append(item)
        except Refused as refusal:
            refused = refusal
    if not found:
        raise refused
    return found


# ----------------------------------------------------------------------
# What an answer was based on.

UNKNOWN_ANSWER = (
    "I no longer know what my last answer to you here was based on. Ask me something, then try again. "
    "`!memory why <words or id>` says where a memory comes from."
)


async def explained(call: Call, last: Shown, which: str) -> Answer:
    """The memories that an answer to somebody had, each with why it was chosen, and what else it had."""
    view = await call.memory.view(call.subject, last.branch)
    link = message_address(call.place.guild_id, call.place.channel_id, last.answer_id)
    rows = []
    for item_id, why_chosen in last.items:
        item = view.items.get(item_id)
        if item is None:
            rows.append(
                Row(
                    "*a memory that is gone since*",
                    line=f"- a memory that is gone since (id {short(item_id)})",
                )
            )
            continue
        if not call.may_show(item):
            rows.append(Row("", line=f"- a private memory (id {short(item_id)})"))
            continue
        # One that came with another memory names that by its words.
        chosen, (before, linked, other_id) = why_chosen, why_chosen.partition(LINKED_WITH)
        if linked and (other := view.items.get(other_id)) is not None:
            named = said(yours(other.text)) if call.may_show(other) else "a private memory"
            chosen = f"{before}{LINKED_WITH}{named}"
        row, place = row_of(item, call.where), call.where(item.source)
        place = place if item.source.type == "manual" else f"said in {place}"
        small = filter(None, (row.small, f"chosen: {for_people(chosen)}" if chosen else ""))
        line = f"{row.line}{f'; chosen: {chosen}' if chosen else ''}; {place}"
        rows.append(replace(row, small=" · ".join(small), line=line))
    besides = ["this conversation's summary" if last.summary else "no summary"]
    besides += [count(last.window, "recent message"), *(count(number, kind) for kind, number in last.files)]
    return Answer(
        f"What {which} was based on",
        rows or [Row("Nothing I remember about you.")],
        small=[f"[{which} here]({link})"],
        foot=[f"Also {', '.join(besides)}, and your message."],
        colour=GREY,
    )


# ----------------------------------------------------------------------
# Answers that nobody else may read, to commands that others see: they go to the person's DMs.

NOT_TAKEN = "Discord didn't take it just now; try again later"


async def in_dm(call: Call, answer: Answer) -> None:
    """Send an answer to the one who gave a command, marked as no part of the talk there.

    Raises ChatForbidden if they take no messages, and Refused.
    """
    text = NOTE + answer.as_text(in_private=True)
    marked = message(text, answer.controls, answer.menus, answer.files)
    try:
        await send_answer(call.author.send, marked, as_card=False, in_private=True)
    except ChatForbidden:
        raise
    except ChatError as error:
        raise Refused(NOT_TAKEN) from error
