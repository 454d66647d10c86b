"""The commands of Discord: those of the one table, with the functions of those that need Discord.

And what can be pressed below their answers, and below those of models.
"""

from collections.abc import Mapping
from typing import Final

from discoclaw.bot import actions, answer_buttons, buttons, live_settings, reminders
from discoclaw.bot.commands import alone, menus, preview
from discoclaw.bot.commands import help as helping
from discoclaw.bot.commands.call import Call
from discoclaw.bot.wire import TEXT_ROOTS
from discoclaw.commands.spec import Catalogue, Run
from discoclaw.commands.table import COMMANDS, GROUPS, MENUS, carried_out


async def explain(call: Call, what: str | None) -> str:
    """The help: an overview, everything, or one group or command."""
    wanted = (what or "").strip().lower().lstrip("!/")
    if not wanted:
        return helping.overview(CATALOGUE)
    if wanted == "all":
        return helping.everything(CATALOGUE)
    return helping.page(CATALOGUE, wanted) or helping.overview(CATALOGUE)


OWN: Final[Mapping[str, Run]] = {
    "memory remember": alone.remember,
    "memory search": alone.search,
    "search": alone.search,
    "memory preview": preview.preview,
    "memory share": alone.share,
    "memory private": alone.private,
    "memory approve": alone.approve,
    "memory pending": alone.pending,
    "memory timezone": alone.timezone,
    "memory tidy": alone.tidy,
    "memory help": explain,
    "memory history split": alone.split,
    "memory persona autoswitch": alone.autoswitch,
    "memory data import": alone.take,
    "memory data optout": alone.optout,
    "memory data optin": alone.optin,
    "memory data reset-summary": alone.reset_summary,
    "remind me": reminders.remind_me,
    "remind list": reminders.remind_list,
    "remind delete": reminders.remind_delete,
    "remind edit": reminders.remind_edit,
    "remind snooze": reminders.remind_snooze,
    "hatch start": alone.hatch_start,
    "hatch cancel": alone.hatch_cancel,
    "hatch show": alone.hatch_show,
    "hatch undo": alone.hatch_undo,
    "nostr status": alone.mirror_status,
    "nostr push": alone.mirror_push,
    "settings": alone.settings,
    "model": alone.model,
    "ask": menus.ask,
    "Remember this": menus.remember,
    "What was learned from this?": menus.learned,
    "Why this answer?": menus.why,
    "Ask about this": menus.ask_about,
}
CATALOGUE: Final = Catalogue(
    GROUPS, carried_out(COMMANDS, OWN), frozenset(TEXT_ROOTS), carried_out(MENUS, OWN)
)
CONTROLS: Final = (
    *actions.CONTROLS.all,
    *buttons.CONTROLS.all,
    *live_settings.CONTROLS.all,
    *answer_buttons.CONTROLS.all,
    *reminders.CONTROLS.all,
)
"""Everything that people can press, and every form that they can send."""
