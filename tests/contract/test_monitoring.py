"""What programs that watch the bot are told over HTTP: whether it is ready, and what it measures."""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.contract.visitor import free_port
from tests.contract.world import Start, World
from tests.memory.child import full_at
from tests.servers.messages_api import failure, text
from tests.servers.postgres import Postgres

ROOT = Path(__file__).parents[2]
NAME = re.compile(r"\b(?:discoclaw|process)_[a-z_]+")
DASHBOARD, PAGE = ROOT / "deploy/grafana.json", ROOT / "docs/admins/monitoring.md"
DOWN = failure(401, "authentication_error")  # an error that isn't tried again
QUIET: dict[str, Any] = {"durable_every": 100, "summary_every": 100}


class Watcher:
    """A program that watches the bot."""

    def __init__(self, port: int, http: aiohttp.ClientSession) -> None:
        self.port, self._http = port, http

    async def get(self, path: str) -> tuple[int, str]:
        headers = {"Host": "bot.example"}  # as behind a proxy
        async with self._http.get(f"http://127.0.0.1:{self.port}{path}", headers=headers) as answer:
            return answer.status, await answer.text()

    async def ready(self, name: str) -> tuple[bool, str]:
        """Whether the bot is ready, and the state of one finding."""
        status, body = await self.get("/readyz")
        found = json.loads(body)
        assert status == (200 if found["ready"] else 503)
        assert all(set(one) == {"name", "state", "text", "wayOut"} for one in found["findings"])
        return found["ready"], {one["name"]: one["state"] for one in found["findings"]}[name]

    async def becomes(self, name: str, ready: bool, state: str) -> None:
        """Wait until a finding is so."""
        async with asyncio.timeout(30):
            while await self.ready(name) != (ready, state):
                pass

    async def measured(self) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
        families = text_string_to_metric_families((await self.get("/metrics"))[1])
        return {(one.name, frozenset(one.labels.items())): one.value for it in families for one in it.samples}


@asynccontextmanager
async def watched(start: Start, **changes: Any) -> AsyncIterator[tuple[World, Watcher]]:
    port = free_port()
    async with start(metrics=f"127.0.0.1:{port}", **changes) as world, aiohttp.ClientSession() as http:
        yield world, Watcher(port, http)


class TestWhatIsMeasured:
    async def test_counts_talk_answers_failures_and_tokens_and_tells_nothing_of_anybody(
        self, start: Start
    ) -> None:
        usage = {"input_tokens": 11, "output_tokens": 7, "cache_read_input_tokens": 3}
        async with watched(start, respond_mode="mention", **QUIET) as (world, watcher):
            world.brain.says(text("one", usage=usage), text("two", usage=usage), DOWN, DOWN)
            for words in ("one", "two", "xylophones", "four"):
                await world.says(world.ann, world.general, f"{world.mention} {words}")
            await world.says(world.bob, world.general, "just talking")
            await world.remember(world.ann, "I like xylophones")
            found = await watcher.measured()
            everything = (await watcher.get("/metrics"))[1] + (await watcher.get("/readyz"))[1]

        def value(name: str, **labels: str) -> float:
            return found[f"discoclaw_{name}", frozenset(labels.items())]

        assert (value("messages_heard_total"), value("messages_asked_total")) == (5, 4)
        assert (value("answers_total", ending="whole"), value("answers_total", ending="cut")) == (2, 0)
        unanswered = [one for (name, _), one in found.items() if name == "discoclaw_unanswered_total"]
        assert sum(unanswered) == 2
        assert value("answer_seconds_count") == value("answer_seconds_bucket", le="+Inf") >= 2
        assert value("commits_total") == 1
        tokens = {
            dict(labels)["kind"]: one
            for (name, labels), one in found.items()
            if name.endswith("tokens_total")
        }
        assert tokens["cache_read"] == 6 and tokens["input"] >= 22 and tokens["output"] >= 14
        assert value("worker_jobs_total", worker="inboxes", outcome="failed") == 0
        assert value("worker_jobs_total", worker="inboxes", outcome="done") > 0
        assert found["process_open_fds", frozenset()] > 0
        ids = (str(world.general.id), str(world.ann.id), str(world.folder))
        for secret in ("xylophone", "ann", "general", *ids):
            assert not re.search(rf"\b{re.escape(secret)}", everything, re.IGNORECASE), secret
        labels = [labels for (name, labels) in found if name.startswith("discoclaw_")]
        values = {one for some in labels for key, one in some if key not in ("le", "version")}
        assert [one for one in values if not re.fullmatch(r"[A-Za-z][A-Za-z0-9 ._-]{1,40}", one)] == []

    async def test_is_what_the_documents_explain_and_the_dashboard_shows(self, start: Start) -> None:
        async with watched(start) as (_, watcher):
            body = (await watcher.get("/metrics"))[1]
        families = {one.name: one.type for one in text_string_to_metric_families(body)}
        ends = {"counter": ["_total"], "histogram": ["_bucket", "_sum", "_count"]}
        stored = {f"{name}{end}" for name, kind in families.items() for end in ends.get(kind, [""])}
        rows = re.findall(r"^\| `(discoclaw_\w+)` \| (\w+) \|", PAGE.read_text(), re.MULTILINE)
        listed = {re.sub("_total$", "", name): kind for name, kind in rows}
        assert listed == {name: kind for name, kind in families.items() if name.startswith("discoclaw_")}
        alerts = re.findall(r"```yaml\n(.*?)```", PAGE.read_text(), re.DOTALL)
        assert {name for one in alerts for name in NAME.findall(one)} <= stored
        panels = json.loads(DASHBOARD.read_text())["panels"]
        asked = [one["expr"] for panel in panels for one in panel.get("targets", ())]
        used = {name for one in asked for name in NAME.findall(one)}
        assert used <= stored
        ours = {re.sub("_(bucket|sum|count)$", "", one) for one in stored if one.startswith("discoclaw_")}
        assert ours <= {re.sub("_bucket$", "", one) for one in used}
        cells = [
            (x, y)
            for at in (panel["gridPos"] for panel in panels)
            for x in range(at["x"], at["x"] + at["w"])
            for y in range(at["y"], at["y"] + at["h"])
        ]
        assert len(cells) == len(set(cells)) and max(x for x, _ in cells) < 24


class TestReady:
    async def test_it_is_not_while_the_model_fails_or_the_disk_is_full(self, start: Start) -> None:
        async with watched(start, **QUIET) as (world, watcher):
            assert await watcher.ready("the model") == (True, "unknown")
            world.brain.says("fine", DOWN, "back")
            for seen in ((True, "good"), (False, "bad"), (True, "good")):
                await world.says(world.ann, world.general, "hello")
                assert await watcher.ready("the model") == seen
            with full_at(10):
                await world.remember(world.ann, "I like cake")
                assert await watcher.ready("the store") == (False, "bad")
            await watcher.becomes("the store", True, "good")  # nobody writes now but the one who looks

    async def test_it_warns_if_the_model_learns_nothing(self, start: Start) -> None:
        async with watched(start) as (world, watcher):
            world.brain.writes("upserts", text("I'm sorry, I can't."))
            for _ in range(3):
                await world.says(world.ann, world.general, "one")
            assert await watcher.ready("the model for extraction") == (True, "warning")

    @pytest.mark.long
    async def test_it_is_not_while_the_database_is_away(
        self, start: Start, database: str, postgres: Postgres
    ) -> None:
        async with watched(start, store=database, **QUIET) as (world, watcher):
            world.brain.says("noted", "yes", about="cat")
            await world.remember(world.ann, "My favourite shell is zsh")
            await world.says(world.ann, world.general, "my cat is called Minka")
            await world.says(world.ann, world.general, "What is my favourite shell, asks the cat?")
            assert "shell is zsh" in world.prompt and "Minka" in world.prompt
            postgres.kill9()
            await watcher.becomes("the store", False, "bad")
            assert (await watcher.measured())["discoclaw_store_in_touch", frozenset()] == 0
            assert await world.says(world.ann, world.general, "And my favourite shell?") == "ok"
            assert "zsh" not in world.prompt and "Minka" not in world.prompt
            postgres.start()
            await watcher.becomes("the store", True, "good")
            await world.says(world.ann, world.general, "What is my favourite shell, again?")
            assert "shell is zsh" in world.prompt
