"""`/usage`: what models were used for, shown to the one who asks and to nobody else."""

import csv
import io
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from PIL import Image

from discoclaw.core.budgets import Span
from discoclaw.core.usage import Call, Payer, Record
from discoclaw.memory.disk.port import USAGE
from discoclaw.usage.log import UsageLog
from tests.app.conftest import GUILD_ID, Start, World
from tests.contract.cards import every_page, parts, said
from tests.core.calls import DAY, call
from tests.servers import messages_api as api
from tests.servers.messages_api import Behaviour, MessagesServer, Received

QUIET = {"extraction_enabled": False, "summary_enabled": False}


def written(world: World, records: Iterable[Record]) -> None:
    """Have calls in the log, as if they had been made at these times."""
    UsageLog(world.memory.disk).hold(world._now(), None).end(records)


def calls(world: World) -> list[Call]:
    """Ann talked today and last week, Bob for more, and something was tidied for nobody."""
    now, server = world._now(), str(GUILD_ID)
    ann = Payer(str(world.ann.id), str(world.general.id), server)
    bob = Payer(str(world.bob.id))
    return [
        call(now, 340_000_000, payer=ann, tokens=(1000, 200)),
        call(now - 7 * DAY, 1_000_000, payer=ann, purpose="extraction", model="haiku", tokens=(400, 10)),
        call(now - 35 * DAY, 9_000_000_000, payer=ann),
        call(now - DAY, 2_000_000_000, payer=bob, tokens=(9000, 1000)),
        call(now - 2 * DAY, 0, payer=Payer(), purpose="tidying", model="local", tokens=(50_000, 0)),
    ]


async def card(world: World, person: Any = None, **options: Any) -> Any:
    return (await (person or world.ann).slash(world.general, "usage", **options)).response


async def picture(message: Any) -> Image.Image:
    """The picture below an answer."""
    (attached,) = message.attachments
    return Image.open(io.BytesIO(await attached.read()))


def offered(message: Any) -> dict[str, str]:
    """The views in the menu of a card: their names, and the value of each."""
    (menu,) = (one for one in parts(message) if one["type"] == 3)
    return {one["label"]: one["value"] for one in menu["options"]}


async def choose(person: Any, message: Any, view: str) -> Any:
    (menu,) = (one for one in parts(message) if one["type"] == 3)
    return await person.select(message, [offered(message)[view]], custom_id=menu["custom_id"])


def priced(folder: Path) -> Path:
    """A file in which a million tokens cost a dollar."""
    path = folder / "prices.toml"
    path.write_text('["claude-sonnet-5-5"]\ninput = 1\noutput = 1\n')
    return path


class TestOnesOwn:
    async def test_is_what_one_used_today_this_month_and_lately(self, start: Start) -> None:
        async with start() as world:
            written(world, calls(world))
            shown = await card(world)
            assert shown.flags.ephemeral
            assert "### Your usage\n**Today**: $0.34\n-# 1 call · 1.0k tokens in, 200 out" in said(shown)
            assert "**The last 30 days**: $0.34\n-# 2 calls · 1.4k tokens in, 210 out" in said(shown)
            assert (await picture(shown)).size[0] == 960
            assert not [one for one in offered(shown) if one.startswith("Everybody")]

    async def test_has_views_by_what_it_was_for(self, start: Start) -> None:
        async with start() as world:
            written(world, calls(world))
            shown = await card(world)
            await choose(world.ann, shown, "Mine by purpose")
            assert "### Your usage by purpose\n-# The last 30 days: $0.34 · 2 calls" in said(shown)
            assert "**answers**: $0.34\n-# 1 call · 1.0k tokens in, 200 out · 99 %" in said(shown)
            assert "**learning**: $0.001\n" in said(shown)
            await choose(world.ann, shown, "Mine by channel")
            assert f"**<#{world.general.id}>**: $0.34" in said(shown)
            await choose(world.ann, shown, "Mine by day")
            days = [one for one in said(shown).splitlines() if one.startswith("**")]
            assert days == sorted(days, reverse=True)
            assert len(days) == 2
            await choose(world.ann, shown, "Mine")
            assert "**This month**" in said(shown)
            assert len(shown.attachments) == 1

    async def test_is_nothing_before_the_first_call(self, start: Start) -> None:
        async with start(commands_enabled=True, store="none") as world:
            assert "**Today**\n-# no calls" in said(await card(world))
            assert "No calls in the last 30 days" in said(await card(world, by="model"))

    async def test_says_what_is_free_and_what_is_estimated(self, start: Start) -> None:
        async with start() as world:
            ann = Payer(str(world.ann.id))
            free = call(world._now(), 0, payer=ann, model="qwen")
            written(world, [replace(free, counted=False)])
            assert "**Today**: free\n-# 1 call" in said(await card(world))
            assert "The tokens of 1 call are an estimate" in said(await card(world))

    async def test_of_somebody_who_opted_out_is_not_written_down(self, start: Start) -> None:
        async with start() as world:
            await world.ann.slash(world.general, "memory data optout")
            assert "You have opted out, so I don't write down" in said(await card(world))

    async def test_that_cannot_be_read_is_said_to_be_so(self, start: Start) -> None:
        async with start() as world:
            written(world, calls(world))
            log = next((world.memory.disk.documents(USAGE).folder).iterdir())
            content = log.read_bytes()
            log.unlink()
            log.mkdir()
            assert "try again later" in said(await card(world))
            log.rmdir()
            log.write_bytes(content)
            assert "**Today**: $0.34" in said(await card(world))


class TestAsText:
    async def test_goes_to_a_dm_if_others_read_along(self, start: Start) -> None:
        async with start() as world:
            written(world, calls(world))
            await world.ann.send(world.general, "!memory usage")
            assert world.answer(world.general) == "I sent it to you in a DM."
            dm = world.ann_dm.last_message
            assert dm.content.startswith(f"-# You asked for this in <#{world.general.id}>.\n### Your usage")
            assert "**Today**: $0.34" in dm.content
            assert (await picture(dm)).size[0] == 960

    async def test_is_answered_in_a_dm_at_once(self, start: Start) -> None:
        async with start() as world:
            written(world, calls(world))
            await world.ann.send_dm("!memory usage model")
            dm = world.ann_dm.last_message
            assert dm.content.startswith("### Your usage by model")
            assert "**opus**: $0.34" in dm.content
            assert len(dm.attachments) == 1

    async def test_names_the_other_way_to_somebody_with_closed_dms(self, start: Start) -> None:
        async with start() as world:
            written(world, calls(world))
            path = f"/channels/{world.ann_dm.id}/messages"
            world.env.inject_error("POST", path, status=403, code=50007, times=None)
            await world.ann.send(world.general, "!memory usage")
            assert world.answer(world.general).startswith("I can't send you DMs")
            assert world.general.last_message.attachments == []

    async def test_is_one_message_however_much_there_is(self, start: Start) -> None:
        async with start(owners=frozenset()) as world:
            ann = str(world.ann.id)
            some = [
                call(world._now(), 9_999_999_999 + n, payer=Payer(ann), model=f"*{n}`" * 40)
                for n in range(40)
            ]
            written(world, some)
            await world.ann.send_dm("!memory usage model")
            assert "and 28 more: `/usage`" in world.ann_dm.last_message.content
            shown = await card(world, by="model")
            whole = await every_page(world.ann, shown)
            assert all(f"\\*{n}\\`\\*" in whole for n in range(40))


class TestTakenAlong:
    async def test_is_a_file_with_ones_own_calls_also_where_memory_is_off(self, start: Start) -> None:
        async with start(durable_enabled=False) as world:
            written(world, calls(world))
            await world.ann.send(world.general, "!memory export usage")
            assert world.answer(world.general) == "I sent it to you in a DM (3 calls)."
            (file,) = world.ann_dm.last_message.attachments
            assert file.filename == "usage.csv"
            rows = list(csv.DictReader((await file.read()).decode().splitlines()))
            assert [one["input_tokens"] for one in rows] == ["1000", "400", "1000"]
            refused = await world.ann.slash(world.general, "memory data export", format="json")
            assert "memory is switched off here" in refused.response.content
            theirs = await world.bob.slash(world.dev, "memory data export", format="usage")
            assert theirs.response.content == "I sent it to you in a DM (1 call)."


class TestEverybodys:
    async def test_is_for_owners_only_by_any_way(self, start: Start) -> None:
        async with start() as world:
            written(world, calls(world))
            for options in ({"everybody": True}, {"everybody": True, "by": "person"}):
                refused = await card(world, **options)
                assert said(refused).startswith("Only my owners can see everybody's usage")
            await world.ann.send_dm("!memory usage --everybody")
            assert world.answer(world.ann_dm).startswith("Only my owners")
            mine = said(await card(world, by="person"))
            assert str(world.bob.id) not in mine

    async def test_is_shown_to_an_owner_by_person_channel_purpose_and_day(self, start: Start) -> None:
        async with start() as world:
            await world.restart(owners=frozenset({str(world.ann.id)}))
            written(world, calls(world))
            shown = await card(world, everybody=True)
            assert "### Everybody's usage" in said(shown)
            assert "**The last 30 days**: $2.34\n-# 4 calls" in said(shown)
            await choose(world.ann, shown, "Everybody's by person")
            assert f"**<@{world.bob.id}>**: $2.00" in said(shown)
            assert f"**<@{world.ann.id}>**: $0.34" in said(shown)
            assert "**nobody in particular**: free" in said(shown)
            await choose(world.ann, shown, "Everybody's by channel")
            assert f"**<#{world.general.id}>**: $0.34" in said(shown)
            await choose(world.ann, shown, "Everybody's by server")
            assert "**Home**: $0.34" in said(shown)
            await choose(world.ann, shown, "Everybody's by purpose")
            assert "**tidying**: free\n-# 1 call · 50.0k tokens in, 0 out · 0 %" in said(shown)
            await choose(world.ann, shown, "Mine")
            assert "**The last 30 days**: $0.34" in said(shown)

    async def test_is_gone_from_the_card_of_somebody_who_is_no_owner_any_more(self, start: Start) -> None:
        async with start() as world:
            await world.restart(owners=frozenset({str(world.ann.id)}))
            written(world, calls(world))
            shown = await card(world)
            await world.restart(owners=frozenset())
            pressed = await choose(world.ann, shown, "Everybody's by person")
            assert "Only my owners" in pressed.followups[-1].content
            assert str(world.bob.id) not in said(shown)

    async def test_has_pages(self, start: Start) -> None:
        async with start() as world:
            await world.restart(owners=frozenset({str(world.ann.id)}))
            written(world, [call(world._now(), n, payer=Payer(str(7000 + n))) for n in range(1, 36)])
            shown = await card(world, by="person", everybody=True)
            assert said(shown).count("<@70") == 10
            whole = await every_page(world.ann, shown)
            assert all(f"<@{7000 + n}>" in whole for n in range(1, 36))


class Serving:
    """What the loopback model serves: another number of tokens with each answer, and all of them summed."""

    def __init__(self) -> None:
        self.served: list[dict[str, int]] = []

    def __call__(self, received: Received) -> Behaviour:
        number = len(self.served)
        used = {"input_tokens": 11 + number, "output_tokens": 3 + 2 * number}
        self.served.append(used)
        return api.text("Fine.", usage=used)

    def line(self) -> str:
        """What a card says about all that; an answer that was asked for again is one call."""
        read, wrote = (sum(one[name] for one in self.served) for name in ("input_tokens", "output_tokens"))
        assert max(read, wrote) < 1000  # else the card rounds
        return f" calls · {read} tokens in, {wrote} out"


class TestARealConversation:
    async def test_is_shown_to_the_token_as_the_model_server_counted(
        self, start: Start, server: MessagesServer
    ) -> None:
        serving = server.default = Serving()
        async with start(base_url=server.base_url) as world:
            await world.restart(owners=frozenset({str(world.ann.id)}))
            await world.ann.send(world.general, "I keep bees")
            await world.settle()
            before = serving.line()
            assert before in said(await card(world))
            await world.ann.send(world.dev, "How are they?")
            await world.bob.send_dm("And my cat?")
            await world.settle()
            whole = await card(world, everybody=True)
            assert said(whole).count(serving.line()) == 3  # today, this month, the last thirty days
            mine = await card(world, by="purpose")
            assert "**answers**: free\n-# 2 calls" in said(mine)
            assert "**learning**: free" in said(mine)
            await choose(world.ann, whole, "Everybody's by person")
            assert f"**<@{world.bob.id}>**: free" in said(whole)
            await world.restart()
            assert serving.line() in said(await card(world, everybody=True))


class TestBudgets:
    async def test_that_are_spent_say_so(self, start: Start, server: MessagesServer, tmp_path: Path) -> None:
        server.default = lambda _: api.text("Fine.", usage={"input_tokens": 100_000, "output_tokens": 0})
        async with start(
            base_url=server.base_url, prices=priced(tmp_path), budget="person 0.05/day", **QUIET
        ) as world:
            await world.ann.send(world.general, "hello")
            shown = said(await card(world))
            assert "**Your budget for today**: spent\n-# 100 % spent · begins anew <t:" in shown
            assert "**Your budget for today**: $0.05 of $0.05 left" in said(await card(world, world.bob))

    async def test_are_shown_with_what_is_left_and_when_they_begin_anew(
        self, start: Start, server: MessagesServer, tmp_path: Path
    ) -> None:
        server.default = lambda _: api.text("Fine.", usage={"input_tokens": 100_000, "output_tokens": 0})
        budget = "4/day, channel 40/month, person 1/day, person 20/month"
        async with start(base_url=server.base_url, prices=priced(tmp_path), budget=budget, **QUIET) as world:
            await world.ann.send(world.general, "hello")
            await world.bob.send(world.general, "hello")
            shown = said(await card(world))
            tomorrow = Span.at(world._now(), "day").end // 1000
            assert "**Your budget for today**: $0.90 of $1.00 left\n-# 10 % spent" in shown
            assert f"begins anew <t:{tomorrow}:R>" in shown
            assert "**Your budget for this month**: $19.90 of $20.00 left" in shown
            assert "**Everybody's budget for today**: 95 % left" in shown
            assert "**Budget of this channel for this month**: 100 % left" in shown
            assert "$0.20" not in shown and "$0.2 " not in shown
            await world.restart(owners=frozenset({str(world.bob.id)}))
            theirs = said(await card(world, world.bob, everybody=True))
            assert "**Everybody's budget for today**: $3.80 of $4.00 left" in theirs
            assert f"**Budget of <@{world.ann.id}> for today**: $0.90 of $1.00 left" in theirs
            assert f"**Budget of <#{world.general.id}> for this month**: $39.80 of $40.00 left" in theirs
