"""The thread by which a process stays alive in the store, and hears what the others changed.

It has a connection of its own and waits for nobody, so an event loop that hangs does not lose the leases, but
a process that is stopped does. What others changed is handed to the event loop page by page; only what that
has dealt with counts as read. A process whose renewal came too late gets a new epoch, because the others may
have gone on without it. Independent of what a change means.
"""

import logging
import threading
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass, field

from discoclaw.memory.disk.fence import Presence, seconds
from discoclaw.memory.disk.members import Entered, Member, Page, Rows, State

log = logging.getLogger(__name__)

RENEW_S = 1.0
POLL_S = 0.3
LONGEST_POLL_S = 2.0
"""The pause while the store does not answer: it doubles up to this."""
LONGEST_AGAIN_S = 30.0
PRUNE_S = 60.0
PRUNING = "pruning"
"""The lease of the process that keeps the tables small. It has it as long as it lives."""
LEAVE_S = 2.0
"""The longest that a process waits for the store in order to leave it."""


@dataclass(frozen=True, slots=True)
class Heard:
    """A page of the feed, for the event loop. `entered` is our new epoch if we needed one.

    `losses` is how often touch had been lost when it was read.
    """

    page: Page
    losses: int
    entered: Entered | None = None


@dataclass(frozen=True, slots=True)
class Told:
    """What the thread asks and tells the event loop's side. All are called in the thread, and must not block.

    `held` and `waiting` name leases; `heard` gets a page, `lost` why the store is out of touch. `fewer` says
    that a process is gone for which names were kept, or that this one has caught up with them. `overtaken`
    says that one of our shards is another process's, or was given up: it is the last that is told.
    """

    held: Callable[[], Collection[str]]
    waiting: Callable[[], Collection[str]]
    heard: Callable[[Heard], None]
    lost: Callable[[str], None]
    fewer: Callable[[None], None]
    overtaken: Callable[[Entered], None]


@dataclass(eq=False)
class _Progress:
    """How far the thread is. `position` and `fed` are those of the newest page that was applied."""

    epoch: int
    position: int
    fed: float
    unsaid: bool = False
    """Whether the position is to be told before the next renewal is due."""
    outstanding: Heard | None = None
    """The page that the event loop is dealing with."""
    again: Entered | None = None
    """Our new epoch, until the event loop knows it."""
    again_s: float = 0.0
    """The pause before a page that the event loop could not deal with; it is read again `again_at`."""
    again_at: float = 0.0
    renewed_at: float = 0.0
    pruned_at: float = field(default_factory=seconds)
    fewer: bool = False
    """Whether `Told.fewer` is to be called, once the others know our position."""


class Renewing:
    """The thread. `quick_s` is how fast the store has to answer for us to be in touch again."""

    def __init__(self, rows: Rows, presence: Presence, member: Member, told: Told, *, quick_s: float) -> None:
        self._rows = rows
        self._presence = presence
        self._member = member
        self._told = told
        self._quick_s = quick_s
        self._renew_s = min(RENEW_S, rows.lease_s / 5)
        self._poll_s = min(POLL_S, rows.lease_s / 5)
        self._progress: _Progress | None = None
        self._woken = threading.Event()
        self.back = threading.Event()
        """Set while we are in touch, for threads."""
        self._ended = False
        self._thread = threading.Thread(target=self._run, name="renewing", daemon=True)
        self.losses = 0
        """Grows when touch is lost: what was read before is then no longer enough to be in touch again."""

    # ------------------------------------------------------------------ for the event loop

    def enter(self) -> None:
        """Register, and begin. Blocking. Raises OSError."""
        sent = seconds()
        entered = self._rows.enter(self._member)
        page = self._rows.page(entered.epoch, entered.position)
        self._progress = _Progress(entered.epoch, page.position, page.read_at, renewed_at=sent)
        self._count_on_us(sent)
        self._thread.start()

    def applied(self, heard: Heard) -> None:
        """The event loop has let go of all that a page named."""
        progress, page = self._now(), heard.page
        progress.position, progress.fed = max(progress.position, page.position), page.read_at
        progress.outstanding, progress.again_s = None, 0.0
        if page.names:  # somebody may be waiting for that
            progress.unsaid = True
            self._woken.set()

    def again(self) -> None:
        """Give the event loop the page once more that it could not deal with, after a pause that doubles."""
        progress = self._now()
        progress.again_s = min(2 * progress.again_s or self._poll_s, LONGEST_AGAIN_S)
        progress.again_at = seconds() + progress.again_s
        progress.outstanding = None

    def lose(self) -> None:
        """The store does not answer a turn in time, so it is out of touch until it answers quickly."""
        self.losses += 1
        self._presence.away = self._presence.stale = True
        self._woken.set()

    def leave(self) -> None:
        """Take ourselves and our leases out of the store. Blocks for a short while; may be called again."""
        self._ended = True
        self._woken.set()
        if self._thread.is_alive():
            self._thread.join(LEAVE_S)
        self._presence.until = float("inf")  # what is read now rests on no RAM; the fence refuses all writes

    # ------------------------------------------------------------------ the thread

    def _run(self) -> None:
        pause_s, trouble = self._poll_s, ""
        while not self._ended:
            try:
                self._beat()
            except OSError as error:
                if str(error) != trouble:
                    log.debug("the processes' rows: %s", error)
                pause_s, trouble = min(pause_s * 2, LONGEST_POLL_S), str(error)
            except Exception as error:  # a named edge: this thread decides whether the others count on us
                log.exception("this process could not renew itself")
                pause_s, trouble = LONGEST_POLL_S, type(error).__name__
            else:
                pause_s, trouble = self._poll_s, ""
            left_s = self._presence.until - seconds()
            if left_s <= 0 and not self._presence.stale:
                self._lost(trouble or "it answers too slowly")
            self._woken.wait(min(pause_s, left_s) if left_s > 0 else pause_s)
            self._woken.clear()
        with suppress(OSError):
            self._rows.leave(self._now().epoch)
        self._rows.close()

    def _beat(self) -> None:
        progress = self._now()
        # Out of touch, it has to be seen first that the store takes writes again, and not only reads.
        due = progress.unsaid or self._presence.stale or seconds() - progress.renewed_at >= self._renew_s
        if due and not self._renewed(progress):
            self._lost("the others no longer counted on this process")
            if not self._entered_again(progress):
                return
        if due and progress.fewer and not (self._presence.stale or progress.unsaid):
            progress.fewer = False
            self._told.fewer(None)
        if progress.outstanding is None and seconds() >= progress.again_at:
            self._read(progress)
        if seconds() - progress.pruned_at >= PRUNE_S:
            progress.pruned_at = seconds()
            if self._rows.take(PRUNING, progress.epoch) and self._rows.prune():
                progress.fewer = True

    def _renewed(self, progress: _Progress) -> bool:
        sent, progress.unsaid = seconds(), False
        state = State(progress.position, progress.fed, tuple(self._told.waiting()))
        if not self._rows.renew(progress.epoch, state):
            return False
        progress.renewed_at = sent
        self._count_on_us(sent)
        return True

    def _entered_again(self, progress: _Progress) -> bool:
        """Get a new epoch. Without one, `presence` keeps that under which nothing is written any more."""
        sent = seconds()
        again = self._rows.enter_again(self._member, progress.epoch, progress.position, self._told.held())
        if again.overtaken:
            self._ended = True
            self._told.overtaken(again)
            return False
        progress.epoch, progress.again, progress.fewer = again.epoch, again, True
        progress.renewed_at, progress.outstanding = sent, None
        self._count_on_us(sent)
        return True

    def _read(self, progress: _Progress) -> None:
        losses, sent = self.losses, seconds()
        page = self._rows.page(progress.epoch, progress.position)
        if self._presence.stale:
            if seconds() - sent > self._quick_s:
                return  # no turn would wait that long
            self._presence.away = False
        elif not page.names and page.complete:
            progress.position, progress.fed = page.position, page.read_at
            return
        heard = Heard(page, losses, progress.again)
        progress.again, progress.outstanding = None, heard
        self._told.heard(heard)

    def _count_on_us(self, sent: float) -> None:
        """The others count on us, from the moment on at which we asked them to."""
        self._presence.epoch = self._now().epoch
        self._presence.until = sent + self._rows.lease_s

    def _lost(self, why: str) -> None:
        self.losses += 1
        self._presence.away = self._presence.stale = True
        self._told.lost(why)

    def _now(self) -> _Progress:
        assert self._progress is not None
        return self._progress
