"""Slash commands and buttons of the loopback Discord: one event from a person, and the bot's answers to it.

Modelled: commands with subcommands and plain options, presses of buttons, the callback types 4 to 9, followup
messages, the original response, ephemeral messages, a second answer refused with 40060.  The event goes to
the shard of its guild, and from a direct message to shard 0, so with two sessions of one shard both get it
and one is refused.  Not modelled: select menus and submitted modals, files, the three seconds for an answer.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from typing import Any

from tests.servers.discord_acts import Acts
from tests.servers.discord_gateway import Gateway
from tests.servers.discord_http import ApiError, Call
from tests.servers.discord_payloads import message_payload
from tests.servers.discord_things import Channel, Json, Message, User
from tests.servers.discord_world import World

COMMAND, PRESS = 2, 3
MESSAGE, DEFERRED, DEFERRED_UPDATE, UPDATE = 4, 5, 6, 7
EPHEMERAL, LOADING = 1 << 6, 1 << 7
SUBCOMMAND = 1
OPTION_TYPES = {bool: 5, int: 4, float: 10, str: 3}
CHANGEABLE = ("content", "embeds", "components")

Option = str | int | float | bool


@dataclass(eq=False)
class Interaction:
    """What a person did, and how the bot has answered so far; `messages` also has the ephemeral ones."""

    id: int
    token: str
    kind: int
    user: User
    channel: Channel
    pressed: Message | None = None
    callback: int | None = None  # the type of the first answer
    callback_data: Json = field(default_factory=dict)
    original: Message | None = None
    messages: list[Message] = field(default_factory=list)


class Interactions:
    """Sends the events, and takes the answers over REST; the token in the path is the authorisation."""

    def __init__(self, world: World, gateway: Gateway, acts: Acts) -> None:
        self._world = world
        self._gateway = gateway
        self._acts = acts
        self._made: dict[str, Interaction] = {}  # by token

    def table(self) -> list[tuple[str, str, Any]]:
        """Every route here."""
        hook = "/webhooks/{application}/{token}"
        one = hook + "/messages/{message}"
        return [
            ("POST", "/interactions/{interaction}/{token}/callback", self.callback),
            ("POST", hook, self.follow_up),
            ("GET", one, self.read),
            ("PATCH", one, self.edit),
            ("DELETE", one, self.delete),
        ]

    def command(self, user: User, channel: Channel, path: str, options: dict[str, Option]) -> Interaction:
        """A person runs a slash command; `path` is its name, or the names of its group and subcommand."""
        root, *nested = path.split()
        given: list[Json] = [
            {"name": name, "type": OPTION_TYPES[type(value)], "value": value}
            for name, value in options.items()
        ]
        for name in reversed(nested):
            given = [{"name": name, "type": SUBCOMMAND, "options": given}]
        data = {"id": str(self._world.snowflake()), "name": root, "type": 1, "options": given}
        return self._begin(COMMAND, user, channel, data)

    def press(self, user: User, message: Message, custom_id: str) -> Interaction:
        """A person presses a button below a message."""
        data = {"custom_id": custom_id, "component_type": 2}
        return self._begin(PRESS, user, message.channel, data, pressed=message)

    async def callback(self, call: Call) -> Json:
        """The first answer, which only one client can give."""
        found, kind, draft = self._find(call), call.json["type"], call.json.get("data") or {}
        if found.callback is not None:
            raise ApiError(400, 40060, "Interaction has already been acknowledged.")
        found.callback, found.callback_data = kind, draft
        if kind in (MESSAGE, DEFERRED):
            waiting = LOADING if kind == DEFERRED else 0
            found.original = self._send(found, draft, waiting)
        elif kind in (DEFERRED_UPDATE, UPDATE):
            found.original = found.pressed
            if kind == UPDATE and found.pressed is not None:
                self._change(found.pressed, draft)
        return self._answered(found)

    async def follow_up(self, call: Call) -> Json:
        """One more message; behind a deferred answer the first one takes its place."""
        found = self._find(call)
        if found.original is not None and found.original.flags & LOADING:
            self._change(found.original, call.json)
            return message_payload(self._world, found.original)
        return message_payload(self._world, self._send(found, call.json))

    async def read(self, call: Call) -> Json:
        return message_payload(self._world, self._message(call))

    async def edit(self, call: Call) -> Json:
        message = self._message(call)
        self._change(message, call.json)
        return message_payload(self._world, message)

    async def delete(self, call: Call) -> None:
        message = self._message(call)
        if message.flags & EPHEMERAL:
            message.deleted = True
        else:
            self._acts.delete(message)

    def _begin(
        self, kind: int, user: User, channel: Channel, data: Json, *, pressed: Message | None = None
    ) -> Interaction:
        made = Interaction(self._world.snowflake(), secrets.token_hex(16), kind, user, channel, pressed)
        self._made[made.token] = made
        guild = channel.guild
        event: Json = {
            "id": str(made.id),
            "application_id": str(self._world.application_id),
            "type": kind,
            "token": made.token,
            "version": 1,
            "data": data,
            "channel_id": str(channel.id),
            "channel": self._world.channel_payload(channel),
            "locale": "en-US",
            "entitlements": [],
            "authorizing_integration_owners": {},
            "context": 1 if guild is None else 0,
            "attachment_size_limit": 10 * 2**20,
            "app_permissions": "0",
        }
        if guild is None:
            event["user"] = user.payload()
        else:
            permissions = str(guild.roles[guild.id].permissions)
            event["guild_id"], event["guild_locale"] = str(guild.id), "en-US"
            event["member"] = {**guild.member_payload(user), "permissions": permissions}
        if pressed is not None:
            event["message"] = message_payload(self._world, pressed)
        self._gateway.dispatch("INTERACTION_CREATE", event, guild_id=channel.guild_id)
        return made

    def _send(self, found: Interaction, draft: Json, flags: int = 0) -> Message:
        """Posts a message of the bot; an ephemeral one is in no channel and no event."""
        flags |= draft.get("flags") or 0
        fields: Json = {name: draft.get(name) or [] for name in ("embeds", "components")} | {"flags": flags}
        post = self._acts.whisper if flags & EPHEMERAL else self._acts.post
        message = post(found.channel, self._world.bot, draft.get("content") or "", **fields)
        found.messages.append(message)
        return message

    def _change(self, message: Message, draft: Json) -> None:
        changed = {name: draft[name] for name in CHANGEABLE if draft.get(name) is not None}
        self._acts.edit(message, **changed, flags=message.flags & ~LOADING)

    def _answered(self, found: Interaction) -> Json:
        interaction: Json = {"id": str(found.id), "type": found.kind}
        if found.original is None:
            return {"interaction": interaction}
        flags = found.original.flags
        interaction |= {
            "response_message_id": str(found.original.id),
            "response_message_loading": bool(flags & LOADING),
            "response_message_ephemeral": bool(flags & EPHEMERAL),
        }
        shown = message_payload(self._world, found.original)
        return {"interaction": interaction, "resource": {"type": found.callback, "message": shown}}

    def _find(self, call: Call) -> Interaction:
        found = self._made.get(call.args["token"])
        if found is None:
            raise ApiError(404, 10062, "Unknown interaction")
        return found

    def _message(self, call: Call) -> Message:
        found, named = self._find(call), call.args["message"]
        own = {str(message.id): message for message in found.messages if not message.deleted}
        message = found.original if named == "@original" else own.get(named)
        if message is None or message.deleted:
            raise ApiError(404, 10008, "Unknown Message")
        return message
