"""Discord: the token, the intents, the clock, where the bot is, what it may there, and who may talk to it."""

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence

from discoclaw.bot import looking
from discoclaw.bot.commands.table import CATALOGUE
from discoclaw.bot.looking import Bot, Session, invite_link, logged_in
from discoclaw.checkup import pasted
from discoclaw.checkup.topic import finding
from discoclaw.core.errors import ChatError, SettingsError
from discoclaw.core.health import Finding
from discoclaw.settings import Settings
from discoclaw.show.words import count, line

WRONG_CLOCK_S = 30.0
WITHIN_S = 60.0
"""For all requests together: three for each server, and one for each person."""
MOST_SERVERS = 20
"""How many servers are looked at closely."""
MOST_PEOPLE = 30
MOST_NAMED = 5
VIEW = "view channels"


async def on_discord(settings: Settings) -> AsyncIterator[Finding]:
    """Everything that Discord says over REST. Nothing is sent."""
    if settings.token is None:
        way_out = "run `discoclaw init`, or copy the token from the developer portal, under Bot"
        yield Finding("token", "bad", "DISCORD_TOKEN is not set", way_out)
        return
    try:
        token = settings.token.get_secret_value()
        pasted.check_token(token)
        async with logged_in(token, api=settings.discord_api, within_s=WITHIN_S) as session:
            async for one in _seen(session, settings):
                yield one
    except SettingsError as error:
        yield finding("token", error)
    except ChatError as error:
        yield Finding("Discord", "bad", str(error), "check the network, and DISCORD_API_BASE")


async def _seen(session: Session, settings: Settings) -> AsyncIterator[Finding]:
    bot = await session.bot()
    yield Finding("token", "good", f"Discord knows the bot as {line(bot.name)} ({bot.id})")
    yield _intent(bot)
    if bot.clock_ahead_s is not None:
        yield _clock(bot.clock_ahead_s)
    yield _invited(bot)
    servers: list[looking.Server] = []
    for guild in bot.guilds[:MOST_SERVERS]:
        try:
            servers.append(await looking.server(session, guild.id))
        except ChatError as error:
            yield Finding("servers", "unknown", f"{line(guild.name)} can't be looked at ({error})")
    whole = len(servers) == len(bot.guilds) and not bot.more_guilds
    async for one in _channels(session, settings, servers):
        yield one
    for lacking in _roles(settings, servers, whole):
        yield lacking
    async for one in _people(session, settings, bot):
        yield one
    yield await _commands(session, settings)


def _intent(bot: Bot) -> Finding:
    if not bot.message_content:
        text = "the message content intent is off, so the bot can't connect"
        return Finding("intents", "bad", text, f"enable it at {pasted.PORTAL}, under Bot")
    spare = [name for name, on in (("server members", bot.members), ("presence", bot.presences)) if on]
    more = f"; {' and '.join(spare)} would not be needed" if spare else ""
    return Finding("intents", "good", f"the message content intent is enabled{more}")


def _clock(ahead_s: float) -> Finding:
    """The finding about a difference to Discord's clock."""
    if abs(ahead_s) <= WRONG_CLOCK_S:
        return Finding("clock", "good", "this machine's clock agrees with Discord's")
    way = "ahead of" if ahead_s > 0 else "behind"
    text = (
        f"this machine's clock is {abs(ahead_s):,.0f} s {way} Discord's: dates in answers, what expires, "
        "and relays that check times are wrong by as much"
    )
    return Finding("clock", "warning", text, "turn on time synchronisation (timedatectl set-ntp true)")


def _invited(bot: Bot) -> Finding:
    if not bot.guilds:
        return Finding(
            "servers", "bad", "the bot is on no server", f"invite it: {invite_link(bot.application_id)}"
        )
    named = [line(one.name) for one in bot.guilds[:MOST_NAMED]]
    more = len(bot.guilds) - len(named)
    others = f" and {'at least ' if bot.more_guilds else ''}{more} more" if more else ""
    return Finding("servers", "good", f"the bot is on {', '.join(named)}{others}")


# ---------------------------------------------------------------------- channels and roles


async def _channels(
    session: Session, settings: Settings, servers: Sequence[looking.Server]
) -> AsyncIterator[Finding]:
    """Findings about the bot's channels: its permissions, and channels in the settings that don't exist."""
    known = {key: (server, one) for server in servers for key, one in server.channels.items()}
    fine = 0
    for wanted in sorted(settings.channels) or known:
        where, problem = await _channel(session, wanted, known)
        if problem is None:
            fine += 1
        elif settings.channels or where is not None:
            yield problem
    if fine:
        text = f"the bot has every permission it needs in {count(fine, 'channel')}"
        yield Finding("permissions", "good", text)
    elif not settings.channels and servers:
        way_out = "give its role the permissions that README names"
        yield Finding("permissions", "bad", "there is no channel in which the bot may talk", way_out)
    for name, wanted in _other_channels(settings):
        if wanted in known:
            _, problem = await _channel(session, wanted, known)
            if problem is not None:
                yield problem
        elif await looking.channel(session, wanted) is None:
            yield Finding(name, "bad", f"there is no channel {wanted}", f"correct {name}")


def _other_channels(settings: Settings) -> Iterator[tuple[str, str]]:
    """The other settings that name channels."""
    if settings.memory_channel is not None:
        yield "DISCOCLAW_MEMORY_CHANNEL_ID", settings.memory_channel
    for place in settings.personas.places:
        if place.isdigit():
            yield "DISCOCLAW_CHANNEL_PERSONAS", place
    for place in settings.nostr_groups:
        yield "NOSTR_GROUPS", place


async def _channel(
    session: Session, wanted: str, known: Mapping[str, tuple[looking.Server, looking.Channel]]
) -> tuple[looking.Channel | None, Finding | None]:
    """A channel that the bot can see, and what is wrong with it."""
    found = known.get(wanted)
    if found is None:
        there = await looking.channel(session, wanted)
        if there is not None and there.parent is not None and there.parent in known:
            found = known[there.parent]
        else:
            return None, _unseen(wanted, there)
    server, one = found
    if not one.lacks:
        return one, None
    hidden = VIEW in one.lacks
    missing = f"{VIEW}, without which it may do nothing there" if hidden else ", ".join(one.lacks)
    text = f"#{line(one.name)} on {line(server.name)}: missing {missing}"
    problem = Finding("permissions", "bad", text, "give the bot's role these permissions there")
    return (None if hidden else one), problem


def _unseen(wanted: str, there: looking.Elsewhere | None) -> Finding:
    if there is None:
        return Finding(
            "DISCORD_CHANNEL_IDS", "bad", f"there is no channel {wanted}", "correct DISCORD_CHANNEL_IDS"
        )
    if there.hidden:
        text = f"the channel {wanted} exists, but the bot may not see it"
        return Finding("permissions", "bad", text, "let its role view that channel, or invite the bot there")
    text = f"the channel {wanted} wasn't looked at: the bot is on more than {MOST_SERVERS} servers"
    return Finding("permissions", "unknown", text)


def _roles(settings: Settings, servers: Sequence[looking.Server], whole: bool) -> Iterator[Finding]:
    roles = {role for server in servers for role in server.roles}
    for role in sorted(settings.allow_roles - roles):
        text = f"no server of the bot has the role {role}"
        if whole:
            yield Finding("DISCORD_ALLOW_ROLE_IDS", "bad", text, "correct DISCORD_ALLOW_ROLE_IDS")
        else:
            yield Finding("DISCORD_ALLOW_ROLE_IDS", "unknown", f"{text} that was looked at")


# ---------------------------------------------------------------------- people and commands


async def _people(session: Session, settings: Settings, bot: Bot) -> AsyncIterator[Finding]:
    if settings.allowlist.closed:
        way_out = "set DISCORD_ALLOW_USER_IDS or DISCORD_ALLOW_ROLE_IDS"
        yield Finding("who may talk", "bad", "nobody: the bot answers nobody", way_out)
    nobody = 0
    for name, ids in (
        ("DISCOCLAW_OWNER_IDS", settings.owners),
        ("DISCORD_ALLOW_USER_IDS", settings.allow_users),
    ):
        for one in sorted(ids)[:MOST_PEOPLE]:
            if one == bot.id or await looking.person(session, one) is None:
                nobody += 1
                who = "the bot itself" if one == bot.id else "nobody"
                yield Finding(name, "bad", f"{one} is {who}", f"correct {name}")
    if not (nobody or settings.allowlist.closed):
        people, roles = len(settings.allowlist.users), len(settings.allow_roles)
        named = [count(people, "user")] * bool(people) + [count(roles, "role")] * bool(roles)
        yield Finding("who may talk", "good", " and ".join(named))
    if not settings.owners:
        text = "DISCOCLAW_OWNER_IDS is empty, so nobody may use what only owners may"
        whose = f"DISCOCLAW_OWNER_IDS={','.join(bot.owners)} would be whose application it is"
        yield Finding("owners", "warning", text, whose)


async def _commands(session: Session, settings: Settings) -> Finding:
    if not settings.commands_enabled:
        return Finding("slash commands", "off", "they are switched off (DISCOCLAW_MEMORY_COMMANDS_ENABLED)")
    there, here = await looking.commands_there(session), commands_here()
    if there == here:
        return Finding("slash commands", "good", f"Discord has all {len(here)}")
    what = f"Discord lacks {len(here - there)} of {len(here)}" if here - there else "Discord has old ones"
    return Finding("slash commands", "warning", what, "start the bot, which sends them")


def commands_here() -> frozenset[tuple[str, int]]:
    """Name and kind of every command that the bot registers at Discord."""
    paths = [one.path for one in CATALOGUE.groups] + [one.path for one in CATALOGUE.commands]
    roots = {path.partition(" ")[0] for path in paths}
    menus = {(one.path, looking.MESSAGE_MENU) for one in CATALOGUE.menus}
    return frozenset({(root, looking.SLASH) for root in roots} | menus)
