"""`discoclaw memory`: see what is remembered. Reads the files; never changes them."""

import json
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from discoclaw import settings as settings_module
from discoclaw.core.event import Commit
from discoclaw.core.item import by_newest
from discoclaw.core.times import date_of, iso_ms, ms_of_iso
from discoclaw.memory.inspect import Held, held, subject_named, subjects

out = Console(highlight=False, soft_wrap=True)

memory = typer.Typer(help="See what is remembered, and where it came from.", no_args_is_help=True)

Who = Annotated[str, typer.Argument(help="A Discord user id, or a subject as `memory list` shows it.")]
AsJson = Annotated[bool, typer.Option("--json", help="For programs.")]


@memory.command("list")
def list_(as_json: AsJson = False) -> None:
    """Everybody of whom something is remembered.

    Example: discoclaw memory list
    """
    settings = settings_module.load()
    everybody = [
        held(settings.memory_dir, name, settings.durable_dir)
        for name in subjects(settings.memory_dir, settings.durable_dir)
    ]
    if as_json:
        _print_json([_summary(one) for one in everybody])
        return
    if not everybody:
        out.print(f"Nothing is remembered under {settings.memory_dir}.")
        return
    table = Table("subject", "active", "forgotten", "commits", "last change")
    for one in everybody:
        facts = _summary(one)
        table.add_row(
            *(str(facts[key]) for key in ("subject", "active", "forgotten", "commits", "last_change"))
        )
    out.print(table)


@memory.command()
def show(who: Who, as_json: AsJson = False) -> None:
    """What is remembered of one person, newest first, forgotten items last.

    Example: discoclaw memory show 123456789012345678
    """
    one = _held(who)
    if as_json:
        items = [
            item.to_json() | {"sensitivity": item.facets.sensitivity} for item in one.view.items.values()
        ]
        _print_json({"subject": one.subject, "items": items})
        return
    if not one.view.items:
        out.print(f"Nothing is remembered of {one.subject}.")
        return
    table = Table(
        Column("id", no_wrap=True), "kind", Column("text", ratio=1), Column("updated", no_wrap=True), ""
    )
    for item in sorted(one.view.items.values(), key=lambda item: (not item.active, by_newest(item))):
        secret = "" if item.facets.sensitivity == "normal" else item.facets.sensitivity
        note = " ".join(filter(None, ["" if item.active else "forgotten", secret]))
        row = [item.id, item.kind, item.text, date_of(item.updated_at), note]
        table.add_row(*map(Text, row), style=None if item.active else "dim")
    out.print(table)


@memory.command()
def log(
    who: Who,
    oneline: Annotated[bool, typer.Option("--oneline", help="One line for each commit.")] = False,
    as_json: AsJson = False,
) -> None:
    """The history of one person's memory, newest first.

    Example: discoclaw memory log 123456789012345678 --oneline
    """
    commits = _held(who).commits[::-1]
    if as_json:
        _print_json([commit.to_json() for commit in commits])
        return
    for commit in commits:
        if oneline:
            out.print(Text(f"{commit.id} {commit.message}"))
        else:
            _print_commit(commit)


@memory.command()
def verify(
    who: Annotated[str | None, typer.Argument(help="A Discord user id; without it, everybody.")] = None,
    as_json: AsJson = False,
) -> None:
    """Hash every ledger anew, and compare the durable files with them. Exit code 1 when something is wrong.

    Example: discoclaw memory verify
    """
    settings = settings_module.load()
    names = [subject_named(who)] if who is not None else subjects(settings.memory_dir, settings.durable_dir)
    checked = [held(settings.memory_dir, name, settings.durable_dir) for name in names]
    faulty = [one for one in checked if one.faults]
    if as_json:
        _print_json([_summary(one) | {"faults": one.faults} for one in checked])
    else:
        for one in faulty:
            for fault in one.faults:
                out.print(Text(f"{one.subject}: {fault}"))
        commits = sum(len(one.commits) for one in checked)
        out.print(
            f"{len(checked)} ledgers with {commits} commits checked, {len(faulty)} with something to say."
        )
    if faulty:
        raise typer.Exit(1)


def _held(who: str) -> Held:
    settings = settings_module.load()
    one = held(settings.memory_dir, subject_named(who), settings.durable_dir)
    for fault in one.faults:
        Console(stderr=True).print(Text(f"note: {fault}"))
    return one


def _summary(one: Held) -> dict[str, Any]:
    active = len(one.view.active())
    return {
        "subject": one.subject,
        "active": active,
        "forgotten": len(one.view.items) - active,
        "commits": one.view.commits,
        "last_change": iso_ms(one.view.updated_at)[:16] + "Z" if one.view.commits else "",
    }


def _print_commit(commit: Commit) -> None:
    out.print(Text(f"commit {commit.id} ({commit.branch})", style="yellow"))
    out.print(Text(f"Date:  {iso_ms(ms_of_iso(commit.timestamp))}"))
    out.print(Text(f"       {commit.message}"))
    for event in commit.events:
        about = event.ext.get("item", {}).get("id", "")
        out.print(
            Text(f"  {event.event_type:<8}{about} [{event.predicate}] {event.object}  (src: {event.source})")
        )
    out.print()


def _print_json(value: object) -> None:
    typer.echo(json.dumps(value, ensure_ascii=False, indent=2))
