"""Reading and pressing cards, as people do."""

from typing import Any

from simcord.components import walk_components


def parts(message: Any) -> list[dict[str, Any]]:
    """All components of a message, as Discord has them."""
    rows = [row if isinstance(row, dict) else row.to_dict() for row in message.components]
    return list(walk_components(rows))


def said(message: Any) -> str:
    """All that a message says, as a card or as plain text."""
    texts = [part["content"] for part in parts(message) if part["type"] == 10]
    return "\n".join([message.content, *texts] if message.content else texts)


def buttons(message: Any) -> list[tuple[str, str]]:
    """What can be pressed: labels and custom ids, in order."""
    return [
        (one["label"], one["custom_id"])
        for one in parts(message)
        if one["type"] == 2 and not one.get("disabled")
    ]


def labels(message: Any) -> list[str]:
    """What can be pressed or chosen, in order."""
    able = [one for one in parts(message) if one["type"] in (2, 3) and not one.get("disabled")]
    return [one.get("label", one.get("placeholder")) for one in able]


def button(message: Any, label: str, place: int = 0) -> str:
    """The custom id of a button; `place` counts those with this label."""
    return [custom_id for name, custom_id in buttons(message) if name == label][place]


async def every_page(person: Any, message: Any) -> str:
    """What all pages of a card say, read from the one that is shown to the last."""
    pages = [said(message)]
    while "▶" in dict(buttons(message)):
        await person.click(message, custom_id=button(message, "▶"))
        pages.append(said(message))
    return "\n".join(pages)


def options(message: Any) -> dict[str, str]:
    """What the menus of a message offer: labels, with the values they stand for."""
    return {one["label"]: one["value"] for part in parts(message) for one in part.get("options", ())}
