"""The table of all commands. Slash and text commands, the help and docs/members/commands.md come from it.

At the top of `/memory` is what people do every day; the rest is in groups by what it is about, each with room
for more (Discord takes 25 at each level). `aliases` are the names that commands had before, or have in git;
they work as text for ever.
"""

from dataclasses import replace

from discoclaw.bot.commands import (
    approving,
    everyday,
    history,
    preview,
    search,
    timezone,
    why,
)
from discoclaw.bot.commands.ask import ASK
from discoclaw.bot.commands.call import Call
from discoclaw.bot.commands.spec import Catalogue, Command, Group, Param, a_memory, a_zone, on_off
from discoclaw.bot.commands.table_more import ADMINS, DATA, HISTORY, OWNERS, PERSONAS, USAGE
from discoclaw.bot.menus.table import MENUS
from discoclaw.bot.texts import help as helping
from discoclaw.bot.texts.search import STILL
from discoclaw.bot.wire import TEXT_ROOTS

STILL_TIDYING = "I'm still tidying. Please try again in a moment."


async def explain(call: Call, what: str | None) -> str:
    """The help: an overview, everything, or one group or command."""
    wanted = (what or "").strip().lower().lstrip("!/")
    if not wanted:
        return helping.overview(CATALOGUE)
    if wanted == "all":
        return helping.everything(CATALOGUE)
    return helping.page(CATALOGUE, wanted) or helping.overview(CATALOGUE)


GROUPS = (
    Group(
        "memory", "See and change what I remember about you", "Every day", alone="memory show", anywhere=True
    ),
    Group("memory history", "What changed in your memory, and how to take it back", "History"),
    Group(
        "memory persona",
        "Separate memories, for example for work",
        "Personas",
        alone="memory persona list",
        aliases=("branch",),
    ),
    Group("memory data", "Take your memory with you, destroy it, or have none", "Your data"),
    Group("hatch", "Give me a personality (my owners only)", "My personality", alone="hatch start"),
    Group("nostr", "My encrypted backup (my owners only)", "My backup", alone="nostr status"),
)

SEARCH = Command(
    "memory search",
    search.search,
    "Find messages in the channels you can read",
    (Param("query", "What to look for, in any words", required=True, bounds=(1, 500)),),
    needs=(),
    aside=STILL,
)

EVERYDAY = (
    Command("memory show", everyday.show, "What I remember about you, and the summary of this conversation"),
    Command(
        "memory remember",
        everyday.remember,
        "Remember something",
        (Param("text", "What to remember, as one sentence", required=True),),
        adds=True,
    ),
    Command(
        "memory forget",
        everyday.forget,
        "Stop using a memory (you can restore it from your history)",
        (a_memory(),),
    ),
    Command(
        "memory edit",
        everyday.edit,
        "Change what a memory says",
        (a_memory(), Param("text", "What it should say", required=True)),
        adds=True,
        parse=everyday.arrow,
        example="<words or id> => <new text>",
    ),
    SEARCH,
    Command(
        "memory why",
        why.why,
        "What my last answer was based on, or where a memory comes from",
        (a_memory("Some of a memory's words, or its id; nothing for my last answer", required=False),),
    ),
    Command(
        "memory preview",
        preview.preview,
        "What I could say about you, and what not",
        (
            Param("channel", "Where, if not here: a channel, or “dm”", "word", completes="channel"),
            Param("about", "What you would write; without it, everything that could fit", bounds=(1, 2000)),
        ),
        needs=(),
        parse=preview.asked,
        example="[#channel] [text]",
    ),
    Command(
        "memory undo",
        history.undo,
        "Take back the last change; again for the one before",
        aliases=("history undo",),
    ),
    Command(
        "memory share",
        everyday.share,
        "Use a private memory outside our DMs too",
        (a_memory(everyday.WHICH),),
    ),
    Command("memory private", everyday.private, "Use a memory in our DMs only", (a_memory(),)),
    Command("memory settle", everyday.settle, "Decide what is right where memories contradict each other"),
    Command(
        "memory approve",
        approving.approve,
        "Whether I ask before I remember",
        (on_off("On: I ask first; off: I remember without asking; nothing: how it is now", required=False),),
    ),
    Command("memory pending", approving.pending, "What waits for your yes"),
    Command("memory timezone", timezone.timezone, "Your time zone", (a_zone(),)),
    Command(
        "memory tidy",
        everyday.tidy,
        "Look for duplicates and contradictions now",
        aliases=("consolidate",),
        needs=("memory", "tidying"),
        adds=True,
        aside=STILL_TIDYING,
    ),
    Command(
        "memory help",
        explain,
        "How to see and change what I remember",
        (Param("what", "A group or a command, or “all”", shown="group or command"),),
        needs=(),
    ),
)

_SHORT = (replace(SEARCH, path="search"), replace(USAGE, path="usage"))
"""Slash commands that are found without `/memory` too."""
_ALL = (*EVERYDAY, *HISTORY, *PERSONAS, *DATA, *OWNERS, *ADMINS, *_SHORT, ASK)
CATALOGUE = Catalogue(GROUPS, _ALL, frozenset(TEXT_ROOTS), MENUS)
