"""What a setting takes, in words: for the line about a wrong value, and for docs/settings.md.

Knows nothing about which settings there are.
"""

from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from pydantic.fields import FieldInfo

from discoclaw.settings_types import Allowed


def required(fault: Any, field: FieldInfo | None) -> str:
    """What is allowed, in our words for the common faults and in pydantic's for others."""
    kind = str(fault["type"])
    if kind == "literal_error":
        return f"must be {fault['ctx']['expected']}"
    if kind.startswith("bool_"):
        return "must be true or false"
    if kind == "string_too_short":
        return "must not be empty"
    if field is not None and field.annotation in (int, float):
        return f"must be {number(field)}"
    return str(fault["msg"]).removeprefix("Value error, ")


def number(field: FieldInfo) -> str:
    """What a numeric field takes: `a whole number from 1 to 200`, or `a number above 0, up to 600`."""
    kind = "a whole number" if field.annotation is int else "a number"
    limits = {
        name: getattr(one, name)
        for one in field.metadata
        for name in ("ge", "gt", "le")
        if hasattr(one, name)
    }
    most = f"{limits['le']:,}" if "le" in limits else ""
    if "gt" in limits:
        return f"{kind} above {limits['gt']:,}" + (f", up to {most}" if most else "")
    if "ge" in limits:
        return f"{kind} from {limits['ge']:,} {f'to {most}' if most else 'on'}"
    return kind


def allowed(field: FieldInfo) -> str:
    """What a setting takes, in words. Raises ValueError for a type that does not say it."""
    for one in field.metadata:
        if isinstance(one, Allowed):
            return one.words
    if get_origin(field.annotation) is Literal:
        *others, last = get_args(field.annotation)
        return f"{', '.join(others)} or {last}"
    if field.annotation is bool:
        return "1 (yes) or 0 (no)"
    if field.annotation in (int, float):
        return number(field)
    if field.annotation is Path:
        return "a folder"
    if field.annotation is str:
        return "a text"
    raise ValueError(f"the type of {field.validation_alias} has no words for docs/settings.md")
