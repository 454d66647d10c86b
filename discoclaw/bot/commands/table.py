"""The commands of Discord: those of the one table, with the functions of those that need Discord."""

from collections.abc import Mapping
from typing import Final

from discoclaw.bot.commands import ask, data, everyday, menus, owners, preview, search
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
    "memory remember": everyday.remember,
    "memory search": search.search,
    "search": search.search,
    "memory preview": preview.preview,
    "memory share": everyday.share,
    "memory private": everyday.private,
    "memory approve": everyday.approve,
    "memory pending": everyday.pending,
    "memory timezone": everyday.timezone,
    "memory tidy": everyday.tidy,
    "memory help": explain,
    "memory history split": everyday.split,
    "memory persona autoswitch": everyday.autoswitch,
    "memory data import": data.take,
    "memory data optout": data.optout,
    "memory data optin": data.optin,
    "memory data reset-summary": data.reset_summary,
    "hatch start": owners.start,
    "hatch cancel": owners.cancel,
    "hatch show": owners.show,
    "hatch undo": owners.undo,
    "nostr status": owners.mirror_status,
    "nostr push": owners.mirror_push,
    "settings": owners.settings,
    "model": owners.model,
    "ask": ask.ask,
    "Remember this": menus.remember,
    "What was learned from this?": menus.learned,
    "Why this answer?": menus.why,
    "Ask about this": menus.ask_about,
}
CATALOGUE: Final = Catalogue(
    GROUPS, carried_out(COMMANDS, OWN), frozenset(TEXT_ROOTS), carried_out(MENUS, OWN)
)
