"""The files of a turn: which are wanted, how long a turn waits for them, and what the model is shown.

They are read while the turn is prepared. The message's own files, and those that it points at, are worth a
wait: they are what the person asks about. Older ones are there already, most of the time. What comes too
late goes on being read, and is there for the next turn.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Final, TypeAlias

from discoclaw.core.consent import Consent
from discoclaw.core.message import TOKENS_A_PAGE, Encoded, FileRef, Inbound, Said, TextFile, Unreadable
from discoclaw.core.model import SMALL_READS, Reads, Unseen, reads_usual
from discoclaw.core.ports import Linked
from discoclaw.core.text import speaker
from discoclaw.core.values import dataclass, replace
from discoclaw.prompt.assemble import Entry
from discoclaw.session.files.reading import BROKEN
from discoclaw.session.files.refused import refused
from discoclaw.session.files.shelf import Origin, Read, Shelf
from discoclaw.session.turn import Turn
from discoclaw.show.words import count

# ----------------------------------------------------------------------
# Which files a prompt should have: those of the message, of the ones it points at, and a few older ones.

Key: TypeAlias = tuple[str, str]
"""The ids of a message and of its file."""
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

    @property
    def key(self) -> Key:
        return self.file.message_id, self.file.id


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


def older(window: Sequence[Said], may_use: Callable[[Said], bool], most: int) -> list[Wanted]:
    """Up to `most` files of the last messages of a window, the newest message's first.

    A guest's are not among them, nor our own.
    """
    found: list[Wanted] = []
    for ago, said in enumerate(reversed(window[-BACK:]), 1):
        if said.files and not (said.guest or said.by_us) and may_use(said):
            whence = f"from {speaker(said.name)}, {ago} message{'s' if ago > 1 else ''} ago"
            found += [Wanted(file, said, whence, older=True) for file in said.files]
    return [one for one in found if not one.file.voice][:most]


def without_doubles(wanted: Iterable[Wanted]) -> list[Wanted]:
    """Each file once, where it comes first; voice messages not at all, as their words are text already."""
    found: dict[Key, Wanted] = {}
    for one in wanted:
        if not one.file.voice:
            found.setdefault(one.key, one)
    return list(found.values())


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
            # It has no room: by itself, or beside the others.
            pages, most = content.pages, max(1, room.tokens // TOKENS_A_PAGE)
            content = refused(
                wanted.file.name, TOO_MANY_PAGES.format(pages, most) if pages > most else TOO_MUCH
            )
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
    told = tuple(dict.fromkeys(said))
    if (left := len(told) - MOST_TOLD) > 1:  # of many files, only the first ones are named
        told = (*told[:MOST_TOLD], f"I couldn't read {left} more of the files either.")
    return Attached(tuple(entries), tuple(media), told)


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


def _fits(content: Encoded, wanted: Wanted, media: Sequence[Encoded], room: Room) -> bool:
    taken = [*content.parts, *media]
    tokens = sum(one.tokens for one in taken)
    older = sum(one.tokens for one in content.parts) + sum(one.tokens for one in media if one.older)
    size = sum(len(one.data) for one in taken)
    return size <= MOST_BYTES and tokens <= room.tokens and (not wanted.older or older <= room.older_tokens)


LINK: Final = "/channels/"
"""Part of every link to a message."""
MANY: Final = "wasn't read: I read {} files of one message. Please send it in another message."

Reading: TypeAlias = "asyncio.Task[Read] | Read"
Messages: TypeAlias = "Sequence[Said | Unreadable]"


@dataclass(frozen=True, slots=True)
class Bounds:
    """How many files of one message are read, and how many older ones a prompt has; 0 of each reads none.

    `reads` is how much each model reads at once. A reply waits up to `own_s` seconds for the files that its
    message has or points at, and up to `older_s` for older ones.
    """

    each: int = 5
    older: int = 4
    reads: Reads = reads_usual
    own_s: float = 10.0
    older_s: float = 2.0


@dataclass(frozen=True, slots=True)
class Begun:
    """Files that are read for a turn before the talk is known, until a time (s, of the event loop)."""

    until: float
    wanted: list[Wanted]
    reading: dict[Key, Reading]
    linked: "asyncio.Task[Messages] | None"


@dataclass(frozen=True, slots=True)
class Attachments:
    """The files of turns, read through `shelf`. `usable` says whether a message may still be used here."""

    shelf: Shelf
    linked: Linked
    consent: Consent
    bounds: Bounds
    usable: Callable[[Said, Turn], Awaitable[bool]]

    def begin(self, turn: Turn) -> Begun:
        """Begin to read the files of a message and of the one that it replies to. Nothing is waited for."""
        self.shelf.tidy()
        links = asyncio.create_task(self._messages(turn)) if LINK in turn.message.text else None
        wanted = self._of_message(turn)
        until = asyncio.get_running_loop().time() + self.bounds.own_s
        return Begun(until, wanted, self._read(self._bounded(wanted), turn), links)

    async def of(self, begun: Begun, turn: Turn, window: Sequence[Said]) -> tuple[Turn, Attached]:
        """The message with those that it links to, and the files for its prompt; `window` is the talk before.

        Waits for files, and raises nothing.
        """
        wanted, notices = begun.wanted, list[str]()
        if begun.linked is not None:
            left = begun.until - asyncio.get_running_loop().time()
            await asyncio.wait([begun.linked], timeout=max(0.0, left))
            found = begun.linked.result() if begun.linked.done() else []
            begun.linked.cancel()
            messages = tuple(one for one in found if isinstance(one, Said))
            notices = [one.why for one in found if isinstance(one, Unreadable)]
            turn = replace(turn, message=replace(turn.message, linked=messages))
            if self.bounds.each:
                wanted = wanted + [Wanted(file, said, LINKED) for said in messages for file in said.files]
        wanted = without_doubles(wanted + self._older(window))
        if not wanted:
            return turn, replace(NOTHING, notices=tuple(notices))
        beyond, taken = self._beyond(wanted), self._bounded(wanted)
        reading = begun.reading | self._read([one for one in taken if one.key not in begun.reading], turn)
        # For older files it does not wait as long as for others.
        now = asyncio.get_running_loop().time()
        for older, end in ((False, begun.until), (True, min(begun.until, now + self.bounds.older_s))):
            tasks = [reading.get(one.key) for one in taken if one.older == older]
            running = [one for one in tasks if isinstance(one, asyncio.Task)]
            if running:
                await asyncio.wait(running, timeout=max(0.0, end - asyncio.get_running_loop().time()))
        read = list[tuple[Wanted, Read | None]]()
        for one in taken:
            content = reading.get(one.key)
            if content is None or self.shelf.removed(one.file) or self._is_erased(one.said):
                continue  # taken back while others were waited for
            if not isinstance(content, asyncio.Task):
                read.append((one, content))
            elif not content.done():
                read.append((one, None))
            elif not content.cancelled():  # else its message was taken back while it was read
                broken = content.exception() is not None
                read.append((one, refused(one.file.name, BROKEN) if broken else content.result()))
        read += [(one, refused(one.file.name, beyond[one.key])) for one in wanted if one.key in beyond]
        return turn, arranged(read, Room.of(self.bounds.reads(turn.policy.model)), notices)

    def named(self, turn: Turn, window: Sequence[Said]) -> Attached:
        """The files that the prompt of a message would have. Nothing is read for that."""
        entries, numbers = list[Entry](), Counter[str]()
        for one in self._bounded(without_doubles(self._of_message(turn) + self._older(window))):
            kept, kind = self.shelf.look(one.file), claimed(one.file)
            if kept is not None:
                kind = kept.kind.capitalize() if isinstance(kept, Encoded) else "Text"
            numbers[kind] += 1
            entries.append(Entry(f"{kind} {numbers[kind]}", one.file.name, one.whence))
        return Attached(tuple(entries))

    def _of_message(self, turn: Turn) -> list[Wanted]:
        if not self.bounds.each:
            return []
        return without_doubles(own(turn.message, turn.said(), turn.window.recent()))

    def _older(self, window: Sequence[Said]) -> list[Wanted]:
        return older(window, self._may_keep, self.bounds.older) if self.bounds.each else []

    def _may_keep(self, said: Said) -> bool:
        """Whether what came with a message may be kept: not what guests send, who can't have it erased.

        Nor what we sent, which may have others' words.
        """
        return not (said.guest or said.by_us) and self.consent.may_keep(said.author_id, said.sent_at)

    def _bounded(self, wanted: Sequence[Wanted]) -> list[Wanted]:
        """The files that are worth a download."""
        beyond = self._beyond(wanted)
        return [one for one in wanted if one.key not in beyond]

    def _beyond(self, wanted: Iterable[Wanted]) -> dict[Key, str]:
        """The others, and why: each message has its first files read, and documents only while there is room.

        A request has room for one or two of the largest; all others would be read for nothing.
        """
        count, size, found = Counter[str](), 0, dict[Key, str]()
        for one in wanted:
            count[one.file.message_id] += 1
            needs = one.file.size if claimed(one.file) == "Document" else 0
            if count[one.file.message_id] > self.bounds.each:
                found[one.key] = MANY.format(self.bounds.each)
            elif size + needs > MOST_BYTES * 3 // 4:  # they grow by a third in base64
                found[one.key] = TOO_MUCH
            else:
                size += needs
        return found

    def _read(self, wanted: Iterable[Wanted], turn: Turn) -> dict[Key, Reading]:
        """Begin to read these files, without those that may not be read or are gone."""
        found: dict[Key, Reading] = {}
        for one in wanted:
            said, kept = one.said, self.shelf.look(one.file)
            if kept is not None:
                found[one.key] = kept
                continue
            if self._is_erased(said) or (one.older and self.shelf.failed(one.file)):
                continue
            origin = Origin(said, turn.place.hidden)
            if (task := self.shelf.read(one.file, origin, keep=self._may_keep(said))) is not None:
                found[one.key] = task
        return found

    def _is_erased(self, said: Said) -> bool:
        return self.consent.ask(said.author_id, said.sent_at).erased

    async def _messages(self, turn: Turn) -> Messages:
        """The linked messages that may still be used."""
        found = await self.linked.messages(turn.message)
        return [one for one in found if isinstance(one, Unreadable) or await self.usable(one, turn)]
