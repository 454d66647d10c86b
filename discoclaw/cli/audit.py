"""`discoclaw audit`: looks for what should no longer be readable anywhere."""

import asyncio
from dataclasses import asdict
from typing import Annotated

import typer

from discoclaw import settings as settings_module
from discoclaw.cli.common import AsJson, note, note_other_stores, say, say_json, storage_of
from discoclaw.core.audit import Finding
from discoclaw.core.errors import ChatError, SettingsError
from discoclaw.memory.auditing import Audit
from discoclaw.show.words import count, line

commands = typer.Typer(no_args_is_help=True)

NOT_THERE = "what the bot would read in Discord wasn't looked at"
_ABOUT = {
    "taken back": "that they took back",
    "private": "that they made private, readable in the open",
    "opted out": "although they opted out",
    "erased": "although everything about them was erased",
}


@commands.command()
def privacy(
    relays: Annotated[
        bool, typer.Option("--relays", help="Look also at what is in the clear on the configured relays.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Look for what people took back, made private or never wanted kept: on disk, and in Discord.

    In Discord that is what the bot's next prompts would be made of. The output names places, people and
    numbers, and never the words. Nothing is changed, and the bot may run meanwhile; what somebody just took
    back may then still be on its way out. The exit code is 1 if something was found, or a relay couldn't be
    asked.

    Example: discoclaw audit privacy --relays
    """
    settings = settings_module.load()
    note_other_stores(settings)
    storage, silent = storage_of(settings), False
    try:
        audit = Audit(storage.memory.disk, storage.memory.personal)
        found = audit.on_disk(settings.data_dir)
        if settings.token is None:
            note(f"{NOT_THERE}: DISCORD_TOKEN is not set")
        else:
            from discoclaw.cli.audit_channels import in_channels  # slow imports, as below

            try:
                more, reasons = asyncio.run(in_channels(settings, storage, audit))
            except (ChatError, SettingsError) as error:
                more, reasons = [], [f"{NOT_THERE}: {error}"]
            found += more
            for reason in reasons:
                note(reason)
        if relays:
            from discoclaw.cli.audit_relays import on_relays  # slow imports, which other commands don't need

            more, reasons = asyncio.run(on_relays(settings, audit))
            found, silent = found + more, bool(reasons)
            for reason in reasons:
                note(reason)
    finally:
        storage.close()
    if as_json:
        say_json([asdict(one) for one in found])
    else:
        _tell(found)
    if found or silent:
        raise typer.Exit(1)


def _tell(found: list[Finding]) -> None:
    for one in found:
        say(f"{one.part}: {line(one.place)}: {count(one.count, 'text')} of {one.subject} {_ABOUT[one.why]}")
    if found:
        people = len({one.subject for one in found})
        say(f"Found {count(len(found), 'place')}, about {count(people, 'subject')}.")
    else:
        say("Nothing is readable that shouldn't be.")
