"""Acts of the buttons below messages, given what a button knows. Knows nothing about buttons.

Every press returns what the message then says, or raises Refused or MemoryFault.
"""

from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import replace
from typing import Any, Protocol, cast

import discord

from discoclaw.bot import wire
from discoclaw.bot.answers import OPTED_OUT, sentence
from discoclaw.bot.commands.context import CommandContext
from discoclaw.bot.commands.spec import Need
from discoclaw.bot.memories import Asked, erased
from discoclaw.bot.proposals import answered
from discoclaw.bot.purge import Telling
from discoclaw.bot.questions import settled
from discoclaw.bot.requests import Request
from discoclaw.core.draft import AlreadySettled, Origin, Resolution
from discoclaw.core.errors import Refused
from discoclaw.core.item import Item
from discoclaw.core.message import Inbound, Place
from discoclaw.core.pending import Key, is_proposal, key_of_event
from discoclaw.core.subject import user_subject
from discoclaw.core.view import View
from discoclaw.memory.subjects import verbs
from discoclaw.session.live_settings import LiveSettings
from discoclaw.show.answer import Answer
from discoclaw.show.markup import NOTE, name

DONE_ALREADY = "that is done already"
GONE = "I can't find that any more: the memory or its persona was deleted since"

Press = discord.Interaction[Any]
Outcome = str | Answer
"""The result of a press, as the message then shows it."""


class Given(Protocol):
    """The commands, as a press gives them. All raise Refused and MemoryFault."""

    async def again(self, press: Press, asked: Asked, /) -> Outcome:
        """Carry out the command that asked which memory is meant."""

    async def turn(self, press: Press, verb: str, values: str, page: int, /) -> Answer:
        """Give a command again, for a page of its card."""

    async def meant(self, press: Press, asked: Asked, /) -> Item:
        """The memory that a card shows, as it is now."""

    async def opened(self, press: Press, text: str, /) -> None:
        """Carry out a command as text, or the request of a kind, for the person who pressed alone."""

    def request_of(self, heard: Inbound, /) -> Request | None:
        """The request in a message, in plain words or as a mistyped command; None if it is talk."""

    async def requested(self, message: discord.Message, asked: Request, /) -> None:
        """Do what a message asks for."""

    async def filled(self, press: Press, name: str, message: str, values: Mapping[str, str], /) -> None:
        """Carry out a command with what was typed into its form."""


class Presses:
    """The things that buttons do. `may_talk` is the allowlist, `owners` are user ids.

    `commands` are given again by what is pressed. `pending_days`: what waits for a yes lapses after so long.
    """

    def __init__(
        self,
        context: CommandContext,
        telling: Telling,
        *,
        owners: frozenset[str],
        may_talk: Callable[..., Awaitable[bool]],
        commands: "Given",
        pending_days: float = 0,
    ) -> None:
        self.pending_days = pending_days
        self._context = context
        self._telling = telling
        self.owners = owners
        self.may_talk = may_talk
        self.commands = commands

    @property
    def settings(self) -> LiveSettings:
        """The settings that admins change."""
        return self._context.settings

    def require(self, *needs: Need) -> None:
        """Raise Refused unless every part that a button needs is switched on."""
        self._context.require(*needs)

    async def told(self, press: Press, work: Awaitable[Outcome]) -> Outcome:
        """The result of a press, and below it what it took back."""
        hidden = press.message is None or press.message.flags.ephemeral
        outcome, taken_back = await self._telling.told(
            press.user, _place(press), work, in_private=hidden or press.guild_id is None
        )
        lines = taken_back.splitlines()
        if isinstance(outcome, str):
            return "\n".join([outcome, *(f"{NOTE}{line}" for line in lines)])
        lines = [f"{NOTE}{line}" for line in lines] if outcome.plain else lines
        return replace(outcome, foot=(*outcome.foot, *lines))

    def _origin(self, press: Press) -> Origin:
        return Origin(
            "stated",
            said_at=_pressed_at(press),
            private=press.guild_id is None,
            evidence=_at(press),
            dm_privacy=self._context.dm_privacy,
        )

    async def head(self, press: Press, branch: str) -> str | None:
        """The newest change of a persona; None if it has none of its own."""
        branches = await self._context.store.branches(user_subject(str(press.user.id)))
        return branches.all[branch].head if branch in branches.all else None

    async def made(self, press: Press, commit: str) -> bool:
        """Whether a change was made by a press on this message."""
        history = await self._context.store.history(user_subject(str(press.user.id)))
        metadata = history.commits[commit].metadata if commit in history.commits else {}
        return metadata.get("by") == "button" and metadata.get("at") == _at(press)

    async def settle(self, press: Press, event_id: str, how: Resolution, branch: str) -> str:
        """The person says which side of a conflict holds."""
        store, subject = self._context.store, user_subject(str(press.user.id))
        if branch not in (await store.branches(subject)).all:
            raise Refused(f"the persona {branch!r} is gone, and the question with it")
        if how != "keep_old" and self._context.choices.opted_out(str(press.user.id)):
            raise Refused(OPTED_OUT)
        view = await store.view(subject, branch)
        conflict = next((one for one in view.conflicts if one.event_id == event_id), None)
        if conflict is None:
            raise Refused(DONE_ALREADY)
        before = view.items[conflict.item_id].text
        await verbs.settle(
            store, subject, event_id, how, self._origin(press), branch=branch, by="button", at=_at(press)
        )
        return NOTE + settled(before, conflict, how)

    async def undo(self, press: Press, commit: str, branch: str) -> str:
        """Take back what a commit learned."""
        store, subject = self._context.store, user_subject(str(press.user.id))
        history = await store.history(subject)
        if commit not in history.commits or branch not in history.branches.all:
            raise Refused(GONE)
        done = await verbs.revert(
            store, subject, commit, self._origin(press), branch=branch, by="button", at=_at(press)
        )
        if done.commit is not None:
            left = "; what has changed since stays" if done.clashes else ""
            return f"{NOTE}taken back{left}"
        raise Refused("it has changed since, so it stays" if done.clashes else DONE_ALREADY)

    async def answer(self, press: Press, commit: str, branch: str, *, yes: bool) -> str:
        """The person says yes or no to all that one change proposed."""
        history = await self._context.store.history(user_subject(str(press.user.id)))
        if commit not in history.commits or branch not in history.branches.all:
            raise Refused(GONE)
        asked = {key_of_event(event) for event in history.commits[commit].events if is_proposal(event)}
        items = await self._answer(press, asked, branch, yes=yes)
        return answered(items, yes=yes, in_private=press.guild_id is None)

    async def pick(self, press: Press, chosen: Collection[str], branch: str, *, yes: bool) -> str:
        """The person says yes or no to what was proposed by these events. Returns a note about that."""
        view = await self.waiting(press, branch)
        asked = {one.key for one in view.pending if one.event_id in chosen}
        try:
            number = len(await self._answer(press, asked, branch, yes=yes))
            return f"Done: you said {'yes' if yes else 'no'} to {number}."
        except AlreadySettled as settled:  # the menu stays: it shows what is left
            return sentence(settled)

    async def waiting(self, press: Press, branch: str) -> View:
        """The view with what is pending. Raises Refused if its persona is gone."""
        store, subject = self._context.store, user_subject(str(press.user.id))
        if branch not in (await store.branches(subject)).all:
            raise Refused(GONE)
        return await store.view(subject, branch)

    async def _answer(self, press: Press, asked: Collection[Key], branch: str, *, yes: bool) -> list[Item]:
        if yes and self._context.choices.opted_out(str(press.user.id)):
            raise Refused(OPTED_OUT)
        subject = user_subject(str(press.user.id))
        why = {"by": "button", "at": _at(press)}
        return await verbs.answer(
            self._context.store, subject, asked, self._origin(press), yes=yes, branch=branch, **why
        )

    async def switch(self, press: Press, branch: str) -> str:
        """The current persona becomes the one that was proposed."""
        store, subject = self._context.store, user_subject(str(press.user.id))
        branches = await store.branches(subject)
        if branches.named(branch).name == branches.current:
            raise Refused(f"{branch!r} is your persona already")
        asked_at = _pressed_at(press)
        after = await verbs.switch(store, subject, branch, said_at=asked_at, by="button", at=_at(press))
        return f"{NOTE}Your persona is now **{name(after.current)}**."

    async def hatch(self, press: Press) -> str:
        """An interview about our personality begins where the button stands."""
        assert press.message is not None  # a button stands below one
        return await self._context.hatchery.begin(str(press.user.id), _place(press), str(press.message.id))

    async def erase(self, press: Press, target: str) -> str:
        """All that is remembered about a person is destroyed: about oneself, or by an owner about anybody."""
        own = str(press.user.id) == target
        if not own and str(press.user.id) not in self.owners:
            raise Refused("only the person themselves or one of my owners can do that")
        store, subject = self._context.store, user_subject(target)
        asked = int(press.message.created_at.timestamp() * 1000) if press.message is not None else 0
        if store.erased_at(subject) >= asked:
            raise Refused(DONE_ALREADY)
        return erased(await store.erase(subject, asked_at=_pressed_at(press)), own=own)


def _place(press: Press) -> Place:
    return wire.place_of(press.message.channel if press.message is not None else cast(Any, press.channel))


def _pressed_at(press: Press) -> int:
    return int(press.created_at.timestamp() * 1000)


def _at(press: Press) -> str:
    message = press.message
    return f"{press.channel_id}/{message.id if message is not None else press.id}"
