"""The rows of the table of commands below the everyday ones: history, personas, data, and what admins do.

See `table`, where all rows come together.
"""

from dataclasses import replace

from discoclaw.bot.commands import data, everyday, history, live_settings, owners, personas, transfer, usage
from discoclaw.bot.commands.spec import Command, Param, a_change, a_memory, a_persona, on_off

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
        personas.overview,
        "Your personas; the current one is marked",
        aliases=("branches",),
    ),
    Command(
        "memory persona switch",
        personas.switch,
        "Talk to me as another persona",
        (a_persona("The persona"),),
        aliases=("checkout",),
    ),
    Command(
        "memory persona create",
        personas.create,
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
        personas.delete,
        "Delete a persona; its changes stay in your history",
        (a_persona("The persona"),),
        aliases=("delete-branch",),
    ),
    Command(
        "memory persona merge",
        personas.merge,
        "Bring another persona's changes into this one",
        (a_persona("The persona to bring in"),),
        aliases=("merge",),
        adds=True,
    ),
    Command(
        "memory persona copy",
        personas.copy,
        "Bring one change of another persona into this one",
        (a_change("The id of the change, from history log"),),
        aliases=("cherry-pick", "branch cherry-pick"),
        adds=True,
    ),
    Command(
        "memory persona autoswitch",
        personas.autoswitch,
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
        transfer.export,
        "Your memory as a file, in a DM",
        (
            Param(
                "format",
                "For import, for reading, every object, a list for programs, or what models did for you",
                "choice",
                default="json",
                choices=tuple(transfer.FORMATS),
            ),
            Param("history", "With everything that ever changed", "flag", default=False),
        ),
        aliases=("export",),
        needs=(),
    ),
    Command(
        "memory data import",
        transfer.take,
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
    Command(
        "settings", live_settings.settings, "How I behave here, and how to change it", needs=(), only="admins"
    ),
    Command(
        "model",
        live_settings.model,
        "Which model answers here, and how to choose another one",
        (Param("name", "Its name; without it, the one there is", bounds=(1, 120), completes="model"),),
        needs=(),
        only="admins",
    ),
)
