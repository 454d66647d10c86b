"""Tells a person, below what a command or a button answers, from where what they took back was removed.

Every command and every button goes through `told`, so none of them has to know about purges.
"""

from collections.abc import Awaitable
from typing import TypeVar

import discord

from discoclaw.core.message import Place
from discoclaw.core.subject import person_of, user_subject
from discoclaw.core.yours import read_by
from discoclaw.memory.purge import Purger
from discoclaw.show.purge import Reader, purge_report

T = TypeVar("T")
Person = discord.User | discord.Member


class Telling:
    """Tells people what their changes took back."""

    def __init__(self, client: discord.Client, purger: Purger) -> None:
        self._client = client
        self._purger = purger

    async def told(
        self, person: Person, place: Place, work: Awaitable[T], *, in_private: bool
    ) -> tuple[T, str]:
        """Await a change: its result, and the lines to say below it; "" if it took nothing back."""
        with self._purger.watched(user_subject(str(person.id))) as watch:
            with read_by(getattr(person, "display_name", "")):
                answer = await work
            report = await self._purger.report(watch)
        return answer, purge_report(report, self._reader(person, place, in_private=in_private))

    def _reader(self, person: Person, place: Place, *, in_private: bool) -> Reader:
        """The person, in a place. Other conversations are named only where nobody else reads it."""

        def name(session: str) -> str | None:
            if not in_private:
                return None
            if person_of(session) is not None:
                return "our DMs" if person_of(session) == str(person.id) else None
            number = session.rpartition(":")[2]
            return f"<#{number}>" if number.isdigit() and self._may_see(person, int(number)) else None

        return Reader(place.session_key(str(person.id)), name)

    def _may_see(self, person: Person, channel_id: int) -> bool:
        """Whether a person can see a channel right now. A private thread is only counted."""
        channel = self._client.get_channel(channel_id)
        if isinstance(channel, discord.Thread):
            channel = None if channel.is_private() else channel.parent
        if not isinstance(channel, discord.abc.GuildChannel):
            return False
        here = isinstance(person, discord.Member) and person.guild == channel.guild
        member = person if here else channel.guild.get_member(person.id)
        return isinstance(member, discord.Member) and channel.permissions_for(member).view_channel
