"""Owners are told of budgets once: by one process, over restarts, and as soon as Discord can be reached."""

import logging
from collections.abc import Callable
from pathlib import Path

import pytest

from discoclaw.core.budgets import Book, Limit, Spent
from discoclaw.core.errors import ChatForbidden, ChatUnavailable
from discoclaw.core.purge import erasing
from discoclaw.core.usage import DOLLAR, Payer
from discoclaw.memory.cursors import Cursors
from discoclaw.memory.stores import disks
from discoclaw.store.plain import FilesDisk
from discoclaw.store.port import CURSORS, Disk
from discoclaw.usage.accounts import Telling, notice
from tests.purging import from_ram
from tests.tables import each_row

NOON = 1_763_985_600_000  # 2025-11-24 12:00 UTC


def spent(dollars: float, limit: Limit | None = None, at: int = NOON) -> Spent:
    """What is spent of ten dollars a day."""
    book = Book((limit or Limit("all", "day", 10 * DOLLAR),))
    payer = Payer("1", "10", "100")
    book.spend("1", at, int(dollars * DOLLAR), payer)
    (found,) = book.spent(payer, at)
    return found


class Discord:
    """Takes messages to owners; `failures` come first."""

    def __init__(self, *failures: Exception) -> None:
        self.failures = list(failures)
        self.sent: list[tuple[str, str]] = []

    async def tell(self, owner: str, text: str) -> None:
        if self.failures:
            raise self.failures.pop(0)
        self.sent.append((owner, text))


@pytest.fixture
def telling(tmp_path: Path) -> Callable[..., Telling]:
    """As a process that has just started."""

    def make(discord: Discord, disk: Disk | None = None, owners: str = "7") -> Telling:
        cursors = Cursors((disk or FilesDisk(tmp_path)).documents(CURSORS))
        return Telling(owners, discord.tell, cursors, clock=lambda: NOON)

    return make


class TestOwners:
    async def test_are_told_once_for_each_stage_and_period(self, telling: Callable[..., Telling]) -> None:
        discord = Discord()
        made = telling(discord, owners="78")
        for dollars in (8, 8.5, 11, 12):
            made.news(spent(dollars))
        await made.settle()
        assert [owner for owner, _ in discord.sent] == ["7", "8", "7", "8"]
        again = telling(discord, owners="78")
        again.news(spent(13))
        await again.settle()
        assert len(discord.sent) == 4
        again.news(spent(13, at=NOON + 86_400_000))
        await again.settle()
        assert len(discord.sent) == 6

    async def test_are_told_by_one_of_several_processes(
        self, telling: Callable[..., Telling], database: str, tmp_path: Path
    ) -> None:
        discord = Discord()
        with disks(database, tmp_path / "a") as first, disks(database, tmp_path / "b") as second:
            first.open()
            second.open()
            both = [telling(discord, each.used) for each in (first, second)]
            for one in both:
                one.news(spent(8))
            for one in both:
                await one.settle()
        assert len(discord.sent) == 1

    async def test_are_told_of_the_first_person_only(self, telling: Callable[..., Telling]) -> None:
        discord, limit = Discord(), Limit("person", "day", 10 * DOLLAR)
        made = telling(discord)
        made.news(spent(8, limit))
        made.news(Spent(limit, "2", 9 * DOLLAR, spent(8, limit).span))
        await made.settle()
        assert len(discord.sent) == 1

    async def test_are_told_later_if_discord_is_away(
        self, telling: Callable[..., Telling], caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.WARNING)
        discord = Discord(ChatUnavailable("away"))
        made = telling(discord)
        made.news(spent(8))
        await made.settle()
        assert discord.sent == [] and "is nearly spent ($8.00 so far)" in caplog.text
        assert "until it begins anew at 2025-11-25T00:00:00.000Z." in caplog.text
        made._worker.hurry()
        await made.settle()
        assert len(discord.sent) == 1

    async def test_are_not_told_of_somebody_who_was_erased_meanwhile(
        self, telling: Callable[..., Telling]
    ) -> None:
        discord = Discord(ChatUnavailable("away"))
        made = telling(discord)
        made.news(spent(8, Limit("person", "day", 10 * DOLLAR)))
        await made.settle()
        from_ram(made, erasing("user-1", NOON))
        made._worker.hurry()
        await made.settle()
        assert discord.sent == []

    async def test_who_take_no_messages_keep_nobody_else_from_it(
        self, telling: Callable[..., Telling], caplog: pytest.LogCaptureFixture
    ) -> None:
        discord = Discord(ChatForbidden("no DMs"))
        made = telling(discord, owners="78")
        made.news(spent(8))
        await made.settle()
        assert [owner for owner, _ in discord.sent] == ["8"]
        assert "the owner 7 can't be told about a budget: no DMs" in caplog.text

    async def test_are_told_although_the_disk_fails(
        self, telling: Callable[..., Telling], tmp_path: Path
    ) -> None:
        (tmp_path / CURSORS).write_text("not a folder")
        discord = Discord()
        made = telling(discord)
        made.news(spent(8))
        await made.settle()
        assert len(discord.sent) == 1


class TestTheText:
    @each_row(
        ("scope", "begins"),
        [
            (
                "all",
                "The budget of $10.00 a day is spent ($11.00 so far). Answers come from memory alone until",
            ),
            ("server", "The budget of $10.00 a day for the server 100 is spent"),
            ("channel", "The budget of $10.00 a day for <#10> is spent"),
            ("person", "<@1> is the first person who has spent the budget of $10.00 a day ($11.00 so far)."),
        ],
    )
    def test_says_which_budget(self, scope: str, begins: str) -> None:
        limit = Limit(scope, "day", 10 * DOLLAR)  # type: ignore[arg-type] # one of them
        text = notice(spent(11, limit))
        assert text.startswith(begins) and text.endswith(f" until it begins anew <t:{1764028800}:R>.")

    def test_has_no_markup_of_discord_in_the_log(self) -> None:
        for scope in ("channel", "person"):
            text = notice(spent(11, Limit(scope, "day", 10 * DOLLAR)), plain=True)  # type: ignore[arg-type] # one of them
            assert "<" not in text
            assert text.endswith(" until it begins anew at 2025-11-25T00:00:00.000Z.")
