"""A bot that finds by meaning: its settings, and when its provider is known to answer.

The provider is `tests.servers.embeddings_api` on loopback. Its address `elsewhere` counts as another machine,
so there it may see less.
"""

from typing import Any

from tests.contract.meanwhile import until
from tests.contract.world import World
from tests.servers.embeddings_api import EmbeddingsServer

QUIET: dict[str, Any] = {"extraction_enabled": False, "summary_enabled": False}


def near(server: EmbeddingsServer, **changes: Any) -> dict[str, Any]:
    """The settings for a provider on this machine."""
    own = {"embedding_provider": "openai", "embedding_url": server.openai_url, "embedding_key": "sk-secret"}
    return {**own, **QUIET, **changes}


def far(server: EmbeddingsServer, **changes: Any) -> dict[str, Any]:
    """The settings for the same provider on another machine."""
    return near(server, embedding_url=f"{server.elsewhere}/v1", **changes)


async def ready(world: World) -> None:
    """Wait until the provider is known to answer, and everything has its vector."""
    await until(lambda: health(world) == "good")
    await world.settle()


def health(world: World) -> str:
    """How the bot says its provider is; "" if it has none."""
    return next((one.state for one in world.app.health() if one.name == "embeddings"), "")


def sent(server: EmbeddingsServer) -> list[str]:
    """What was sent to be embedded, without what the bot measures a model with."""
    return [one for one in server.texts if one not in server.measured]
