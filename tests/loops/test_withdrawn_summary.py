"""What a withdrawal leaves of a summary, and what the next run makes of that."""

import asyncio
from pathlib import Path

from discoclaw.core.message import Author
from discoclaw.core.patch import Summary
from discoclaw.core.subject import user_subject
from discoclaw.core.taken_back import Withdrawal, Words, terms_of
from discoclaw.memory.conversations.withdrawn import SummaryWithdrawal
from tests.loops.builders import hear
from tests.loops.test_summary import GENERAL_KEY, summary, turn
from tests.session.scene import ANN, BOB, ME, House, house, said, until


async def withdrawn(home: House, withdrawal: Withdrawal) -> None:
    """What a person takes back leaves the summary in the channel."""
    part = SummaryWithdrawal(home.rolling, home.cursors)
    part.let_go(withdrawal)
    await part.withdraw(withdrawal, [GENERAL_KEY])
    part.withdrawn(withdrawal.subject)


class TestWithdrawing:
    async def test_a_message_of_unknown_words_takes_the_old_summary_with_it(self, tmp_path: Path) -> None:
        home = house(tmp_path, summary_every=1)
        home.model.summaries.append(
            Summary(summary="Decided:\n- 2026-02-02 Ann: calls it Zeppelin\nOpen:\n- 2026-02-02 Bob: lunch?")
        )
        hear(home.loops, [said(10, ANN, text="call it Zeppelin"), said(11, BOB, text="lunch?"), said(12, ME)])
        home.loops.nudge(GENERAL_KEY, ANN.id)
        await home.loops.settle()
        await withdrawn(home, Withdrawal(user_subject(ANN.id), home.clock(), {"10": "10"}, alone=True))
        home.loops.tracks.begin_again(GENERAL_KEY)
        await turn(home, 20, author=BOB)  # the talk before can't be read again
        assert "Zeppelin" not in home.model.summarised[-1]
        assert await summary(home) == "Talk so far."

    async def test_nor_does_any_of_it_stay_for_a_second_one(self, tmp_path: Path) -> None:
        home = house(tmp_path, summary_every=1)
        home.model.summaries.append(Summary(summary="Bob paints. Ann calls it Zeppelin."))
        hear(home.loops, [said(10, ANN), said(11, BOB), said(12, ME)])
        home.loops.nudge(GENERAL_KEY, ANN.id)
        await home.loops.settle()
        known = Withdrawal(user_subject(BOB.id), home.clock(), {"11": "10"}, Words(terms_of("paints")))
        elsewhere = Withdrawal(user_subject(ANN.id), home.clock(), {"10": "11"}, alone=True)
        unknown = Withdrawal(user_subject(ANN.id), home.clock(), {"10": "10"}, alone=True)
        left = []
        for one in (known, elsewhere, unknown):
            await withdrawn(home, one)
            left.append((await home.cursors.get(f"summary-{GENERAL_KEY}"))["base"])
        assert left == ["Ann calls it Zeppelin.", "Ann calls it Zeppelin.", ""]

    async def test_the_name_of_who_wants_no_memory_does_not_come_back_by_a_run(self, tmp_path: Path) -> None:
        home = house(tmp_path, summary_every=1)
        await turn(home, 10, author=BOB)
        home.model.gate = asyncio.Event()
        carl = Author("7", "Carl")
        hear(home.loops, [said(20, carl), said(21, ME)])
        home.loops.nudge(GENERAL_KEY, carl.id)
        await until(lambda: len(home.model.summarised) == 2)
        await withdrawn(home, Withdrawal(user_subject(BOB.id), home.clock(), everything=True))
        home.model.gate.set()
        await home.loops.settle()
        names = (await home.cursors.get(f"people-{GENERAL_KEY}"))["names"]
        assert names == {"7": "Carl"}
