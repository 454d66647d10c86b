"""The help, from the table of commands: an overview for a phone, and a page for each group and command."""

from collections.abc import Mapping, Sequence

from discoclaw.commands.spec import Catalogue, Command, Group, Missing
from discoclaw.core.text import clip

TITLE = "**How to see and change what I remember about you**"
PRIVACY = "I use your memories only to answer you, private ones only in our DMs."
FOOT = (
    "Slash commands do the same, and only you see their answers: `/memory show`. "
    "Ordinary sentences work too: “please remember that …”."
)
BESIDE = "**As slash commands, and in the menu of a message** (right click, or a long press on a phone):"
POINTS = (
    "(A `<change>` is named by its id, which `!memory history log` shows; "
    "a `[point]` may also be a date or a persona.)"
)

SHOW, ERASE = ("What you remember", "memory show"), ("Delete everything…", "memory erase")
OPT_OUT = ("Stop remembering me…", "optout")
ALL_COMMANDS = ("All commands", "memory help")
"""The label of a button, and what it opens: a command, or what is said to a request."""
ABOUT = "I'm a bot you can talk to: mention me in a channel, or write me a direct message."
HELP = (
    f"{ABOUT} I remember what you tell me about yourself, so you needn't say it twice. You can see it, "
    "correct it, or have it deleted; “forget my cat” works too. Only you see what these buttons open."
)
REQUESTED: Mapping[str, tuple[str, Sequence[tuple[str, str]]]] = {
    "help": (HELP, (SHOW, OPT_OUT, ERASE)),
    "show": ("This button shows what I remember about you. Only you see it.", (SHOW,)),
    "erase": (
        "I can delete everything I know about you, or you choose what I forget. I ask once more before I "
        "delete everything. Only you see what these buttons open.",
        (ERASE, ("Choose what to forget", "memory show"), OPT_OUT),
    ),
    "optout": (
        "Should I stop remembering you? I then learn nothing about you and use nothing I know. What I know "
        "stays, unused, until you delete it.",
        (("Stop remembering me", "memory optout"), ("Remember me again", "memory optin"), ERASE),
    ),
    "optin": ("Should I remember you again from now on?", (("Remember me again", "memory optin"),)),
}
"""The answer to a request in plain words, by its kind, and the buttons that do what it asks for."""


def overview(catalogue: Catalogue) -> str:
    """The commands for every day, and where the others are."""
    root = catalogue.groups[0]
    lines = [TITLE, *(_line(catalogue, one) for one in catalogue.below(root)), "", "**More**"]
    for group in catalogue.inside(root):
        names = ", ".join(one.path.rpartition(" ")[2] for one in catalogue.below(group))
        lines.append(f"`!memory help {group.path.rpartition(' ')[2]}` – {names}")
    return "\n".join([*lines, "`!memory help all` – all on one page", PRIVACY, FOOT])


def everything(catalogue: Catalogue) -> str:
    """All commands, by group, and at the end those that text commands don't have."""
    pages = [
        "\n".join(_group_lines(catalogue, one) if one.path != "memory" else _everyday(catalogue))
        for one in catalogue.groups
    ]
    slash = [one for one in catalogue.commands if one.path.partition(" ")[0] not in catalogue.text_roots]
    lines = [_line(catalogue, one) for one in slash]
    lines += [f"`{one.path}` – {_small(one.help)}" for one in catalogue.menus]
    return "\n\n".join([*pages, "\n".join([BESIDE, *lines])] if lines else pages)


def _everyday(catalogue: Catalogue) -> list[str]:
    return [TITLE, *(_line(catalogue, one) for one in catalogue.below(catalogue.groups[0])), PRIVACY, FOOT]


def page(catalogue: Catalogue, name: str) -> str | None:
    """The help for one group or command; None if there is none of that name."""
    found = catalogue.named(name)
    if isinstance(found, Command):
        return _command_page(catalogue, found)
    if isinstance(found, Group):
        return overview(catalogue) if found.path == "memory" else group_page(catalogue, found)
    return None


def group_page(catalogue: Catalogue, group: Group) -> str:
    """The commands of one group."""
    commands = catalogue.below(group)
    root = group.path.partition(" ")[0]
    older = [f"`!{root} {name}`" for one in commands for name in one.aliases if " " not in name]
    first = commands[0].path.removeprefix("memory ")
    lines = [*_group_lines(catalogue, group), f"More about one of them: `!memory help {first}`"]
    return "\n".join([*lines, f"Older names work too: {', '.join(older)}"] if older else lines)


def missing(catalogue: Catalogue, found: Missing) -> str:
    """The answer to a command that does not exist: the one that was most likely meant, and the help."""
    near = " or ".join(f"`!{one}`" for one in found.near)
    if not found.name:
        one = catalogue.names[found.near[0]]
        return f"Did you mean {near}? ({one.help}.)"
    if near:
        return f"There is no `!{found.name}`. Did you mean {near}?"
    root = found.group.path == "memory"
    helped = overview(catalogue) if root else "\n".join(_group_lines(catalogue, found.group))
    return f"There is no `!{found.name}`.\n{helped}"


def mistyped(meant: Sequence[str]) -> str:
    """The question about a command that was mistyped, or typed where it is to be chosen."""
    near = " or ".join(f"`!{clip(one.replace('`', chr(39)), 200)}`" for one in meant)
    return f"Did you mean {near}?"


# ---------------------------------------------------------------------- lines


def _group_lines(catalogue: Catalogue, group: Group) -> list[str]:
    commands = catalogue.below(group)
    points = [POINTS] if any(param.shown == "point" for one in commands for param in one.params) else []
    return [f"**{group.title}**: {_small(group.help)}", *(_line(catalogue, one) for one in commands), *points]


def _line(catalogue: Catalogue, command: Command) -> str:
    return f"`{written(catalogue, command)}` – {_small(command.help)}"


def written(catalogue: Catalogue, command: Command) -> str:
    """A command as people type it, with its parameters."""
    sign = "!" if command.path.partition(" ")[0] in catalogue.text_roots else "/"
    return f"{sign}{command.path} {command.usage}".rstrip()


def _command_page(catalogue: Catalogue, command: Command) -> str:
    lines = [f"`{written(catalogue, command)}`", f"{command.help}."]
    lines += [f"- `{param.name}`: {_small(param.help)}" for param in command.params]
    if command.only == "owners":
        lines.append("Only my owners can use it.")
    root = command.path.partition(" ")[0]
    if command.aliases:
        lines.append(f"Also: {', '.join(f'`!{root} {one}`' for one in command.aliases)}")
    return "\n".join([*lines, f"As a slash command: `/{command.path}`"])


def _small(text: str) -> str:
    """A sentence inside another one; "I" stays as it is."""
    return text if text.startswith(("I ", "I'")) else text[:1].lower() + text[1:]
