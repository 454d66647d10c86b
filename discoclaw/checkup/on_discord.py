"""Discord: the token, the intents, the clock, where the bot is, what it may there, and who may talk to it."""

from collections.abc import AsyncIterator, Mapping, Sequence

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
    if bot.message_content:
        spare = [name for name, on in (("server members", bot.members), ("presence", bot.presences)) if on]
        more = f"; {' and '.join(spare)} would not be needed" if spare else ""
        yield Finding("intents", "good", f"the message content intent is enabled{more}")
    else:
        text = "the message content intent is off, so the bot can't connect"
        yield Finding("intents", "bad", text, f"enable it at {pasted.PORTAL}, under Bot")
    ahead_s = bot.clock_ahead_s
    if ahead_s is not None and abs(ahead_s) <= WRONG_CLOCK_S:
        yield Finding("clock", "good", "this machine's clock agrees with Discord's")
    elif ahead_s is not None:
        way = "ahead of" if ahead_s > 0 else "behind"
        text = (
            f"this machine's clock is {abs(ahead_s):,.0f} s {way} Discord's: dates in answers, what expires, "
            "and relays that check times are wrong by as much"
        )
        yield Finding("clock", "warning", text, "turn on time synchronisation (timedatectl set-ntp true)")
    if bot.guilds:
        named = [line(one.name) for one in bot.guilds[:MOST_NAMED]]
        rest = len(bot.guilds) - len(named)
        others = f" and {'at least ' if bot.more_guilds else ''}{rest} more" if rest else ""
        yield Finding("servers", "good", f"the bot is on {', '.join(named)}{others}")
    else:
        invite = f"invite it: {invite_link(bot.application_id)}"
        yield Finding("servers", "bad", "the bot is on no server", invite)

    servers: list[looking.Server] = []
    for guild in bot.guilds[:MOST_SERVERS]:
        try:
            servers.append(await looking.server(session, guild.id))
        except ChatError as error:
            yield Finding("servers", "unknown", f"{line(guild.name)} can't be looked at ({error})")
    async for one in _channels(session, settings, servers):
        yield one
    whole = len(servers) == len(bot.guilds) and not bot.more_guilds
    for role in sorted(settings.allow_roles - {role for server in servers for role in server.roles}):
        text, variable = f"no server of the bot has the role {role}", "DISCORD_ALLOW_ROLE_IDS"
        if whole:
            yield Finding(variable, "bad", text, f"correct {variable}")
        else:
            yield Finding(variable, "unknown", f"{text} that was looked at")
    async for one in _people(session, settings, bot):
        yield one
    yield await _commands(session, settings)


# ---------------------------------------------------------------------- channels


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
    others = [("DISCOCLAW_MEMORY_CHANNEL_ID", settings.memory_channel)] if settings.memory_channel else []
    others += [("DISCOCLAW_CHANNEL_PERSONAS", one) for one in settings.personas.places if one.isdigit()]
    others += [("NOSTR_GROUPS", one) for one in settings.nostr_groups]
    for name, wanted in others:
        if wanted in known:
            _, problem = await _channel(session, wanted, known)
            if problem is not None:
                yield problem
        elif await looking.channel(session, wanted) is None:
            yield Finding(name, "bad", f"there is no channel {wanted}", f"correct {name}")


async def _channel(
    session: Session, wanted: str, known: Mapping[str, tuple[looking.Server, looking.Channel]]
) -> tuple[looking.Channel | None, Finding | None]:
    """A channel that the bot can see, and what is wrong with it."""
    found = known.get(wanted)
    if found is None:
        there = await looking.channel(session, wanted)
        if there is None:
            text = f"there is no channel {wanted}"
            return None, Finding("DISCORD_CHANNEL_IDS", "bad", text, "correct DISCORD_CHANNEL_IDS")
        found = known.get(there.parent or "")
        if found is None and there.hidden:
            text = f"the channel {wanted} exists, but the bot may not see it"
            way_out = "let its role view that channel, or invite the bot there"
            return None, Finding("permissions", "bad", text, way_out)
        if found is None:
            why = f"the bot is on more than {MOST_SERVERS} servers"
            return None, Finding("permissions", "unknown", f"the channel {wanted} wasn't looked at: {why}")
    server, one = found
    if not one.lacks:
        return one, None
    hidden = VIEW in one.lacks
    missing = f"{VIEW}, without which it may do nothing there" if hidden else ", ".join(one.lacks)
    text = f"#{line(one.name)} on {line(server.name)}: missing {missing}"
    problem = Finding("permissions", "bad", text, "give the bot's role these permissions there")
    return (None if hidden else one), problem


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
