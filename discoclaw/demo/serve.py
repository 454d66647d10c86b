"""The demo's page over HTTP: its own files, the stream of what a person sees, and what they do.

The page acts as anybody in the demo, the owner of the bot included. So whatever isn't one of its own files
needs the token of this run, which only the address in the terminal has: behind `#`, where browsers send it
to nobody, and from where the page sends it in a header that no other site can send. `web/page/guard` refuses
requests that another page or another name has led here.
"""

import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib.resources import files
from typing import Any, Final

import simcord
from aiohttp import web
from aiohttp.typedefs import Handler

from discoclaw.demo.acts import Acts, File, Impossible, act_of
from discoclaw.demo.feed import Feed
from discoclaw.demo.world import Person, World
from discoclaw.web.page.access import same
from discoclaw.web.page.guard import HEADERS, check_source

log = logging.getLogger(__name__)

TOKEN: Final = "X-Demo-Token"
MOST_BYTES: Final = 26 * 1024 * 1024
"""The largest act: a file as large as Discord takes it."""
_TYPES: Final = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
_PICTURES: Final = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self'; "
    "form-action 'none'; frame-ancestors 'none'; base-uri 'none'"
)


class Site:
    """The page. `about` is what it is told once: the steps, the model, the folder."""

    def __init__(self, world: World, feed: Feed, token: str, about: Mapping[str, Any]) -> None:
        self._world, self._feed, self._acts = world, feed, Acts(world)
        self._token = token
        self._about = about
        static = files("discoclaw.demo") / "static"
        self._files = {f"/{one.name}": one.read_bytes() for one in static.iterdir() if one.is_file()}
        self._files["/"] = self._files.pop("/index.html")
        self._files["/icon.svg"] = (files("discoclaw.web.page") / "static/icon.svg").read_bytes()

    def application(self) -> web.Application:
        """The server of it."""
        app = web.Application(middlewares=[self._guarded], client_max_size=MOST_BYTES)
        for path in self._files:
            app.router.add_get(path, self._file)
        app.router.add_get("/about", self._told)
        app.router.add_get("/view", self._view)
        app.router.add_get("/commands", self._commands)
        app.router.add_get("/attached", self._attached)
        app.router.add_post("/act", self._act)
        return app

    @web.middleware
    async def _guarded(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            check_source(request)
            if request.path not in self._files and not same(request.headers.get(TOKEN, ""), self._token):
                raise web.HTTPUnauthorized(text="Open the address that the terminal shows")
            response = await handler(request)
        except web.HTTPException as error:
            response = _failed(error.status, error.text or error.reason)
        except (Impossible, simcord.SetupError) as error:
            response = _failed(400, str(error))
        except simcord.BackendError as error:
            response = _failed(400, error.message)
        except Exception:  # a named edge: a bug in the page must not end the demo
            log.exception("the page %s failed", request.path)
            response = _failed(500, "The page had trouble with this. The terminal says why.")
        if not response.prepared:
            response.headers.update(_headers())
        return response

    # ------------------------------------------------------------------ what is asked for

    async def _file(self, request: web.Request) -> web.Response:
        kind = "html" if request.path == "/" else request.path.rpartition(".")[2]
        return web.Response(body=self._files[request.path], content_type=_TYPES[kind], charset="utf-8")

    async def _told(self, request: web.Request) -> web.Response:
        return web.json_response(self._about)

    async def _view(self, request: web.Request) -> web.StreamResponse:
        """Lines of JSON, for as long as the page is there."""
        person, channel = self._where(request.query)
        response = web.StreamResponse(headers={**_headers(), "Content-Type": "application/x-ndjson"})
        await response.prepare(request)

        async def send(line: str) -> None:
            await response.write(line.encode())

        with suppress(ConnectionError, simcord.SetupError):  # the page was closed, or the channel
            await self._feed.follow(person, channel, send)
        return response

    async def _commands(self, request: web.Request) -> web.Response:
        return web.json_response(self._acts.catalogue(*self._where(request.query)))

    async def _attached(self, request: web.Request) -> web.Response:
        """A file of a message, as data: a browser must not take it for a page of ours."""
        person, channel = self._where(request.query)
        url = request.query.get("url", "")
        content = self._world.env.backend.cdn.get(url)
        if content is None or not self._feed.may_see(person, channel, request.query.get("message", ""), url):
            raise web.HTTPNotFound(text="There is no such file")
        kind = request.query.get("type", "")
        shown = kind if kind in _PICTURES else "application/octet-stream"
        return web.Response(body=content, content_type=shown, headers={"Content-Disposition": "attachment"})

    async def _act(self, request: web.Request) -> web.Response:
        form = await request.post()
        act = act_of(str(form.get("act", "")))
        given: Sequence[File] = [
            (one.filename, one.file.read())
            for one in form.getall("file", [])
            if isinstance(one, web.FileField)
        ]
        return web.json_response(await self._acts.do(*self._where(act), act, given))

    def _where(self, named: Mapping[str, Any]) -> tuple[Person, simcord.ChannelHandle]:
        person = self._world.person(str(named.get("as", "")))
        return person, self._world.channel(person, str(named.get("channel", "")))


def _headers() -> dict[str, str]:
    return {**HEADERS, "Content-Security-Policy": _POLICY}


def _failed(status: int, why: str) -> web.Response:
    return web.json_response({"error": why}, status=status)
