"""What tests of costs share: prices, and what was called."""

from pathlib import Path
from typing import Any

from pydantic import SecretStr

from discoclaw.core.usage import Call
from tests.app.conftest import World
from tests.servers.messages_api import MessagesServer

SONNET, HAIKU = "claude-sonnet-5-5", "claude-haiku-5-5"
PRICES = f"""
["{SONNET}"]
input = 100
output = 1000
["{HAIKU}"]
input = 1
output = 10
"""


async def calls(world: World) -> list[Call]:
    await world.settle()
    return await world.app.accounts.calls(0)


def at(server: MessagesServer, folder: Path, **more: Any) -> dict[str, Any]:
    """Settings of a bot whose models are at this server, which has the prices of this module."""
    path = folder / "prices.toml"
    path.write_text(PRICES)
    return {"base_url": server.base_url, "api_key": SecretStr("sk"), "prices": path, **more}
