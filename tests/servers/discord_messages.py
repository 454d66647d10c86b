"""The message routes of the loopback Discord: create, edit, delete, read, pins, reactions, typing.

Modelled: the 2000-unit limit, the empty message, replies to what is gone, `enforce_nonce`, allowed mentions
for users, attachments kept or added by an edit, other people's messages refused.  Not modelled: permissions,
embed and component limits, stickers, polls, crossposts, the users of one reaction.
"""

from __future__ import annotations

from typing import Any

from tests.servers.discord_acts import Acts
from tests.servers.discord_http import ApiError, Call
from tests.servers.discord_limits import Nonces
from tests.servers.discord_payloads import message_payload
from tests.servers.discord_things import Attachment, Channel, Json, Message, User
from tests.servers.discord_world import World

CONTENT_LIMIT = 2000  # UTF-16 units, the strictest reading of "characters"
NONCE_LIMIT = 25


class MessageRoutes:
    """Handlers by method and path; the bot is the author of whatever they make."""

    def __init__(self, world: World, acts: Acts, nonces: Nonces) -> None:
        self._world = world
        self._acts = acts
        self._nonces = nonces

    def table(self) -> list[tuple[str, str, Any]]:
        """Every route here; pins stand before `{message}`, which would take the word for an id."""
        messages = "/channels/{channel}/messages"
        one = messages + "/{message}"
        return [
            ("GET", messages + "/pins", self.pins),
            ("PUT", messages + "/pins/{message}", self.pin),
            ("DELETE", messages + "/pins/{message}", self.unpin),
            ("POST", messages + "/bulk-delete", self.delete_many),
            ("POST", messages, self.create),
            ("GET", messages, self.history),
            ("GET", one, self.read),
            ("PATCH", one, self.edit),
            ("DELETE", one, self.delete),
            ("PUT", one + "/reactions/{emoji}/@me", self.react),
            ("DELETE", one + "/reactions/{emoji}/@me", self.unreact),
            ("POST", "/channels/{channel}/typing", self.typing),
        ]

    async def create(self, call: Call) -> Json:
        channel, draft = self.channel(call), call.json
        self._check(
            draft, call, empty=not (draft.get("content") or draft.get("embeds") or call.request.files)
        )
        self._moderate(channel, call)
        again = self._same_nonce(channel, draft)
        if again is not None:
            return message_payload(self._world, again)
        reply_to = self._reply_target(channel, draft.get("message_reference"))
        message = self._acts.post(
            channel,
            self._world.bot,
            draft.get("content") or "",
            reply_to=reply_to,
            mentions=self._mentions(draft, reply_to),
            embeds=draft.get("embeds") or [],
            components=draft.get("components") or [],
            attachments=self._attachments(channel, call, kept=[]),
            flags=draft.get("flags") or 0,
            nonce=draft.get("nonce"),
        )
        if draft.get("nonce") is not None:
            self._nonces.keep(message, str(draft["nonce"]))
        return message_payload(self._world, message)

    async def edit(self, call: Call) -> Json:
        message, draft = self.message(call), call.json
        if message.author is not self._world.bot:
            raise ApiError(403, 50005, "Cannot edit a message authored by another user")
        self._check(draft, call)
        self._moderate(message.channel, call)
        changed: Json = {name: draft[name] or [] for name in ("embeds", "components") if name in draft}
        if "content" in draft:
            changed |= {
                "content": draft["content"] or "",
                "mentions": self._mentions(draft, message.reply_to),
            }
        if "attachments" in draft or call.request.files:
            changed["attachments"] = self._attachments(message.channel, call, kept=message.attachments)
        self._acts.edit(message, **changed)
        return message_payload(self._world, message)

    async def read(self, call: Call) -> Json:
        return message_payload(self._world, self.message(call))

    async def delete(self, call: Call) -> None:
        self._acts.delete(self.message(call))

    async def delete_many(self, call: Call) -> None:
        """Told as single deletions, where Discord sends MESSAGE_DELETE_BULK; unknown ids are passed over."""
        messages = self.channel(call).messages
        for found in [messages[int(each)] for each in call.json["messages"] if int(each) in messages]:
            self._acts.delete(found)

    async def history(self, call: Call) -> list[Json]:
        """Newest first always; `before`, `after` and `around` take any snowflake, not only a message's."""
        query = call.request.query
        limit = int(query.get("limit", 50))
        messages = sorted(self.channel(call).messages.values(), key=lambda message: message.id)
        if "after" in query:
            messages = [found for found in messages if found.id > int(query["after"])][:limit]
        elif "around" in query:
            middle = int(query["around"])
            older = [found for found in messages if found.id < middle]
            newer = [found for found in messages if found.id >= middle]
            messages = [*older[-(limit // 2) :], *newer[: limit - limit // 2]]
        elif "before" in query:
            messages = [found for found in messages if found.id < int(query["before"])]
        return [message_payload(self._world, found) for found in reversed(messages[-limit:])]

    async def pins(self, call: Call) -> Json:
        """Last pinned first; `before` is a pin's time."""
        limit, before = int(call.request.query.get("limit", 50)), call.request.query.get("before")
        dated = [
            (found.pinned_at.isoformat(), found)
            for found in self.channel(call).messages.values()
            if found.pinned_at is not None
        ]
        dated = sorted(
            (pair for pair in dated if before is None or pair[0] < before),
            key=lambda pair: pair[0],
            reverse=True,
        )
        items = [{"pinned_at": at, "message": message_payload(self._world, pin)} for at, pin in dated[:limit]]
        return {"items": items, "has_more": len(dated) > limit}

    async def pin(self, call: Call) -> None:
        self._acts.pin(self.message(call))

    async def unpin(self, call: Call) -> None:
        self._acts.unpin(self.message(call))

    async def react(self, call: Call) -> None:
        self._acts.react(self.message(call), self._world.bot, call.args["emoji"], added=True)

    async def unreact(self, call: Call) -> None:
        self._acts.react(self.message(call), self._world.bot, call.args["emoji"], added=False)

    async def typing(self, call: Call) -> None:
        """Nothing but the record in `DiscordServer.requests`."""
        self.channel(call)

    def channel(self, call: Call) -> Channel:
        """The call's channel, or Discord's 404."""
        found = self._world.channels.get(call.id("channel"))
        if found is None:
            raise ApiError(404, 10003, "Unknown Channel")
        return found

    def message(self, call: Call) -> Message:
        """The call's message, or Discord's 404."""
        found = self.channel(call).messages.get(call.id("message"))
        if found is None:
            raise ApiError(404, 10008, "Unknown Message")
        return found

    def _check(self, draft: Json, call: Call, *, empty: bool = False) -> None:
        if empty and not draft.get("components"):
            raise ApiError(400, 50006, "Cannot send an empty message")
        if len((draft.get("content") or "").encode("utf-16-le")) // 2 > CONTENT_LIMIT:
            raise ApiError(
                400, 50035, f"Invalid Form Body: content must be {CONTENT_LIMIT} or fewer in length."
            )

    def _moderate(self, channel: Channel, call: Call) -> None:
        if channel.blocks and channel.blocks in (call.json.get("content") or ""):
            raise ApiError(400, 200000, "Message was blocked by automatic moderation")
        if call.request.files and not channel.takes_files:
            raise ApiError(403, 50013, "Missing Permissions")

    def _same_nonce(self, channel: Channel, draft: Json) -> Message | None:
        """The bot's earlier message of this nonce: sent once, however often the client tries."""
        nonce = draft.get("nonce")
        if nonce is not None and len(str(nonce)) > NONCE_LIMIT:
            raise ApiError(400, 50035, f"Invalid Form Body: nonce must be {NONCE_LIMIT} or fewer in length.")
        if nonce is None or not draft.get("enforce_nonce"):
            return None
        return self._nonces.find(channel, self._world.bot, str(nonce))

    def _reply_target(self, channel: Channel, reference: Json | None) -> Message | None:
        if reference is None:
            return None
        target = channel.messages.get(int(reference["message_id"]))
        if target is None and reference.get("fail_if_not_exists", True):
            raise ApiError(400, 50035, "Invalid Form Body: message_reference: Unknown message")
        return target

    def _mentions(self, draft: Json, reply_to: Message | None) -> list[User]:
        """Who is pinged: the users named and the one replied to, as far as `allowed_mentions` lets them."""
        allowed = draft.get("allowed_mentions")
        named = self._world.mentioned(draft.get("content") or "")
        if allowed is not None and "users" not in allowed.get("parse", []):
            permitted = {str(each) for each in allowed.get("users", [])}
            named = [user for user in named if str(user.id) in permitted]
        if reply_to is not None and (allowed is None or allowed.get("replied_user")):
            named.append(reply_to.author)
        return list(dict.fromkeys(named))

    def _attachments(self, channel: Channel, call: Call, *, kept: list[Attachment]) -> list[Attachment]:
        """The list the JSON gives, in its order: an old attachment by its id, a new file by its index."""
        old = {str(attachment.id): attachment for attachment in kept}
        made = []
        for entry in call.json.get("attachments") or []:
            key = str(entry["id"])
            if key in old:
                made.append(old[key])
            elif f"files[{key}]" in call.request.files:
                name, data = call.request.files[f"files[{key}]"]
                made.append(self._acts.attach(channel, name, data, entry.get("description")))
            else:
                raise ApiError(400, 50035, f"Invalid Form Body: no file for attachment {key}")
        return made
