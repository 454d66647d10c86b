"""`discoclaw eval`: measures how well the configured model learns from talk and keeps summaries.

The cases are made up. Nothing of the data folder is read or written, and the bot may run meanwhile.
"""

import asyncio
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discoclaw import settings as settings_module
from discoclaw.cli.common import AsJson, note, say, say_json
from discoclaw.core.errors import ModelError, Refused
from discoclaw.core.model import split
from discoclaw.core.ports import Model
from discoclaw.models.config import Models
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
    settings = settings_module.load()
    models = _open(settings)
    model = _where(settings, models.facts, settings.durable_model)
    _announce(count(len(chosen), "made-up talk"), model, runs, len(chosen) * runs)
    done = _progress(len(chosen) * runs)

    async def work() -> list["Verdict"]:
        reads = await _reads(settings, models, settings.durable_model)
        return await run.extraction(
            chosen, lambda _: models.facts, reads=reads, runs=runs, at_once=at_once, done=done
        )

    verdicts = _answered(models, work(), settings, FACTS)
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
    settings = settings_module.load()
    models = _open(settings)
    model = _where(settings, models.summary, settings.summary_model)
    updates = sum(one.updates for one in chosen)
    _announce(count(len(chosen), "made-up conversation"), model, runs, updates * runs)
    done = _progress(len(chosen) * runs)

    async def work() -> list["Verdict"]:
        reads = await _reads(settings, models, settings.summary_model)
        return await run.summaries(
            chosen, lambda _: models.summary, reads=reads, runs=runs, at_once=at_once, done=done
        )

    verdicts = _answered(models, work(), settings, SUMMARIES_BY)
    _tell(Report("Summaries", model, SUMMARIES, verdicts, runs), as_json)


def _open(settings: Settings) -> Models:
    """The configured models, which tell the meter what they use. Raises SettingsError without one."""
    from discoclaw.app.models import config_of  # slow imports, as above
    from discoclaw.models.providers import open_models

    return open_models(config_of(settings))


async def _reads(settings: Settings, models: Models, name: str) -> int:
    """How many tokens a model reads at once, as the bot would find out."""
    from discoclaw.models.context import usable  # slow imports, as above

    return settings.context_tokens or usable(await models.context_of(name))


def _where(settings: Settings, model: Model, configured: str) -> str:
    """A model and where it is, for people."""
    from discoclaw.app.models import config_of  # slow imports, as above
    from discoclaw.checkup.model import address_of

    own = config_of(settings).of(split(configured)[0])
    if own.provider == "offline":
        return "the offline model"
    name = getattr(model, "name", configured)  # what an alias such as "haiku" stands for
    return f"{line(name)} at {line(address_of(own))}"


def _announce(what: str, model: str, runs: int, requests: int) -> None:
    """Say what is about to be sent, before it is."""
    times = "once" if runs == 1 else f"{runs} times each"
    note(
        f"sending {what}, {times}, to {model}: at least {count(requests, 'request')}. "
        "Nothing of your own data is sent, and nothing is written into your data folder."
    )


def _progress(total: int) -> Callable[[int], None]:
    """Shows on a terminal how many cases are done."""

    def show(done: int) -> None:
        if sys.stderr.isatty():
            typer.echo(f"\r{done} of {total}", err=True, nl=done == total)

    return show


def _answered(
    models: Models, work: Coroutine[Any, Any, list["Verdict"]], settings: Settings, variable: str
) -> list["Verdict"]:
    """Ask the model that `variable` names. Raises Refused if it can't be used."""

    async def done() -> list["Verdict"]:
        try:
            return await work
        finally:
            await models.close()

    try:
        return asyncio.run(done())
    except ModelError as error:
        from discoclaw.app.models import config_of  # slow imports, as above
        from discoclaw.checkup.model import plainly

        config = config_of(settings)
        name = config.facts if variable == FACTS else config.summary
        raise Refused(str(plainly(error, config, name, variable))) from None


def _tell(report: "Report", as_json: bool) -> None:
    """Print a report. Exits with 1 if a gate was missed."""
    if as_json:
        say_json(report.json())
    else:
        say(report.text())
    if not report.passed:
        raise typer.Exit(1)
