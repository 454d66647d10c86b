"""Parameters of the commands in the table. Values only."""

from discoclaw.bot.commands.spec import Kind, Param


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
