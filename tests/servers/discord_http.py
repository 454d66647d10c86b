"""How the loopback Discord takes a REST call: recorded, perhaps made to fail, authorised, answered as JSON.

Modelled: `application/json` to the letter, error bodies with Discord's codes, 401, 429 with its headers, the
rate-limit headers of a bucket with room left, multipart with `payload_json`, the global limit of a bot when a
test switches it on.  Not modelled: the limits of single routes; a test orders such a 429 with a `Fault`.
"""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from email.utils import formatdate
from typing import Any

from aiohttp import BodyPartReader, web

from tests.servers.discord_limits import RestLimit
from tests.servers.discord_things import Json

API = "/api/v10"
VIA = "1.1 google"  # discord.py takes a 429 without it for one of Cloudflare's, and raises
ROOM_LEFT = {"X-RateLimit-Limit": "50", "X-RateLimit-Remaining": "49", "X-RateLimit-Reset-After": "1.0"}
USUAL_BODIES: dict[int, Json] = {
    401: {"message": "401: Unauthorized", "code": 0},
    403: {"message": "Missing Permissions", "code": 50013},
    404: {"message": "Unknown Message", "code": 10008},
    429: {"message": "You are being rate limited.", "retry_after": 0.05, "global": False},
}


class ApiError(Exception):
    """A refusal in Discord's terms: the HTTP status, Discord's own code, a sentence."""

    def __init__(self, status: int, code: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.body: Json = {"message": message, "code": code}


@dataclass
class RecordedRequest:
    """One REST call as it came; `path` begins after /api/v10, `json` is a multipart body's `payload_json`."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    json: Any = None
    files: dict[str, tuple[str, bytes]] = field(default_factory=dict)  # field name -> file name, bytes
    status: int = 0  # of the answer, 0 until there is one


@dataclass
class Call:
    """What a route's handler gets: the record, and the parts of the path by name."""

    request: RecordedRequest
    args: dict[str, str]

    @property
    def json(self) -> Json:
        return self.request.json or {}

    def id(self, name: str) -> int:
        return int(self.args[name])


@dataclass
class Fault:
    """An ordered failure for the next calls of a route; in `path`, * stands for one segment."""

    method: str
    path: str
    status: int
    body: Json | None
    headers: dict[str, str]
    times: int
    applied: bool  # do the thing first and only then answer with the failure
    after: int = 0  # calls that work before it

    def matches(self, request: RecordedRequest) -> bool:
        return self.method == request.method and path_matches(self.path, request.path)

    def answer(self) -> web.Response:
        """The failure, completed with what Discord would say beside this status."""
        usual = USUAL_BODIES.get(self.status, {"message": f"{self.status}: ordered by the test", "code": 0})
        body = usual | (self.body or {})
        headers = dict(self.headers)
        if headers.get("Content-Type") == "text/html":  # a proxy before Discord says so
            return web.Response(status=self.status, body=b"<html>You are banned</html>", headers=headers)
        if self.status == 429:
            wait = str(body["retry_after"])
            limits = ROOM_LEFT | {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset-After": wait}
            headers = {"Via": VIA, "Retry-After": wait, **limits, **headers}
        return answer(self.status, body, headers)


def too_many(wait: float) -> web.Response:
    """The 429 of the global limit, which has no headers of a bucket."""
    body = USUAL_BODIES[429] | {"retry_after": wait, "global": True}
    headers = {"Via": VIA, "Retry-After": str(math.ceil(wait))}
    return answer(429, body, {**headers, "X-RateLimit-Global": "true", "X-RateLimit-Scope": "global"})


Handler = Callable[[Call], Awaitable[Any]]


def path_matches(pattern: str, path: str) -> bool:
    """Whether a path is the pattern's; * stands for one segment."""
    return re.fullmatch(re.escape(pattern).replace(r"\*", "[^/]+"), path) is not None


def answer(status: int, body: Any, headers: dict[str, str] | None = None) -> web.Response:
    """A JSON answer whose Content-Type has no charset: discord.py leaves any other body unread."""
    if body is None:
        return web.Response(status=status, headers=headers)
    head = {**(headers or {}), "Content-Type": "application/json"}
    return web.Response(status=status, body=json.dumps(body).encode(), headers=head)


class RestDoor:
    """Every REST call passes here; `ring` is called after each so that waiting tests look again."""

    def __init__(self, *, token: str, limit: RestLimit, ring: Callable[[], Awaitable[None]]) -> None:
        self._token = token
        self._limit = limit
        self._ring = ring
        self.requests: list[RecordedRequest] = []
        self.unknown: list[RecordedRequest] = []
        self.faults: list[Fault] = []
        self.ahead_s = 0.0  # how far the clock of Discord is ahead of this machine's

    def add(
        self, app: web.Application, method: str, path: str, handler: Handler, *, auth: bool = True
    ) -> None:
        """Mounts a handler under /api/v10; it returns the JSON to answer, or None for 204.

        Without `auth` it takes any caller, and the call does not count towards the limit of a bot: so it is
        for answers to interactions at Discord.
        """

        async def serve(request: web.Request) -> web.Response:
            return await self._serve(request, handler, bucket=f"{method} {path}", auth=auth)

        app.router.add_route(method, API + path, serve)

    def add_unknown(self, app: web.Application) -> None:
        """Mounted last: whatever no route took is answered 501 and remembered."""

        async def serve(request: web.Request) -> web.Response:
            record = await self._record(request)
            self.unknown.append(record)
            record.status = 501
            await self._ring()
            message = f"The loopback Discord has no {record.method} {record.path}"
            return answer(501, {"message": message, "code": 0})

        app.router.add_route("*", "/{tail:.*}", serve)

    async def _serve(
        self, request: web.Request, handler: Handler, *, bucket: str, auth: bool
    ) -> web.Response:
        record = await self._record(request)
        fault = next((found for found in self.faults if found.matches(record)), None)
        if fault is not None and fault.after:
            fault.after -= 1
            fault = None
        if fault is not None:
            fault.times -= 1
            if not fault.times:
                self.faults.remove(fault)
        call = Call(record, dict(request.match_info))
        if fault is None:
            response = await self._answer(call, handler, bucket, auth=auth)
        else:
            if fault.applied:
                await self._answer(call, handler, bucket, auth=auth)
            response = fault.answer()
        record.status = response.status
        response.headers["Date"] = formatdate(time.time() + self.ahead_s, usegmt=True)
        await self._ring()
        return response

    async def _answer(self, call: Call, handler: Handler, bucket: str, *, auth: bool) -> web.Response:
        headers = {"X-RateLimit-Bucket": bucket.replace(" ", ":"), **ROOM_LEFT}
        if auth and call.request.headers.get("Authorization") != f"Bot {self._token}":
            return answer(401, USUAL_BODIES[401])
        if auth and (wait := self._limit.retry_after()):
            return too_many(wait)
        try:
            body = await handler(call)
        except ApiError as error:
            return answer(error.status, error.body, headers)
        return answer(204 if body is None else 200, body, headers)

    async def _record(self, request: web.Request) -> RecordedRequest:
        path = request.path.removeprefix(API)
        record = RecordedRequest(request.method, path, dict(request.query), dict(request.headers))
        if request.content_type == "multipart/form-data":
            async for part in await request.multipart():
                assert isinstance(part, BodyPartReader)
                data = bytes(await part.read(decode=True))
                if part.name == "payload_json":
                    record.json = json.loads(data)
                else:
                    record.files[part.name or ""] = (part.filename or "", data)
        elif request.content_type == "application/json" and (body := await request.read()):
            record.json = json.loads(body)
        self.requests.append(record)
        return record
