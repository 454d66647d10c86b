"""Who reads which channel, against a naive reading of Discord's documented rules for permissions.

The servers are small, and everybody who might be on them is tried: each set of roles, with and without an
overwrite of their own. The client knows none of them, as in Discord without the members intent.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations, product
from typing import Any, Final

import discord
from hypothesis import given
from hypothesis import strategies as st

from discoclaw.bot import wire

VIEW, CONNECT, PAST, ADMIN, MANAGE_THREADS, SEND = 1 << 10, 1 << 20, 1 << 16, 1 << 3, 1 << 34, 1 << 11
NORMAL: Final = VIEW | CONNECT | PAST | SEND
GUILD, OWNER, BOT, ANN, STRANGER = 100, 1, 2, 3, 4
ROLES: Final = (201, 202, 203)
BOT_ROLE: Final = 204
TEXT, VOICE, STAGE, FORUM, PUBLIC_THREAD, PRIVATE_THREAD = 0, 2, 13, 15, 11, 12
BITS: Final = (VIEW, CONNECT, PAST, SEND)


@dataclass(frozen=True)
class Chan:
    id: int
    type: int = TEXT
    overwrites: tuple[tuple[int, int, int], ...] = ()
    """Who, what they are allowed, what they are denied."""
    parent: "Chan | None" = None
    inside: frozenset[int] = frozenset()
    """Who was added to it, if it is a private thread."""

    @property
    def gate(self) -> "Chan":
        return self.parent or self


@dataclass(frozen=True)
class Person:
    id: int
    roles: tuple[int, ...] = ()


@dataclass
class Server:
    roles: dict[int, int]
    channels: Sequence[Chan]
    guild: discord.Guild = field(init=False)

    # ---------------------------------------------- the oracle: Discord's pseudocode, word by word

    def permissions(self, person: Person, channel: Chan) -> int:
        if person.id == OWNER:
            return -1
        base = self.roles[GUILD]
        for role in person.roles:
            base |= self.roles[role]
        if base & ADMIN:
            return -1
        by_id = {who: (allow, deny) for who, allow, deny in channel.gate.overwrites}
        allow, deny = by_id.get(GUILD, (0, 0))
        base = base & ~deny | allow
        allow = deny = 0
        for role in person.roles:
            more, less = by_id.get(role, (0, 0))
            allow, deny = allow | more, deny | less
        base = base & ~deny | allow
        allow, deny = by_id.get(person.id, (0, 0))
        return base & ~deny | allow

    def sees(self, person: Person, channel: Chan) -> bool:
        has = self.permissions(person, channel)
        needed = VIEW | (CONNECT if channel.type in (VOICE, STAGE) else 0)
        added = channel.type != PRIVATE_THREAD or person.id in channel.inside or has & MANAGE_THREADS
        return has & needed == needed and bool(added)

    def reads(self, person: Person, channel: Chan) -> bool:
        return self.sees(person, channel) and bool(self.permissions(person, channel) & PAST)

    def anybody(self) -> Iterator[Person]:
        """Each person who might be a member, but bots."""
        sets = [some for size in range(len(ROLES) + 1) for some in combinations(ROLES, size)]
        return (Person(who, some) for who in (OWNER, ANN, STRANGER) for some in sets)

    # ---------------------------------------------- the same as Discord sends it

    def known(self) -> dict[int, Any]:
        """The channels as discord.py knows them, by id."""
        client = discord.Client(intents=discord.Intents(guilds=True))
        state = client._connection
        user = {"id": str(BOT), "username": "b", "discriminator": "0", "avatar": None, "bot": True}
        state.user = discord.ClientUser(state=state, data=user)  # type: ignore[arg-type]
        roles = [_role(key, value) for key, value in self.roles.items()]
        body = {
            "id": str(GUILD),
            "name": "Home",
            "owner_id": str(OWNER),
            "roles": roles,
            "channels": [_channel(one) for one in self.channels if one.parent is None],
            "threads": [_thread(one) for one in self.channels if one.parent is not None],
            "members": [{"user": user, "roles": [str(BOT_ROLE)], "joined_at": None, "flags": 0}],
            "member_count": 1_000,
        }
        self.guild = discord.Guild(data=body, state=state)  # type: ignore[arg-type]
        return {one.id: self.guild.get_channel_or_thread(one.id) for one in self.channels}


def member(guild: discord.Guild, person: Person) -> discord.Member:
    data = {
        "user": {"id": str(person.id), "username": "p", "discriminator": "0", "avatar": None},
        "roles": [str(one) for one in person.roles],
        "joined_at": None,
        "flags": 0,
    }
    return discord.Member(data=data, guild=guild, state=guild._state)  # type: ignore[arg-type]


def _role(key: int, permissions: int) -> Any:
    tags = {"tags": {"bot_id": str(BOT)}} if key == BOT_ROLE else {}
    return {"id": str(key), "name": "r", "permissions": str(permissions), "managed": bool(tags), **tags}


def _channel(one: Chan) -> Any:
    rows = [
        {"id": str(who), "type": int(who < GUILD), "allow": str(allow), "deny": str(deny)}
        for who, allow, deny in one.overwrites
    ]
    # What voice channels and forums need besides.
    more = {"bitrate": 1, "user_limit": 0, "available_tags": []}
    return {
        "id": str(one.id),
        "type": one.type,
        "name": "c",
        "position": 0,
        "permission_overwrites": rows,
        **more,
    }


def _thread(one: Chan) -> Any:
    assert one.parent is not None
    dates = {"archived": False, "archive_timestamp": "2026-01-01T00:00:00+00:00", "auto_archive_duration": 60}
    return {
        "id": str(one.id),
        "parent_id": str(one.parent.id),
        "guild_id": str(GUILD),
        "owner_id": str(ANN),
        "type": one.type,
        "name": "t",
        "message_count": 0,
        "member_count": 1,
        "thread_metadata": dates,
    }


# What people set most often comes first, so that much is read by all, and not only denied.
some_bits = st.sampled_from((0, 0, VIEW, VIEW, CONNECT, PAST, VIEW | PAST, VIEW | CONNECT | PAST, SEND))
overwrite = st.tuples(st.sampled_from((GUILD, *ROLES, BOT_ROLE, OWNER, BOT, ANN)), some_bits, some_bits)
overwrites = st.lists(overwrite, max_size=4, unique_by=lambda one: one[0]).map(tuple)


@st.composite
def servers(draw: st.DrawFn) -> Server:
    base = st.sampled_from((NORMAL, NORMAL, NORMAL, 0, CONNECT | PAST, ADMIN))
    given_ = st.sampled_from((0, 0, 0, VIEW, PAST, NORMAL, ADMIN, MANAGE_THREADS))
    roles = {GUILD: draw(base), **{role: draw(given_) for role in ROLES}, BOT_ROLE: 0}
    shared = draw(overwrites)  # as of a category that channels are synced with
    kinds = st.sampled_from((TEXT, TEXT, VOICE, STAGE, FORUM))
    gates = [
        Chan(301 + index, draw(kinds), draw(st.one_of(st.just(shared), overwrites)))
        for index in range(draw(st.integers(2, 3)))
    ]
    threads = []
    for index, gate in enumerate(one for one in gates if one.type in (TEXT, FORUM)):
        kind = draw(st.sampled_from((PUBLIC_THREAD, PRIVATE_THREAD))) if gate.type == TEXT else PUBLIC_THREAD
        inside = frozenset(draw(st.sets(st.sampled_from((ANN, STRANGER)))))
        threads.append(Chan(401 + index, kind, parent=gate, inside=inside))
    return Server(roles, [*gates, *threads])


@given(servers())
def test_nothing_is_shown_to_somebody_here_who_can_not_read_there(server: Server) -> None:
    known = server.known()
    for here in server.channels:
        for there in server.channels:
            if here.gate.id != there.gate.id and wire.all_read(known[here.id], known[there.id]):
                out = [
                    one for one in server.anybody() if server.sees(one, here) and not server.reads(one, there)
                ]
                assert not out, (here, there)
            elif here.gate.id == there.gate.id:
                rest = there.type != PRIVATE_THREAD or here.id == there.id
                assert wire.all_read(known[here.id], known[there.id]) is rest


@given(servers())
def test_a_channel_is_open_if_everybody_sees_it_who_might_be_on_the_server(server: Server) -> None:
    known = server.known()
    for channel in server.channels:
        everybody = all(server.sees(one, channel) for one in server.anybody())
        newcomer = server.sees(Person(STRANGER), channel) and channel.type != PRIVATE_THREAD
        reach = wire.open_to(known[channel.id])
        if channel.type != PRIVATE_THREAD:
            assert reach == ("all" if everybody else "most" if newcomer else "few")
        else:
            assert reach == "few"
        place = wire.place_of(known[channel.id])
        assert (place.private, place.hidden) == (reach != "all", reach == "few")


@given(servers(), st.sampled_from((OWNER, ANN, STRANGER)), st.sets(st.sampled_from(ROLES)))
async def test_of_one_person_it_is_as_discord_says(server: Server, who: int, roles: set[int]) -> None:
    known, person = server.known(), Person(who, tuple(roles))
    for channel in server.channels:
        if channel.type != PRIVATE_THREAD:  # of whose members Discord is asked
            found = await wire.can_read(known[channel.id], member(server.guild, person))
            assert found is server.reads(person, channel)


def read(here: Chan, there: Chan) -> bool:
    known = Server({GUILD: NORMAL, **dict.fromkeys((*ROLES, BOT_ROLE), 0)}, [here, there]).known()
    return wire.all_read(known[here.id], known[there.id])


STAFF, JAIL = ROLES[:2]
HIDDEN: Final = (GUILD, 0, VIEW)


LINKS: Final[dict[str, tuple[Any, Any, bool]]] = {
    "both are open": ((), (), True),
    "it denies one person": ((), [(ANN, 0, VIEW)], False),
    "who can't read here either": ([(ANN, 0, VIEW)], [(ANN, 0, VIEW)], True),
    "whose past alone is denied there": ([(ANN, 0, VIEW)], [(ANN, 0, PAST)], True),
    "who may only not write here": ([(ANN, 0, SEND)], [(ANN, 0, VIEW)], False),
    "it denies a role": ((), [(JAIL, 0, VIEW)], False),
    "which may only not write": ((), [(JAIL, 0, SEND)], True),
    "both deny a role": ([(JAIL, 0, VIEW)], [(JAIL, 0, VIEW)], True),
    "but some have two": ([(JAIL, 0, VIEW), (STAFF, VIEW, 0)], [(JAIL, 0, VIEW)], False),
    "hidden alike": ([HIDDEN, (STAFF, VIEW, 0)], [HIDDEN, (STAFF, VIEW, 0)], True),
    "wider": ([HIDDEN, (STAFF, VIEW, 0)], [HIDDEN, (STAFF, VIEW, 0), (ANN, VIEW, 0)], True),
    "narrower": ([HIDDEN, (STAFF, VIEW, 0), (ANN, VIEW, 0)], [HIDDEN, (STAFF, VIEW, 0)], False),
    "owner and bots": ((), [(OWNER, 0, VIEW), (BOT, 0, VIEW), (BOT_ROLE, 0, VIEW)], True),
}
"""Overwrites here and there, and whether all who read here may read there."""


def test_a_link_is_read_only_where_all_may_read_it() -> None:
    found = {
        case: (here, there, read(Chan(301, overwrites=tuple(here)), Chan(302, overwrites=tuple(there))))
        for case, (here, there, _) in LINKS.items()
    }
    assert found == LINKS


def test_the_talk_of_a_voice_channel_is_for_those_who_may_connect() -> None:
    for kind, who in product((VOICE, STAGE), (ANN, JAIL, GUILD)):
        overwrites = ((who, 0, CONNECT),)
        assert not read(Chan(301), Chan(302, kind, overwrites))
        assert read(Chan(301), Chan(302, TEXT, overwrites))
        assert read(Chan(301, kind, overwrites), Chan(302))
