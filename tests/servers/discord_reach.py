"""How a bot with an unchanged discord.py is pointed at the loopback Discord."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager


class Reachable:
    """The part of the server that knows its addresses; they are empty until it has started."""

    rest_base = ""
    gateway_url = ""

    def launch_args(self, module: str, *args: str) -> list[str]:
        """The command line that runs a module with discord.py pointed here, its own code unchanged."""
        code = (
            "import runpy, yarl, discord.http, discord.gateway; "
            f"discord.http.Route.BASE = {self.rest_base!r}; "
            f"discord.gateway.DiscordWebSocket.DEFAULT_GATEWAY = yarl.URL({self.gateway_url!r}); "
            f"runpy.run_module({module!r}, run_name='__main__', alter_sys=True)"
        )
        return [sys.executable, "-c", code, *args]

    @contextmanager
    def redirected(self) -> Iterator[None]:
        """Points discord.py in this process here, and back again."""
        import discord.gateway
        import discord.http
        import yarl

        route, socket = discord.http.Route, discord.gateway.DiscordWebSocket
        before = (route.BASE, socket.DEFAULT_GATEWAY)
        route.BASE, socket.DEFAULT_GATEWAY = self.rest_base, yarl.URL(self.gateway_url)
        try:
            yield
        finally:
            route.BASE, socket.DEFAULT_GATEWAY = before
