"""`discoclaw backup | restore`: the data folder and its store as one file, and back."""

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from pydantic import SecretStr

from discoclaw import settings as settings_module
from discoclaw.cli.common import (
    Force,
    check_outside,
    local_time,
    note,
    note_other_stores,
    now_ms,
    place,
    run_on_storage,
    say,
    stores_of,
)
from discoclaw.core.errors import MemoryFault, Refused
from discoclaw.memory.exchange.backup import (
    ARCHIVE,
    ENDING,
    KEY,
    MEMORY,
    OUTBOX,
    TABLES,
    Backup,
    Contents,
    back_up,
    read_file,
)
from discoclaw.memory.exchange.whole import Erase, Restored, check, restore
from discoclaw.memory.folder import DataFolder
from discoclaw.settings import Settings
from discoclaw.show.words import count, line
from discoclaw.storage import Storage
from discoclaw.store.files import stamp_of

_PARTS = {ARCHIVE: "the archive", OUTBOX: "the mirror's outbox", KEY: "the mirror's key"}


def backup(
    file: Annotated[
        Path | None,
        typer.Argument(help="The new file; by default discoclaw-DATE-TIME.tar.gz, here.", show_default=False),
    ] = None,
    force: Force = False,
) -> None:
    """Back up everything in the data folder and its store into one file. The bot may run meanwhile.

    The file is read again and verified before it gets its name. `content/` and
    `.env` are not in it. Restore it with `discoclaw restore`.

    Example: discoclaw backup /mnt/backups/discoclaw-monday.tar.gz
    """
    settings = settings_module.load()
    target = file if file is not None else Path(f"discoclaw-{stamp_of(now_ms())}{ENDING}")
    done = written(settings, target, force=force)
    say(f"Wrote {target} from {place(settings)}: {_amount(done.size)}, read again and verified.")
    say(f"In it: {_inside(done.contents)}.")
    say("Not in it: content/, .env, caches and the embedded relay's copies.")
    say(secrecy(settings, done.contents))


def written(settings: Settings, target: Path, *, force: bool, beside: bool = True) -> Backup:
    """Write a backup, and note what is not in it or not sound. Raises Refused and MemoryFault.

    Without what lies `beside` the store, no archive and no key is in it.
    """
    check_outside(target)
    with stores_of(settings) as stores:
        if not stores.used.shared and not settings.memory_dir.is_dir():
            raise Refused(f"there is nothing to back up in {place(settings)}; set DISCOCLAW_DATA_DIR")
        if beside:  # else its store is not the one that is used
            note_other_stores(settings)
        done = back_up(stores.used, settings.data_dir, target, clock=now_ms, replace=force, beside=beside)
    for name in done.skipped:
        note(f"{name} is not in it: it has no name of the bot's, or is a symbolic link")
    _note_damaged(done.contents)
    return done


def restore_(
    file: Annotated[Path, typer.Argument(help="A file that `discoclaw backup` wrote.")],
    into: Annotated[
        Path | None,
        typer.Option("--into", help="Another data folder than DISCOCLAW_DATA_DIR.", show_default=False),
    ] = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Put it in place of what is there, which is kept beside it.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Verify the file, say what would happen, and change nothing.")
    ] = False,
) -> None:
    """Restore a backup into the data folder and the store that the settings name. Stop the bot first.

    The file is verified as a whole before anything changes. What is there already is never overwritten: with
    --replace it is kept beside the folder. Who was erased or opted out here since then stays that way. A
    database in PostgreSQL has to be empty.

    Example: discoclaw restore discoclaw-monday.tar.gz --into /tmp/look --dry-run
    """
    settings = settings_module.load()
    if into is not None:
        settings = settings.model_copy(update={"data_dir": into, "durable_dir": None, "summary_dir": None})
    contents = read_file(file)
    with stores_of(settings) as stores:
        if dry_run:
            check(stores, contents, replace=replace)
            _note_damaged(contents)
            say(f"{file} is sound. It was made {local_time(contents.head.at)}, of {contents.head.store}.")
            say(f"In it: {_inside(contents)}. Nothing was changed.")
            return
        _check_user(settings.data_dir)

        def work() -> Restored:
            check(stores, contents, replace=replace)
            return restore(file, stores, contents, erasing(settings), now_ms=now_ms())

        done = DataFolder(stores, clock=now_ms).alone(work)
    _tell(settings, file, contents, done)


def _check_user(data: Path) -> None:
    """Raise Refused if root restores into somebody else's folder.

    The bot could not read the files then, and whoever has the folder could have root move any others.
    """
    if os.name == "nt" or os.geteuid() != 0 or not data.is_dir() or (owner := data.stat().st_uid) == 0:
        return
    with tempfile.TemporaryFile(dir=data) as made:
        if os.fstat(made.fileno()).st_uid == owner:  # a mount without owners
            return
    raise Refused(
        f"nothing was restored: {data} belongs to another user (id {owner}), who runs the bot; restore as "
        f"that user: sudo -u '#{owner}' discoclaw restore …"
    )


def _tell(settings: Settings, file: Path, contents: Contents, done: Restored) -> None:
    _note_damaged(contents)
    say(f"Restored {file}, made {local_time(contents.head.at)}, into {settings.data_dir}.")
    say(f"Restored: {_inside(contents)}.")
    if done.left_out:
        say(f"Left out: {'; '.join(done.left_out)}.")
    if done.erased:
        people = count(done.erased, "subject")
        say(f"{people} erased here since the backup stayed erased.")
    if done.kept is not None:
        say(
            f"What was there before is kept in {done.kept}, a data folder. Erasing somebody doesn't reach "
            "it, so delete it when you no longer need it."
        )
    say("Start the bot now. It reads what was said since from Discord, as after any pause.")


def erasing(settings: Settings) -> Erase:
    """What erases people from the plain files of a data folder that isn't in use. Raises MemoryFault."""

    def erase(data: Path, subjects: Sequence[str]) -> None:
        async def work(storage: Storage) -> None:
            for subject in subjects:
                if (erased := await storage.memory.erase(subject)).left:
                    raise MemoryFault(f"{subject}, who was erased here, is left in part: {erased.left[0]}")

        files = {"data_dir": data, "durable_dir": None, "summary_dir": None, "store": SecretStr("files")}
        run_on_storage(work, settings.model_copy(update=files))

    return erase


# ---------------------------------------------------------------------- sentences


def _inside(contents: Contents) -> str:
    """The contents of a backup: "3 ledgers with 12 commits, 40 other texts and the archive"."""
    parts = [name for key, name in _PARTS.items() if contents.has(key)]
    tables = [one for one in contents.members if one.name.startswith(f"{MEMORY}{TABLES}/")]
    others = len(contents.members) - contents.ledgers - len(parts) - len(tables)
    if any(one.size for one in tables if one.name.endswith("archive_entries")):
        parts.insert(0, _PARTS[ARCHIVE])
    listed = [
        f"{count(contents.ledgers, 'ledger')} with {count(contents.commits, 'commit')}",
        count(others, "other text"),
        *parts,
    ]
    return f"{', '.join(listed[:-1])} and {listed[-1]}"


def secrecy(settings: Settings, contents: Contents) -> str:
    """Why a backup has to be kept secret."""
    secret = "Keep the file secret: it has what people said in private"
    if contents.has(KEY):
        return f"{secret}, and the mirror's key, with which anybody can read the mirror and write as the bot."
    elsewhere = " The mirror's key is in .env and not in it." if settings.nostr_key is not None else ""
    return f"{secret}.{elsewhere}"


def _note_damaged(contents: Contents) -> None:
    for subject in contents.damaged:
        note(
            f"the ledger of {line(subject)} is damaged, and is in the backup as it is; "
            "`discoclaw memory verify --repair` brings it in line"
        )


def _amount(size: int) -> str:
    """A size for people: "12.3 MB"."""
    return f"{size / 1e6:.1f} MB" if size >= 100_000 else f"{size / 1000:.1f} kB"
