"""`discoclaw config`: shows the live configuration of people and channels, and changes it while the bot runs.

With the owner's key and relays, a change is signed and published; otherwise it is written to the local file.
`get` only reads. Knows nothing about how relays are reached: that is an argument of `commands`.
"""

import asyncio
import difflib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discoclaw import settings as settings_module
from discoclaw.cli.common import (
    AsJson,
    locked_storage,
    note,
    now_ms,
    say,
    say_json,
    stores_of,
    warnings_as_notes,
)
from discoclaw.core import live
from discoclaw.core.errors import FolderInUse, MemoryFault, Refused, RelayError, SettingsError
from discoclaw.core.live import Effective, Scope
from discoclaw.core.policy import FIELDS, KINDS, NO_OVERRIDES, Choice, Overrides, Value
from discoclaw.memory.folder import check_version
from discoclaw.memory.live import FILE, LOCK, LiveConfig, change_file, changed
from discoclaw.settings import Settings
from discoclaw.show.words import line
from discoclaw.store.port import Documents

if TYPE_CHECKING:  # these imports take a tenth of a second, and a change of the local file does not need them
    from discoclaw.cli.nostr import RelayAccess
    from discoclaw.nostr.event import Event, Keys
    from discoclaw.nostr.owner import PublishResult

_SCOPE = "global, group:CHANNEL_ID or user:USER_ID."


def _relay_access(settings: Settings) -> "RelayAccess | None":
    from discoclaw.cli.nostr import relay_access  # slow imports, which `fields` doesn't need

    return relay_access(settings)


def commands(relay_access: Callable[[Settings], "RelayAccess | None"] = _relay_access) -> typer.Typer:
    """The commands. `relay_access` returns how the bot is reached over relays, None if it is not."""
    config = typer.Typer(no_args_is_help=True)

    @config.command()
    def get(
        scopes: Annotated[list[str] | None, typer.Argument(metavar="[SCOPE]...", help=_SCOPE)] = None,
        as_json: AsJson = False,
    ) -> None:
        """Show what applies to a channel, a person, or a person in a channel, and where that was set.

        Without a scope, show what applies everywhere, and all overrides.

        Example: discoclaw config get group:123456789012345678
        """
        settings = settings_module.load()
        named, access = _scopes(scopes or []), relay_access(settings)
        with _looking(settings, access) as found:
            overrides, effective = found.overrides(), found.explain(*named)
        if access is None and any(one.scope.id and not one.scope.raw for one in overrides):
            note("some overrides name pseudonyms; without the bot's key it isn't known whom they are about")
        if as_json:
            value: dict[str, Any] = {"scopes": [str(scope) for scope in named] or [str(live.GLOBAL)]}
            for field, one in effective.items():
                where = str(one.scope) if one.source in ("event", "file") else None
                value[field] = {"value": one.value, "from": one.source, "scope": where}
            if not scopes:
                value["wishes"] = [
                    {"scope": str(one.scope), "from": one.source, **one.overrides} for one in overrides
                ]
            say_json(value)
            return
        for field, one in effective.items():
            say(f"{field:<16} {_shown(one.value):<8} {_from(field, one)}")
        if overrides and not scopes:
            say("\nAll overrides:")
            for entry in overrides:
                source = "signed by the owner" if entry.source == "event" else FILE
                say(f"{entry.scope!s:<30} {_spelled(entry.overrides)}   {source}")

    @config.command("set")
    def set_(
        scope: Annotated[str, typer.Argument(metavar="SCOPE", help=_SCOPE)],
        fields: Annotated[
            list[str], typer.Argument(metavar="FIELD=VALUE...", help="FIELD= removes the override.")
        ],
    ) -> None:
        """Override settings for a scope, without a restart. Fields that aren't named stay as they are.

        `discoclaw config fields` lists them. With NOSTR_OWNER_SECRET_KEY the change is signed and published
        to the relays; otherwise it is local.

        Example: discoclaw config set group:123456789012345678 respond_mode=mention context_history=30
        """
        settings = settings_module.load()
        (named,), requested = _scopes([scope]), _fields(fields)
        access = relay_access(settings) if settings.owner_secret_key is not None else None
        if access is not None:
            _sign(settings, access, named, requested)
            return
        if settings.owner_secret_key is not None:
            note("NOSTR_OWNER_SECRET_KEY is set, but there is no relay to publish to, so the change is local")
        _write(settings, relay_access(settings), named, requested)

    config.command()(fields)
    return config


def fields(as_json: AsJson = False) -> None:
    """List what can be set: what each field means, what is allowed, and for which scopes.

    Example: discoclaw config fields
    """
    if as_json:
        say_json(
            {
                name: {"about": field.about, "allowed": field.type.allowed, "scopes": list(field.kinds)}
                for name, field in FIELDS.items()
            }
        )
        return
    for name, field in FIELDS.items():
        say(f"{name:<16} {field.about}")
        say(f"{'':<16} {field.type.allowed}; for {', '.join(field.kinds)}")


# ---------------------------------------------------------------------- arguments


def _scopes(given: list[str]) -> list[Scope]:
    """The scopes that were typed. Raises BadParameter for an unknown one, or two of one kind."""
    found: list[Scope] = []
    for text in given:
        try:
            # Accept mentions as Discord copies them: group:<#123>, user:<@!123>.
            plain = text.replace("<#", "").replace("<@", "").replace("!", "").replace(">", "")
            found.append(live.parse_scope(plain))
        except Refused as refusal:
            kind = text.partition(":")[0].lower()
            near = [] if kind in KINDS else difflib.get_close_matches(kind, KINDS, n=1)
            raise typer.BadParameter(
                str(refusal) + (f"; did you mean {near[0]}?" if near else ""), param_hint="SCOPE"
            ) from None
    if len({scope.kind for scope in found}) < len(found):
        raise typer.BadParameter("name at most one scope of a kind", param_hint="SCOPE")
    return found


def _fields(words: list[str]) -> dict[str, Value | None]:
    """The fields that were typed, with their values; None removes the override. Raises BadParameter."""
    found: dict[str, Value | None] = {}
    for word in words:
        name, equals, value = (part.strip() for part in word.partition("="))
        field = FIELDS.get(name.lower())
        if not equals or field is None:
            more = " (use `discoclaw config fields`)"
            raise _wrong(f"{line(word, 80)!r} names no field", name.lower(), FIELDS, more)
        try:
            found[field.name] = field.typed(value) if value else None
        except Refused as refusal:
            options = field.type.options if isinstance(field.type, Choice) else ()
            raise _wrong(f"{line(word, 80)!r}: {refusal}", value, options) from None
    return found


def _wrong(why: str, given: str = "", known: Iterable[str] = (), more: str = "") -> typer.BadParameter:
    near = difflib.get_close_matches(given, list(known), n=1)
    return typer.BadParameter(
        why + (f"; did you mean {near[0]}?" if near and near[0] != given else "") + more,
        param_hint="FIELD=VALUE",
    )


# ---------------------------------------------------------------------- reading


@contextmanager
def _looking(settings: Settings, access: "RelayAccess | None") -> Iterator[LiveConfig]:
    """The configuration on disk, while the store is open."""
    with stores_of(settings) as stores:
        yield _config(settings, stores.used.documents(""), access)


def _config(settings: Settings, documents: Documents, access: "RelayAccess | None") -> LiveConfig:
    names = access.names if access is not None else None
    config = LiveConfig(documents, clock=now_ms, settings=settings.overrides, names=names)
    with warnings_as_notes():
        config.load()
    return config


def _from(field: str, effective: Effective) -> str:
    """The source of a value, in words."""
    if effective.source == "settings" or effective.value is None:
        return f"the settings ({FIELDS[field].variable})"
    if effective.source == "default":
        return "the default"
    return f"{'signed by the owner' if effective.source == 'event' else FILE}, for {effective.scope}"


def _spelled(overrides: Overrides) -> str:
    return ", ".join(f"{field}={_shown(value)}" for field, value in overrides.items())


def _shown(value: Value | None) -> str:
    """A value in one short line; a list of places in the settings is named by its variable alone."""
    if value is None or value == "":
        return "-"
    return str(value).lower() if isinstance(value, bool) else line(str(value), 60)


# ---------------------------------------------------------------------- changing


def _write(
    settings: Settings, access: "RelayAccess | None", scope: Scope, requested: Mapping[str, Any]
) -> None:
    """Change the local file. The bot may be running: it reads the file again with the next message."""
    check_version(settings.memory_dir)
    with stores_of(settings) as stores:
        documents = stores.used.documents("")
        lock = None if stores.used.shared else settings.memory_dir / LOCK
        now = change_file(documents, scope, requested, lock)
        effective = _config(settings, documents, access).explain(scope)
        where = documents.folder / FILE
    say(f"{scope} {_now_has(now)} in {where}. A running bot applies it with the next message.")
    for field, value in requested.items():
        if value is not None and effective[field].value != now[field]:
            source = _from(field, effective[field])
            still = _shown(effective[field].value)
            note(f"{field} is still {still} there ({source}), which takes precedence")


def _now_has(overrides: Overrides) -> str:
    return f"has {_spelled(overrides)}" if overrides != NO_OVERRIDES else "has no overrides any more"


def _sign(settings: Settings, access: "RelayAccess", scope: Scope, requested: Mapping[str, Any]) -> None:
    """Sign the change as the owner and publish it. Raises RelayError if no relay accepted it."""
    from discoclaw.nostr.owner import config_event

    owner = _owner(settings)
    with _looking(settings, access) as found:
        before = found.signed(scope)
    # Always later than the last event, or relays would keep that one if the clock was set back.
    last = before.at if before is not None else 0
    now = changed((before.overrides if before is not None else None) or NO_OVERRIDES, requested)
    live.fitting(scope, now)
    event = config_event(
        owner, scope, now, max(now_ms() // 1000, last + 1), bot=access.bot, names=access.names
    )

    async def published() -> "PublishResult":
        return await access.publish(event)

    posted = asyncio.run(published())
    if not posted.accepted:
        why = "; ".join(f"{relay}: {reason}" for relay, reason in posted.failed.items())
        raise RelayError(f"no relay accepted the change, so nothing changed ({why or 'none is set'})")
    for relay, reason in posted.failed.items():
        note(f"{relay} didn't accept it: {reason}")
    accepted = ", ".join(posted.accepted)
    say(f"{scope} {_now_has(now)}, signed by {owner.npub}, on {accepted}; {_kept(settings, event, now)}.")


def _kept(settings: Settings, event: "Event", overrides: Overrides) -> str:
    """Store the event here too, unless the bot runs: that gets it from the relays. Returns what was done."""
    kept = False
    try:
        if not settings.memory_dir.is_dir():
            return "the bot gets it from there"
        with locked_storage() as storage:
            storage.live.load()
            storage.live.take(event.d, event.created_at, event.id, overrides)
            kept = asyncio.run(storage.live.save())
    except FolderInUse:
        return "the running bot gets it from there"
    except (MemoryFault, OSError) as fault:
        note(str(fault))
    return "it is stored here too" if kept else "the bot gets it from there when it starts"


def _owner(settings: Settings) -> "Keys":
    """The owner's keys. Raises SettingsError if they are unusable, or not those of the bot's owner."""
    from discoclaw.nostr.event import Keys, public_key

    assert settings.owner_secret_key is not None
    secret, given = settings.owner_secret_key.get_secret_value(), settings.owner_key_password
    password = given.get_secret_value() if given is not None else None
    if secret.strip().lower().startswith("ncryptsec1") and not password:
        raise SettingsError(
            "NOSTR_OWNER_SECRET_KEY=…: the key is encrypted; set NOSTR_OWNER_KEY_PASSWORD too"
        )
    keys = Keys.parse(secret, password, name="NOSTR_OWNER_SECRET_KEY")
    if settings.owner_pubkey is None:
        raise SettingsError(
            f"NOSTR_OWNER is not set, so the bot would ignore the change; set it to {keys.npub}"
        )
    if public_key(settings.owner_pubkey) != keys.public:
        raise SettingsError(
            f"NOSTR_OWNER={settings.owner_pubkey}: NOSTR_OWNER_SECRET_KEY belongs to {keys.npub}, and the "
            "bot obeys only its owner; correct one of them"
        )
    return keys


group = commands()
"""The group `discoclaw config`."""
