"""One subject's two files and the view they give: the ledger, which is the truth, and the durable file.

The durable file is a picture of the ledger's last commit that a person may edit. When it differs from what
we last wrote, `reconcile` finds out why: an edit becomes a commit, a picture of an older commit (a crash
between the two writes) is renewed, an unreadable file is kept aside, and one of a newer version is left
alone for ever. Blocking; callers hold the subject's lock and hop to a thread.
"""

import logging
from dataclasses import replace
from pathlib import Path

from discoclaw.core.draft import Draft, Origin
from discoclaw.core.errors import MemoryFault, NewerSchema
from discoclaw.core.event import Commit
from discoclaw.core.times import ms_of_iso
from discoclaw.core.view import View, fold
from discoclaw.memory import durable_file
from discoclaw.memory.files import Stamp, keep_aside, stamp_now, stamp_of, sync_folder, write_atomic
from discoclaw.memory.ledger import Ledger, read

log = logging.getLogger(__name__)


def user_subject(user_id: str) -> str:
    """The subject of a person, by Discord user id."""
    return f"user-{user_id}"


def user_of(subject: str) -> str | None:
    """The Discord user id of a person's subject; None for other subjects."""
    return subject.removeprefix("user-") if subject.startswith("user-") else None


class SubjectFiles:
    """A subject loaded from disk; `view` is what holds now. Raises OSError when the ledger is unreadable."""

    def __init__(self, subject: str, ledger: Path, durable: Path | None, max_items: int) -> None:
        self.subject = subject
        self.view: View
        self._durable = durable
        self._max_items = max_items
        loaded = read(ledger)
        self._ledger = Ledger(ledger, loaded)
        self._newer = False  # the durable file is of a version we do not know
        self._seen: Stamp = (-1, -1, -1)
        self._renderer = durable_file.Renderer()
        self.view = fold(loaded.commits)

    def current(self) -> bool:
        """Whether the durable file is as we last saw it (one `stat`)."""
        return self._durable is None or stamp_now(self._durable) == self._seen

    def record(self, commit: Commit, now_ms: int) -> None:
        """Append a commit and renew the durable file.

        Raises MemoryFault when the ledger does not take it; nothing is then changed. A durable file that
        can not be written is a warning: the commit stands, and the file follows later.
        """
        self._ledger.append(commit, stamp=stamp_of(now_ms))
        self.view = self.view.after(commit)
        if self.current():
            self._write_durable(self._seen)
        else:  # somebody saved the file in this very moment
            self.reconcile(now_ms)

    def reconcile(self, now_ms: int) -> bool:
        """Make view and durable file agree again. Returns whether an edit was adopted.

        When the disk does not allow it, that is a warning: the file stays as it is and is tried again.
        """
        try:
            return self._reconcile(now_ms)
        except (OSError, MemoryFault) as error:
            log.warning("%s: the durable file could not be brought in line: %s", self.subject, error)
            return False

    def _reconcile(self, now_ms: int) -> bool:
        path = self._durable
        if path is None:
            return False
        seen, self._newer = stamp_now(path), False
        if seen is None:
            self._seen = None
            if self.view.commits:
                self._write_durable(None)
            return False
        content = path.read_bytes()
        if content == self._renderer.render(self.view):
            self._seen = seen
            return False
        try:
            file = durable_file.parse(content, now_ms=now_ms)
        except NewerSchema as newer:
            log.error("%s is left as it is and no longer written: %s", path, newer)
            self._newer, self._seen = True, seen
            return False
        except durable_file.Unreadable as unreadable:
            self._replace_unreadable(path, seen, str(unreadable), stamp_of(now_ms))
            return False
        if self._ledger.damage:
            self.view = self._of_file_alone(file)
            self._seen = seen
            return False
        adopted = self._take(path, file, now_ms)
        self._write_durable(seen)
        return adopted

    def _replace_unreadable(self, path: Path, seen: Stamp, why: str, stamp: str) -> None:
        aside = keep_aside(path, "corrupt", stamp)
        log.error("%s can not be read: %s; it is kept as %s", path, why, aside.name)
        if self._ledger.damage:
            self._seen = stamp_now(path)
        elif self.view.commits:
            self._write_durable(seen)
        else:
            path.unlink()
            sync_folder(path.parent)
            self._seen = None

    def _take(self, path: Path, file: durable_file.DurableFile, now_ms: int) -> bool:
        """Take over a file that says something else than the view."""
        if not self.view.commits or file.version != durable_file.VERSION:
            keep_aside(path, f"v{file.version}", stamp_of(now_ms))
        if file.rejected:
            aside = keep_aside(path, "rejected", stamp_of(now_ms))
            log.error("%s: %s; the file is kept as %s", path, "; ".join(file.rejected), aside.name)
        return self._adopt(file, now_ms)

    def _adopt(self, file: durable_file.DurableFile, now_ms: int) -> bool:
        """Record what a person changed in the file. Returns whether there was anything."""
        foreign = file.version != durable_file.VERSION or not self.view.commits
        base = View() if foreign else self._pictured(file.updated_at)
        draft = Draft(self.view, now_ms=now_ms, max_items=self._max_items)
        origin = Origin(
            "inferred" if foreign else "stated", evidence="taken over" if foreign else "edited by hand"
        )
        # An item with a mistake in it is neither changed nor forgotten.
        written = {key: item for key, item in base.items.items() if key not in file.mistaken}
        draft.adopt(written, file.items, origin)
        commit = draft.commit("take over the durable file" if foreign else "edited by hand", by="file")
        if commit is None:
            return False
        self._ledger.append(commit, stamp=stamp_of(now_ms))
        self.view = self.view.after(commit)
        log.info("%s: %d changes made by hand were adopted", self.subject, len(commit.events))
        return True

    def _of_file_alone(self, file: durable_file.DurableFile) -> View:
        """The view beside a damaged ledger. The file does not say what is private: what is unknown is."""
        known = self.view.items
        items = {
            item.id: replace(
                item,
                facets=known[item.id].facets
                if item.id in known
                else replace(item.facets, sensitivity="private"),
            )
            for item in file.items
        }
        return View(items, updated_at=file.updated_at)

    def _pictured(self, updated_at: int) -> View:
        """The view of which a file with this `updatedAt` is the picture; the newest when there is none."""
        if updated_at == self.view.updated_at:
            return self.view
        commits = read(self._ledger.path).commits  # history is not kept in RAM; edits of old files are rare
        for count in range(len(commits), 0, -1):
            moment = ms_of_iso(commits[count - 1].timestamp)
            if moment == updated_at:
                return fold(commits[:count])
            if moment < updated_at:
                break
        return self.view

    def _write_durable(self, seen: Stamp) -> None:
        """Renew the file, unless it was saved since it had the stamp `seen`: the next read adopts that."""
        path = self._durable
        if path is None or self._newer or self._ledger.damage:
            return  # a file beside a damaged ledger may know more than the ledger
        try:
            written = write_atomic(
                path, self._renderer.render(self.view), still=lambda: stamp_now(path) == seen
            )
        except OSError as error:
            log.warning("%s could not be written (%s); the ledger has the change", path, error)
            return
        if written is not None:
            self._seen = written
