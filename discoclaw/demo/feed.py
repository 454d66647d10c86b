"""What the demo shows a person, as JSON: the simulated Discord as they see it, and their memory.

A view is a mapping of keys to values: `world` (who and where), `typing`, `held`, and `m<id>` for each message
of the channel that is open. Only what this person may see in Discord is in it.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import simcord
from simcord.backend import serializers
from simcord.backend.access import message_accessible

from discoclaw.commands import history as texts
from discoclaw.core.errors import MemoryFault
from discoclaw.core.event import Commit
from discoclaw.core.history import History
from discoclaw.core.model import AssistantTurn, ModelRequest, ToolTurn, UserTurn
from discoclaw.core.purge import Derived, Phase, Purge
from discoclaw.core.subject import user_subject
from discoclaw.core.times import ms_of_iso
from discoclaw.demo.world import Person, World, id_of
from discoclaw.memory.subjects import inspect
from discoclaw.settings import Settings
from discoclaw.show.text import log, newest
from discoclaw.store.files import read_in_thread

# ----------------------------------------------------------------------
# The bot's memory of a person right now: the durable file, the history behind it, the last prompt.
#
# The first two are read from disk, as the person could do it by hand, whenever they have changed there.


MOST_COMMITS: Final = 40
MOST_CHARS: Final = 60_000


@dataclass(slots=True)
class _Read:
    """The content that was read, and the state of the files it is of."""

    stamp: object
    shown: dict[str, Any]


class Held(Derived):
    """Reads for the page, and keeps the last prompt of each person in RAM."""

    name = "last prompts of the demo"

    def __init__(self, settings: Settings) -> None:
        self._root = settings.memory_dir
        self._read: dict[str, _Read] = {}
        self._prompts: dict[str, str] = {}

    def asked(self, request: ModelRequest) -> None:
        """A request is being sent to a model."""
        if request.purpose == "answer" and request.subject is not None:
            self._prompts[request.subject] = _as_text(request)[:MOST_CHARS]

    def purge(self, purge: Purge, phase: Phase) -> None:
        self._prompts.clear()  # those of others repeat the recent talk

    async def of(self, person_id: int) -> dict[str, Any]:
        """The memory held about a person: `path`, `file`, `commits` (newest first), `prompt`."""
        subject = user_subject(str(person_id))
        shown = await read_in_thread(self._files, subject, person_id)
        return {**shown, "prompt": self._prompts.get(subject, "")}

    def _files(self, subject: str, person_id: int) -> dict[str, Any]:
        durable = self._root / "durable" / f"{person_id}.json"
        ledger = self._root / "ledger" / f"{subject}.jsonl"
        stamp = (_stamp(durable), _stamp(ledger))
        known = self._read.get(subject)
        if known is None or known.stamp != stamp:
            known = self._read[subject] = _Read(stamp, self._fresh(subject, durable))
        return known.shown

    def _fresh(self, subject: str, durable: Path) -> dict[str, Any]:
        try:
            text = durable.read_text(encoding="utf-8", errors="replace")[:MOST_CHARS]
        except OSError:
            text = ""
        try:
            history = inspect.held(self._root, subject).history
            commits = _changes(history)
        except MemoryFault as fault:
            commits = [{"done": str(fault), "at": 0, "log": ""}]
        return {"path": str(durable), "file": text, "commits": commits}


def _changes(history: History) -> list[dict[str, Any]]:
    """Each change: what was done, for people; `at`, in ms; and `log`, what the terminal shows."""
    records, _ = newest(history, limit=MOST_COMMITS)
    tell = texts.teller(history, in_private=True)
    done = [tell(one) if isinstance(one, Commit) else texts.turn(one, in_private=True) for one in records]
    shown = zip(records, done, log(history, limit=MOST_COMMITS).split("\n\n"), strict=False)
    return [{"done": did, "at": ms_of_iso(one.timestamp), "log": text} for one, did, text in shown]


def _stamp(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size


def _as_text(request: ModelRequest) -> str:
    parts = [f"── system ──\n{block.text}" for block in request.system]
    for turn in request.turns:
        match turn:
            case UserTurn():
                parts.append(f"── user ──\n{turn.text}")
            case AssistantTurn():
                called = "\n".join(f"→ {call.name} {call.input}" for call in turn.calls)
                parts.append(f"── assistant ──\n{turn.text}\n{called}".strip())
            case ToolTurn():
                parts += [f"── tool ──\n{result.text}" for result in turn.results]
    if request.tools:
        parts.append("── tools ──\n" + ", ".join(tool.name for tool in request.tools))
    return "\n\n".join(parts)


# ----------------------------------------------------------------------
# The simulated Discord.


MOST_MESSAGES: Final = 100
"""The newest messages of a channel; Discord's client shows as many at first."""
TICK_S: Final = 0.5
"""How often memory on disk is looked at: a person may edit it by hand."""
PAUSE_S: Final = 0.03
"""How long (s) others may follow what has happened, and are told with it."""
ALIVE_TICKS: Final = 20
"""After so many ticks without news something is sent, so that a connection that is gone is noticed."""


class Feed:
    """Views of `world`, and of what is `held` about people."""

    def __init__(self, world: World, held: Held) -> None:
        self._world = world
        self._held = held

    def view(self, person: Person, channel: simcord.ChannelHandle) -> dict[str, Any]:
        """The channel as a person sees it, without what is held."""
        env, at = self._world.env, channel.id
        kept = env.backend.messages.get(at, {}).values()
        seen = [one for one in kept if message_accessible(env.backend, at, one, person.id, history=True)]
        newest = sorted(seen, key=lambda one: one.id)[-MOST_MESSAGES:]
        return {
            "world": self._about(person),
            "typing": [str(who) for who in env.typing(at) if who != person.id],
            **{f"m{one.id}": self._message(one, person) for one in newest},
        }

    def may_see(self, person: Person, channel: simcord.ChannelHandle, message_id: str, url: str) -> bool:
        """Whether a message that the person sees has a file with this address."""
        backend = self._world.env.backend
        found = backend.messages.get(channel.id, {}).get(id_of(message_id))
        return (
            found is not None
            and message_accessible(backend, channel.id, found, person.id, history=True)
            and json.dumps(url) in json.dumps(serializers.message_payload(backend, found))
        )

    async def follow(
        self, person: Person, channel: simcord.ChannelHandle, send: Callable[[str], Awaitable[None]]
    ) -> None:
        """Send the view, and then what changes of it, until sending fails: a line of JSON each time.

        `set` has the values that are new, `gone` the keys that are no longer there.
        """
        sent: dict[str, str] = {}
        shown: dict[str, str] = {}
        with self._world.env.watching() as changed:
            changed.set()
            quiet = 0
            while True:
                if changed.is_set():
                    changed.clear()
                    # A thread that was deleted, or a channel that was closed to this person, ends the stream.
                    self._world.channel(person, str(channel.id))
                    shown = {key: json.dumps(value) for key, value in self.view(person, channel).items()}
                else:
                    typing = [str(one) for one in self._world.env.typing(channel.id) if one != person.id]
                    shown["typing"] = json.dumps(typing)
                shown["held"] = json.dumps(await self._held.of(person.id))
                new = [f"{json.dumps(key)}:{text}" for key, text in shown.items() if sent.get(key) != text]
                gone = [key for key in sent if key not in shown]
                quiet = 0 if new or gone else quiet + 1
                if new or gone:
                    await send(f'{{"set":{{{",".join(new)}}},"gone":{json.dumps(gone)}}}\n')
                elif quiet % ALIVE_TICKS == 0:
                    await send("\n")
                sent = dict(shown)
                try:
                    async with asyncio.timeout(TICK_S):
                        await changed.wait()
                    await asyncio.sleep(PAUSE_S)
                except TimeoutError:
                    pass

    def _about(self, person: Person) -> dict[str, Any]:
        bot = self._world.env.backend.bot_user
        roles = [one for one in self._world.guild.roles.values() if one.id != self._world.guild.id]
        return {
            "me": str(person.id),
            "bot": {"id": str(bot.id), "name": bot.name},
            "people": [
                {"id": str(one.id), "name": one.name, "about": one.about}
                for one in self._world.people.values()
            ],
            "roles": [{"id": str(one.id), "name": one.name} for one in roles],
            "places": list(self._world.places(person)),
        }

    def _message(self, message: Any, person: Person) -> dict[str, Any]:
        backend = self._world.env.backend
        payload: dict[str, Any] = dict(serializers.message_payload(backend, message, for_user=person.id))
        replied = payload.get("referenced_message")
        if replied is not None:
            payload["referenced_message"] = {key: replied[key] for key in ("id", "author", "content")}
        thread = backend.channels.get(message.id)
        return {**payload, "thread": thread.name if thread is not None else None}
