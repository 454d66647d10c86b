"""The demo's page as a browser talks with it: what it sends, and the stream of what it is shown."""

import asyncio
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Self

import aiohttp
from simcord.components import walk_components

ADDRESS = re.compile(r"(http://127\.0\.0\.1:\d+)/#(\S+)")
"""The address of the page, in what `discoclaw demo` prints."""
PATIENCE = 30.0

Json = dict[str, Any]


class Refused(Exception):
    """What the page says when something isn't possible."""


class Page:
    """The page, opened as a person (by name) in a channel: "#general", or "direct messages"."""

    def __init__(
        self, session: aiohttp.ClientSession, address: str, where: str = "#general", who: str = "you"
    ) -> None:
        found = ADDRESS.search(address)
        assert found is not None, address
        self._session, self._base, self._where, self._who = session, found[1], where, who
        self.headers = {"X-Demo-Token": found[2], "Origin": self._base}
        self.place: dict[str, str] = {}
        self.view: Json = {}
        self.lines: list[Json] = []
        self.modal: Json = {}
        self._changed = asyncio.Event()
        self._following: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self.about = await self.ask("/about")
        you = self.about["steps"][0]["acts"][0]["who"]
        world = await self._world(you)
        who = next(one["id"] for one in world["people"] if one["name"] == self._who)
        places = (await self._world(who))["places"]
        names = {one["id"]: "direct messages" if one["kind"] == "dm" else f"#{one['name']}" for one in places}
        self.place = {"as": who, "channel": next(key for key, name in names.items() if name == self._where)}
        self._following = asyncio.create_task(self._follow())
        await self.until(lambda: self.view)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._following is not None
        self._following.cancel()
        await asyncio.gather(self._following, return_exceptions=True)

    # ------------------------------------------------------------------ what a person does

    async def say(self, text: str, *files: tuple[str, bytes], **more: Any) -> None:
        """Send a message."""
        await self.act("send", files, text=text, **more)

    async def command(self, name: str, options: Json | None = None, *files: tuple[str, bytes]) -> None:
        """Use a slash command."""
        await self.act("slash", files, name=name, options=options or {})

    async def press(self, label: str) -> None:
        """Press the newest button of that name, once it is there."""

        def found() -> tuple[Json, Json] | None:
            fits = [
                (message, part)
                for message in self.messages
                for part in walk_components(message["components"])
                if part.get("label") == label and not part.get("disabled")
            ]
            return fits[-1] if fits else None

        message, button = await self.until(found)
        await self.act("press", message=message["id"], id=button["custom_id"])

    async def fill(self, **values: Any) -> None:
        """Submit the form that is open; `values` are by the custom ids of its fields."""
        await self.act("submit", modal=self.modal["key"], values=values)

    async def act(self, do: str, files: Sequence[tuple[str, bytes]] = (), **values: Any) -> Json:
        """Do something. Raises Refused."""
        form = aiohttp.FormData()
        form.add_field("act", json.dumps({**self.place, "do": do, **values}))
        for name, content in files:
            form.add_field("file", content, filename=name)
        done = await self.ask("/act", "POST", data=form)
        self.modal = done.get("modal", self.modal)
        return done

    # ------------------------------------------------------------------ what they see

    @property
    def messages(self) -> list[Json]:
        """The messages, oldest first."""
        found = [value for key, value in self.view.items() if key[0] == "m" and key[1:].isdigit()]
        return sorted(found, key=lambda one: int(one["id"]))

    @property
    def texts(self) -> list[str]:
        """What the messages say."""
        return [said(message) for message in self.messages]

    async def offered(self) -> Json:
        """The commands and menus that are offered here."""
        return await self.ask("/commands")

    async def shows(self, words: str, *, by: str = "DiscoClaw", after: int = 0) -> Json:
        """Wait for the newest message with these words; `after` is how many are older."""

        def found() -> Json | None:
            fits = (
                one for one in reversed(self.messages[after:]) if words in said(one) and by == author(one)
            )
            return next(fits, None)

        try:
            return await self.until(found)
        except TimeoutError:
            raise TimeoutError(f"no {words!r} by {by} among {self.texts}") from None

    async def gone(self, words: str) -> None:
        """Wait until no message has these words."""
        await self.until(lambda: not any(words in text for text in self.texts))

    async def holds(self, part: str, words: str) -> None:
        """Wait until the panel has words in a part: `file`, `commits`, `prompt`."""
        await self.until(lambda: words in json.dumps(self.view["held"][part], ensure_ascii=False))

    async def file(self, message: Json) -> tuple[str, bytes]:
        """The name and the content of a message's only file."""
        [attached] = message["attachments"]
        asked = {**self.place, "message": message["id"], "url": attached["url"]}
        async with self._session.get(self._base + "/attached", params=asked, headers=self.headers) as answer:
            assert answer.status == 200
            return attached["filename"], await answer.read()

    # ------------------------------------------------------------------ how

    async def ask(self, path: str, method: str = "GET", **sent: Any) -> Json:
        """What the program answers. Raises Refused."""
        sent.setdefault("params", self.place if method == "GET" else {})
        async with self._session.request(method, self._base + path, headers=self.headers, **sent) as answer:
            value: Json = await answer.json()
            if answer.status != 200:
                raise Refused(value["error"])
            return value

    async def _world(self, who: str) -> Json:
        at = {"as": who, "channel": self.about["home"]}
        async with self._session.get(self._base + "/view", params=at, headers=self.headers) as answer:
            world: Json = json.loads(await answer.content.readline())["set"]["world"]
            return world

    async def _follow(self) -> None:
        forever = aiohttp.ClientTimeout(total=None)
        async with self._session.get(
            self._base + "/view", params=self.place, headers=self.headers, timeout=forever, read_bufsize=2**22
        ) as answer:
            async for line in answer.content:
                if line.strip():
                    self._take(json.loads(line))

    def _take(self, change: Mapping[str, Any]) -> None:
        self.lines.append(dict(change))
        self.view.update(change["set"])
        for key in change["gone"]:
            del self.view[key]
        self._changed.set()

    async def until(self, found: Any) -> Any:
        """Wait until something is true of what is seen, and return it."""
        async with asyncio.timeout(PATIENCE):
            while not (value := found()):
                self._changed.clear()
                await self._changed.wait()
        return value


def said(message: Json) -> str:
    """What a message says, as a text or as a card."""
    texts = [part["content"] for part in walk_components(message["components"]) if part.get("content")]
    return "\n".join([message["content"], *texts])


def author(message: Json) -> str:
    """The name of who wrote a message."""
    return str(message["author"]["global_name"] or message["author"]["username"])
