"""A loopback relay of Nostr, as NIP-01 has it, and one that lies in whatever way a test wants.

    async with LyingRelay(most_rows=5) as relay:
        relay.put(event)                      into its store, as it is
        relay.lies.closes = "error: no"       lies can be changed while it runs
        Relay(relay.url, keys) ...
        await relay.drop()                    all connections break off; `kill` and `revive` stop and start it
        assert relay.frames                   every message that arrived, as bytes

Without lies it is honest: the newest of a replaceable event is kept, on a tie the one of the lowest id
(NIP-01), deletions by `e` and `a` are heeded and remembered (NIP-09), AUTH is verified (NIP-42). Events are
plain decoded JSON here. Knows nothing about DiscoClaw.
"""

import asyncio
import contextlib
import json
import random
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import nostr_sdk
from aiohttp import WSMsgType, web

Event = Mapping[str, Any]
Json = dict[str, Any]


@dataclass
class Lies:
    """What is wrong with it; as it stands, nothing."""

    # what it keeps
    keeps_old: bool = False
    """Every version of a replaceable event is kept and served, as nostr-relay does."""
    keeps_ties: bool = False
    """Of two versions of one second both are kept."""
    ignores_deletions: bool = False
    revives_deleted: bool = False
    """What was deleted can be sent again."""

    # what it serves
    ignores_filters: bool = False
    leaves_out_until: bool = False
    """Events of exactly `until` are not served, as by nostr-relay."""
    ignores_limit: bool = False
    most_rows: int | None = None
    order: str = "newest"
    """newest | oldest | shuffled; oldest and shuffled hold before the rows are cut off."""
    copies: int = 1
    forges_signatures: bool = False
    adds: Sequence[Event] = ()
    """Served with every answer, whoever asked for whatever."""
    no_eose: bool = False
    closes: str | None = None
    """Every REQ is answered by CLOSED with this reason."""
    closes_times: int | None = None
    """So often only."""
    delay_s: float = 0.0
    cuts_after_rows: int | None = None
    """After so many rows of an answer the connection breaks off within a frame."""
    cuts_times: int | None = None
    """So often only."""

    # how it takes events
    refuses: str | None = None
    """Every event is refused with this reason."""
    refuses_if: Callable[[Event], str | None] | None = None
    unnamed: bool = False
    """Refusals come with an empty id, and one after the other."""
    notices_instead: bool = False
    """Refusals come as a NOTICE, without any OK."""
    silent: bool = False
    """Events are kept and never answered."""
    limit_events: int | None = None
    """So many events of one connection are taken; "rate-limited: slow down" to the others."""

    # who may
    auth: str | None = None
    """None, or what is only for those who proved who they are: "read", "write" or "both"."""
    auth_late: bool = False
    """The challenge comes only with the first refusal, not at once."""
    auth_after_answer: bool = False
    """It comes only after the first answer, which a stranger got."""
    auth_never_asks: bool = False
    auth_says: str = "auth-required: we only know friends"
    """How a stranger is refused."""
    auth_silent: bool = False
    """A stranger is served nothing, without a word."""
    auth_without_ok: bool = False
    auth_refused: bool = False

    # what else it sends
    greets: Sequence[str | bytes] = ()
    """Sent as they are when somebody connects; bytes as a binary message."""
    garbage: Sequence[str] = ()
    """Sent as they are before each answer."""
    notices: int = 0
    """With each answer."""
    no_pong: bool = False
    reads_nothing: bool = False
    information: Json | None = None
    """Its NIP-11 document."""
    information_raw: bytes | None = None


@dataclass(eq=False)
class _Peer:
    """One connection."""

    socket: web.WebSocketResponse
    request: web.Request
    challenge: str
    challenged: bool = False
    proved: set[str] = field(default_factory=set)
    taken: int = 0
    standing: dict[str, list[Json]] = field(default_factory=dict)


class LyingRelay:
    """The relay; an async context manager. `url` stays the same when it is killed and revived."""

    def __init__(self, **lies: Any) -> None:
        self.lies = Lies(**lies)
        self.frames: list[bytes] = []
        """Every message that arrived, in order, of all connections."""
        self.sent: list[Json] = []
        """Every event that was sent to it, in order, taken or not."""
        self.proofs: list[Json] = []
        """Every AUTH event that was sent to it."""
        self.connections = 0
        """How often somebody connected."""
        self._kept: dict[str, Json] = {}
        self._places: dict[str, list[Json]] = {}
        self._deleted: set[str] = set()
        self._deleted_until: dict[str, int] = {}
        self._peers: set[_Peer] = set()
        self._changed = asyncio.Condition()
        self._runner: web.AppRunner | None = None
        self._port = 0
        self._dice = random.Random(4242)

    # its life

    @property
    def url(self) -> str:
        return f"ws://127.0.0.1:{self._port}"

    async def __aenter__(self) -> Self:
        await self.revive()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.kill()

    async def revive(self) -> None:
        """Listen (again, on the same port); its events are still there."""
        app = web.Application()
        app.router.add_get("/", self._door)
        self._runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1, access_log=None)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self._port, reuse_address=True).start()
        self._port = self._runner.addresses[0][1]

    async def kill(self) -> None:
        """Break off all connections and listen no more."""
        await self.drop()
        if self._runner is not None:
            runner, self._runner = self._runner, None
            await runner.cleanup()

    async def drop(self) -> None:
        """Break off all connections."""
        for peer in list(self._peers):
            _abort(peer)
        async with asyncio.timeout(10), self._changed:
            await self._changed.wait_for(lambda: not self._peers)

    # what tests want to know, and to wait for

    @property
    def events(self) -> list[Json]:
        """What it keeps."""
        return list(self._kept.values())

    @property
    def peers(self) -> int:
        """How many are connected."""
        return len(self._peers)

    @property
    def requests(self) -> list[list[Any]]:
        """Every REQ that arrived, decoded, in order."""
        said = [json.loads(frame) for frame in self.frames]
        return [one for one in said if one and one[0] == "REQ"]

    async def wait_until(self, condition: Callable[[Self], object], *, timeout_s: float = 10.0) -> None:
        """Return once the condition holds; it is looked at whenever something arrived."""
        async with asyncio.timeout(timeout_s), self._changed:
            await self._changed.wait_for(lambda: condition(self))

    async def wait_for_events(self, count: int) -> None:
        """Return once so many events were sent to it."""
        await self.wait_until(lambda relay: len(relay.sent) >= count)

    async def wait_for_connections(self, count: int) -> None:
        """Return once somebody has connected so often, in all."""
        await self.wait_until(lambda relay: relay.connections >= count)

    def put(self, *events: Event) -> None:
        """Keep events by its rules, without telling anybody; also ones that are forged."""
        for event in events:
            self._keep(dict(event))

    def lose_all(self) -> None:
        """Keep nothing any more, as a relay whose disk was changed; deletions are forgotten too."""
        self._kept.clear()
        self._places.clear()
        self._deleted.clear()
        self._deleted_until.clear()

    async def say(self, text: str) -> None:
        """Send a message, as it is, to everybody who is connected."""
        for peer in list(self._peers):
            with contextlib.suppress(ConnectionError, RuntimeError):
                await _send_text(peer, text)

    # the door

    async def _door(self, request: web.Request) -> web.StreamResponse:
        if request.headers.get("Upgrade", "").lower() != "websocket":
            return self._information()
        websocket = web.WebSocketResponse(autoping=not self.lies.no_pong, max_msg_size=2**24, timeout=0.1)
        await websocket.prepare(request)
        peer = _Peer(websocket, request, f"{self._dice.getrandbits(128):032x}")
        if self.lies.reads_nothing:
            _small_buffers(request)
        self._peers.add(peer)
        self.connections += 1
        await self._tell()
        try:
            await self._greet(peer)
            if self.lies.reads_nothing:
                request.transport.pause_reading()  # type: ignore[union-attr]
                await asyncio.Event().wait()
            async for message in websocket:
                if message.type is WSMsgType.TEXT:
                    await self._hear(peer, message.data)
        except (ConnectionError, RuntimeError):
            pass  # somebody has gone
        finally:
            self._peers.discard(peer)
            await self._tell()
        return websocket

    def _information(self) -> web.Response:
        if self.lies.information_raw is not None:
            return web.Response(body=self.lies.information_raw, content_type="application/nostr+json")
        if self.lies.information is None:
            return web.Response(status=404)
        return web.Response(text=json.dumps(self.lies.information), content_type="application/nostr+json")

    async def _greet(self, peer: _Peer) -> None:
        if self.lies.auth is not None and not (self.lies.auth_late or self.lies.auth_after_answer):
            await self._challenge(peer)
        for text in self.lies.greets:
            if isinstance(text, bytes):
                await peer.socket.send_bytes(text)
            else:
                await _send_text(peer, text)

    async def _challenge(self, peer: _Peer) -> None:
        if not peer.challenged and not self.lies.auth_never_asks:
            peer.challenged = True
            await _send(peer, "AUTH", peer.challenge)

    async def _tell(self) -> None:
        async with self._changed:
            self._changed.notify_all()

    async def _hear(self, peer: _Peer, text: str) -> None:
        self.frames.append(text.encode("utf-8"))
        said = json.loads(text)
        match said:
            case ["EVENT", {**event}]:
                self.sent.append(event)
                await self._take(peer, event)
            case ["REQ", str(id_), *filters]:
                await self._answer(peer, id_, filters)
            case ["CLOSE", str(id_)]:
                peer.standing.pop(id_, None)
            case ["AUTH", {**event}]:
                self.proofs.append(event)
                await self._check_proof(peer, event)
            case _:
                await _send(peer, "NOTICE", "invalid: what?")
        await self._tell()

    # events that arrive

    async def _take(self, peer: _Peer, event: Json) -> None:
        if self.lies.delay_s:
            await asyncio.sleep(self.lies.delay_s)
        if (why := self._refusal(peer, event)) is not None:
            await self._refuse(peer, event, why)
            return
        peer.taken += 1
        known = _key(event) in self._kept
        fresh = not known and self._keep(event)
        if not self.lies.silent:
            await _send(peer, "OK", event["id"], True, "duplicate: have this event" if known else "")
        if fresh:
            await self._spread(event)

    async def _refuse(self, peer: _Peer, event: Json, why: str) -> None:
        if why == self.lies.auth_says:
            await self._challenge(peer)
        if self.lies.notices_instead:
            await _send(peer, "NOTICE", why)
        else:
            await _send(peer, "OK", "" if self.lies.unnamed else event["id"], False, why)

    def _refusal(self, peer: _Peer, event: Json) -> str | None:
        lies = self.lies
        if lies.auth in ("write", "both") and not peer.proved:
            return lies.auth_says
        if lies.refuses is not None:
            return lies.refuses
        if lies.refuses_if is not None and (why := lies.refuses_if(event)) is not None:
            return why
        if lies.limit_events is not None and peer.taken >= lies.limit_events:
            return "rate-limited: slow down"
        if not verified(event):
            return "invalid: bad id or signature"
        if not lies.revives_deleted and self._is_deleted(event):
            return "blocked: it was deleted"
        return None

    def _keep(self, event: Json) -> bool:
        """Whether it is kept, by NIP-01 and NIP-09 unless it lies."""
        if event["kind"] == 5 and not self.lies.ignores_deletions:
            self._delete(event)
        if (place := address(event)) is not None and not self.lies.keeps_old:
            rivals = self._places.get(place, [])
            if self.lies.keeps_ties:
                rivals = [kept for kept in rivals if kept["created_at"] != event["created_at"]]
            if any(rank(kept) < rank(event) for kept in rivals):
                return False
            for rival in list(rivals):
                self._drop(rival)
        if _key(event) not in self._kept:
            self._kept[_key(event)] = event
            self._places.setdefault(place or "", []).append(event)
        return True

    def _drop(self, event: Json) -> None:
        del self._kept[_key(event)]
        self._places[address(event) or ""].remove(event)

    def _delete(self, deletion: Json) -> None:
        author, at = deletion["pubkey"], deletion["created_at"]
        for name, value, *_ in (tag for tag in deletion["tags"] if len(tag) > 1):
            if name == "e":
                self._deleted.add(f"{author}:{value}")
            elif name == "a" and value.split(":", 2)[1:2] == [author]:
                self._deleted_until[value] = max(at, self._deleted_until.get(value, 0))
        for kept in self.events:
            if kept["kind"] != 5 and self._is_deleted(kept):
                self._drop(kept)

    def _is_deleted(self, event: Json) -> bool:
        until = self._deleted_until.get(address(event) or "", -1)
        return f"{event['pubkey']}:{event['id']}" in self._deleted or event["created_at"] <= until

    async def _spread(self, event: Json) -> None:
        for peer in list(self._peers):
            for id_, filters in list(peer.standing.items()):
                if self._may_read(peer) and any(self._fits(event, one) for one in filters):
                    with contextlib.suppress(ConnectionError, RuntimeError):
                        await _send(peer, "EVENT", id_, self._served(event))

    # requests

    def _may_read(self, peer: _Peer) -> bool:
        return self.lies.auth not in ("read", "both") or bool(peer.proved)

    async def _answer(self, peer: _Peer, id_: str, filters: list[Json]) -> None:
        lies = self.lies
        if lies.delay_s:
            await asyncio.sleep(lies.delay_s)
        if not self._may_read(peer) and not lies.auth_silent:
            await self._challenge(peer)
            await _send(peer, "CLOSED", id_, lies.auth_says)
            return
        if lies.closes is not None and lies.closes_times != 0:
            lies.closes_times = None if lies.closes_times is None else lies.closes_times - 1
            await _send(peer, "CLOSED", id_, lies.closes)
            return
        peer.standing[id_] = filters
        for _ in range(lies.notices):
            await _send(peer, "NOTICE", f"\x1b[31mbuy\n{'now' * 2_000}")
        for text in lies.garbage:
            await _send_text(peer, text.replace("<id>", id_))
        rows = self._rows(filters) if self._may_read(peer) else []
        for sent, event in enumerate([*lies.adds, *rows]):
            if lies.cuts_after_rows == sent and lies.cuts_times != 0:
                lies.cuts_times = None if lies.cuts_times is None else lies.cuts_times - 1
                _cut_within_frame(peer)
                return
            for _ in range(lies.copies):
                await _send(peer, "EVENT", id_, self._served(event))
        if not lies.no_eose:
            await _send(peer, "EOSE", id_)
        if lies.auth_after_answer:
            await self._challenge(peer)

    def _rows(self, filters: list[Json]) -> list[Json]:
        rows: dict[str, Json] = {}
        for one in filters:
            fitting = [event for event in self.events if self._fits(event, one)]
            fitting.sort(key=rank)
            if self.lies.order == "oldest":
                fitting.reverse()
            elif self.lies.order == "shuffled":
                self._dice.shuffle(fitting)
            most = [self.lies.most_rows, None if self.lies.ignores_limit else one.get("limit")]
            given = fitting[: min((bound for bound in most if bound is not None), default=len(fitting))]
            rows.update((_key(event), event) for event in given)
        return list(rows.values())

    def _fits(self, event: Event, asked: Json) -> bool:
        if self.lies.ignores_filters:
            return True
        return fits(event, asked, until_is_out=self.lies.leaves_out_until)

    def _served(self, event: Event) -> Event:
        if self.lies.forges_signatures:
            return {**event, "sig": f"{self._dice.getrandbits(512):0128x}"}
        return event

    async def _check_proof(self, peer: _Peer, event: Json) -> None:
        tags = {tag[0]: tag[1] for tag in event["tags"] if len(tag) > 1}
        good = event["kind"] == 22_242 and verified(event) and tags.get("challenge") == peer.challenge
        good = good and tags.get("relay", "").rstrip("/") == self.url and not self.lies.auth_refused
        if good:
            peer.proved.add(event["pubkey"])
        if not self.lies.auth_without_ok:
            await _send(peer, "OK", event["id"], good, "" if good else "restricted: who are you?")


def _key(event: Event) -> str:
    """Of what counts as one event; a forged copy counts as another."""
    return f"{event['id']}{event['sig']}{len(event['content'])}"


async def _send(peer: _Peer, *parts: Any) -> None:
    await _send_text(peer, json.dumps(parts, ensure_ascii=False, separators=(",", ":")))


async def _send_text(peer: _Peer, text: str) -> None:
    if peer.socket.closed:
        raise ConnectionResetError
    await peer.socket.send_str(text)


def _small_buffers(request: web.Request) -> None:
    """So that whoever sends notices soon that nobody reads."""
    assert request.transport is not None
    request.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)


def _cut_within_frame(peer: _Peer) -> None:
    """Begin a message of 100 bytes, and go away after its first few."""
    transport = peer.request.transport
    if transport is not None:
        transport.write(b'\x81\x64["EVENT","')
        transport.close()


def _abort(peer: _Peer) -> None:
    if peer.request.transport is not None:
        peer.request.transport.abort()


# the rules of Nostr that it keeps or breaks: what replaces what, what a filter means (NIP-01)


def changed(event: Event, **fields: Any) -> Json:
    """An event with other fields and its old id and signature: a forgery."""
    return {**event, **fields}


def fits(event: Event, asked: Json, *, until_is_out: bool = False) -> bool:
    """Whether an event is asked for; `until_is_out`: one of exactly that second is not."""
    tags: dict[str, set[str]] = {}
    for name, value, *_ in (tag for tag in event["tags"] if len(tag) > 1):
        tags.setdefault(f"#{name}", set()).add(value)
    for name, wanted in asked.items():
        match name:
            case "ids" | "authors" | "kinds":
                if event[{"ids": "id", "authors": "pubkey", "kinds": "kind"}[name]] not in wanted:
                    return False
            case "since":
                if event["created_at"] < wanted:
                    return False
            case "until":
                if event["created_at"] > wanted - until_is_out:
                    return False
            case _ if name.startswith("#") and not tags.get(name, set()) & set(wanted):
                return False
    return True


def rank(event: Event) -> tuple[int, str]:
    """The order in which NIP-01 prefers events: the newest, of one second the one with the lowest id."""
    return (-event["created_at"], event["id"])


def address(event: Event) -> str | None:
    """What a replaceable event replaces others of; None for an event that stands for itself."""
    kind = event["kind"]
    if 30_000 <= kind < 40_000:
        d = next((tag[1] for tag in event["tags"] if len(tag) > 1 and tag[0] == "d"), "")
        return f"{kind}:{event['pubkey']}:{d}"
    if kind in (0, 3) or 10_000 <= kind < 20_000:
        return f"{kind}:{event['pubkey']}:"
    return None


def verified(event: Json) -> bool:
    """Whether id and signature are right."""
    try:
        return bool(nostr_sdk.Event.from_json(json.dumps(event)).verify())
    except nostr_sdk.NostrSdkError:
        return False
