"""`discoclaw`: the list of its commands, each imported when it is called, and how they end.

All of them together take a second to import, and `--help` needs none.
Exit codes: 0 done, 1 failed (one line says why), 2 wrong usage, 75 another process does this now (try again).
"""

import contextlib
import io
import os
import platform
import sys
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, Final

import typer
import typer.core

from discoclaw import __version__
from discoclaw.core.errors import DiscoClawError, LeaseLost

LEASE_LOST = 75
"""The exit code when another process does our work by now: EX_TEMPFAIL. A supervisor then starts us again."""
ABOUT: Final = {
    "init": "Set up the bot: asks for a token, who may talk to it, and a model, and writes them to `.env`.",
    "pair": "Name somebody in `.env` who wrote to the bot, as its owner or as somebody who may talk to it.",
    "recall": "Show which items about a person the bot would use to answer a message.",
    "status": "Show which processes use the store, what each of them has, and what is unfinished.",
    "doctor": "Look for everything that can be wrong, and say how to put it right. Works while the bot runs.",
    "usage": "Show what models were used for, by whom, and what it cost.",
    "backup": "Back up everything in the data folder and its store into one file. The bot may run meanwhile.",
    "restore": "Restore a backup into the data folder and the store that the settings name. Stop the bot "
    "first.",
    "run": "Connect to Discord and answer messages until stopped.",
    "demo": "Talk with the bot in the browser, in a simulated Discord: no token, account or key needed.",
    "memory": "See what is remembered and where it came from; change, merge and undo it; export, "
    "import, erase.",
    "config": "See and change what applies to channels and people, while the bot runs.",
    "nostr": "The encrypted mirror of the memory on Nostr relays, and recovery from it.",
    "audit": "Look for what should no longer be readable.",
    "eval": "Measure how well the configured model learns and summarises.",
}
"""Lines in the list of commands: the whole help of a group, and the beginning of a command's."""
PLACES: Final = {name: f"{name}:{name}" for name in ABOUT} | {
    "pair": "init:pair",
    "backup": "exchange:backup",
    "restore": "exchange:restore_",
    "run": "running:run",
    "demo": "running:demo",
    "audit": "audit:commands",
    "config": "config:group",
    "eval": "evals:commands",
}
"""Modules below `discoclaw.cli`: each is imported only when it is called, which Click calls a lazy group."""


class _ErrorGroup(typer.core.TyperGroup):
    """Turns our errors into one line each and exit code 1. Any other exception is a bug, and is shown."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except DiscoClawError as error:
            for text in str(error).splitlines():
                _complain(text)
            if isinstance(error, LeaseLost):
                raise typer.Exit(LEASE_LOST) from None
        except BrokenPipeError:
            # The reader of our output is gone (`| head`), which is not an error.
            with contextlib.suppress(OSError, ValueError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(0) from None
        except OSError as error:  # without its number, which says nothing to people
            named = f"{error.filename}: " if error.filename is not None else ""
            _complain(f"{named}{error.strerror}" if error.strerror else str(error))
        finally:
            from discoclaw.cli.common import name_folders

            name_folders()
        raise typer.Exit(1)


def _complain(text: str) -> None:
    """Print one line to stderr, without the control characters that a file's name or content may have."""
    from discoclaw.show.words import line

    typer.echo(f"discoclaw: {line(text, _LONGEST)}", err=True)


_LONGEST = 10_000
"""Longest error that is printed, in UTF-16 units: long enough for every error of ours."""


class _Program(_ErrorGroup):
    """All commands. One that is called takes the place of its line in the list."""

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        name, _, rest = super().resolve_command(ctx, args)
        if name is not None:
            self.commands[name] = whole(name)
        return name, self.commands.get(name or ""), rest


@cache
def whole(name: str) -> Any:
    """The command or group of a name, with all that it needs."""
    command, one = _imported(name), typer.Typer(rich_markup_mode="markdown", pretty_exceptions_enable=False)
    if isinstance(command, typer.Typer):
        one.add_typer(command, name=name, help=ABOUT[name])
    else:
        one.command(name)(command)
    return typer.main.get_group(one).commands[name]


def _imported(name: str) -> Any:
    """A command's function, or the `typer.Typer` of a group."""
    module, _, attribute = PLACES[name].partition(":")
    return getattr(import_module(f"discoclaw.cli.{module}"), attribute)


cli = typer.Typer(
    cls=_Program,
    help="DiscoClaw, a Discord bot with a memory that its users can see and correct.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)
for _name, _about in ABOUT.items():
    cli.command(_name, help=_about)(lambda: None)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"discoclaw {__version__} (Python {platform.python_version()}{_checkout()})")
        raise typer.Exit


def _checkout() -> str:
    """The folder of the program, if it isn't what was released as this version but a folder that changes."""
    folder = Path(__file__).parents[2]
    return f", checkout in {folder}" if (folder / "pyproject.toml").exists() else ""


@cli.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Run one of the commands below; each has --help with an example."""


def main() -> None:
    """The console script."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a letter the terminal lacks must not be an error
    cli()
