"""Looks through everything on disk for what should not be there any more, without changing anything.

What people took back, made private or never wanted kept is known from their histories and choices. Each part
lists what it stores (`Derived.audit`), and whoever it names is looked up. All folders of the store are
looked at for the ids of people who were erased. Files that no part lists are looked at too: copies that were
kept aside, what killed writers left, exports. Blocking.
"""

import hashlib
import re
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from discoclaw.core.errors import faulting
from discoclaw.core.message import Said
from discoclaw.core.purge import Purge, Readable, terms_of
from discoclaw.core.subject import person_of, user_of, user_subject
from discoclaw.memory.erasing.store_files import STAY, Registry
from discoclaw.memory.erasing.tombstones import Tombstones
from discoclaw.memory.kept import JSON
from discoclaw.memory.people import choices
from discoclaw.memory.subjects.inspect import held, subjects
from discoclaw.store.port import CURSORS, DURABLE, LEDGERS, PROFILES, ROLLING, TOOLS, USAGE, Disk, is_log

Why = Literal["taken back", "private", "opted out", "erased"]


@dataclass(frozen=True, slots=True)
class Known:
    """Facts about a person: what they took back, whether they opted out, when (ms) they were erased.

    `sessions` are the conversations (keys) with their words. `texts` are what they still have remembered, on
    any persona, and `terms` are the terms of these.
    """

    subject: str
    purges: tuple[Purge, ...] = ()
    sessions: frozenset[str] = frozenset()
    opted_out: bool = False
    erased_at: int = -1
    texts: frozenset[str] = frozenset()
    terms: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that should not be readable: in which part, where, about whom, why, and how often."""

    part: str
    place: str
    subject: str
    why: Why
    count: int = 1


BESIDE = "other files"
"""The heading of findings in files that belong to no part."""
MOST_BYTES = 50_000_000
"""Larger files are not read: no copy of ours is as large."""
_USER = re.compile(r"(?<![0-9A-Za-z])\d{15,20}(?![0-9A-Za-z])")
_OURS = re.compile(
    r"memory/(ledger|durable|erasing)/.*|memory/\.?[a-z]+(\.jsonl|\.key|\.sqlite(-wal|-shm)?)?|memory/choices\.json"
    r"|memory/outbox/outbox\.sqlite(-wal|-shm)?|memory/(cursors|profiles|groups|rolling)/[^.][^/]*\.json"
    r"|memory/(tools|answers)/[^.][^/]*\.jsonl|cache/views/.*|cache/responses/[^.][^/]*\.json"
    r"|cache/vectors\.sqlite(-wal|-shm)?|nostr/.*|live\.json"
)
"""Files that are looked at in another way, a person's own history with its copies, and what has nobody's
words. What a part lists belongs here without being named."""
_BY_WORDS = {LEDGERS, DURABLE, PROFILES, ROLLING, TOOLS, USAGE}
"""Folders in whose texts ids may stay, or are no ids of people; their names are looked at all the same."""
_MAY_NAME = {"transparency.json"}
"""Cursors that name people until a step elsewhere is done."""
_CHOSEN = "withdrawn-{}.json"
"""The cursor that says of somebody who opted out, as `choices.json` does, that this was followed."""


class Audit:
    """Knows what should not be readable, at one moment. Creating it may raise MemoryFault."""

    def __init__(self, disk: Disk, registry: Registry) -> None:
        self._disk = disk
        self._registry = registry
        self._tombs = Tombstones(disk)
        self._tombs.load()
        with faulting("not everybody's memory could be looked at"):
            self._known = list(self._people())
            profiles = disk.documents(PROFILES).names()
            self._back = {user_subject(name.removesuffix(JSON)) for name in profiles if name.endswith(JSON)}
            self._back |= {subject for subject, _ in disk.ledgers.by_age()}
        self._looked_up = {one.subject for one in self._known}
        self._listed: set[str] = set()
        """The places of texts that parts listed."""

    def on_disk(self, data: Path) -> list[Finding]:
        """Everything below the data folder that should not be there. Raises MemoryFault."""
        with faulting("not everything could be looked at"):
            found = []
            for part in self._registry:
                name = part.name.removesuffix(" in RAM")  # what it has on disk was asked for
                found += findings(name, self._looking_up(part.audit()), self._known)
            return [*found, *self._names(), *self._beside(data)]

    def in_texts(self, part: str, texts: Iterable[Readable]) -> list[Finding]:
        """Findings about texts that were made of the talk of a conversation."""
        return findings(part, texts, self._known)

    def in_text(self, part: str, place: str, text: str) -> Iterator[Finding]:
        """Findings about a text that belongs to nobody and has no time, such as a copy."""
        for person in self._known:
            for one in person.purges:
                if one.words.hold(text):
                    why: Why = "private" if one.open_only else "taken back"
                    yield Finding(part, place, person.subject, why)
                    break
        yield from self._erased(part, place, f"{Path(place).name}\n{text}")

    # ------------------------------------------------------------------ people

    def _people(self) -> Iterator[Known]:
        """Everybody about whom something should not be readable."""
        chosen = choices.read(self._disk) or {}
        out = {user_subject(user_id) for user_id, one in chosen.items() if one.get("opted_out")}
        for subject in sorted({*subjects(self._disk), *out}):
            if user_of(subject) is None:
                continue
            history = held(self._disk, subject).history
            views = [history.view(branch.head) for branch in history.branches.all.values()]
            taken = tuple(one for view in views for one in view.purges(subject))
            erased_at = self._tombs.erased_at(subject)
            if taken or subject in out or erased_at >= 0:
                sessions = self._registry.sessions_on_disk(subject)
                texts = frozenset(item.text for view in views for item in view.active())
                terms = frozenset[str]().union(*map(terms_of, texts))
                yield Known(
                    subject, taken, frozenset(sessions), subject in out, erased_at, texts=texts, terms=terms
                )

    def _looking_up(self, texts: Iterable[Readable]) -> Iterator[Readable]:
        """The texts that a part lists. Who is named by one joins those that are known, if they were erased:
        of somebody without a history and a choice there may be nothing but this text.
        """
        for text in texts:
            self._listed.add(text.place)
            authors = {user_subject(user_id) for user_id in (text.author, text.to) if user_id}
            for subject in {text.owner, *authors} - self._looked_up:
                self._looked_up.add(subject)
                if user_of(subject) is not None and (erased_at := self._tombs.erased_at(subject)) >= 0:
                    self._known.append(Known(subject, erased_at=erased_at))
            yield text

    def _erased(self, part: str, place: str, text: str) -> Iterator[Finding]:
        """The people named in a text who were erased, and about whom nothing was learned since."""
        for subject in sorted({user_subject(one) for one in _USER.findall(text)} - self._back):
            if self._tombs.erased_at(subject) >= 0:
                yield Finding(part, place, subject, "erased")

    # ------------------------------------------------------------------ files

    def _names(self) -> Iterator[Finding]:
        """File names, and the whole of texts that parts don't list word by word: these have ids in them."""
        may_name = _MAY_NAME | {_CHOSEN.format(one.subject) for one in self._known if one.opted_out}
        for part in sorted(self._disk.folders() - STAY | {CURSORS}):
            folder = self._disk.documents(part)
            for name in set(folder.names()) - may_name:
                content = b""
                if part not in _BY_WORDS and ".sqlite" not in name:
                    log = self._disk.log(f"{part}/{name}") if is_log(name) else None
                    content = log.read() if log is not None else folder.find(name) or b""
                text = f"{name}\n{content.decode('utf-8', 'replace')}"
                yield from self._erased(part, str(folder.folder / name), text)

    def _beside(self, data: Path) -> Iterator[Finding]:
        """Copies kept aside, leftovers of killed writes, exports."""
        for path in sorted(data.rglob("*")):
            below = path.relative_to(data).as_posix()
            ours = str(path) in self._listed or _OURS.fullmatch(below)
            if path.is_file() and not path.is_symlink() and not ours:
                for text in _texts(path):
                    yield from self.in_text(BESIDE, str(path), text)


def _texts(path: Path) -> Iterator[str]:
    """The texts in a file, or in the files of an archive."""
    if path.stat().st_size > MOST_BYTES:
        return
    if path.suffix == ".zip" and zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            for name in archive.namelist():
                yield archive.read(name).decode("utf-8", "replace")
    else:
        yield path.read_bytes().decode("utf-8", "replace")


# ---------------------------------------------------------------------- what should not be there


def findings(part: str, texts: Iterable[Readable], known: Sequence[Known]) -> list[Finding]:
    """Findings about texts of a part that should not be there, one for each place, person and reason.

    Those who are `known` may become more while the texts are read.
    """
    counts: dict[tuple[str, str, Why], int] = {}
    for text in texts:
        for person in known:
            if (why := _why(text, person)) is not None:
                key = (text.place, person.subject, why)
                counts[key] = counts.get(key, 0) + 1
    return [Finding(part, place, subject, why, count) for (place, subject, why), count in counts.items()]


def _why(text: Readable, person: Known) -> Why | None:
    theirs = text.owner == person.subject or person.subject in (
        user_subject(text.author) if text.author else "",
        user_subject(text.to) if text.to else "",
    )
    if theirs and text.at and text.at <= person.erased_at:
        return "erased"
    if person.opted_out and theirs and text.author:
        return "opted out"
    for one in person.purges:
        if _covers(one, text, person):
            return "private" if one.open_only else "taken back"
    return None


def _covers(one: Purge, text: Readable, person: Known) -> bool:
    """Whether a purge is about a text."""
    if text.digest:
        return not one.open_only and text.digest in map(_digest, set(one.texts) - person.texts)
    in_private = person_of(text.session) is not None
    if text.author:
        said = Said(
            id=text.message,
            author_id=text.author,
            name="",
            text=text.text,
            sent_at=text.at,
            by_us=bool(text.to),
            to_id=text.to,
        )
        return one.covers(said, in_private=in_private)
    if (one.open_only and in_private) or text.at > one.at:
        return False
    if text.owner:
        return text.owner == one.subject and one.words.hold(text.text, person.terms)
    return _may_have_words(text.session, one, person) and one.words.hold(text.text)


def _may_have_words(session: str, one: Purge, person: Known) -> bool:
    """Whether a conversation has words of a person; one that is not known may have anybody's."""
    if not session:
        return True
    there = session.rpartition(":")[2]
    user_id = user_of(person.subject)
    return session in person.sessions or there in one.messages.values() or person_of(session) == user_id


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
