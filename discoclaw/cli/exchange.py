"""Memories leave a store or come into one: `discoclaw memory export | copy | import`, `backup`, `restore`.

A backup is the data folder and its store as one file; `memory export --all` makes one too, and
`memory import` adds one to a store that has memories already.
"""

import asyncio
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Literal

import typer
from pydantic import SecretStr

from discoclaw import settings as settings_module
from discoclaw.cli.caller import Admin, answer_of, look
from discoclaw.cli.common import (
    CLI_ORIGIN,
    IMPORT_PANEL,
    AsJson,
    Force,
    all_subjects,
    check_outside,
    hand_out,
    inspect_all,
    local_time,
    note,
    note_other_stores,
    now_ms,
    place,
    redactor,
    run_on_storage,
    say,
    say_json,
    stores_of,
)
from discoclaw.commands import data
from discoclaw.core.draft import Origin
from discoclaw.core.errors import MemoryFault, Refused, SettingsError
from discoclaw.core.privacy import kept_private
from discoclaw.core.subject import person_of, user_of, user_subject
from discoclaw.memory.exchange.archive import Archive, Loaded, is_whole, load, opened
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
from discoclaw.memory.exchange.export import Form, unpack_objects
from discoclaw.memory.exchange.histories import Records
from discoclaw.memory.exchange.load import Content, Imported, Items, load_file
from discoclaw.memory.exchange.restore import Erase, Restored, check, restore
from discoclaw.memory.exchange.take import Report
from discoclaw.memory.folder import UNPACKED, DataFolder
from discoclaw.memory.people import last_used as access
from discoclaw.memory.stores import shared
from discoclaw.memory.subjects.inspect import Inspection, held, subject_named
from discoclaw.settings import Settings
from discoclaw.show.words import count, line, memories
from discoclaw.storage import Storage
from discoclaw.store.files import passing_folder, read_in_thread, stamp_of
from discoclaw.store.port import CURSORS, ROLLING

commands = typer.Typer()

Format = Literal[Form, "usage", "tools"]
_NAMES: Mapping[Format, str] = {
    "json": "memories.json",
    "markdown": "memories.md",
    "objects": "memories",
    "snapshot": "snapshot.json",
    "usage": "usage.csv",
    "tools": "tools.json",
}


# ---------------------------------------------------------------------- export


@commands.command()
def export(
    who: Annotated[
        str | None, typer.Argument(help="A Discord user id, or a subject as `memory list` shows it.")
    ] = None,
    everybody_: Annotated[
        bool, typer.Option("--all", help="Export everybody: a backup, which can be imported.")
    ] = False,
    format_: Annotated[
        Format,
        typer.Option(
            "--format", help="markdown, usage and tools are for reading; others can be imported again."
        ),
    ] = "json",
    history: Annotated[
        bool, typer.Option("--history", help="Include every commit, not just the present items.")
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="The file, or - for stdout. For objects, a folder or .zip file."),
    ] = None,
    force: Force = False,
) -> None:
    """Export everything remembered about one person, including private items (to memories.json).

    objects is a folder of events and commits, the whole history. snapshot is a plain list of the present
    items, for other programs; usage is a table of the calls of models that were for the person, and tools
    what these had tools do in the last thirty days. With --all, the result is a file like that of
    `discoclaw backup` (everybody.tar.gz), which `memory import` adds to another store, for example after
    changing DISCOCLAW_STORE.

    Example: discoclaw memory export 123456789012345678 --history --output ann.json
    """
    if everybody_ == (who is not None):
        raise typer.BadParameter("name one person, or use --all")
    if who is None:
        _export_all(output or Path(f"everybody{ENDING}"), format_, force=force)
        return
    path = output or Path(_NAMES[format_])
    if format_ == "usage":  # of somebody about whom nothing may be remembered
        about = Admin(subject_named(who))
        answer = answer_of(asyncio.run(data.export(about, format_, history)))
    else:
        answer = look(who, lambda admin: data.export(admin, format_, history))
    if format_ == "objects" and path.suffix != ".zip" and str(path) != "-":
        check_outside(path)
        unpack_objects(answer.files[0].data, path)
        say(str(answer.typed).replace("{path}", str(path)))
    else:
        hand_out(answer, path, force=force)


def _export_all(target: Path, format_: Format, *, force: bool) -> None:
    if format_ != "json":
        raise Refused(f"{format_} is about one person; --all makes a backup, so leave out --format")
    if str(target) == "-":
        raise Refused("--all makes a backup, which can't go to stdout; name the file with --output")
    settings = settings_module.load()
    people = _sound(settings)
    done = written(settings, target, force=force)
    present = memories([item for one in people for item in one.history.items().values()])
    say(f"Exported {present} of {count(len(people), 'subject')} to {target}.")
    say(secrecy(settings, done.contents))


def _sound(settings: Settings) -> list[Inspection]:
    """Every subject in a store. Raises Refused if one is damaged, or was edited by hand since."""
    people = inspect_all(settings)
    if faulty := [one for one in people if one.faults]:
        raise Refused(
            f"{faulty[0].subject}: {faulty[0].faults[0]}; "
            "`discoclaw memory verify --repair` brings it in line, so that nothing is lost on the way"
        )
    return people


# ---------------------------------------------------------------------- from store to store


@commands.command(rich_help_panel=IMPORT_PANEL)
def copy(
    store: Annotated[
        str,
        typer.Argument(
            help="What DISCOCLAW_STORE was before: files, sqlite, a database's address, or - to be asked."
        ),
    ],
) -> None:
    """Copy everything from another store into the one that DISCOCLAW_STORE names, and compare it there.

    It adds what is not there yet and replaces nothing, so it may be repeated. Who was erased stays so. The
    other store keeps what it has. The archive and copies that were set aside are not copied.

    An address with a password would show in the list of processes. With - it is asked for, or read from
    standard input: discoclaw memory copy - < old-address

    Example: discoclaw memory copy files
    """
    if store == "-" and sys.stdin.isatty():
        store = typer.prompt("The other store", hide_input=True, err=True)
    elif store == "-":
        store = sys.stdin.readline()
    store, settings = store.strip(), settings_module.load()
    try:
        theirs = settings_module.load(store=SecretStr(store))
    except (
        SettingsError
    ) as error:  # which names the setting, and not what was typed here: it may be a password
        raise Refused(f"the store to copy from {str(error).partition(': ')[2]}") from None
    if theirs.store == settings.store or "none" in (store, settings.store.get_secret_value()):
        raise Refused(
            "name another store than the one that is used (DISCOCLAW_STORE); neither of them may be none"
        )
    people = _sound(theirs)
    if not people:
        raise Refused("there are no memories in the store that you named, so nothing was copied")
    with stores_of(theirs) as stores:
        source = stores.used.name
        database = shared(stores.used)
        if database is not None and any(one.alive for one in database.together().processes):
            raise Refused("processes of the bot use that database; stop all of them first")
    with passing_folder(settings.data_dir / UNPACKED) as made:
        file = made / f"{source}{ENDING}"
        written(theirs, file, force=False, beside=False)
        loaded, histories = _united(file, settings)
    with stores_of(settings) as stores:
        target = stores.used.name
        for subject, content in histories.items():
            there = held(stores.used, subject)
            assert isinstance(content, Records)
            lacking = {one.id for one in content.records} - {one.id for one in there.history.records}
            if there.faults or len(lacking) > loaded.reports[subject].erased:
                raise MemoryFault(f"{subject} is not complete in {target}; run `discoclaw memory verify`")
    for subject, report in loaded.reports.items():
        if not report.nothing or report.erased:
            say(f"{subject}: {_sentence(subject, report)}")
    copied, cursors = count(len(loaded.reports), "history"), count(loaded.count(CURSORS), "cursor")
    summaries = count(loaded.count(ROLLING), "summary")
    say(f"Copied from {source} to {target}: {copied}, {summaries} of conversations and {cursors}.")
    say(f"Each history was read again in {target}, and none lacks a record. {source} keeps what it has.")


# ---------------------------------------------------------------------- import


@commands.command("import", rich_help_panel=IMPORT_PANEL)
def import_(
    path: Annotated[Path, typer.Argument(help="A file, a zip file or a folder.")],
    who: Annotated[
        str | None, typer.Option("--as", help="Whose memory it is, or which of several people to import.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Import memories: an export, objects, a durable file, a backup, or a whole data folder.

    A history is united with the one that is here. Items without a history are added to the current branch;
    if they contradict what is remembered, a question is left for `settle`. Importing something twice changes
    nothing. If any part of it can't be trusted, nothing is imported.

    Example: discoclaw memory import ann.json --as 123456789012345678
    """
    if is_whole(path):
        _import_all(path, who, as_json)
        return
    imported = load_file(path, redactor())
    plan = _plan(imported, who)
    settings = settings_module.load()
    summaries = imported.summaries if who is None else {}

    async def work(storage: Storage) -> tuple[Loaded, int]:
        loaded = await load(Archive(plan), storage.memory, now_ms=now_ms, origin=_origin())
        for subject, content in plan.items():
            used = content.accessed if isinstance(content, Items) else {}
            await access.bring(storage.memory, storage.cursors, subject, used)
        people = {user for subject in all_subjects(settings) if (user := user_of(subject)) is not None}
        return loaded, await _bring_summaries(storage, summaries, people)

    loaded, brought = run_on_storage(work)
    _say_imported(imported.what, loaded.reports, as_json, summaries=brought)
    if summaries and not as_json:
        say(f"{count(brought, 'summary')} of conversations imported, {len(summaries) - brought} left out.")


def _import_all(path: Path, who: str | None, as_json: bool) -> None:
    """Import a whole store, or one person from it."""
    only = subject_named(who) if who is not None else None
    loaded, _ = _united(path, settings_module.load(), only)
    summaries, cursors = loaded.count(ROLLING), loaded.count(CURSORS)
    _say_imported(f"the store in {path.name}", loaded.reports, as_json, summaries=summaries, cursors=cursors)
    if only is None and not as_json:
        say(f"{count(summaries, 'summary')} of conversations and {count(cursors, 'cursor')} imported.")


def _united(path: Path, settings: Settings, only: str | None = None) -> tuple[Loaded, Mapping[str, Content]]:
    """Add a whole store, or one subject of it, to the store that is used.

    Returns what was done, and the histories that came.
    """
    with opened(path, settings.data_dir, now_ms=now_ms()) as archive:
        if only is not None and only not in archive.subjects:
            raise Refused(f"the store in {path.name} has nothing about {only}")

        async def work(storage: Storage) -> Loaded:
            memory = storage.memory
            if only is None:  # who opted out or was erased comes first, as it decides about the rest
                try:
                    memory.bring_decisions(archive.disk)
                except MemoryFault as fault:
                    note(str(fault))
            await read_in_thread(archive.without_erased, memory.disk, erasing(settings))
            wanted = archive if only is None else Archive({only: archive.subjects[only]})
            return await load(wanted, memory, now_ms=now_ms, origin=_origin())

        return run_on_storage(work), archive.subjects


def _say_imported(what: str, done: Mapping[str, Report], as_json: bool, **more: int) -> None:
    if as_json:
        people = {subject: asdict(report) for subject, report in done.items()}
        say_json({"what": what, "people": people, **more})
        return
    for subject, report in done.items():
        for text in (*report.notes, *report.rejected):
            note(f"{subject}: {text}")
        say(f"{subject}: {_sentence(subject, report)}")


def _plan(imported: Imported, who: str | None) -> dict[str, Content]:
    """The content for each subject. Raises Refused if neither the file nor `who` says whose memory it is."""
    if who is not None:
        subject = subject_named(who)
        if len(imported.subjects) == 1:
            return {subject: next(iter(imported.subjects.values()))}
        return {subject: imported.content(user_of(subject))}
    if None in imported.subjects:
        raise Refused(f"{imported.what} doesn't say whose memory it is; name the person with --as")
    return {user_subject(user): content for user, content in imported.subjects.items() if user is not None}


def _origin() -> Origin:
    return replace(CLI_ORIGIN, dm_privacy=settings_module.load().dm_privacy)


async def _bring_summaries(storage: Storage, summaries: Mapping[str, str], people: set[str]) -> int:
    """Store summaries for conversations that have none. Returns how many. Raises MemoryFault.

    The file does not say whose words are in a channel's summary. So everybody known here is recorded as a
    possible contributor, and such a summary is left out if anybody was ever erased.
    """
    memory, rolling, cursors = storage.memory, storage.conversations.rolling, storage.cursors
    brought = 0
    for name, summary in summaries.items():
        person = person_of(name)
        gone = memory.erased_anybody() if person is None else memory.erased_at(user_subject(person)) >= 0
        if gone or (await rolling.get(name)).updated_at:  # a summary that is here is newer than the file's
            continue
        # Noted before the summary is stored: one without a note would survive the erasure of its people.
        note_of = {"session": name, "people": sorted(people)}
        if person is None and not await cursors.put(f"people-{name}", note_of):
            raise MemoryFault(
                f"can't import the summary of {name}: the disk didn't take the note of whose words are in it"
            )
        brought += await rolling.put(name, summary, generation=await rolling.generation(name))
    return brought


def _sentence(subject: str, report: Report) -> str:
    parts = []
    if report.nothing:
        parts.append("nothing new")
    if report.records:
        named = f", branches {', '.join(map(line, report.branches))}" if report.branches else ""
        parts.append(f"{count(report.records, 'record')} imported ({count(report.commits, 'commit')}{named})")
    if report.items:
        parts.append(f"{count(report.items, 'memory')} imported")
    if report.private:
        parts.append(kept_private(report.private))
    if report.conflicts:
        parts.append(f"{report.conflicts} to settle (`discoclaw memory settle {subject}`)")
    if report.known:
        parts.append(f"{report.known} already known")
    if report.erased:
        parts.append(f"{report.erased} left out, because they were erased here")
    if report.redacted:
        parts.append(f"{report.redacted} stored without what looks like a secret key")
    if report.rejected:
        parts.append(f"{len(report.rejected)} rejected")
    return "; ".join(parts) + "."


# ---------------------------------------------------------------------- `discoclaw backup | restore`

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
    amount = f"{done.size / 1e6:.1f} MB" if done.size >= 100_000 else f"{done.size / 1000:.1f} kB"
    say(f"Wrote {target} from {place(settings)}: {amount}, read again and verified.")
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
