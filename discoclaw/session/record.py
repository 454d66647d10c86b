"""Step 5 of a turn: the answer was sent, and becomes part of the talk."""

from collections.abc import Callable

from discoclaw.core.history import MAIN
from discoclaw.core.message import Me, Said
from discoclaw.core.ports import Clock
from discoclaw.core.redact import PLAIN, Redactor
from discoclaw.core.taken_back import Words, distinctive, terms_of
from discoclaw.loops.schedule import Loops
from discoclaw.memory.withdrawing import Withdrawals
from discoclaw.session.archiving import Archiving
from discoclaw.session.arrival import Arrival
from discoclaw.session.explained import Explained, Shown
from discoclaw.session.prepare import Prepared


class Record:
    """Puts answers into the window, the archive and the loops' backlogs, and records what they rested on."""

    def __init__(
        self,
        loops: Loops,
        archive: Archiving,
        explained: Explained,
        withdrawals: Withdrawals,
        *,
        clock: Clock,
        me: Callable[[], Me],
        redactor: Redactor = PLAIN,
    ) -> None:
        self._loops = loops
        self._archive = archive
        self._explained = explained
        self._withdrawals = withdrawals
        self._clock = clock
        self._me = me
        self._redactor = redactor

    def answer(self, arrival: Arrival, answer_id: str, text: str) -> None:
        """Record a sent answer. Loops get it only if the question may be stored, since it may repeat that.

        An answer with something that the person took back meanwhile, or edited away, is not recorded at all.
        """
        me, window = self._me(), arrival.window
        said = Said(
            answer_id,
            me.id,
            me.name,
            self._redactor.clean(text),
            self._clock(),
            by_us=True,
            to_id=arrival.message.author.id,
            of=arrival.message.asks,
        )
        now, before = arrival.as_edited().message.text, arrival.message.text
        lost = Words(distinctive(before) - terms_of(now) if now != before else frozenset())
        private = arrival.place.hidden
        if lost.hold(said.text) or self._withdrawals.has(said, arrival.message.sent_at, private=private):
            return
        window.remember(said)
        self._archive.hear(said, arrival.place, arrival.session_key)
        if arrival.permission.holds:
            self._loops.hear(said, arrival.place, arrival.session_key, window=window.capacity)

    def reasons(self, arrival: Arrival, answer_id: str, ready: Prepared) -> None:
        """Record what the answer rested on, for people who ask why they were answered like this."""
        used = tuple((one.item.id, one.why) for one in ready.used)
        persona, summary = ready.gathered.items.branch or MAIN, bool(ready.gathered.summary)
        recent = ready.prompt.shown
        files = tuple(ready.attached.kinds.items())
        shown = Shown(arrival.message.id, answer_id, self._clock(), persona, used, summary, recent, files)
        self._explained.note(arrival.session_key, arrival.message.author.id, shown)
