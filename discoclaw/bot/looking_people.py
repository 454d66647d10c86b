"""What Discord says about people, over REST. Goes on where `looking` ends, without the bot's own commands.

Those take half a second to import, and `discoclaw init` does without them.
"""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass

import discord

from discoclaw.bot.looking import Session, logged_in, understood
from discoclaw.show.words import quoted


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody on Discord. `bot`: it is a program's account."""

    id: str
    name: str
    bot: bool


async def person(session: Session, user_id: str) -> Person | None:
    """The person with this id; None if nobody has it. Raises ChatError."""
    with understood(session.api):
        try:
            user = await session.client.fetch_user(int(user_id))
        except discord.NotFound:
            return None
    return Person(str(user.id), user.display_name, user.bot)


async def people(token: str, ids: Iterable[str], *, api: str | None) -> dict[str, Person | None]:
    """The person with each of these ids; None where nobody has it. Raises as `looking.look` does."""
    async with logged_in(token, api=api) as session:
        return {one: await person(session, one) for one in ids}


async def described(token: str, user_id: str, *, api: str | None) -> str:
    """An account: names, id, and on which of the bot's first servers it is. Raises as `looking.look` does.

    The name that people choose freely stands last and in quotes: it may look like the rest of it.
    """
    async with logged_in(token, api=api) as session:
        on = list[str]()
        with understood(api):
            user = await session.client.fetch_user(int(user_id))
        for guild in (await session.bot()).guilds[:10]:
            with understood(api), suppress(discord.NotFound):
                await session.client.http.get_member(int(guild.id), int(user_id))
                on.append(guild.name)
        where = f"on {', '.join(on) or 'no server of the bot'}"
        return f"@{user.name} ({user_id}), {where}, who goes by {quoted(user.display_name)}"
