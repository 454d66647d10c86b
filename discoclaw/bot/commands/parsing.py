"""How people give commands: in a text, as a slash command, or in the menu of a message.

A text names a command by any of its names and says something about each parameter. Parsing is forgiving:
case does not count, a yes-or-no option needs no value, plain words fill the parameters in order, and the long
dashes that phones make of `--` count. A command with one text parameter takes everything behind its name as
it stands. Slash commands and menus are made from the table. Knows nothing about what a command does.
"""

import difflib
import inspect
import re
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

import discord
from discord import app_commands
from discord.ext.commands import ArgumentParsingError
from discord.ext.commands.view import StringView

from discoclaw.bot.commands.call import Interaction
from discoclaw.commands.spec import Catalogue, Command, Completes, Found, Group, Missing, Param, Values
from discoclaw.core.text import clip
from discoclaw.show.answer import SEPARATOR

_OPTION = re.compile(r"(?:--|[—–])([a-z][a-z-]*)(?:=(.*))?", re.IGNORECASE)
_WORD = re.compile(r"\s*(\S+)\s*")
_YES = frozenset({"true", "yes", "y", "t", "1", "on", "enable"})
_NO = frozenset({"false", "no", "n", "f", "0", "off", "disable"})
_TYPED = re.compile(r"[!/]([^\W\d_][\w-]*)(?:\s+(\S.*))?", re.DOTALL)
_ALIKE = 0.75
"""How similar (`difflib`) what was typed is to a name that it is taken for: "memroy" is 0.83."""
_LONGEST_NAME = 40
"""Longest text that is quoted of what somebody typed instead of a command's name."""


class Misused(ValueError):
    """A command's text does not say what the command needs. The text says why; it may be empty."""


# ---------------------------------------------------------------------- which command


def resolve(catalogue: Catalogue, root: str, text: str) -> Found | Group | Missing:
    """The command that the text behind a root names; a group named alone, or what comes near."""
    name, rest = root, text
    while True:
        here = catalogue.names.get(name)
        if isinstance(here, Command):
            return Found(here, name, rest.strip())
        word = _WORD.match(rest)
        if word is None:
            if here is None:
                return Missing("", tuple(_beginning(catalogue, name)), _group_of(catalogue, name))
            return Found(catalogue.command(here.alone), name, "") if here.alone else here
        longer = f"{name} {word[1].lower()}"
        if longer not in catalogue.names and not _beginning(catalogue, longer):
            if isinstance(here, Group) and here.rest:
                return Found(catalogue.command(here.rest), name, rest.strip())
            break
        name, rest = longer, rest[word.end() :]
    last = {one[len(name) + 1 :]: one for one in _beginning(catalogue, name)}
    near = difflib.get_close_matches(word[1].lower(), last, n=1, cutoff=0.6)
    group = _group_of(catalogue, name)
    if name not in catalogue.names:  # the beginning of older names only, so it can mean nothing else
        return Missing("", tuple(last[one] for one in near or last), group)
    return Missing(f"{name} {clip(word[1], _LONGEST_NAME)}", tuple(last[one] for one in near), group)


def meant_by(catalogue: Catalogue, text: str) -> tuple[str, ...]:
    """Commands that a text with a sign in front, which is none as it stands, may mean, as typed behind `!`.

    "!memroy show", "/memory show" (typed, where Discord has a list to choose from), "!forget my cat".
    """
    if (typed := _TYPED.fullmatch(text.strip())) is None:
        return ()
    first, rest, bare = typed[1].lower(), typed[2] or "", False
    if first not in catalogue.text_roots:
        bare = not _mistyped(first, ["memory"])
        first, rest = "memory", f"{first} {rest}" if bare else rest
    found = resolve(catalogue, first, rest)
    if not isinstance(found, Missing):
        return (" ".join([found.name, *found.rest.split()]) if isinstance(found, Found) else found.path,)
    names = {one.rpartition(" ")[2]: one for one in found.near}
    if bare and (typed[2] or not _mistyped(typed[1].lower(), names)):
        return ()
    values = f"{first} {rest}".split()[len(found.name.split()) :] if found.name else []
    return tuple(" ".join([one, *values]) for one in found.near)


def _mistyped(word: str, names: Iterable[str]) -> bool:
    """Whether a word is nearly one of the names: "memroy", and not "important" for "import"."""
    near = difflib.get_close_matches(word, names, cutoff=_ALIKE)
    return any(abs(len(word) - len(one)) < 2 for one in near)


def _beginning(catalogue: Catalogue, name: str) -> list[str]:
    """The longer names that begin with a name."""
    return [one for one in catalogue.names if one.startswith(f"{name} ")]


def _group_of(catalogue: Catalogue, name: str) -> Group:
    here = catalogue.names.get(name)
    if isinstance(here, Group):
        return here
    root = catalogue.names[name.partition(" ")[0]]
    assert isinstance(root, Group)  # a root that is a command as text is a group
    return root


# ---------------------------------------------------------------------- what it says


def values_of(command: Command, text: str, files: Iterable[Any] = ()) -> Values:
    """A value for each parameter. Raises Misused."""
    written = _written(command, text)
    attached = next(iter(files), None)
    values: Values = {}
    for param in command.params:
        if param.kind == "file":
            written[param.name] = attached
        value = written.get(param.name)
        if value is None and param.required:
            raise Misused("attach a file" if param.kind == "file" else "")
        values[param.name] = param.default if value is None else _CONVERT[param.kind](param, value)
    return values


def _written(command: Command, text: str) -> Values:
    params = [param for param in command.params if param.kind != "file"]
    if command.parse is not None:
        return command.parse(text)
    if not params:  # what stands behind the name means nothing
        return {}
    if len(params) == 1 and params[0].kind == "text":
        return {params[0].name: text.strip() or None}
    if len(params) == 1 and params[0].kind in ("word", "choice") and params[0].required:
        view = StringView(text)
        view.skip_ws()
        try:  # the first word, or what the first quotes hold; the rest is left out
            return {params[0].name: view.get_quoted_word()}
        except ArgumentParsingError as error:
            raise Misused(str(error)) from None
    return dict(options_of(params, text))


def options_of(params: Iterable[Param], text: str) -> dict[str, str]:
    """The values of a text by parameter, as they are written. Raises Misused."""
    by_name = {name: param for param in params for name in (param.name, *param.also)}
    named: dict[str, str] = {}
    plain: list[str] = []
    words = deque(text.split())
    while words:
        word = words.popleft()
        found = _OPTION.fullmatch(word)
        if found is None:
            plain.append(word)
            continue
        name, value = found[1].lower(), found[2]
        if name not in by_name:
            raise Misused(f"there is no option `--{clip(name, _LONGEST_NAME)}`")
        param = by_name[name]
        if value is None:
            value = _value(param, words)
        if not value:
            raise Misused(f"`--{name}` needs a value")
        named[param.name] = value
    kinds = ("word", "text", "choice")
    by_place = [param for param in by_name.values() if param.kind in kinds and not param.by_name]
    return named | _placed(by_place, plain, named)


def _value(param: Param, words: deque[str]) -> str:
    """The value that follows an option's name; it is taken from `words`."""
    if param.kind == "flag":
        return "true"
    taken: list[str] = []
    while words and not _OPTION.fullmatch(words[0]) and (param.kind == "text" or not taken):
        taken.append(words.popleft())
    return " ".join(taken)


def _placed(places: list[Param], plain: list[str], named: dict[str, str]) -> dict[str, str]:
    """The plain words by parameter: each fills a place, the last place takes all that is left."""
    if not plain:
        return {}
    free = [name for name in dict.fromkeys(param.name for param in places) if name not in named]
    if not free:
        raise Misused(f"{clip(plain[0], _LONGEST_NAME)!r} is too much")
    placed = dict(zip(free[:-1], plain, strict=False))
    if len(plain) >= len(free):
        placed[free[-1]] = " ".join(plain[len(free) - 1 :])
    return placed


def read_back(params: Sequence[Param], text: str) -> Values:
    """The values of a command from what `answer.written` has made of them. Raises Misused."""
    texts = [*text.split(SEPARATOR, max(0, len(params) - 1)), *[""] * len(params)]
    return {
        param.name: _CONVERT[param.kind](param, one) if one else param.default
        for param, one in zip(params, texts, strict=False)
    }


# ---------------------------------------------------------------------- values


def _flag(param: Param, text: str) -> bool:
    word = text.lower()
    if word in _YES or word in _NO:
        return word in _YES
    raise Misused(f"`--{param.name}` is yes or no")


def _number(param: Param, text: str) -> int:
    low, high = param.bounds or (1, 1000)
    try:
        number = int(text)
    except ValueError:
        number = low - 1
    if not low <= number <= high:
        raise Misused(f"`--{param.name}` is a number from {low} to {high}")
    return number


def _choice(param: Param, text: str) -> str:
    if text.lower() in param.choices:
        return text.lower()
    raise Misused(f"choose one of {', '.join(param.choices)}")


def _text(param: Param, text: str) -> str:
    if param.bounds is not None and len(text) > param.bounds[1]:
        raise Misused(f"at most {param.bounds[1]} characters, please")
    return text


def _file(param: Param, file: Any) -> Any:
    return file


_CONVERT: dict[str, Callable[[Param, Any], Any]] = {
    "flag": _flag,
    "number": _number,
    "choice": _choice,
    "word": _text,
    "text": _text,
    "file": _file,
}


# ---------------------------------------------------------------------- slash commands and menus

Run = Callable[[Command, Interaction, Values], Awaitable[None]]
Complete = Callable[[Completes, Interaction, str], Awaitable[list[app_commands.Choice[str]]]]
Made = app_commands.Group | app_commands.Command[Any, ..., None]
Choose = Callable[[Command, Interaction, discord.Message], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Reach:
    """Where commands may be installed. `people`: people may install the application for themselves."""

    people: bool

    def of(self, one: Command | Group) -> dict[str, Any]:
        """How a command is installed, and where it is offered."""
        anywhere = one.anywhere and self.people
        return {
            "allowed_installs": app_commands.AppInstallationType(guild=True, user=anywhere),
            "allowed_contexts": app_commands.AppCommandContext(
                guild=True, dm_channel=True, private_channel=anywhere
            ),
        }


def reach(application: discord.AppInfo | None) -> Reach:
    """The reach that the admin chose in the developer portal; Discord refuses commands that want more."""
    known = application is not None and application.guild_integration_config is not None
    user = application.user_integration_config if application is not None else None
    return Reach(people=user is not None or not known)


def menus(catalogue: Catalogue, reach: Reach, choose: Choose) -> list[app_commands.ContextMenu]:
    """The commands in the menu of a message."""

    def made(command: Command) -> app_commands.ContextMenu:
        async def callback(interaction: Interaction, message: discord.Message) -> None:
            await choose(command, interaction, message)

        return app_commands.ContextMenu(name=command.path, callback=callback, **reach.of(command))

    return [made(command) for command in catalogue.menus]


def slash_commands(catalogue: Catalogue, reach: Reach, run: Run, complete: Complete) -> list[Made]:
    """Every command at the root: groups with all that is in them, and single commands."""
    groups: dict[str, app_commands.Group] = {}
    roots: list[Made] = []
    for group in catalogue.groups:
        above, _, name = group.path.rpartition(" ")
        own = {} if above else reach.of(group)
        groups[group.path] = app_commands.Group(
            name=name, description=group.help, parent=groups[above] if above else None, **own
        )
        if not above:
            roots.append(groups[group.path])
    for command in catalogue.commands:
        above = command.path.rpartition(" ")[0]
        made = _made(command, {} if above else reach.of(command), run, complete)
        if above:
            groups[above].add_command(made)
        else:
            roots.append(made)
    return roots


def _made(
    command: Command, reach: Mapping[str, Any], run: Run, complete: Complete
) -> app_commands.Command[Any, ..., None]:
    async def callback(interaction: Interaction, **values: Any) -> None:
        await run(command, interaction, values)

    described: Any = callback
    described.__signature__ = inspect.Signature(
        [
            inspect.Parameter("interaction", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=Any),
            *(_parameter(param) for param in command.params),
        ]
    )
    app_commands.describe(**{param.name: param.help for param in command.params})(described)
    name = command.path.rpartition(" ")[2]
    made: Any = app_commands.Command(name=name, description=command.help, callback=described, **reach)
    if command.only == "admins":
        made.default_permissions = discord.Permissions(manage_guild=True)
    for param in command.params:
        if param.completes is not None:
            made.autocomplete(param.name)(_completing(param.completes, complete))
    return cast("app_commands.Command[Any, ..., None]", made)


def _completing(what: Completes, complete: Complete) -> Any:
    async def choices(interaction: Interaction, typed: str) -> list[app_commands.Choice[str]]:
        return await complete(what, interaction, typed)

    return choices


def _parameter(param: Param) -> inspect.Parameter:
    default = inspect.Parameter.empty if param.required else param.default
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(param.name, kind, default=default, annotation=_annotation(param))


def _annotation(param: Param) -> Any:
    """The type by which discord.py knows what Discord is to ask for."""
    if param.kind == "flag":
        return bool
    if param.kind == "file":
        return discord.Attachment
    if param.kind == "choice":
        return Literal[param.choices]
    if param.kind == "number":
        return app_commands.Range[int, *_bounds(param)]
    text: Any = app_commands.Range[str, *_bounds(param)] if param.bounds is not None else str
    return text if param.required or param.default is not None else text | None


def _bounds(param: Param) -> tuple[int, int]:
    return param.bounds or (1, 1000)
