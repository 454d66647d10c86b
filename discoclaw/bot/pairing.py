"""Pairing: as long as nobody may talk to the bot, whoever writes to it is answered with a code.

A code is an account's id with a seal, and gives no right: whoever runs the bot confirms at the terminal whose
it is. Nothing is stored; the bot and the terminal agree on a code because both have the bot's token.
"""

import base64
import hmac
import time
from contextlib import suppress
from typing import Final

import discord
import yarl

from discoclaw.bot.looking import at, understood
from discoclaw.bot.wire import discord_errors
from discoclaw.core.errors import ChatError

WINDOW_S: Final = 600
"""Each person gets one code in such a time. It is valid until the end of the next one."""
MOST: Final = 50
"""The most codes in such a time; whoever sets up a bot needs few."""
INTENTS: Final = discord.Intents(guilds=True, messages=True)
TEXT: Final = "Nobody may talk to me yet. Whoever runs me can let you in now, with `discoclaw pair {}`."


def code_of(token: str, user_id: str, now_s: float) -> str:
    """The code of an account at a time (s): four groups of four letters and digits."""
    named, window = int(user_id).to_bytes(8), int(now_s // WINDOW_S).to_bytes(8)
    text = base64.b32encode(named + hmac.digest(token.encode(), named + window, "sha256")[:2]).decode()
    return "-".join(text[begin : begin + 4] for begin in range(0, len(text), 4))


def user_of(token: str, code: str, now_s: float) -> str | None:
    """The id of the account that a code names; None if this bot made no such code lately."""
    plain = "".join(code.upper().replace("-", " ").split())
    try:
        user = str(int.from_bytes(base64.b32decode(plain)[:8]))
    except ValueError:
        return None
    valid = (code_of(token, user, then).replace("-", "") for then in (now_s, now_s - WINDOW_S))
    return user if plain in valid else None


class Pairing:
    """Answers people with their codes."""

    def __init__(self, token: str) -> None:
        self._token = token
        self._told = set[str]()
        self._window = 0

    def code(self, user_id: str, now_s: float) -> str | None:
        """The code to tell somebody at a time (s); None if they know it, or too many were told just now."""
        if self._window != (window := int(now_s // WINDOW_S)):  # strangers shut nobody out for good
            self._window, self._told = window, set()
        if user_id in self._told or len(self._told) >= MOST:
            return None
        self._told.add(user_id)
        return code_of(self._token, user_id, now_s)

    async def answer(self, message: discord.Message) -> str | None:
        """Answer a message with its author's code, and return that; None if there is no answer."""
        if message.author.bot or (code := self.code(str(message.author.id), time.time())) is None:
            return None
        with suppress(ChatError), discord_errors():
            await message.reply(TEXT.format(code), mention_author=False)
        return code


async def listen(token: str, *, api: str | None, gateway: str | None) -> str:
    """The code of the next person who writes to the bot. Raises as `looking.look` does."""
    client, pairing, codes = discord.Client(intents=INTENTS), Pairing(token), list[str]()

    @client.event
    async def on_message(message: discord.Message) -> None:
        to_us = message.guild is None or client.user in message.mentions
        if to_us and (code := await pairing.answer(message)):
            codes.append(code)
            await client.close()

    if gateway is not None:
        discord.gateway.DiscordWebSocket.DEFAULT_GATEWAY = yarl.URL(gateway)
    with at(api), understood(api):
        await client.start(token)
    return codes[0]
