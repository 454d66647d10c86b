"""`python -m bench [--json] [--docs] [names …]`: measures, and prints a table or JSON.

Nothing is asserted about times: a slow or busy machine is no fault of the program. A target that is missed is
marked, for a person to look at. With --docs it also stands in the page of `bench/docs`.
"""

import argparse
import asyncio
import importlib
import json
import logging
import math
import os
import platform
import sys
import time
from collections.abc import Awaitable, Callable
from typing import cast

from rich.console import Console
from rich.table import Table

from bench import docs
from bench.figure import Figure
from tests.servers.postgres_programs import Unavailable

NAMES = (
    "turn",
    "measured",
    "files",
    "prompt",
    "commit",
    "history",
    "sessions",
    "absence",
    "start",
    "resident",
    "recall",
    "forgetting",
    "dead_relay",
    "recovery",
    "pauses",
    "pictures",
    "taking_back",
    "rounds",
    "stores",
    "archive",
    "shared_turn",
    "usage",
    "many_processes",
    "million",
)


def main() -> None:
    """Measure what was asked for, each in an event loop of its own."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=sys.modules[__name__].__doc__)
    parser.add_argument("--json", action="store_true", help="print JSON for programs")
    parser.add_argument("--docs", action="store_true", help=f"replace these rows in {docs.PAGE.name}")
    parser.add_argument("names", nargs="*", metavar="name", help=f"which ones: {', '.join(NAMES)}")
    asked = parser.parse_args()
    if unknown := set(asked.names) - set(NAMES):
        parser.error(f"no figure is called {', '.join(sorted(unknown))}; there are {', '.join(NAMES)}")
    logging.disable(logging.WARNING)
    progress = Console(stderr=True, highlight=False)
    machine = _machine()
    measured: dict[str, list[Figure]] = {}
    for name in asked.names or NAMES:
        began = time.perf_counter()
        measure = cast(
            Callable[[], Awaitable[list[Figure]]], importlib.import_module(f"bench.{name}").measure
        )
        try:
            measured[name] = asyncio.run(_run(measure))
        except Unavailable as why:
            progress.print(f"{name}: skipped: {why}")
            continue
        progress.print(f"{name}: measured in {time.perf_counter() - began:.1f} s")
    figures = [one for some in measured.values() for one in some]
    if asked.docs:
        docs.renew(measured, machine, NAMES)
    if asked.json:
        print(json.dumps({"machine": machine, "figures": [one.to_json() for one in figures]}, indent=2))
    else:
        _print_table(figures, machine)


async def _run(measure: Callable[[], Awaitable[list[Figure]]]) -> list[Figure]:
    return await measure()


def _machine() -> dict[str, object]:
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else math.nan
    return {
        "python": platform.python_version(),
        "system": platform.system(),
        "cores": os.cpu_count(),
        "load": load,
    }


def _print_table(figures: list[Figure], machine: dict[str, object]) -> None:
    title = "Python {python} on {system}, {cores} cores, load {load} at the start".format(**machine)
    table = Table("figure", "ours", "baseline", "ratio", "beside", "target", title=title)
    for column in (1, 2, 3):
        table.columns[column].justify = "right"
    for one in figures:
        mark = {True: " met", False: " [bold red]missed[/]", None: ""}[one.met]
        table.add_row(
            one.name,
            docs.amount(one.ours, one.unit),
            docs.amount(one.baseline, one.unit),
            f"{one.ratio:.2f}x",
            one.beside,
            one.target + mark,
        )
    Console(width=None if sys.stdout.isatty() else 140).print(table)


if __name__ == "__main__":
    main()
