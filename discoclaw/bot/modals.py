"""Modals that outlive a restart: what they are about stands in their custom id.

discord.py forgets an opened modal when it stops, so none is left to it: the client hands every modal that is
sent to `taken`, which finds its class by the custom id, as discord.py does with buttons. `MODALS` in `client`
lists the classes.

    class EditModal(PersonalModal, template=rf"edit:{USER}:(?P<item>{STAMP})"):
        async def do(self, presses: Presses, press: Press) -> Outcome:
            return await presses.…(press, self.known["item"], self.values["text"])

    fields = [Field("text", "What it says", item.text)]
    await opened(press, f"edit:{user_id}:{stamp}", "Change a memory", fields)

A modal has to be the first response to an interaction, so what it shows is read before, and quickly. An
`OpensModal` does that.
"""

import asyncio
import logging
import re
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, cast

import discord

from discoclaw.bot import words
from discoclaw.bot.answers import FAILED, NOT_ALLOWED, sentence
from discoclaw.bot.buttons import USER, PersonalButton
from discoclaw.bot.commands.spec import Command
from discoclaw.bot.pages import send_pieces
from discoclaw.bot.pressed import Opens, Pressed
from discoclaw.bot.presses import Outcome, Press, Presses
from discoclaw.bot.refused import TOO_LATE
from discoclaw.bot.wire import discord_errors
from discoclaw.core.errors import ChatError, ChatGone, MemoryFault, Refused

log = logging.getLogger(__name__)

NOT_NOW = "My disk is slow to answer, so I can't open this now. Please try again in a moment."
OPEN_WITHIN_S = 2.0
"""Discord takes a modal within three seconds of a press."""
LONGEST = 4000
"""The most that Discord lets people type into one field, in characters."""


@dataclass(frozen=True, slots=True)
class Field:
    """A field to type in. `text` stands in it at first; `long`: it has several lines."""

    name: str
    label: str
    text: str = ""
    long: bool = True
    required: bool = True
    most: int = LONGEST


@dataclass(frozen=True, slots=True)
class Form:
    """A modal to open: its custom id, its title and its fields."""

    custom_id: str
    title: str
    fields: Sequence[Field]


class OpensModal(PersonalButton, template=r"(?!)"):
    """A button that opens a modal."""

    @abstractmethod
    async def form(self, presses: Presses, press: Press) -> Form:
        """The form that it opens. Raises Refused and MemoryFault."""

    async def take(self, press: Press) -> None:
        try:
            if await self.theirs(press):
                await self._open(press)
        except ChatGone as error:
            log.warning("a modal came too late: %s", error)
            await _too_late(press)
        except ChatError as error:
            log.warning("a modal could not be opened: %s", error)

    async def _open(self, press: Press) -> None:
        presses = cast(Presses, press.client.presses)
        try:
            form = await asyncio.wait_for(self._form(presses, press), OPEN_WITHIN_S)
        except Refused as refusal:
            text = sentence(refusal)
        except TimeoutError:
            text = NOT_NOW
        except MemoryFault as fault:
            log.warning("a memory could not be read for a modal: %s", fault)
            text = FAILED
        else:
            await opened(press, form.custom_id, form.title, form.fields)
            return
        with discord_errors():
            await press.response.send_message(text, ephemeral=True)

    async def _form(self, presses: Presses, press: Press) -> Form:
        if not await presses.may_talk(press.user, press.guild):
            raise Refused(NOT_ALLOWED)
        presses.require(*self.needs)
        await press.client.look(press)
        return await self.form(presses, press)


async def _too_late(press: Press) -> None:
    """Discord takes no answer to this press any more, so the person is told in a DM."""
    try:
        await send_pieces(press.user.send, TOO_LATE)
    except ChatError as error:
        log.info("a person could not be told that a press came too late: %s", error)


class PersonalModal(Pressed):
    """A form that somebody sent: `known` from the custom id, `values` by the names of the fields."""

    template: ClassVar[re.Pattern[str]] = re.compile(r"(?!)")

    def __init_subclass__(cls, *, template: str) -> None:
        super().__init_subclass__()
        cls.template = re.compile(template)

    def __init__(self, known: Mapping[str, str], values: Mapping[str, str]) -> None:
        self.known = known
        self.values = values


async def opened(press: Press, custom_id: str, title: str, fields: Sequence[Field]) -> None:
    """Open a modal, as the first response to an interaction. Raises ChatError."""
    modal = discord.ui.Modal(title=title[:45], custom_id=custom_id, timeout=None)
    for field in fields:
        style = discord.TextStyle.paragraph if field.long else discord.TextStyle.short
        box: discord.ui.TextInput[Any] = discord.ui.TextInput(
            custom_id=field.name,
            style=style,
            default=field.text[: field.most] or None,
            required=field.required,
            max_length=field.most,
        )
        modal.add_item(discord.ui.Label(text=field.label[:45], component=box))
    modal.stop()  # one that is stopped is not kept by discord.py, so `taken` is the only way
    with discord_errors():
        await press.response.send_modal(modal)


async def taken(press: Press, known: Sequence[type[PersonalModal]]) -> None:
    """Do what a modal is for that somebody sent; nothing for any other interaction."""
    if press.type is not discord.InteractionType.modal_submit:
        return
    data = cast("Mapping[str, Any]", press.data or {})
    custom_id = str(data.get("custom_id", ""))
    for kind in known:
        if (found := kind.template.fullmatch(custom_id)) is not None:
            typed, named = _values(data.get("components", ())), words.names_of(press)
            values = {name: words.resolved(text, named) for name, text in typed}
            await kind(found.groupdict(), values).take(press)
            return
    log.warning("a modal was sent that nothing here knows: %s", custom_id)


def _values(parts: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    """The typed values, with the fields' names."""
    for part in parts:
        inner = part.get("components") or ([part["component"]] if "component" in part else [])
        yield from _values(inner)
        if "custom_id" in part:
            typed = part.get("value", part.get("values"))
            yield str(part["custom_id"]), typed if isinstance(typed, str) else ",".join(typed or ())


# ----------------------------------------------------------------------
# The form of a command in a message's menu: a field for each of its parameters.


class MenuForm(Opens, PersonalModal, template=rf"menu:{USER}:(?P<name>[^:]{{1,32}}):(?P<message>\d{{1,20}})"):
    """Carries out a command with what was typed into its form. It answers as a slash command does."""

    async def do(self, presses: Presses, press: Press) -> Outcome:
        await presses.commands.filled(press, self.known["name"], self.known["message"], dict(self.values))
        return ""


async def asked_for(press: Press, command: Command, message_id: int) -> None:
    """Open the form of a command, for the person who chose it. Raises ChatError."""
    fields = [
        Field(one.name, one.help, most=(one.bounds or (1, LONGEST))[1], required=one.required)
        for one in command.params
    ]
    await opened(press, f"menu:{press.user.id}:{command.path}:{message_id}", command.path, fields)
