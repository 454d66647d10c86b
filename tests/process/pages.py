"""The demo's pages as a browser talks with them: what it sends, and what it then reads.

Each page asks for its state twice a second; so does `Page.shows`, more often.
"""

import asyncio
import json
import re
from collections.abc import Mapping
from typing import Any, Self
from uuid import uuid4

import aiohttp
from simcord.components import walk_components

ADDRESS = re.compile(r"^  (\S.*?) +(http://127\.0\.0\.1:\d+/#\S+)$", re.M)
"""The name and the address of a page, in what `discoclaw demo` prints."""
PATIENCE = 30.0
LOOK_S = 0.02

Json = dict[str, Any]


class Page:
    """One page, opened as one person."""

    def __init__(self, session: aiohttp.ClientSession, address: str) -> None:
        self._session = session
        self._base, _, capability = address.partition("/#")
        self._headers = {"X-Simcord-Capability": capability}
        self._sequence = 0
        self._state: Json = {}

    async def open(self) -> Self:
        async with self._session.get(self._base + "/") as index:
            assert index.status == 200
        self._state = await self._ask("POST", "/api/pages", json={})
        self._headers["X-Simcord-Context"] = self._state["context"]["id"]
        return self

    async def say(self, text: str) -> None:
        """Send a message. Returns when the page would take the next one."""
        receipt = await self._act({"kind": "send_message", "content": text})
        assert (receipt["settlement"], receipt["diagnostics"]) == ("settled", [])

    async def command(self, path: str, options: Json | None = None, **files: tuple[str, bytes]) -> None:
        """Use a slash command; `files` are those of its options that take one."""
        catalogue = await self._ask("GET", "/api/commands")
        entry = next(one for one in catalogue["entries"] if one["invocation"] == path)
        uploads = {name: {"upload": number} for number, name in enumerate(files)}
        body = {
            "kind": "run_command",
            "command_id": entry["commandId"],
            "path": path.split(),
            "schema_fingerprint": entry["schemaFingerprint"],
            "options": {**(options or {}), **uploads},
        }
        receipt = await self._act(body, files)
        assert (receipt["settlement"], receipt["diagnostics"]) == ("settled", [])

    async def commands(self) -> list[str]:
        """The slash commands that are offered to this person here."""
        return [one["invocation"] for one in (await self._ask("GET", "/api/commands"))["entries"]]

    async def press(self, label: str) -> None:
        """Press the newest button of that name."""
        await self.read()
        buttons = [
            button
            for message in self._state["messages"].values()
            for button in walk_components(message["components"])
            if button.get("label") == label
        ]
        key = buttons[-1]["control_key"]
        receipt = await self._act({"kind": "click", "control_key": key, "target_id": key.split(":")[1]})
        assert (receipt["settlement"], receipt["diagnostics"]) == ("settled", [])

    async def fill(self, **values: str) -> None:
        """Submit the modal that is open; `values` are by the custom ids of its fields."""
        await self.read()
        handle = self._state["modal"]["handle"]
        receipt = await self._act({"kind": "modal_submit", "modal_handle": handle, "values": values})
        assert (receipt["settlement"], receipt["diagnostics"]) == ("settled", [])

    async def shows(self, words: str, *, by: str = "DiscoClaw", after: int = 0) -> Json:
        """Wait for the newest message with these words; `after` is how many are older."""
        try:
            async with asyncio.timeout(PATIENCE):
                while True:
                    for message in reversed((await self.read())[after:]):
                        if words in _shown(message) and message["author"]["name"] == by:
                            return message
                    await asyncio.sleep(LOOK_S)
        except TimeoutError:
            raise TimeoutError(f"no {words!r} by {by} among {self.texts}") from None

    async def read(self) -> list[Json]:
        """The messages, oldest first."""
        self._state = await self._ask("GET", "/api/state")
        return [self._state["messages"][one] for one in self._state["timeline"]]

    @property
    def texts(self) -> list[str]:
        """What was read last."""
        return [self._state["messages"][one]["content"] for one in self._state["timeline"]]

    async def file(self, message: Json) -> tuple[str, bytes]:
        """The name and the content of a message's only file."""
        [attached] = message["attachments"]
        path = f"/api/assets/{attached['asset_id']}?download=1"
        async with self._session.get(self._base + path, headers=self._headers) as answer:
            return attached["filename"], await answer.read()

    async def _act(self, body: Json, files: Mapping[str, tuple[str, bytes]] | None = None) -> Json:
        state = self._state
        sent = body | {
            "protocol_version": 3,
            "sequence": self._sequence + 1,
            "request_id": str(uuid4()),
            "generation": state["context"]["generation"],
            "bot_generation": state["botGeneration"],
            "published_revision": state["publishedRevision"],
        }
        if files:
            form = aiohttp.FormData({"payload": json.dumps(sent)})
            for option, (name, content) in files.items():
                form.add_field(f"file:{option}", content, filename=name)
            receipt = await self._ask("POST", "/api/action", data=form)
        else:
            receipt = await self._ask("POST", "/api/action", json=sent)
        self._sequence = receipt["expectedSequence"]
        return receipt

    async def _ask(self, method: str, path: str, **sent: Any) -> Json:
        async with self._session.request(method, self._base + path, headers=self._headers, **sent) as answer:
            value: Json = await answer.json()
            assert answer.status == 200, value
            return value


def _shown(message: Json) -> str:
    """What a message says, as a text or as a card."""
    texts = [part["content"] for part in walk_components(message["components"]) if part.get("content")]
    return "\n".join([message["content"], *texts])
