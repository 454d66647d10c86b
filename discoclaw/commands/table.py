"""The one table of commands, of Discord and of `discoclaw memory`.

Slash and text commands, completion, the help, docs/members/commands.md and the verbs of the terminal come
from it. What both have is carried out by one function, which stands in its row. Where a command needs Discord
(buttons, what a person may read there) or a terminal (files, a locked folder), each has its own; where it is
in one of the two only, `alone` says why.

At the top of `/memory` is what people do every day; the rest is in groups by what it is about, each with room
for more (Discord takes 25 at each level). `aliases` are the names that commands had before, or have in git;
they work as text for ever.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from discoclaw.commands import data, history, memories, personas, questions, usage
from discoclaw.commands.spec import Command, Group, Kind, Param, Run, Terminal, Typed, Values

LONGEST: Final = 4000
"""The longest question, in characters: what a form of Discord takes."""

# Parameters of the command line, in git's words.
POINT: Final = Typed(
    "FROM",
    "A commit (its id, the first digits of it, or HEAD~2), a branch, or a local time (2026-02-03 or "
    "2026-02-03T16:29).",
)
COMMIT: Final = Typed("COMMIT", "A commit: its id, the first digits of it, or HEAD~2.")
ITEM: Final = Typed("ITEM", "An item: its id, the first digits of it, or 60 % of its text.")
ON_BRANCH: Final = Typed("--branch", "Use this branch, not the current one.")

# Why a command is in one place only.
THEIR_OWN: Final = "a person decides that about themselves"
THE_PLACE: Final = "it is about the place where it is given"
THE_TALK: Final = "it is about what was said in Discord"
OF_A_MODEL: Final = "it needs the running bot's model"
ELSEWHERE: Final = "the command line has commands of its own for it: `usage`, `nostr`, `config`"
EVERYBODY: Final = "whoever has the folder sees everybody's memory"

_CHANNEL: Final = re.compile(r"<#\d+>|\d{15,20}|#\S+|dm", re.IGNORECASE)


def a_memory(help_: str = "Some of the memory's words, or its id", *, required: bool = True) -> Param:
    return Param("memory", help_, required=required, completes="memory", shown="words or id", terminal=ITEM)


def a_persona(help_: str, terminal: Typed) -> Param:
    return Param(
        "name", help_, "word", required=True, completes="persona", shown="persona", terminal=terminal
    )


def a_change(help_: str, kind: Kind = "word") -> Param:
    return Param("change", help_, kind, required=True, completes="change", terminal=COMMIT)


def a_zone() -> Param:
    return Param("name", "A city, such as Berlin; “off” forgets it", completes="zone", shown="city")


def on_off(help_: str, *, required: bool = True) -> Param:
    return Param("state", help_, "choice", required=required, choices=("on", "off"))


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
    Group(
        "remind",
        "Have me remind you of something",
        "Reminders",
        alone="remind list",
        rest="remind me",
        anywhere=True,
    ),
    Group("hatch", "Give me a personality (my owners only)", "My personality", alone="hatch start"),
    Group("nostr", "My encrypted backup (my owners only)", "My backup", alone="nostr status"),
)


def channel_and_text(text: str) -> Values:
    """The parameters of `preview` as text: `[#channel] [text]`."""
    first, _, rest = text.strip().partition(" ")
    channel, about = (first, rest.strip()) if _CHANNEL.fullmatch(first) else (None, text.strip())
    return {"channel": channel, "about": about or None}


SEARCH = Command(
    "memory search",
    "Find messages in the channels you can read",
    (Param("query", "What to look for, in any words", required=True, bounds=(1, 500)),),
    needs=(),
    aside="I'm still looking for what you asked before. Please try again in a moment.",
    alone=THE_TALK,
)

EVERYDAY = (
    Command(
        "memory show",
        "What I remember about you, and the summary of this conversation",
        run=memories.show,
        terminal=Terminal(
            "show",
            "Show what the bot remembers about one person, newest first and forgotten items last.",
            "show 123456789012345678",
        ),
    ),
    Command(
        "memory remember",
        "Remember something",
        (Param("text", "What to remember, as one sentence", required=True),),
        adds=True,
        alone="an admin notes something with `memory set`",
    ),
    Command(
        "memory forget",
        "Stop using a memory (you can restore it from your history)",
        (a_memory(),),
        memories.forget,
        terminal=Terminal(
            "forget",
            "Forget an item. It stays in the history, and `undo` restores it.",
            "forget 123456789012345678 3720777d",
            changes=True,
            on=ON_BRANCH,
            json=False,
        ),
    ),
    Command(
        "memory edit",
        "Change what a memory says",
        (
            a_memory(),
            Param("text", "What it should say", required=True, terminal=Typed("TEXT", "The new text.")),
        ),
        memories.edit,
        adds=True,
        parse=memories.arrow,
        example="<words or id> => <new text>",
        terminal=Terminal(
            "edit",
            "Change the text of an item, which keeps its id and its history.",
            'edit 123456789012345678 3720777d "Prefers spaces over tabs."',
            changes=True,
            on=ON_BRANCH,
            json=False,
        ),
    ),
    SEARCH,
    Command(
        "memory why",
        "What my last answer was based on, or where a memory comes from",
        (
            replace(
                a_memory("Some of a memory's words, or its id; nothing for my last answer", required=False),
                terminal=replace(ITEM, required=True),
            ),
        ),
        history.why,
        terminal=Terminal(
            "why",
            "Show where an item comes from: every event about it, with its commit, source and evidence.\n\n"
            "Works for removed items too, as long as the history has them.",
            "why 123456789012345678 3720777d",
            on=Typed("--branch", "Look only at this branch, not all of them."),
        ),
    ),
    Command(
        "memory preview",
        "What I could say about you, and what not",
        (
            Param("channel", "Where, if not here: a channel, or “dm”", "word", completes="channel"),
            Param("about", "What you would write; without it, everything that could fit", bounds=(1, 2000)),
        ),
        needs=(),
        parse=channel_and_text,
        example="[#channel] [text]",
        alone=THE_PLACE,
    ),
    Command(
        "memory undo",
        "Take back the last change; again for the one before",
        run=history.undo,
        aliases=("history undo",),
        terminal=Terminal(
            "undo",
            "Undo the last change that hasn't been undone yet. Repeat it to go further back.",
            "undo 123456789012345678",
            changes=True,
            on=ON_BRANCH,
        ),
    ),
    Command(
        "memory share",
        "Use a private memory outside our DMs too",
        (a_memory("Some of its words, or its id; “imported” means all that came in from files"),),
        alone=THEIR_OWN,
    ),
    Command("memory private", "Use a memory in our DMs only", (a_memory(),), alone=THEIR_OWN),
    Command(
        "memory settle",
        "Decide what is right where memories contradict each other",
        run=questions.settle,
        terminal=Terminal("settle", changes=True),
    ),
    Command(
        "memory approve",
        "Whether I ask before I remember",
        (on_off("On: I ask first; off: I remember without asking; nothing: how it is now", required=False),),
        alone=THEIR_OWN,
    ),
    Command("memory pending", "What waits for your yes", alone=THEIR_OWN),
    Command("memory timezone", "Your time zone", (a_zone(),), alone=THEIR_OWN),
    Command(
        "memory tidy",
        "Look for duplicates and contradictions now",
        aliases=("consolidate",),
        needs=("memory", "tidying"),
        adds=True,
        aside="I'm still tidying. Please try again in a moment.",
        alone=OF_A_MODEL,
    ),
    Command(
        "memory help",
        "How to see and change what I remember",
        (Param("what", "A group or a command, or “all”", shown="group or command"),),
        needs=(),
        alone="the command line has `--help`",
    ),
)

_ONLY = Param(
    "persona",
    "Only this persona",
    "word",
    completes="persona",
    also=("branch",),
    terminal=Typed("--branch", "Show only this branch, not all of them."),
)
HISTORY = (
    Command(
        "memory history log",
        "What changed, newest first",
        (
            Param(
                "oneline",
                "One line for each change",
                "flag",
                default=False,
                terminal=Typed("--oneline", "Show each commit on one line."),
            ),
            Param(
                "limit",
                "How many changes at most",
                "number",
                default=20,
                bounds=(1, 1000),
                terminal=Typed("--limit -n", "Show at most this many commits."),
            ),
            _ONLY,
        ),
        history.log,
        aliases=("log",),
        terminal=Terminal(
            "log",
            "Show the history of one person's memory, newest first.",
            "log 123456789012345678 --oneline --branch main --limit 20",
        ),
    ),
    Command(
        "memory history view",
        "What I remember now, or remembered at some point",
        (
            Param(
                "at",
                "A date, a change or a persona",
                completes="change",
                shown="point",
                terminal=Typed("--at", f"{POINT.help} A date means the end of that day."),
            ),
            replace(_ONLY, by_name=True, shown="name", terminal=ON_BRANCH),
        ),
        history.view,
        aliases=("view",),
        terminal=Terminal(
            "view",
            "Show what is or was remembered: now, at a commit, at a time, or on another branch.",
            "view 123456789012345678 --at 2026-02-03",
        ),
    ),
    Command(
        "memory history diff",
        "What differs between two points; what the last change did",
        (
            Param(
                "start",
                "Where to start: a change, a date or a persona",
                "word",
                completes="change",
                also=("old",),
                shown="from",
                terminal=Typed("FROM", f"{POINT.help} By default, what the last commit followed."),
            ),
            Param(
                "end",
                "Where to end; now, if left out",
                "word",
                completes="change",
                also=("new",),
                shown="to",
                terminal=Typed("TO", "The same; by default, the present."),
            ),
        ),
        history.difference,
        aliases=("diff",),
        example="[<from> [<to>]]",
        terminal=Terminal(
            "diff",
            "Show what changed between two points: + was added, - removed or forgotten, ~ changed.",
            "diff 123456789012345678 HEAD~3",
        ),
    ),
    Command(
        "memory history graph",
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
        history.graph,
        aliases=("graph",),
        terminal=Terminal("graph"),
    ),
    Command(
        "memory history revert",
        "Take back one change and keep the later ones",
        (a_change("The id of the change to take back"),),
        history.revert,
        aliases=("revert",),
        terminal=Terminal(
            "revert",
            "Undo the changes of one commit, by a new commit. What was changed again since then stays.",
            "revert 123456789012345678 c5230d5b",
            changes=True,
            on=ON_BRANCH,
        ),
    ),
    Command(
        "memory history restore",
        "Go back to what I remembered after a change",
        (a_change("The id of the change to go back to", "text"),),
        history.restore,
        aliases=("restore",),
        terminal=Terminal(
            "restore",
            "Return the memory to its state at a commit, by a new commit.",
            "restore 123456789012345678 HEAD~5",
            changes=True,
            on=ON_BRANCH,
        ),
    ),
    Command(
        "memory history verify",
        "Check that your history is complete and unchanged",
        run=history.verify,
        aliases=("verify",),
        terminal=Terminal("verify"),
    ),
    Command(
        "memory history split",
        "Make two memories of one that says two things",
        (a_memory(),),
        adds=True,
        aliases=("split",),
        alone="an admin edits the one, and imports the other",
    ),
)

PERSONAS = (
    Command(
        "memory persona list",
        "Your personas; the current one is marked",
        run=personas.overview,
        aliases=("branches",),
        terminal=Terminal(
            "branches",
            "List the branches (personas) of one person. The current one is marked with a star.",
            "branches 123456789012345678",
        ),
    ),
    Command(
        "memory persona switch",
        "Talk to me as another persona",
        (a_persona("The persona", Typed("BRANCH", "The branch to switch to.")),),
        personas.switch,
        aliases=("checkout",),
        terminal=Terminal(
            "checkout",
            "Switch to another branch (persona). What is learned from then on is stored there.",
            "checkout 123456789012345678 coding",
            changes=True,
            json=False,
        ),
    ),
    Command(
        "memory persona create",
        "Create a persona, which starts with what the current one knows",
        (
            Param(
                "name",
                "One word, for example coding",
                "word",
                required=True,
                terminal=Typed("NAME", "Up to 32 letters, digits, - and _."),
            ),
            Param(
                "description",
                "What this persona is about",
                also=("persona",),
                terminal=Typed("--persona", "What this persona is about, in a sentence."),
            ),
        ),
        personas.create,
        aliases=("create-branch",),
        adds=True,
        terminal=Terminal(
            "create-branch",
            "Create a branch (persona). It starts with what is remembered now, and then develops separately.",
            'create-branch 123456789012345678 coding --persona "Terse; talks about code."',
            changes=True,
            on=Typed("--from", "Start at this branch, not the current one."),
            json=False,
        ),
    ),
    Command(
        "memory persona delete",
        "Delete a persona; its changes stay in your history",
        (a_persona("The persona", Typed("NAME", "The branch to delete.")),),
        personas.delete,
        aliases=("delete-branch",),
        terminal=Terminal(
            "delete-branch",
            "Delete a branch. Its commits stay in the history. main and the current branch can't be deleted.",
            "delete-branch 123456789012345678 coding",
            changes=True,
            json=False,
        ),
    ),
    Command(
        "memory persona merge",
        "Bring another persona's changes into this one",
        (a_persona("The persona to bring in", Typed("SOURCE", "The branch to merge.")),),
        history.merge,
        aliases=("merge",),
        adds=True,
        terminal=Terminal(
            "merge",
            "Bring another branch's changes into the current one.\n\nAn item that both changed differently "
            "stays as it is here, and a question is left for `settle`.",
            "merge 123456789012345678 coding --into main",
            changes=True,
            on=Typed("--into", "Merge into this branch, not the current one."),
        ),
    ),
    Command(
        "memory persona copy",
        "Bring one change of another persona into this one",
        (a_change("The id of the change, from history log"),),
        history.copy,
        aliases=("cherry-pick", "branch cherry-pick"),
        adds=True,
        terminal=Terminal(
            "cherry-pick",
            "Apply the changes of one commit of another branch.",
            "cherry-pick 123456789012345678 c5230d5b --onto main",
            changes=True,
            on=Typed("--onto", "Apply them to this branch, not the current one."),
        ),
    ),
    Command(
        "memory persona autoswitch",
        "Whether I may switch your persona by myself",
        (on_off("On: I switch by myself; off: I ask first"),),
        aliases=("autoswitch", "branch auto"),
        needs=(),
        alone=THEIR_OWN,
    ),
)

USAGE = Command(
    "memory data usage",
    "What models did for you, what it cost, and what is left of budgets",
    (
        Param(
            "by",
            "An overview, or the last 30 days divided by this",
            "choice",
            default=usage.OVERVIEW,
            choices=usage.VIEWS,
            shown="view",
        ),
        Param("everybody", "For my owners: everybody's, not only yours", "flag", default=False),
    ),
    usage.usage,
    aliases=("usage",),
    needs=(),
    alone=ELSEWHERE,
)
DATA = (
    Command(
        "memory data stats",
        "Statistics about your memory",
        run=history.stats,
        aliases=("stats",),
        terminal=Terminal(
            "stats",
            "Show statistics about one person's memory: how many items of which kinds, since when, made by "
            "whom.",
            "stats 123456789012345678",
        ),
    ),
    USAGE,
    Command(
        "memory data export",
        "Your memory as a file, in a DM",
        (
            Param(
                "format",
                "For import, for reading, every object, a list for programs; what models or tools did",
                "choice",
                default="json",
                choices=tuple(data.FORMATS),
            ),
            Param("history", "With everything that ever changed", "flag", default=False),
        ),
        data.export,
        aliases=("export",),
        needs=(),
        terminal=Terminal("export"),
    ),
    Command(
        "memory data import",
        "Remember what an exported file says",
        (Param("file", "A file from an export", "file", required=True),),
        aliases=("import",),
        adds=True,
        example="(with a file)",
        terminal=Terminal("import", changes=True),
    ),
    Command(
        "memory data erase",
        "Destroy everything I remember about you, for good",
        (
            Param("user", "For my owners: the id of somebody else", "word"),
            Param("yes", "At once, without asking", "flag", default=False),
        ),
        data.erase,
        aliases=("erase",),
        example="[--yes]",
        terminal=Terminal("erase", changes=True),
    ),
    Command(
        "memory data optout",
        "Stop remembering me: learn nothing, use nothing",
        aliases=("optout",),
        needs=(),
        alone=THEIR_OWN,
    ),
    Command("memory data optin", "Start remembering me again", aliases=("optin",), needs=(), alone=THEIR_OWN),
    Command(
        "memory data reset-summary",
        "Clear the summary of this conversation",
        aliases=("reset rolling",),
        needs=("summaries",),
        alone=THE_PLACE,
    ),
)

_WHICH = Param("which", "Words that only this one has, or its id", required=True, shown="words or id")
_WHEN = Param(
    "when",
    "In your words: “tomorrow at 9”, “in 20 minutes”, “every last Monday of the month”",
    bounds=(1, 200),
)
IN_DISCORD: Final = "it comes in Discord"
REMINDERS = (
    Command(
        "remind me",
        "Have me remind you of something",
        (
            replace(_WHEN, required=True),
            Param("what", "What to remind you of", required=True, bounds=(1, 500)),
            Param(
                "where",
                "Here, or in our DMs; without it, here",
                "choice",
                choices=("here", "dm"),
            ),
        ),
        adds=True,
        parse=lambda text: {"when": text or None, "what": "", "where": None},
        example="<when> <what>",
        alone=IN_DISCORD,
    ),
    Command("remind list", "Your reminders, the next first", alone=IN_DISCORD),
    Command("remind delete", "Delete a reminder", (_WHICH,), alone=IN_DISCORD),
    Command(
        "remind edit",
        "Change what a reminder says, or when it comes",
        (
            replace(_WHICH, kind="word"),
            Param("what", "What it should say", bounds=(1, 500), by_name=True, shown="text"),
            replace(_WHEN, by_name=True, shown="time"),
        ),
        adds=True,
        alone=IN_DISCORD,
    ),
    Command(
        "remind snooze",
        "Have a reminder come later",
        (replace(_WHICH, kind="word"), replace(_WHEN, required=True)),
        adds=True,
        alone=IN_DISCORD,
    ),
)

FOLDER = (
    Command("memory list", terminal=Terminal("list"), alone=EVERYBODY, discord=False),
    Command("memory get", terminal=Terminal("get"), alone=EVERYBODY, discord=False),
    Command("memory set", terminal=Terminal("set", changes=True), alone=EVERYBODY, discord=False),
    Command("memory copy", terminal=Terminal("copy", changes=True), alone=EVERYBODY, discord=False),
)

OWNERS = (
    Command(
        "hatch start", "Begin the interview about my personality", only="owners", needs=(), alone=OF_A_MODEL
    ),
    Command(
        "hatch cancel", "End the interview and change nothing", only="owners", needs=(), alone=OF_A_MODEL
    ),
    Command(
        "hatch show", "Who I am", only="owners", needs=(), alone="the command line has `memory show bot`"
    ),
    Command(
        "hatch undo",
        "Take back the last change of who I am",
        only="owners",
        needs=(),
        alone="the command line has `memory undo bot`",
    ),
    Command("nostr status", "How my backup is doing", only="owners", needs=("mirror",), alone=ELSEWHERE),
    Command(
        "nostr push",
        "Send what has changed now, and try again what was refused",
        only="owners",
        needs=("mirror",),
        alone=ELSEWHERE,
    ),
)

ADMINS = (
    Command("settings", "How I behave here, and how to change it", needs=(), only="admins", alone=ELSEWHERE),
    Command(
        "model",
        "Which model answers here, and how to choose another one",
        (Param("name", "Its name; without it, the one there is", bounds=(1, 120), completes="model"),),
        needs=(),
        only="admins",
        alone=ELSEWHERE,
    ),
)

ASK = Command(
    "ask",
    "Ask me something, wherever you are; only you see the answer",
    (
        Param("text", "What you would like to know", required=True, bounds=(1, LONGEST)),
        Param("file", "A file that it is about", "file"),
    ),
    needs=(),
    aside="I'm still taking your last question. Please try again in a moment.",
    anywhere=True,
    alone=OF_A_MODEL,
)

MENUS = (
    Command(
        "Remember this",
        "Your own message becomes a memory; somebody else's, a memory about what they said",
        adds=True,
        anywhere=True,
        alone=THE_TALK,
    ),
    Command(
        "What was learned from this?",
        "Your memories that rest on this message, each with a button to forget it",
        anywhere=True,
        alone=THE_TALK,
    ),
    Command("Why this answer?", "What one of my answers to you was based on", alone=THE_TALK),
    Command(
        "Ask about this",
        "Ask me something about this message; only you see the answer",
        (Param("question", "What would you like to know?", required=True, bounds=(1, LONGEST)),),
        needs=(),
        aside=ASK.aside,
        anywhere=True,
        alone=THE_TALK,
    ),
)
"""The commands in the menu of a message. Discord takes five; their names are what people read there."""

_SHORT = (replace(SEARCH, path="search"), replace(USAGE, path="usage"))
"""Slash commands that are found without `/memory` too."""
COMMANDS: Final = (*EVERYDAY, *HISTORY, *PERSONAS, *DATA, *REMINDERS, *FOLDER, *OWNERS, *ADMINS, *_SHORT, ASK)


def carried_out(commands: tuple[Command, ...], own: Mapping[str, Run]) -> tuple[Command, ...]:
    """Commands of Discord with the functions by their paths for those that need Discord."""
    return tuple(one if one.shared else replace(one, run=own[one.path]) for one in commands if one.discord)
