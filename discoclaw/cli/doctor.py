"""`discoclaw doctor`: everything that can be wrong, one line each, with the way out. Changes nothing."""

import asyncio
import logging
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, get_args

import typer
from rich.console import Console
from rich.status import Status
from rich.text import Text

from discoclaw import settings as settings_module
from discoclaw.cli.common import AsJson, say, say_json
from discoclaw.cli.ready import asked
from discoclaw.core.errors import Refused, SettingsError
from discoclaw.core.health import Finding, State, healthy
from discoclaw.core.redact import redact
from discoclaw.settings import hiding
from discoclaw.show.words import count, line

if TYPE_CHECKING:  # slow imports, as below
    from discoclaw.checkup.topic import Looked

_MARKS: dict[State, tuple[str, str, str]] = {
    "good": ("✓", "+", "green"),
    "off": ("-", "-", "dim"),
    "unknown": ("?", "?", "dim"),
    "warning": ("!", "!", "yellow"),
    "bad": ("✗", "x", "red"),
}
"""How a state is shown: on a terminal, on one that has no such letters, and its colour."""
_LONGEST = 2000


def doctor(
    quick: Annotated[
        bool, typer.Option("--quick", help="Leave out what takes a minute: learning from built-in talks.")
    ] = False,
    only: Annotated[
        list[str] | None, typer.Option("--only", metavar="NAME", help="Look at this alone; repeatable.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Look for everything that can be wrong, and say how to put it right. Works while the bot runs.

    Changes nothing: no message is sent, nothing is remembered or published. The model and the other services
    that are set up are asked a few questions; how many, the last line says. The exit code is 1 if something
    is bad.

    Example: discoclaw doctor --quick

    Example: discoclaw doctor --only discord --only model --json
    """
    from discoclaw.checkup.answers import Examined
    from discoclaw.checkup.everything import NAMES, topics, without_settings
    from discoclaw.checkup.model import Asked
    from discoclaw.checkup.store import cost_of
    from discoclaw.checkup.topic import Looked, examine

    if wrong := [one for one in only or () if one not in NAMES]:
        raise Refused(f"--only {wrong[0]}: there is no such check; there are {', '.join(NAMES)}")
    shown = _Shown(as_json)
    try:
        settings = settings_module.load()
    except SettingsError as error:
        seen, chosen = None, without_settings(None, tuple(str(error).splitlines()))
    else:
        seen = Examined(settings)
        chosen = topics(seen, quick=quick, progress=shown.progress, ask=asked)
    chosen = [one for one in chosen if not only or one.name in only]
    if seen is not None:
        seen.learns = any(one.name == "learning" for one in chosen)
    # Nobody sees a secret that a server repeats.
    hide = hiding(seen.settings) if seen is not None else str
    done: dict[str, Looked] = {}

    def clean(found: Finding) -> Finding:
        text, way_out = (redact(hide(part)).text for part in (found.text, found.way_out))
        return replace(found, text=text, way_out=way_out)

    async def look() -> None:
        async for looked in examine(chosen):
            looked = Looked(looked.topic, tuple(map(clean, looked.findings)))
            done[looked.topic.name] = looked
            shown.group(looked, [one.title for one in chosen if one.name not in done])

    with _tracebacks(), shown:
        asyncio.run(look())
    topics_done = [done[one.name] for one in chosen]
    found = [one for looked in topics_done for one in looked.findings]
    asked_of = seen.asked if seen is not None else Asked()
    if as_json:
        say_json(
            {
                "ok": healthy(found),
                "findings": [
                    {"topic": looked.topic.name, **one.to_json()}
                    for looked in topics_done
                    for one in looked.findings
                ],
                "asked": {
                    "requests": asked_of.requests,
                    "inputTokens": asked_of.usage.prompt_tokens,
                    "outputTokens": asked_of.usage.output_tokens,
                },
            }
        )
    else:
        good, off, unknown, warnings, bad = (
            sum(one.state == state for one in found) for state in get_args(State)
        )
        things, warned = count(len(found), "thing"), count(warnings, "warning")
        say(f"Checked {things}: {good} good, {off} off, {unknown} unknown, {warned}, {bad} bad.")
        if seen is not None and asked_of.requests:
            times = "once" if asked_of.requests == 1 else f"{asked_of.requests} times"
            cost = cost_of(seen.settings, asked_of.used)
            # A number that doesn't look more exact than it is useful.
            tokens = asked_of.tokens if asked_of.tokens < 1000 else round(asked_of.tokens, -2)
            say(f"Asked the model {times}, about {tokens:,} tokens{f', {cost}' if cost else ''}.")
    if not healthy(found):
        raise typer.Exit(1)


# ---------------------------------------------------------------------- showing


class _Shown:
    """Prints meanwhile: each topic when it is done, and on a terminal what is under way."""

    def __init__(self, as_json: bool) -> None:
        self._out = Console(highlight=False, soft_wrap=True)
        self._silent = as_json
        console = Console(stderr=True) if as_json else self._out
        self._status = Status("looking …", console=console) if console.is_terminal else None

    def __enter__(self) -> "_Shown":
        if self._status is not None:
            self._status.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._status is not None:
            self._status.stop()

    def progress(self, text: str) -> None:
        """Show how far something long has come."""
        if self._status is not None:
            self._status.update(text)

    def group(self, looked: "Looked", waits: Sequence[str]) -> None:
        """Show what one topic found, and which ones are still looked at."""
        if not self._silent:
            for text in _lines(looked, terminal=self._out.is_terminal, encoding=self._out.encoding):
                self._out.print(text)
        self.progress(f"looking: {', '.join(waits)}")


def _lines(looked: "Looked", *, terminal: bool, encoding: str) -> Iterator[Text]:
    if terminal:
        yield Text(looked.topic.title, style="bold")
    for one in looked.findings:
        name, text, way_out = line(one.name, 200), line(one.text, _LONGEST), line(one.way_out, _LONGEST)
        if not terminal:
            yield Text(
                f"{one.state:8}{looked.topic.title}: {name}: {text}{'; ' + way_out if way_out else ''}"
            )
            continue
        mark, plain, colour = _MARKS[one.state]
        utf8 = encoding.lower().replace("-", "") == "utf8"
        yield Text.assemble("  ", (mark if utf8 else plain, colour), f" {name}: {text}")
        if way_out:
            yield Text.assemble("    ", ("→ " if utf8 else "> ", colour), way_out)


@contextmanager
def _tracebacks() -> Iterator[None]:
    """Show the tracebacks of checks that crashed, and nothing of what the parts that are tried log."""
    handler, root = logging.StreamHandler(sys.stderr), logging.getLogger()
    handler.addFilter(lambda record: record.name.startswith("discoclaw.checkup"))
    root.addHandler(handler)
    try:
        yield
    finally:
        root.removeHandler(handler)
