"""Slash commands and the menus of messages, from the table. Knows discord.py's commands, not what they do.

discord.py reads a command's parameters from its callback's signature and has no other way to be given them
(https://github.com/Rapptz/discord.py/issues/9463), so each callback gets a signature made for it.
"""

import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast

import discord
from discord import app_commands

from discoclaw.bot.commands.call import Interaction
from discoclaw.bot.commands.spec import Catalogue, Command, Completes, Group, Param, Values

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
    """What the admin chose in the developer portal; Discord refuses commands that want more."""
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
