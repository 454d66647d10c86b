"""What a command is: its names, its parameters, what it says about itself, and who may use it. Values only.

The table of commands (`table`) is made of these. The slash commands, the text commands, their help, the verbs
of `discoclaw memory` and the docs are made from that table, so a command has the same name and the same words
everywhere. Knows nothing about Discord's objects, about Typer, or about what a command does.
"""

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from discoclaw.show.answer import Reply

Kind = Literal["word", "text", "flag", "number", "choice", "file"]
"""One word; any number of words; yes or no; a whole number; one of several words; an attached file."""
Completes = Literal["memory", "persona", "change", "channel", "zone", "model"]
"""The kind of choices that Discord offers while somebody types a value."""
Need = Literal["memory", "summaries", "tidying", "mirror"]
"""A part of the bot that can be switched off."""
Only = Literal["", "admins", "owners"]
"""The bot's owners, or they and the admins of a server."""
Values = dict[str, Any]
Run = Callable[..., Awaitable[Reply]]
"""Carries a command out: takes the caller, and each parameter by its name."""


async def apart(caller: Any, **values: Any) -> Reply:
    """Stands for the functions of a command of which Discord and the terminal each have their own."""
    raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Typed:
    """A parameter on the command line: what it is called there (`--at`, `COMMIT`), and its help.

    `required`: only there it has to be given.
    """

    name: str
    help: str
    required: bool = False


@dataclass(frozen=True, slots=True)
class Param:
    """One parameter. As text, flags and numbers are named (`--limit 5`), the others are given in their order.

    `bounds` are of a number, or of the length of a text. `shown` stands for it in a usage, `also` are older
    names that work as text, and `by_name` says that it is never given without its name. `terminal` is how the
    command line has it; without it, it isn't there.
    """

    name: str
    help: str
    kind: Kind = "text"
    required: bool = False
    default: Any = None
    choices: tuple[str, ...] = ()
    bounds: tuple[int, int] | None = None
    completes: Completes | None = None
    also: tuple[str, ...] = ()
    shown: str = ""
    by_name: bool = False
    terminal: Typed | None = None

    @property
    def usage(self) -> str:
        """How it is written: `<text>`, `[persona]`, `[--oneline]`, `on|off`."""
        label = self.shown or ("|".join(self.choices) if self.choices else self.name)
        if self.kind in ("flag", "number") or self.by_name:
            return f"[--{self.name}]" if self.kind == "flag" else f"[--{self.name} {self.shown or 'n'}]"
        if self.required:
            return label if self.choices else f"<{label}>"
        return f"[{label}]"


@dataclass(frozen=True, slots=True)
class Terminal:
    """A command as a verb of `discoclaw memory`.

    `help` is in git's words, `example` what stands behind `discoclaw memory`. A verb that `changes` a memory
    is refused while the bot runs. `on` is the option that names the branch it is about. `json`: it takes
    --json. A verb that has parameters of its own, and so is a function in `cli`, has only its name here.
    """

    name: str
    help: str = ""
    example: str = ""
    changes: bool = False
    on: Typed | None = None
    json: bool = True


@dataclass(frozen=True, slots=True)
class Command:
    """One command. `path` is its name, `aliases` are other names it has as text, below the same root.

    `run` is what both Discord and the terminal call. Without it, each that has the command has a function of
    its own: Discord's is in `bot/commands/table`. `terminal` is its name on the command line. `alone` says
    why it is in one of the two only, and `discord` is False for one that Discord hasn't got.

    `needs`: what has to be switched on. `adds`: it adds to memory, so it is refused to somebody who has opted
    out. `only`: who may use it, if not everybody. For `admins`, Discord offers it to people who can manage
    the server, and the command itself checks who may do what. `parse` replaces the usual way to read its
    text. `aside`: it takes long, so it runs beside its conversation's queue; a second one is answered with
    this sentence. `anywhere`: people may install it for themselves, and use it where the bot is not a member.

    A command of a message's menu has its name as its path, and takes that message as well (`message`). If it
    has parameters, a form asks for them.
    """

    path: str
    help: str = ""
    params: tuple[Param, ...] = ()
    run: Run = apart
    aliases: tuple[str, ...] = ()
    needs: tuple[Need, ...] = ("memory",)
    adds: bool = False
    only: Only = ""
    aside: str = ""
    parse: Callable[[str], Values] | None = None
    example: str = ""
    anywhere: bool = False
    terminal: Terminal | None = None
    alone: str = ""
    discord: bool = True

    @property
    def shared(self) -> bool:
        """Whether Discord and the terminal both call `run`."""
        return self.run is not apart

    @property
    def usage(self) -> str:
        """Its parameters, as they are written as text."""
        return self.example or " ".join(param.usage for param in self.params)


@dataclass(frozen=True, slots=True)
class Group:
    """Commands with a common beginning. `alone` is the path of the command that the bare name runs, and
    `rest` that of the one that takes a text behind the name that names no command.

    `anywhere`: as for a command, and it says so for all that are in the group.
    """

    path: str
    help: str
    title: str
    alone: str = ""
    aliases: tuple[str, ...] = ()
    rest: str = ""
    anywhere: bool = False


@dataclass(frozen=True, slots=True)
class Found:
    """A command as somebody wrote it: `name` is what they called it, `rest` what stands behind."""

    command: Command
    name: str
    rest: str


@dataclass(frozen=True, slots=True)
class Missing:
    """No command: what was written, the names it could have been, and the group it would be in.

    No `name`: what was written is the beginning of `near`, and of nothing else.
    """

    name: str
    near: tuple[str, ...]
    group: Group


@dataclass(frozen=True)
class Catalogue:
    """All commands and groups, and how people find them."""

    groups: tuple[Group, ...]
    commands: tuple[Command, ...]
    text_roots: frozenset[str] = field(default=frozenset())
    """The roots that are commands as text too."""
    menus: tuple[Command, ...] = ()
    """The commands in the menu of every message, at most five."""

    @cached_property
    def names(self) -> Mapping[str, Command | Group]:
        """Every name that works as text, new and old, with its root."""
        found: dict[str, Command | Group] = {}
        every: tuple[Command | Group, ...] = (*self.groups, *self.commands)
        for one in every:
            root = one.path.partition(" ")[0]
            if root in self.text_roots:
                for name in self._called(root, one):
                    found.setdefault(name, one)
        return found

    def _called(self, root: str, one: Command | Group) -> Iterator[str]:
        for name in (one.path, *(f"{root} {alias}" for alias in one.aliases)):
            yield name
            for group in self.groups:
                if name.startswith(f"{group.path} "):
                    yield from (f"{root} {alias}{name[len(group.path) :]}" for alias in group.aliases)

    def named(self, name: str) -> Command | Group | None:
        """The command or group of this name, new or old, with or without `memory` in front."""
        wanted = " ".join(name.lower().split())
        return self.names.get(wanted) or self.names.get(f"memory {wanted}")

    def command(self, path: str) -> Command:
        """The command of this path."""
        return next(one for one in self.commands if one.path == path)

    def below(self, group: Group) -> Sequence[Command]:
        """The commands of a group itself, without those of the groups inside it."""
        return [one for one in self.commands if one.path.rpartition(" ")[0] == group.path]

    def inside(self, group: Group) -> Sequence[Group]:
        """The groups of a group."""
        return [one for one in self.groups if one.path.rpartition(" ")[0] == group.path]
