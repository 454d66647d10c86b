"""The tables of docs/members/commands.md, from the table of commands. `make docs` writes them."""

import sys
from collections.abc import Sequence
from pathlib import Path

from discoclaw.bot.commands.spec import Catalogue, Command, Group
from discoclaw.bot.commands.table import CATALOGUE

BEGIN = "<!-- The tables are made from discoclaw/bot/commands/table.py; `make docs` writes them. -->"
END = "<!-- End of the tables. -->"
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


def renewed(document: str, catalogue: Catalogue = CATALOGUE) -> str:
    """A document with new tables between its marks. Raises ValueError when the marks are not there."""
    before, begin, rest = document.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError("the document has no marks for the tables")
    return f"{before}{BEGIN}\n\n{tables(catalogue)}\n\n{END}{after}"


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


def main(path: Path) -> None:
    """Write the tables into a document."""
    path.write_text(renewed(path.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
