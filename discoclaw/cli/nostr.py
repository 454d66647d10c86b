"""`discoclaw nostr`: how the encrypted mirror on relays is doing, bringing it up to date, and bringing back
a memory from it.
"""

import asyncio
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from discoclaw import settings as settings_module
from discoclaw.cli.common import AsJson, note, now_ms, print_table, say, say_json
from discoclaw.core.times import iso_ms
from discoclaw.settings import Settings
from discoclaw.show.words import count, line

nostr = typer.Typer(
    help="The encrypted mirror of the memory on Nostr relays, and recovery from it.", no_args_is_help=True
)
LONGEST = 200
PANEL = "Out and in (the bot has to be stopped)"


@nostr.command()
def status(as_json: AsJson = False) -> None:
    """How each relay is doing, what waits for it, and what it refused. Works while the bot runs.

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
    say(f"key: {found['npub'] or 'none; `discoclaw nostr new-key` makes one'}")
    say(f"mirrored: {count(found['events'], 'event')}; each has to be on {found['min_acks']} of the relays")
    if found["quarantined"]:
        say(f"kept apart, since they can not be read: {count(found['quarantined'], 'event')}")
    if not found["relays"]:
        say("No relays are set; name some with NOSTR_RELAYS.")
        return
    table = Table("relay", "connected", "last answer", "waiting", "refused", "what is wrong")
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
        say("The bot does not run, or has noted nothing yet; relays elsewhere were asked just now.")


def _waiting(one: dict[str, Any]) -> str:
    if not one["waiting"]:
        return "" if one["waiting"] is None else "0"
    return f"{one['waiting']:,} since {_when(one['waiting_since'])}"


def _when(ms: int | None) -> str:
    if ms is None:
        return ""
    told = iso_ms(ms)
    return f"{told[11:19]}Z" if told[:10] == iso_ms(now_ms())[:10] else f"{told[:10]} {told[11:16]}Z"


@nostr.command(rich_help_panel=PANEL)
def push(
    check: Annotated[
        bool,
        typer.Option("--check", help="Ask each relay what it has, and send what it lost or refused, too."),
    ] = False,
) -> None:
    """Send everything that is not mirrored yet, and wait until the relays have it.

    Exit code 1 when not every event is on NOSTR_MIN_ACKS of them.

    Example: discoclaw nostr push --check
    """
    from discoclaw.cli import relays

    here = relays.nostr_context(_wanted())
    instead = "it does this by itself; its owners say `!nostr push` to it"
    with relays.exclusive_memory(instead) as memory, relays.ProgressBars() as bars:
        done = asyncio.run(relays.push(here, memory, check=check, tell=bars.show_delivery))
    for told in done.notes:
        note(told)
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
        bool, typer.Option("--dry-run", help="Say what would come back; works while the bot runs.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Bring back the memory that relays have, and unite it with what is here. Twice is once.

    Nothing that is here is lost, and what was erased here does not come back. Exit code 1 when it may not be
    everything: no relay gave all it has, something is known to be missing, or could not be taken in.

    Example: discoclaw nostr recover --dry-run
    """
    from discoclaw.cli import relays

    here = relays.nostr_context(_wanted())
    if dry_run:
        with relays.ProgressBars() as bars:
            found = asyncio.run(relays.preview_recovery(here, bars.show_recovery))
    else:
        with (
            relays.exclusive_memory("`--dry-run` says what would come back") as memory,
            relays.ProgressBars() as bars,
        ):
            found = asyncio.run(relays.recover(here, memory, bars.show_recovery))
    if as_json:
        say_json(found.to_json())
    else:
        for told in found.warnings():
            note(told)
        if not found.events:
            note(f"no relay has anything of {here.config.keys.npub}; is that the key that was used before?")
        came = "would come" if found.dry else "came"
        say(
            f"{count(found.events, 'event')} found on relays; {count(found.records, 'record')} of "
            f"{count(found.subjects, 'memory')} and {count(len(found.files), 'file')} {came} back."
        )
    if not found.is_complete:
        raise typer.Exit(1)


@nostr.command("new-key")
def new_key(
    password: Annotated[
        bool, typer.Option("--password", help="Ask for a password, and keep the key encrypted with it.")
    ] = False,
) -> None:
    """Make the bot's secret key, in a file that only you can read; it is shown nowhere.

    Whoever has the key can read everything that is mirrored, and without it nobody can: keep a copy of the
    file on another disk. NOSTR_SECRET_KEY, where it is set, counts instead.

    Example: discoclaw nostr new-key --password
    """
    from discoclaw.nostr.folder import key_path, make_key

    settings = settings_module.load()
    path = key_path(settings.data_dir)
    if password:
        told = typer.prompt("Password", hide_input=True, confirmation_prompt=True, err=True)
    keys = make_key(path, told if password else None)
    say(f"The key {keys.npub} is in {path}.")
    say("Keep a copy of that file elsewhere: if this disk is lost, only the key brings the memory back.")
    if password:
        say("Set NOSTR_KEY_PASSWORD to the password, so that the bot can use it.")
    if settings.nostr_key is not None:
        note("NOSTR_SECRET_KEY is set, and counts instead of that file; take it out to use the new key")


def _wanted() -> Settings:
    """The settings, for a command that needs relays."""
    settings = settings_module.load()
    if settings.nostr_mode == "off":
        note("NOSTR_MODE=off, so the running bot mirrors nothing; this command works all the same")
    return settings
