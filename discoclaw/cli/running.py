"""`discoclaw run` and `discoclaw demo`: the bot as a process, which ends when it is asked to, and its log."""

import asyncio
import gc
import json
import logging
import os
import re
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Annotated, Any, Final, Self

import typer

from discoclaw import settings as settings_module
from discoclaw.core.errors import SettingsError
from discoclaw.core.shards import Wanted, wanted
from discoclaw.settings import Settings
from discoclaw.settings_types import LogFormat
from discoclaw.store.threads import HANGS_S, running

LAST_S = 2.0
"""How much longer than closing may take the process lives at most."""

WORD_S = 1.0
"""How long the last line of the log may take: what reads it may hang too."""

log = logging.getLogger("discoclaw")


class Ending:
    """Ends a process that doesn't end by itself: a disk, a stream, a relay or a thread may hang.

    A thread does it, since the event loop may hang too. Everything acknowledged is on disk long before, and
    every write takes effect completely or not at all, so nothing more is lost than when a process is killed.
    """

    def __init__(self) -> None:
        self._timer: threading.Timer | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def within(self, seconds: float) -> None:
        """End the process with exit code 1, unless this block is left before."""
        self._timer = threading.Timer(seconds, end_now)
        self._timer.daemon = True
        self._timer.start()


def end_now() -> None:
    """End the process with exit code 1, without waiting for anything. The log says what still hangs."""
    saying = threading.Thread(target=_say, daemon=True)
    saying.start()
    saying.join(WORD_S)
    os._exit(1)


def _say() -> None:
    hanging = "; ".join(running()) or "nothing on the disk, but something that was to be closed"
    log.error("stopped without waiting for what hangs: %s. What was acknowledged is saved.", hanging)
    for handler in logging.getLogger().handlers:
        handler.flush()


@contextmanager
def all_to_stay() -> Iterator[None]:
    """Collect no garbage within this block, and never look at what it made, which stays until the end.

    Looking through everything again and again is a fifth of the time in which a program is imported.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


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
    """The shards that `--shards` names. Raises SettingsError, which names the option, not the variable."""
    try:
        return wanted(option) if option.strip() else None
    except ValueError as error:
        raise SettingsError(f"--shards {option}: {error}") from None


def demo(
    channel: Annotated[str, typer.Option(help="Name of the first channel.")] = "general",
    port: Annotated[
        int,
        typer.Option(help="Local port of the page; 0: any.", min=0, max=65535),
    ] = 8123,
    fresh: Annotated[bool, typer.Option("--fresh", help="Delete what earlier demos learned.")] = False,
) -> None:
    """Talk with the bot in the browser, in a simulated Discord: no token, account or key needed.

    One page has everything: three people, channels, direct messages, and beside them what the bot knows.
    Memory is stored in data/demo/ and kept for the next demo. With ANTHROPIC_API_KEY or ANTHROPIC_BASE_URL
    set, a real model answers.

    Example: discoclaw demo --channel dev --fresh
    """
    from rich.console import Console

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
    finally:
        if running(HANGS_S):
            end_now()  # asyncio would wait for it


def _log_to_terminal(level: str, form: LogFormat = "text") -> None:
    """Log to stderr: in colour on a terminal, else one plain line for each record, for journald and files.

    As "json" each line is an object, on a terminal too.
    """
    handler: logging.Handler
    if form == "json":
        handler = logging.StreamHandler()
        handler.setFormatter(JsonFormatter())
    elif sys.stderr.isatty():
        from rich.console import Console  # 10 MB, which a service has no use for
        from rich.logging import RichHandler

        handler = RichHandler(console=Console(stderr=True), show_path=False, rich_tracebacks=True)
        handler.setFormatter(logging.Formatter("%(message)s"))
    else:
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)-7s %(name)s: %(message)s"))
    logging.basicConfig(level=level, handlers=[handler], force=True)
    logging.getLogger("httpx2").setLevel(logging.WARNING)  # else it logs a line for each call of the model
    logging.getLogger("discord").setLevel(max(logging.INFO, logging.getLevelNamesMapping()[level]))


# ---------------------------------------------------------------------- the log as JSON

_KNOWN: Final = frozenset({*vars(logging.makeLogRecord({})), "message", "asctime", "taskName"})
"""The attributes of every record; others were given as `extra`."""
_TRICKY: Final = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Characters that move a terminal's cursor, end a line for some programs, turn the text's direction, or
can't be written as UTF-8. JSON itself escapes only the control characters of ASCII."""


class JsonFormatter(logging.Formatter):
    """Time (UTC), level, logger, message and process; task, exception and extras where there are any."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as one line."""
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        found: dict[str, Any] = {
            "time": at.replace("+00:00", "Z"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            "pid": record.process,
        }
        if task := getattr(record, "taskName", None):  # known since Python 3.12
            found["task"] = task
        if record.exc_info:
            found["exception"] = self.formatException(record.exc_info)
        if record.stack_info:
            found["stack"] = self.formatStack(record.stack_info)
        found |= {name: value for name, value in vars(record).items() if name not in _KNOWN | found.keys()}
        text = json.dumps(found, ensure_ascii=False, default=str)
        return _TRICKY.sub(lambda one: f"\\u{ord(one[0]):04x}", text)
