"""`discoclaw memory erase`: destroys everything that is stored about one person."""

import sys
from typing import Annotated

import typer

from discoclaw import settings as settings_module
from discoclaw.cli.common import (
    IMPORT_PANEL,
    SubjectArg,
    inspect_or_fault,
    inspect_subject,
    no_memory_text,
    run_locked,
    say,
    storage_of,
    stores_of,
)
from discoclaw.core.errors import MemoryFault, Refused
from discoclaw.core.history import History
from discoclaw.core.personal import ON_RELAYS
from discoclaw.memory.erasing.erase import Erased
from discoclaw.memory.subjects.inspect import subject_named
from discoclaw.memory.subjects.store import Memory
from discoclaw.show.words import count, memories

commands = typer.Typer()


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
        if not yes:
            _confirm(subject)
        size = _size(inspect_or_fault(stores.used, subject).history)

    async def work(memory: Memory) -> Erased:
        return await memory.erase(subject)

    done = run_locked(work)
    if done.left:
        raise MemoryFault(
            f"{count(len(done.left), 'file')} of {subject} couldn't be removed; the bot tries again when it "
            "starts, and remembers nothing about them until then"
        )
    if done.waiting:
        raise MemoryFault(
            f"{subject} is not erased yet: another process still has something in RAM, and doesn't answer. A "
            "running bot finishes it; `discoclaw status` shows the processes"
        )
    removed = f"{size + '; ' if size else ''}{count(done.removed, 'file')} removed"
    sentences = [f"{subject} is erased: {removed if done.removed else 'there was nothing to remove'}."]
    if done.soul:
        sentences.append("The bot's personality was based on their words, so it is erased too.")
    if ON_RELAYS in done.todo:
        sentences.append(
            "When the bot next runs, it overwrites the copies on relays and requests their deletion, "
            "which a relay may ignore."
        )
    if set(done.todo) - {ON_RELAYS}:
        sentences.append("The bot will remove what it posted in Discord when it next runs.")
    say(" ".join(sentences))


def _size(history: History) -> str:
    """The size of a ledger in words; "" if there is none."""
    if not history.records:
        return ""
    made, there = count(len(history.commits), "commit"), count(len(history.branches.all), "branch")
    return f"{memories(history.items().values())}, {made} on {there}"


def _confirm(subject: str) -> None:
    """Show what would be erased and ask. Raises Refused if the answer is no, or if nobody can be asked."""
    one = inspect_subject(subject, may_be_new=True)
    stored = f"{_size(one.history) or 'no ledger'}, and the summaries they are part of"
    if ON_RELAYS in storage_of(settings_module.load()).memory.personal.outside(subject):
        stored += "; the bot requests the deletion of the copies on relays, which a relay may ignore"
    if not sys.stdin.isatty():
        raise Refused(f"this would erase {subject} for good: {stored}; confirm it with --yes")
    say(f"This erases {subject} for good: {stored}.")
    if not typer.confirm("Erase?"):
        raise Refused("nothing was erased")
