"""Whether Discord acknowledges heartbeats: a real discord.py at a loopback Discord."""

import time

from discoclaw.bot.gateway import Connected, finding, overdue_s, sockets
from discoclaw.core.shards import EVERY, Shards
from tests.memory.sharing import until
from tests.servers.discord_parrot import Parrot, connected, redirected_server


async def test_heartbeats_without_an_answer_are_noticed_and_again_when_there_is_one() -> None:
    async with redirected_server() as server:
        server.gateway.heartbeat_interval = 0.05
        async with connected(server, Parrot(heartbeat_timeout=60)) as bot:
            (socket,) = sockets(bot)
            await until(lambda: overdue_s(socket) == 0)
            server.mute_acks = True
            await until(lambda: overdue_s(socket) > 0.5)  # over many that are not answered
            server.mute_acks = False
            await until(lambda: overdue_s(socket) == 0)


async def test_an_answer_that_was_noted_before_its_heartbeat_is_one() -> None:
    async with redirected_server() as server, connected(server, Parrot()) as bot:
        (socket,) = sockets(bot)
        beat = socket._keep_alive
        beat._last_send = time.perf_counter() - 30
        beat._last_ack = beat._last_send - 0.2
        assert overdue_s(socket) == 0
        beat._last_ack = beat._last_send - beat.interval
        assert overdue_s(socket) > 29


async def test_a_session_counts_from_its_servers_until_it_is_lost() -> None:
    async with redirected_server() as server, connected(server, Parrot()) as bot:
        known, four = Connected(), Shards((0, 1, 2, 3), 4)
        assert finding(bot, known, EVERY).state == "bad"
        known.began(EVERY)
        assert finding(bot, known, EVERY).state == "bad"
        await known.ready(EVERY)
        assert finding(bot, known, EVERY).state == "good"
        assert known.away(four) == [1, 2, 3]
        known.lost(EVERY)
        assert finding(bot, known, EVERY).state == "bad"
        known.resumed(EVERY)
        assert finding(bot, known, EVERY).state == "good"
