"""Who may look at the page, the checks that every request passes, and the headers of every response.

    Host             is this machine, so that no name of somebody else's leads here (DNS rebinding)
    Sec-Fetch-Site   says that the request comes from our own page or from the address bar
    a POST           comes from our own page, is a small form, and has the session's token (CSRF)
    the session      is there, except for the way in and for the style sheet

The token lets somebody in, and a session keeps them in for a while. Sessions are in RAM, so a restart ends
them. A wrong token counts against everybody's tries, because on this machine everybody has one address.
Knows nothing about what is shown.
"""

import hashlib
import hmac
import logging
import re
import secrets
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware
from yarl import URL

log = logging.getLogger(__name__)

ErrorPage = Callable[[int, str], web.Response]
"""Makes the page for an error, from its status and a sentence."""

MOST_BYTES: Final = 32 * 1024
"""The longest form: instructions for a channel, where each letter may take twelve bytes."""
ENTER: Final = "/enter"
OPEN: Final = frozenset({ENTER, "/style.css", "/icon.svg"})
"""Paths that everybody may load."""
HEADERS: Final[Mapping[str, str]] = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; "
    "frame-ancestors 'none'; base-uri 'none'",
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    # With "no-referrer", browsers would not even tell us that a form is our own.
    "Referrer-Policy": "same-origin",
    "Server": "DiscoClaw",  # and not which versions of Python and aiohttp
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
_HERE = re.compile(r"(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d{1,5})?", re.IGNORECASE)
_FORM: Final = "application/x-www-form-urlencoded"
_CODE: Final = "utf-8"
"""The one encoding of our forms. Python knows some that take it long, and some that yield half an emoji."""
_SAID: Final = {
    404: "There is no such page.",
    405: "This can't be asked for in that way.",
    413: "That is too long.",
}
"""Sentences about errors; others have their own."""
_ODD: Final = "The page had trouble with this. The log says why."


IDLE_S: Final = 30 * 60.0
"""A session ends when nobody asked for anything that long."""
LONGEST_S: Final = 8 * 3600.0
"""The longest session: a page that renews itself would keep it alive for ever."""
MOST_SESSIONS: Final = 16
TRIES: Final = 10
"""Wrong tokens within `TRIES_S`; beyond that not even the right one is taken."""
TRIES_S: Final = 60.0


@dataclass(slots=True)
class Session:
    """Somebody who came in with the token. `csrf` is in each of their forms.

    `said` is what the next page says about what they did.
    """

    began: float
    seen: float
    csrf: str = field(default_factory=lambda: secrets.token_urlsafe(24))
    said: str = ""

    def lasts(self, now: float) -> bool:
        """Whether it has not ended at a time (s)."""
        return now - self.seen < IDLE_S and now - self.began < LONGEST_S

    def heard(self) -> str:
        """The message to show, which is then forgotten; "" if there is none."""
        said, self.said = self.said, ""
        return said


class TooManyTries(Exception):
    """So many wrong tokens came within a minute that none is taken for now."""


class Access:
    """The token and the sessions. `now` is a clock (s) that never goes back."""

    def __init__(self, token: str, now: Callable[[], float]) -> None:
        self._token = _digest(token)
        self._now = now
        self._sessions: dict[bytes, Session] = {}
        self._wrong: deque[float] = deque(maxlen=TRIES)

    def enter(self, token: str) -> str | None:
        """Begin a session, and return its key; None if the token is wrong. Raises TooManyTries."""
        now = self._now()
        if len(self._wrong) == TRIES and now - self._wrong[0] < TRIES_S:
            raise TooManyTries
        if not hmac.compare_digest(_digest(token), self._token):
            self._wrong.append(now)
            return None
        self._sessions = {key: one for key, one in self._sessions.items() if one.lasts(now)}
        while len(self._sessions) >= MOST_SESSIONS:
            del self._sessions[next(iter(self._sessions))]
        key = secrets.token_urlsafe(32)
        self._sessions[_digest(key)] = Session(now, now)
        return key

    def session(self, key: str) -> Session | None:
        """The session with this key, if it lasts."""
        now, found = self._now(), self._sessions.get(_digest(key))
        if found is None or not found.lasts(now):
            return None
        found.seen = now
        return found

    def leave(self, key: str) -> None:
        """End a session."""
        self._sessions.pop(_digest(key), None)


def same(one: str, other: str) -> bool:
    """Whether two secrets are the same, in a time that says nothing about where they differ."""
    return hmac.compare_digest(one.encode(), other.encode())


def _digest(secret: str) -> bytes:
    # Of one length, and found in a dict without a comparison that takes longer the more is right.
    return hashlib.sha256(secret.encode(errors="surrogatepass")).digest()


class Guard:
    """A middleware for `access`. `cookie` is the name of the session's cookie."""

    def __init__(self, access: Access, cookie: str, error_page: ErrorPage) -> None:
        self.access = access
        self.cookie = cookie
        self._error_page = error_page

    def middleware(self) -> Middleware:
        """The middleware: it answers a request that passes, and refuses any other."""

        @web.middleware
        async def guarded(request: web.Request, handler: Handler) -> web.StreamResponse:
            response = await self._answer(request, handler)
            response.headers.update(HEADERS)
            if "token" in request.query:
                response.headers["Referrer-Policy"] = "no-referrer"
            return response

        return guarded

    async def _answer(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            check_source(request)
            if request.path not in OPEN and self.session(request) is None:
                return see(ENTER)
            if request.method == "POST":
                await self._check_form(request)
            return await handler(request)
        except web.HTTPException as error:
            return self._error_page(error.status, _SAID.get(error.status) or error.text or error.reason)
        except Exception:  # a named edge: a bug in a page must not show its traceback to anybody
            log.exception("the page %s failed", request.match_info.route.name or "asked for")
            return self._error_page(500, _ODD)

    def session(self, request: web.Request) -> Session | None:
        """The session that a request belongs to."""
        return self.access.session(request.cookies.get(self.cookie, ""))

    async def _check_form(self, request: web.Request) -> None:
        if request.content_type != _FORM or (request.charset or _CODE).lower() != _CODE:
            raise web.HTTPUnsupportedMediaType(text="Only forms of this page are taken.")
        try:
            form = await request.post()  # raises HTTPRequestEntityTooLarge
        except UnicodeDecodeError:
            raise web.HTTPBadRequest(text="The form is not UTF-8 text.") from None
        except (ConnectionError, web.RequestPayloadError):
            raise web.HTTPBadRequest(text="The form did not arrive whole.") from None
        session = self.session(request)
        if request.path == ENTER:
            return  # who has the token needs no other
        if session is None or not same(str(form.get("csrf", "")), session.csrf):
            raise _forbidden("This form is out of date. Go back, load the page again, and send it again.")


def check_source(request: web.Request) -> None:
    """Raise HTTPForbidden for a request that another page or another name has led here."""
    host = request.headers.get("Host", "")
    if _HERE.fullmatch(host) is None:
        raise _forbidden("This page answers to the names of this machine only: localhost or 127.0.0.1.")
    site = request.headers.get("Sec-Fetch-Site", "")
    if site not in ("", "none", "same-origin"):
        raise _forbidden(
            "Another page has sent you here. To open this page, copy its address into the address bar."
        )
    if request.method != "POST":
        return
    origin = request.headers.get("Origin", "")
    ours = site == "same-origin" or (not site and origin in (f"http://{host}", f"https://{host}"))
    if not ours:
        raise _forbidden("This form was not sent by the page itself.")


def see(address: str | URL) -> web.Response:
    """A response that has the browser load another page."""
    return web.Response(status=303, headers={"Location": str(address)})


def _forbidden(why: str) -> web.HTTPForbidden:
    return web.HTTPForbidden(text=why)
