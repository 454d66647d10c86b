"""`discoclaw doctor`: everything that can be wrong, one line each, with the way out. Changes nothing."""

import asyncio
import logging
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, get_args

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
from discoclaw.settings import Settings
from discoclaw.settings_secrets import hiding
from discoclaw.show.words import count, line

if TYPE_CHECKING:  # slow imports, as below
    from discoclaw.checkup.answers import Examined
    from discoclaw.checkup.topic import Looked, Topic

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
    with _tracebacks(), shown:
        found = asyncio.run(_look(chosen, seen, shown.group))
    everything = [one for looked in found for one in looked.findings]
    if as_json:
        say_json(_json(found, seen))
    else:
        _sum_up(everything, seen)
    if not healthy(everything):
        raise typer.Exit(1)


async def _look(
    chosen: "Sequence[Topic]", seen: "Examined | None", tell: "Callable[[Looked, Sequence[str]], None]"
) -> "list[Looked]":
    """The findings of all topics, in the order of the list. `tell` gets each as soon as it is done."""
    from discoclaw.checkup.topic import Looked, examine

    clean = _without_secrets(seen.settings if seen is not None else None)
    done: dict[str, Looked] = {}
    async for looked in examine(chosen):
        looked = Looked(looked.topic, tuple(map(clean, looked.findings)))
        done[looked.topic.name] = looked
        tell(looked, [one.title for one in chosen if one.name not in done])
    return [done[one.name] for one in chosen]


def _without_secrets(settings: Settings | None) -> Callable[[Finding], Finding]:
    """A function that removes secrets from a finding before anybody sees it."""
    hide = hiding(settings) if settings is not None else str

    def clean(text: str) -> str:
        return redact(hide(text)).text

    return lambda found: replace(found, text=clean(found.text), way_out=clean(found.way_out))


# ---------------------------------------------------------------------- showing


class _Shown:
    """Prints meanwhile: each topic when it is done, and on a terminal what is under way."""

    def __init__(self, as_json: bool) -> None:
        self._out = Console(highlight=False, soft_wrap=True)
        self._silent = as_json
        errors = Console(stderr=True)
        self._console = errors if as_json else self._out
        self._status = Status("looking …", console=self._console) if self._console.is_terminal else None

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


def _sum_up(found: Sequence[Finding], seen: "Examined | None") -> None:
    from discoclaw.checkup.costs import cost_of  # slow imports, as above

    good, off, unknown, warnings, bad = (
        sum(one.state == state for one in found) for state in get_args(State)
    )
    things = count(len(found), "thing")
    warned = count(warnings, "warning")
    say(f"Checked {things}: {good} good, {off} off, {unknown} unknown, {warned}, {bad} bad.")
    if seen is not None and seen.asked.requests:
        times = "once" if seen.asked.requests == 1 else f"{seen.asked.requests} times"
        cost = cost_of(seen.settings, seen.asked.used)
        more = f", {cost}" if cost else ""
        say(f"Asked the model {times}, about {_rounded(seen.asked.tokens):,} tokens{more}.")


def _rounded(tokens: int) -> int:
    """A number that doesn't look more exact than it is useful."""
    return tokens if tokens < 1000 else round(tokens, -2)


def _json(found: "Sequence[Looked]", seen: "Examined | None") -> dict[str, Any]:
    asked = seen.asked if seen is not None else None
    return {
        "ok": healthy(one for looked in found for one in looked.findings),
        "findings": [
            {
                "topic": looked.topic.name,
                "name": one.name,
                "state": one.state,
                "text": one.text,
                "wayOut": one.way_out,
            }
            for looked in found
            for one in looked.findings
        ],
        "asked": {
            "requests": asked.requests if asked is not None else 0,
            "inputTokens": asked.usage.prompt_tokens if asked is not None else 0,
            "outputTokens": asked.usage.output_tokens if asked is not None else 0,
        },
    }


class _Ours(logging.StreamHandler[Any]):
    """Shows the tracebacks of checks that crashed, and nothing of what the parts that are tried log."""

    def __init__(self) -> None:
        super().__init__(sys.stderr)
        self.addFilter(lambda record: record.name.startswith("discoclaw.checkup"))


@contextmanager
def _tracebacks() -> Iterator[None]:
    handler, root = _Ours(), logging.getLogger()
    root.addHandler(handler)
    try:
        yield
    finally:
        root.removeHandler(handler)
