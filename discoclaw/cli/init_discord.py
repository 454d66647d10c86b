"""The questions of `discoclaw init` about Discord: the bot's token, and who may talk to it.

Knows nothing about models or files.
"""

import asyncio
import sys
import time
from collections.abc import Iterable, Mapping
from typing import Annotated, Final

import typer

from discoclaw import settings as settings_module
from discoclaw.bot.looking import Bot, Person, described, invite_link, look, people
from discoclaw.bot.pairing import listen, user_of
from discoclaw.checkup import pasted
from discoclaw.cli import env_file
from discoclaw.cli.asking import WRONG, Terminal, clean, right, wrong
from discoclaw.cli.common import say
from discoclaw.cli.setup import FILE, Setup, note_others
from discoclaw.core.errors import Refused, SettingsError
from discoclaw.settings_types import ids_in

ALLOWED, OWNERS = "DISCORD_ALLOW_USER_IDS", "DISCOCLAW_OWNER_IDS"
RIGHTS: Final[Mapping[str, tuple[str, ...]]] = {"owner": (OWNERS, ALLOWED), "allow": (ALLOWED,), "refuse": ()}
"""Roles of somebody, and the settings that then name them."""


def ask_token(setup: Setup) -> tuple[str, Bot | None]:
    """The bot's token, and what Discord says about the bot; None if it was not asked."""
    known = setup.written.get("DISCORD_TOKEN", "")
    setup.tell("\n1. The bot's token")
    if not known and "DISCORD_TOKEN" not in setup.flags:
        setup.tell(f"   Make an application at {pasted.PORTAL}. On its page Bot, switch on")
        setup.tell("   “Message Content Intent”, press “Reset Token”, and copy the token.")

    def ask(terminal: Terminal | None) -> str:
        if (given := setup.flag("DISCORD_TOKEN")) or terminal is None:
            return given or known
        question = "   Token (one is set; Enter keeps it)" if known else "   Token (it is not shown)"
        return terminal.secret(question) or known

    def check(token: str) -> Bot | None:
        pasted.check_token(token)
        return asyncio.run(look(token, api=setup.api)) if setup.checks else None

    token, bot = right(setup.terminal, ask, check)
    if bot is not None:
        say(f"   Discord knows it: the bot is {clean(bot.name)}.")
        bot = _with_intent(setup, token, bot)
    return token, bot


def _with_intent(setup: Setup, token: str, bot: Bot) -> Bot:
    """Wait until the bot may read messages, or somebody wants to go on without. Raises SettingsError."""
    page = f"{pasted.PORTAL}/{bot.application_id}/bot"
    text = f"the message content intent is off, so the bot can't connect; switch it on at {page}"
    while not bot.message_content:
        if setup.terminal is None:
            raise SettingsError(text)
        wrong(text)
        if not setup.terminal.sure("   Is it on now?", offered=True):
            break
        try:
            bot = asyncio.run(look(token, api=setup.api))
        except WRONG as error:
            wrong(str(error))
    return bot


def ask_people(setup: Setup, token: str, bot: Bot | None) -> tuple[list[str], list[str]]:
    """The ids of those who may talk to the bot, and of its owners."""
    setup.tell("\n2. Who may talk to the bot?")
    owners = list(bot.owners) if bot is not None else []
    offered = setup.written.get("DISCORD_ALLOW_USER_IDS", "") or ", ".join(owners)
    if "DISCORD_ALLOW_USER_IDS" not in setup.flags:
        setup.tell("   People are named by their ids. To copy one: in Discord, open Settings > Advanced,")
        setup.tell("   switch on “Developer Mode”, then right-click a person and choose “Copy User ID”.")
        setup.tell("   Or type `pair`: then they write to the bot, and you see here who it was.")
        if bot is not None:
            setup.tell(f"   {_whose(setup, token, bot)}")

    def ask(terminal: Terminal | None) -> str:
        if (given := setup.flag("DISCORD_ALLOW_USER_IDS")) or terminal is None:
            return given or offered
        typed = terminal.words("   Ids, separated by commas", offered=offered)
        if typed.lower() != "pair":
            return typed
        if bot is not None and not bot.guilds:
            say(f"   First invite the bot to a server: {invite_link(bot.application_id)}")
        values = _named_by_code(setup, terminal, token)
        setup.flags |= {OWNERS: values[OWNERS]} if OWNERS in values else {}
        return values.get(ALLOWED, "")

    def check(text: str) -> str:
        found = _ids("DISCORD_ALLOW_USER_IDS", text)
        if not found and "DISCORD_ALLOW_ROLE_IDS" not in setup.written:
            raise SettingsError("the bot would answer nobody; name at least one person by their id")
        return _checked(asyncio.run(people(token, found, api=setup.api))) if bot is not None else ""

    text, names = right(setup.terminal, ask, check)
    allowed = _ids("DISCORD_ALLOW_USER_IDS", text)
    if names:
        say(f"   They may talk to it: {names}.")
    return allowed, _owners(setup, owners, allowed)


def _named_by_code(setup: Setup, terminal: Terminal, token: str, code: str = "") -> dict[str, str]:
    """The settings that name whoever wrote to the bot, as somebody at the terminal decides; none at a no."""
    if not code:
        say("   Write to the bot now: a direct message, or a mention. Ctrl-C ends this.")
        code = asyncio.run(listen(token, api=setup.api, gateway=setup.written.get("DISCORD_GATEWAY")))
    if (one := user_of(token, code, time.time())) is None:
        raise Refused("this code isn't from this bot, or it is too old; write to the bot again for a new one")
    say(clean(f"   {code.upper()} is {asyncio.run(described(token, one, api=setup.api))}."))
    may = list(RIGHTS)[terminal.one_of("   They may be", list(RIGHTS), offered=2)]
    return {name: f"{setup.written.get(name, '')},{one}".lstrip(",") for name in RIGHTS[may]}


def pair(
    code: Annotated[str, typer.Argument(help="What the bot answered; or wait for a message.")] = "",
) -> None:
    """Name somebody in `.env` who wrote to the bot, as its owner or as somebody who may talk to it.

    As long as nobody may talk to the bot, it answers whoever writes to it with a code. This shows whose code
    it is, and asks what they may do. Without a code, it waits until somebody writes to the bot.

    Example: discoclaw pair BWGQ-CWNY-AAEX-DGA2
    """
    setup = Setup({}, settings_module.given(), Terminal() if sys.stdin.isatty() else None)
    token = setup.written.get("DISCORD_TOKEN", "")
    if setup.terminal is None or not token:
        raise Refused("this needs a terminal to ask in, and DISCORD_TOKEN; see `discoclaw init --help`")
    env_file.check_writable(FILE)
    if values := _named_by_code(setup, setup.terminal, token, code):
        env_file.write(FILE, env_file.changed(env_file.read(FILE) or env_file.HEADER, values))
        note_others(values)
        say("Wrote .env. Start the bot again, so that it knows.")


def _owners(setup: Setup, offered: list[str], allowed: list[str]) -> list[str]:
    """The bot's owners: those that are named, or else those of the application's who may talk to the bot."""
    named = setup.flags.get("DISCOCLAW_OWNER_IDS") or setup.written.get("DISCOCLAW_OWNER_IDS", "")
    owners = _ids("DISCOCLAW_OWNER_IDS", named) or [one for one in offered if one in allowed]
    if owners:
        say(f"   Who owns it, with /hatch and all settings: {', '.join(owners)}.")
    else:
        say("   The bot has no owner for /hatch and settings; to name one, run init again with --owner ID.")
    return owners


def _ids(setting: str, text: str) -> list[str]:
    """The ids in the order in which they were typed. Raises SettingsError."""
    try:
        ids_in(text)
    except ValueError as error:
        raise SettingsError(f"{setting}: {error}") from None
    return list(dict.fromkeys(text.replace(",", " ").split()))


def _whose(setup: Setup, token: str, bot: Bot) -> str:
    """The owner of the application, by name; by id without an answer of Discord's."""
    try:
        found = asyncio.run(people(token, bot.owners, api=setup.api))
    except WRONG:
        found = dict.fromkeys(bot.owners)
    names = _named(found)
    return f"The application belongs to {f'the team {clean(bot.team)}: ' if bot.team else ''}{names}."


def _checked(found: dict[str, Person | None]) -> str:
    """The names of people who were found. Raises SettingsError for an id that is nobody's, or a bot's."""
    for one, person in found.items():
        if person is None:
            raise SettingsError(
                f"DISCORD_ALLOW_USER_IDS: {one} is nobody's id; copy a person's, not a server's or channel's"
            )
        if person.bot:
            raise SettingsError(
                f"DISCORD_ALLOW_USER_IDS: {one} is the bot {clean(person.name)}, and bots get no answer"
            )
    return _named(found)


def _named(found: dict[str, Person | None]) -> str:
    def shown() -> Iterable[str]:
        for one, person in found.items():
            yield f"{clean(person.name)} ({one})" if person is not None else one

    return ", ".join(shown())
