"""The cards of `/settings`: all fields of a scope, and one field with what can be done about it."""

from discoclaw.bot.cards.card import Button, Card, Entry, Menu
from discoclaw.bot.settings.admins import Admin
from discoclaw.bot.texts.markup import ago, opening, words
from discoclaw.core.live import GLOBAL, Scope
from discoclaw.core.policy import MOST_PROMPT, Field, has_lines, longest, options
from discoclaw.core.text import clip
from discoclaw.memory.live import FILE
from discoclaw.session.live_settings import FIXED, Row
from discoclaw.show.words import line

MOST_SHOWN = 3000
EVERYWHERE = "0"
"""How a custom id names the global scope."""
RESTART = "My other settings are in `.env`, and need a restart."


def shown_scope(text: str) -> Scope:
    """The scope that a custom id names."""
    return GLOBAL if text == EVERYWHERE else Scope("group", text)


def written(scope: Scope) -> str:
    """A scope as a custom id names it."""
    return scope.id or EVERYWHERE


def main_card(admin: Admin, scope: Scope, note: str = "") -> Card:
    """Every setting of a scope, with a menu to change one. Raises Refused."""
    admin.check(scope)
    rows = admin.settings.rows(scope)
    here, user = written(scope), admin.user_id
    fields = [(row.field.title, line(_value(admin, scope, row), 100), row.field.name) for row in rows]
    menus = [Menu(f"settings:{user}:{here}", "Change a setting…", fields)]
    controls: list[Button] = []
    if admin.source.guild_id is not None:
        menus.append(Menu(f"settings-of:{user}", "Another channel…", (), channels=True))
    if admin.owner and scope != GLOBAL:
        controls.append(Button(f"settings-in:{user}:{EVERYWHERE}", "Everywhere"))
    return Card(
        f"Settings {_of(scope)}",
        [_entry(admin, scope, row) for row in rows],
        small=(_about(scope),),
        foot=(RESTART,) if admin.owner else (),
        controls=controls,
        menus=menus,
        most=len(rows),
    ).said(note)


def field_card(admin: Admin, scope: Scope, name: str, note: str = "") -> Card:
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
    return Card(
        f"{field.title} {_of(scope)}",
        [Entry(lines, _origin(admin, scope, row))],
        small=(field.about,),
        foot=_foot(admin, scope, row),
        controls=controls,
        menus=menus,
    ).said(note)


def typed_hint(field: Field) -> tuple[str, bool, int]:
    """How a field is typed: what stands above it, whether it has several lines, how long it may be."""
    allowed = field.type.allowed
    return f"{allowed[:1].upper()}{allowed[1:]}", has_lines(field), longest(field)


def _entry(admin: Admin, scope: Scope, row: Row) -> Entry:
    value = words(_value(admin, scope, row), 120)
    return Entry(f"**{row.field.title}**: {value}", _origin(admin, scope, row))


def _value(admin: Admin, scope: Scope, row: Row) -> str:
    return admin.settings.words(row, admin.place(scope) if scope != GLOBAL else None)


def _origin(admin: Admin, scope: Scope, row: Row) -> str:
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


def _foot(admin: Admin, scope: Scope, row: Row) -> tuple[str, ...]:
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


def _about(scope: Scope) -> str:
    if scope == GLOBAL:
        return "They apply where a channel or a person has no other, from the next message on."
    return "They apply to its threads too, from the next message on. Only you see this."
