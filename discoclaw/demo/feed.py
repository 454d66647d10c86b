"""The simulated Discord as a person sees it, as JSON, and its changes while they look.

A view is a mapping of keys to values: `world` (who and where), `typing`, `held`, and `m<id>` for each message
of the channel that is open. Only what this person may see in Discord is in it.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any, Final

import simcord
from simcord.backend import serializers
from simcord.backend.access import message_accessible

from discoclaw.demo.held import Held
from discoclaw.demo.world import Person, World, id_of

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
