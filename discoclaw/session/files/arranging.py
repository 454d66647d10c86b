"""Arranges the files that were read for a prompt: a name for each, within the room of a request. Pure."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from discoclaw.core.attached import TOKENS_A_PAGE, Encoded, FileRef, TextFile, Unreadable
from discoclaw.core.message import Inbound, Said
from discoclaw.core.model import SMALL_READS, Unseen
from discoclaw.core.text import speaker
from discoclaw.core.values import dataclass, replace
from discoclaw.prompt.assemble import Entry
from discoclaw.session.files.refused import refused
from discoclaw.session.files.shelf import Read
from discoclaw.show.words import count

# ----------------------------------------------------------------------
# Which files a prompt should have: those of the message, of the ones it points at, and a few older ones.

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


MOST_BYTES: Final = 24_000_000
"""The most that all pictures and documents of a request take in base64. The API takes 32 MB in all."""
MOST_TOLD: Final = 5
LATE: Final = "took too long to load, so I answered without it. Please ask again in a moment."
TOO_MUCH: Final = "is more than I can show the model at once. Please send it by itself, or less of it."
TOO_MANY_PAGES: Final = "has {} pages; I can show the model about {} at once. Please send those that matter."


@dataclass(frozen=True, slots=True)
class Room:
    """The room for the media of a prompt: tokens of all, and of those that nobody points at."""

    tokens: int = 64_000
    older_tokens: int = 8_000

    @classmethod
    def of(cls, reads: int) -> "Room":
        """The room in what a model reads at once; of little, the text needs more."""
        return cls(reads // 4 if reads < SMALL_READS else reads * 3 // 4)


@dataclass(frozen=True, slots=True)
class Attached:
    """The files of a prompt: what the model is told and shown of them, and what the person is told."""

    entries: tuple[Entry, ...] = ()
    media: tuple[Encoded, ...] = ()
    notices: tuple[str, ...] = ()

    @property
    def kinds(self) -> Counter[str]:
        """How many of each kind were read: "picture", "document", "text file"."""
        words = {"Picture": "picture", "Document": "document", "Text": "text file"}
        return Counter(words[one.label.partition(" ")[0]] for one in self.entries if one.label)


NOTHING: Final = Attached()


def arranged(read: Iterable[tuple[Wanted, Read | None]], room: Room, notices: Iterable[str] = ()) -> Attached:
    """The files that fit, in their order. None stands for one that came too late."""
    entries: list[Entry] = []
    media: list[Encoded] = []
    said: list[str] = [*notices]
    numbers = Counter[str]()
    for wanted, content in read:
        if isinstance(content, Encoded) and not _fits(content, wanted, media, room):
            content = refused(wanted.file.name, _too_much(content, room))
        if content is None:
            content = refused(wanted.file.name, LATE)
        if isinstance(content, Unreadable):
            if not wanted.older:  # nobody asked about an older one
                entries.append(Entry("", wanted.file.name, wanted.whence))
                said.append(content.why)
            continue
        kind = content.kind.capitalize() if isinstance(content, Encoded) else "Text"
        numbers[kind] += 1
        label = f"{kind} {numbers[kind]}"
        if content.note and not wanted.older:
            said.append(refused(wanted.file.name, content.note).why)
        entry = Entry(label, wanted.file.name, wanted.whence, older=wanted.older)
        if isinstance(content, TextFile):
            entries.append(replace(entry, text=content.text, cut=content.cut, end=content.end))
            continue
        parts = content.parts
        about = count(content.pages, "page") if content.pages else ""
        if len(parts) > 1:
            about = f"{len(parts)} parts of one picture, in their order"
        entries.append(replace(entry, about=about))
        for number, part in enumerate(parts, 1):
            name = f"{label}, part {number} of {len(parts)}" if len(parts) > 1 else label
            media.append(replace(part, label=name, older=wanted.older, note=""))
    return Attached(tuple(entries), tuple(media), _told(said))


def _told(said: Iterable[str]) -> tuple[str, ...]:
    """The lines for the person: of many files, only the first ones are named."""
    each = tuple(dict.fromkeys(said))
    left = len(each) - MOST_TOLD
    return each if left <= 1 else (*each[:MOST_TOLD], f"I couldn't read {left} more of the files either.")


def named(wanted: Iterable[tuple[Wanted, str]]) -> Attached:
    """The files that a prompt would have, by what they claim to be; nothing of them is read."""
    entries: list[Entry] = []
    numbers = Counter[str]()
    for one, kind in wanted:
        numbers[kind] += 1
        entries.append(Entry(f"{kind} {numbers[kind]}", one.file.name, one.whence))
    return Attached(tuple(entries))


def claimed(file: FileRef) -> str:
    """The kind of file that it claims to be."""
    if file.type.startswith("image/"):
        return "Picture"
    return "Document" if file.type == "application/pdf" else "Text"


def partly(entries: Iterable[Entry]) -> list[str]:
    """Lines about text files that are not in the prompt as a whole, if the person pointed at them."""
    return [
        f"I read only the first {len(one.text):,} and the last {len(one.end):,} characters of "
        f"{refused(one.name, '').why.strip()}."
        if one.text
        else f"There was no room for the text of {refused(one.name, '').why.strip()}, so I didn't read it."
        for one in entries
        if one.cut and not one.older
    ]


def unseen(gone: Sequence[Unseen]) -> list[str]:
    """Lines about files that the model was not given, if the person pointed at them."""
    told: list[str] = []
    for one in gone:
        if one.media.older:
            continue
        what = f"{one.media.kind}s" if one.media.kind == "picture" else "PDF files"
        name = refused(one.media.name, "").why.strip()
        told.append(
            {
                "blind": f"The model I use here can't look at {what}, so I answered without {name}.",
                "refused": f"The model didn't accept {name}, so I answered without it.",
                "too large": f"{name} is more than the model takes at once, so I answered without it.",
            }[one.why]
        )
    return list(dict.fromkeys(told))  # a picture may have several parts


def _too_much(content: Encoded, room: Room) -> str:
    """Why a file has no room: by itself, or beside the others."""
    pages = max(1, room.tokens // TOKENS_A_PAGE)
    return TOO_MANY_PAGES.format(content.pages, pages) if content.pages > pages else TOO_MUCH


def _fits(content: Encoded, wanted: Wanted, media: Sequence[Encoded], room: Room) -> bool:
    taken = [*content.parts, *media]
    tokens = sum(one.tokens for one in taken)
    older = sum(one.tokens for one in content.parts) + sum(one.tokens for one in media if one.older)
    size = sum(len(one.data) for one in taken)
    return size <= MOST_BYTES and tokens <= room.tokens and (not wanted.older or older <= room.older_tokens)
