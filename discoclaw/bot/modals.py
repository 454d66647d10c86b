"""Modals that outlive a restart: what they are about stands in their custom id.

discord.py forgets an opened modal when it stops, so none is left to it: the client hands every modal that is
sent to `taken`, which finds its class by the custom id, as discord.py does with buttons. `MODALS` in `client`
lists the classes.

    class EditModal(PersonalModal, template=rf"edit:{USER}:(?P<item>{STAMP})"):
        async def do(self, presses: Presses, press: Press) -> Outcome:
            return await presses.…(press, self.known["item"], self.values["text"])

    fields = [Field("text", "What it says", item.text)]
    await opened(press, f"edit:{user_id}:{stamp}", "Change a memory", fields)

A modal has to be the first response to an interaction, so what it shows is read before, and quickly.
"""

import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, cast

import discord

from discoclaw.bot.errors import discord_errors
from discoclaw.bot.pressed import Pressed
from discoclaw.bot.presses import Press

log = logging.getLogger(__name__)

LONGEST = 4000
"""What Discord lets people type into one field, in characters."""


@dataclass(frozen=True, slots=True)
class Field:
    """A field to type in. `text` stands in it at first; `long`: it has several lines."""

    name: str
    label: str
    text: str = ""
    long: bool = True
    required: bool = True
    most: int = LONGEST


class PersonalModal(Pressed):
    """What somebody sent: `known` from the custom id, `values` by the names of the fields."""

    template: ClassVar[re.Pattern[str]] = re.compile(r"(?!)")

    def __init_subclass__(cls, *, template: str) -> None:
        super().__init_subclass__()
        cls.template = re.compile(template)

    def __init__(self, known: Mapping[str, str], values: Mapping[str, str]) -> None:
        self.known = known
        self.values = values


async def opened(press: Press, custom_id: str, title: str, fields: Sequence[Field]) -> None:
    """Open a modal, as the first response to an interaction. Raises ChatError."""
    modal = discord.ui.Modal(title=title[:45], custom_id=custom_id, timeout=None)
    for field in fields:
        style = discord.TextStyle.paragraph if field.long else discord.TextStyle.short
        box: discord.ui.TextInput[Any] = discord.ui.TextInput(
            custom_id=field.name,
            style=style,
            default=field.text[: field.most] or None,
            required=field.required,
            max_length=field.most,
        )
        modal.add_item(discord.ui.Label(text=field.label[:45], component=box))
    modal.stop()  # one that is stopped is not kept by discord.py, so `taken` is the only way
    with discord_errors():
        await press.response.send_modal(modal)


async def taken(press: Press, known: Sequence[type[PersonalModal]]) -> None:
    """Do what a modal is for that somebody sent; nothing for any other interaction."""
    if press.type is not discord.InteractionType.modal_submit:
        return
    data = cast("Mapping[str, Any]", press.data)
    custom_id = str(data["custom_id"])
    for kind in known:
        if (found := kind.template.fullmatch(custom_id)) is not None:
            await kind(found.groupdict(), dict(_values(data["components"]))).take(press)
            return
    log.warning("a modal was sent that nothing here knows: %s", custom_id)


def _values(parts: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    """What was typed, by the fields' names."""
    for part in parts:
        inner = part.get("components") or ([part["component"]] if "component" in part else [])
        yield from _values(inner)
        if "custom_id" in part:
            typed = part.get("value", part.get("values"))
            yield str(part["custom_id"]), typed if isinstance(typed, str) else ",".join(typed or ())
