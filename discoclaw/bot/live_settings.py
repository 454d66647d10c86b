"""`/settings`: owners and admins of a server see and change the live configuration, on lasting cards.

The bot's owners may change all of it, a server's admins what is about its channels. Discord hides the
commands from others, but who sees them is a choice of the server. So it is checked here, again at each press:
somebody may have lost a right since the card was shown.
"""

from dataclasses import dataclass
from typing import Any

import discord

from discoclaw.bot import wire
from discoclaw.bot.layout import Field, Form
from discoclaw.bot.pressed import USER, Controls, Pressed, opens_form
from discoclaw.core.errors import Refused
from discoclaw.core.live import GLOBAL, Scope
from discoclaw.core.message import Place
from discoclaw.core.policy import (
    MOST_PROMPT,
    changed_words,
    has_lines,
    longest,
    options,
    typed_value,
)
from discoclaw.core.text import clip
from discoclaw.memory.live import FILE
from discoclaw.session.live_settings import FIXED, By, LiveSettings
from discoclaw.session.live_settings import Row as Setting
from discoclaw.show.answer import Answer, Button, Menu, Row
from discoclaw.show.markup import ago, opening, words
from discoclaw.show.words import line

ONLY_OWNERS = "only my owners can change what applies everywhere; use `/settings` in a channel of your server"
NEEDS = "only my owners and people who can manage this server can change its settings"
UNKNOWN = "I can't find that channel any more"
ELSEWHERE = "you can only change channels of this server that you can see"
MOST_SHOWN = 3000
EVERYWHERE = "0"
"""How a custom id names the global scope."""
RESTART = "My other settings are in `.env`, and need a restart."
SCOPE = r"(?P<scope>\d{1,20})"
FIELD = r"(?P<field>[a-z_]{1,30})"
TYPED = "value"
SAME = "That's what it is already."


@dataclass(frozen=True, slots=True)
class Admin:
    """Somebody who looks at settings, or changes them, by a command or a press."""

    source: discord.Interaction[Any]
    settings: LiveSettings
    owners: frozenset[str]
    """User ids."""

    @property
    def user_id(self) -> str:
        return str(self.source.user.id)

    @property
    def by(self) -> By:
        return By(self.user_id, self.source.user.display_name)

    @property
    def owner(self) -> bool:
        """Whether this is one of the bot's owners."""
        return self.user_id in self.owners

    def check(self, scope: Scope) -> None:
        """Raise Refused unless they may see and change the settings of a scope."""
        if scope == GLOBAL:
            if not self.owner:
                raise Refused(ONLY_OWNERS)
            return
        channel = self._channel(scope)
        if self.owner:
            return
        member, may = self.source.user, self.source.permissions
        if not (may.manage_guild or may.administrator):
            raise Refused(NEEDS)
        here = isinstance(member, discord.Member) and channel.guild.id == self.source.guild_id
        if not here or not channel.permissions_for(member).view_channel:  # type: ignore[arg-type]
            raise Refused(ELSEWHERE)

    def place(self, scope: Scope) -> Place:
        """The channel of a scope. Raises Refused if it is gone."""
        return wire.place_of(self._channel(scope))  # type: ignore[arg-type]

    def _channel(self, scope: Scope) -> discord.abc.GuildChannel:
        found = self.source.client.get_channel(int(scope.id))
        if not isinstance(found, discord.abc.GuildChannel):
            raise Refused(UNKNOWN)
        return found


def scope_of(place: Place) -> Scope:
    """The scope of a place: a channel with its threads, or everywhere for a DM."""
    return GLOBAL if place.group_id is None else Scope("group", place.group_id)


# ---------------------------------------------------------------------- cards


def shown_scope(text: str) -> Scope:
    """The scope that a custom id names."""
    return GLOBAL if text == EVERYWHERE else Scope("group", text)


def written(scope: Scope) -> str:
    """A scope as a custom id names it."""
    return scope.id or EVERYWHERE


def main_card(admin: Admin, scope: Scope, note: str = "") -> Answer:
    """Every setting of a scope, with a menu to change one. Raises Refused."""
    admin.check(scope)
    here, user = written(scope), admin.user_id
    values = [(row, _value(admin, scope, row)) for row in admin.settings.rows(scope)]
    fields = [(row.field.title, line(value, 100), row.field.name) for row, value in values]
    about = "They apply to its threads too, from the next message on. Only you see this."
    if scope == GLOBAL:
        about = "They apply where a channel or a person has no other, from the next message on."
    menus = [Menu(f"settings:{user}:{here}", "Change a setting…", fields)]
    controls: list[Button] = []
    if admin.source.guild_id is not None:
        menus.append(Menu(f"settings-of:{user}", "Another channel…", (), channels=True))
    if admin.owner and scope != GLOBAL:
        controls.append(Button(f"settings-in:{user}:{EVERYWHERE}", "Everywhere"))
    return Answer(
        f"Settings {_of(scope)}",
        [
            Row(f"**{row.field.title}**: {words(value, 120)}", _origin(admin, scope, row))
            for row, value in values
        ],
        above=(about,),
        foot=(RESTART,) if admin.owner else (),
        controls=controls,
        menus=menus,
        most=len(values),
    ).said(note)


def field_card(admin: Admin, scope: Scope, name: str, note: str = "") -> Answer:
    """One setting, and the ways to change it. Raises Refused."""
    admin.check(scope)
    row = admin.settings.row(scope, name)
    field, here, user = row.field, written(scope), admin.user_id
    menus, controls = [], []
    if not row.fixed:
        if chosen := options(field):
            choices = [(means, "", value) for value, means in chosen]
            menus.append(Menu(f"setting:{user}:{here}:{name}", "Choose…", choices))
        else:
            controls.append(Button(f"setting-type:{user}:{here}:{name}", "Change…", "blue"))
        unset = f"setting-unset:{user}:{here}:{name}"
        controls.append(Button(unset, "Use the default", disabled=row.own is None))
    controls.append(Button(f"settings-in:{user}:{here}", "Back"))
    value = row.effective.value
    text = value if name == "prompt" and isinstance(value, str) else _value(admin, scope, row)
    # Markup that is shown as it is takes twice the room; the modal has all of it.
    lines = clip("\n".join(opening(one, MOST_PROMPT) for one in text.splitlines()), MOST_SHOWN) or "none"
    return Answer(
        f"{field.title} {_of(scope)}",
        [Row(lines, _origin(admin, scope, row))],
        above=(field.about,),
        foot=_foot(admin, scope, row),
        controls=controls,
        menus=menus,
    ).said(note)


def _value(admin: Admin, scope: Scope, row: Setting) -> str:
    return admin.settings.words(row, admin.place(scope) if scope != GLOBAL else None)


def _origin(admin: Admin, scope: Scope, row: Setting) -> str:
    """The source of a value, in words."""
    effective = row.effective
    wider = "" if effective.scope == scope else ", for everywhere"
    if effective.source == "event":
        return f"signed by the owner{wider}"
    if effective.source == "file":
        who = row.changed
        set_ = f"set by <@{who.by}> {ago(who.at)}" if who is not None else f"set in `{FILE}`"
        return f"{set_}{wider}"
    if effective.source == "settings" or (effective.value is None and admin.settings.lists(row.field.name)):
        return f"from `{row.field.variable}`"
    return "default"


def _foot(admin: Admin, scope: Scope, row: Setting) -> tuple[str, ...]:
    if row.fixed:
        how = f" `discoclaw config set {scope} {row.field.name}=…` signs another." if admin.owner else ""
        return (f"{FIXED[:1].upper()}{FIXED[1:]}.{how}",)
    if scope == GLOBAL and row.field.kinds != ("global",):
        return ("Channels and people with a setting of their own keep it.",)
    if row.field.name == "listen":
        return ("This says where I listen, not whom I answer: that is my allowlist.",)
    return ()


def _of(scope: Scope) -> str:
    return "for everywhere" if scope == GLOBAL else f"of <#{scope.id}>"


# ---------------------------------------------------------------------- buttons, menus, forms


CONTROLS = Controls()
"""The client takes presses of these."""


@CONTROLS.on(rf"settings:{USER}:{SCOPE}", needs=())
async def show_field(at: Pressed) -> Answer:
    """Show the setting that was chosen."""
    return field_card(await _admin(at), shown_scope(at.known["scope"]), at.chosen[0])


@CONTROLS.on(rf"settings-of:{USER}", needs=())
async def show_channel(at: Pressed) -> Answer:
    """Show the settings of another channel."""
    return main_card(await _admin(at), Scope("group", at.chosen[0]))


@CONTROLS.on(rf"settings-in:{USER}:{SCOPE}", needs=())
async def show_scope(at: Pressed) -> Answer:
    """Show all settings of a scope."""
    return main_card(await _admin(at), shown_scope(at.known["scope"]))


@CONTROLS.on(rf"setting:{USER}:{SCOPE}:{FIELD}", needs=())
async def choose_value(at: Pressed) -> Answer:
    """Give a setting the value that was chosen."""
    return await _change(at, at.chosen[0])


@CONTROLS.on(rf"setting-unset:{USER}:{SCOPE}:{FIELD}", needs=())
async def unset(at: Pressed) -> Answer:
    """Leave a setting to what applies otherwise."""
    return await _change(at, "")


@CONTROLS.on(rf"setting-type:{USER}:{SCOPE}:{FIELD}", needs=(), take=opens_form)
async def type_value(at: Pressed) -> Form:
    """Open the form in which a value is typed."""
    scope, name = shown_scope(at.known["scope"]), at.known["field"]
    admin = Admin(at.press, at.context.settings, at.commands.settings.owners)
    admin.check(scope)
    row = admin.settings.row(scope, name)
    field, text = row.field, "" if row.own is None else str(row.own)
    allowed = f"{field.type.allowed[:1].upper()}{field.type.allowed[1:]}"
    most = longest(field)
    typed = Field(TYPED, allowed, text, long=has_lines(field), required=False, most=most)
    return Form(f"setting-typed:{admin.user_id}:{at.known['scope']}:{name}", field.title, [typed])


@CONTROLS.on(rf"setting-typed:{USER}:{SCOPE}:{FIELD}", needs=())
async def take_value(at: Pressed) -> Answer:
    """Give a setting the value that was typed; an empty one takes it back."""
    return await _change(at, at.values.get(TYPED, ""))


async def _admin(at: Pressed) -> Admin:
    await at.context.settings.refresh()
    return Admin(at.press, at.context.settings, at.commands.settings.owners)


async def _change(at: Pressed, typed: str) -> Answer:
    """Give a setting a value, or take it back with "". Raises Refused."""
    admin, scope, name = await _admin(at), shown_scope(at.known["scope"]), at.known["field"]
    admin.check(scope)
    field = admin.settings.row(scope, name).field
    value = typed_value(field, typed)
    if not await admin.settings.change(scope, name, value, admin.by):
        return main_card(admin, scope, SAME)
    return main_card(admin, scope, f"{field.title} {words(changed_words(field, value), 127)}.")
