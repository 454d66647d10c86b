"""`/settings` and `/model`, for owners and admins. What they show and change is in `bot/settings`."""

from typing import cast

from discoclaw.bot.answers import Carded
from discoclaw.bot.commands.call import Call, Interaction
from discoclaw.bot.settings.admins import Admin, scope_of
from discoclaw.bot.settings.cards import main_card
from discoclaw.bot.texts.markup import words
from discoclaw.core.live import GLOBAL
from discoclaw.core.policy import FIELDS


async def settings(call: Call) -> Carded:
    card = main_card(await _admin(call), scope_of(call.place))
    return Carded(card, card.as_text())


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
