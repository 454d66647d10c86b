"""`discoclaw init`: asks for what the bot needs, checks each answer at once, and writes `.env`.

Everything is written at the end, so whoever leaves before has changed nothing. No secret is shown.
"""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from discoclaw import settings as settings_module
from discoclaw.cli import env_file
from discoclaw.cli.asking import Terminal, clean
from discoclaw.cli.common import say
from discoclaw.cli.setup import FILE, Setup, note_others, secret_in
from discoclaw.core.errors import Refused
from discoclaw.program import program

if TYPE_CHECKING:
    from discoclaw.bot.looking import Bot

STOPPED = 130
"""The exit code after Ctrl-C, as shells have it."""

Flag = str | None


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
    flags = _without_blanks(
        {
            "DISCORD_TOKEN": secret_in(token_file, "--token-file"),
            "ANTHROPIC_API_KEY": secret_in(api_key_file, "--api-key-file"),
            "DISCORD_ALLOW_USER_IDS": allow_users,
            "DISCOCLAW_OWNER_IDS": owner,
            "ANTHROPIC_BASE_URL": base_url,
            "DISCOCLAW_MODEL": model,
        }
    )
    env_file.check_writable(FILE)
    text = env_file.read(FILE)
    terminal = Terminal() if sys.stdin.isatty() and sys.stdout.isatty() and not yes else None
    setup = Setup(flags, settings_module.given(), terminal, checks=not no_check, takes_offered=yes)
    data = setup.written.get("DISCOCLAW_DATA_DIR") or str(Path("data").absolute())
    try:
        values, bot = _asked(setup)
        if not text:  # so that the bot, every command and cron use the same one
            values["DISCOCLAW_DATA_DIR"] = data
    except (typer.Abort, KeyboardInterrupt):
        say("\nNothing was changed.")
        raise typer.Exit(STOPPED) from None
    env_file.write(FILE, env_file.changed(text or env_file.HEADER, values))
    say(f"\nWrote {clean(str(FILE.absolute()))}, which only its owner can read.")
    say(f"Memories will be in {clean(data)}.")
    note_others(values)
    _say_what_is_next(bot, again=bool(text))


def _without_blanks(flags: dict[str, Flag]) -> dict[str, str]:
    """The flags that say something."""
    return {name: value.strip() for name, value in flags.items() if value and value.strip()}


def _asked(setup: Setup) -> tuple[dict[str, str], "Bot | None"]:
    """All answers by the name of their setting, and what Discord says about the bot, if it was asked."""
    setup.check_complete()
    from discoclaw.cli.init_discord import ask_people, ask_token  # slow imports, which others don't need
    from discoclaw.cli.init_model import ask_model

    setup.tell("Three questions, and .env is written. Ctrl-C leaves everything as it is.")
    token, bot = ask_token(setup)
    allowed, owners = ask_people(setup, token, bot)
    values = {
        "DISCORD_TOKEN": token,
        "DISCORD_ALLOW_USER_IDS": ",".join(allowed),
        "DISCOCLAW_OWNER_IDS": ",".join(owners),
        **ask_model(setup),
    }
    return values, bot


def _say_what_is_next(bot: "Bot | None", *, again: bool) -> None:
    from discoclaw.bot.looking import invite_link

    say("\nNext:")
    if bot is None:
        say("1. Invite the bot; `discoclaw init` prints the link once Discord can be asked.")
    else:
        on = f" (It is on {clean(bot.guilds[0].name)} already.)" if bot.guilds else ""
        say(f"1. Open this link, and choose the server for the bot.{on}")
        say(f"   {invite_link(bot.application_id)}")
    say(f"2. Check everything: {program()} doctor")
    say(f"3. Start the bot{' again' if again else ''}: {program()} run")
