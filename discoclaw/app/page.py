"""The admin's page: off unless an address is set, and then for whoever has its token."""

import asyncio
import logging
import secrets
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Final

import discord

from discoclaw.app.monitoring import Health
from discoclaw.bot import wire
from discoclaw.bot.catch_up import Absence
from discoclaw.bot.client import DiscoClaw
from discoclaw.bot.commands.context import CommandContext
from discoclaw.bot.whereabouts import whereabouts
from discoclaw.core.health import Queue, UnderWay
from discoclaw.core.live import Scope
from discoclaw.core.message import Place
from discoclaw.core.ports import Clock
from discoclaw.core.redact import Redactor
from discoclaw.core.subject import user_subject
from discoclaw.core.view import View
from discoclaw.memory.people.known import KnownPeople
from discoclaw.memory.status import status_of
from discoclaw.session.live_settings import By
from discoclaw.settings import Settings, hiding
from discoclaw.settings_types import Listen
from discoclaw.storage import Storage
from discoclaw.store.files import read_in_thread
from discoclaw.web.page.errors import RecentErrors
from discoclaw.web.page.sources import Live, Names, Sources
from discoclaw.work import Work, at_work

if TYPE_CHECKING:
    from discoclaw.nostr.adapter import NostrAdapter
    from discoclaw.nostr.outgoing.delivery import RelayStatus

log = logging.getLogger(__name__)

VARIABLE: Final = "DISCOCLAW_PAGE"
SOMEBODY: Final = By("", "somebody on the admin's page")
"""Who changes settings, where there is not exactly one owner."""


class Page:
    """The page, at the address `at`. It is a `core.service.Service`.

    `errors` is what the log says of trouble; it starts before the memory is opened. No secret of the settings
    gets as far as the page.
    """

    def __init__(
        self,
        settings: Settings,
        at: Listen,
        client: DiscoClaw,
        storage: Storage,
        context: CommandContext,
        health: Health,
        absence: Absence,
        nostr: "NostrAdapter | None",
        clock: Clock,
        redactor: Redactor,
    ) -> None:
        from discoclaw.web.listening import Listener
        from discoclaw.web.page.access import Access
        from discoclaw.web.page.pages import Pages
        from discoclaw.web.page.rendering import Templates  # 10 MB with Jinja, only for the page

        self._settings = settings
        chosen = settings.page_token
        self._token = chosen.get_secret_value() if chosen is not None else secrets.token_urlsafe(24)
        hide = hiding(settings, self._token)
        self.errors = RecentErrors(lambda text: redactor.clean(hide(text)))
        people = KnownPeople(storage.memory.disk, storage.consent.opted_out)
        sources = Sources(
            bot=lambda: client.user.display_name if client.user is not None else "",
            health=health,
            connected=lambda number: whereabouts(client, number),
            store=lambda: read_in_thread(status_of, storage.memory.disks),
            queues=lambda: _queues(nostr),
            under_way=lambda: _under_way(nostr, absence),
            accounts=context.accounts,
            people=lambda number: read_in_thread(people.page, number),
            own=_own(settings, storage),
            errors=self.errors,
            names=Names(
                lambda channel_id: _name(client.get_channel(int(channel_id))),
                lambda server_id: _name(client.get_guild(int(server_id))),
                lambda ids: read_in_thread(people.names, ids),
            ),
            live=Live(context.settings, lambda scope: _place(client, scope), _by(settings)),
        )
        self._templates = Templates(clock, settings.zone)
        access = Access(self._token, time.monotonic)
        # Browsers send cookies to every port, so that another bot's page here needs another name.
        self._pages = Pages(sources, access, self._templates, f"discoclaw-{at.port}")
        self.listener = Listener(self._pages.app(), at, VARIABLE)
        self.joins = (self.errors, people, self._pages)

    async def start(self) -> None:
        """Listen, and say in the log where. Raises SettingsError if the address can't be used."""
        await asyncio.to_thread(self._templates.load)
        await self.listener.start()
        _say_where(self._settings, self._token, self.listener.port)

    async def settle(self) -> None:
        """There is nothing to wait for."""

    async def close(self) -> None:
        """Listen no more, and give up what is being read."""
        await self.listener.close()
        await self._pages.close()


def _say_where(settings: Settings, token: str, port: int) -> None:
    """Write the way in to the log, also where that has warnings only: without a token, nobody gets in."""
    assert settings.page is not None
    address = f"http://{str(settings.page).rpartition(':')[0]}:{port}/enter"
    if settings.page_token is not None:
        log.info("the admin's page is at %s; enter it with DISCOCLAW_PAGE_TOKEN", address)
        return
    level = max(logging.INFO, logging.getLevelNamesMapping()[settings.log_level])
    log.log(level, "the way into the admin's page, until this process ends: %s?token=%s", address, token)


def _by(settings: Settings) -> By:
    """Whose name a change has that is made on the page."""
    owner = _only_owner(settings)
    return By(owner, "the owner, on the admin's page") if owner is not None else SOMEBODY


def _only_owner(settings: Settings) -> str | None:
    return next(iter(settings.owners)) if len(settings.owners) == 1 else None


def _own(settings: Settings, storage: Storage) -> Callable[[], Awaitable[View]] | None:
    """The memory of the only owner; None if there are more of them, or none."""
    owner = _only_owner(settings)
    if owner is None or not storage.remembers:
        return None
    subject = user_subject(owner)
    return lambda: storage.memory.view(subject)


def _place(client: DiscoClaw, scope: Scope) -> Place | None:
    """The channel of a scope, if this process knows it."""
    channel = client.get_channel(int(scope.id)) if scope.kind == "group" and scope.raw else None
    if not isinstance(channel, discord.abc.GuildChannel):
        return None
    return wire.place_of(channel)  # type: ignore[arg-type] # of a forum too, which messages name as a parent


def _name(place: object) -> str:
    """A channel's or a server's name; "" if this process doesn't know it, or it has none."""
    return str(getattr(place, "name", None) or "")


# What the bot is doing at the moment: what waits where, and what is under way.


async def _queues(nostr: "NostrAdapter | None") -> list[Queue]:
    """Everything that waits: answers, all background work, and events for relays. Raises MemoryFault."""
    relays = await nostr.status() if nostr is not None else ()
    return [*map(_work, at_work()), *map(_relay, relays)]


def _under_way(nostr: "NostrAdapter | None", absence: Absence) -> Sequence[UnderWay]:
    """What has an end: a recovery from relays, and catching up. Never blocks."""
    found = []
    if nostr is not None and (now := nostr.recovering) is not None:
        text = f"{now.stage}, {now.per_s:.0f} a second"
        found.append(UnderWay("Recovery from the relays", text, now.done, now.total))
    if (reading := absence.under_way()) is not None:
        found.append(reading)
    return found


def _relay(one: "RelayStatus") -> Queue:
    queue, connection = one.queue, one.connection
    refused = sum(count for _, count in queue.parked)
    trouble = f"{refused} refused for good" if refused else ""
    if connection.connected_since_ms is None:
        trouble = f"not connected{f'; {trouble}' if trouble else ''}"
    oldest = queue.since if queue.depth else None
    about = f"events for {connection.name}"
    return Queue("outbox", about, queue.depth, None, oldest, "warning" if trouble else "good", trouble)


def _work(one: Work) -> Queue:
    finding = one.finding()
    state, trouble = (finding.state, finding.text) if finding is not None else ("good", "")
    counts = [f"{one.done:,} done"] if one.done else []
    counts += [f"{one.failed:,} failed"] if one.failed else []
    return Queue(one.name, ", ".join(counts), one.waiting, one.running, None, state, trouble)
