"""A small HTTP server on an address of this machine: a service around an `aiohttp` application.

Knows nothing about what it serves.
"""

from aiohttp import web

from discoclaw.core.errors import SettingsError
from discoclaw.settings_types import Listen

CLOSE_S = 1.0
"""How long closing waits for requests that are being answered."""


class Listener:
    """Serves `app` at an address. It is a `core.service.Service`. `variable` is the setting that named it."""

    def __init__(self, app: web.Application, at: Listen, variable: str) -> None:
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=CLOSE_S)
        self._at = at
        self._variable = variable

    @property
    def port(self) -> int:
        """The port that it listens at, once it does: another one than asked for if that was 0."""
        address = self._runner.addresses[0]
        return int(address[1])

    async def start(self) -> None:
        """Listen. Raises SettingsError if the address can't be used."""
        await self._runner.setup()
        try:
            await web.TCPSite(self._runner, self._at.host, self._at.port).start()
        except OSError as error:
            await self._runner.cleanup()
            raise SettingsError(
                f"{self._variable}={self._at}: can't listen there ({error.strerror or error}); "
                "another program may use this port, so choose another one"
            ) from None

    async def settle(self) -> None:
        """Nothing to wait for: whoever asks gets an answer at once."""

    async def close(self) -> None:
        """Stop listening. May be called again."""
        await self._runner.cleanup()
