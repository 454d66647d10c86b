"""`discoclaw memory`, the verbs that change a memory: branches, merges, undoing, items, settling, erasing.

They lock the data folder, so they are refused while the bot runs; in Discord, `!memory …` has the same verbs.
What they record counts as stated by the person, and is marked as made by "cli".
"""

import sys
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, replace
from typing import Annotated, Any, Final, Literal

import typer

from discoclaw import settings as settings_module
from discoclaw.cli.common import (
    CHANGE_PANEL,
    CLI_AUTHOR,
    CLI_ORIGIN,
    IMPORT_PANEL,
    ITEM,
    AsJson,
    ItemArg,
    OnBranch,
    OnlyBranch,
    RecordArg,
    Shown,
    SubjectArg,
    change_json,
    existing_subject,
    inspect_or_fault,
    inspect_subject,
    item_json,
    item_named,
    no_memory_text,
    print_shown,
    run_change,
    run_on_storage,
    say,
    say_json,
    storage_of,
    stores_of,
    with_options,
    without_secrets,
)
from discoclaw.core.draft import RESOLUTIONS, Draft
from discoclaw.core.errors import MemoryFault, Refused
from discoclaw.core.history import History
from discoclaw.core.item import Facets
from discoclaw.core.merge import MergeResult
from discoclaw.core.profile import Part, key_of
from discoclaw.core.purge import ON_RELAYS
from discoclaw.core.subject import group_of, user_of
from discoclaw.core.view import Conflict, View
from discoclaw.memory.people.groups import KINDS
from discoclaw.memory.subjects import verbs
from discoclaw.memory.subjects.inspect import recorded, subject_named
from discoclaw.memory.subjects.store import Memory
from discoclaw.show import text
from discoclaw.show.words import count, memories, quoted, short, word
from discoclaw.storage import Storage

commands = typer.Typer()
Commit = Annotated[str, typer.Argument(help="A commit: its id, the first digits of it, or HEAD~2.")]
Verb = Callable[..., Awaitable[Shown]]


def changes(name: str | None = None, *, json: bool = False) -> Callable[[Verb], Verb]:
    """Make a verb that changes one subject's memory a command. It takes the memory and the subject.

    What the change took back is told below what the verb says. With `json` the command takes --json.
    """

    def made(verb: Verb) -> Verb:
        def command(who: str, as_json: bool = False, **options: Any) -> None:
            subject = existing_subject(who)
            shown, taken_back = run_change(subject, lambda storage: verb(storage.memory, subject, **options))
            told = f"{shown.people}\n{taken_back}".rstrip("\n")
            print_shown(replace(shown, people=told), as_json)

        commands.command(name, rich_help_panel=CHANGE_PANEL)(
            with_options(command, verb, 2, SubjectArg, json=json)
        )
        return verb

    return made


# ---------------------------------------------------------------------- branches


@changes()
async def checkout(
    memory: Memory, subject: str, branch: Annotated[str, typer.Argument(help="The branch to switch to.")]
) -> Shown:
    """Switch to another branch (persona). What is learned from then on is stored there.

    Example: discoclaw memory checkout 123456789012345678 coding
    """
    before = (await memory.branches(subject)).current
    now = (await verbs.switch(memory, subject, branch, by=CLI_AUTHOR)).current
    return Shown(None, f"{subject} is {'already' if before == now else 'now'} on {now}.")


@changes("create-branch")
async def create_branch(
    memory: Memory,
    subject: str,
    name: Annotated[str, typer.Argument(help="Up to 32 letters, digits, - and _.")],
    persona: Annotated[
        str, typer.Option("--persona", help="What this persona is about, in a sentence.")
    ] = "",
    start: Annotated[
        str | None, typer.Option("--from", help="Start at this branch, not the current one.")
    ] = None,
) -> Shown:
    """Create a branch (persona). It starts with what is remembered now, and then develops separately.

    Example: discoclaw memory create-branch 123456789012345678 coding --persona "Terse; talks about code."
    """
    clean = without_secrets(persona)
    there = await verbs.create_branch(memory, subject, name, clean, start=start, by=CLI_AUTHOR)
    made = there.named(name).name
    switch = f"`discoclaw memory checkout {subject} {made}`"
    return Shown(None, f"Created the branch {made}. Switch to it with {switch}.")


@changes("delete-branch")
async def delete_branch(
    memory: Memory, subject: str, name: Annotated[str, typer.Argument(help="The branch to delete.")]
) -> Shown:
    """Delete a branch. Its commits stay in the history. main and the current branch can't be deleted.

    Example: discoclaw memory delete-branch 123456789012345678 coding
    """
    gone = (await memory.branches(subject)).named(name)
    await verbs.delete_branch(memory, subject, name, by=CLI_AUTHOR)
    at = f", which was at {gone.head}" if gone.head is not None else ""
    return Shown(None, f"Deleted {gone.name}{at}.")


# ---------------------------------------------------------------------- merging and undoing

ON_IT: Final[Mapping[str, Any]] = {"origin": CLI_ORIGIN, "by": CLI_AUTHOR}
"""Who makes a change from here."""


@changes(json=True)
async def merge(
    memory: Memory,
    subject: str,
    source: Annotated[str, typer.Argument(help="The branch to merge.")],
    into: Annotated[
        str | None, typer.Option("--into", help="Merge into this branch, not the current one.")
    ] = None,
) -> Shown:
    """Bring another branch's changes into the current one.

    An item that both changed differently stays as it is here, and a question is left for `settle`.

    Example: discoclaw memory merge 123456789012345678 coding --into main
    """
    return _brought(subject, await verbs.merge(memory, subject, source, branch=into, **ON_IT))


@changes("cherry-pick", json=True)
async def cherry_pick(
    memory: Memory,
    subject: str,
    commit: Commit,
    onto: Annotated[
        str | None, typer.Option("--onto", help="Apply them to this branch, not the current one.")
    ] = None,
) -> Shown:
    """Apply the changes of one commit of another branch.

    Example: discoclaw memory cherry-pick 123456789012345678 c5230d5b --onto main
    """
    return _brought(subject, await verbs.cherry_pick(memory, subject, commit, branch=onto, **ON_IT))


@changes(json=True)
async def revert(memory: Memory, subject: str, commit: Commit, branch: OnBranch = None) -> Shown:
    """Undo the changes of one commit, by a new commit. What was changed again since then stays.

    Example: discoclaw memory revert 123456789012345678 c5230d5b
    """
    return _brought(subject, await verbs.revert(memory, subject, commit, branch=branch, **ON_IT))


@changes(json=True)
async def undo(memory: Memory, subject: str, branch: OnBranch = None) -> Shown:
    """Undo the last change that hasn't been undone yet. Repeat it to go further back.

    Example: discoclaw memory undo 123456789012345678
    """
    return _brought(subject, await verbs.undo(memory, subject, branch=branch, **ON_IT))


@changes(json=True)
async def restore(memory: Memory, subject: str, commit: Commit, branch: OnBranch = None) -> Shown:
    """Return the memory to its state at a commit, by a new commit.

    Example: discoclaw memory restore 123456789012345678 HEAD~5
    """
    return _brought(subject, await verbs.restore(memory, subject, commit, branch=branch, **ON_IT))


def _brought(subject: str, done: MergeResult) -> Shown:
    """What a merge or one of its kin did. An event of it may leave a question for the person."""
    commit = done.commit
    noted = [event.ext.get("conflict") for event in commit.events] if commit is not None else []
    asks = any(one is not None and "settled" not in one for one in noted)
    value = {
        "commit": commit.id if commit is not None else None,
        "branch": commit.branch if commit is not None else None,
        "message": commit.message if commit is not None else None,
        "changes": [change_json(one) for one in done.changes],
        "clashes": [
            {
                "ours": item_json(clash.ours) if clash.ours is not None else None,
                "theirs": item_json(clash.theirs) if clash.theirs is not None else None,
            }
            for clash in done.clashes
        ],
    }
    then = f"List the open questions with `discoclaw memory settle {subject}`." if asks else ""
    return Shown(value, text.brought(done), then)


# ---------------------------------------------------------------------- one item


@changes()
async def edit(
    memory: Memory,
    subject: str,
    item: ItemArg,
    words: Annotated[str, typer.Argument(metavar="TEXT", help="The new text.")],
    branch: OnBranch = None,
) -> Shown:
    """Change the text of an item, which keeps its id and its history.

    Example: discoclaw memory edit 123456789012345678 3720777d "Prefers spaces over tabs."
    """
    clean, on = without_secrets(words), await _branch(memory, subject, branch)
    again = _again("edit", subject, branch, clean)
    before, after = await verbs.edit(
        memory,
        subject,
        lambda draft: item_named(draft.items.values(), item, again),
        clean,
        branch=on,
        **ON_IT,
    )
    was = quoted(before.text) if before.active else f"{quoted(before.text)} (forgotten)"
    nothing = "" if before != after else "nothing changed: "
    return Shown(None, f"{nothing}{short(after.id)} {was} → {quoted(after.text)}")


@changes()
async def forget(memory: Memory, subject: str, item: ItemArg, branch: OnBranch = None) -> Shown:
    """Forget an item. It stays in the history, and `undo` restores it.

    Example: discoclaw memory forget 123456789012345678 3720777d
    """
    on, again = await _branch(memory, subject, branch), _again("forget", subject, branch)

    def make(draft: Draft) -> str:
        found = item_named([one for one in draft.items.values() if one.active], item, again)
        draft.deprecate(found, CLI_ORIGIN)
        return f"Forgotten: {short(found.id)} {quoted(found.text)}"

    return Shown(None, await memory.change(subject, "forgotten by an admin", make, branch=on, by=CLI_AUTHOR))


async def _branch(memory: Memory, subject: str, named: str | None) -> str | None:
    return (await memory.branches(subject)).named(named).name if named is not None else None


def _again(verb: str, subject: str, branch: str | None, *more: str) -> list[str]:
    """The words of a command, with a gap for the item."""
    who = user_of(subject) or subject
    return ["discoclaw", "memory", verb, who, ITEM, *more, *(["--branch", branch] if branch else [])]


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
