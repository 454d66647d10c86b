"""The pages: what is read for each of them, the ways in and out, and the form of the settings.

`Sources` is what the program hands over for them; each may be slow or fail, see `Reading`.

The form shows and changes the live configuration in the same way as `/settings`. What lies on a disk or in a
database that may hang is read while somebody looks, within a limit of time.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Generic, ParamSpec, TypeVar

from aiohttp import web
from yarl import URL

from discoclaw.core.budgets import Spent
from discoclaw.core.errors import DiscoClawError, Refused
from discoclaw.core.health import Connected, Finding, People, Queue, UnderWay, worst_first
from discoclaw.core.live import GLOBAL, Scope, parse_scope
from discoclaw.core.message import Place
from discoclaw.core.policy import (
    FIELDS,
    Field,
    changed_words,
    has_lines,
    longest,
    options,
    typed_value,
    value_words,
)
from discoclaw.core.privacy import may_show
from discoclaw.core.purge import Derived, Phase, Purge
from discoclaw.core.usage import By, Group, Lately
from discoclaw.core.view import View
from discoclaw.memory.live import FILE
from discoclaw.memory.status import Status
from discoclaw.session.live_settings import FIXED, LiveSettings, Row
from discoclaw.session.live_settings import By as ChangedBy
from discoclaw.show.answer import Answer
from discoclaw.show.usage import grouped
from discoclaw.usage.accounts import Accounts
from discoclaw.web.page.guard import ENTER, LONGEST_S, MOST_BYTES, Access, Guard, Session, TooManyTries, see
from discoclaw.web.page.rendering import STATIC, RecentErrors, Templates

log = logging.getLogger(__name__)

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


# ---------------------------------------------------------------------- what is handed over


@dataclass(frozen=True, slots=True)
class Names:
    """Names by ids: of channels and servers, from RAM ("" if unknown); of people whose name is known."""

    channel: Callable[[str], str]
    server: Callable[[str], str]
    people: Callable[[Sequence[str]], Awaitable[Mapping[str, str]]]


@dataclass(frozen=True, slots=True)
class Live:
    """The live settings. A change has the name of `by`.

    `place` is the channel of a scope, None if it is not known here.
    """

    settings: LiveSettings
    place: Callable[[Scope], Place | None]
    by: ChangedBy


@dataclass(frozen=True, slots=True)
class Sources:
    """The sources of everything on the page.

    `bot` is the bot's name, "" before it has logged in. `connected` and `people` take the number of a page.
    `own` is the memory of the admin, None if it isn't known who that is.
    """

    bot: Callable[[], str]
    health: Callable[[], Sequence[Finding]]
    connected: Callable[[int], Awaitable[Connected]]
    store: Callable[[], Awaitable[Status]]
    queues: Callable[[], Awaitable[Sequence[Queue]]]
    under_way: Callable[[], Sequence[UnderWay]]
    accounts: Accounts
    people: Callable[[int], Awaitable[People]]
    own: Callable[[], Awaitable[View]] | None
    errors: RecentErrors
    names: Names
    live: Live


# ---------------------------------------------------------------------- the pages


class Pages(Derived):
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

    def purge(self, purge: Purge, phase: Phase) -> None:
        for one in self._readings if phase == "ram" and purge.erases else ():
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
        usage, known = await self._usage.get(), self._sources.names
        found = usage.value
        people = (await self._names.get(found.people() if found is not None else [])).value or {}
        names: dict[By, Callable[[str], str]] = {
            "person": lambda user_id: people.get(user_id, ""),
            "channel": lambda channel_id: f"#{name}" if (name := known.channel(channel_id)) else "",
            "server": known.server,
        }
        tables = found.tables(names) if found is not None else {}
        return self._page(request, "usage", usage=usage, tables=tables, names=names, most=MOST_GROUPS)

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
            try:
                scope = parse_scope(form["scope"])
            except Refused:
                scope = GLOBAL
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


# ---------------------------------------------------------------------- the settings

OWN_SIGNATURE = f"{FIXED[:1].upper()}{FIXED[1:]}; `discoclaw config set` signs another value."


@dataclass(frozen=True, slots=True)
class Setting:
    """A field at a scope, as it is shown. `own` is its value in the form, "" if the scope has none.

    `by` is the id of whoever set it and `at` when (ms), if that is known.
    """

    field: Field
    value: str
    origin: str
    own: str
    fixed: bool
    options: Sequence[tuple[str, str]]
    lines: bool
    longest: int
    by: str = ""
    at: int | None = None


@dataclass(frozen=True, slots=True)
class Override:
    """A scope that has settings of its own, and what they are."""

    scope: str
    values: str
    signed: bool


class Configuration:
    """Shows and changes the live configuration."""

    def __init__(self, sources: Sources) -> None:
        self._sources = sources

    @property
    def _settings(self) -> LiveSettings:
        return self._sources.live.settings

    async def settings(self, scope: Scope) -> list[Setting]:
        """Every field that makes sense at a scope."""
        await self._settings.refresh()
        return [self._setting(scope, row) for row in self._settings.rows(scope)]

    def overrides(self) -> list[Override]:
        """All scopes with settings of their own."""
        found = []
        for one in self._settings.places.live.overrides():
            values = (
                f"{FIELDS[name].title}: {value_words(FIELDS[name], value)}"
                for name, value in one.overrides.items()
            )
            found.append(Override(str(one.scope), "; ".join(values), one.source == "event"))
        return found

    async def change(self, form: Mapping[str, str]) -> str:
        """Change what a form names, and return a sentence about it. Raises Refused."""
        scope = parse_scope(form["scope"])
        await self._settings.refresh()
        field = self._settings.row(scope, form["field"]).field
        value = None if "unset" in form else typed_value(field, form["value"])
        if not await self._settings.change(scope, field.name, value, self._sources.live.by):
            return f"{field.title} was that already."
        return f"{field.title} {changed_words(field, value)}."

    def titled(self, scope: Scope) -> str:
        """A scope in words."""
        if scope == GLOBAL:
            return "everywhere"
        if scope.kind == "user":
            return f"person {scope.id}"
        name = self._sources.names.channel(scope.id) if scope.raw else ""
        return f"#{name}" if name else f"channel {scope.id}"

    def _setting(self, scope: Scope, row: Row) -> Setting:
        field, changed = row.field, row.changed
        own = "" if row.own is None else str(row.own)
        if isinstance(row.own, bool):
            own = value_words(field, row.own)  # which is how it is chosen
        return Setting(
            field=field,
            value=self._settings.words(row, self._sources.live.place(scope)),
            origin=self._origin(scope, row),
            own=own,
            fixed=row.fixed,
            options=options(field),
            lines=has_lines(field),
            longest=longest(field),
            by=changed.by if changed is not None else "",
            at=changed.at if changed is not None else None,
        )

    def _origin(self, scope: Scope, row: Row) -> str:
        """The source of a value, in words."""
        effective = row.effective
        wider = "" if effective.scope == scope else f", for {self.titled(effective.scope)}"
        if effective.source == "event":
            return f"signed by the owner{wider}"
        if effective.source == "file":
            return f"{'set' if row.changed is not None else f'set in {FILE}'}{wider}"
        listed = effective.value is None and self._settings.lists(row.field.name)
        return f"from {row.field.variable}" if effective.source == "settings" or listed else "default"


# ---------------------------------------------------------------------- values from a disk

P = ParamSpec("P")
T = TypeVar("T")

WITHIN_S: Final = 2.0
"""How long a page waits for a part of it: as long as a reply waits for a disk."""
FRESH_S: Final = 2.0
"""How long a value is shown again."""
HANGS: Final = f"could not be read within {WITHIN_S:.0f} s; the disk or the database may hang"


@dataclass(frozen=True, slots=True)
class Read(Generic[T]):
    """A value, or None and the `trouble` with it."""

    value: T | None = None
    trouble: str = ""


class Reading(Generic[P, T]):
    """Reads a value with `read`. `name` is for the log."""

    def __init__(
        self,
        name: str,
        read: Callable[P, Awaitable[T]],
        *,
        within_s: float = WITHIN_S,
        fresh_s: float = FRESH_S,
    ) -> None:
        self._name = name
        self._read = read
        self._within_s = within_s
        self._fresh_s = fresh_s
        self._kept: tuple[object, float, Read[T]] | None = None
        self._forgotten = 0
        self._task: asyncio.Task[Read[T]] | None = None

    async def get(self, *args: P.args, **kwargs: P.kwargs) -> Read[T]:
        """The value for these arguments. Never raises."""
        loop, asked = asyncio.get_running_loop(), (args, kwargs)
        ends = loop.time() + self._within_s
        while True:
            if self._kept is not None:
                known, until, found = self._kept
                if known == asked and loop.time() < until:
                    return found
            if self._task is None:
                self._task = asyncio.create_task(self._tried(*args, **kwargs), name=self._name)
                self._task.add_done_callback(self._ended)
            task = self._task
            if (left := ends - loop.time()) <= 0:
                return Read(None, HANGS)
            await asyncio.wait([task], timeout=left)

    def forget(self) -> None:
        """Show nothing again that was read before now."""
        self._kept = None
        self._forgotten += 1

    async def _tried(self, *args: P.args, **kwargs: P.kwargs) -> Read[T]:
        found: Read[T]
        forgotten, fresh_s = self._forgotten, self._fresh_s
        try:
            found = Read(await self._read(*args, **kwargs))
        except (DiscoClawError, OSError) as error:
            found, fresh_s = Read(None, str(error)), FRESH_S
        except Exception:  # a named edge: a bug in one part of a page must not take the others away
            log.exception("the page could not read %s", self._name)
            found, fresh_s = Read(None, "could not be read; the log says why"), FRESH_S
        if forgotten == self._forgotten:
            self._kept = ((args, kwargs), asyncio.get_running_loop().time() + fresh_s, found)
        return found

    def _ended(self, task: "asyncio.Task[Read[T]]") -> None:
        self._task = None

    async def close(self) -> None:
        """Give up on what is being read."""
        if (task := self._task) is not None:
            task.cancel()
            await asyncio.wait([task])


# ---------------------------------------------------------------------- usage

MOST_GROUPS: Final = 25
"""The most people, channels or servers that are listed."""
HEIGHT: Final = 100
"""The height of the highest bar."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Sums of all calls lately, with a bar of a height for each day; and what is spent of budgets."""

    lately: Lately
    bars: Sequence[tuple[Group, float]]
    groups: Mapping[By, Sequence[Group]]
    budgets: Sequence[Spent]

    def people(self) -> list[str]:
        """The ids of all people who are listed."""
        listed = {one.key for one in self.groups["person"][:MOST_GROUPS]}
        limited = {one.whose for one in self.budgets[:MOST_GROUPS] if one.limit.scope == "person"}
        return sorted(one for one in listed | limited if one)

    def tables(self, names: Mapping[By, Callable[[str], str]]) -> dict[By, Answer]:
        """The dearest groups of each kind, and all days. `names` finds what an id is called."""
        total = self.lately.report.total
        return {
            kind: grouped(kind, groups, total, names, None if kind == "day" else MOST_GROUPS)
            for kind, groups in self.groups.items()
            if groups
        }


async def usage_of(accounts: Accounts) -> Usage:
    """Use and budgets, as the accounts have them. Raises MemoryFault."""
    found, budgets = await accounts.lately(), accounts.all_spent()

    def divide() -> Usage:
        report = found.report
        # A bar for each day: of what was paid, or of tokens if everything was free.
        days = report.by("day", found.days)
        values = [one.total.nano if report.total.nano else one.total.tokens for one in days]
        highest = max(*values, 1)
        heights = [round(HEIGHT * value / highest, 1) for value in values]
        kinds: tuple[By, ...] = ("purpose", "model", "person", "channel", "server")
        groups = {kind: report.by(kind) for kind in kinds} | {"day": report.by("day")[::-1]}
        return Usage(found, list(zip(days, heights, strict=True)), groups, budgets)

    return await asyncio.to_thread(divide)
