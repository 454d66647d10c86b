"""`discoclaw init` and `pair`: ask for what the bot needs, check each answer at once, and write `.env`.

The questions about Discord are here: the bot's token, and who may talk to it. Everything is written at the
end, so whoever leaves before has changed nothing. No secret is shown.
"""

import asyncio
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Final

import typer

from discoclaw import settings as settings_module
from discoclaw.bot.looking import Bot, Person, described, invite_link, look, people
from discoclaw.bot.pairing import listen, user_of
from discoclaw.checkup import pasted
from discoclaw.cli import env_file
from discoclaw.cli.asking import (
    FILE,
    WRONG,
    Setup,
    Terminal,
    clean,
    note_others,
    right,
    secret_in,
    wrong,
)
from discoclaw.cli.common import say
from discoclaw.core.errors import Refused, SettingsError
from discoclaw.program import program
from discoclaw.settings_types import ids_in

STOPPED = 130
"""The exit code after Ctrl-C, as shells have it."""

Flag = str | None
ALLOWED, OWNERS = "DISCORD_ALLOW_USER_IDS", "DISCOCLAW_OWNER_IDS"
RIGHTS: Final[Mapping[str, tuple[str, ...]]] = {"owner": (OWNERS, ALLOWED), "allow": (ALLOWED,), "refuse": ()}
"""Roles of somebody, and the settings that then name them."""


def init(
    token_file: Annotated[
        Flag,
        typer.Option("--token-file", help="A file with the bot's token; - is stdin.", show_default=False),
    ] = None,
    allow_users: Annotated[
        Flag, typer.Option("--allow-users", help="Ids of those who may talk to it.", show_default=False)
    ] = None,
    owner: Annotated[
        Flag, typer.Option("--owner", help="The owner's id; usually the application's.", show_default=False)
    ] = None,
    api_key_file: Annotated[
        Flag,
        typer.Option("--api-key-file", help="A file with the model's key; - is stdin.", show_default=False),
    ] = None,
    base_url: Annotated[
        Flag,
        typer.Option("--base-url", help="A model's server, such as Ollama's.", show_default=False),
    ] = None,
    model: Annotated[
        Flag, typer.Option("--model", help="The model that answers, as ollama:qwen3:8b.", show_default=False)
    ] = None,
    no_check: Annotated[
        bool, typer.Option("--no-check", help="Don't ask Discord and the model whether it is right.")
    ] = False,
    yes: Annotated[
        bool, typer.Option("--yes", help="Ask nothing: keep what is set, and take what is offered.")
    ] = False,
) -> None:
    """Set up the bot: asks for a token, who may talk to it, and a model, and writes them to `.env`.

    Each answer is checked at once. Other settings in `.env` stay. Run it again to change an answer. Without a
    terminal, flags or the variables DISCORD_TOKEN and ANTHROPIC_API_KEY give the answers.

    Example: discoclaw init --token-file token.txt --allow-users 123456789012345678 --api-key-file - < key.txt
    """
    if token_file == api_key_file == "-":
        raise Refused("only one of --token-file and --api-key-file can be read from stdin")
    given = {
        "DISCORD_TOKEN": secret_in(token_file, "--token-file"),
        "ANTHROPIC_API_KEY": secret_in(api_key_file, "--api-key-file"),
        ALLOWED: allow_users,
        OWNERS: owner,
        "ANTHROPIC_BASE_URL": base_url,
        "DISCOCLAW_MODEL": model,
    }
    flags = {name: value.strip() for name, value in given.items() if value and value.strip()}
    env_file.check_writable(FILE)
    text = env_file.read(FILE)
    terminal = Terminal() if sys.stdin.isatty() and sys.stdout.isatty() and not yes else None
    setup = Setup(flags, settings_module.given(), terminal, checks=not no_check, takes_offered=yes)
    data = setup.written.get("DISCOCLAW_DATA_DIR") or str(Path("data").absolute())
    try:
        setup.check_complete()
        from discoclaw.cli.init_model import ask_model  # slow imports, which a missing flag doesn't need

        setup.tell("Three questions, and .env is written. Ctrl-C leaves everything as it is.")
        token, bot = ask_token(setup)
        allowed, owners = ask_people(setup, token, bot)
        values = {
            "DISCORD_TOKEN": token,
            ALLOWED: ",".join(allowed),
            OWNERS: ",".join(owners),
            **ask_model(setup),
        }
        if not text:  # so that the bot, every command and cron use the same one
            values["DISCOCLAW_DATA_DIR"] = data
    except (typer.Abort, KeyboardInterrupt):
        say("\nNothing was changed.")
        raise typer.Exit(STOPPED) from None
    env_file.write(FILE, env_file.changed(text or env_file.HEADER, values))
    say(f"\nWrote {clean(str(FILE.absolute()))}, which only its owner can read.")
    say(f"Memories will be in {clean(data)}.")
    note_others(values)
    say("\nNext:")
    if bot is None:
        say("1. Invite the bot; `discoclaw init` prints the link once Discord can be asked.")
    else:
        on = f" (It is on {clean(bot.guilds[0].name)} already.)" if bot.guilds else ""
        say(f"1. Open this link, and choose the server for the bot.{on}")
        say(f"   {invite_link(bot.application_id)}")
    say(f"2. Check everything: {program()} doctor")
    say(f"3. Start the bot{' again' if text else ''}: {program()} run")


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


# ---------------------------------------------------------------------- the questions about Discord


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
    offered = setup.written.get(ALLOWED, "") or ", ".join(owners)
    if ALLOWED not in setup.flags:
        setup.tell("   People are named by their ids. To copy one: in Discord, open Settings > Advanced,")
        setup.tell("   switch on “Developer Mode”, then right-click a person and choose “Copy User ID”.")
        setup.tell("   Or type `pair`: then they write to the bot, and you see here who it was.")
        if bot is not None:
            try:
                known = asyncio.run(people(token, bot.owners, api=setup.api))
            except WRONG:  # then by their ids
                known = dict.fromkeys(bot.owners)
            team = f"the team {clean(bot.team)}: " if bot.team else ""
            setup.tell(f"   The application belongs to {team}{_named(known)}.")

    def ask(terminal: Terminal | None) -> str:
        if (given := setup.flag(ALLOWED)) or terminal is None:
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
        found = _ids(ALLOWED, text)
        if not found and "DISCORD_ALLOW_ROLE_IDS" not in setup.written:
            raise SettingsError("the bot would answer nobody; name at least one person by their id")
        if bot is None:
            return ""
        there = asyncio.run(people(token, found, api=setup.api))
        for one, person in there.items():
            if person is None:
                raise SettingsError(
                    f"{ALLOWED}: {one} is nobody's id; copy a person's, not a server's or channel's"
                )
            if person.bot:
                raise SettingsError(
                    f"{ALLOWED}: {one} is the bot {clean(person.name)}, and bots get no answer"
                )
        return _named(there)

    text, names = right(setup.terminal, ask, check)
    allowed = _ids(ALLOWED, text)
    if names:
        say(f"   They may talk to it: {names}.")
    named = setup.flags.get(OWNERS) or setup.written.get(OWNERS, "")
    # Those that are named, or else those of the application's who may talk to the bot.
    own = _ids(OWNERS, named) or [one for one in owners if one in allowed]
    if own:
        say(f"   Who owns it, with /hatch and all settings: {', '.join(own)}.")
    else:
        say("   The bot has no owner for /hatch and settings; to name one, run init again with --owner ID.")
    return allowed, own


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


def _ids(setting: str, text: str) -> list[str]:
    """The ids in the order in which they were typed. Raises SettingsError."""
    try:
        ids_in(text)
    except ValueError as error:
        raise SettingsError(f"{setting}: {error}") from None
    return list(dict.fromkeys(text.replace(",", " ").split()))


def _named(found: dict[str, Person | None]) -> str:
    return ", ".join(
        f"{clean(person.name)} ({one})" if person is not None else one for one, person in found.items()
    )
