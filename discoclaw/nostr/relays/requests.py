"""The open requests (REQ) of one connection: those for stored events, and subscriptions that outlive it.

Knows nothing about what the events mean, nor about authentication beyond asking for it.
"""

import asyncio
import contextlib
import logging
import secrets
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence

from discoclaw.core.errors import RelayUnreachable
from discoclaw.nostr.relays.connection import Connection
from discoclaw.nostr.relays.streams import End, Handler, Request, Subscription
from discoclaw.nostr.relays.wire import Filter, close_frame, request_frame

log = logging.getLogger(__name__)


class OpenRequests:
    """Sends requests over a connection and hands each answer to the request it belongs to.

    `authenticate` is called when a relay closes a subscription because it wants that. It raises RelayError.
    """

    def __init__(self, connection: Connection, authenticate: Callable[[], Awaitable[None]]) -> None:
        self._connection = connection
        self._authenticate = authenticate
        self._requests: dict[str, Request] = {}
        self._subscriptions: dict[str, Subscription] = {}
        self._readers: dict[str, asyncio.Task[None]] = {}

    @property
    def bad(self) -> Counter[str]:
        """How many events all subscriptions dropped, by reason."""
        found: Counter[str] = Counter()
        for subscription in self._subscriptions.values():
            found.update(subscription.bad)
        return found

    # ------------------------------------------------------------------ requests

    @contextlib.asynccontextmanager
    async def request(self, filters: Sequence[Filter], limit: int) -> AsyncIterator[Request]:
        """Ask for stored events; on leaving, the relay is told to stop.

        Without a connection it ends as "lost".
        """
        request = Request(secrets.token_hex(8), filters, limit)
        self._requests[request.id] = request
        try:
            await self._send(request)
            yield request
        finally:
            del self._requests[request.id]
            if request.end is None or request.end.how not in ("closed", "lost"):
                self._send_close(request.id)

    async def subscribe(self, filters: Iterable[Filter], handler: Handler) -> Subscription:
        """Ask for stored and future events. `handler` gets each of them, also after a reconnect."""
        subscription = Subscription(secrets.token_hex(8), tuple(filters), handler)
        self._subscriptions[subscription.id] = subscription
        self._readers[subscription.id] = asyncio.create_task(subscription.run())
        limit = self._connection.limits.max_requests
        if limit is not None and len(self._subscriptions) >= limit:
            count = len(self._subscriptions)
            log.warning("%s allows %d requests at once, and %d are open", self._connection.name, limit, count)
        if self._connection.is_open:
            await self._send(subscription)
        return subscription

    async def unsubscribe(self, subscription: Subscription) -> None:
        """End a subscription. Once this returns, its handler is not called any more."""
        reader = self._readers.pop(subscription.id, None)
        if self._subscriptions.pop(subscription.id, None) is not None:
            self._send_close(subscription.id)
        if reader is not None:
            reader.cancel()
            await asyncio.gather(reader, return_exceptions=True)

    def resubscribe(self) -> None:
        """Send all subscriptions again, over a new connection."""
        for subscription in self._subscriptions.values():
            self._connection.spawn(self._send(subscription))

    def send_all(self) -> None:
        """Send everything again: what a stranger was given may be less than what the author gets."""
        self.resubscribe()
        for request in self._requests.values():
            self._connection.spawn(self._send(request))

    def lose(self) -> None:
        """The connection is lost: requests for stored events end, subscriptions wait for the next one."""
        for request in self._requests.values():
            request.finish(End("lost"))

    async def close(self) -> None:
        """Stop handing over events."""
        readers, self._readers = list(self._readers.values()), {}
        self._subscriptions.clear()
        for reader in readers:
            reader.cancel()
        await asyncio.gather(*readers, return_exceptions=True)

    # ------------------------------------------------------------------ answers

    def put(self, id_: str, body: str) -> None:
        """An event arrived, as JSON. It is dropped if no request has this id."""
        if (one := self._find(id_)) is not None:
            one.put(body)

    def skip(self, id_: str) -> None:
        """An event arrived that is too large to decode. A request counts it, so that its page looks full."""
        if isinstance(one := self._find(id_), Request):
            one.oversize += 1

    def end(self, id_: str, end: End) -> bool:
        """The relay ended a request, or has sent all stored events. Returns whether the request is ours."""
        one = self._find(id_)
        if isinstance(one, Request):
            one.finish(end)
        elif one is not None and end.how == "eose":
            one.on_eose()
        elif one is not None:
            self._connection.spawn(self._resume(one, end))
        return one is not None

    # ------------------------------------------------------------------ inside

    def _find(self, id_: str) -> Request | Subscription | None:
        return self._requests.get(id_) or self._subscriptions.get(id_)

    def _send_close(self, id_: str) -> None:
        if self._connection.is_open:
            self._connection.spawn(self._connection.send(close_frame(id_)))

    async def _send(self, one: Request | Subscription) -> None:
        """Send a REQ.

        If the connection is lost, a request ends; a subscription is sent again by `resubscribe`.
        """
        try:
            await self._connection.send(request_frame(one.id, one.filters_json))
        except RelayUnreachable as error:
            if isinstance(one, Request):
                one.finish(End("lost", text=str(error)))

    async def _resume(self, subscription: Subscription, end: End) -> None:
        """Send a subscription again that the relay closed, after a pause that grows with each refusal."""
        subscription.refusals += 1
        if end.prefix == "auth-required" and subscription.refusals == 1:
            await self._authenticate()
        else:
            await asyncio.sleep(self._connection.pause_s(subscription.refusals))
        if subscription.id in self._subscriptions:
            await self._send(subscription)
