"""What the page shows, as the program hands it over. Each source may be slow or fail; see `pages.Reading`."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from discoclaw.core.health import Connected, Finding, People, Queue, UnderWay
from discoclaw.core.live import Scope
from discoclaw.core.message import Place
from discoclaw.core.view import View
from discoclaw.memory.status import Status
from discoclaw.session.live_settings import By, LiveSettings
from discoclaw.usage.accounts import Accounts
from discoclaw.web.page.errors import RecentErrors


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
    by: By


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
