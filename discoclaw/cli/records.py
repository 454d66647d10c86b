"""`discoclaw memory get | set`: the record of a person or of a channel, as others read it, and notes in it.

A record is what its file says (names, members, purpose), and what the subject's ledger says now. `set` states
something by hand: it becomes an item of the ledger, with a history like any other.
"""

import json
from collections.abc import Callable, Mapping
from typing import Annotated, Any, TypeVar

import typer

from discoclaw import settings as settings_module
from discoclaw.cli.common import (
    CLI_AUTHOR,
    CLI_ORIGIN,
    AsJson,
    inspect_subject,
    no_memory_text,
    note,
    run_on_storage,
    say,
    say_json,
    without_secrets,
)
from discoclaw.core.draft import Draft
from discoclaw.core.errors import MemoryFault, Refused
from discoclaw.core.item import Facets
from discoclaw.core.profile import Group, Part, Profile, key_of
from discoclaw.core.subject import group_of, user_of
from discoclaw.core.times import iso_ms
from discoclaw.memory.disk.port import GROUPS, PROFILES, Disk
from discoclaw.memory.people import choices
from discoclaw.memory.people.group_notes import KINDS
from discoclaw.memory.subjects.inspect import Inspection, recorded, subject_named
from discoclaw.settings import Settings
from discoclaw.show.words import line, quoted, short, when
from discoclaw.storage import Storage, disks_of

T = TypeVar("T")

commands = typer.Typer()
PANEL = "Change (the bot has to be stopped)"

RecordArg = Annotated[
    str,
    typer.Argument(
        metavar="WHO", help="A Discord user id, group:CHANNEL_ID, or a subject as `memory list` shows it."
    ),
]


# ---------------------------------------------------------------------- looking


@commands.command()
def get(who: RecordArg, as_json: AsJson = False) -> None:
    """The record of a person (names, notes, preferences) or a channel (purpose, members, themes, decisions).

    Example: discoclaw memory get 123456789012345678
    """
    settings = settings_module.load()
    one = inspect_subject(who)
    with disks_of(settings) as stores:
        record, there = _record(one, stores.used, settings), recorded(stores.used)
    if as_json:
        say_json({"subject": one.subject, **record})
    elif one.subject in there:
        say("\n".join([one.subject, *_lines(record)]))
    else:
        told = no_memory_text(one.subject, there)
        say(f"{told[:1].upper()}{told[1:]}{'' if told.endswith('?') else '.'}")


def _record(one: Inspection, disk: Disk, settings: Settings) -> dict[str, Any]:
    """The record as it is published, and what only an admin is told. Raises Refused and MemoryFault."""
    beside = {
        "branch": one.history.branches.current,
        "items": len(one.view.active()),
        "last_change": iso_ms(one.view.updated_at) if one.view.commits else "",
    }
    if (user_id := user_of(one.subject)) is not None:
        profile = _read(disk, PROFILES, user_id, Profile.from_json, Profile()).with_view(one.view)
        chosen = (choices.read(disk.documents("")) or {}).get(user_id, {})
        out = {"opted_out": bool(chosen.get("opted_out", False))}
        return {**profile.published(is_owner=user_id in settings.owners), **out, **beside}
    if (group_id := group_of(one.subject)) is not None:
        group = _read(disk, GROUPS, group_id, Group.from_json, Group()).with_view(one.view)
        return {**group.to_json(), **beside}
    raise Refused(f"{one.subject} is no person and no channel; `discoclaw memory show` shows its items")


def _read(disk: Disk, folder: str, name: str, parse: Callable[[object], T], otherwise: T) -> T:
    """What a file says; one that is none is said, and left as it is. Raises MemoryFault."""
    path = disk.documents(folder).folder / f"{name}.json"
    try:
        return parse(json.loads(disk.documents(folder).read(path.name)))
    except FileNotFoundError:
        return otherwise
    except OSError as error:
        raise MemoryFault(f"{path} can not be read: {error}") from error
    except (ValueError, RecursionError) as error:
        note(f"{path} is no record ({error}); the bot keeps it aside when it next reads it")
        return otherwise


def _lines(record: Mapping[str, Any]) -> list[str]:
    """A record for people: what is one value on a line, what are many below one."""
    lines = []
    for name, value in record.items():
        title = name.replace("_", " ")
        told = _told(name, value)
        if isinstance(told, list):
            lines += [title, *(f"  - {one}" for one in told)]
        elif told:
            lines.append(f"{title:<12} {told}")
    return lines


def _told(name: str, value: Any) -> str | list[str]:
    """One field; "" or [] for nothing."""
    if name == "first_seen":
        return when(value * 1000) if value else ""
    if name in ("display_names", "decisions"):
        return [f"{line(text)} ({when(at * 1000)})" for text, at in value]
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


@commands.command("set", rich_help_panel=PANEL)
def set_(
    who: RecordArg,
    note_: Annotated[str | None, typer.Option("--note", help="Of a person: a note, one sentence.")] = None,
    theme: Annotated[str | None, typer.Option("--theme", help="Of a channel: what it talks about.")] = None,
    decision: Annotated[str | None, typer.Option("--decision", help="Of a channel: what holds.")] = None,
) -> None:
    """State something of a person, or of a channel: it stands in their record, and the model always reads it.

    A channel's purpose is its topic in Discord. `discoclaw memory undo` takes a note back.

    Example: discoclaw memory set 123456789012345678 --note "Prefers to be called Annie."
    """
    subject = subject_named(who)
    given = {name: text for name, text in zip(_OPTIONS, (note_, theme, decision), strict=True) if text}
    if len(given) != 1:
        raise typer.BadParameter("say one of them", param_hint=" / ".join(_OPTIONS))
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
        return f"{subject} had {what} already." if done == "unchanged" else f"{subject} has {what} now."

    say(run_on_storage(lambda storage: _stated(storage, subject, state)))


_OPTIONS: Mapping[str, Part | None] = {"--note": None, "--theme": "theme", "--decision": "decision"}


def _check(subject: str, option: str) -> None:
    """Raise Refused where a subject has no such part in its record, or nobody knows it."""
    if user_of(subject) is None and group_of(subject) is None:
        raise Refused(f"{subject} is no person and no channel; it has no record")
    if (user_of(subject) is None) == (option == "--note"):
        fits = "--theme and --decision" if option == "--note" else "--note"
        raise Refused(f"{subject} has no {option.removeprefix('--')}s; for it there is {fits}")
    with disks_of(settings_module.load()) as stores:
        there = recorded(stores.used)
    if subject not in there:
        raise Refused(no_memory_text(subject, there))


async def _stated(storage: Storage, subject: str, state: Callable[[Draft], str]) -> str:
    """Record a statement, and have it in the record's file too."""
    try:
        return await storage.memory.change(subject, "noted by hand", state, by=CLI_AUTHOR)
    finally:
        await storage.people.profiles.close()
        await storage.people.groups.close()
