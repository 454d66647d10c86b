"""The demo's page over HTTP: its own files, the stream of what a person sees, and what they do.

The page acts as anybody in the demo, the owner of the bot included. So whatever isn't one of its own files
needs the token of this run, which only the address in the terminal has: behind `#`, where browsers send it
to nobody, and from where the page sends it in a header that no other site can send. `web/page/guard` refuses
requests that another page or another name has led here.
"""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from importlib.resources import files
from typing import Any, Final

import simcord
from aiohttp import web
from aiohttp.typedefs import Handler
from simcord import interactions
from simcord.backend import serializers
from simcord.backend.access import message_accessible
from simcord.results import to_discord_message

from discoclaw.demo.feed import Feed
from discoclaw.demo.world import Person, World, id_of
from discoclaw.web.page.guard import HEADERS, check_source, same

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


# ---------------------------------------------------------------------- what people do

ACKNOWLEDGED_S: Final = 3.0
"""How long Discord waits for the first answer to a command, a press or a modal."""
MOST_CHARS: Final = 2000
MOST_MODALS: Final = 20
MENU: Final = 3
"""The type of a command in the menu of a message."""
_USER, _CHANNEL, _ROLE, _MENTIONABLE, _FILE = 6, 7, 8, 9, 11
_OF_SELECTS: Final = {5: _USER, 6: _ROLE, 7: _MENTIONABLE, 8: _CHANNEL}

File = tuple[str, bytes]


class Impossible(Exception):
    """Discord's client would not let anybody do that; the text says why."""


class Acts:
    """All that can be done in `world`."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._env = world.env
        self._modals: dict[str, simcord.InteractionResult] = {}
        known: tuple[Callable[[_Scene], Awaitable[Any]], ...] = (
            *(self._send, self._edit, self._delete, self._react, self._type, self._thread),
            *(self._press, self._choose, self._submit, self._slash, self._complete, self._menu),
        )
        self._known = {work.__name__.removeprefix("_"): work for work in known}

    async def do(
        self, person: Person, channel: simcord.ChannelHandle, act: Mapping[str, Any], files: Sequence[File]
    ) -> dict[str, Any]:
        """Carry out an act, and return what the page needs to know. Raises SetupError and others."""
        work = self._known.get(str(act.get("do")))
        if work is None:
            raise Impossible("The page doesn't know how to do that")
        async with self._env.acting:
            done = await work(_Scene(person, channel, act, files))
        return await self._shown(done) if isinstance(done, simcord.InteractionResult) else done or {}

    def catalogue(self, person: Person, channel: simcord.ChannelHandle) -> dict[str, Any]:
        """The commands that are offered to a person in a channel, and the menus of messages."""
        backend, seen = self._env.backend, {"user_id": person.id, "channel_id": channel.id}
        leaves = [
            leaf for root in backend.visible_commands(**seen) for leaf in interactions.command_leaves(root)
        ]
        menus = backend.visible_commands(**seen, type=MENU)
        return {
            "commands": [
                {"name": " ".join(path), "about": leaf["description"], "options": leaf.get("options") or []}
                for path, leaf in leaves
            ],
            "menus": [menu["name"] for menu in menus],
        }

    # ------------------------------------------------------------------ messages

    async def _send(self, scene: "_Scene") -> None:
        text = scene.text("text")
        if len(text) > MOST_CHARS:
            raise Impossible(f"A message has at most {MOST_CHARS:,} characters")
        if not text.strip() and not scene.files:
            raise Impossible("An empty message can't be sent")
        answered = self._message(scene, "reply") if scene.act.get("reply") else None
        if scene.channel.guild is not None:
            await scene.actor.send(scene.channel, text, reply_to=answered, attachments=scene.files)
            return
        backend, where = self._env.backend, scene.channel.id
        to = {"channel_id": str(where), "message_id": str(answered.id)} if answered is not None else None
        await scene.actor.send_dm(
            text,
            attachments=backend.store_attachments(where, scene.files),
            reference=backend.normalize_message_reference(where, to) if to else None,
        )

    async def _edit(self, scene: "_Scene") -> None:
        await scene.actor.edit(self._message(scene), scene.text("text")[:MOST_CHARS])

    async def _delete(self, scene: "_Scene") -> None:
        await scene.actor.delete(self._message(scene))

    async def _react(self, scene: "_Scene") -> None:
        on = scene.act.get("on") is True
        await scene.actor.set_reaction(self._message(scene), scene.text("emoji")[:16], reacted=on)

    async def _type(self, scene: "_Scene") -> None:
        if scene.channel.guild is not None:
            await scene.actor.typing(scene.channel)

    async def _thread(self, scene: "_Scene") -> dict[str, Any]:
        message = self._message(scene)
        backend, name = self._env.backend, scene.text("name").strip()[:100]
        if scene.channel.guild is None or scene.channel.is_thread:
            raise Impossible("Threads can be opened in channels of a server only")
        if message.id in backend.channels:
            return {"channel": str(message.id)}
        made = backend.create_thread(
            scene.channel.id, name or "Thread", scene.person.id, message_id=message.id
        )
        return {"channel": str(made.id)}

    # ------------------------------------------------------------------ what the bot answers

    async def _press(self, scene: "_Scene") -> Any:
        return await scene.actor.click(self._message(scene), custom_id=scene.text("id"))

    async def _choose(self, scene: "_Scene") -> Any:
        message, custom_id = self._message(scene), scene.text("id")
        values = self._values(scene, scene.act.get("kind"), scene.act.get("values"))
        return await scene.actor.select(message, values, custom_id=custom_id)

    async def _submit(self, scene: "_Scene") -> Any:
        shown = self._modals.get(scene.text("modal"))
        given = scene.act.get("values")
        if shown is None or not isinstance(given, dict):
            raise Impossible("This form is out of date")
        values = {
            name: self._values(scene, one.get("kind"), one.get("values")) if isinstance(one, dict) else one
            for name, one in given.items()
        }
        done = await scene.actor.submit_modal(shown, values)
        self._modals.pop(scene.text("modal"), None)
        return done

    async def _slash(self, scene: "_Scene") -> Any:
        name, options = scene.text("name"), self._options(scene, partial=False)
        at = (scene.channel,) if scene.channel.guild is not None else ()
        return await scene.actor.slash(*at, name, **options)

    async def _complete(self, scene: "_Scene") -> Any:
        name, option = scene.text("name"), scene.text("option")
        at = (scene.channel,) if scene.channel.guild is not None else ()
        filled = {key: value for key, value in self._options(scene, partial=True).items() if key != option}
        await scene.actor.autocomplete(*at, name, option, scene.text("value")[:100], **filled)
        # The choices come later than this returns; nothing else began meanwhile.
        asked = next(reversed(self._env.backend.interactions.values()))
        return simcord.InteractionResult(self._env, asked)

    async def _menu(self, scene: "_Scene") -> Any:
        message, name = self._message(scene), scene.text("name")
        if scene.channel.guild is not None:
            return await scene.actor.context_menu(scene.channel, name, message)
        backend, at = self._env.backend, scene.channel.id
        menus = backend.visible_commands(user_id=scene.person.id, channel_id=at, type=MENU)
        menu = next((one for one in menus if one["name"] == name), None)
        if menu is None:
            raise Impossible("This menu is not offered here")
        stored = dict(serializers.message_payload(backend, backend.get_message(at, message.id)))
        data = {"id": menu["id"], "name": name, "type": MENU, "target_id": str(message.id)}
        data["resolved"] = {"messages": {str(message.id): stored}}
        record, payload = interactions.base_payload(  # simcord has none in direct messages
            backend, type=2, channel_id=at, guild_id=None, user_id=scene.person.id, data=data
        )
        backend.emit("INTERACTION_CREATE", payload)
        return simcord.InteractionResult(self._env, record)

    async def _shown(self, result: simcord.InteractionResult) -> dict[str, Any]:
        """Wait until the bot has acknowledged, and return what only this page shows of the answer."""
        try:
            with self._env.watching() as changed:
                async with asyncio.timeout(ACKNOWLEDGED_S):
                    while not result.acknowledged:
                        await changed.wait()
                        changed.clear()
        except TimeoutError:
            raise Impossible("The bot did not answer within three seconds") from None
        if (choices := result.autocomplete_choices) is not None:
            return {"choices": choices}
        if (modal := result.modal) is None:
            return {}
        key = str(id(result))
        self._modals[key] = result
        while len(self._modals) > MOST_MODALS:
            del self._modals[next(iter(self._modals))]
        return {"modal": {**modal, "key": key}}

    # ------------------------------------------------------------------ from what the page sends

    def _message(self, scene: "_Scene", name: str = "message") -> Any:
        """The message that an act names, if the person can see it."""
        backend, channel_id = self._env.backend, scene.channel.id
        found = backend.messages.get(channel_id, {}).get(id_of(scene.text(name)))
        if found is None or not message_accessible(backend, channel_id, found, scene.person.id, history=True):
            raise Impossible("There is no such message")
        return to_discord_message(self._env, found)

    def _options(self, scene: "_Scene", *, partial: bool) -> dict[str, Any]:
        """The options of a slash command, as simcord wants them; `partial`: only those that are right."""
        given, name = scene.act.get("options") or {}, scene.text("name")
        root = self._root(scene, name)
        leaf, _ = interactions.walk_to_subcommand(root, name.split()[1:])
        options: dict[str, Any] = {}
        for option in leaf.get("options") or []:
            raw = given.get(option["name"])
            if raw in (None, ""):
                continue
            try:
                options[option["name"]] = self._option(scene, name, option, raw)
            except (simcord.SetupError, Impossible):
                if not partial:
                    raise
        return options

    def _option(self, scene: "_Scene", name: str, option: dict[str, Any], raw: Any) -> Any:
        if option["type"] == _FILE:
            if not scene.files:
                raise Impossible(f"Choose a file for {option['name']}")
            return scene.files[0]
        if option["type"] in (_USER, _CHANNEL, _ROLE, _MENTIONABLE):
            return self._entity(scene, option["type"], raw)
        return interactions.parse_option_input(name, option, raw)

    def _root(self, scene: "_Scene", name: str) -> dict[str, Any]:
        seen = self._env.backend.visible_commands(user_id=scene.person.id, channel_id=scene.channel.id)
        root = next((one for one in seen if one["name"] == name.partition(" ")[0]), None)
        if root is None:
            raise Impossible(f"/{name} is not offered here")
        return root

    def _values(self, scene: "_Scene", kind: Any, values: Any) -> list[Any]:
        """The values chosen in a select, by its kind."""
        if not isinstance(values, list) or not all(isinstance(one, str) for one in values):
            raise Impossible("Choose something")
        return (
            [self._entity(scene, _OF_SELECTS[kind], one) for one in values] if kind in _OF_SELECTS else values
        )

    def _entity(self, scene: "_Scene", kind: int, named: Any) -> Any:
        """A person, a channel or a role by its id."""
        named = str(named)
        if kind == _CHANNEL:
            return self._world.channel(scene.person, named)
        roles = {str(one.id): one for one in self._world.guild.roles.values()}
        if kind in (_ROLE, _MENTIONABLE) and named in roles:
            return roles[named]
        found = self._world.person(named)
        return found.member if scene.channel.guild is not None else found.member.user


class _Scene:
    """One act: whose, where, what, and with which files."""

    def __init__(
        self, person: Person, channel: simcord.ChannelHandle, act: Mapping[str, Any], files: Sequence[File]
    ) -> None:
        self.person, self.channel, self.act, self.files = person, channel, act, files
        self.actor = person.on(channel)

    def text(self, name: str) -> str:
        """A text of the act. Raises Impossible."""
        value = self.act.get(name)
        if not isinstance(value, str):
            raise Impossible(f"The page sent no {name}")
        return value


def act_of(text: str) -> Mapping[str, Any]:
    """An act from its JSON. Raises Impossible."""
    try:
        act = json.loads(text)
    except ValueError:
        act = None
    if not isinstance(act, dict):
        raise Impossible("That isn't an act")
    return act
