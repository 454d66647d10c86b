"""`discoclaw eval`: measures how well the configured model learns from talk and keeps summaries.

The cases are made up. Nothing of the data folder is read or written, and the bot may run meanwhile.
"""

import asyncio
import sys
from collections.abc import Callable, Coroutine
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discoclaw import settings as settings_module
from discoclaw.cli.common import AsJson, note, say, say_json
from discoclaw.core.errors import ModelError, Refused
from discoclaw.core.model import split
from discoclaw.settings import Settings
from discoclaw.show.words import count, line

if TYPE_CHECKING:  # slow imports, as below
    from discoclaw.evals.judge import Verdict
    from discoclaw.evals.report import Report

commands = typer.Typer(no_args_is_help=True)
FACTS, SUMMARIES_BY = "DISCOCLAW_DURABLE_MODEL", "DISCOCLAW_SUMMARY_MODEL"

Files = Annotated[
    list[Path] | None,
    typer.Option("--cases", metavar="FILE", help="Your own cases instead of the built-in ones; repeatable."),
]
Ids = Annotated[list[str] | None, typer.Option("--case", metavar="ID", help="Only this case; repeatable.")]
Groups = Annotated[
    list[str] | None, typer.Option("--group", metavar="NAME", help="Only this group; repeatable.")
]
AtOnce = Annotated[
    int, typer.Option(help="Requests at a time; 1 for a server that answers one by one.", min=1, max=32)
]


@commands.command()
def extraction(
    runs: Annotated[int, typer.Option(help="How often each case is run.", min=1, max=50)] = 3,
    case: Ids = None,
    group: Groups = None,
    cases: Files = None,
    at_once: AtOnce = 4,
    as_json: AsJson = False,
) -> None:
    """Run the small model on made-up talks, and compare what is remembered with what should be.

    Uses the model, key and address of the settings. The exit code is 1 if a gate is missed.

    Example: discoclaw eval extraction --runs 1 --group dates
    """
    from discoclaw.evals import casefile, run  # slow imports, which other commands don't need
    from discoclaw.evals.report import EXTRACTION, Report

    chosen = casefile.chosen(casefile.cases(cases or ()), ids=case or (), groups=group or ())
    settings, requests = settings_module.load(), len(chosen) * runs
    ask = partial(run.extraction, chosen, runs=runs, at_once=at_once, done=_progress(requests))
    what = count(len(chosen), "made-up talk")
    model, verdicts = _answered(settings, FACTS, ask, what=what, runs=runs, requests=requests)
    _tell(Report("Extraction", model, EXTRACTION, verdicts, runs), as_json)


@commands.command()
def summaries(
    runs: Annotated[int, typer.Option(help="How often each chain is run.", min=1, max=50)] = 1,
    case: Ids = None,
    group: Groups = None,
    cases: Files = None,
    at_once: AtOnce = 4,
    as_json: AsJson = False,
) -> None:
    """Run the small model on chains of summaries, and look for lost facts and for lies that got in.

    Uses the model, key and address of the settings. The exit code is 1 if a gate is missed.

    Example: discoclaw eval summaries --case release
    """
    from discoclaw.evals import casefile, run  # slow imports, which other commands don't need
    from discoclaw.evals.report import SUMMARIES, Report

    chosen = casefile.chosen(casefile.chains(cases or ()), ids=case or (), groups=group or ())
    settings, updates = settings_module.load(), sum(one.updates for one in chosen)
    ask = partial(run.summaries, chosen, runs=runs, at_once=at_once, done=_progress(len(chosen) * runs))
    what = count(len(chosen), "made-up conversation")
    model, verdicts = _answered(settings, SUMMARIES_BY, ask, what=what, runs=runs, requests=updates * runs)
    _tell(Report("Summaries", model, SUMMARIES, verdicts, runs), as_json)


def _progress(total: int) -> Callable[[int], None]:
    """Shows on a terminal how many cases are done."""

    def show(done: int) -> None:
        if sys.stderr.isatty():
            typer.echo(f"\r{done} of {total}", err=True, nl=done == total)

    return show


def _answered(
    settings: Settings,
    variable: str,
    ask: "Callable[..., Coroutine[Any, Any, list[Verdict]]]",
    *,
    what: str,
    runs: int,
    requests: int,
) -> "tuple[str, list[Verdict]]":
    """Ask the small model that `variable` names. Returns where it is, and the verdicts.

    Before anything is sent, it says what, how often, and in how many requests. Raises SettingsError without a
    model, and Refused if it can't be used.
    """
    from discoclaw.app.models import config_of  # slow imports, as above
    from discoclaw.checkup.model import address_of, plainly
    from discoclaw.models.providers import open_models, usable

    config = config_of(settings)
    models = open_models(config)
    model, name = (
        (models.facts, settings.durable_model)
        if variable == FACTS
        else (models.summary, settings.summary_model)
    )
    own, where = config.of(split(name)[0]), "the offline model"
    if own.provider != "offline":  # the model may say what an alias such as "haiku" stands for
        where = f"{line(getattr(model, 'name', name))} at {line(address_of(own))}"
    times = "once" if runs == 1 else f"{runs} times each"
    note(
        f"sending {what}, {times}, to {where}: at least {count(requests, 'request')}. "
        "Nothing of your own data is sent, and nothing is written into your data folder."
    )

    async def done() -> "list[Verdict]":
        try:
            reads = settings.context_tokens or usable(await models.context_of(name))
            return await ask(lambda _: model, reads=reads)
        finally:
            await models.close()

    try:
        return where, asyncio.run(done())
    except ModelError as error:
        whole = config.facts if variable == FACTS else config.summary
        raise Refused(str(plainly(error, config, whole, variable))) from None


def _tell(report: "Report", as_json: bool) -> None:
    """Print a report. Exits with 1 if a gate was missed."""
    if as_json:
        say_json(report.json())
    else:
        say(report.text())
    if not report.passed:
        raise typer.Exit(1)
