"""The table of all commands. Slash and text commands, the help and docs/members/commands.md come from it.

At the top of `/memory` is what people do every day; the rest is in groups by what it is about, each with room
for more (Discord takes 25 at each level). `aliases` are the names that commands had before, or have in git;
they work as text for ever.
"""

from dataclasses import replace

from discoclaw.bot.commands import data, everyday, history, owners, preview, search, usage, why
from discoclaw.bot.commands import help as helping
from discoclaw.bot.commands.ask import ASK
from discoclaw.bot.commands.call import Call
from discoclaw.bot.commands.menus import MENUS
from discoclaw.bot.commands.spec import Catalogue, Command, Group, Kind, Param
from discoclaw.bot.wire import TEXT_ROOTS


def a_memory(help_: str = "Some of the memory's words, or its id", *, required: bool = True) -> Param:
    return Param("memory", help_, required=required, completes="memory", shown="words or id")


def a_persona(help_: str) -> Param:
    return Param("name", help_, "word", required=True, completes="persona", shown="persona")


def a_change(help_: str, kind: Kind = "word") -> Param:
    return Param("change", help_, kind, required=True, completes="change")


def a_zone() -> Param:
    return Param("name", "A city, such as Berlin; “off” forgets it", completes="zone", shown="city")


def on_off(help_: str, *, required: bool = True) -> Param:
    return Param("state", help_, "choice", required=required, choices=("on", "off"))


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
    aside=search.STILL,
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
        everyday.approve,
        "Whether I ask before I remember",
        (on_off("On: I ask first; off: I remember without asking; nothing: how it is now", required=False),),
    ),
    Command("memory pending", everyday.pending, "What waits for your yes"),
    Command("memory timezone", everyday.timezone, "Your time zone", (a_zone(),)),
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

_ONLY = Param("persona", "Only this persona", "word", completes="persona", also=("branch",))
HISTORY = (
    Command(
        "memory history log",
        history.log,
        "What changed, newest first",
        (
            Param("oneline", "One line for each change", "flag", default=False),
            Param("limit", "How many changes at most", "number", default=20, bounds=(1, 1000)),
            _ONLY,
        ),
        aliases=("log",),
    ),
    Command(
        "memory history view",
        history.view,
        "What I remember now, or remembered at some point",
        (
            Param("at", "A date, a change or a persona", completes="change", shown="point"),
            replace(_ONLY, by_name=True, shown="name"),
        ),
        aliases=("view",),
    ),
    Command(
        "memory history diff",
        history.difference,
        "What differs between two points; what the last change did",
        (
            Param(
                "start",
                "Where to start: a change, a date or a persona",
                "word",
                completes="change",
                also=("old",),
                shown="from",
            ),
            Param(
                "end", "Where to end; now, if left out", "word", completes="change", also=("new",), shown="to"
            ),
        ),
        aliases=("diff",),
        example="[<from> [<to>]]",
    ),
    Command(
        "memory history graph",
        history.draw,
        "Your history as a picture, or as text",
        (
            Param(
                "form",
                "How to draw it",
                "choice",
                default="picture",
                choices=("picture", "timeline", "mermaid"),
            ),
        ),
        aliases=("graph",),
    ),
    Command(
        "memory history revert",
        history.revert,
        "Take back one change and keep the later ones",
        (a_change("The id of the change to take back"),),
        aliases=("revert",),
    ),
    Command(
        "memory history restore",
        history.restore,
        "Go back to what I remembered after a change",
        (a_change("The id of the change to go back to", "text"),),
        aliases=("restore",),
    ),
    Command(
        "memory history verify",
        history.verify,
        "Check that your history is complete and unchanged",
        aliases=("verify",),
    ),
    Command(
        "memory history split",
        everyday.split,
        "Make two memories of one that says two things",
        (a_memory(),),
        adds=True,
        aliases=("split",),
    ),
)

PERSONAS = (
    Command(
        "memory persona list",
        history.overview,
        "Your personas; the current one is marked",
        aliases=("branches",),
    ),
    Command(
        "memory persona switch",
        history.switch,
        "Talk to me as another persona",
        (a_persona("The persona"),),
        aliases=("checkout",),
    ),
    Command(
        "memory persona create",
        history.create,
        "Create a persona, which starts with what the current one knows",
        (
            Param("name", "One word, for example coding", "word", required=True),
            Param("description", "What this persona is about", also=("persona",)),
        ),
        aliases=("create-branch",),
        adds=True,
    ),
    Command(
        "memory persona delete",
        history.delete,
        "Delete a persona; its changes stay in your history",
        (a_persona("The persona"),),
        aliases=("delete-branch",),
    ),
    Command(
        "memory persona merge",
        history.merge,
        "Bring another persona's changes into this one",
        (a_persona("The persona to bring in"),),
        aliases=("merge",),
        adds=True,
    ),
    Command(
        "memory persona copy",
        history.copy,
        "Bring one change of another persona into this one",
        (a_change("The id of the change, from history log"),),
        aliases=("cherry-pick", "branch cherry-pick"),
        adds=True,
    ),
    Command(
        "memory persona autoswitch",
        history.autoswitch,
        "Whether I may switch your persona by myself",
        (on_off("On: I switch by myself; off: I ask first"),),
        aliases=("autoswitch", "branch auto"),
        needs=(),
    ),
)

USAGE = Command(
    "memory data usage",
    usage.usage,
    "What models did for you, what it cost, and what is left of budgets",
    (
        Param(
            "by",
            "An overview, or the last 30 days divided by this",
            "choice",
            default=usage.VIEWS[0],
            choices=usage.VIEWS,
            shown="view",
        ),
        Param("everybody", "For my owners: everybody's, not only yours", "flag", default=False),
    ),
    aliases=("usage",),
    needs=(),
)
DATA = (
    Command("memory data stats", data.stats, "Statistics about your memory", aliases=("stats",)),
    USAGE,
    Command(
        "memory data export",
        data.export,
        "Your memory as a file, in a DM",
        (
            Param(
                "format",
                "For import, for reading, every object, a list for programs, or what models did for you",
                "choice",
                default="json",
                choices=tuple(data.FORMATS),
            ),
            Param("history", "With everything that ever changed", "flag", default=False),
        ),
        aliases=("export",),
        needs=(),
    ),
    Command(
        "memory data import",
        data.take,
        "Remember what an exported file says",
        (Param("file", "A file from an export", "file", required=True),),
        aliases=("import",),
        adds=True,
        example="(with a file)",
    ),
    Command(
        "memory data erase",
        data.erase,
        "Destroy everything I remember about you, for good",
        (
            Param("user", "For my owners: the id of somebody else", "word"),
            Param("yes", "At once, without asking", "flag", default=False),
        ),
        aliases=("erase",),
        example="[--yes]",
    ),
    Command(
        "memory data optout",
        data.optout,
        "Stop remembering me: learn nothing, use nothing",
        aliases=("optout",),
        needs=(),
    ),
    Command("memory data optin", data.optin, "Start remembering me again", aliases=("optin",), needs=()),
    Command(
        "memory data reset-summary",
        data.reset_summary,
        "Clear the summary of this conversation",
        aliases=("reset rolling",),
        needs=("summaries",),
    ),
)

OWNERS = (
    Command("hatch start", owners.start, "Begin the interview about my personality", only="owners", needs=()),
    Command("hatch cancel", owners.cancel, "End the interview and change nothing", only="owners", needs=()),
    Command("hatch show", owners.show, "Who I am", only="owners", needs=()),
    Command("hatch undo", owners.undo, "Take back the last change of who I am", only="owners", needs=()),
    Command("nostr status", owners.mirror_status, "How my backup is doing", only="owners", needs=("mirror",)),
    Command(
        "nostr push",
        owners.mirror_push,
        "Send what has changed now, and try again what was refused",
        only="owners",
        needs=("mirror",),
    ),
)

ADMINS = (
    Command("settings", owners.settings, "How I behave here, and how to change it", needs=(), only="admins"),
    Command(
        "model",
        owners.model,
        "Which model answers here, and how to choose another one",
        (Param("name", "Its name; without it, the one there is", bounds=(1, 120), completes="model"),),
        needs=(),
        only="admins",
    ),
)

_SHORT = (replace(SEARCH, path="search"), replace(USAGE, path="usage"))
"""Slash commands that are found without `/memory` too."""
_ALL = (*EVERYDAY, *HISTORY, *PERSONAS, *DATA, *OWNERS, *ADMINS, *_SHORT, ASK)
CATALOGUE = Catalogue(GROUPS, _ALL, frozenset(TEXT_ROOTS), MENUS)
