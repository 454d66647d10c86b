"""Commands on their way: from a message or an interaction to an answer.

Every command begins in its conversation's queue, behind what was said before it, so it never meets a turn
that is half done; the subject's lock does the same against the loops. Those that take long run aside; one
that hangs on a disk goes on beside the queue, and its person is told. What a command needs is checked here,
once, from its entry in the table. Values are completed while somebody types, and commands that only Discord
still has are answered. Knows nothing about what commands do.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

import discord
from discord import app_commands
from discord.ext import commands as ext

from discoclaw.bot import wire
from discoclaw.bot.client import DiscoClaw
from discoclaw.bot.commands import help as helping
from discoclaw.bot.commands.call import Call, Interaction, as_shown
from discoclaw.bot.commands.context import (
    BUSY,
    NOT_ALLOWED,
    OFF,
    ONLY_OWNERS,
    SLOW,
    STOPPING,
    CommandContext,
    Telling,
    outcome,
    sentence,
    told_if_slow,
)
from discoclaw.bot.commands.parsing import (
    Misused,
    meant_by,
    menus,
    reach,
    read_back,
    resolve,
    slash_commands,
    values_of,
)
from discoclaw.bot.commands.preview import DM
from discoclaw.bot.layout import LONGEST, Field, Form, open_form, send_answer, send_pieces
from discoclaw.bot.sending import ANSWER, TOO_LATE, elsewhere
from discoclaw.bot.voice import voice_id
from discoclaw.bot.wire import discord_errors, may_read
from discoclaw.bot.words import Request, request_of
from discoclaw.commands.caller import GONE, OPTED_OUT
from discoclaw.commands.history import teller
from discoclaw.commands.memories import Asked
from discoclaw.commands.spec import Catalogue, Command, Completes, Found, Group, Values
from discoclaw.core.errors import ChatError, ChatUnavailable, MemoryFault, Refused
from discoclaw.core.item import Item
from discoclaw.core.message import Inbound
from discoclaw.core.ports import Held
from discoclaw.core.subject import user_subject
from discoclaw.core.text import normalise
from discoclaw.core.times import ms_of_iso
from discoclaw.core.usage import paid_by
from discoclaw.core.yours import yours
from discoclaw.core.zones import names_like
from discoclaw.memory.conversations.undelivered import Unsent
from discoclaw.recall.named_items import holds
from discoclaw.session.desk import WORD_S, Job
from discoclaw.show.answer import MOST_ID, Answer, Button, Reply, Row, below, message
from discoclaw.show.words import day, line
from discoclaw.store.threads import in_time

log = logging.getLogger(__name__)

Context = ext.Context[DiscoClaw]
NO_FORM = "I no longer know this form. Please choose the command in the message's menu once more."


Outcome = str | Answer
"""The result of a press, as the message then shows it."""


class Commands:
    """All commands of a catalogue, for one client. `register` comes first.

    What is called for a press or a message raises Refused and MemoryFault.
    """

    def __init__(
        self, client: DiscoClaw, context: CommandContext, telling: Telling, catalogue: Catalogue
    ) -> None:
        self.context, self.telling, self.settings = context, telling, client.settings
        self._client = client
        self._catalogue = catalogue
        self._aside: dict[tuple[str, str], asyncio.Task[Any]] = {}
        self.pressed: dict[int, None] = {}
        """The messages whose buttons have done their work; see `answer_buttons`."""
        self._closed = False

    async def close(self) -> None:
        """Stop what runs aside, and wait until its people were told, as long as the queue waits for that."""
        self._closed = True
        if tasks := list(self._aside.values()):
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks, timeout=WORD_S)

    def register(self) -> None:
        """Add the slash commands and menus to the client's tree, and each root that is a text command."""
        complete, far = Completion(self.context).complete, reach(self._client.application)
        for made in (
            *slash_commands(self._catalogue, far, self._slash, complete),
            *menus(self._catalogue, far, self._menu),
        ):
            self._client.tree.add_command(made, override=True)
        answer_outdated(self._client.tree)
        for root in sorted(self._catalogue.text_roots):
            also = ["start"] if root == "hatch" else []
            self._client.add_command(ext.Command(self._text_command(root), name=root, aliases=also))

    # ------------------------------------------------------------------ how they come in

    def _text_command(self, root: str) -> Callable[..., Any]:
        async def callback(ctx: Context, *, text: str = "") -> None:
            await self._text(Call(ctx.message, self._client, self.context), root, text)

        return callback

    async def _text(self, call: Call, root: str, text: str) -> None:
        self._client.talk.inboxes.begin(call.session_key, str(call.source.id), command=True)
        await self._worded(call, root, text)

    async def _worded(self, call: Call, root: str, text: str) -> None:
        found = resolve(self._catalogue, root, text)
        if isinstance(found, Found):
            try:
                values = call.worded(found.command, values_of(found.command, found.rest, call.files))
            except Misused as misused:
                await self._answer(call, _usage(found, misused))
                return
            await self._run(call, found.command, values)
        elif await self._admitted(call):
            meant: Sequence[str] = ()
            if isinstance(found, Group):
                told = helping.group_page(self._catalogue, found)
            else:
                told = helping.missing(self._catalogue, found)
                meant = meant_by(self._catalogue, f"!{root} {text}")
            asked = _with_buttons(call, told, [(f"!{one}", one) for one in meant])
            await self._queued(call, lambda: _known(asked if meant else told))

    def request_of(self, heard: Inbound) -> Request | None:
        """The request in a message, in plain words or as a mistyped command; None if it is talk."""
        meant = "\n".join(meant_by(self._catalogue, heard.text))
        mistyped = Request("mistyped", meant) if meant else None
        return request_of(heard.text, self._client.me().name) or mistyped

    async def requested(self, message: discord.Message, asked: Request) -> None:
        """Do what a message asks for."""
        call = Call(message, self._client, self.context)
        # What others would read is shown by a button, to its person alone.
        if asked.kind == "forget" or (call.in_private and asked.kind in ("show", "erase")):
            await self._text(call, "memory", f"{asked.kind} {asked.what}")
            return
        self._client.talk.inboxes.begin(call.session_key, str(message.id), command=True)
        if await self._admitted(call):
            await self._queued(call, lambda: _known(self._offered(call, asked)))

    def _offered(self, call: Call, asked: Request) -> Reply:
        """A few sentences about a request, and buttons that do what it asks for."""
        if meant := asked.what.splitlines():
            return _with_buttons(call, helping.mistyped(meant), [(f"!{one}", one) for one in meant])
        if "memory" in self.context.off:
            return _with_buttons(call, f"{helping.ABOUT} ({sentence(Refused(OFF['memory']))})", ())
        return _with_buttons(call, *helping.REQUESTED.get(asked.kind, helping.REQUESTED["help"]))

    async def opened(self, press: Interaction, text: str) -> None:
        """Carry out a command as text, or the request of a kind, for the person who pressed alone."""
        call = Call(press, self._client, self.context, opened=True)
        begun = await self._begun(call, press.response.defer(ephemeral=True, thinking=True))
        if not (begun and await self._client.claims(press)):
            return
        root, _, rest = text.partition(" ")
        if root in self._catalogue.text_roots:
            await self._worded(call, root, rest)
        elif await self._admitted(call):
            await self._answer(call, self._offered(call, Request(text)))

    async def _slash(self, command: Command, interaction: Interaction, values: Values) -> None:
        call = Call(interaction, self._client, self.context)
        # Discord waits 3 s for a sign of life, and everything below may take longer.
        begun = await self._begun(call, interaction.response.defer(ephemeral=True))
        if begun and await self._client.claims(interaction):
            await self._run(call, command, call.worded(command, values))

    async def _menu(self, command: Command, interaction: Interaction, message: discord.Message) -> None:
        if not command.params:
            await self._slash(command, interaction, {"message": message})
            return
        call = Call(interaction, self._client, self.context)
        if voice_id(message, self._client.user) is None:  # its words are asked for when the form is sent
            self._client.talk.chosen.keep(call.user_id, str(message.id), self._client.said(message))
        fields = [
            Field(one.name, one.help, most=(one.bounds or (1, LONGEST))[1], required=one.required)
            for one in command.params
        ]
        form = Form(f"menu:{call.user_id}:{command.path}:{message.id}", command.path, fields)
        await self._begun(call, open_form(interaction, form))

    async def filled(self, press: Interaction, name: str, message: str, values: Mapping[str, str]) -> None:
        """Carry out a command of a message's menu with what was typed into its form."""
        call = Call(press, self._client, self.context)
        command = next((one for one in self._catalogue.menus if one.path == name), None)
        begun = await self._begun(call, press.response.defer(ephemeral=True, thinking=True))
        if not (begun and await self._client.claims(press)):
            return
        if command is None:  # the form was opened before an update
            await self._answer(call, NO_FORM)
        else:
            await self._run(call, command, {"message": message, **values})

    async def _begun(self, call: Call, response: Awaitable[object]) -> bool:
        """Whether Discord took the first response to an interaction. If it comes too late, a DM says so."""
        try:
            with discord_errors():
                await response
        except ChatError as error:
            log.warning("a command could not be answered: %s", error)
            try:  # Discord takes no answer to this interaction any more
                await send_pieces(call.author.send, TOO_LATE)
            except ChatError as unsaid:
                log.info("a person could not be told that a command came too late: %s", unsaid)
            return False
        return True

    async def again(self, press: Interaction, asked: Asked, values: Values | None = None) -> Outcome:
        """Carry out the command that asked something: which memory is meant, or for its `values`."""
        command, call = await self._asked(press, asked)
        if values is None:
            values = {one.name: asked.text if one.name == "text" else asked.item for one in command.params}
        answer = await command.run(call, **values)
        assert isinstance(answer, str | Answer)  # all that ask answer with one message
        if isinstance(answer, str) or call.in_private:
            return answer
        return message(answer.as_text(in_private=False), answer.controls, answer.menus)

    async def meant(self, press: Interaction, asked: Asked) -> Item:
        """The memory that a card shows, as it is now."""
        _, call = await self._asked(press, asked)
        view = await call.memory.view(call.subject, asked.branch)
        return as_shown(call, view.items.values(), asked)

    async def _asked(self, press: Interaction, asked: Asked) -> tuple[Command, Call]:
        command = self._catalogue.command(f"memory {asked.verb}")
        call = Call(press, self._client, self.context, asked)
        self._check(call, command)
        branches = await call.memory.branches(call.subject)
        if asked.item and asked.branch not in (*branches.all, self.context.places.of(call.place)):
            raise Refused(GONE)
        return command, call

    async def turn(self, press: Interaction, verb: str, values: str, page: int) -> Answer:
        """Give a command again, for a page of its card."""
        paths = {one.path for one in self._catalogue.commands}
        command = self._catalogue.command(verb if verb in paths and " " in verb else f"memory {verb}")
        call = Call(press, self._client, self.context, page=page)
        self._check(call, command)
        answer = await command.run(call, **read_back(command.params, values))
        if isinstance(answer, Answer) and call.in_private and not answer.plain:
            return answer
        return Answer(rows=[Row(_as_text(answer, in_private=call.in_private))])

    # ------------------------------------------------------------------ carrying them out

    async def _run(self, call: Call, command: Command, values: Values) -> None:
        """Carry a command out in its conversation's turn, or aside, and send the answer."""
        if not await self._admitted(call):
            return
        if command.aside:
            await self._beside(call, command, values)
        else:
            await self._queued(call, lambda: self._done(call, command, values))

    async def _queued(self, call: Call, work: Callable[[], Awaitable[Reply]]) -> None:
        async def run() -> None:
            try:
                await self._answer(call, await told_if_slow(outcome(work()), slow))
            except asyncio.CancelledError:
                await self._answer(call, STOPPING)
                raise

        async def slow() -> None:
            await self._answer(call, SLOW)

        async def dropped() -> None:
            await self._answer(call, STOPPING)

        talk = self._client.talk
        if not talk.desk.submit(call.session_key, Job(run, dropped, call.user_id, beside=True)):
            await self._answer(call, STOPPING if talk.desk.closed else BUSY)

    async def _beside(self, call: Call, command: Command, values: Values) -> None:
        """Run a command that takes long. One at a time: else one person could keep all others waiting."""
        key, task = (command.path.rpartition(" ")[2], call.user_id), asyncio.current_task()
        if self._closed or key in self._aside:
            await self._answer(call, STOPPING if self._closed else command.aside)
            return
        assert task is not None
        self._aside[key] = task
        try:
            try:
                answer = await outcome(self._done(call, command, values))
            except asyncio.CancelledError:
                await self._answer(call, STOPPING)
                raise
            await self._answer(call, answer)
        finally:
            del self._aside[key]

    async def _done(self, call: Call, command: Command, values: Values) -> Reply:
        self._check(call, command)
        answer: Reply
        with paid_by(call.payer):
            answer, taken_back = await self.telling.told(
                call.author, call.place, command.run(call, **values), in_private=call.in_private
            )
        return below(answer, taken_back.splitlines())

    def _check(self, call: Call, command: Command) -> None:
        """Whether somebody may use a command here, and whether it can be used. Raises Refused."""
        if command.only == "owners" and call.user_id not in self._client.settings.owners:
            raise Refused(ONLY_OWNERS)
        if command.adds and self.context.choices.opted_out(call.user_id):
            raise Refused(OPTED_OUT)
        self.context.require(*command.needs)

    async def may_talk(self, person: discord.User | discord.Member, guild: discord.Guild | None) -> bool:
        """Whether somebody is on the allowlist."""
        return await self._client.access.may_talk(person, guild)

    async def _admitted(self, call: Call) -> bool:
        if await self.may_talk(call.author, call.source.guild):
            return True
        await self._answer(call, NOT_ALLOWED)
        return False

    # ------------------------------------------------------------------ answering

    async def _answer(self, call: Call, answer: Reply) -> None:
        try:
            if call.slash or await self._client.answers(call.source.id):
                await _send(call, call.send, answer, as_card=call.slash)
            else:
                log.info("%s: no answer to a command from here: another process has it", call.session_key)
        except ChatError as error:
            log.warning("the answer to a command could not be sent: %s", error)
            if isinstance(error, ChatUnavailable):
                self._keep(call, answer)
                return
            await self._elsewhere(call, answer, error)
        finally:
            if not (call.slash or self._client.delivery.keeps(str(call.source.id))):
                self._client.talk.inboxes.end(call.session_key, [str(call.source.id)], True)

    def _keep(self, call: Call, answer: Reply) -> None:
        """Have an answer delivered later: below the command, or in a DM if nobody else may see it."""
        text = _as_text(answer, in_private=call.in_private)
        place, channel, source = call.place, str(call.channel.id), str(call.source.id)
        held = Held(text, channel, source, channel, source)
        if isinstance(call.source, discord.Interaction):
            held = Held(text, f"dm-{call.user_id}", "", channel if place.guild_id else "")
        inbox, guild = call.session_key if held.asked_id else "", place.guild_id
        private, at = call.in_private, call.asked_at
        kept = Unsent(held, (source,), inbox, call.user_id, guild, private, at, "other", 0)
        self._client.delivery.keep(kept)

    async def _elsewhere(self, call: Call, answer: Reply, error: ChatError) -> None:
        async def in_dm(sentence: str) -> None:
            await send_pieces(call.author.send, sentence)
            await _send(call, call.author.send, answer, as_card=False)

        await elsewhere(
            error,
            what=ANSWER,
            place=getattr(call.channel, "mention", "that channel"),
            in_dm=in_dm if call.slash or call.place.kind != "dm" else None,
            there=lambda text: send_pieces(call.send, text),
        )


async def _known(reply: Reply) -> Reply:
    """An answer that is known already."""
    return reply


async def _send(call: Call, send: Callable[..., Awaitable[object]], reply: Reply, *, as_card: bool) -> None:
    """Send what a command answers. Raises ChatError."""
    if isinstance(reply, str):
        await send_pieces(send, reply, name="memory.md")
        return
    for answer in [reply] if isinstance(reply, Answer) else reply:
        await send_answer(send, answer, as_card=as_card, in_private=call.in_private)


def _as_text(reply: Reply, *, in_private: bool) -> str:
    if isinstance(reply, str):
        return reply
    answers = [reply] if isinstance(reply, Answer) else reply
    return "\n\n".join(one.as_text(in_private=in_private) for one in answers)


def _with_buttons(call: Call, text: str, opens: Sequence[tuple[str, str]]) -> Answer:
    """A text with buttons: what each says, and what it opens, once. What is too long for Discord has none."""
    ids = {f"open:{call.user_id}:{opened}": label for label, opened in [*opens, helping.ALL_COMMANDS]}
    return message(text, [Button(one, label) for one, label in ids.items() if len(one) <= MOST_ID])


def _usage(found: Found, misused: Misused) -> str:
    """How a command is written, and what was wrong if that can be said."""
    usage = f"`!{f'{found.name} {found.command.usage}'.rstrip()}`"
    reason = str(misused)
    if not reason:
        return f"Please use it like this: {usage}"
    return f"{reason[:1].upper()}{reason[1:]}. Please use it like this: {usage}"


# ---------------------------------------------------------------------- completion

CHOICES = 25
"""Discord's limit for autocompletion."""
LONGEST_CHOICE = 100

Named = Iterable[tuple[str, str]]
"""Pairs of a text that is shown, and the value it stands for."""


class Completion:
    """The completions of all parameters."""

    def __init__(self, context: CommandContext) -> None:
        self._context = context
        self._of: Mapping[Completes, Callable[[Interaction, str], Coroutine[Any, Any, Named]]] = {
            "memory": self._memories,
            "persona": self._personas,
            "change": self._changes,
            "channel": self._channels,
            "zone": self._zones,
            "model": self._models,
        }

    async def complete(
        self, what: Completes, interaction: Interaction, typed: str
    ) -> list[app_commands.Choice[str]]:
        """The choices that fit what was typed so far; none for somebody who may not talk to the bot."""
        if not await interaction.client.access.may_talk(interaction.user, interaction.guild):
            return []
        try:
            if what != "model":
                self._context.require("memory")
            await interaction.client.look(interaction)
            found = await in_time(self._of[what](interaction, typed))
        except (MemoryFault, Refused):
            return []
        return [
            app_commands.Choice(name=name[:LONGEST_CHOICE], value=value)
            for name, value in islice(found, CHOICES)
        ]

    async def _memories(self, interaction: Interaction, typed: str) -> Named:
        view = await self._context.store.view(_subject(interaction), self._persona_of(interaction))
        wanted = normalise(typed)
        return (
            (yours(item.text), item.id)
            for item in view.active()
            if holds(f"{item.text} you your", typed) or wanted in item.id
        )

    async def _personas(self, interaction: Interaction, typed: str) -> Named:
        branches = await self._context.store.branches(_subject(interaction))
        wanted = typed.strip().casefold()
        return [
            (f"{branch.name} – {branch.persona}" if branch.persona else branch.name, branch.name)
            for branch in branches.all.values()
            if wanted in branch.name or wanted in branch.persona.casefold()
        ]

    async def _changes(self, interaction: Interaction, typed: str) -> Named:
        history = await self._context.store.history(_subject(interaction))
        done_by = teller(history, in_private=True)
        wanted = typed.strip().casefold()
        return [
            (f"{line(done, 60)}, {day(ms_of_iso(commit.timestamp))} ({commit.id})", commit.id)
            for commit in reversed(history.commits.values())
            for done in [done_by(commit)]
            if commit.id.startswith(wanted) or wanted in done.casefold()
        ]

    async def _channels(self, interaction: Interaction, typed: str) -> Named:
        """The channels that the person can read, of those the bot listens in. Threads have to be typed."""
        guild, person, wanted = interaction.guild, interaction.user, typed.strip().lstrip("#").casefold()
        own = [("our direct messages", DM)] if wanted in "our direct messages" or wanted == DM else []
        if guild is None or not isinstance(person, discord.Member):
            return own
        return own + [
            (f"#{channel.name}", str(channel.id))
            for channel in guild.channels
            if wanted in channel.name.casefold()
            and isinstance(channel, discord.abc.Messageable)
            and interaction.client.listens(channel)
            and may_read(channel, person)
        ]

    def _persona_of(self, interaction: Interaction) -> str | None:
        channel: Any = interaction.channel
        return self._context.places.of(wire.place_of(channel)) if channel is not None else None

    async def _models(self, interaction: Interaction, typed: str) -> Named:
        """The models that are known, and what was typed: any name may be one."""
        wanted = typed.strip().casefold()
        known = [name for name in self._context.settings.models if wanted in name.casefold()]
        return [(name, name) for name in known] or [(typed, typed)]

    async def _zones(self, interaction: Interaction, typed: str) -> Named:
        """The server's zone, until something is typed."""
        if not typed.strip():
            return [(interaction.client.settings.timezone,) * 2]
        return [(name, name) for name in await asyncio.to_thread(names_like, typed, CHOICES)]


def _subject(interaction: Interaction) -> str:
    return user_subject(str(interaction.user.id))


# ---------------------------------------------------------------------- commands that Discord still offers

OUTDATED = (
    "That command has changed since Discord showed it to you. Reload Discord to see it as it is now; "
    "`!memory help` lists all of them."
)


def answer_outdated(tree: app_commands.CommandTree[Any]) -> None:
    """Have the tree tell people so; without that, Discord says that the bot did not respond."""
    of_others = tree.on_error

    async def on_error(interaction: discord.Interaction[Any], error: app_commands.AppCommandError) -> None:
        if not isinstance(error, app_commands.CommandNotFound | app_commands.CommandSignatureMismatch):
            await of_others(interaction, error)
            return
        log.info("a command that Discord still offers is out of date: %s", error)
        if interaction.type is discord.InteractionType.autocomplete:
            return  # takes nothing but choices
        try:
            with discord_errors():
                await interaction.response.send_message(OUTDATED, ephemeral=True)
        except ChatError as unsent:
            log.warning("somebody could not be told that a command is out of date: %s", unsent)

    tree.error(on_error)
