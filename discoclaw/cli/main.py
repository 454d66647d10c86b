"""`discoclaw`: runs the bot or its demo, and holds the groups of commands for its memory.

Exit codes: 0 done, 1 failed (one line says why), 2 wrong usage, 75 another process does this now (try again).
"""

import asyncio
import contextlib
import io
import logging
import os
import platform
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
import typer.core
from rich.console import Console
from rich.logging import RichHandler

from discoclaw import __version__
from discoclaw import settings as settings_module
from discoclaw.cli import audit, config, evals
from discoclaw.cli.backup import backup, restore_
from discoclaw.cli.common import name_folders
from discoclaw.cli.doctor import doctor
from discoclaw.cli.ending import Ending, end_now
from discoclaw.cli.importing import all_to_stay
from discoclaw.cli.init import init
from discoclaw.cli.json_log import JsonFormatter
from discoclaw.cli.memory import memory
from discoclaw.cli.nostr import nostr
from discoclaw.cli.recall import recall
from discoclaw.cli.status import status
from discoclaw.cli.usage import usage
from discoclaw.core.errors import DiscoClawError, LeaseLost, SettingsError
from discoclaw.core.shards import Wanted, wanted
from discoclaw.memory.disk.threads import HANGS_S, running
from discoclaw.settings import Settings
from discoclaw.settings_types import LogFormat
from discoclaw.show.words import line

LEASE_LOST = 75
"""The exit code when another process does our work by now: EX_TEMPFAIL. A supervisor then starts us again."""
LAST_S = 2.0
"""How much longer than closing may take the process lives at most."""

log = logging.getLogger("discoclaw")
errors = Console(stderr=True, highlight=False, soft_wrap=True)


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
            name_folders()
        raise typer.Exit(1)


def _complain(text: str) -> None:
    """Print one line to stderr, without the control characters that a file's name or content may have."""
    errors.print(f"discoclaw: {line(text, _LONGEST)}", markup=False)


_LONGEST = 10_000
"""Longest error that is printed, in UTF-16 units: long enough for every error of ours."""


def _relay_access(settings: Settings) -> config.RelayAccess | None:
    from discoclaw.cli.relays import relay_access  # slow imports, which other commands don't need

    return relay_access(settings)


cli = typer.Typer(
    cls=_ErrorGroup,
    help="DiscoClaw, a Discord bot with a memory that its users can see and correct.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)
cli.command()(init)
cli.add_typer(memory, name="memory")
cli.command()(recall)
cli.command()(status)
cli.command()(doctor)
cli.command()(usage)
cli.command()(backup)
cli.command("restore")(restore_)
cli.add_typer(config.commands(_relay_access), name="config")
cli.add_typer(nostr, name="nostr")
cli.add_typer(audit.commands, name="audit")
cli.add_typer(evals.commands, name="eval")


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"discoclaw {__version__} (Python {platform.python_version()}{_checkout()})")
        raise typer.Exit


def _checkout() -> str:
    """Where the program is, if it isn't what was released as this version but a folder that changes."""
    folder = Path(__file__).parents[2]
    return f", checkout in {folder}" if (folder / "pyproject.toml").exists() else ""


@cli.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Run one of the commands below; each has --help with an example."""


@cli.command()
def run(
    shards: Annotated[
        str | None,
        typer.Option(
            help="Discord's shards that this process serves: auto, 0-3/8, or 2:4/16 for the third of four "
            "parts of 16. Instead of DISCOCLAW_SHARDS.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Connect to Discord and answer messages until stopped.

    Settings come from the environment and from `.env`. `.env.example` lists all of them.

    Example: DISCORD_TOKEN=… ANTHROPIC_API_KEY=… DISCORD_ALLOW_USER_IDS=123 discoclaw run
    """
    settings = settings_module.load(**({} if shards is None else {"shards": _shards(shards)}))
    _log_to_terminal(settings.log_level, settings.log_format)
    for name in settings_module.unknown():
        log.warning(name)
    if settings.token is None:
        raise SettingsError("DISCORD_TOKEN is not set; set it, or try `discoclaw demo`, which needs no token")
    with Ending() as ending:
        asyncio.run(_serve(settings, ending))


def _shards(option: str) -> Wanted | None:
    """What `--shards` asks for. Raises SettingsError, which names the option and not the variable."""
    try:
        return wanted(option) if option.strip() else None
    except ValueError as error:
        raise SettingsError(f"--shards {option}: {error}") from None


@cli.command()
def demo(
    channel: Annotated[str, typer.Option(help="Name of the first channel.")] = "general",
    port: Annotated[
        int,
        typer.Option(
            help="Local port of the first page, before those of the others; 0: any.", min=0, max=65532
        ),
    ] = 8123,
    fresh: Annotated[bool, typer.Option("--fresh", help="Delete what earlier demos learned.")] = False,
) -> None:
    """Talk with the bot in the browser, in a simulated Discord: no token, account or key needed.

    There are two people, two channels and direct messages, each on a page of its own. /attach sends a file.
    Memory is stored in data/demo/ and kept for the next demo. With ANTHROPIC_API_KEY or ANTHROPIC_BASE_URL
    set, a real model answers.

    Example: discoclaw demo --channel dev --fresh
    """
    try:
        with all_to_stay():
            from discoclaw.demo.show import show
    except ImportError as error:
        raise SettingsError(
            f"a package of the demo is not installed ({error.name}); run: pip install 'discoclaw[demo]'"
        ) from None
    _log_to_terminal("WARNING")
    asyncio.run(
        show(channel=channel, port=port, fresh=fresh, say=Console(highlight=False, soft_wrap=True).print)
    )


async def _serve(settings: Settings, ending: Ending) -> None:
    """Run the bot until its client ends or a signal asks it to stop. Replies in progress are finished."""
    try:
        await _run_until_stopped(settings, ending)
    finally:
        if running(HANGS_S):
            end_now()  # asyncio would wait for it


async def _run_until_stopped(settings: Settings, ending: Ending) -> None:
    with all_to_stay():
        from discoclaw.app import build, stop_asked  # which takes a second, and `memory` doesn't need it

        app = build(settings)
    async with app:
        serving = asyncio.create_task(app.run(), name="discord")
        with stop_asked() as stop:
            stopping = asyncio.create_task(stop.wait(), name="signals")
            await asyncio.wait({serving, stopping}, return_when=asyncio.FIRST_COMPLETED)
            stopping.cancel()
        ending.within(app.closing_s + LAST_S)
        if serving.done():
            serving.result()
        else:
            log.info("stopping: finishing replies that are in progress; a second signal stops at once")
    await asyncio.gather(serving, return_exceptions=True)


def _log_to_terminal(level: str, form: LogFormat = "text") -> None:
    """Log to stderr: in colour on a terminal, else one plain line for each record, for journald and files.

    As "json" each line is an object, on a terminal too.
    """
    handler: logging.Handler
    if form == "json":
        handler = logging.StreamHandler()
        handler.setFormatter(JsonFormatter())
    elif sys.stderr.isatty():
        handler = RichHandler(console=Console(stderr=True), show_path=False, rich_tracebacks=True)
        handler.setFormatter(logging.Formatter("%(message)s"))
    else:
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)-7s %(name)s: %(message)s"))
    logging.basicConfig(level=level, handlers=[handler], force=True)
    logging.getLogger("httpx2").setLevel(logging.WARNING)  # else it logs a line for each call of the model
    logging.getLogger("discord").setLevel(max(logging.INFO, logging.getLevelNamesMapping()[level]))


def main() -> None:
    """The console script."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a letter the terminal lacks must not be an error
    cli()
