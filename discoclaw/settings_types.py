"""The types of settings that need more than a number, a text or a switch: how each is read and checked.

A validator raises ValueError with what is allowed; `settings` adds the variable and the value. Each takes its
parsed form unchanged, as code and tests pass it. `allowed` says in words what a setting takes, for the line
about a wrong value and for docs/admins/settings.md. Knows nothing about which variables there are.
"""

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, PlainValidator, SecretStr
from pydantic.fields import FieldInfo
from pydantic_core import PydanticCustomError
from pydantic_settings import NoDecode

from discoclaw.core import actions
from discoclaw.core.budgets import Limit, limits_of
from discoclaw.core.errors import Refused
from discoclaw.core.history import MAIN, branch_name
from discoclaw.core.model import PROVIDERS, SERVERS
from discoclaw.core.policy import AutoSave, Personas, auto_save
from discoclaw.core.redact import without_login
from discoclaw.core.shards import Wanted, wanted
from discoclaw.core.zones import zone_named

LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")
LEAST_TOKEN = 16
"""Characters of a token that people choose: fewer could be guessed."""
LONGEST_NAME = 24
"""The longest word that is shown again where an id belongs."""
EMBEDDED = "embedded"
"""The name of the relay that runs inside this program."""
_MOVABLE = tuple(name for name, one in PROVIDERS.items() if one.address and one.moved == SERVERS)
"""Providers without a setting of their own for their address."""


def _blank_is_none(value: object) -> object:
    return None if isinstance(value, str) and not value.strip() else value


def ids_in(text: str) -> frozenset[str]:
    """Discord ids that are separated by commas or white space. Raises ValueError for anything else."""
    found = text.replace(",", " ").split()
    wrong = [word for word in found if not (word.isascii() and word.isdigit() and len(word) <= 20)]
    if wrong:
        # What is longer than a name of somebody may be a secret that was pasted here.
        shown = repr(wrong[0]) if len(wrong[0]) <= LONGEST_NAME else f"a text of {len(wrong[0])} characters"
        raise ValueError(f"{shown} is not a Discord id; use numbers, separated by commas or spaces")
    return frozenset(found)


def _ids(value: object) -> object:
    return ids_in(value) if isinstance(value, str) else value


def _id(value: str | None) -> str | None:
    if value is None:
        return None
    found = ids_in(value)
    if len(found) != 1:
        raise ValueError("must be a single Discord id")
    return next(iter(found))


def _http(value: str | None) -> str | None:
    return _address(value, "http://", "https://").rstrip("/") if value else None


def _websocket(value: str | None) -> str | None:
    return _address(value, "ws://", "wss://") if value else value


def _address(value: str, *starts: str) -> str:
    if not value.startswith(starts):
        raise ValueError(f"must start with {' or '.join(starts)}")
    try:
        parts = urlsplit(value)
        if parts.hostname and parts.port != 0:
            return value
    except ValueError:
        pass
    raise ValueError("not an address; special characters in a password are percent-encoded, as %40 for @")


def is_address(field: FieldInfo) -> bool:
    """Whether a setting is an address or several, in which there may be a password."""
    checks = (_http, _websocket, _relays, _servers)
    return any(getattr(one, "func", None) in checks for one in field.metadata)


@dataclass(frozen=True, slots=True)
class Listen:
    """An address of this machine to listen at. Port 0 is any free one."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def _listen(value: object) -> object:
    """`host:port`, as in 127.0.0.1:9464 or [::1]:9464."""
    if not isinstance(value, str):
        return value
    if not value.strip():
        return None
    host, colon, port = value.strip().rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not (colon and host and port.isascii() and port.isdigit() and int(port) <= 65_535):
        raise ValueError("must be an address and a port, for example 127.0.0.1:9464")
    return Listen(host, int(port))


def _budget(value: object) -> object:
    """Dollars for a day or month: `5/day, 60/month, person 0.50/day`."""
    return limits_of(value) if isinstance(value, str) else value


def _only_here(value: object) -> object:
    """`host:port` that other machines can't reach. The name localhost stands for 127.0.0.1."""
    found = _listen(value)
    if not isinstance(found, Listen):
        return found
    if found.host.lower() == "localhost":
        return Listen("127.0.0.1", found.port)
    try:
        if ipaddress.ip_address(found.host).is_loopback:
            return found
    except ValueError:
        pass
    raise ValueError(
        "must be an address that other machines can't reach, such as 127.0.0.1:8765, because nothing is "
        "encrypted there; from elsewhere, use an SSH tunnel or a reverse proxy"
    )


def _page_token(value: SecretStr | None) -> SecretStr | None:
    if value is not None and len(value.get_secret_value()) < LEAST_TOKEN:
        why = f"must have at least {LEAST_TOKEN} characters; without one, each start makes a fresh one"
        raise PydanticCustomError("secret", why)
    return value


def _zone(value: str) -> str:
    zone = zone_named(value)
    if zone is None:
        raise ValueError("not a time zone; use a name such as Europe/Berlin or UTC")
    return str(zone)


def _saved(value: object) -> object:
    return auto_save(value) if isinstance(value, str) else value


def _acts(value: object) -> object:
    return actions.allowed(value) if isinstance(value, str) else value


def _personas(value: object) -> object:
    """`channel=persona` pairs separated by commas. A channel is an id, a name, or "dm"."""
    if not isinstance(value, str):
        return value
    places = {}
    for pair in filter(None, (part.strip() for part in value.split(","))):
        channel, equals, persona = pair.partition("=")
        channel = channel.strip().removeprefix("#").casefold()
        if not equals or not channel:
            raise ValueError(f"{pair!r} must be channel=persona, for example dev=coding")
        try:
            places[channel] = persona.strip() if persona.strip() == MAIN else branch_name(persona)
        except Refused as refusal:
            raise ValueError(str(refusal)) from None
    return Personas(places)


def _relays(value: object) -> object:
    """Addresses of relays separated by commas or white space, or just "embedded"."""
    if not isinstance(value, str):
        return value
    found = tuple(dict.fromkeys(value.replace(",", " ").split()))
    for one in found:
        if one == EMBEDDED and len(found) > 1:
            raise ValueError(f"{EMBEDDED!r} can't be combined with other relays; remove it, or the others")
        if one != EMBEDDED and not one.startswith(("ws://", "wss://")):
            raise ValueError(f"{without_login(one)!r} is not a relay; use wss://…, ws://… or {EMBEDDED!r}")
    return found


def _group_ids(value: object) -> object:
    """`channel=group` pairs separated by commas: a Discord channel's id, and its group on a NIP-29 relay."""
    if not isinstance(value, str):
        return value
    groups = {}
    for pair in filter(None, (part.strip() for part in value.split(","))):
        channel, equals, group = (part.strip() for part in pair.partition("="))
        if not (equals and group and channel.isascii() and channel.isdigit()):
            raise ValueError(f"{pair!r} must be channel=group, with the id of a Discord channel")
        groups[channel] = group
    return groups


def servers_in(text: str) -> Mapping[str, str]:
    """`provider=address` pairs separated by commas: where servers are that aren't at their usual address.

    Raises ValueError.
    """
    servers = {}
    for pair in filter(None, (part.strip() for part in text.split(","))):
        provider, equals, address = (part.strip() for part in pair.partition("="))
        if not equals or provider.lower() not in _MOVABLE:
            raise ValueError(f"each part must be provider=address, with one of {', '.join(_MOVABLE)}")
        servers[provider.lower()] = _address(address, "http://", "https://").rstrip("/")
    return servers


def _provider(value: str) -> str:
    if value not in PROVIDERS:
        *others, last = map(repr, PROVIDERS)
        raise ValueError(f"must be {', '.join(others)} or {last}")
    return value


def _servers(value: object) -> object:
    return servers_in(value) if isinstance(value, str) else value


def _public_key(value: object) -> object:
    """A public key as it is written; `nostr` parses it. A secret key set by mistake is never repeated."""
    if not isinstance(value, str):
        return value
    plain = value.strip()
    if plain.lower().startswith(("nsec1", "ncryptsec1")):
        raise PydanticCustomError("secret", "that is a secret key; use the owner's public key (npub1…)")
    return plain or None


def _shards(value: object) -> object:
    """The shards that this process serves; None for a client that does not shard."""
    if not isinstance(value, str):
        return value
    return wanted(value) if value.strip() else None


def _level(value: object) -> object:
    plain = value.upper() if isinstance(value, str) else value
    return plain if plain in LEVELS else value  # as typed, so that the error shows what was typed


def _store(value: SecretStr) -> SecretStr:
    """Check the name of a store, or the address of one. No message shows what may hold a password."""
    given = value.get_secret_value()
    if given in ("files", "sqlite", "none"):
        return value
    form = "postgresql://user:password@host/database"
    if not given.startswith(("postgresql://", "postgres://")):
        kind = "secret" if set(given) & set("@:/") else "store"
        raise PydanticCustomError(kind, "must be 'files', 'sqlite', 'none' or {form}", {"form": form})
    user, _, place = given.partition("://")[2].partition("?")[0].rpartition("@")
    if set(user) & set("@/# ") or not place.partition("/")[2]:
        why = (
            "must look like {form}; special characters in user and password are percent-encoded, as %40 for @"
        )
        raise PydanticCustomError("secret", why, {"form": form})
    return value


Id = Annotated[str | None, BeforeValidator(_blank_is_none), AfterValidator(_id)]
Ids = Annotated[frozenset[str], NoDecode, BeforeValidator(_ids)]
Address = Annotated[str | None, BeforeValidator(_blank_is_none), AfterValidator(_http)]
Gateway = Annotated[str | None, BeforeValidator(_blank_is_none), AfterValidator(_websocket)]
Budget = Annotated[tuple[Limit, ...], NoDecode, PlainValidator(_budget)]
ListenAt = Annotated[Listen | None, NoDecode, PlainValidator(_listen)]
ListenHere = Annotated[Listen | None, NoDecode, PlainValidator(_only_here)]
ShardSet = Annotated[Wanted | None, NoDecode, PlainValidator(_shards)]
Secret = Annotated[SecretStr | None, BeforeValidator(_blank_is_none)]
PageToken = Annotated[Secret, AfterValidator(_page_token)]
Folder = Annotated[Path | None, BeforeValidator(_blank_is_none)]
Tokens = Annotated[int | None, BeforeValidator(_blank_is_none)]
File = Annotated[Path | None, BeforeValidator(_blank_is_none), "a file"]  # else it would equal Folder
Zone = Annotated[str, AfterValidator(_zone)]
Saved = Annotated[AutoSave, NoDecode, BeforeValidator(_saved)]
Acts = Annotated[actions.Allowed, NoDecode, BeforeValidator(_acts)]
ChannelPersonas = Annotated[Personas, NoDecode, BeforeValidator(_personas)]
Relays = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_relays)]
Servers = Annotated[Mapping[str, str], NoDecode, BeforeValidator(_servers), "servers"]  # as above
GroupIds = Annotated[Mapping[str, str], NoDecode, BeforeValidator(_group_ids)]
PublicKey = Annotated[str | None, BeforeValidator(_public_key)]
Store = Annotated[SecretStr, AfterValidator(_store)]
ModelProvider = Annotated[str, AfterValidator(_provider)]
NostrMode = Literal["off", "mirror", "canonical"]
LogFormat = Literal["text", "json"]
LogLevel = Annotated[Literal["DEBUG", "INFO", "WARNING", "ERROR"], BeforeValidator(_level)]


# ---------------------------------------------------------------------- in words

WORDS: Mapping[object, str] = {
    Path: "a folder",
    bool: "1 or 0",
    str: "a text",
    Acts: f"none, all, or some of {', '.join(actions.KINDS)}, each maybe with a server's id before it",
    Address: "an address that starts with http:// or https://",
    Budget: "dollars for each day or month, such as 5/day, 60/month, person 0.50/day",
    ChannelPersonas: "channel=persona, separated by commas, such as dev=coding",
    File: "a file",
    Folder: "a folder",
    Gateway: "an address that starts with ws:// or wss://",
    GroupIds: "channel=group with the id of a Discord channel, separated by commas",
    Id: "the id of a Discord channel",
    Ids: "Discord ids, separated by commas or spaces",
    ListenAt: "an address and a port, such as 127.0.0.1:9464",
    ListenHere: "an address of this machine and a port, such as 127.0.0.1:8765",
    ModelProvider: " or ".join(", ".join(PROVIDERS).rsplit(", ", 1)),
    PageToken: "a secret of at least 16 characters",
    PublicKey: "a public key: npub1…, or 64 hex digits",
    Relays: "addresses that start with ws:// or wss://, separated by commas or spaces; or embedded",
    Saved: "0, all, or server ids and dm, separated by commas",
    Secret: "a secret",
    Servers: "provider=address, separated by commas, such as ollama=http://192.168.1.5:11434/v1",
    ShardSet: "auto, 0-3/8, or 2:4/16; see docs/admins/postgresql.md",
    Store: "files, sqlite, none, or postgresql://user:password@host/database",
    Zone: "a name of the IANA database, such as Europe/Berlin",
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
    raise ValueError(f"the type of {field.validation_alias} has no words in settings_types.py")
