"""What a setting takes, in words: for the line about a wrong value, and for docs/admins/settings.md.

Knows nothing about which settings there are.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from pydantic.fields import FieldInfo

from discoclaw import settings_types as types

WORDS: Mapping[object, str] = {
    Path: "a folder",
    bool: "1 or 0",
    str: "a text",
    types.Address: "an address that starts with http:// or https://",
    types.Budget: "dollars for each day or month, such as 5/day, 60/month, person 0.50/day",
    types.ChannelPersonas: "channel=persona, separated by commas, such as dev=coding",
    types.File: "a file",
    types.Folder: "a folder",
    types.Gateway: "an address that starts with ws:// or wss://",
    types.GroupIds: "channel=group with the id of a Discord channel, separated by commas",
    types.Id: "the id of a Discord channel",
    types.Ids: "Discord ids, separated by commas or spaces",
    types.ListenAt: "an address and a port, such as 127.0.0.1:9464",
    types.ListenHere: "an address of this machine and a port, such as 127.0.0.1:8765",
    types.PageToken: "a secret of at least 16 characters",
    types.PublicKey: "a public key: npub1…, or 64 hex digits",
    types.Relays: "addresses that start with ws:// or wss://, separated by commas or spaces; or embedded",
    types.Saved: "0, all, or server ids and dm, separated by commas",
    types.Secret: "a secret",
    types.Servers: "provider=address, separated by commas, such as ollama=http://192.168.1.5:11434/v1",
    types.ShardSet: "auto, 0-3/8, or 2:4/16; see docs/admins/postgresql.md",
    types.Store: "files, sqlite, none, or postgresql://user:password@host/database",
    types.Zone: "a name of the IANA database, such as Europe/Berlin",
}
"""What each type takes. Numbers and choices say it themselves."""
NUMBERS = (int, float, int | None)


def required(fault: Any, field: FieldInfo | None) -> str:
    """The rule that was broken, in our words for the common faults and in pydantic's for others."""
    kind = str(fault["type"])
    if kind == "literal_error":
        return f"must be {fault['ctx']['expected']}"
    if kind.startswith("bool_"):
        return "must be true or false"
    if kind == "string_too_short":
        return "must not be empty"
    if field is not None and field.annotation in NUMBERS:
        return f"must be {number(field)}"
    return str(fault["msg"]).removeprefix("Value error, ")


def number(field: FieldInfo) -> str:
    """What a numeric field takes: `a whole number from 1 to 200`, or `a number above 0, up to 600`."""
    kind = "a number" if field.annotation is float else "a whole number"
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


def allowed(kind: object, field: FieldInfo) -> str:
    """What a setting of this type takes. Raises ValueError for a type that is missing in `WORDS`."""
    if kind in WORDS:
        return WORDS[kind]
    if get_origin(field.annotation) is Literal:
        *others, last = get_args(field.annotation)
        return f"{', '.join(others)} or {last}"
    if field.annotation in NUMBERS:
        return number(field)
    raise ValueError(f"the type of {field.validation_alias} has no words in settings_words.py")
