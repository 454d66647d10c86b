"""discord.py's decorators for hybrid commands, in types that mypy can solve. Knows nothing about memory.

For methods its own ones do not: their ParamSpec infers as Never.
"""

from collections.abc import Callable, Coroutine
from typing import Any, cast

from discord.ext import commands

Method = Callable[..., Coroutine[Any, Any, None]]
Command = commands.HybridCommand[Any, ..., None]
Group = commands.HybridGroup[Any, ..., None]


def root(name: str, description: str, **more: Any) -> Callable[[Method], Group]:
    """A command that has others below it."""
    made: Any = commands.hybrid_group(name=name, description=description, case_insensitive=True, **more)
    return cast("Callable[[Method], Group]", made)


def subgroup(parent: Group, name: str, description: str) -> Callable[[Method], Group]:
    """A group below another one."""
    made: Any = parent.group(name=name, description=description, case_insensitive=True)
    return cast("Callable[[Method], Group]", made)


def command(
    parent: Group, name: str, description: str, *, usage: str | None = None, **more: Any
) -> Callable[[Method], Command]:
    """A command below a group, as text and as slash command. `usage` is how it is written as text."""
    made: Any = parent.command(name=name, description=description, usage=usage, **more)
    return cast("Callable[[Method], Command]", made)


def as_text(parent: Group, name: str, *, usage: str | None = None) -> Callable[[Method], Command]:
    """A command that is there as text only."""
    return command(parent, name, "", usage=usage, with_app_command=False)
