"""simcord as a place to talk in, not as a test: nothing waits until the bot has finished.

simcord is made for tests. Its Discord takes one action at a time, each of which ends when everything the bot
began has ended, and its pages change only then. People would wait after each message for the summary, the
extraction and the mirror, and would never see an answer grow. simcord has no option for that (3.2), so the
two classes below override what makes it so. These are private names of simcord: nothing else here uses any.
"""

import asyncio
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import discord
import simcord

ACKNOWLEDGED_S = 3.0
"""How long Discord waits for the first answer to a command, a press or a modal."""
LOOK_S = 0.01

Viewer = simcord.MemberActor | simcord.UserHandle


class LiveEnv(simcord.Env):
    """A simulated Discord in real time. Build its servers and people, then `connect` a client.

    Ids are the same in every run, since the clock stands still until then.
    """

    def __init__(self) -> None:
        nobody: Any = None  # the client comes later: who owns the bot is one of its settings
        super().__init__(nobody, check_errors=False)
        self.open: list[LivePreview] = []
        self._asked: Any = None
        self._changes = 0

    async def connect(self, client: discord.Client) -> None:
        """Let the clock run, log a client in, and wait until it knows the servers."""
        clock: Any = _RealTime()
        self.backend.clock = clock
        self.bot = client
        await self.start()
        await client.wait_until_ready()

    async def send_dm(self, person: simcord.UserHandle, text: str, name: str, content: bytes) -> None:
        """Send a direct message with a file, for which simcord has nothing outside servers."""
        stored = self.backend.store_attachments(person.dm_channel.id, [(name, content)])
        await person.send_dm(text, attachments=stored)

    @property
    def changes(self) -> int:
        """How much has happened so far: a page that was built at another number is out of date."""
        self._changes += len(self.backend.transcript)
        self.backend.transcript.clear()  # this and the next are for reports of tests, and grow for ever
        self.backend.http_requests.clear()
        return self._changes

    # ------------------------------------------------------------------ what simcord does otherwise

    @contextmanager
    def _bot_scope(self) -> Iterator[None]:
        """Tasks and timers made in this scope would be tracked, and awaited by every action."""
        yield

    def _begin_operation(self, label: str) -> None:
        """Two people may act at the same time."""

    def _end_operation(self) -> None:
        pass

    def _mark_mutation(self) -> None:
        for preview in self.open:
            preview._mark_action_dispatched()

    def _notify_dispatch_observers(self, interaction: Any) -> None:
        super()._notify_dispatch_observers(interaction)
        self._asked = interaction

    async def _settle_internal(self, *, dispatch: str | None = None, **_: Any) -> None:
        """End an action at once; that of an interaction when the bot has acknowledged it."""
        asked = self._asked if dispatch == "INTERACTION_CREATE" else None
        await asyncio.sleep(0)
        loop = asyncio.get_running_loop()
        until = loop.time() + ACKNOWLEDGED_S
        while asked is not None and not asked.responded and loop.time() < until:  # noqa: ASYNC110 - no event
            await asyncio.sleep(LOOK_S)


class LivePreview(simcord.Preview):
    """A page that shows what happens while it happens. Several may be open, one for each place."""

    def __init__(
        self,
        env: LiveEnv,
        channel: simcord.ChannelHandle,
        viewers: Sequence[Viewer],
        *,
        port: int,
        timezone: str,
    ) -> None:
        super().__init__(
            env,
            channel,
            tuple(viewers),
            layout="channel",
            display="responsive",
            width=960,
            height=720,
            locale="en-US",
            timezone=timezone,
            presentation_time=None,
            assets=None,
            port=port,
        )
        self._live = env
        self._shown: dict[str, int] = {}  # by page: `LiveEnv.changes` when it was built

    async def __aenter__(self) -> "LivePreview":
        self.env._preview = None  # else it refuses to be the second
        await super().__aenter__()
        self._live.open.append(self)
        return self

    def _open_page(self, viewer_id: Any = None, target_id: Any = None) -> Any:
        """A page that opens where the talk is now, and not where it was when the demo began."""
        return super()._open_page(viewer_id, target_id or self._newest())

    def _newest(self) -> int | None:
        return max(self.env.backend.messages.get(self.channel.id, ()), default=None)

    def _page_payload(self, page: Any) -> dict[str, Any]:
        """What a browser asks for twice a second, built anew if something happened since."""
        changes = self._live.changes
        if self._shown.get(page.id) != changes and page.id in self._pages and page.pinned_snapshot is None:
            self._shown[page.id] = changes
            self._advance_presentation_time()
            if page.window_end_id is None:  # nobody looks for something further up
                page.target_id = self._target_id(self._newest(), page.viewer, denied_fallback=True)
            self._publish(page, reason="refresh")
        return super()._page_payload(page)

    async def _action(self, context_id: str | None, body: Mapping[str, Any]) -> dict[str, Any]:
        """Take an action although the page has changed since its person looked at it, as Discord does."""
        page = self._pages.get(context_id or "")
        if page is not None and isinstance(body.get("published_revision"), int):
            body = {**body, "published_revision": page.revision}
        return await super()._action(context_id, body)


class _RealTime:
    """The clock of the simulated Discord: that of this machine."""

    _began = datetime(2026, 1, 1, tzinfo=UTC).timestamp()

    @property
    def elapsed(self) -> float:
        """Seconds since the clock's first moment, which is simcord's own."""
        return time.time() - self._began

    def now(self) -> datetime:
        return datetime.now(UTC)

    def advance(self, seconds: float) -> None:
        """Time passes by itself."""
