"""`discoclaw status`: who uses the store, what is unfinished, and what is wrong."""

import socket
from typing import Annotated

import typer

from discoclaw import settings as settings_module
from discoclaw.cli.common import (
    AsJson,
    local_time,
    note_other_stores,
    now_ms,
    place,
    print_grid,
    say,
    say_json,
    stores_of,
)
from discoclaw.cli.ready import ready
from discoclaw.core.model import shown, split
from discoclaw.core.policy import AutoSave
from discoclaw.core.text import size_text
from discoclaw.core.times import iso_ms
from discoclaw.memory.live import LiveConfig
from discoclaw.memory.status import Status, status_of
from discoclaw.show.answer import Grid
from discoclaw.show.words import count, line
from discoclaw.store.port import Together

_PROCESSES = ("process", "host", "pid", "version", "shards", "since", "last heard", "behind", "waits for")
_STORES = {"files": "in files", "sqlite": "in SQLite", "postgresql": "in PostgreSQL", "none": "none is kept"}


def status(
    as_json: AsJson = False,
    is_ready: Annotated[
        bool, typer.Option("--ready", help="Ask the running bot at DISCOCLAW_METRICS whether it is ready.")
    ] = False,
) -> None:
    """Show which processes use the store, what each of them has, and what is unfinished.

    In PostgreSQL these are all processes of the bot, with their shards and leases. “behind” is the age of
    what a process knows about the others' changes. The exit code is 1 if a shard has no process, a process
    was not heard from, or one is more than a minute behind.

    With --ready, it asks the running bot instead, and prints what works and what doesn't. The exit code is 1
    if it isn't ready or doesn't answer.

    Example: discoclaw status

    Example: discoclaw status --ready

    Example: discoclaw status --json
    """
    if is_ready:
        raise typer.Exit(ready(as_json=as_json))
    settings = settings_module.load()
    note_other_stores(settings)
    with stores_of(settings) as stores:
        found, store = status_of(stores), stores.used.name
        live = LiveConfig(stores.used.documents(""), clock=now_ms, settings=settings.overrides)
        live.load()
    policy = live.policy()
    model = shown(policy.model, split(policy.model)[0] or settings.model_provider)
    archive = str(settings.auto_save if policy.archive is None else AutoSave(policy.archive))
    together, holder = found.together, found.holder
    if as_json:
        shared = together or Together()
        say_json(
            {
                "store": store,
                "size": found.size,
                "processes": [
                    {
                        "id": one.id,
                        "kind": one.kind,
                        "host": one.host,
                        "pid": one.pid,
                        "version": one.program,
                        "shards": list(found.shards(one.id)),
                        "alive": one.alive,
                        "startedSecondsAgo": round(one.started_s, 1),
                        "heardSecondsAgo": round(one.heard_s, 1),
                        "behindSeconds": round(one.fed_s, 1),
                        "waits": list(one.waits),
                    }
                    for one in shared.processes
                ],
                "leases": [
                    {"name": one.name, "process": one.process, "sinceSecondsAgo": round(one.since_s, 1)}
                    for one in shared.leases
                ],
                "holder": None
                if holder is None
                else {"pid": holder.pid, "host": holder.host, "since": iso_ms(holder.since)},
                "unfinished": {"erasings": list(found.erasings), "behind": dict(found.behind)},
                "wrong": found.wrong(),
                "model": model,
                "archive": archive,
            }
        )
    else:
        say(f"Data folder: {place(settings)}")
        say(f"Model: {line(model)}. Archive: {archive}. A channel may have others.")
        say(f"Memory: {_STORES[store]}, {size_text(found.size)}")
        if together is not None and together.processes:
            _print_together(found, together)
        elif together is None and holder is not None:
            host = "" if holder.host == socket.gethostname() else f" on {line(holder.host)}"
            say(f"In use by process {holder.pid}{host} since {local_time(holder.since)}.")
        else:
            say("Nothing uses it now: the bot isn't running.")
        for subject in found.erasings:
            say(f"{line(subject)} is being erased; the bot finishes that when it runs.")
        for name, number in sorted(found.behind.items()):
            if number:
                say(f"The bot still has to pass on what changed ({line(name)}): {count(number, 'memory')}.")
        for wrong in found.wrong():
            say(f"Problem: {line(wrong)}.")
    if found.wrong():
        raise typer.Exit(1)


def _print_together(found: Status, together: Together) -> None:
    """Which processes share the store, and what each of them has."""
    now = now_ms()
    rows = [
        [
            f"{one.id}" if one.kind == "bot" else f"{one.id} ({one.kind})",
            one.host,
            str(one.pid),
            one.program,
            ", ".join(found.shards(one.id)),
            local_time(now - int(one.started_s * 1000)),
            f"{one.heard_s:.0f} s ago",
            f"{one.fed_s:.0f} s",
            ", ".join(one.waits),
        ]
        for one in together.processes
    ]
    print_grid(Grid(_PROCESSES, rows))
    if together.leases:
        leases = [
            [one.name, str(one.process), local_time(now - int(one.since_s * 1000))] for one in together.leases
        ]
        print_grid(Grid(("task", "process", "since"), leases))
