"""`discoclaw memory`, the commands that change a memory: branches, merges, undoing, edits, settling.

They lock the data folder, so they are refused while the bot runs; in Discord, `!memory …` has the same verbs.
What they record counts as stated by the person, and is marked as made by "cli".
"""

from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass
from typing import Annotated, Any, Literal

import typer

from discoclaw.cli.common import (
    CHANGE_PANEL,
    CLI_AUTHOR,
    CLI_ORIGIN,
    AsJson,
    OnBranch,
    SubjectArg,
    existing_subject,
    inspect_subject,
    item_json,
    run_locked,
    say,
    say_json,
    without_secrets,
)
from discoclaw.cli.naming import ITEM, item_named
from discoclaw.cli.taking_back import run_change
from discoclaw.core.compare import ItemChange
from discoclaw.core.draft import RESOLUTIONS
from discoclaw.core.errors import Refused
from discoclaw.core.event import Event
from discoclaw.core.history import Branches, History
from discoclaw.core.merge import MergeResult
from discoclaw.core.view import Conflict, View
from discoclaw.memory.subjects import verbs
from discoclaw.memory.subjects.store import Memory
from discoclaw.show import text
from discoclaw.show.words import quoted, short, word

commands = typer.Typer()
Commit = Annotated[str, typer.Argument(help="A commit: its id, the first digits of it, or HEAD~2.")]


# ---------------------------------------------------------------------- branches


@commands.command(rich_help_panel=CHANGE_PANEL)
def checkout(
    who: SubjectArg, branch: Annotated[str, typer.Argument(help="The branch to switch to.")]
) -> None:
    """Switch to another branch (persona). What is learned from then on is stored there.

    Example: discoclaw memory checkout 123456789012345678 coding
    """
    subject = existing_subject(who)

    async def work(memory: Memory) -> tuple[str, Branches]:
        before = (await memory.branches(subject)).current
        return before, await verbs.switch(memory, subject, branch, by=CLI_AUTHOR)

    before, there = run_locked(work)
    say(f"{subject} is {'already' if before == there.current else 'now'} on {there.current}.")


@commands.command("create-branch", rich_help_panel=CHANGE_PANEL)
def create_branch(
    who: SubjectArg,
    name: Annotated[str, typer.Argument(help="Up to 32 letters, digits, - and _.")],
    persona: Annotated[
        str, typer.Option("--persona", help="What this persona is about, in a sentence.")
    ] = "",
    start: Annotated[
        str | None, typer.Option("--from", help="Start at this branch, not the current one.")
    ] = None,
) -> None:
    """Create a branch (persona). It starts with what is remembered now, and then develops separately.

    Example: discoclaw memory create-branch 123456789012345678 coding --persona "Terse; talks about code."
    """
    subject, clean = existing_subject(who), without_secrets(persona)
    there = run_locked(
        lambda memory: verbs.create_branch(memory, subject, name, clean, start=start, by=CLI_AUTHOR)
    )
    made = there.named(name).name
    say(f"Created the branch {made}. Switch to it with `discoclaw memory checkout {subject} {made}`.")


@commands.command("delete-branch", rich_help_panel=CHANGE_PANEL)
def delete_branch(
    who: SubjectArg, name: Annotated[str, typer.Argument(help="The branch to delete.")]
) -> None:
    """Delete a branch. Its commits stay in the history. main and the current branch can't be deleted.

    Example: discoclaw memory delete-branch 123456789012345678 coding
    """
    subject = existing_subject(who)

    async def work(memory: Memory) -> str:
        gone = (await memory.branches(subject)).named(name)
        await verbs.delete_branch(memory, subject, name, by=CLI_AUTHOR)
        return f"Deleted {gone.name}" + (f", which was at {gone.head}" if gone.head is not None else "")

    say(f"{run_locked(work)}.")


# ---------------------------------------------------------------------- merging and undoing


@commands.command(rich_help_panel=CHANGE_PANEL)
def merge(
    who: SubjectArg,
    source: Annotated[str, typer.Argument(help="The branch to merge.")],
    into: Annotated[
        str | None, typer.Option("--into", help="Merge into this branch, not the current one.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Bring another branch's changes into the current one.

    An item that both changed differently stays as it is here, and a question is left for `settle`.

    Example: discoclaw memory merge 123456789012345678 coding --into main
    """
    _bring(who, lambda m, s: verbs.merge(m, s, source, CLI_ORIGIN, branch=into, by=CLI_AUTHOR), as_json)


@commands.command("cherry-pick", rich_help_panel=CHANGE_PANEL)
def cherry_pick(
    who: SubjectArg,
    commit: Commit,
    onto: Annotated[
        str | None, typer.Option("--onto", help="Apply them to this branch, not the current one.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Apply the changes of one commit of another branch.

    Example: discoclaw memory cherry-pick 123456789012345678 c5230d5b --onto main
    """
    _bring(who, lambda m, s: verbs.cherry_pick(m, s, commit, CLI_ORIGIN, branch=onto, by=CLI_AUTHOR), as_json)


@commands.command(rich_help_panel=CHANGE_PANEL)
def revert(who: SubjectArg, commit: Commit, branch: OnBranch = None, as_json: AsJson = False) -> None:
    """Undo the changes of one commit, by a new commit. What was changed again since then stays.

    Example: discoclaw memory revert 123456789012345678 c5230d5b
    """
    _bring(who, lambda m, s: verbs.revert(m, s, commit, CLI_ORIGIN, branch=branch, by=CLI_AUTHOR), as_json)


@commands.command(rich_help_panel=CHANGE_PANEL)
def undo(who: SubjectArg, branch: OnBranch = None, as_json: AsJson = False) -> None:
    """Undo the last change that hasn't been undone yet. Repeat it to go further back.

    Example: discoclaw memory undo 123456789012345678
    """
    _bring(who, lambda m, s: verbs.undo(m, s, CLI_ORIGIN, branch=branch, by=CLI_AUTHOR), as_json)


@commands.command(rich_help_panel=CHANGE_PANEL)
def restore(who: SubjectArg, commit: Commit, branch: OnBranch = None, as_json: AsJson = False) -> None:
    """Return the memory to its state at a commit, by a new commit.

    Example: discoclaw memory restore 123456789012345678 HEAD~5
    """
    _bring(who, lambda m, s: verbs.restore(m, s, commit, CLI_ORIGIN, branch=branch, by=CLI_AUTHOR), as_json)


def _bring(who: str, verb: Callable[[Memory, str], Awaitable[MergeResult]], as_json: bool) -> None:
    subject = existing_subject(who)
    done, taken_back = run_change(subject, lambda memory: verb(memory, subject))
    if as_json:
        say_json(_brought_json(done))
    else:
        say(f"{text.brought(done)}\n{taken_back}".rstrip("\n"))
        if done.commit is not None and any(map(_asks, done.commit.events)):
            say(f"List the open questions with `discoclaw memory settle {subject}`.")


def _asks(event: Event) -> bool:
    """Whether an event leaves a question for the person."""
    noted = event.ext.get("conflict")
    return noted is not None and "settled" not in noted


def change_json(change: ItemChange) -> dict[str, Any]:
    """One change of an item, as JSON."""
    return {
        "kind": change.kind,
        "id": change.item.id,
        "before": item_json(change.before) if change.before is not None else None,
        "after": item_json(change.after) if change.after is not None else None,
    }


def _brought_json(done: MergeResult) -> dict[str, Any]:
    return {
        "commit": done.commit.id if done.commit is not None else None,
        "branch": done.commit.branch if done.commit is not None else None,
        "message": done.commit.message if done.commit is not None else None,
        "changes": [change_json(one) for one in done.changes],
        "clashes": [
            {
                "ours": item_json(clash.ours) if clash.ours is not None else None,
                "theirs": item_json(clash.theirs) if clash.theirs is not None else None,
            }
            for clash in done.clashes
        ],
    }


# ---------------------------------------------------------------------- one item


@commands.command(rich_help_panel=CHANGE_PANEL)
def edit(
    who: SubjectArg,
    item: Annotated[
        str, typer.Argument(help="An item: its id, the first digits of it, or 60 % of its text.")
    ],
    words: Annotated[str, typer.Argument(metavar="TEXT", help="The new text.")],
    branch: OnBranch = None,
) -> None:
    """Change the text of an item, which keeps its id and its history.

    Example: discoclaw memory edit 123456789012345678 3720777d "Prefers spaces over tabs."
    """
    subject, clean = existing_subject(who), without_secrets(words)
    again = ["discoclaw", "memory", "edit", who, ITEM, clean, *(["--branch", branch] if branch else [])]

    async def work(memory: Memory) -> tuple[str, str]:
        on = (await memory.branches(subject)).named(branch).name if branch is not None else None
        before, after = await verbs.edit(
            memory,
            subject,
            lambda draft: item_named(draft.items.values(), item, again),
            clean,
            CLI_ORIGIN,
            branch=on,
            by=CLI_AUTHOR,
        )
        was = quoted(before.text) if before.active else f"{quoted(before.text)} (forgotten)"
        return (
            f"{short(after.id)} {was} → {quoted(after.text)}",
            "" if before != after else "nothing changed: ",
        )

    (change, nothing), taken_back = run_change(subject, work)
    say(f"{nothing}{change}\n{taken_back}".rstrip("\n"))


Answer = Literal["keep", "new", "both"]
_HOW = dict(zip(("keep", "new", "both"), RESOLUTIONS, strict=True))


@commands.command(rich_help_panel=CHANGE_PANEL)
def settle(
    who: SubjectArg,
    conflict: Annotated[
        str | None, typer.Argument(metavar="QUESTION", help="The question's id, as the list shows it.")
    ] = None,
    answer: Annotated[Answer | None, typer.Argument(metavar="keep|new|both", help="What is right.")] = None,
    branch: Annotated[
        str | None, typer.Option("--branch", help="Look only at this branch, not all of them.")
    ] = None,
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
    open_ = _open(one.history, branch)
    if conflict is None or answer is None:
        _list(one.subject, open_, as_json)
        return
    subject, asked = existing_subject(who), _named(open_, conflict)
    how = _HOW[answer]  # the words people type, for those of the core

    async def work(memory: Memory) -> str:
        done = await verbs.settle(
            memory, subject, asked.conflict.event_id, how, CLI_ORIGIN, branch=asked.branch, by=CLI_AUTHOR
        )
        item = (await memory.view(subject, asked.branch)).items.get(done.item_id)
        if item is None:
            return "the item was removed in the meantime"
        return f"{short(item.id)} {quoted(item.text)}{'' if item.active else ' is forgotten'}"

    done, taken_back = run_change(subject, work)
    say(f"Settled on {asked.branch}, {answer}: {done}\n{taken_back}".rstrip("\n"))


@dataclass(frozen=True, slots=True)
class _Asked:
    """A question, and the branch on which it is open."""

    branch: str
    view: View
    conflict: Conflict


def _open(history: History, branch: str | None) -> list[_Asked]:
    """The open questions, those of the current branch first. One that is open on several comes once."""
    there = history.branches
    names = [there.named(branch).name] if branch is not None else [there.current, *there.all]
    found: dict[str, _Asked] = {}
    for name in names:
        view = history.view(there.all[name].head)
        for conflict in view.conflicts:
            found.setdefault(conflict.event_id, _Asked(name, view, conflict))
    return list(found.values())


def _list(subject: str, open_: list[_Asked], as_json: bool) -> None:
    if as_json:
        say_json([asdict(asked.conflict) | {"branch": asked.branch} for asked in open_])
        return
    for asked in open_:
        words = text.conflict(asked.view, asked.conflict)
        say(f"{asked.conflict.event_id} [{word(asked.branch)}] {words}")
    if open_:
        first = open_[0].conflict.event_id[:8]
        say(f"\nAnswer one with `discoclaw memory settle {subject} {first} keep|new|both`.")
    else:
        say("There are no open questions.")


def _named(open_: list[_Asked], wanted: str) -> _Asked:
    """The question that is named by its id or the first digits of it. Raises Refused if it is not one."""
    prefix = wanted.strip().lower()
    found = [asked for asked in open_ if prefix and asked.conflict.event_id.startswith(prefix)]
    if len(found) == 1:
        return found[0]
    there = "; ".join(
        f"{asked.conflict.event_id} {text.conflict(asked.view, asked.conflict)}" for asked in found or open_
    )
    if found:
        raise Refused(f"{len(found)} questions begin with {quoted(wanted, 60)}; give more digits: {there}")
    raise Refused(
        f"no question has the id {quoted(wanted, 60)}; {f'open: {there}' if open_ else 'none is open'}"
    )
