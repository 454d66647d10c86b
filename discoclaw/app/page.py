"""The admin's page: off unless an address is set, and then for whoever has its token; and whom it lists."""

import asyncio
import json
import logging
import math
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import discord

from discoclaw.app.monitoring import Health
from discoclaw.bot import wire
from discoclaw.bot.absence import Absence
from discoclaw.bot.client import DiscoClaw
from discoclaw.bot.commands.context import CommandContext
from discoclaw.core.errors import faulting
from discoclaw.core.health import Channel, Connected, Known, People, Queue, Server, Shard, Talks, UnderWay
from discoclaw.core.live import Scope
from discoclaw.core.message import Place
from discoclaw.core.ports import Clock, Passive
from discoclaw.core.profile import Profile
from discoclaw.core.purge import Derived, Phase, Purge
from discoclaw.core.subject import user_of, user_subject
from discoclaw.memory.status import status_of
from discoclaw.memory.subjects.ledger import read
from discoclaw.session.live_settings import By
from discoclaw.settings import Settings, hiding
from discoclaw.storage import Storage
from discoclaw.store.files import read_in_thread
from discoclaw.store.port import PROFILES, Disk
from discoclaw.work import at_work

# ----------------------------------------------------------------------
# Whom the bot knows, for its admin: how much it remembers about each person, and never what.

MOST_SHOWN: Final = 25
"""The people of a page."""
MOST_KEPT: Final = 2_000
"""People whose counts are kept in RAM."""
MOST_BYTES: Final = 2_000_000
"""The largest ledger that is read for its counts: about 5,000 changes, a tenth of a second."""


class KnownPeople(Derived):
    """The people with a memory in a store. `opted_out` says who wants nothing remembered."""

    name = "counts of memories"

    def __init__(self, disk: Disk, opted_out: Callable[[str], bool]) -> None:
        self._disk = disk
        self._opted_out = opted_out
        self._kept: OrderedDict[str, tuple[int, Known]] = OrderedDict()
        """What was counted, with the bytes that the ledger had then, by subject."""
        self._forgotten = 0
        self._lock = threading.Lock()

    def page(self, number: int) -> People:
        """One page of them, from 1 on; the nearest if there is none of that number. Raises MemoryFault."""
        with faulting("the store can't be read"):
            sizes = [one for one in self._disk.ledgers.by_age() if user_of(one[0]) is not None]
            pages = max(1, math.ceil(len(sizes) / MOST_SHOWN))
            number = min(max(1, number), pages)
            last = len(sizes) - (number - 1) * MOST_SHOWN
            shown = reversed(sizes[max(0, last - MOST_SHOWN) : last])
            return People(len(sizes), [self._known(*one) for one in shown], number, pages)

    def names(self, user_ids: Iterable[str]) -> dict[str, str]:
        """The names of people, of those whose name is known."""
        return {one: name for one in user_ids if (name := self._called(one))}

    def purge(self, purge: Purge, phase: Phase) -> None:
        if phase != "ram" or not purge.erases:
            return  # what a ledger has is counted again when that has changed
        with self._lock:
            self._forgotten += 1
            self._kept.pop(purge.subject, None)

    def _known(self, subject: str, size: int) -> Known:
        user_id = user_of(subject) or ""
        known = self._counted(subject, size) if size <= MOST_BYTES else Known(user_id, "")
        return replace(known, name=self._called(user_id), opted_out=self._opted_out(user_id))

    def _counted(self, subject: str, size: int) -> Known:
        """The sums of a ledger of so many bytes."""
        before, known = self._kept.get(subject, (None, None))
        if known is not None and before == size:
            return known
        forgotten = self._forgotten
        loaded = read(self._disk.ledgers.log(subject))
        view, history = loaded.history.shown(), loaded.history
        active = len(view.active())
        known = Known(
            user_of(subject) or "",
            "",
            active,
            len(view.items) - active,
            len(history.branches.all),
            len(history.commits),
            view.updated_at if history.commits else None,
            bool(loaded.damage),
        )
        with self._lock:
            if forgotten == self._forgotten:  # else it may be of somebody who was erased since
                self._kept[subject] = size, known
            if len(self._kept) > MOST_KEPT:
                self._kept.popitem(last=False)
        return known

    def _called(self, user_id: str) -> str:
        """The name in a person's profile; "" if there is none that can be read."""
        try:
            return Profile.from_json(json.loads(self._disk.documents(PROFILES).read(f"{user_id}.json"))).name
        except (OSError, ValueError, RecursionError):
            return ""


if TYPE_CHECKING:
    from discoclaw.nostr.adapter import NostrAdapter

log = logging.getLogger(__name__)

VARIABLE: Final = "DISCOCLAW_PAGE"
SOMEBODY: Final = By("", "somebody on the admin's page")
"""Who changes settings, where there is not exactly one owner."""


class Page(Passive):
    """The page, at the address that the settings name.

    `errors` is what the log says of trouble; it starts before the memory is opened. No secret of the settings
    gets as far as the page.
    """

    def __init__(
        self,
        settings: Settings,
        client: DiscoClaw,
        storage: Storage,
        context: CommandContext,
        health: Health,
        absence: Absence,
        nostr: "NostrAdapter | None",
        clock: Clock,
    ) -> None:
        from discoclaw.web.listening import Listener
        from discoclaw.web.page.guard import Access
        from discoclaw.web.page.pages import Live, Names, Pages, Sources
        from discoclaw.web.page.rendering import (
            RecentErrors,
            Templates,  # 10 MB with Jinja, only for the page
        )

        at = settings.page
        assert at is not None  # else there is no page
        self._settings = settings
        chosen = settings.page_token
        self._token = chosen.get_secret_value() if chosen is not None else secrets.token_urlsafe(24)
        hide = hiding(settings, self._token)
        self.errors = RecentErrors(lambda text: client.redactor.clean(hide(text)))
        people = KnownPeople(storage.memory.disk, storage.consent.opted_out)
        owner = next(iter(settings.owners)) if len(settings.owners) == 1 else None
        own = None
        if owner is not None and storage.remembers:
            own = partial(storage.memory.view, user_subject(owner))
        sources = Sources(
            bot=lambda: client.user.display_name if client.user is not None else "",
            health=health,
            connected=lambda number: whereabouts(client, number),
            store=lambda: read_in_thread(status_of, storage.memory.disks),
            queues=lambda: _queues(nostr),
            under_way=lambda: _under_way(nostr, absence),
            accounts=context.accounts,
            people=lambda number: read_in_thread(people.page, number),
            own=own,
            errors=self.errors,
            names=Names(
                lambda channel_id: _name(client.get_channel(int(channel_id))),
                lambda server_id: _name(client.get_guild(int(server_id))),
                lambda ids: read_in_thread(people.names, ids),
            ),
            live=Live(
                context.settings,
                lambda scope: _place(client, scope),
                By(owner, "the owner, on the admin's page") if owner is not None else SOMEBODY,
            ),
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
        settings = self._settings
        # The way in is logged also where the log has warnings only: without a token, nobody gets in.
        address = f"http://{str(settings.page).rpartition(':')[0]}:{self.listener.port}/enter"
        if settings.page_token is not None:
            log.info("the admin's page is at %s; enter it with DISCOCLAW_PAGE_TOKEN", address)
            return
        level = max(logging.INFO, logging.getLevelNamesMapping()[settings.log_level])
        way_in = "the way into the admin's page, until this process ends: %s?token=%s"
        log.log(level, way_in, address, self._token)

    async def close(self) -> None:
        """Listen no more, and give up what is being read."""
        await self.listener.close()
        await self._pages.close()


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
    found = []
    for work in at_work():
        finding = work.finding()
        state, trouble = (finding.state, finding.text) if finding is not None else ("good", "")
        counts = [f"{work.done:,} done"] if work.done else []
        counts += [f"{work.failed:,} failed"] if work.failed else []
        about = ", ".join(counts)
        found.append(Queue(work.name, about, work.waiting, work.running, None, state, trouble))
    for relay in await nostr.status() if nostr is not None else ():
        queue, connection = relay.queue, relay.connection
        refused = sum(count for _, count in queue.parked)
        troubles = [] if connection.connected_since_ms is not None else ["not connected"]
        troubles += [f"{refused} refused for good"] if refused else []
        oldest = queue.since if queue.depth else None
        about, state = f"events for {connection.url}", "warning" if troubles else "good"
        found.append(Queue("outbox", about, queue.depth, None, oldest, state, "; ".join(troubles)))
    return found


def _under_way(nostr: "NostrAdapter | None", absence: Absence) -> Sequence[UnderWay]:
    """What has an end: a recovery from relays, and catching up. Never blocks."""
    found = []
    if nostr is not None and (now := nostr.recovering) is not None:
        text = f"{now.stage}, {now.per_s:.0f} a second"
        found.append(UnderWay("Recovery from the relays", text, now.done, now.total))
    if (reading := absence.under_way()) is not None:
        found.append(reading)
    return found


# ----------------------------------------------------------------------
# Servers, channels and connections of the bot, from discord.py's RAM.

MOST_SERVERS: Final = 25
"""The servers of a page."""
MOST_CHANNELS: Final = 60
"""The channels of a server that are looked at; permissions cost about 20 µs each."""


async def whereabouts(client: "DiscoClaw", number: int = 1) -> Connected:
    """The servers of the bot, the largest first. Between two servers others have their turn."""
    guilds = sorted(client.guilds, key=lambda one: (-(one.member_count or 0), one.id))
    pages = max(1, math.ceil(len(guilds) / MOST_SERVERS))
    number = min(max(1, number), pages)
    servers = []
    for guild in guilds[(number - 1) * MOST_SERVERS : number * MOST_SERVERS]:
        servers.append(_server(client, guild))
        await asyncio.sleep(0)
    return Connected(client.is_ready(), _shards(client), len(guilds), tuple(servers), number, pages)


def _shards(client: "DiscoClaw") -> tuple[Shard, ...]:
    ours = client.shards_served
    away = set(client.connected.away(ours))
    if isinstance(client, discord.AutoShardedClient):
        latencies = dict(client.latencies)
        return tuple(Shard(one, one not in away, _ms(latencies.get(one, math.nan))) for one in ours.ids)
    return (Shard(0, not away, _ms(client.latency)),)


def _ms(seconds: float) -> int | None:
    return round(seconds * 1000) if math.isfinite(seconds) else None


def _server(client: "DiscoClaw", guild: discord.Guild) -> Server:
    places = [one for one in guild.channels if isinstance(one, discord.abc.Messageable)]
    places.sort(key=lambda one: (one.category.position if one.category else -1, one.position, one.id))
    seen = tuple(Channel(str(one.id), one.name, _talks(client, one)) for one in places[:MOST_CHANNELS])
    more = max(0, len(places) - MOST_CHANNELS)
    return Server(str(guild.id), guild.name, guild.member_count, not guild.unavailable, seen, more)


def _talks(client: "DiscoClaw", channel: Any) -> Talks:
    me: discord.Member | None = channel.guild.me
    may = channel.permissions_for(me) if me is not None else discord.Permissions.none()
    if not may.view_channel:
        return "can't see"
    if not client.listens(channel):
        return "hears nothing"
    return "answers" if may.send_messages else "can't write"
