"""Whether the bot is ready, and what it measures: asked over HTTP while each thing breaks and recovers."""

import asyncio
import json
import logging
import os
import re
import time
from collections.abc import Mapping
from pathlib import Path

import aiohttp
import pytest
from prometheus_client.parser import text_string_to_metric_families

from discoclaw.app import build
from discoclaw.app.followers import Relays
from discoclaw.app.monitoring import LoopLag, Watch, hanging
from discoclaw.core.errors import ModelOverloaded, ModelUnreachable, SettingsError
from discoclaw.core.seen import NEWS_MS, Seen
from discoclaw.memory.disk.files import read_in_thread
from discoclaw.models.anthropic.provider import AnthropicModel
from discoclaw.models.offline.model import OfflineModel
from discoclaw.settings_types import Listen
from discoclaw.web.listening import Listener
from discoclaw.work import Worker
from tests.app.conftest import Start, World, running, settings_for
from tests.app.models import Scripted
from tests.app.of_refused_fields import TELLING, rambling
from tests.memory.child import full_at
from tests.memory.sharing import until
from tests.servers.messages_api import MessagesServer, refusing, text
from tests.servers.postgres import Postgres

ANYWHERE = Listen("127.0.0.1", 0)
Samples = Mapping[tuple[str, frozenset[tuple[str, str]]], float]


async def get(world: World, path: str) -> tuple[int, str]:
    """What a program gets that watches the bot."""
    listener = running(world.app, Listener)
    url = f"http://127.0.0.1:{listener.port}{path}"
    headers = {"Host": "bot.example"}  # as behind a proxy
    async with aiohttp.ClientSession() as session, session.get(url, headers=headers) as answer:
        return answer.status, await answer.text()


async def ready(world: World) -> tuple[bool, dict[str, str]]:
    """Whether it is ready, and the state of each finding."""
    status, body = await get(world, "/readyz")
    found = json.loads(body)
    assert status == (200 if found["ready"] else 503)
    assert all(set(one) == {"name", "state", "text", "wayOut"} for one in found["findings"])
    return found["ready"], {one["name"]: one["state"] for one in found["findings"]}


async def state(world: World, name: str) -> tuple[bool, str]:
    """Whether it is ready, and the state of one finding."""
    is_ready, found = await ready(world)
    return is_ready, found[name]


async def measured(world: World) -> Samples:
    status, body = await get(world, "/metrics")
    assert status == 200
    families = text_string_to_metric_families(body)
    return {(one.name, frozenset(one.labels.items())): one.value for it in families for one in it.samples}


def value(samples: Samples, name: str, **labels: str) -> float:
    return samples[f"discoclaw_{name}", frozenset(labels.items())]


class TestAConversation:
    async def test_is_counted_as_it_was(
        self, start: Start, server: MessagesServer, model: AnthropicModel
    ) -> None:
        usage = {"input_tokens": 11, "output_tokens": 7, "cache_read_input_tokens": 3}
        async with start(
            model, metrics=ANYWHERE, respond_mode="mention", durable_every=100, summary_every=100
        ) as world:
            for words in ("one", "two"):
                server.script(text(f"answer {words}", usage=usage))
                await world.ann.send(world.general, f"<@{world.app.client.me().id}> {words}")
            await world.bob.send(world.general, "just talking")
            await world.ann.send(world.general, "!memory remember I like tea")
            await world.settle()
            found = await measured(world)
        assert value(found, "messages_heard_total") == 3
        assert value(found, "messages_asked_total") == 2
        assert value(found, "answers_total", ending="whole") == 2
        assert value(found, "answers_total", ending="cut") == 0
        assert value(found, "first_shown_seconds_count") == 2
        assert value(found, "answer_seconds_count") == 2
        assert value(found, "answer_seconds_bucket", le="+Inf") == 2
        assert value(found, "commits_total") == 1
        assert value(found, "ready") == 1
        counted = (
            (dict(labels), one) for (name, labels), one in found.items() if name.endswith("tokens_total")
        )
        tokens = {labels["kind"]: one for labels, one in counted}
        assert tokens == {"input": 22, "output": 14, "cache_read": 6, "cache_write": 0}
        assert value(found, "worker_jobs_total", worker="inboxes", outcome="failed") == 0
        assert value(found, "worker_jobs_total", worker="inboxes", outcome="done") > 0
        assert found["process_open_fds", frozenset()] > 0

    async def test_that_gets_no_answers_is_counted_by_the_reason(self, start: Start) -> None:
        words = (ModelOverloaded("busy"), ModelOverloaded("busy"), "", "fine")
        async with start(Scripted(*words), metrics=ANYWHERE) as world:
            for number in range(4):
                await world.ann.send(world.general, f"question {number}")
            found = await measured(world)
        assert value(found, "messages_asked_total") == 4
        assert value(found, "unanswered_total", reason="ModelOverloaded") == 2
        assert value(found, "answers_total", ending="whole") == 1
        reasons = [one for (name, _), one in found.items() if name == "discoclaw_unanswered_total"]
        assert sum(reasons) == 3

    async def test_leaves_no_name_no_id_and_no_word_in_what_is_measured(self, start: Start) -> None:
        async with start(metrics=ANYWHERE) as world:
            await world.ann.send(world.general, "!memory remember I like xylophones")
            await world.ann.send(world.general, "do I like xylophones?")
            await world.settle()
            everything = (await get(world, "/metrics"))[1] + (await get(world, "/readyz"))[1]
            found = await measured(world)
        ids = (str(world.general.id), str(world.ann.id), str(world.folder))
        for secret in ("xylophone", "ann", "general", *ids):
            assert not re.search(rf"\b{re.escape(secret)}", everything, re.IGNORECASE), secret
        ours = [labels for (name, labels) in found if name.startswith("discoclaw_")]
        values = {one for labels in ours for key, one in labels if key not in ("le", "version")}
        assert [one for one in values if not re.fullmatch(r"[A-Za-z][A-Za-z0-9 ._-]{1,40}", one)] == []


class TestABadAddress:
    async def test_in_use_stops_the_start_with_one_line(self, start: Start) -> None:
        async with start(metrics=ANYWHERE) as world:
            listener = running(world.app, Listener)
            taken = settings_for(world.folder / "other", metrics=Listen("127.0.0.1", listener.port))
            with pytest.raises(
                SettingsError, match=rf"^DISCOCLAW_METRICS=127.0.0.1:{listener.port}: [^\n]+$"
            ):
                async with build(taken, model=OfflineModel()):
                    pass


class TestAWorker:
    async def test_that_hangs_makes_the_bot_unready_though_nobody_registered_it(self, start: Start) -> None:
        gate = asyncio.Event()

        async def hang(key: str) -> None:
            await gate.wait()

        async with start(metrics=ANYWHERE) as world:
            worker = Worker("a new worker", hang, most_s=0.0)
            assert (await ready(world))[0]
            worker.note("something")
            async with asyncio.timeout(10):
                while (await ready(world))[0]:
                    pass
            assert (await ready(world))[1]["a new worker"] == "bad"
            assert "background work" not in (await ready(world))[1]
            gate.set()
            await worker.close()
            assert (await ready(world))[0]


class TestTheModel:
    async def test_that_is_down_makes_it_unready_until_it_answers(self, start: Start) -> None:
        async with start(Scripted("fine", ModelUnreachable("no route"), "back"), metrics=ANYWHERE) as world:
            assert (await ready(world))[1]["the model"] == "unknown"
            assert (await ready(world))[0]
            await world.ann.send(world.general, "one")
            assert (await ready(world))[1]["the model"] == "good"
            await world.ann.send(world.general, "two")
            assert await state(world, "the model") == (False, "bad")
            await world.ann.send(world.general, "three")
            assert (await ready(world))[0]

    async def test_says_what_its_server_refuses_and_whether_it_learns(
        self, start: Start, server: MessagesServer
    ) -> None:
        server.default = refusing(TELLING["serde's"], rambling)
        async with start(base_url=server.base_url, metrics=ANYWHERE) as world:
            for _ in range(3):
                await world.ann.send(world.general, "one")
                await world.settle()
            is_ready, found = await ready(world)
            assert is_ready
            names = ("the model", "the model for extraction", "cache_control", "output_config")
            assert [found[name] for name in names] == ["good", *["warning"] * 3]

    def test_that_nobody_has_asked_since_it_failed_may_have_recovered(self) -> None:
        now = 1_000_000
        seen = Seen(lambda: now)
        seen.failed("answer", ModelUnreachable("at 10.0.0.7"))
        found = seen.finding("the model", "answer", "wait")
        assert (found.state, found.text) == (
            "bad",
            "it failed 0 s ago: no connection to the model, or its stream broke off",
        )
        now += NEWS_MS
        assert seen.finding("the model", "answer", "wait").state == "warning"
        seen.answered("answer")
        assert seen.finding("the model", "answer", "wait").state == "good"


class TestTheStore:
    async def test_on_a_full_disk_makes_it_unready_until_it_can_be_written(self, start: Start) -> None:
        async with start(Scripted("an answer"), metrics=ANYWHERE) as world:
            assert (await ready(world))[1]["the store"] == "good"
            with full_at(10):
                await world.ann.send(world.general, "!memory remember I like cake")
            assert await state(world, "the store") == (False, "bad")
            await until_ready(world)  # nobody writes anything now but the one who looks

    async def test_out_of_reach_makes_it_unready_until_it_is_back(
        self, start: Start, database: str, postgres: Postgres
    ) -> None:
        async with start(Scripted("hello"), metrics=ANYWHERE, store=database) as world:
            assert (await ready(world))[0]
            postgres.kill9()
            await until(lambda: not world.app.storage.processes.in_touch)
            assert (await ready(world))[1]["the store"] == "bad"
            assert value(await measured(world), "store_in_touch") == 0
            postgres.start()
            await until(lambda: world.app.storage.processes.in_touch)
            await until_ready(world)


async def until_ready(world: World) -> None:
    async with asyncio.timeout(30):
        while not (await ready(world))[0]:
            pass


class TestADiskThatHangs:
    async def test_is_found_by_the_call_that_does_not_return(self, tmp_path: Path) -> None:
        pipe = tmp_path / "pipe"
        os.mkfifo(pipe)
        reading = asyncio.ensure_future(read_in_thread(pipe.read_bytes))
        await until(lambda: hanging(0.0, 0.0)[0].state == "bad")
        assert hanging(0.0, 3600.0)[0].state == "warning"
        assert str(tmp_path) not in hanging(0.0, 0.0)[0].text
        handle = os.open(pipe, os.O_RDWR | os.O_NONBLOCK)
        os.write(handle, b"it is back")
        os.close(handle)
        assert await reading == b"it is back"
        await until(lambda: hanging(0.0, 0.0)[0].state == "good")  # its thread has to take note of it


class TestTheEventLoop:
    async def test_that_was_blocked_is_told_and_the_log_says_where(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        lag = LoopLag(every_s=0.001, blocked_s=0.05)
        await lag.start()
        until_told = time.perf_counter() + 10
        while "it is here" not in caplog.text and time.perf_counter() < until_told:
            time.sleep(0.01)  # noqa: ASYNC251 - this blocks the loop, which is what is to be found
        assert "line" in caplog.text and "test_that_was_blocked_is_told" in caplog.text
        await until(lambda: lag.finding().state == "warning")
        await lag.close()
        assert lag.finding().text.startswith("it was blocked for")
        assert lag.times.count > 0


class TestTheLog:
    async def test_says_what_becomes_bad_and_when_it_is_good_again(
        self, start: Start, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.INFO, "discoclaw.app.monitoring")
        async with start(Scripted(ModelUnreachable("no route"), "back")) as world:
            watch = running(world.app, Watch)
            await world.ann.send(world.general, "one")
            watch.look()
            watch.look()
            await world.ann.send(world.general, "two")
            watch.look()
        said = [one.getMessage() for one in caplog.records if one.name == "discoclaw.app.monitoring"]
        assert [one.split(": it")[0] for one in said] == ["not ready: the model", "ready again: the model"]


class TestRelays:
    @pytest.mark.parametrize(
        ("relays", "state", "text"),
        [
            (Relays(), "good", "another process mirrors"),
            (Relays(2, 0, 3, 60_000), "good", "2 of 2 connected, 3 events wait"),
            (Relays(1, 1), "warning", "1 of 2 connected, 0 events wait"),
            (
                Relays(2, 0, 3, 2 * 3_600_000, 1),
                "warning",
                "2 of 2 connected, 3 events wait, the oldest for 2 h, 1 were refused for good",
            ),
        ],
    )
    def test_are_a_warning_if_something_does_not_arrive(self, relays: Relays, state: str, text: str) -> None:
        found = relays.finding()
        assert (found.state, found.text) == (state, text)
