"""`discoclaw memory get | set`: the record of a person or a channel as it is published, and notes in it.

A record combines its file (names, members, purpose) with what the subject's ledger says now. What `set` adds
becomes an item of the ledger, with a history like any other.
"""

import json
from collections.abc import Callable, Mapping
from typing import Annotated, Any, TypeVar

import typer

from discoclaw import settings as settings_module
from discoclaw.cli.common import (
    CHANGE_PANEL,
    CLI_AUTHOR,
    CLI_ORIGIN,
    LOCAL_TIMES,
    AsJson,
    inspect_subject,
    local_time,
    no_memory_text,
    note,
    run_on_storage,
    say,
    say_json,
    stores_of,
    without_secrets,
)
from discoclaw.core.draft import Draft
from discoclaw.core.errors import MemoryFault, Refused
from discoclaw.core.item import Facets
from discoclaw.core.profile import Group, Part, Profile, key_of
from discoclaw.core.subject import group_of, user_of
from discoclaw.core.times import iso_ms
from discoclaw.memory.people import choices
from discoclaw.memory.people.groups import KINDS
from discoclaw.memory.subjects.inspect import Inspection, recorded, subject_named
from discoclaw.settings import Settings
from discoclaw.show.words import line, quoted, short, when
from discoclaw.storage import Storage
from discoclaw.store.port import GROUPS, PROFILES, Disk

T = TypeVar("T")

commands = typer.Typer()
RecordArg = Annotated[
    str,
    typer.Argument(
        metavar="WHO", help="A Discord user id, group:CHANNEL_ID, or a subject as `memory list` shows it."
    ),
]


# ---------------------------------------------------------------------- looking


@commands.command()
def get(who: RecordArg, as_json: AsJson = False) -> None:
    """Show the record of a person (names, notes, …) or a channel (purpose, members, themes, decisions).

    Example: discoclaw memory get 123456789012345678
    """
    settings = settings_module.load()
    one = inspect_subject(who, may_be_new=True)
    with stores_of(settings) as stores:
        record, there = _record(one, stores.used, settings), recorded(stores.used)
    if one.subject not in there:
        raise Refused(no_memory_text(one.subject, there))
    if as_json:
        say_json({"subject": one.subject, **record})
    else:
        say("\n".join([one.subject, *_lines(record)]))


def _record(one: Inspection, disk: Disk, settings: Settings) -> dict[str, Any]:
    """The record as it is published, and what only an admin sees. Raises Refused and MemoryFault."""
    more = {
        "branch": one.history.branches.current,
        "items": len(one.view.active()),
        "last_change": iso_ms(one.view.updated_at) if one.view.commits else "",
    }
    if (user_id := user_of(one.subject)) is not None:
        profile = _read(disk, PROFILES, user_id, Profile.from_json, Profile()).with_view(one.view)
        chosen = (choices.read(disk, [user_id]) or {}).get(user_id, {})
        out = {"opted_out": bool(chosen.get("opted_out", False))}
        return {**profile.published(is_owner=user_id in settings.owners), **out, **more}
    if (group_id := group_of(one.subject)) is not None:
        group = _read(disk, GROUPS, group_id, Group.from_json, Group()).with_view(one.view)
        return {**group.to_json(), **more}
    raise Refused(f"{one.subject} is neither a person nor a channel; `discoclaw memory show` shows its items")


def _read(disk: Disk, folder: str, name: str, parse: Callable[[object], T], otherwise: T) -> T:
    """The record in a file. One that cannot be parsed is noted and left alone. Raises MemoryFault."""
    path = disk.documents(folder).folder / f"{name}.json"
    try:
        return parse(json.loads(disk.documents(folder).read(path.name)))
    except FileNotFoundError:
        return otherwise
    except OSError as error:
        raise MemoryFault(f"can't read {path}: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        note(f"{path} is not a record ({error}); the bot will set it aside when it next reads it")
        return otherwise


def _lines(record: Mapping[str, Any]) -> list[str]:
    """A record for people: a single value on one line, several values below their name."""
    lines = []
    for name, value in record.items():
        title = name.replace("_", " ")
        shown = _shown(name, value)
        if isinstance(shown, list):
            lines += [title, *(f"  - {one}" for one in shown)]
        elif shown:
            lines.append(f"{title:<12} {shown}")
    return lines


def _shown(name: str, value: Any) -> str | list[str]:
    """The value of one field as text; "" or [] if there is none."""
    if name == "first_seen":
        return local_time(value * 1000) if value else ""
    if name == "last_change":
        return when(value, LOCAL_TIMES) if value else ""
    if name in ("display_names", "decisions"):
        return [f"{line(text)} ({local_time(at * 1000)})" for text, at in value]
    if name == "members":
        return [f"{line(called)} ({line(user_id)})" for user_id, called in value]
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        return [f"{line(str(key))}: {line(_text(one))}" for key, one in value.items()]
    if isinstance(value, list):
        return [line(_text(one)) for one in value]
    return line(_text(value)) if value is not None else ""


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


# ---------------------------------------------------------------------- stating


@commands.command("set", rich_help_panel=CHANGE_PANEL)
def set_(
    who: RecordArg,
    note_: Annotated[str | None, typer.Option("--note", help="For a person: a note of one sentence.")] = None,
    theme: Annotated[
        str | None, typer.Option("--theme", help="For a channel: what people talk about there.")
    ] = None,
    decision: Annotated[
        str | None, typer.Option("--decision", help="For a channel: what has been decided.")
    ] = None,
) -> None:
    """Add a note about a person, or a theme or decision of a channel. The model always reads it.

    A channel's purpose is its topic in Discord. `discoclaw memory undo` removes a note again.

    Example: discoclaw memory set 123456789012345678 --note "Prefers to be called Annie."
    """
    subject = subject_named(who)
    given = {name: text for name, text in zip(_OPTIONS, (note_, theme, decision), strict=True) if text}
    if len(given) != 1:
        raise typer.BadParameter("use exactly one of them", param_hint=" / ".join(_OPTIONS))
    ((option, text),) = given.items()
    _check(subject, option)
    clean = without_secrets(text)

    def state(draft: Draft) -> str:
        if option == "--note":
            item, done = draft.upsert("fact", clean, CLI_ORIGIN, facets=Facets(category="core"))
        else:
            part = _OPTIONS[option]
            assert part is not None
            facets = Facets(author="stated", key=key_of(part, clean), category="core")
            item, done = draft.upsert(KINDS[part], clean, CLI_ORIGIN, facets=facets)
        what = f"the {option.removeprefix('--')} {short(item.id)} {quoted(item.text)}"
        return f"{subject} already had {what}." if done == "unchanged" else f"{subject} now has {what}."

    say(run_on_storage(lambda storage: _stated(storage, subject, state)))


_OPTIONS: Mapping[str, Part | None] = {"--note": None, "--theme": "theme", "--decision": "decision"}


def _check(subject: str, option: str) -> None:
    """Raise Refused if the option does not fit the subject, or the subject is unknown."""
    if user_of(subject) is None and group_of(subject) is None:
        raise Refused(f"{subject} is neither a person nor a channel, so it has no record")
    if (user_of(subject) is None) == (option == "--note"):
        fits = "--theme or --decision" if option == "--note" else "--note"
        raise Refused(f"{subject} has no {option.removeprefix('--')}s; use {fits}")
    with stores_of(settings_module.load()) as stores:
        there = recorded(stores.used)
    if subject not in there:
        raise Refused(no_memory_text(subject, there))


async def _stated(storage: Storage, subject: str, state: Callable[[Draft], str]) -> str:
    """Record a statement in the ledger, and update the record's file before the process ends."""
    try:
        return await storage.memory.change(subject, "noted by hand", state, by=CLI_AUTHOR)
    finally:
        await storage.people.profiles.close()
        await storage.people.groups.close()
