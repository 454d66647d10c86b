"""`discoclaw run` as programs see it that watch it: its endpoints, `status --ready`, and logs as JSON."""

import asyncio
import json
import socket
import sys
from asyncio.subprocess import PIPE

import aiohttp
import pytest
from prometheus_client.parser import text_string_to_metric_families

from discoclaw.cli import ready as asked
from tests.process.house import TOKEN, Bot, House
from tests.servers.messages_api import failure

pytestmark = pytest.mark.asyncio(loop_scope="module")

FORKED = True
DOWN = failure(500, "api_error", retry_after_ms="1")


@pytest.fixture(scope="module")
def at() -> str:
    """An address that nothing else has for now."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        return f"127.0.0.1:{free.getsockname()[1]}"


async def get(at: str, path: str) -> tuple[int, str]:
    async with aiohttp.ClientSession() as session, session.get(f"http://{at}{path}") as answer:
        return answer.status, await answer.text()


async def states(at: str) -> dict[str, str]:
    """What /readyz found, by name."""
    status, body = await get(at, "/readyz")
    found = json.loads(body)
    assert status == (200 if found["ready"] else 503)
    return {one["name"]: one["state"] for one in found["findings"]}


async def until_state(at: str, name: str, wanted: str) -> None:
    async with asyncio.timeout(60):
        while (await states(at)).get(name) != wanted:
            pass


async def watched(house: House, at: str) -> Bot:
    """The bot, connected, with its endpoints at an address. Each test asks for it, so each can run alone."""
    bot = await house.running(DISCOCLAW_METRICS=at, DISCOCLAW_LOG_FORMAT="json")
    await until_state(at, "Discord", "good")
    return bot


async def status_ready(house: House, *words: str, **settings: str) -> tuple[int, str]:
    """The exit code of `discoclaw status --ready`, and what it printed."""
    command = (sys.executable, "-m", "discoclaw", "status", "--ready", *words)
    environment = house.environment(**settings)
    process = await asyncio.create_subprocess_exec(
        *command, cwd=house.folder, env=environment, stdout=PIPE, stderr=PIPE
    )
    printed, complained = await process.communicate()
    return process.returncode or 0, (printed + complained).decode()


class TestWhileItRuns:
    async def test_it_lives_is_ready_and_counts_what_is_said(self, house: House, at: str) -> None:
        await watched(house, at)
        yard = house.discord.add_channel("yard")
        await house.ask(house.ann, yard, "are you there?")
        await house.answered(yard, "ok")
        assert await get(at, "/healthz") == (200, "ok\n")
        assert (await get(at, "/readyz"))[0] == 200
        body = (await get(at, "/metrics"))[1]
        found = {one.name: one.value for it in text_string_to_metric_families(body) for one in it.samples}
        assert found["discoclaw_messages_asked_total"] == 1
        assert found["discoclaw_gateway_latency_seconds"] >= 0
        assert found["process_resident_memory_bytes"] > 0

    async def test_a_container_is_told_so(self, house: House, at: str) -> None:
        await watched(house, at)
        code, printed = await status_ready(house, DISCOCLAW_METRICS=at)
        assert (code, printed.splitlines()[0]) == (0, "Ready.")
        assert "good     Discord: connected" in printed
        code, printed = await status_ready(house, "--json", DISCOCLAW_METRICS=at)
        assert (code, json.loads(printed)["ready"]) == (0, True)

    async def test_a_gateway_that_is_cut_makes_it_unready_until_it_is_back(
        self, house: House, at: str
    ) -> None:
        await watched(house, at)
        async with house.discord.outage():
            await until_state(at, "Discord", "bad")
            code, printed = await status_ready(house, DISCOCLAW_METRICS=at)
            assert code == 1
            assert printed.startswith("Not ready.\n")
            assert "bad      Discord: not connected. To do:" in printed
        await until_state(at, "Discord", "good")
        assert (await get(at, "/readyz"))[0] == 200

    async def test_a_model_server_that_fails_makes_it_unready_until_it_answers(
        self, house: House, at: str
    ) -> None:
        await watched(house, at)
        lane = house.discord.add_channel("lane")
        house.brain.answer("are you down", *[DOWN] * 5)
        await house.ask(house.ann, lane, "are you down?")
        await house.answered(lane)
        await until_state(at, "the model", "bad")
        await house.ask(house.ann, lane, "and now?")
        await house.answered(lane, "ok")
        await until_state(at, "the model", "good")

    async def test_each_line_of_its_log_is_an_object_without_secrets(self, house: House, at: str) -> None:
        bot = await watched(house, at)
        bot.terminate()
        assert await bot.ended() == 0
        lines = [json.loads(one) for one in bot.stderr.splitlines()]
        assert {"time", "level", "logger", "message", "pid"} <= set.intersection(*map(set, lines))
        assert any(one["message"].startswith("logged in as") for one in lines)
        assert TOKEN not in bot.stderr


class TestWhileItDoesnt:
    async def test_a_container_is_told_so(self, house: House) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            at = f"127.0.0.1:{free.getsockname()[1]}"
        code, printed = await status_ready(house, DISCOCLAW_METRICS=at)
        assert (code, printed.splitlines()[0]) == (1, "Not ready.")
        assert f"nothing listens at {at}" in printed

    async def test_nor_has_an_address_that_is_one_line(self, house: House) -> None:
        code, printed = await status_ready(house)
        assert (code, printed) == (1, f"discoclaw: {asked.NOT_SET}\n")

    async def test_another_program_at_the_address_is_not_taken_for_it(self, house: House) -> None:
        for answer in (
            b"SSH-2.0-elsewhere\r\n",
            b"HTTP/1.0 200 OK\r\n\r\n<html>",
            b"HTTP/1.0 200 OK\r\n\r\n[1]",
        ):

            async def serve(
                reader: asyncio.StreamReader, writer: asyncio.StreamWriter, answer: bytes = answer
            ) -> None:
                await reader.readuntil(b"\r\n\r\n")
                writer.write(answer)
                writer.close()

            async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
                at = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
                code, printed = await status_ready(house, DISCOCLAW_METRICS=at)
                assert code == 1
                assert f"what listens at {at} is not DiscoClaw" in printed

    async def test_a_port_in_use_stops_the_start_with_one_line(self, house: House) -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            at = f"127.0.0.1:{taken.getsockname()[1]}"
            bot = await house.start(DISCOCLAW_METRICS=at, DISCOCLAW_LOG_LEVEL="ERROR")
            assert await bot.ended() == 1
        assert bot.stderr.startswith(f"discoclaw: DISCOCLAW_METRICS={at}: can't listen there")
        assert len(bot.stderr.splitlines()) == 1

    async def test_an_address_that_is_none_stops_the_start_with_one_line(self, house: House) -> None:
        bot = await house.start(DISCOCLAW_METRICS="9464")
        assert await bot.ended() == 1
        assert bot.stderr == (
            "discoclaw: DISCOCLAW_METRICS=9464: must be an address and a port, for example 127.0.0.1:9464\n"
        )
