"""The bot's memory of a person right now: the durable file, the history behind it, the last prompt.

The first two are read from disk, as the person could do it by hand, whenever they have changed there.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from discoclaw.bot.texts import history as texts
from discoclaw.core.errors import MemoryFault
from discoclaw.core.event import Commit
from discoclaw.core.history import History
from discoclaw.core.model import AssistantTurn, ModelRequest, ToolTurn, UserTurn
from discoclaw.core.purge import Derived, Purge
from discoclaw.core.subject import user_subject
from discoclaw.core.times import ms_of_iso
from discoclaw.memory.subjects import inspect
from discoclaw.settings import Settings
from discoclaw.show.log import log, newest
from discoclaw.store.files import read_in_thread

MOST_COMMITS: Final = 40
MOST_CHARS: Final = 60_000


@dataclass(slots=True)
class _Read:
    """The content that was read, and the state of the files it is of."""

    stamp: object
    shown: dict[str, Any]


class Held(Derived):
    """Reads for the page, and keeps the last prompt of each person in RAM."""

    name = "last prompts of the demo"

    def __init__(self, settings: Settings) -> None:
        self._root = settings.memory_dir
        self._read: dict[str, _Read] = {}
        self._prompts: dict[str, str] = {}

    def asked(self, request: ModelRequest) -> None:
        """A request is being sent to a model."""
        if request.purpose == "answer" and request.subject is not None:
            self._prompts[request.subject] = _as_text(request)[:MOST_CHARS]

    def purge_ram(self, purge: Purge) -> None:
        self._prompts.clear()  # those of others repeat the recent talk

    async def of(self, person_id: int) -> dict[str, Any]:
        """The memory held about a person: `path`, `file`, `commits` (newest first), `prompt`."""
        subject = user_subject(str(person_id))
        shown = await read_in_thread(self._files, subject, person_id)
        return {**shown, "prompt": self._prompts.get(subject, "")}

    def _files(self, subject: str, person_id: int) -> dict[str, Any]:
        durable = self._root / "durable" / f"{person_id}.json"
        ledger = self._root / "ledger" / f"{subject}.jsonl"
        stamp = (_stamp(durable), _stamp(ledger))
        known = self._read.get(subject)
        if known is None or known.stamp != stamp:
            known = self._read[subject] = _Read(stamp, self._fresh(subject, durable))
        return known.shown

    def _fresh(self, subject: str, durable: Path) -> dict[str, Any]:
        try:
            text = durable.read_text(encoding="utf-8", errors="replace")[:MOST_CHARS]
        except OSError:
            text = ""
        try:
            history = inspect.held(self._root, subject).history
            commits = _changes(history)
        except MemoryFault as fault:
            commits = [{"done": str(fault), "at": 0, "log": ""}]
        return {"path": str(durable), "file": text, "commits": commits}


def _changes(history: History) -> list[dict[str, Any]]:
    """Each change: what was done, for people; `at`, in ms; and `log`, what the terminal shows."""
    records, _ = newest(history, limit=MOST_COMMITS)
    tell = texts.teller(history, in_private=True)
    done = [tell(one) if isinstance(one, Commit) else texts.turn(one, in_private=True) for one in records]
    shown = zip(records, done, log(history, limit=MOST_COMMITS).split("\n\n"), strict=False)
    return [{"done": did, "at": ms_of_iso(one.timestamp), "log": text} for one, did, text in shown]


def _stamp(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size


def _as_text(request: ModelRequest) -> str:
    parts = [f"── system ──\n{block.text}" for block in request.system]
    for turn in request.turns:
        match turn:
            case UserTurn():
                parts.append(f"── user ──\n{turn.text}")
            case AssistantTurn():
                called = "\n".join(f"→ {call.name} {call.input}" for call in turn.calls)
                parts.append(f"── assistant ──\n{turn.text}\n{called}".strip())
            case ToolTurn():
                parts += [f"── tool ──\n{result.text}" for result in turn.results]
    if request.tools:
        parts.append("── tools ──\n" + ", ".join(tool.name for tool in request.tools))
    return "\n\n".join(parts)
