"""A listener under programs that connect and never ask."""

import asyncio
from contextlib import AsyncExitStack

import aiohttp
from aiohttp import web

from discoclaw.settings_types import Listen
from discoclaw.web.listening import MOST_CONNECTIONS, Listener


async def ok(_: web.Request) -> web.Response:
    return web.Response(text="ok")


async def test_the_oldest_connections_make_room_for_new_ones() -> None:
    app = web.Application()
    app.router.add_get("/", ok)
    listener = Listener(app, Listen("127.0.0.1", 0), "TEST")
    await listener.start()
    too_many = 2 * MOST_CONNECTIONS
    async with AsyncExitStack() as stack:
        stack.push_async_callback(listener.close)
        silent = []
        for _ in range(too_many):
            reader, writer = await asyncio.open_connection("127.0.0.1", listener.port)
            stack.callback(writer.close)
            silent.append(reader)
        ended = silent[: too_many - MOST_CONNECTIONS]
        assert await asyncio.gather(*(one.read() for one in ended)) == [b""] * len(ended)
        async with (
            aiohttp.ClientSession() as http,
            http.get(f"http://127.0.0.1:{listener.port}") as answer,
        ):
            assert await answer.text() == "ok"
        assert not silent[-1].at_eof()
