"""The pages: what is read for each of them, the ways in and out, and the form of the settings."""

import asyncio
from functools import partial
from typing import Any, Final

from aiohttp import web
from yarl import URL

from discoclaw.core.errors import Refused
from discoclaw.core.health import worst_first
from discoclaw.core.live import GLOBAL, Scope, parse_scope
from discoclaw.core.personal import Erasure, PersonalData
from discoclaw.core.privacy import may_show
from discoclaw.web.page.access import LONGEST_S, Access, Session, TooManyTries
from discoclaw.web.page.configuration import OWN_SIGNATURE, Configuration
from discoclaw.web.page.guard import ENTER, MOST_BYTES, Guard, see
from discoclaw.web.page.reading import Reading
from discoclaw.web.page.rendering import STATIC, Templates
from discoclaw.web.page.sources import Sources
from discoclaw.web.page.usage import MOST_GROUPS, NOBODY, usage_of

NAVIGATION: Final = (
    ("/", "Overview"),
    ("/connections", "Connections"),
    ("/usage", "Usage"),
    ("/queues", "Queues"),
    ("/people", "People"),
    ("/settings", "Settings"),
    ("/errors", "Errors"),
)
RENEW_S: Final = 10
"""Pages about what is going on load themselves anew that often, but never one with a form."""
USAGE_FRESH_S: Final = 60.0
"""How long the usage is shown: to add it up, the log of a month is read."""
STORE_FRESH_S: Final = 30.0
"""How long the state of the store is shown: to find it out, every file in the data folder is looked at."""
WRONG: Final = (
    "That token isn't right, or no longer valid: without DISCOCLAW_PAGE_TOKEN, each start makes a new one."
)
TOO_MANY: Final = "There were too many wrong tokens. Wait a minute, then try again."


class Pages(PersonalData):
    """All pages. `access` says who may see them, `cookie` is the name of the session's cookie."""

    name = "the admin's page"

    def __init__(self, sources: Sources, access: Access, templates: Templates, cookie: str) -> None:
        self._sources = sources
        self._access = access
        self._templates = templates
        self._guard = Guard(access, cookie, self._error_page)
        self._configuration = Configuration(sources)
        self._connected = Reading("where the bot is", sources.connected)
        self._store = Reading("the state of the store", sources.store, fresh_s=STORE_FRESH_S)
        self._usage = Reading("the usage", partial(usage_of, sources.accounts), fresh_s=USAGE_FRESH_S)
        self._queues = Reading("the queues", sources.queues)
        self._people = Reading("the people", sources.people)
        self._names = Reading("names", sources.names.people)
        self._own = Reading("the admin's own memories", sources.own) if sources.own is not None else None
        self._readings: list[Reading[..., Any] | None] = [self._connected, self._store, self._usage]
        self._readings += [self._queues, self._people, self._names, self._own]

    def app(self) -> web.Application:
        """The pages as an application."""
        app = web.Application(middlewares=[self._guard.middleware()], client_max_size=MOST_BYTES)
        for path, page in {
            "/": self.overview,
            "/connections": self.connections,
            "/usage": self.usage,
            "/queues": self.queues,
            "/people": self.people,
            "/memories": self.memories,
            "/settings": self.settings,
            "/errors": self.errors,
            ENTER: self.enter,
        }.items():
            app.router.add_get(path, page, name=page.__name__)
        app.router.add_post("/settings", self.change)
        app.router.add_post(ENTER, self.try_token)
        app.router.add_post("/leave", self.leave)
        for name in STATIC:
            app.router.add_get(f"/{name}", self.static, name=name)
        return app

    def forget(self, erasure: Erasure) -> None:
        for one in self._readings:
            if one is not None:
                one.forget()

    async def close(self) -> None:
        """Give up on what is being read."""
        for one in self._readings:
            if one is not None:
                await one.close()

    # ------------------------------------------------------------------ what is shown

    async def overview(self, request: web.Request) -> web.Response:
        sources = self._sources
        connected, people, queues = await asyncio.gather(
            self._connected.get(1), self._people.get(1), self._queues.get()
        )
        return self._page(
            request,
            "overview",
            health=worst_first(sources.health()),
            under_way=sources.under_way(),
            connected=connected,
            people=people,
            queues=queues,
            errors=sources.errors.newest(),
            budget=next(iter(sources.accounts.all_spent()), None),
            renew=RENEW_S,
        )

    async def connections(self, request: web.Request) -> web.Response:
        connected, store = await asyncio.gather(self._connected.get(_number(request)), self._store.get())
        return self._page(request, "connections", connected=connected, store=store)

    async def usage(self, request: web.Request) -> web.Response:
        usage, names = await self._usage.get(), self._sources.names
        people = await self._names.get(usage.value.people() if usage.value is not None else [])
        return self._page(
            request,
            "usage",
            usage=usage,
            people=people.value or {},
            channel=names.channel,
            server=names.server,
            nobody=NOBODY,
            most=MOST_GROUPS,
        )

    async def queues(self, request: web.Request) -> web.Response:
        queues, store = await asyncio.gather(self._queues.get(), self._store.get())
        under_way = self._sources.under_way()
        return self._page(request, "queues", queues=queues, under_way=under_way, store=store, renew=RENEW_S)

    async def people(self, request: web.Request) -> web.Response:
        people = await self._people.get(_number(request))
        return self._page(request, "people", people=people, own=self._own is not None)

    async def memories(self, request: web.Request) -> web.Response:
        """The admin's own memories, without those that are shown in their direct messages alone."""
        if self._own is None:
            raise web.HTTPNotFound
        found = await self._own.get()
        items = found.value.active() if found.value is not None else []
        open_ = [one for one in items if may_show(one, in_dm=False)]
        return self._page(
            request, "memories", read=found, items=list(reversed(open_)), private=len(items) - len(open_)
        )

    async def errors(self, request: web.Request) -> web.Response:
        return self._page(request, "errors", errors=self._sources.errors.newest(), renew=RENEW_S)

    async def settings(self, request: web.Request) -> web.Response:
        try:
            scope = parse_scope(request.query.get("scope") or str(GLOBAL))
        except Refused as refusal:
            return await self._settings_page(request, GLOBAL, trouble=str(refusal), status=400)
        return await self._settings_page(request, scope)

    async def static(self, request: web.Request) -> web.Response:
        text, kind = self._templates.static[request.path.removeprefix("/")]
        return web.Response(text=text, content_type=kind, charset="utf-8")

    # ------------------------------------------------------------------ what is changed

    async def change(self, request: web.Request) -> web.Response:
        """Change a setting. What was typed and isn't allowed stays in the form."""
        form = {name: str(value) for name, value in (await request.post()).items()}
        if not {"scope", "field", "value"} <= form.keys():
            raise web.HTTPBadRequest(text="The form lacks something.")
        try:
            said = await self._configuration.change(form)
        except Refused as refusal:
            scope = _scope_of(form["scope"])
            typed = {form["field"]: form["value"]}
            return await self._settings_page(request, scope, trouble=str(refusal), typed=typed, status=422)
        self._here(request).said = said
        return see(URL("/settings").with_query(scope=form["scope"]))

    async def enter(self, request: web.Request) -> web.Response:
        """The way in. Whoever comes with a token is sent on, so that no page has it in its address."""
        if (token := request.query.get("token")) is not None:
            return self._let_in(token)
        said = {"wrong": WRONG, "many": TOO_MANY}.get(request.query.get("why", ""), "")
        return self._page(request, "enter", said=said)

    async def try_token(self, request: web.Request) -> web.Response:
        return self._let_in(str((await request.post()).get("token", "")))

    async def leave(self, request: web.Request) -> web.Response:
        self._access.leave(request.cookies.get(self._guard.cookie, ""))
        response = see(ENTER)
        response.del_cookie(self._guard.cookie, path="/")
        return response

    # ------------------------------------------------------------------ inside

    def _here(self, request: web.Request) -> Session:
        """The session of a request that the guard has let through."""
        found = self._guard.session(request)
        if found is None:  # it has ended since
            raise web.HTTPForbidden(text="You were away for too long. Enter the page again.")
        return found

    def _let_in(self, token: str) -> web.Response:
        """Begin a session for somebody with the token; send anybody else back."""
        try:
            key = self._access.enter(token.strip())
        except TooManyTries:
            return see(f"{ENTER}?why=many")
        if key is None:
            return see(f"{ENTER}?why=wrong")
        response = see("/")
        response.set_cookie(
            self._guard.cookie, key, max_age=int(LONGEST_S), path="/", httponly=True, samesite="Strict"
        )
        return response

    async def _settings_page(
        self,
        request: web.Request,
        scope: Scope,
        *,
        trouble: str = "",
        typed: dict[str, str] | None = None,
        status: int = 200,
    ) -> web.Response:
        configuration = self._configuration
        settings = await configuration.settings(scope)
        people = await self._names.get([one.by for one in settings if one.by])
        return self._page(
            request,
            "settings",
            status=status,
            scope=scope,
            titled=configuration.titled(scope),
            unknown=scope.kind == "group" and self._sources.live.place(scope) is None,
            settings=settings,
            overrides=configuration.overrides(),
            models=self._sources.live.settings.models,
            people=people.value or {},
            fixed=OWN_SIGNATURE,
            said=self._here(request).heard(),
            trouble=trouble,
            typed=typed or {},
        )

    def _page(self, request: web.Request, name: str, *, status: int = 200, **values: Any) -> web.Response:
        session = self._guard.session(request)
        return self._response(
            name,
            status,
            here=request.path,
            csrf=session.csrf if session is not None else "",
            **{"renew": 0, **values},
        )

    def _error_page(self, status: int, why: str) -> web.Response:
        return self._response("error", status, here="", csrf="", renew=0, number=status, why=why)

    def _response(self, name: str, status: int, **values: Any) -> web.Response:
        text = self._templates.render(name, bot=self._sources.bot(), navigation=NAVIGATION, **values)
        return web.Response(text=text, status=status, content_type="text/html", charset="utf-8")


def _number(request: web.Request) -> int:
    """The number of the page that is asked for."""
    text = request.query.get("page", "1")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 7 else 1


def _scope_of(text: str) -> Scope:
    try:
        return parse_scope(text)
    except Refused:
        return GLOBAL
