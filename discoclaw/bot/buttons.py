"""Buttons and menus that outlive a restart: all they know stands in their custom id, which Discord keeps.

The message says what came of a press and loses its buttons, so a second press, or an old one, finds it done
already. How a press is taken is in `pressed`, and what it does in `presses`.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any, ClassVar, Self, cast

import discord

from discoclaw.bot.answers import Page, Unclear
from discoclaw.bot.asked import STAMP, Asked, stamp
from discoclaw.bot.cards.layout import below
from discoclaw.bot.cards.questions import settle_buttons
from discoclaw.bot.cards.reading import texts_shown as shown_by
from discoclaw.bot.cards.turning import written
from discoclaw.bot.pressed import Opens, Pressed, whisper
from discoclaw.bot.presses import Outcome, Press, Presses
from discoclaw.bot.texts import naming
from discoclaw.core.draft import Resolution
from discoclaw.core.item import Item
from discoclaw.core.view import Conflict

USER = r"(?P<user>\d{1,20})"
BRANCH = r"(?P<branch>[^:]{1,40})"
_VERB = rf"(?P<verb>{'|'.join(naming.ACTS)})"

# ---------------------------------------------------------------------- the buttons


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

    style: ClassVar[discord.ButtonStyle] = discord.ButtonStyle.secondary

    def __init__(self, custom_id: str, label: str = "-", style: discord.ButtonStyle | None = None) -> None:
        button: discord.ui.Button[Any] = discord.ui.Button(
            label=label[:80], style=style or self.style, custom_id=custom_id
        )
        super().__init__(button, custom_id)

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


class SettleButton(
    PersonalButton,
    template=rf"settle:{USER}:(?P<event>[0-9a-f]{{16}}):(?P<how>keep_old|use_new|both_valid):{BRANCH}",
):
    """Says which side of a conflict holds."""

    once = True

    async def do(self, presses: Presses, press: Press) -> str:
        how = cast(Resolution, self.known["how"])
        return await presses.settle(press, self.known["event"], how, self.known["branch"])


class UndoButton(PersonalButton, template=rf"undo:{USER}:(?P<commit>[0-9a-f]{{16}}):{BRANCH}"):
    """Takes one commit back."""

    once = True

    async def do(self, presses: Presses, press: Press) -> str:
        return await presses.undo(press, self.known["commit"], self.known["branch"])


class SwitchButton(PersonalButton, template=rf"switch:{USER}:{BRANCH}"):
    """Switches to a persona."""

    once = True

    async def do(self, presses: Presses, press: Press) -> str:
        return await presses.switch(press, self.known["branch"])


class HatchButton(PersonalButton, template=rf"hatch:{USER}"):
    """Begins the interview that gives us a personality."""

    once = True
    needs = ()

    async def do(self, presses: Presses, press: Press) -> str:
        return await presses.hatch(press)


class EraseButton(PersonalButton, template=rf"erase:{USER}:(?P<target>\d{{1,20}})"):
    """Erases everything."""

    async def do(self, presses: Presses, press: Press) -> str:
        return await presses.erase(press, self.known["target"])


class KeepButton(PersonalButton, template=rf"keep:{USER}"):
    """Leaves everything as it is."""

    needs = ()

    async def do(self, presses: Presses, press: Press) -> str:
        return "I erased nothing."


class ActButton(PersonalButton, template=rf"act:{USER}:{_VERB}:(?P<item>{STAMP}):{BRANCH}"):
    """Carries a command out for the one memory it asked about."""

    async def do(self, presses: Presses, press: Press) -> Outcome:
        return await _again(presses, press, self.known, self.known["item"])


class MemoryMenu(PersonalMenu, template=rf"pick:{USER}:{_VERB}:{BRANCH}"):
    """Carries a command out for the memory that is chosen."""

    async def do(self, presses: Presses, press: Press) -> Outcome:
        return await _again(presses, press, self.known, ",".join(self.item.values))


class TickedButton(PersonalButton, template=rf"ticked:{USER}:{_VERB}:{BRANCH}"):
    """Carries a command out for the memories that the menu above it has ticked."""

    async def do(self, presses: Presses, press: Press) -> Outcome:
        assert press.message is not None
        rows = [one for one in press.message.components if isinstance(one, discord.ActionRow)]
        menus = [one for row in rows for one in row.children if isinstance(one, discord.SelectMenu)]
        ticked = [option.value for menu in menus for option in menu.options if option.default]
        return await _again(presses, press, self.known, ",".join(ticked))


class ListButton(PersonalButton, template=rf"list:{USER}:{_VERB}:(?P<page>\d{{1,6}}):{BRANCH}"):
    """Shows another page of a list of memories, from what is so now."""

    async def do(self, presses: Presses, press: Press) -> Outcome:
        assert press.message is not None
        shown = shown_by(press.message)
        typed = written([one for one in (naming.typed_in(shown), naming.new_text(shown)) if one])
        try:
            return await presses.commands.turn(press, self.known["verb"], typed, int(self.known["page"]))
        except Unclear as question:
            (page,) = question.answer if isinstance(question.answer, list) else (Page(str(question)),)
            return page

    async def show(self, press: Press, outcome: Outcome) -> None:
        """Turn the page; what the model proposed becomes a list that its person alone sees."""
        if press.message is not None and press.message.flags.components_v2 and isinstance(outcome, Page):
            await whisper(press, outcome)
        else:
            await super().show(press, outcome)


class LostButton(PersonalButton, template=rf"lost:{USER}"):
    """Remembers what an edit left out, as a memory of its own."""

    async def do(self, presses: Presses, press: Press) -> Outcome:
        assert press.message is not None
        return await presses.commands.turn(press, "remember", naming.lost_in(press.message.content), 1)


class LeaveButton(PersonalButton, template=rf"leave:{USER}"):
    """Leaves a memory as it is."""

    needs = ()

    async def do(self, presses: Presses, press: Press) -> str:
        return naming.LEFT


class OpenButton(Opens, PersonalButton, template=rf"open:{USER}:(?P<text>.+)"):
    """Gives a command (`memory show`), or asks as a request of a kind (`optout`); see `Given.opened`."""

    async def do(self, presses: Presses, press: Press) -> Outcome:
        await presses.commands.opened(press, self.known["text"])
        return ""


async def _again(presses: Presses, press: Press, known: Mapping[str, str], item: str) -> Outcome:
    assert press.message is not None  # a button stands below one
    # A new text is too long for a custom id; it stands in the question, which only we can edit.
    text = naming.new_text(press.message.content) if known["verb"] == "edit" else ""
    return await presses.commands.again(press, Asked(known["verb"], item, known["branch"], text))


ALL: tuple[type[Control], ...] = (
    SettleButton,
    UndoButton,
    SwitchButton,
    HatchButton,
    EraseButton,
    KeepButton,
    ActButton,
    MemoryMenu,
    TickedButton,
    ListButton,
    LostButton,
    LeaveButton,
    OpenButton,
)
"""The client registers these before it connects."""


# ---------------------------------------------------------------------- what they stand below


def settle_view(user_id: str, conflict: Conflict, branch: str) -> discord.ui.View:
    """The answers to a question."""
    return below(settle_buttons(user_id, conflict, branch))


def erase_view(asker: str, target: str) -> discord.ui.View:
    return lasting(
        EraseButton(f"erase:{asker}:{target}", "Erase everything", discord.ButtonStyle.danger),
        KeepButton(f"keep:{asker}", "Keep everything"),
    )


def one_view(user_id: str, verb: str, item: Item, branch: str) -> discord.ui.View:
    """Yes or no to a question about one memory."""
    act = naming.ACTS[verb]
    style = discord.ButtonStyle.danger if act.harmful else discord.ButtonStyle.primary
    return lasting(
        ActButton(f"act:{user_id}:{verb}:{stamp(item)}:{branch}", act.yes, style),
        LeaveButton(f"leave:{user_id}", act.no),
    )


def open_view(user_id: str, opens: Sequence[tuple[str, str]]) -> discord.ui.View:
    """Buttons by what they say, and what each opens, once. What is too long for Discord has none."""
    ids = {f"open:{user_id}:{text}": label for label, text in opens}
    return lasting(*(OpenButton(one, label) for one, label in ids.items() if len(one) <= 100))


def lost_view(user_id: str) -> discord.ui.View:
    """The buttons below an edit that left something out."""
    return lasting(LostButton(f"lost:{user_id}", "Remember that too"))


def menu_view(user_id: str, verb: str, items: Sequence[Item], branch: str) -> discord.ui.View:
    """A menu of memories, as many as Discord takes, and a way to choose none."""
    options = [_option(item) for item in items[: naming.MOST_OPTIONS]]
    leave = LeaveButton(f"leave:{user_id}", naming.NONE_OF_THESE)
    return lasting(_menu(user_id, verb, branch, options, naming.ACTS[verb].which), leave)


def list_view(
    user_id: str, verb: str, items: Sequence[Item], ticked: Collection[str], branch: str, page: int
) -> discord.ui.View:
    """The controls below a page of a list: one press for those that are `ticked` (ids), a menu for others."""
    act, first = naming.ACTS[verb], (page - 1) * naming.ON_A_PAGE
    some = items[first : first + naming.ON_A_PAGE]
    options = [_option(one, number, ticked=one.id in ticked) for number, one in enumerate(some, first + 1)]
    menu = _menu(user_id, verb, branch, options, naming.OTHERS, len(options))
    numbers = [str(number) for number, one in enumerate(some, first + 1) if one.id in ticked]
    style = discord.ButtonStyle.danger if act.harmful else discord.ButtonStyle.primary
    controls: list[Control] = [menu]
    if numbers:
        label = f"{act.yes}: {', '.join(numbers)}"
        controls.append(TickedButton(f"ticked:{user_id}:{verb}:{branch}", label, style))
    controls.append(LeaveButton(f"leave:{user_id}", naming.NONE_OF_THESE))
    pages = -(-len(items) // naming.ON_A_PAGE)
    for there, sign in ((page - 1, "◀"), (page + 1, "▶")):
        if 1 <= there <= pages:
            controls.append(ListButton(f"list:{user_id}:{verb}:{there}:{branch}", sign))
    return lasting(*controls)


def _option(item: Item, number: int = 0, *, ticked: bool = False) -> discord.SelectOption:
    label, small = naming.option(item, number)
    return discord.SelectOption(label=label, description=small, value=stamp(item), default=ticked)


def _menu(
    user_id: str, verb: str, branch: str, options: list[discord.SelectOption], hint: str, most: int = 1
) -> MemoryMenu:
    custom_id = f"pick:{user_id}:{verb}:{branch}"
    menu: discord.ui.Select[Any] = discord.ui.Select(
        custom_id=custom_id, placeholder=hint, options=options, max_values=most
    )
    return MemoryMenu(custom_id, menu)


def lasting(*buttons: Control) -> discord.ui.View:
    """A view of buttons below a message, for as long as the message stands."""
    # It never times out: a view that ends takes its buttons' registration with it, for all messages.
    view = discord.ui.View(timeout=None)
    for button in buttons:
        view.add_item(button)
    return view
