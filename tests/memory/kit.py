"""What the tests of the memory room share: a clock moved by hand, wishes, hand edits and child processes."""

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from discoclaw.core.consent import ALWAYS, NEVER, Consent
from discoclaw.core.draft import Draft, Origin
from discoclaw.core.errors import Refused
from discoclaw.core.event import Commit, Event
from discoclaw.core.item import Source
from discoclaw.core.subject import user_subject
from discoclaw.core.view import EMPTY
from discoclaw.memory.changes import Listener
from discoclaw.memory.subjects.durable_file import render
from discoclaw.memory.subjects.follow import Numbered
from discoclaw.memory.subjects.ledger import read
from discoclaw.memory.subjects.store import Memory
from discoclaw.store.port import Log

NOW = 1_770_136_175_000  # 2026-02-03T16:29:35Z
STAMP = "20260203-162935"
ANN, BOB = "user-123", "user-456"
T = TypeVar("T")
REPOSITORY = Path(__file__).parent.parent.parent


class Clock:
    """The present, in milliseconds; it stands still until it is moved."""

    def __init__(self, now: int = NOW) -> None:
        self.now = now

    def __call__(self) -> int:
        return self.now

    def forward(self, *, minutes: float) -> None:
        self.now += int(minutes * 60_000)


class Ear(Listener):
    """Notes what it hears: subjects whose ledger changed, commits, and units of which a file changed."""

    def __init__(self) -> None:
        self.subjects: list[str] = []
        self.commits: list[tuple[str, Commit]] = []
        self.units: list[str] = []

    def recorded(self, subject: str) -> None:
        self.subjects.append(subject)

    def committed(self, subject: str, commit: Commit) -> None:
        self.commits.append((subject, commit))

    def written(self, unit: str) -> None:
        self.units.append(unit)


def listening(memory: Memory) -> Ear:
    """An ear that hears what changes from now on."""
    ear = Ear()
    memory.join(ear)
    return ear


def tell_nobody(memory: Memory) -> None:
    """Let no part hear what changes from now on, as after the program was killed and started again."""
    memory.changes._listeners.clear()
    if not memory.disk.shared:
        memory.ledgers = Numbered(memory.disk)
        memory.join(memory.ledgers)


def refusing(refuses: Callable[[str], bool]) -> Consent:
    """The consent of all but some, by user id."""
    return Consent(lambda user_id: ALWAYS if refuses(user_id) else NEVER)


def refusal(act: Callable[..., object], *given: object) -> str:
    """Why an act is refused, or nothing if it is not."""
    try:
        act(*given)
    except Refused as refused:
        return str(refused)
    return ""


def erased_from(memory: Memory) -> Consent:
    """The consent of everybody, as far as they were not erased."""
    return Consent(erased_at=lambda user_id: memory.erased_at(user_subject(user_id)))


def erased_at(times: Mapping[str, int]) -> Consent:
    """The consent of everybody, where some were erased, by subject, at a time (ms)."""
    return Consent(erased_at=lambda user_id: times.get(user_subject(user_id), NEVER))


def remember(text: str, kind: str = "fact", origin: Origin | None = None) -> Callable[[Draft], str]:
    """A wish that adds one item; its outcome is the item's id."""
    return lambda draft: draft.upsert(kind, text, origin or Origin("stated"))[0].id


def heard(**given: Any) -> Origin:
    """What a small model concluded from a message said now."""
    return Origin("inferred", **{"source": Source("discord", "7", "8"), "said_at": NOW, **given})


def chain(*texts: str) -> list[Commit]:
    """Commits that follow one another, each adding one item."""
    view, commits = EMPTY, []
    for text in texts:
        draft = Draft(view, now_ms=NOW)
        remember(text)(draft)
        commit = draft.commit("a test")
        assert commit is not None
        commits.append(commit)
        view = view.after(commit)
    return commits


def added(text: str, when: int) -> Event:
    """The event that one item was stated, at a time (ms)."""
    draft = Draft(EMPTY, now_ms=when)
    remember(text)(draft)
    (event,) = draft.events
    return event


async def texts(memory: Memory, subject: str = ANN, *, branch: str | None = None) -> list[str]:
    """The texts of the items that hold on HEAD's branch or another, in the order they were added."""
    return [item.text for item in (await memory.view(subject, branch)).active()]


def ledger_of(memory: Memory, subject: str = ANN) -> Path:
    return memory.ledger_folder / f"{subject}.jsonl"


def lines_of(memory: Memory, subject: str = ANN) -> Log:
    """A ledger, in whichever store."""
    return memory.ledgers.log(subject)


async def check_picture(memory: Memory, subject: str = ANN) -> None:
    """The durable file, where the store has any, is what HEAD says."""
    if memory.disk.durable is not None:
        assert durable_of(memory, subject).read_bytes() == render(await memory.view(subject))


def durable_of(memory: Memory, subject: str = ANN) -> Path:
    return memory.durable_folder / f"{subject.removeprefix('user-')}.json"


def commits_of(memory: Memory, subject: str = ANN) -> tuple[Commit, ...]:
    """The commits on disk, all of them sound."""
    loaded = read(lines_of(memory, subject))
    assert (loaded.damage, loaded.torn) == ((), 0)
    return loaded.commits


def edit(path: Path, change: Callable[[Any], None]) -> None:
    """Save a JSON file the way an editor does, with whatever `change` did to its value."""
    value = json.loads(path.read_bytes())
    change(value)
    path.write_text(json.dumps(value, indent=4), encoding="utf-8")


def set_first(**fields: Any) -> Callable[[Any], None]:
    """An edit of the first item."""
    return lambda file: file["items"][0].update(fields)


def asides(path: Path, label: str) -> list[Path]:
    """The copies of a file that were kept aside under a label."""
    return sorted(path.parent.glob(f"{path.name}.{label}-*"))


def fingerprint(folder: Path) -> dict[str, str]:
    """Every file below a folder, by name, with its inode and a digest of its content."""
    return {
        str(path.relative_to(folder)): f"{path.stat().st_ino} {hashlib.sha256(path.read_bytes()).hexdigest()}"
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.name.endswith("-shm")  # who is reading, which is nobody's memory
    }


def start_child(*arguments: str | Path) -> "subprocess.Popen[str]":
    """A real process of its own, running one of the programs in `child`."""
    return subprocess.Popen(
        [sys.executable, "-m", "tests.memory.child", *map(str, arguments)],
        cwd=REPOSITORY,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def told_by(program: Callable[..., None], *arguments: object) -> Any:
    """Run a program to its end, in this process; the JSON it printed."""
    with redirect_stdout(StringIO()) as printed:
        program(*map(str, arguments))
    return json.loads(printed.getvalue())


def kill_while_writing(*paths: Path) -> None:
    """Let a real process replace each file with "zebra", and kill it right before each rename."""
    with start_child("pause_before_rename", *paths) as child:
        assert child.stdout is not None
        for _ in paths:
            assert json.loads(child.stdout.readline()) == "before the rename"
        child.kill()


class Doomed:
    """Runs a program of `child` again and again, each time in a new process that is killed with SIGKILL."""

    def __init__(self, program: str, *arguments: str | Path) -> None:
        self._forge = start_child("forge", program, *arguments)

    def __enter__(self) -> "Doomed":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._forge.kill()
        self._forge.communicate()

    def live_for(self, seconds: float, *, words: int = 1) -> list[Any]:
        """Start one, kill it `seconds` after so many words; everything it said."""
        assert self._forge.stdin is not None
        self._forge.stdin.write("one\n")
        self._forge.stdin.flush()
        pid = self._hear()["pid"]
        said = [self._hear() for _ in range(words)]
        time.sleep(seconds)
        os.kill(pid, signal.SIGKILL)
        while said[-1] != "dead":
            said.append(self._hear())
        return said[:-1]

    def _hear(self) -> Any:
        assert self._forge.stdout is not None
        return json.loads(self._forge.stdout.readline())
