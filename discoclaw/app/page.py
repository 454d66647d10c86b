"""The admin's page: off unless an address is set, and then for whoever has its token."""

import asyncio
import logging
import secrets
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, ClassVar, Final

import discord

from discoclaw.app.basics import Basics
from discoclaw.app.disk import OnDisk
from discoclaw.app.doing import Doing
from discoclaw.app.feature import Feature
from discoclaw.app.part import Part
from discoclaw.bot import wire
from discoclaw.bot.client import DiscoClaw
from discoclaw.bot.commands.context import CommandContext
from discoclaw.bot.whereabouts import whereabouts
from discoclaw.core.health import Finding
from discoclaw.core.live import Scope
from discoclaw.core.message import Place
from discoclaw.core.subject import user_subject
from discoclaw.core.view import View
from discoclaw.memory.disk.files import read_in_thread
from discoclaw.memory.people.known import KnownPeople
from discoclaw.memory.status import status_of
from discoclaw.session.live_settings import By
from discoclaw.settings import Settings
from discoclaw.settings_secrets import hiding
from discoclaw.storage import Storage
from discoclaw.web.page.errors import RecentErrors
from discoclaw.web.page.sources import Live, Names, Sources

if TYPE_CHECKING:
    from discoclaw.web.listening import Listener

log = logging.getLogger(__name__)

VARIABLE: Final = "DISCOCLAW_PAGE"
SOMEBODY: Final = By("", "somebody on the admin's page")
"""Who changes settings, where there is not exactly one owner."""


class Troubles(Feature):
    """Keeps what the log says of trouble, for the page. It starts before the memory is opened.

    `token` is the way in. No secret of the settings gets as far as the page.
    """

    def __init__(self, basics: Basics) -> None:
        settings = basics.settings
        chosen = settings.page_token
        self.token = chosen.get_secret_value() if chosen is not None else secrets.token_urlsafe(24)
        hide = hiding(settings, self.token)
        self.errors = RecentErrors(lambda text: basics.redactor.clean(hide(text)))
        if settings.page is not None:
            self.services = (self.errors,)
        self.joins = (self.errors,)


class Page(Feature):
    """The page. `doing` knows what the bot is doing.

    `everything` is the program's health, which the composition root sets.
    """

    settings: ClassVar = ("page", "page_token")
    listener: "Listener | None" = None

    def __init__(
        self,
        basics: Basics,
        troubles: Troubles,
        client: DiscoClaw,
        disk: OnDisk,
        doing: Doing,
        context: CommandContext,
    ) -> None:
        self.everything: Callable[[], Sequence[Finding]] = list
        settings, storage = basics.settings, disk.storage
        people = KnownPeople(storage.memory.disk, storage.consent.opted_out)
        self.joins = (people,)
        if settings.page is None:
            return
        from discoclaw.web.listening import Listener
        from discoclaw.web.page.access import Access
        from discoclaw.web.page.pages import Pages
        from discoclaw.web.page.rendering import Templates  # 10 MB with Jinja, only for the page

        sources = Sources(
            bot=lambda: client.user.display_name if client.user is not None else "",
            health=lambda: self.everything(),
            connected=lambda number: whereabouts(client, number),
            store=lambda: read_in_thread(status_of, storage.memory.disks),
            queues=doing.queues,
            under_way=doing.under_way,
            accounts=context.accounts,
            people=lambda number: read_in_thread(people.page, number),
            own=_own(settings, storage),
            errors=troubles.errors,
            names=Names(
                lambda channel_id: _name(client.get_channel(int(channel_id))),
                lambda server_id: _name(client.get_guild(int(server_id))),
                lambda ids: read_in_thread(people.names, ids),
            ),
            live=Live(context.settings, lambda scope: _place(client, scope), _by(settings)),
        )
        templates = Templates(basics.clock, settings.zone)
        access = Access(troubles.token, time.monotonic)
        # Browsers send cookies to every port, so that another bot's page here needs another name.
        pages = Pages(sources, access, templates, f"discoclaw-{settings.page.port}")
        self.listener = listener = Listener(pages.app(), settings.page, VARIABLE)
        self.joins = (people, pages)

        async def start() -> None:
            await asyncio.to_thread(templates.load)
            await listener.start()
            _say_where(settings, troubles.token, listener.port)

        async def close() -> None:
            await listener.close()
            await pages.close()

        self.services = (Part(start, closing=close),)


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
