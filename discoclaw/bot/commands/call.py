"""One command that somebody gave: who, where, and by which means. Every command is carried out from this.

Commands act on the person who gives them and on nobody else, and on the persona of the place where there is
one. Answers to slash commands are seen by that person alone; answers to text commands are public, so private
memories stay out of them outside direct messages.
"""

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, cast

import discord

from discoclaw.bot import wire, words
from discoclaw.bot.client import DiscoClaw
from discoclaw.bot.commands.context import CommandContext
from discoclaw.bot.commands.spec import Command, Values
from discoclaw.bot.layout import send_answer
from discoclaw.bot.links import source_link, source_words
from discoclaw.bot.memories import Asked, standstill
from discoclaw.core.draft import Draft, Origin
from discoclaw.core.errors import ChatError, ChatForbidden, Refused
from discoclaw.core.history import Branches, History
from discoclaw.core.item import Item, Sensitivity, Source
from discoclaw.core.message import Place
from discoclaw.core.privacy import is_personal, may_show
from discoclaw.core.subject import user_subject
from discoclaw.core.usage import Payer
from discoclaw.memory.off import AnyMemory
from discoclaw.show.answer import Answer, message
from discoclaw.show.markup import NOTE

Interaction = discord.Interaction[DiscoClaw]


@dataclass(frozen=True)
class Call:
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

    async def history(self) -> History:
        """The person's whole history."""
        return await self.memory.history(self.subject)

    @property
    def persona_here(self) -> str | None:
        """The persona that this place always uses; None where the person's current one counts.

        Of a question it is the persona that it was asked about.
        """
        if self.asked is not None:
            return self.asked.branch
        return self.context.places.of(self.place)

    def persona(self, branches: Branches, wanted: str | None = None) -> str:
        """The persona a command is about: the named one, the place's, or the current. Raises Refused."""
        if wanted:
            return branches.named(wanted).name
        here = self.persona_here
        if here is not None and here not in branches.all:
            raise Refused(f"the persona {here!r} of this channel has no history yet; it begins with a change")
        return here or branches.current

    async def change(self, why: str, make: Callable[[Draft], str], **metadata: Any) -> str:
        """Change what is remembered here, as one change that says why."""
        metadata = {**self.metadata, **metadata}
        return await self.memory.change(self.subject, why, make, branch=self.persona_here, **metadata)

    @property
    def standstill(self) -> list[str]:
        """Lines about memory that gets nothing new, because its model fails."""
        return standstill(self.context.models_seen, owner=self.user_id in self.client.settings.owners)

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

    def may_show(self, item: Item) -> bool:
        """Whether an item may be named in the answer."""
        return self.in_private or may_show(item, in_dm=False)


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
