"""What owners and admins do: give the bot a personality, look after its encrypted backup, change settings.

The interview itself is `session/hatch`; here it is begun and ended. What settings show and change is in
`bot/live_settings`.
"""

from typing import cast

from discoclaw.bot.commands.call import Call, Interaction
from discoclaw.bot.live_settings import Admin, main_card, scope_of
from discoclaw.core.errors import Refused
from discoclaw.core.live import GLOBAL
from discoclaw.core.policy import FIELDS
from discoclaw.core.subject import person_of
from discoclaw.show.answer import Answer
from discoclaw.show.markup import block, plain, words
from discoclaw.soul.soul import of_view, sections

NOT_HERE = (
    "I don't listen in this channel (DISCORD_CHANNEL_IDS or `/settings`), so I wouldn't hear your answers; "
    "ask me in a DM"
)
NO_SOUL = "I have no personality yet."
BEGIN = "`/hatch start` begins an interview that gives me one."
INTERVIEWED = "Somebody else is being interviewed about who I am."
FILES = "\n-# Files in content/soul/ replace these, each by itself."
PUSHED = "What has changed is on its way. `!nostr status` shows what has arrived."


async def start(call: Call) -> str:
    if not call.client.access.listens(call.place):
        raise Refused(NOT_HERE)
    return await call.context.hatchery.begin(call.user_id, call.place)


async def cancel(call: Call) -> str:
    return await call.context.hatchery.cancel(call.user_id)


async def show(call: Call) -> str:
    view = await call.context.hatchery.view(call.user_id)
    found = sections(of_view(view, with_whom=call.user_id, in_dm=call.in_private))
    interview = _under_way(call)
    if not found:
        return f"{NO_SOUL} {interview or BEGIN}"
    parts = [f"**{title}**\n" + "\n".join(plain(text) for text in texts) for title, texts in found]
    return "\n\n".join([*([interview] if interview else []), *parts]) + FILES


def _under_way(call: Call) -> str:
    """The sentence about an interview that goes on now; "" if there is none."""
    one = call.context.hatchery.under_way
    if one is None:
        return ""
    if one.human != call.user_id:
        return INTERVIEWED
    here = "our DMs" if person_of(one.session_key) else f"<#{one.session_key.rpartition(':')[2]}>"
    return f"Our interview about who I am is under way in {here}; `/hatch cancel` ends it."


async def undo(call: Call) -> str:
    return await call.context.hatchery.undo(call.user_id, call.origin(), **call.metadata)


async def mirror_status(call: Call) -> str:
    return block(await call.context.mirror.status_text())


async def mirror_push(call: Call) -> str:
    call.context.mirror.push()
    return PUSHED


# ---------------------------------------------------------------------- settings


async def settings(call: Call) -> Answer:
    return main_card(await _admin(call), scope_of(call.place))


async def model(call: Call, name: str | None) -> str:
    """Show or set the model that answers here; in a DM, everywhere."""
    admin, scope = await _admin(call), scope_of(call.place)
    admin.check(scope)
    where = "everywhere" if scope == GLOBAL else f"in <#{scope.id}>"
    if name is None:
        now = words(admin.settings.answers(str(admin.settings.row(scope, "model").effective.value)))
        named = ", ".join(words(one) for one in admin.settings.models)
        how = f"{named}, or any other name" if named else "name its provider too, as in `ollama:qwen3:8b`"
        return f"{now} answers {where}. `/model name` chooses another one: {how}."
    value = FIELDS["model"].typed(name)
    changed = await admin.settings.change(scope, "model", value, admin.by)
    return f"{words(admin.settings.answers(str(value)))} {'now' if changed else 'already'} answers {where}."


async def _admin(call: Call) -> Admin:
    await call.context.settings.refresh()
    return Admin(cast(Interaction, call.source), call.context.settings, call.client.settings.owners)
