"""What can be pressed or filled in, and what becomes of a press: acknowledged, checked, done, shown.

A control is a function with the pattern of its custom id, listed in a `Controls`:

    @CONTROLS.on(rf"undo:{USER}:{COMMIT}", once=True)
    async def undo(at: Pressed) -> str: ...

Each is for one person. A press is acknowledged within Discord's three seconds, before anything is done; then
the message says what came of it. Everything that can be pressed outlives a restart: all it knows stands in
its custom id, which Discord keeps. So discord.py keeps none of it: the client hands every interaction to
`taken`. A form (a modal) has to be the first response to an interaction, so what it shows is read before, and
quickly; a control that opens one says so with `opens_form`.
"""

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar, cast

import discord

from discoclaw.bot import wire, words
from discoclaw.bot.commands.context import FAILED, NOT_ALLOWED, SLOW, CommandContext, sentence, told_if_slow
from discoclaw.bot.commands.dispatch import Commands, Outcome
from discoclaw.bot.layout import SILENT, Form, buttons_below, open_form, rendered, send_pieces
from discoclaw.bot.sending import TOO_LATE
from discoclaw.bot.wire import discord_errors
from discoclaw.bot.words import closed, frame_of
from discoclaw.commands.spec import Need
from discoclaw.core.draft import Origin
from discoclaw.core.errors import ChatError, ChatGone, MemoryFault, Refused
from discoclaw.core.message import Place
from discoclaw.core.subject import user_subject
from discoclaw.core.text import clip
from discoclaw.show.answer import Answer, message
from discoclaw.show.markup import NOTE

log = logging.getLogger(__name__)

USER = r"(?P<user>\d{1,20})"
BRANCH = r"(?P<branch>[^:]{1,40})"
NOT_NOW = "My disk is slow to answer, so I can't open this now. Please try again in a moment."
OPEN_WITHIN_S = 2.0
"""Discord takes a modal within three seconds of a press."""
NOT_YOURS = "These buttons are for somebody else."

Press = discord.Interaction[Any]


@dataclass(frozen=True, slots=True)
class Pressed:
    """One press of a control, or one form that somebody sent.

    `known` is what the custom id says, `values` what was typed, by the names of the fields; of a menu,
    `chosen` are the values that were chosen.
    """

    commands: Commands
    press: Press
    control: "Control"
    known: Mapping[str, str]
    values: Mapping[str, str]
    chosen: Sequence[str]

    @property
    def user_id(self) -> str:
        return str(self.press.user.id)

    @property
    def context(self) -> CommandContext:
        """What commands work with."""
        return self.commands.context

    @property
    def subject(self) -> str:
        """The memory of the one who pressed."""
        return user_subject(self.user_id)

    @property
    def message(self) -> discord.Message:
        """The message that it stands below. Only a form that a command opened stands below none."""
        assert self.press.message is not None
        return self.press.message

    @property
    def hidden(self) -> bool:
        """Whether only the person sees what comes of it; a form below no message is answered like that."""
        message = self.press.message
        return self.press.guild_id is None or message is None or message.flags.ephemeral

    @property
    def place(self) -> Place:
        message = self.press.message
        return wire.place_of(message.channel if message is not None else cast(Any, self.press.channel))

    @property
    def time_ms(self) -> int:
        """The time of the press (ms since 1970)."""
        return int(self.press.created_at.timestamp() * 1000)

    @property
    def how(self) -> Mapping[str, Any]:
        """Why a change is made: by a button, and below which message."""
        message = self.press.message
        at = f"{self.press.channel_id}/{message.id if message is not None else self.press.id}"
        return {"by": "button", "at": at}

    @property
    def origin(self) -> Origin:
        """A press is the person's own statement."""
        return Origin(
            "stated",
            said_at=self.time_ms,
            private=self.press.guild_id is None,
            evidence=self.how["at"],
            dm_privacy=self.context.dm_privacy,
        )


# ---------------------------------------------------------------------- what there is to press

Do = Callable[[Pressed], Awaitable[Any]]
Show = Callable[[Press, Outcome], Awaitable[None]]
D = TypeVar("D", bound=Do)


@dataclass(frozen=True, slots=True)
class Control:
    """A button, a menu or a form: the pattern of its custom id, which names its `user`, and what it does.

    `needs`: what has to be switched on. `once`: a card has nothing left to press when this was refused, as it
    asks for no more than this. `anybody` may press it: `do` says who may. `take` does all of it, and `show`
    shows what came of it.
    """

    pattern: re.Pattern[str]
    do: Do
    needs: tuple[Need, ...]
    once: bool
    anybody: bool
    show: Show
    take: Callable[[Pressed], Awaitable[None]]


class Controls:
    """The controls of one part of the bot. What they do raises Refused and MemoryFault."""

    def __init__(self) -> None:
        self.all: list[Control] = []

    def on(
        self,
        pattern: str,
        *,
        needs: tuple[Need, ...] = ("memory",),
        once: bool = False,
        anybody: bool = False,
        show: Show | None = None,
        take: Callable[[Pressed], Awaitable[None]] | None = None,
    ) -> Callable[[D], D]:
        """List a function. Unless told otherwise, the message becomes the outcome that it returns."""

        def listed(do: D) -> D:
            made = Control(re.compile(pattern), do, needs, once, anybody, show or become, take or answered)
            self.all.append(made)
            return do

        return listed


async def taken(commands: Commands, known: Sequence[Control], press: Press) -> None:
    """Do what a control is for that somebody pressed, or a form that they sent; nothing for a command."""
    if press.type not in (discord.InteractionType.component, discord.InteractionType.modal_submit):
        return
    data = cast("Mapping[str, Any]", press.data or {})
    custom_id = str(data.get("custom_id", ""))
    for control in known:
        if (found := control.pattern.fullmatch(custom_id)) is not None:
            break
    else:
        log.warning("something was pressed that nothing here knows: %s", custom_id)
        return
    values = dict[str, str]()
    if press.type is discord.InteractionType.modal_submit:
        named = words.names_of(press)
        typed = _values(data.get("components", ()))
        values = {name: words.resolved(text, named) for name, text in typed}
    at = Pressed(commands, press, control, found.groupdict(), values, data.get("values", ()))
    try:
        if control.anybody or at.user_id == at.known["user"]:
            await control.take(at)
            return
        with discord_errors():
            await press.response.send_message(NOT_YOURS, ephemeral=True)
    except ChatError as error:
        log.warning("a press could not be answered: %s", error)


def _values(parts: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    """The typed values, with the fields' names."""
    for part in parts:
        inner = part.get("components") or ([part["component"]] if "component" in part else [])
        yield from _values(inner)
        if "custom_id" in part:
            typed = part.get("value", part.get("values"))
            yield str(part["custom_id"]), typed if isinstance(typed, str) else ",".join(typed or ())


async def answered(at: Pressed) -> None:
    """Acknowledge a press, do what it is for, and show what came of it. Raises ChatError."""
    press, control = at.press, at.control
    with discord_errors():
        # A modal that a command opened stands below no message: its answer is a new one.
        alone = press.message is None
        await press.response.defer(ephemeral=alone, thinking=alone)
    if not await press.client.claims(press):
        return
    if not control.anybody and not await at.commands.may_talk(press.user, press.guild):
        await whisper(press, NOT_ALLOWED)
        return
    try:
        at.context.require(*control.needs)
        outcome = await told_if_slow(_told(at), lambda: whisper(press, SLOW))
    except Refused as refusal:
        # Nothing is left to press. A card stays as it is, unless its buttons work only once; what anybody may
        # press stays too, since it was refused to one of them alone.
        last = control.once or not (_is_card(press) or control.anybody)
        if press.message is not None and last:
            view = rendered(closed(press.message)).view if _is_card(press) else None
            try:
                with discord_errors():
                    await press.edit_original_response(view=view)
            except ChatError as error:
                log.info("the buttons of a message stay: %s", error)
        await whisper(press, sentence(refusal))
    except MemoryFault as fault:
        log.warning("a press changed nothing: %s", fault)
        await whisper(press, FAILED)
    except Exception:  # a named edge: nobody waits for an answer that never comes
        log.exception("a press failed")
        await whisper(press, FAILED)
    else:
        await control.show(press, outcome)


async def _told(at: Pressed) -> Outcome:
    """The result of a press, and below it what it took back."""
    outcome, taken_back = await at.commands.telling.told(
        at.press.user, at.place, at.control.do(at), in_private=at.hidden
    )
    lines = taken_back.splitlines()
    if isinstance(outcome, str):
        return "\n".join([outcome, *(f"{NOTE}{line}" for line in lines)])
    answer = cast(Answer, outcome)
    lines = [f"{NOTE}{line}" for line in lines] if answer.plain else lines
    return replace(answer, foot=(*answer.foot, *lines))


async def handed_on(at: Pressed) -> None:
    """Leave all of it to a command, which acknowledges the press, and answers it, as one of its own."""
    await at.control.do(at)


async def opens_form(at: Pressed) -> None:
    """Open the `Form` that the control returns. Raises ChatError."""
    press = at.press

    async def made() -> Form:
        if not await at.commands.may_talk(press.user, press.guild):
            raise Refused(NOT_ALLOWED)
        at.context.require(*at.control.needs)
        await press.client.look(press)
        return cast(Form, await at.control.do(at))

    try:
        try:
            form = await asyncio.wait_for(made(), OPEN_WITHIN_S)
        except Refused as refusal:
            text = sentence(refusal)
        except TimeoutError:
            text = NOT_NOW
        except MemoryFault as fault:
            log.warning("a memory could not be read for a modal: %s", fault)
            text = FAILED
        else:
            await open_form(press, form)
            return
        with discord_errors():
            await press.response.send_message(text, ephemeral=True)
    except ChatGone as error:  # Discord takes no answer to this press any more
        log.warning("a modal came too late: %s", error)
        try:
            await send_pieces(press.user.send, TOO_LATE)
        except ChatError as unsaid:
            log.info("a person could not be told that a press came too late: %s", unsaid)


# ---------------------------------------------------------------------- showing what came of it


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


async def whisper(press: Press, outcome: str | Answer) -> None:
    """Say something to the person who pressed, and to nobody else."""
    answer = message(outcome) if isinstance(outcome, str) else outcome
    more: dict[str, Any] = {}
    if (view := buttons_below(answer.controls, answer.menus)) is not None:
        more["view"] = view
    text = clip(answer.as_text(in_private=True), 2000)
    with discord_errors():
        await press.followup.send(text, ephemeral=True, allowed_mentions=SILENT, **more)
