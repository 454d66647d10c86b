"""Several processes that share one store, all in one test process and in RAM.

    Together   the store, and who shares it: `join` gives the disk of one more process, and its `Processes`

What one process writes, the others hear of when they look, claim, or are waited for (`all_know`), or when a
test lets them (`hear`): nothing happens by time. A process that was killed writes nothing more, and its
leases are free.
"""

import asyncio
import threading
from collections.abc import AsyncIterator, Collection, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from discoclaw.core.errors import LeaseLost, Overtaken
from discoclaw.core.ports import Passive
from discoclaw.memory.changes import Listener
from discoclaw.store.port import (
    LEDGERS,
    NO_LOG,
    Change,
    Disk,
    Documents,
    Head,
    Ledgers,
    Log,
    Mark,
)

_ROOT = Path("shared")


@dataclass
class Together:
    """A store in RAM, and the processes that share it."""

    documents: dict[str, bytes] = field(default_factory=dict)
    logs: dict[str, bytes] = field(default_factory=dict)
    generations: dict[str, int] = field(default_factory=dict)
    changed: list[str] = field(default_factory=list)
    """The names of all texts that were written, in order."""
    members: "list[Member]" = field(default_factory=list)
    claims: set[str] = field(default_factory=set)
    leases: "dict[str, Member]" = field(default_factory=dict)
    lock: threading.Condition = field(default_factory=threading.Condition)
    moved: asyncio.Condition = field(default_factory=asyncio.Condition)

    def join(self) -> "Member":
        """One more process."""
        self.members.append(Member(self))
        return self.members[-1]

    def dump(self) -> bytes:
        """Everything in the store, as bytes."""
        texts = {**self.documents, **self.logs}
        return b"".join(name.encode() + b"\n" + content for name, content in sorted(texts.items()))


@dataclass(eq=False)
class _Inside:
    """The tasks that work under a lease of ours."""

    tasks: "list[asyncio.Task[object]]" = field(default_factory=list)
    lost: bool = False


class Member(Passive):
    """One process: its `disk`, and what it asks of the others (`core.processes.Processes`)."""

    shared = True

    def __init__(self, together: Together) -> None:
        self.together = together
        self.disk = RamDisk(self)
        self.listener = Listener()
        self.in_touch = True
        self.alive = True
        self.unheard: set[str] = set()
        self._inside: dict[str, _Inside] = {}
        self._hearing = asyncio.Lock()

    # ------------------------------------------------------------------ the protocol

    async def claim(self, message_id: str, about: Collection[str] = ()) -> bool:
        if message_id in self.together.claims:
            return False
        self.together.claims.add(message_id)
        await self.look(about)
        return True

    async def look(self, about: Collection[str]) -> None:
        if self.in_touch:
            await self._hear(set(about))

    @asynccontextmanager
    async def lease(self, name: str) -> AsyncIterator[None]:
        together, task = self.together, asyncio.current_task()
        assert task is not None
        async with together.moved:
            await together.moved.wait_for(lambda: together.leases.get(name, self) is self)
            together.leases[name] = self
        inside = self._inside.setdefault(name, _Inside())
        inside.tasks.append(task)
        try:
            yield
        except asyncio.CancelledError:
            if not inside.lost or task.uncancel():
                raise
        finally:
            inside.tasks.remove(task)
            if not inside.tasks and not inside.lost:
                del self._inside[name]
                await self._leave(name)
        if inside.lost:
            raise LeaseLost(f"another process has the lease {name!r} by now")

    @asynccontextmanager
    async def free(self, name: str) -> AsyncIterator[bool]:
        if self.together.leases.get(name, self) is not self:
            yield False
            return
        async with self.lease(name):
            yield True

    async def all_know(self) -> None:
        for other in self.together.members:
            if other is not self and other.alive:
                await other.reached()
                await other.hear()

    # ------------------------------------------------------------------ what happens to it

    async def lose(self) -> None:
        """Lose its leases, and live on."""
        for name in [name for name, member in self.together.leases.items() if member is self]:
            del self.together.leases[name]
            inside = self._inside.pop(name)
            inside.lost = True
            for task in inside.tasks:
                task.cancel()
        await self._move()

    async def hear(self) -> None:
        """Hear of everything that others wrote."""
        await self._hear(None)

    async def reached(self) -> None:
        """Wait until it is in touch, or dead."""
        async with self.together.moved:
            await self.together.moved.wait_for(lambda: self.in_touch or not self.alive)

    async def cut_off(self, *, until: bool = False) -> None:
        """Lose touch with the others, or (`until` is then true) find it again."""
        self.in_touch = until
        await self._move()

    async def kill(self) -> None:
        """End it: it writes nothing more, and its leases are free."""
        self.alive = False
        for name in [name for name, member in self.together.leases.items() if member is self]:
            del self.together.leases[name]
        await self._move()

    async def _leave(self, name: str) -> None:
        if self.together.leases.get(name) is self:
            del self.together.leases[name]
            await self._move()

    async def _move(self) -> None:
        async with self.together.moved:
            self.together.moved.notify_all()

    async def _hear(self, about: set[str] | None) -> None:
        async with self._hearing:
            with self.together.lock:
                names = set(self.unheard) if about is None else self.unheard & about
                self.unheard -= names
            if names:
                await self.listener.renewed(sorted(names))

    def wrote(self, name: str) -> None:
        """Tell the others. The caller holds the store's lock."""
        if not self.alive:
            raise LeaseLost("this process is no longer heard from, so nothing is written")
        self.together.changed.append(name)
        for other in self.together.members:
            if other is not self:
                other.unheard.add(name)


# ---------------------------------------------------------------------- the store


class RamDisk(Disk):
    """The store as one process uses it (`store.port.Disk`)."""

    name = "in RAM"
    shared = True

    def __init__(self, member: Member) -> None:
        self.member = member
        self.ledgers = _Ledgers(self)
        self.goes_on = threading.Event()
        """Clear it to hold what is being appended to logs."""
        self.goes_on.set()
        self.appends = threading.Event()
        """Set once something is being appended to a log."""

    @property
    def in_touch(self) -> bool:
        return self.member.in_touch

    def folders(self) -> set[str]:
        names = (*self.member.together.documents, *self.member.together.logs)
        return {name.partition("/")[0] for name in names if "/" in name}

    def documents(self, folder: str) -> Documents:
        return _Documents(self, f"{folder}/" if folder else "")

    def log(self, name: str) -> Log:
        return _Log(self, name)


class _Log(Log):
    def __init__(self, disk: RamDisk, name: str) -> None:
        self.disk = disk
        self.name = name

    @property
    def path(self) -> Path:
        return _ROOT / self.name

    @property
    def beside(self) -> Documents:
        return self.disk.documents(self.name.rpartition("/")[0])

    def read(self) -> bytes:
        return self.disk.member.together.logs.get(self.name, b"")

    def head(self) -> Head:
        together = self.disk.member.together
        with together.lock:
            if self.name not in together.logs:
                return NO_LOG
            return Head(len(together.logs[self.name]), together.generations[self.name])

    def load(self, since: Head = NO_LOG) -> tuple[bytes, Head]:
        with self.disk.member.together.lock:
            head, content = self.head(), self.read()
            return content[since.size :] if head.reaches(since) else content, head

    def append(self, content: bytes, *, after: Head) -> Head:
        together = self.disk.member.together
        self.disk.appends.set()
        self.disk.goes_on.wait()
        with together.lock:
            if (head := self.head()) != after:
                raise Overtaken(f"{self.path} was changed by somebody else ({head.size} bytes)")
            self._put(self.read() + content)
            return self.head()

    def cut(self, size: int) -> None:
        self._put(self.read()[:size], anew=True)

    def replace(self, content: bytes, *, after: Head | None = None) -> None:
        with self.disk.member.together.lock:
            if after is not None and (head := self.head()) != after:
                raise Overtaken(f"{self.path} was changed by somebody else ({head.size} bytes)")
            self._put(content, anew=True)

    def _put(self, content: bytes, *, anew: bool = False) -> None:
        together = self.disk.member.together
        with together.lock:
            self.disk.member.wrote(self.name)
            if anew or self.name not in together.generations:
                together.generations[self.name] = len(together.changed)
            together.logs[self.name] = content


class _Ledgers(Ledgers):
    _disk: RamDisk

    def by_age(self) -> list[tuple[str, int]]:
        together = self._disk.member.together
        with together.lock:
            last = {name: number for number, name in enumerate(together.changed)}
            logs = [name for name in together.logs if name.startswith(f"{LEDGERS}/")]
            found = sorted(logs, key=lambda name: last[name])
            return [(Path(name).stem, len(together.logs[name])) for name in found if name.endswith(".jsonl")]

    def since(self, mark: Mark) -> tuple[list[str], Mark]:
        together = self._disk.member.together
        with together.lock:
            new = dict.fromkeys(together.changed[mark if isinstance(mark, int) else 0 :])
            names = [name for name in new if name.startswith(f"{LEDGERS}/") and name.endswith(".jsonl")]
            return [Path(name).stem for name in names], len(together.changed)


class _Documents(Documents):
    def __init__(self, disk: RamDisk, prefix: str) -> None:
        self.disk = disk
        self.prefix = prefix

    @property
    def folder(self) -> Path:
        return _ROOT / self.prefix

    @property
    def in_touch(self) -> bool:
        return self.disk.in_touch

    def names(self) -> list[str]:
        together = self.disk.member.together
        with together.lock:
            found = [*together.documents, *together.logs]
        inside = (name.removeprefix(self.prefix) for name in found if name.startswith(self.prefix))
        return sorted(name for name in inside if "/" not in name)

    def read(self, name: str) -> bytes:
        try:
            return self.disk.member.together.documents[self.prefix + name]
        except KeyError:
            raise FileNotFoundError(f"{self.folder / name} is not there") from None

    def write(self, name: str, content: bytes) -> None:
        self.change(name, lambda _: content)

    def change(self, name: str, work: Change) -> bytes | None:
        together, name = self.disk.member.together, self.prefix + name
        with together.lock:
            before = together.documents.get(name)
            after = work(before)
            if after is None or after == before:
                return before
            self.disk.member.wrote(name)
            together.documents[name] = after
            return after

    def remove(self, names: Iterable[str]) -> tuple[int, list[str]]:
        together, removed = self.disk.member.together, 0
        with together.lock:
            for name in (self.prefix + name for name in names):
                if name in together.documents or name in together.logs:
                    self.disk.member.wrote(name)
                    together.documents.pop(name, None)
                    together.logs.pop(name, None)
                    together.generations.pop(name, None)
                    removed += 1
        return removed, []
