"""Buttons, menus and forms on the cards of `/settings`. All of them outlive a restart."""

import logging
import re
from typing import Any, Self, cast

import discord

from discoclaw.bot.answers import NOT_ALLOWED, sentence
from discoclaw.bot.buttons import USER, Control, PersonalButton, PersonalMenu
from discoclaw.bot.cards.card import Card
from discoclaw.bot.modals import Field, PersonalModal, opened
from discoclaw.bot.pages import SILENT
from discoclaw.bot.presses import Press, Presses
from discoclaw.bot.settings.admins import Admin
from discoclaw.bot.settings.cards import field_card, main_card, shown_scope, typed_hint
from discoclaw.bot.texts.markup import words
from discoclaw.bot.wire import discord_errors
from discoclaw.core.errors import ChatError, Refused
from discoclaw.core.live import Scope
from discoclaw.core.policy import changed_words, typed_value

log = logging.getLogger(__name__)

SCOPE = r"(?P<scope>\d{1,20})"
FIELD = r"(?P<field>[a-z_]{1,30})"
TYPED = "value"
SAME = "That's what it is already."


class FieldMenu(PersonalMenu, template=rf"settings:{USER}:{SCOPE}"):
    """Shows the setting that was chosen."""

    needs = ()

    async def do(self, presses: Presses, press: Press) -> Card:
        admin = await _admin(presses, press)
        return field_card(admin, shown_scope(self.known["scope"]), str(self.item.values[0]))


class ChannelMenu(Control, template=rf"settings-of:{USER}"):
    """Shows the settings of another channel."""

    needs = ()

    @classmethod
    async def from_custom_id(
        cls, interaction: discord.Interaction[Any], item: discord.ui.Item[Any], match: re.Match[str], /
    ) -> Self:
        return cls(item, match[0])

    async def do(self, presses: Presses, press: Press) -> Card:
        chosen = cast("discord.ui.ChannelSelect[Any]", self.item).values[0]
        return main_card(await _admin(presses, press), Scope("group", str(chosen.id)))


class ScopeButton(PersonalButton, template=rf"settings-in:{USER}:{SCOPE}"):
    """Shows all settings of a scope."""

    needs = ()

    async def do(self, presses: Presses, press: Press) -> Card:
        return main_card(await _admin(presses, press), shown_scope(self.known["scope"]))


class ValueMenu(PersonalMenu, template=rf"setting:{USER}:{SCOPE}:{FIELD}"):
    """Gives a setting the value that was chosen."""

    needs = ()

    async def do(self, presses: Presses, press: Press) -> Card:
        return await _change(presses, press, self.known, str(self.item.values[0]))


class UnsetButton(PersonalButton, template=rf"setting-unset:{USER}:{SCOPE}:{FIELD}"):
    """Leaves a setting to what applies otherwise."""

    needs = ()

    async def do(self, presses: Presses, press: Press) -> Card:
        return await _change(presses, press, self.known, "")


class TypeButton(PersonalButton, template=rf"setting-type:{USER}:{SCOPE}:{FIELD}"):
    """Opens the modal in which a value is typed."""

    needs = ()

    async def take(self, press: Press) -> None:
        try:
            if not await self.theirs(press):
                return
            scope, name = shown_scope(self.known["scope"]), self.known["field"]
            presses = cast(Presses, press.client.presses)
            admin = Admin(press, presses.settings, presses.owners)
            try:
                if not await presses.may_talk(press.user, press.guild):
                    raise Refused(NOT_ALLOWED)
                admin.check(scope)
                row = admin.settings.row(scope, name)
            except Refused as refusal:
                with discord_errors():
                    await press.response.send_message(
                        sentence(refusal), ephemeral=True, allowed_mentions=SILENT
                    )
                return
            label, long, most = typed_hint(row.field)
            text = "" if row.own is None else str(row.own)
            field = Field(TYPED, label, text, long=long, required=False, most=most)
            custom_id = f"setting-typed:{admin.user_id}:{self.known['scope']}:{name}"
            await opened(press, custom_id, row.field.title, [field])
        except ChatError as error:
            log.warning("a modal could not be opened: %s", error)


class ValueModal(PersonalModal, template=rf"setting-typed:{USER}:{SCOPE}:{FIELD}"):
    """Gives a setting the value that was typed; an empty one takes it back."""

    needs = ()

    async def do(self, presses: Presses, press: Press) -> Card:
        return await _change(presses, press, self.known, self.values.get(TYPED, ""))


async def _admin(presses: Presses, press: Press) -> Admin:
    await presses.settings.refresh()
    return Admin(press, presses.settings, presses.owners)


async def _change(presses: Presses, press: Press, known: Any, typed: str) -> Card:
    """Give a setting a value, or take it back with "". Raises Refused."""
    admin, scope, name = await _admin(presses, press), shown_scope(known["scope"]), known["field"]
    admin.check(scope)
    field = admin.settings.row(scope, name).field
    value = typed_value(field, typed)
    if not await admin.settings.change(scope, name, value, admin.by):
        return main_card(admin, scope, SAME)
    return main_card(admin, scope, f"{field.title} {words(changed_words(field, value), 127)}.")


ALL = (FieldMenu, ChannelMenu, ScopeButton, ValueMenu, UnsetButton, TypeButton)
MODALS: tuple[type[PersonalModal], ...] = (ValueModal,)
"""The client registers these before it connects."""
