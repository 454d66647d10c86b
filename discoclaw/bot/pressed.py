"""What becomes of a press, or of a form that somebody sends: acknowledged, checked, done, shown.

Each is for one person. It is acknowledged within Discord's three seconds, before anything is done; then the
message says what came of it. Everything that can be pressed outlives a restart: all it knows stands in its
custom id, which Discord keeps. What is done is in `presses`, and what there is to press in `buttons`.

discord.py forgets an opened form (a modal) when it stops, so none is left to it: the client hands every one
that is sent to `taken`, which finds its class by the custom id, as discord.py does with buttons. A form has
to be the first response to an interaction, so what it shows is read before, and quickly; an `OpensModal` does
so.
"""

import asyncio
import logging
import re
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Self, cast

import discord

from discoclaw.bot import words
from discoclaw.bot.answers import FAILED, NOT_ALLOWED, SLOW, sentence, told_if_slow
from discoclaw.bot.commands.spec import Command, Need
from discoclaw.bot.layout import SILENT, buttons_below, rendered, send_pieces
from discoclaw.bot.presses import Outcome, Press, Presses
from discoclaw.bot.sending import TOO_LATE
from discoclaw.bot.wire import discord_errors
from discoclaw.bot.words import closed, frame_of
from discoclaw.core.errors import ChatError, ChatGone, MemoryFault, Refused
from discoclaw.core.text import clip
from discoclaw.show.answer import Answer, message

log = logging.getLogger(__name__)

USER = r"(?P<user>\d{1,20})"
BRANCH = r"(?P<branch>[^:]{1,40})"
NOT_NOW = "My disk is slow to answer, so I can't open this now. Please try again in a moment."
OPEN_WITHIN_S = 2.0
"""Discord takes a modal within three seconds of a press."""
LONGEST = 4000
"""The most that Discord lets people type into one field, in characters."""
NOT_YOURS = "These buttons are for somebody else."


class Pressed:
    """The base of buttons, menus and modals. `known` is what the custom id says."""

    needs: ClassVar[tuple[Need, ...]] = ("memory",)
    once: ClassVar[bool] = False
    """Whether a card has nothing left to press once this was refused: it asks for no more than this."""
    known: Mapping[str, str]

    @abstractmethod
    async def do(self, presses: Presses, press: Press) -> Outcome:
        """Do it, and say what the message says then. Raises Refused and MemoryFault."""

    async def show(self, press: Press, outcome: Outcome) -> None:
        """Show what came of it: the message says so."""
        await become(press, outcome)

    async def take(self, press: Press) -> None:
        """Do all of it, from the acknowledgement on."""
        try:
            if not await self.theirs(press):
                return
            with discord_errors():
                # A modal that a command opened stands below no message: its answer is a new one.
                alone = press.message is None
                await press.response.defer(ephemeral=alone, thinking=alone)
            await self._answer(press)
        except ChatError as error:
            log.warning("a press could not be answered: %s", error)

    async def theirs(self, press: Press) -> bool:
        """Whether the one who pressed may; anybody else is told. Raises ChatError."""
        if str(press.user.id) == self.known["user"]:
            return True
        with discord_errors():
            await press.response.send_message(NOT_YOURS, ephemeral=True)
        return False

    async def _answer(self, press: Press) -> None:
        presses = cast(Presses, press.client.presses)
        if not await press.client.claims(press):
            return
        if not await presses.may_talk(press.user, press.guild):
            await whisper(press, NOT_ALLOWED)
            return
        try:
            presses.require(*self.needs)
            work = presses.told(press, self.do(presses, press))
            outcome = await told_if_slow(work, lambda: whisper(press, SLOW))
        except Refused as refusal:
            await _settle_down(press, once=self.once)
            await whisper(press, sentence(refusal))
        except MemoryFault as fault:
            log.warning("a press changed nothing: %s", fault)
            await whisper(press, FAILED)
        except Exception:  # a named edge: nobody waits for an answer that never comes
            log.exception("a press failed")
            await whisper(press, FAILED)
        else:
            await self.show(press, outcome)


class Opens(Pressed):
    """One that gives a command, which acknowledges the press, and answers it, as one of its own."""

    async def take(self, press: Press) -> None:
        try:
            if not await self.theirs(press):
                return
        except ChatError as error:
            log.warning("a press could not be answered: %s", error)
            return
        await self.do(cast(Presses, press.client.presses), press)


async def become(press: Press, outcome: Outcome) -> None:
    """The message says what came of it; one that was deleted meanwhile is said again."""
    if _is_card(press) or (isinstance(outcome, Answer) and not outcome.plain):
        await _become_card(press, outcome)
        return
    answer = message(outcome) if isinstance(outcome, str) else outcome
    begun = False

    async def send(**options: Any) -> None:
        nonlocal begun
        if begun:
            private = press.message is not None and press.message.flags.ephemeral
            await press.followup.send(ephemeral=private, **options)
            return
        if files := options.pop("files", None):
            options["attachments"] = files
        await press.edit_original_response(view=buttons_below(answer.controls, answer.menus), **options)
        begun = True

    try:
        await send_pieces(send, answer.as_text(in_private=True), name="memory.md")
    except ChatGone:
        await whisper(press, answer)


async def _become_card(press: Press, outcome: Outcome) -> None:
    """The message becomes a card, once for ever: Discord takes no plain text in its place any more."""
    card = message(outcome) if isinstance(outcome, str) else outcome
    if card.plain:
        card = replace(card, plain=False, colour=frame_of(press.message))
    made = rendered(card)
    try:
        with discord_errors():
            await press.edit_original_response(
                content=None, view=made.view, attachments=made.files, allowed_mentions=SILENT
            )
    except ChatError as error:
        log.info("a card could not be shown, so it is said as a text: %s", error)
        rest = card.as_text(in_private=True)
    else:
        rest = card.rest()
    if rest:
        await send_pieces(partial(press.followup.send, ephemeral=True), rest, name="memory.md")


def _is_card(press: Press) -> bool:
    return press.message is not None and press.message.flags.components_v2


async def _settle_down(press: Press, *, once: bool) -> None:
    """Leave nothing to press; a card stays as it is, unless its buttons work only `once`."""
    if press.message is None or (_is_card(press) and not once):
        return
    view = rendered(closed(press.message)).view if _is_card(press) else None
    try:
        with discord_errors():
            await press.edit_original_response(view=view)
    except ChatError as error:
        log.info("the buttons of a message stay: %s", error)


async def whisper(press: Press, outcome: str | Answer) -> None:
    """Say something to the person who pressed, and to nobody else."""
    answer = message(outcome) if isinstance(outcome, str) else outcome
    more: dict[str, Any] = {}
    if (view := buttons_below(answer.controls, answer.menus)) is not None:
        more["view"] = view
    text = clip(answer.as_text(in_private=True), 2000)
    with discord_errors():
        await press.followup.send(text, ephemeral=True, allowed_mentions=SILENT, **more)


# ---------------------------------------------------------------------- buttons and menus


class Control(Pressed, discord.ui.DynamicItem[Any], template=r"(?!)"):
    """The base of buttons and menus. `user` is the one person who may press."""

    def __init__(self, control: discord.ui.Item[Any], custom_id: str) -> None:
        super().__init__(control)
        found = self.template.fullmatch(custom_id)
        assert found is not None  # discord.py has matched it
        self.known = found.groupdict()

    async def callback(self, interaction: discord.Interaction[Any]) -> None:
        await self.take(interaction)


class PersonalButton(Control, template=r"(?!)"):
    """A button."""

    def __init__(self, custom_id: str) -> None:
        super().__init__(discord.ui.Button(label="-", custom_id=custom_id), custom_id)

    @classmethod
    async def from_custom_id(
        cls, interaction: discord.Interaction[Any], item: discord.ui.Item[Any], match: re.Match[str], /
    ) -> Self:
        """The button that was pressed, from what Discord kept of it."""
        return cls(match[0])


class PersonalMenu(Control, template=r"(?!)"):
    """A menu."""

    def __init__(self, custom_id: str, menu: discord.ui.Select[Any]) -> None:
        super().__init__(menu, custom_id)

    @classmethod
    async def from_custom_id(
        cls, interaction: discord.Interaction[Any], item: discord.ui.Item[Any], match: re.Match[str], /
    ) -> Self:
        """The menu in which something was chosen, as it stands below the message."""
        return cls(match[0], cast("discord.ui.Select[Any]", item))


# ---------------------------------------------------------------------- forms


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
