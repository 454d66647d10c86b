"""`discoclaw memory`, the verbs that change a memory: branches, merges, undoing, items, settling, erasing.

They lock the data folder, so they are refused while the bot runs; in Discord, `!memory …` has the same verbs.
What they record counts as stated by the person, and is marked as made by "cli".
"""

import sys
from collections.abc import Mapping
from dataclasses import asdict
from typing import Annotated, Any, Final, Literal

import typer

from discoclaw import settings as settings_module
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
    run_change,
    run_on_storage,
    say,
    say_json,
    storage_of,
    stores_of,
    without_secrets,
)
from discoclaw.core.draft import RESOLUTIONS, Draft
from discoclaw.core.errors import MemoryFault, Refused
from discoclaw.core.history import History
from discoclaw.core.item import Facets
from discoclaw.core.profile import Part, key_of
from discoclaw.core.purge import ON_RELAYS
from discoclaw.core.subject import group_of, user_of
from discoclaw.core.view import Conflict, View
from discoclaw.memory.people.groups import KINDS
from discoclaw.memory.subjects import verbs
from discoclaw.memory.subjects.inspect import recorded, subject_named
from discoclaw.show import text
from discoclaw.show.words import count, memories, quoted, short, word
from discoclaw.storage import Storage

commands = typer.Typer()
ON_IT: Final[Mapping[str, Any]] = {"origin": CLI_ORIGIN, "by": CLI_AUTHOR}
"""Who makes a change from here."""

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


Answer = Literal["keep", "new", "both"]
_HOW: Final = dict(zip(("keep", "new", "both"), RESOLUTIONS, strict=True))


@commands.command(rich_help_panel=CHANGE_PANEL)
def settle(
    who: SubjectArg,
    conflict: Annotated[
        str | None, typer.Argument(metavar="QUESTION", help="The question's id, as the list shows it.")
    ] = None,
    answer: Annotated[Answer | None, typer.Argument(metavar="keep|new|both", help="What is right.")] = None,
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
    # Listing only reads, so it works while the bot runs; the lock is taken for an answer alone.
    one = inspect_subject(who)
    history, there = one.history, one.history.branches
    open_: dict[str, tuple[str, View, Conflict]] = {}  # those of the current branch first, each once
    for name in [there.named(branch).name] if branch is not None else [there.current, *there.all]:
        view = history.view(there.all[name].head)
        for each in view.conflicts:
            open_.setdefault(each.event_id, (name, view, each))
    if conflict is None or answer is None:
        if as_json:
            say_json([asdict(each) | {"branch": name} for name, _, each in open_.values()])
            return
        for name, view, each in open_.values():
            say(f"{each.event_id} [{word(name)}] {text.conflict(view, each)}")
        if open_:
            first = next(iter(open_))[:8]
            say(f"\nAnswer one with `discoclaw memory settle {one.subject} {first} keep|new|both`.")
        else:
            say("There are no open questions.")
        return

    subject, prefix = existing_subject(who), conflict.strip().lower()
    found = [event_id for event_id in open_ if prefix and event_id.startswith(prefix)]
    if len(found) != 1:
        several = (open_[event_id] for event_id in found or open_)
        listed = "; ".join(f"{each.event_id} {text.conflict(view, each)}" for _, view, each in several)
        if found:
            raise Refused(
                f"{len(found)} questions begin with {quoted(conflict, 60)}; give more digits: {listed}"
            )
        what = f"open: {listed}" if open_ else "none is open"
        raise Refused(f"no question has the id {quoted(conflict, 60)}; {what}")
    on = open_[found[0]][0]

    async def work(storage: Storage) -> str:
        memory = storage.memory
        done = await verbs.settle(memory, subject, found[0], _HOW[answer], branch=on, **ON_IT)
        item = (await memory.view(subject, on)).items.get(done.item_id)
        if item is None:
            return "the item was removed in the meantime"
        return f"{short(item.id)} {quoted(item.text)}{'' if item.active else ' is forgotten'}"

    settled, taken_back = run_change(subject, work)
    say(f"Settled on {on}, {answer}: {settled}\n{taken_back}".rstrip("\n"))


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
        if not yes:
            _confirm(subject)
        size = _size(inspect_or_fault(stores.used, subject).history)
    done = run_on_storage(lambda storage: storage.memory.erase(subject))
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
