"""`discoclaw nostr`: the state of the encrypted mirror on relays, bringing it up to date, and recovery."""

import asyncio
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from discoclaw import settings as settings_module
from discoclaw.cli.common import AsJson, local_day, local_time, note, now_ms, print_table, say, say_json
from discoclaw.settings import Settings
from discoclaw.show.words import count, line

nostr = typer.Typer(no_args_is_help=True)
LONGEST = 200
"""Longest text of a relay that is shown, in UTF-16 units."""
PANEL = "Push and recover (stop the bot first)"


@nostr.command()
def status(as_json: AsJson = False) -> None:
    """Show the state of each relay, what is waiting for it, and what it refused. Works while the bot runs.

    Example: discoclaw nostr status
    """
    from discoclaw.cli import relays

    found = asyncio.run(relays.status(settings_module.load()))
    if as_json:
        say_json(found)
    else:
        _tell_status(found)


def _tell_status(found: dict[str, Any]) -> None:
    say(f"mode: {found['mode']}")
    say(f"key: {found['npub'] or 'none; make one with `discoclaw nostr new-key`'}")
    least = count(found["min_acks"], "relay")
    say(f"mirrored: {count(found['events'], 'event')}, each needed on at least {least}")
    if found["quarantined"]:
        say(f"unreadable, and set aside: {count(found['quarantined'], 'event')}")
    if not found["relays"]:
        say("No relays are configured; set NOSTR_RELAYS.")
        return
    table = Table("relay", "connected", "last answer", "waiting", "refused", "problem")
    for one in found["relays"]:
        cells = [
            line(one["url"], LONGEST),
            "yes" if one["connected"] else "no",
            _when(one["last_eose"]),
            _waiting(one),
            "; ".join(f"{each['events']:,} {line(each['reason'], LONGEST)}" for each in one["parked"]),
            line(one["error"] or one["notice"], LONGEST),
        ]
        table.add_row(*map(Text, cells))
    print_table(table)
    if not found["running"]:
        say("The bot isn't running, or has just started, so this is what the relays answered just now.")


def _waiting(one: dict[str, Any]) -> str:
    if not one["waiting"]:
        return "" if one["waiting"] is None else "0"
    return f"{one['waiting']:,} since {_when(one['waiting_since'])}"


def _when(ms: int | None) -> str:
    """A local time: just `15:03` if it is today, else with the date; "" for none."""
    if ms is None:
        return ""
    return local_time(ms)[11:] if local_day(ms) == local_day(now_ms()) else local_time(ms)


@nostr.command(rich_help_panel=PANEL)
def push(
    check: Annotated[
        bool,
        typer.Option("--check", help="Ask each relay what it has, and send again what it lost or refused."),
    ] = False,
) -> None:
    """Publish everything that isn't mirrored yet, and wait until the relays have it.

    The exit code is 1 unless every event is on at least NOSTR_MIN_ACKS relays.

    Example: discoclaw nostr push --check
    """
    from discoclaw.cli import relays

    here = relays.nostr_context(_wanted())
    instead = "it publishes by itself; its owners can start that with `!nostr push`"
    with relays.exclusive_memory(instead) as memory, relays.ProgressBars() as bars:
        done = asyncio.run(relays.push(here, memory, check=check, tell=bars.show_delivery))
    for text in done.notes:
        note(text)
    tally = done.tally
    say(
        f"{count(tally.events, 'event')}: {tally.everywhere:,} on every relay, "
        f"{tally.enough:,} on at least {here.settings.nostr_min_acks}."
    )
    if not tally.safe:
        raise typer.Exit(1)


@nostr.command(rich_help_panel=PANEL)
def recover(
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show what would be recovered; works while the bot runs.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Recover the memory that relays have, and unite it with what is here. Repeating it changes nothing.

    Nothing that is here is lost, and what was erased here does not come back. The exit code is 1 if the
    recovery may be incomplete: no relay sent everything it has, something is known to be missing or was
    withheld, or something couldn't be restored.

    Example: discoclaw nostr recover --dry-run
    """
    from discoclaw.cli import relays

    here = relays.nostr_context(_wanted())
    if dry_run:
        with relays.ProgressBars() as bars:
            found = asyncio.run(relays.preview_recovery(here, bars.show_recovery))
    else:
        with (
            relays.exclusive_memory("use `--dry-run` to see what would be recovered") as memory,
            relays.ProgressBars() as bars,
        ):
            found = asyncio.run(relays.recover(here, memory, bars.show_recovery))
    if as_json:
        say_json(found.to_json())
    else:
        for text in found.warnings():
            note(text)
        if not found.events:
            note(f"no relay has any event by {here.config.keys.npub}; is that the key that was used before?")
        would = "would be" if found.dry else "were"
        say(
            f"Found {count(found.events, 'event')} on relays: {count(found.records, 'record')} of "
            f"{count(found.subjects, 'memory')} and {count(len(found.files), 'file')} {would} recovered."
        )
    if not found.is_complete:
        raise typer.Exit(1)


@nostr.command("new-key")
def new_key(
    password: Annotated[
        bool, typer.Option("--password", help="Ask for a password, and encrypt the key with it.")
    ] = False,
) -> None:
    """Create the bot's secret key in a file that only you can read. The key is not displayed.

    Anyone with the key can read everything that is mirrored, and nobody can without it. Keep a copy of the
    file on another disk. If NOSTR_SECRET_KEY is set, that key is used instead.

    Example: discoclaw nostr new-key --password
    """
    from discoclaw.nostr.folder import key_path, make_key

    settings = settings_module.load()
    path = key_path(settings.data_dir)
    if password:
        typed = typer.prompt("Password", hide_input=True, confirmation_prompt=True, err=True)
    keys = make_key(path, typed if password else None)
    say(f"Created the key {keys.npub} in {path}.")
    say("Keep a copy of that file elsewhere: if this disk is lost, memory can only be recovered with it.")
    if password:
        say("Set NOSTR_KEY_PASSWORD to the password, so that the bot can use the key.")
    if settings.nostr_key is not None:
        note("NOSTR_SECRET_KEY is set, so that key is used; unset it to use the new one")


def _wanted() -> Settings:
    """The settings, with a note if the bot itself does not mirror."""
    settings = settings_module.load()
    if settings.nostr_mode == "off":
        note("NOSTR_MODE=off, so the bot mirrors nothing; this command works all the same")
    return settings
