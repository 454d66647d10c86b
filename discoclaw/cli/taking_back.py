"""Changes that may take something back: what was taken back is removed from everywhere, and that is told.

Beside every such change in `change`, this is `discoclaw memory forget`.
"""

from collections.abc import Awaitable, Callable
from typing import Annotated, TypeVar

import typer

from discoclaw.cli.common import (
    CHANGE_PANEL,
    CLI_AUTHOR,
    CLI_ORIGIN,
    OnBranch,
    SubjectArg,
    existing_subject,
    run_on_storage,
    say,
)
from discoclaw.cli.naming import ITEM, item_named
from discoclaw.core.draft import Draft
from discoclaw.memory.subjects.store import Memory
from discoclaw.show.withdrawn import Reader, withdrawn
from discoclaw.show.words import quoted, short
from discoclaw.storage import Storage
from discoclaw.store.files import in_thread

T = TypeVar("T")
commands = typer.Typer()


def run_change(subject: str, work: Callable[[Memory], Awaitable[T]]) -> tuple[T, str]:
    """Run a change of one subject, with the folder locked. Returns what it returns, and what it took back.

    The second is one or more lines, or "". Raises FolderInUse while the bot runs, and whatever `work` raises.
    """

    async def done(storage: Storage) -> tuple[T, str]:
        await in_thread(storage.load)  # who opted out
        with storage.withdrawals.watched(subject) as watch:
            result = await work(storage.memory)
            report = await storage.withdrawals.report(watch)
        return result, withdrawn(report, _admin(subject))

    return run_on_storage(done)


def _admin(subject: str) -> Reader:
    """The reader in a terminal, who sees every conversation by its key."""

    def forget(branch: str, item: str) -> str:
        return f"`discoclaw memory forget {subject} {item} --branch {branch}`"

    return Reader(name=lambda session: session, persona="branch", forget=forget)


@commands.command(rich_help_panel=CHANGE_PANEL)
def forget(
    who: SubjectArg,
    item: Annotated[
        str, typer.Argument(help="An item: its id, the first digits of it, or 60 % of its text.")
    ],
    branch: OnBranch = None,
) -> None:
    """Forget an item. It stays in the history, and `undo` restores it.

    Example: discoclaw memory forget 123456789012345678 3720777d
    """
    subject, on_branch = existing_subject(who), ["--branch", branch] if branch is not None else []

    def make(draft: Draft) -> str:
        items = [one for one in draft.items.values() if one.active]
        found = item_named(items, item, ["discoclaw", "memory", "forget", who, ITEM, *on_branch])
        draft.deprecate(found, CLI_ORIGIN)
        return f"Forgotten: {short(found.id)} {quoted(found.text)}"

    async def work(memory: Memory) -> str:
        on = (await memory.branches(subject)).named(branch).name if branch is not None else None
        return await memory.change(subject, "forgotten by an admin", make, branch=on, by=CLI_AUTHOR)

    done, taken_back = run_change(subject, work)
    say(f"{done}\n{taken_back}".rstrip("\n"))
