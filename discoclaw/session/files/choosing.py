"""Which files a prompt should have: those of the message, of the ones it points at, and a few older ones.

A file costs tokens in every prompt that has it. So an older one is taken only as long as its message is among
the last few, and the newest first. Pure.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from discoclaw.core.attached import FileRef
from discoclaw.core.message import Inbound, Said
from discoclaw.core.text import speaker

BACK: Final = 6
"""How many messages back a file may be that a prompt has without anybody pointing at it."""
OWN, REPLIED_TO, LINKED = "with this message", "with the replied-to message", "with a linked message"


@dataclass(frozen=True, slots=True)
class Wanted:
    """A file for a prompt: the message it came with, and how the prompt names that message.

    `older`: nobody points at it.
    """

    file: FileRef
    said: Said
    whence: str
    older: bool = False


def own(message: Inbound, said: Said, window: Sequence[Said]) -> list[Wanted]:
    """The files of a message, and then those of the message it replies to. `said` is the message itself.

    Of a message that is not in the window it isn't known whether a guest wrote it, so it counts as one.
    """
    # Several missed messages that are answered as one keep their files, each with the id of its own message.
    found = [Wanted(file, replace(said, id=file.message_id), OWN) for file in message.files]
    if (quoted := message.quoted) is None:
        return found
    known = next((one for one in window if one.id == quoted.id), replace(quoted, guest=True))
    return found + [Wanted(file, known, REPLIED_TO) for file in quoted.files]


def linked(messages: Iterable[Said]) -> list[Wanted]:
    """The files of messages that somebody links to, whoever wrote these."""
    return [Wanted(file, said, LINKED) for said in messages for file in said.files]


def older(window: Sequence[Said], may_use: Callable[[Said], bool], most: int) -> list[Wanted]:
    """Up to `most` files of the last messages of a window, the newest message's first.

    A guest's are not among them, nor our own.
    """
    found: list[Wanted] = []
    for ago, said in enumerate(reversed(window[-BACK:]), 1):
        if said.files and not (said.guest or said.by_us) and may_use(said):
            whence = f"from {speaker(said.name)}, {ago} message{'s' if ago > 1 else ''} ago"
            found += [Wanted(file, said, whence, older=True) for file in said.files]
    return list(_silent(found))[:most]


def without_doubles(wanted: Iterable[Wanted]) -> list[Wanted]:
    """Each file once, where it comes first; voice messages not at all, as their words are text already."""
    found: dict[tuple[str, str], Wanted] = {}
    for one in _silent(wanted):
        found.setdefault((one.file.message_id, one.file.id), one)
    return list(found.values())


def _silent(wanted: Iterable[Wanted]) -> Iterator[Wanted]:
    return (one for one in wanted if not one.file.voice)
