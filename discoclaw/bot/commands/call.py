"""One command that somebody gave: who, where, and by which means. Every command is carried out from this.

Commands act on the person who gives them and on nobody else, and on the persona of the place where there is
one. Answers to slash commands are seen by that person alone; answers to text commands are public, so private
memories stay out of them outside direct messages.
"""

import itertools
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, cast

import discord

from discoclaw.bot import naming, wire, words
from discoclaw.bot.answers import Unclear
from discoclaw.bot.client import DiscoClaw
from discoclaw.bot.commands.context import CommandContext
from discoclaw.bot.layout import send_answer
from discoclaw.bot.links import source_link, source_words
from discoclaw.commands.caller import Caller
from discoclaw.commands.memories import SECRET, Asked, stamp, standstill
from discoclaw.commands.spec import Command, Values
from discoclaw.core.draft import Origin
from discoclaw.core.errors import ChatError, ChatForbidden, Refused
from discoclaw.core.item import Item, Sensitivity, Source
from discoclaw.core.message import Place
from discoclaw.core.privacy import is_personal, sensitivity
from discoclaw.core.subject import user_subject
from discoclaw.core.text import utf16_length
from discoclaw.core.usage import Payer
from discoclaw.core.yours import yours
from discoclaw.memory.off import AnyMemory
from discoclaw.recall.named_items import Found, find, has_all, named
from discoclaw.show.answer import Answer, message
from discoclaw.show.markup import NOTE, said
from discoclaw.show.markup import words as words_of_others
from discoclaw.store.files import read_in_thread

TOOLS_OFF = (
    "**Tools**: switched off here, so I can't look things up or change your memory while I answer. Commands "
    "still work. Whoever runs me can switch them on with `DISCOCLAW_TOOLS_ENABLED`."
)

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

    @property
    def standstill(self) -> list[str]:
        """Lines about memory that gets nothing new, because its model fails."""
        return standstill(self.context.models_seen, owner=self.user_id in self.client.settings.owners)

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
            said_at=int(discord.utils.utcnow().timestamp() * 1000),
            private=self.place.private,
            evidence=self._at,
            dm_privacy=self.context.dm_privacy,
        )

    def marked(self, text: str) -> Sensitivity:
        """How private a text is because of how it was given: personal, and for nobody else to see."""
        return "private" if self.slash and is_personal(text) else "normal"

    def where(self, source: Source, words: str = "where you said it") -> str:
        """A link to where something was said: as words in a card, as an address in a text."""
        return source_link(self.client, source) if self.typed else source_words(self.client, source, words)

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
