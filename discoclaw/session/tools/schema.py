"""A tool's input schema without what a model needs not read. The code checks every input anyway.

Pydantic names every field a second time as its title, repeats the tool's description, and writes an optional
field as "this or null, null by default". Knows nothing about any tool.
"""

from collections.abc import Mapping
from typing import Any

_NEEDLESS = frozenset({"title", "minLength", "maxLength"})


def lean(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema of an input, with what a call consists of and its limits in numbers."""
    fields = {name: _field(field) for name, field in schema["properties"].items()} if schema else {}
    required = {"required": schema["required"]} if "required" in schema else {}
    return {"type": "object", "properties": fields, **required, "additionalProperties": False}


def _field(given: Mapping[str, Any]) -> dict[str, Any]:
    field = {name: value for name, value in given.items() if name not in _NEEDLESS}
    kinds = [kind for kind in field.pop("anyOf", ()) if kind != {"type": "null"}]
    if len(kinds) == 1:
        field = {**_field(kinds[0]), **field}
    elif kinds:
        field["anyOf"] = [_field(kind) for kind in kinds]
    if field.get("default", "") in (None, "", []):
        field.pop("default", None)
    if isinstance(field.get("items"), Mapping):
        field["items"] = _field(field["items"])
    return field
