"""`discoclaw memory`: the verbs that Discord has too, made from the table of commands, and who gives them.

An admin may see everything, and what they enter counts as stated by the person. Verbs that look read the
disk, also while the bot runs; those that change a memory lock the folder, so they are refused then.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from inspect import Parameter, Signature
from typing import Annotated, Any, Final

import typer

from discoclaw import settings as settings_module
from discoclaw.cli.common import (
    CHANGE_PANEL,
    CLI_AUTHOR,
    CLI_ORIGIN,
    ITEM,
    LOCAL_TIMES,
    AnySubjectArg,
    AsJson,
    SubjectArg,
    existing_subject,
    inspect_subject,
    item_named,
    local_to_utc,
    now_ms,
    print_answer,
    print_list,
    run_change,
    stores_of,
    without_secrets,
)
from discoclaw.commands.caller import Caller, Used
from discoclaw.commands.spec import Command, Param
from discoclaw.commands.table import COMMANDS
from discoclaw.core.draft import Origin
from discoclaw.core.history import Branches, History
from discoclaw.core.item import Item
from discoclaw.core.subject import user_of
from discoclaw.core.usage import Call
from discoclaw.core.view import View
from discoclaw.memory.people import last_used as access
from discoclaw.memory.subjects.inspect import Inspection
from discoclaw.memory.subjects.store import AnyMemory, NoMemory
from discoclaw.show.answer import Answer, Reply, Row, below
from discoclaw.show.words import quoted, short
from discoclaw.storage import Storage
from discoclaw.store.port import CURSORS
from discoclaw.usage.accounts import calls_since
from discoclaw.usage.log import UsageLog

_NONE: Final = NoMemory()


@dataclass
class Admin(Caller):
    """Somebody at a terminal, who gives a command about a `subject`, on a branch if they name one.

    `memory` is the one they change; what they only look at was `found` on the disk, or `inspected`, or is the
    `usage`. `again` are words behind a command that they may have to type again.
    """

    subject: str = ""
    _: KW_ONLY
    persona_here: str | None = None
    memory: AnyMemory = _NONE
    found: Inspection | None = None
    inspected: Sequence[tuple[Inspection, Sequence[str]]] = ()
    usage: Used | None = None
    again: Sequence[str] = ()
    terminal, in_private, user_id = True, True, ""
    times, to_utc = LOCAL_TIMES, staticmethod(local_to_utc)

    @property
    def metadata(self) -> dict[str, Any]:
        return {"by": CLI_AUTHOR}

    def origin(self) -> Origin:
        return CLI_ORIGIN

    def clean(self, text: str) -> tuple[str, str]:
        return without_secrets(text), ""

    def called(self, item: Item) -> str:
        return f"{short(item.id)} {quoted(item.text)}"

    async def the_one(
        self, items: Collection[Item], wanted: str, verb: str, *, gone: bool = False, new: str = ""
    ) -> Item:
        again = ["discoclaw", "memory", verb, user_of(self.subject) or self.subject, ITEM]
        again += [*([new] if new else []), *(["--branch", self.persona_here] if self.persona_here else [])]
        again += self.again
        return item_named([one for one in items if gone or one.active], wanted, again)

    async def those(self, items: Collection[Item], wanted: str, verb: str) -> list[Item]:
        return [await self.the_one(items, wanted, verb)]

    async def history(self) -> History:
        return self.found.history if self.found is not None else await super().history()

    async def branches(self) -> Branches:
        return self.found.history.branches if self.found is not None else await super().branches()

    async def view(self, branch: str | None = None) -> View:
        if self.found is None:
            return await super().view(branch)
        history = self.found.history
        return history.view(history.branch(branch).head) if branch is not None else history.shown()

    async def last_uses(self) -> Mapping[str, int]:
        with stores_of(settings_module.load()) as stores:
            return access.kept(stores.used.documents(CURSORS), self.subject)

    async def calls(self) -> Sequence[Call]:
        user_id = user_of(self.subject)
        with stores_of(settings_module.load()) as stores:
            return calls_since(UsageLog(stores.used), 0, user_id) if user_id is not None else []

    async def used(self, everybody: bool) -> Used:
        assert self.usage is not None
        return self.usage

    @property
    def now_ms(self) -> int:
        return now_ms()

    async def checked(self) -> Sequence[tuple[Inspection, Sequence[str]]]:
        return self.inspected

    def looks_at(self, history: History, wanted: str | None) -> str | None:
        return wanted or self.persona_here  # all branches, unless one is named


# ---------------------------------------------------------------------- as commands of Typer

ON: Final = "on_branch"
"""The parameter of the option that names the branch a verb is about."""


def shared_verbs(group: typer.Typer) -> None:
    """Add the verbs that Discord has too to a group of commands, from their rows in the table.

    Those that have parameters of their own here are functions of this package, which call the same.
    """
    for row in COMMANDS:
        if row.terminal is not None and row.terminal.help:
            panel = CHANGE_PANEL if row.terminal.changes else None
            group.command(row.terminal.name, rich_help_panel=panel)(_command(row))


def look(subject: str, run: Callable[[Admin], Awaitable[Reply]], **about: Any) -> Answer:
    """Give a command about a subject that changes nothing, so that it works while the bot runs."""
    found = inspect_subject(subject)

    async def work() -> Reply:
        return await run(Admin(found.subject, found=found, **about))

    return answer_of(asyncio.run(work()))


def answer_of(reply: Reply) -> Answer:
    """What a command returned, as an answer."""
    return reply if isinstance(reply, Answer) else Answer(rows=[Row(str(reply))])


def _command(row: Command) -> Callable[..., None]:
    terminal = row.terminal
    assert terminal is not None

    def command(who: str | None, as_json: bool = False, **values: Any) -> None:
        on = values.pop(ON, None)
        if who is None:
            print_list(as_json=as_json, then=terminal.name)
        elif terminal.changes:
            subject = existing_subject(who)

            async def change(storage: Storage) -> Reply:
                memory = storage.memory
                branch = (await memory.branches(subject)).named(on).name if on is not None else None
                return await row.run(Admin(subject, persona_here=branch, memory=memory), **values)

            done, taken_back = run_change(subject, change)
            print_answer(answer_of(below(done, taken_back.splitlines())), as_json)
        else:
            again = ["--json"] if as_json else []
            print_answer(
                look(who, lambda admin: row.run(admin, **values), persona_here=on, again=again), as_json
            )

    needs_values = any(_needed(one) for one in row.params)
    who = SubjectArg if terminal.changes or needs_values else AnySubjectArg
    given = [_typer_parameter("who", who, required=who is SubjectArg)]
    given += [_parameter(one) for one in row.params if one.terminal is not None]
    if terminal.on is not None:
        option = typer.Option(terminal.on.name, help=terminal.on.help)
        given.append(_typer_parameter(ON, Annotated[str | None, option]))
    if terminal.json:
        given.append(_typer_parameter("as_json", AsJson, default=False))
    command.__name__ = terminal.name
    command.__doc__ = f"{terminal.help}\n\nExample: discoclaw memory {terminal.example}"
    command.__annotations__ = {one.name: one.annotation for one in given}
    command.__signature__ = Signature(given)  # type: ignore[attr-defined]
    return command


def _needed(param: Param) -> bool:
    """Whether a parameter has to be given here."""
    return param.required or (param.terminal is not None and param.terminal.required)


def _parameter(param: Param) -> Parameter:
    """A parameter of the table as Typer knows it: an option if its name begins with a dash."""
    typed, default = param.terminal, False if param.kind == "flag" else None
    assert typed is not None
    kind: Any = {"flag": bool, "number": int}.get(param.kind, str)
    if default is None and not _needed(param):
        kind = kind | None
    if not typed.name.startswith("-"):
        about: Any = typer.Argument(metavar=typed.name, help=typed.help)
    else:
        least = param.bounds[0] if param.bounds is not None and param.kind == "number" else None
        about = typer.Option(*typed.name.split(), help=typed.help, min=least)
    return _typer_parameter(param.name, Annotated[kind, about], required=_needed(param), default=default)


def _typer_parameter(
    name: str, annotation: object, *, required: bool = False, default: object = None
) -> Parameter:
    default = Parameter.empty if required else default
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
