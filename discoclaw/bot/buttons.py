"""Buttons that outlive a restart: all they know stands in their custom id, and Discord keeps that.

Each is for one person; others are told so. A press is answered within Discord's three seconds before
anything is done, then the message becomes what came of it and loses its buttons; so a second press, or an
old one, finds that it is done already. What a press does is in `Presses`, which knows no buttons.
"""

import logging
import re
from abc import abstractmethod
from collections.abc import Awaitable, Callable
from typing import Any, ClassVar, Self, cast

import discord

from discoclaw.bot import memory_text, wire
from discoclaw.bot.answers import DISABLED, FAILED, NOT_ALLOWED, OPTED_OUT, sentence
from discoclaw.bot.errors import discord_errors
from discoclaw.bot.pages import SILENT
from discoclaw.core.draft import Origin, Resolution
from discoclaw.core.errors import ChatError, ChatGone, MemoryFault, Refused
from discoclaw.core.privacy import DmPrivacy
from discoclaw.core.subject import user_subject
from discoclaw.core.text import clip
from discoclaw.core.view import Conflict
from discoclaw.memory.people.choices import Choices
from discoclaw.memory.subjects import verbs
from discoclaw.memory.subjects.store import Memory
from discoclaw.session.hatch import Hatchery

log = logging.getLogger(__name__)

NOT_YOURS = "These buttons are for somebody else."
DONE_ALREADY = "that is done already"
GONE = "what was learned here is gone already, with the memory or the persona it was in"

_USER = r"(?P<user>\d{1,20})"
_BRANCH = r"(?P<branch>[^:]{1,40})"

Press = discord.Interaction[Any]


class Presses:
    """What a press does, given what its button knows. `may_talk` is the allowlist.

    Every verb returns what the message then says, or raises Refused or MemoryFault.
    """

    def __init__(
        self,
        memory: Memory | None,
        *,
        dm_privacy: DmPrivacy,
        owners: frozenset[str],
        may_talk: Callable[..., Awaitable[bool]],
        choices: Choices,
        hatchery: Hatchery,
    ) -> None:
        self._memory = memory
        self._dm_privacy = dm_privacy
        self._owners = owners
        self.may_talk = may_talk
        self._choices = choices
        self._hatchery = hatchery

    def _store(self) -> Memory:
        if self._memory is None:
            raise Refused(DISABLED)
        return self._memory

    def _origin(self, press: Press) -> Origin:
        return Origin(
            "stated",
            said_at=int(press.created_at.timestamp() * 1000),
            private=press.guild_id is None,
            evidence=_at(press),
            dm_privacy=self._dm_privacy,
        )

    async def settle(self, press: Press, event_id: str, how: Resolution, branch: str) -> str:
        """The person says which side of a conflict holds."""
        store, subject = self._store(), user_subject(str(press.user.id))
        if branch not in (await store.branches(subject)).all:
            raise Refused(f"the persona {branch!r} is gone, and the question with it")
        if how != "keep_old" and self._choices.opted_out(str(press.user.id)):
            raise Refused(OPTED_OUT)
        view = await store.view(subject, branch)
        for conflict in view.conflicts:
            if conflict.event_id == event_id:
                held = view.items[conflict.item_id].text
                break
        else:
            raise Refused(DONE_ALREADY)
        await verbs.settle(
            store, subject, event_id, how, self._origin(press), branch=branch, by="button", at=_at(press)
        )
        return memory_text.NOTE + memory_text.settled(held, conflict, how)

    async def undo(self, press: Press, commit: str, branch: str) -> str:
        """What was learned is taken back."""
        subject = user_subject(str(press.user.id))
        history = await self._store().history(subject)
        if commit not in history.commits or branch not in history.branches.all:
            raise Refused(GONE)
        done = await verbs.revert(
            self._store(), subject, commit, self._origin(press), on=branch, by="button", at=_at(press)
        )
        if done.commit is not None:
            left = "; what has changed since stays" if done.clashes else ""
            return f"{memory_text.NOTE}taken back{left}"
        raise Refused("it has changed since, so it stays" if done.clashes else DONE_ALREADY)

    async def switch(self, press: Press, branch: str) -> str:
        """HEAD moves to the persona that was proposed."""
        store, subject = self._store(), user_subject(str(press.user.id))
        branches = await store.branches(subject)
        if branches.named(branch).name == branches.current:
            raise Refused(f"you are on {branch!r} already")
        said_at = int(press.created_at.timestamp() * 1000)
        after = await verbs.switch(store, subject, branch, said_at=said_at, by="button", at=_at(press))
        return f"{memory_text.NOTE}You are on your persona **{memory_text.plain(after.current)}** now."

    async def hatch(self, press: Press) -> str:
        """An interview about who we are to be begins where the button stands."""
        assert press.message is not None  # a button stands below one
        place = wire.place_of(press.message.channel)
        return await self._hatchery.begin(str(press.user.id), place, str(press.message.id))

    async def erase(self, press: Press, target: str) -> str:
        """All that is remembered of a person is destroyed: of oneself, or of anybody by an owner."""
        own = str(press.user.id) == target
        if not own and str(press.user.id) not in self._owners:
            raise Refused("only the person themselves or an owner of mine can do that")
        store, subject = self._store(), user_subject(target)
        asked = int(press.message.created_at.timestamp() * 1000) if press.message is not None else 0
        if store.erased_at(subject) >= asked:
            raise Refused(DONE_ALREADY)
        erased = await store.erase(subject, asked_at=int(press.created_at.timestamp() * 1000))
        return memory_text.erased(erased, own=own)


def _at(press: Press) -> str:
    message = press.message
    return f"{press.channel_id}/{message.id if message is not None else press.id}"


# ---------------------------------------------------------------------- the buttons


class _Button(discord.ui.DynamicItem[discord.ui.Button[discord.ui.View]], template=r"(?!)"):
    """What all have in common. `user` is the one person who may press."""

    style: ClassVar[discord.ButtonStyle] = discord.ButtonStyle.secondary

    def __init__(self, custom_id: str, label: str = "-", style: discord.ButtonStyle | None = None) -> None:
        super().__init__(discord.ui.Button(label=label[:80], style=style or self.style, custom_id=custom_id))
        found = self.template.fullmatch(custom_id)
        assert found is not None  # discord.py has matched it
        self.given = found.groupdict()

    @classmethod
    async def from_custom_id(
        cls, interaction: discord.Interaction[Any], item: discord.ui.Item[Any], match: re.Match[str], /
    ) -> Self:
        """The button that was pressed, from what Discord kept of it."""
        return cls(match[0])

    @abstractmethod
    async def do(self, presses: Presses, press: Press) -> str:
        """Do it, and say what the message says then. Raises Refused and MemoryFault."""

    async def callback(self, interaction: discord.Interaction[Any]) -> None:
        try:
            with discord_errors():
                if str(interaction.user.id) != self.given["user"]:
                    await interaction.response.send_message(NOT_YOURS, ephemeral=True)
                    return
                await interaction.response.defer()
            await self._answer(interaction)
        except ChatError as error:
            log.warning("a pressed button could not be answered: %s", error)

    async def _answer(self, press: Press) -> None:
        presses = cast(Presses, press.client.presses)
        if not await presses.may_talk(press.user, press.guild):
            await _whisper(press, NOT_ALLOWED)
            return
        try:
            told = await self.do(presses, press)
        except Refused as refusal:
            await _settle_down(press)
            await _whisper(press, sentence(refusal))
        except MemoryFault as fault:
            log.warning("a pressed button changed nothing: %s", fault)
            await _whisper(press, FAILED)
        except Exception:  # a named edge: nobody waits for an answer that does not come
            log.exception("a pressed button failed")
            await _whisper(press, FAILED)
        else:
            await _become(press, told)


async def _become(press: Press, text: str) -> None:
    """The message says what came of it; one that was deleted meanwhile is said again."""
    try:
        with discord_errors():
            await press.edit_original_response(content=clip(text, 2000), view=None, allowed_mentions=SILENT)
    except ChatGone:
        await _whisper(press, text)


async def _settle_down(press: Press) -> None:
    """Nothing is left to press."""
    try:
        with discord_errors():
            await press.edit_original_response(view=None)
    except ChatError as error:
        log.info("the buttons of a message stay: %s", error)


async def _whisper(press: Press, text: str) -> None:
    with discord_errors():
        await press.followup.send(clip(text, 2000), ephemeral=True, allowed_mentions=SILENT)


class SettleButton(
    _Button,
    template=rf"settle:{_USER}:(?P<event>[0-9a-f]{{16}}):(?P<how>keep_old|use_new|both_valid):{_BRANCH}",
):
    """Says which side of a conflict holds."""

    async def do(self, presses: Presses, press: Press) -> str:
        how = cast(Resolution, self.given["how"])
        return await presses.settle(press, self.given["event"], how, self.given["branch"])


class UndoButton(_Button, template=rf"undo:{_USER}:(?P<commit>[0-9a-f]{{16}}):{_BRANCH}"):
    """Takes one commit back."""

    async def do(self, presses: Presses, press: Press) -> str:
        return await presses.undo(press, self.given["commit"], self.given["branch"])


class SwitchButton(_Button, template=rf"switch:{_USER}:{_BRANCH}"):
    """Switches to a persona."""

    async def do(self, presses: Presses, press: Press) -> str:
        return await presses.switch(press, self.given["branch"])


class HatchButton(_Button, template=rf"hatch:{_USER}"):
    """Begins the interview that gives us a personality."""

    async def do(self, presses: Presses, press: Press) -> str:
        return await presses.hatch(press)


class EraseButton(_Button, template=rf"erase:{_USER}:(?P<target>\d{{1,20}})"):
    """Erases everything."""

    async def do(self, presses: Presses, press: Press) -> str:
        return await presses.erase(press, self.given["target"])


class KeepButton(_Button, template=rf"keep:{_USER}"):
    """Leaves everything as it is."""

    async def do(self, presses: Presses, press: Press) -> str:
        return "Nothing was erased."


ALL: tuple[type[_Button], ...] = (
    SettleButton,
    UndoButton,
    SwitchButton,
    HatchButton,
    EraseButton,
    KeepButton,
)
"""To be registered with the client before it connects."""


# ---------------------------------------------------------------------- what they stand below


def settle_view(user_id: str, conflict: Conflict, branch: str) -> discord.ui.View:
    """The answers to a question: three, or two where there are no other words to keep as well."""
    red = discord.ButtonStyle.danger
    answers: list[tuple[Resolution, str, discord.ButtonStyle | None]] = (
        [
            ("keep_old", "Keep the old", None),
            ("use_new", "Use the new", None),
            ("both_valid", "Both hold", None),
        ]
        if conflict.text
        else [("keep_old", "It still holds", None), ("use_new", "Forget it", red)]
    )
    return _view(
        *(
            SettleButton(f"settle:{user_id}:{conflict.event_id}:{how}:{branch}", label, style)
            for how, label, style in answers
        )
    )


def undo_view(user_id: str, commit: str, branch: str) -> discord.ui.View:
    return _view(UndoButton(f"undo:{user_id}:{commit}:{branch}", "Undo"))


def switch_view(user_id: str, branch: str) -> discord.ui.View:
    return _view(SwitchButton(f"switch:{user_id}:{branch}", f"Switch to {branch}"))


def hatch_view(user_id: str) -> discord.ui.View:
    return _view(HatchButton(f"hatch:{user_id}", "Give me a personality"))


def erase_view(asker: str, target: str) -> discord.ui.View:
    return _view(
        EraseButton(f"erase:{asker}:{target}", "Erase everything", discord.ButtonStyle.danger),
        KeepButton(f"keep:{asker}", "Keep"),
    )


def _view(*buttons: _Button) -> discord.ui.View:
    # It never times out: a view that ends takes its buttons' registration with it, for all messages.
    view = discord.ui.View(timeout=None)
    for button in buttons:
        view.add_item(button)
    return view
