"""A loopback server of OpenAI's chat completions that also lists its models, and may want a key.

`GET /v1/models` lists `models` with the time at which each was made, if that is said. With `key` set, both
pages refuse any other. Knows nothing about DiscoClaw.
"""

from collections.abc import Mapping

from aiohttp import web

from tests.servers.chat_api import ChatServer, Dialect


class ListingServer(ChatServer):
    """The server; an async context manager."""

    def __init__(self, dialect: Dialect = "ollama", models: Mapping[str, int] | None = None) -> None:
        super().__init__(dialect)
        self.models = dict(models or {})
        self.key: str | None = None
        self.listed = 0
        """How often somebody asked for the list."""

    def _add_routes(self, app: web.Application) -> None:
        app.router.add_get("/v1/models", self._list)

    async def _list(self, request: web.Request) -> web.Response:
        self.listed += 1
        if self._refuses(request):
            return web.json_response({"error": {"message": "wrong key"}}, status=401)
        listed = [{"id": name, "created": made, "object": "model"} for name, made in self.models.items()]
        return web.json_response({"object": "list", "data": listed})

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        if self._refuses(request):
            return web.json_response({"error": {"message": "wrong key"}}, status=401)
        return await super()._handle(request)

    def _refuses(self, request: web.Request) -> bool:
        return self.key is not None and request.headers.get("Authorization") != f"Bearer {self.key}"
