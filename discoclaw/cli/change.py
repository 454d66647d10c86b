"""`discoclaw memory`, verbs that change a memory and have parameters of their own: set, settle, erase.

They lock the data folder, so they are refused while the bot runs; in Discord, `!memory …` has the same verbs.
What they record counts as stated by the person, and is marked as made by "cli".
"""

import asyncio
import sys
from collections.abc import Mapping
from typing import Annotated, Final, Literal

import typer

from discoclaw import settings as settings_module
from discoclaw.cli.caller import Admin, answer_of, look
from discoclaw.cli.common import (
    CHANGE_PANEL,
    CLI_AUTHOR,
    CLI_ORIGIN,
    IMPORT_PANEL,
    AsJson,
    OnlyBranch,
    RecordArg,
    SubjectArg,
    existing_subject,
    inspect_or_fault,
    inspect_subject,
    no_memory_text,
    print_answer,
    run_change,
    run_on_storage,
    say,
    storage_of,
    stores_of,
    without_secrets,
)
from discoclaw.commands import data, questions
from discoclaw.core.draft import Draft
from discoclaw.core.errors import Refused
from discoclaw.core.item import Facets
from discoclaw.core.profile import Part, key_of
from discoclaw.core.subject import group_of, user_of
from discoclaw.memory.people.groups import KINDS
from discoclaw.memory.subjects.inspect import recorded, subject_named
from discoclaw.show.answer import Reply, below
from discoclaw.show.words import quoted, short
from discoclaw.storage import Storage

commands = typer.Typer()
_OPTIONS: Mapping[str, Part | None] = {"--note": None, "--theme": "theme", "--decision": "decision"}


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
    if user_of(subject) is None and group_of(subject) is None:
        raise Refused(f"{subject} is neither a person nor a channel, so it has no record")
    if (user_of(subject) is None) == (option == "--note"):
        fits = "--theme or --decision" if option == "--note" else "--note"
        raise Refused(f"{subject} has no {option.removeprefix('--')}s; use {fits}")
    with stores_of(settings_module.load()) as stores:
        there = recorded(stores.used)
    if subject not in there:
        raise Refused(no_memory_text(subject, there))
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

    async def work(storage: Storage) -> str:
        try:
            return await storage.memory.change(subject, "noted by hand", state, by=CLI_AUTHOR)
        finally:  # the record's file is updated before the process ends
            await storage.people.profiles.close()
            await storage.people.groups.close()

    say(run_on_storage(work))


Typed = Literal["keep", "new", "both"]
_HOW: Final = {typed: how for how, typed in questions.TYPED.items()}


@commands.command(rich_help_panel=CHANGE_PANEL)
def settle(
    who: SubjectArg,
    conflict: Annotated[
        str | None, typer.Argument(metavar="QUESTION", help="The question's id, as the list shows it.")
    ] = None,
    answer: Annotated[Typed | None, typer.Argument(metavar="keep|new|both", help="What is right.")] = None,
    branch: OnlyBranch = None,
    as_json: AsJson = False,
) -> None:
    """List questions about things that can't both be true, or answer one for the person.

    keep: the old text is right. new: the new one is. both: keep each as an item. Listing works while the bot
    runs.

    Example: discoclaw memory settle 123456789012345678 c5230d5b new
    """
    if conflict is not None and answer is None:
        raise typer.BadParameter("say what is right", param_hint="keep|new|both")
    if conflict is None or answer is None:  # listing only reads, so it works while the bot runs
        print_answer(look(who, questions.settle, on=branch), as_json)
        return
    subject, how = existing_subject(who), _HOW[answer]

    async def work(storage: Storage) -> Reply:
        return await questions.settle(Admin(subject, on=branch, memory=storage.memory), conflict, how)

    settled, taken_back = run_change(subject, work)
    print_answer(answer_of(below(settled, taken_back.splitlines())), as_json=False)


# ---------------------------------------------------------------------- everything about somebody


@commands.command(rich_help_panel=IMPORT_PANEL)
def erase(
    who: SubjectArg,
    yes: Annotated[bool, typer.Option("--yes", help="Don't ask for confirmation.")] = False,
) -> None:
    """Erase everything stored about one person: ledger, files, copies, and summaries they are part of.

    This cannot be undone, and what they have said until now is not learned again. Without --yes the command
    shows what would be erased, and asks for confirmation.

    Example: discoclaw memory erase 123456789012345678 --yes
    """
    subject, settings = subject_named(who), settings_module.load()
    with stores_of(settings) as stores:
        if not (stores.used.shared or settings.memory_dir.is_dir()):
            raise Refused(no_memory_text(subject, ()))
        found = (
            inspect_subject(subject, may_be_new=True) if not yes else inspect_or_fault(stores.used, subject)
        )
    if not yes:
        asking = Admin(subject, found=found, memory=storage_of(settings).memory)
        stored = asyncio.run(data.erase(asking))
        if not sys.stdin.isatty():
            raise Refused(f"this would erase {subject} for good: {stored}; confirm it with --yes")
        say(f"This erases {subject} for good: {stored}.")
        if not typer.confirm("Erase?"):
            raise Refused("nothing was erased")
    done = run_on_storage(
        lambda storage: data.erase(Admin(subject, found=found, memory=storage.memory), yes=True)
    )
    print_answer(answer_of(done), as_json=False)
