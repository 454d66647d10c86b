"""The tables of docs/members/commands.md and docs/admins/command-line.md, from the table of commands.

`make docs` writes them.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from discoclaw.bot.commands.table import CATALOGUE
from discoclaw.cli.common import CHANGE_PANEL, IMPORT_PANEL
from discoclaw.cli.main import whole
from discoclaw.commands.spec import Catalogue, Command, Group
from discoclaw.commands.table import COMMANDS

BEGIN = "<!-- What follows is made from discoclaw/commands/table.py; `make docs` writes it. -->"
END = "<!-- End of what is made. -->"
_BAR = r"\|"
ALONE = "## Questions\n\nThis exists as a slash command only."
MENUS = (
    "## Menus on a message\n\nRight-click a message, or hold it on a phone, and choose *Apps*. "
    "Only you see the answer."
)


def tables(catalogue: Catalogue) -> str:
    """One table for each group of commands, in Markdown, and those of what is in no group."""
    parts = [_table(catalogue, group) for group in catalogue.groups]
    runs = {one.run for one in catalogue.commands if " " in one.path}
    alone = [one for one in catalogue.commands if " " not in one.path and one.run not in runs]
    parts += [_rows(ALONE, [(f"`/{_written(one)}`", one) for one in alone])] if alone else []
    parts += [_rows(MENUS, [(one.path, one) for one in catalogue.menus])] if catalogue.menus else []
    return "\n\n".join(parts)


def _rows(head: str, named: Sequence[tuple[str, Command]]) -> str:
    cells = [(name.replace("|", _BAR), _described(command).replace("|", _BAR)) for name, command in named]
    lines = [f"| {name} | {what} |" for name, what in cells]
    return "\n".join([head, "", "| Command | What it does |", "|---|---|", *lines])


def terminal_tables() -> str:
    """The verbs of `discoclaw memory` in Markdown: those that look, change, and bring or take memories."""
    group: Any = whole("memory")
    order = [one.terminal.name for one in COMMANDS if one.terminal is not None]
    parts = []
    titles = {
        CHANGE_PANEL: "### Change (the bot has to be stopped)",
        IMPORT_PANEL: "### Import and erase (the bot has to be stopped)",
    }
    for panel, title in {"": "### Look", **titles}.items():
        lines = [title, "", "| Command | What it does |", "|---|---|"]
        for name in order:
            own = group.commands[name].rich_help_panel
            if (own if own in titles else "") == panel:
                about = [" ".join(one.split()) for one in group.commands[name].help.split("\n\n")]
                (example,) = [one.removeprefix("Example: ") for one in about if one.startswith("Example: ")]
                told = " ".join(one for one in about if not one.startswith("Example: "))
                lines.append(f"| `{example}` | {told.replace('|', _BAR)} |")
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


def renewed(document: str, made: str) -> str:
    """A document with new tables between its marks. Raises ValueError when the marks are not there."""
    before, begin, rest = document.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError("the document has no marks for the tables")
    return f"{before}{BEGIN}\n\n{made}\n\n{END}{after}"


def _table(catalogue: Catalogue, group: Group) -> str:
    other = (
        f" As text, `{group.aliases[0]}` is the same as `{group.path.split()[-1]}`." if group.aliases else ""
    )
    rows = []
    for command in catalogue.below(group):
        also = _others(catalogue, command)
        rows.append((f"`/{_written(command)}`" + (f"<br>{also}" if also else ""), command))
    return _rows(f"## {group.title}\n\n{group.help}.{other}", rows)


def _written(command: Command) -> str:
    return f"{command.path} {command.usage}".rstrip()


def _described(command: Command) -> str:
    """A command's description and its parameters."""
    lines = [f"{command.help} (owners)" if command.only == "owners" else command.help]
    lines += [f"`{param.name}`: {param.help[:1].lower()}{param.help[1:]}" for param in command.params]
    return "<br>".join(lines)


def _others(catalogue: Catalogue, command: Command) -> str:
    """Every other name a command has: older text names, and slash commands of its own."""
    root = command.path.partition(" ")[0]
    names = [f"!{root} {alias}" for alias in command.aliases]
    names += [f"/{one.path}" for one in catalogue.commands if one.run is command.run and one is not command]
    return ", ".join(f"`{name}`" for name in names)


def main(of_discord: Path, of_terminal: Path) -> None:
    """Write the tables into both documents."""
    for path, made in ((of_discord, tables(CATALOGUE)), (of_terminal, terminal_tables())):
        path.write_text(renewed(path.read_text(encoding="utf-8"), made), encoding="utf-8")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
