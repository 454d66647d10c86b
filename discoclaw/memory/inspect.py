"""Looking at memory on disk without changing it, also while the bot runs: for the command line.

Read-only: nothing is adopted, repaired or kept aside. Blocking.
"""

from dataclasses import dataclass
from pathlib import Path

from discoclaw.core.errors import NewerSchema
from discoclaw.core.event import Commit
from discoclaw.core.view import View, fold
from discoclaw.memory import durable_file
from discoclaw.memory.files import safe_id
from discoclaw.memory.ledger import read
from discoclaw.memory.subject import user_of, user_subject


@dataclass(frozen=True, slots=True)
class Held:
    """A subject as it lies on disk. `faults` are sentences, empty when all is well."""

    subject: str
    view: View
    commits: tuple[Commit, ...]
    faults: tuple[str, ...]


def subject_named(name: str) -> str:
    """The subject a person means on the command line: "123", "user-123" or "<@123>".

    Raises MemoryFault when that can not be one.
    """
    plain = name.strip().removeprefix("<@").removesuffix(">").lstrip("!")
    return safe_id(user_subject(plain) if plain.isdigit() else plain)


def subjects(root: Path, durable_folder: Path | None = None) -> list[str]:
    """Every subject with a ledger or a durable file below `root` (`data/memory`), sorted."""
    ledgers = {path.stem for path in (root / "ledger").glob("*.jsonl")}
    files = {user_subject(path.stem) for path in (durable_folder or root / "durable").glob("*.json")}
    return sorted(ledgers | files)


def held(root: Path, subject: str, durable_folder: Path | None = None) -> Held:
    """Read and verify one subject. A missing ledger is an empty memory. Raises OSError.

    A running bot writes ledger and file one after the other: what looks wrong is looked at once more.
    """
    first = _held(root, subject, durable_folder)
    return _held(root, subject, durable_folder) if first.faults else first


def _held(root: Path, subject: str, durable_folder: Path | None) -> Held:
    path = root / "ledger" / f"{subject}.jsonl"
    loaded = read(path)
    view = fold(loaded.commits)
    faults = []
    if loaded.damage is not None:
        faults.append(f"{path.name}, line {loaded.damage.line}: {loaded.damage.reason}")
    if loaded.torn:
        faults.append(f"{path.name}: an unfinished last line of {loaded.torn} bytes, which is left out")
    user = user_of(subject)
    durable = (durable_folder or root / "durable") / f"{user}.json"
    if user is not None and not faults and (view.commits or durable.exists()):
        faults += _faults_of_file(durable, view)
    return Held(subject, view, loaded.commits, tuple(faults))


def _faults_of_file(path: Path, view: View) -> list[str]:
    if not path.exists():
        return [f"{path.name} is missing; it is written again when the bot next uses it"]
    content = path.read_bytes()
    if content == durable_file.render(view):
        return []
    try:
        file = durable_file.parse(content, now_ms=view.updated_at)
    except NewerSchema as newer:
        return [f"{path.name} is left as it is: {newer}"]
    except durable_file.Unreadable as unreadable:
        return [f"{path.name} can not be read: {unreadable}; the bot keeps it aside and writes it again"]
    if not view.commits:
        what = f"{path.name} has {len(file.items)} items and no ledger yet"
        return [f"{what}; the bot takes them over when it next reads it"]
    edited = f"{path.name} was edited; the bot adopts the edit when it next reads it"
    return [edited, *(f"{path.name}, {rejected}" for rejected in file.rejected)]
