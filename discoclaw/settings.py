"""All settings: every environment variable, its default, and what is allowed.

Settings are read once, when the program starts. No other module reads the environment. `.env` in the working
folder is read too; the environment takes precedence. A wrong value stops the start with one line that names
the variable, the value and what is allowed. Secrets are never shown.
"""

import difflib
import os
from collections.abc import Callable, Mapping
from datetime import UTC, tzinfo
from pathlib import Path
from typing import Any

from dotenv import dotenv_values
from pydantic import Field, SecretStr, ValidationError, ValidationInfo, field_validator
from pydantic_settings import (
    BaseSettings,
    EnvSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)

from discoclaw.core.autosave import AutoSave
from discoclaw.core.decay import Decay
from discoclaw.core.errors import SettingsError
from discoclaw.core.live_fields import TABLE
from discoclaw.core.model_names import VENDOR, split
from discoclaw.core.policy import Allowlist, Overrides, Personas, RespondMode
from discoclaw.core.privacy import DmPrivacy
from discoclaw.core.redact import without_login
from discoclaw.core.zones import zone_named
from discoclaw.recall.rank import Fade
from discoclaw.settings_types import EMBEDDED as EMBEDDED
from discoclaw.settings_types import (
    Address,
    Budget,
    ChannelPersonas,
    File,
    Folder,
    Gateway,
    GroupIds,
    Id,
    Ids,
    ListenAt,
    ListenHere,
    LogFormat,
    LogLevel,
    NostrMode,
    PageToken,
    PublicKey,
    Relays,
    Saved,
    Secret,
    Servers,
    ShardSet,
    Store,
    Tokens,
    Zone,
    is_address,
)
from discoclaw.settings_types import ModelProvider as ModelProvider
from discoclaw.settings_words import required

DEFAULT, SMALL = "sonnet", "haiku"
"""The models of Anthropic's that answer, and that work in the background, unless others are named."""


def _ours(source: PydanticBaseSettingsSource) -> Callable[[], dict[str, Any]]:
    """A source that knows variables by their own names only, and treats empty ones as unset.

    It reads no JSON: each type below takes a text. Pydantic's own looks at each type anew to find that out,
    which took longer than everything else that happens to the settings.
    """
    assert isinstance(source, EnvSettingsSource)
    return lambda: {name: value for name in names() if (value := source.env_vars.get(name.lower()))}


def _env(name: str, default: Any, **rules: Any) -> Any:
    return Field(default=default, validation_alias=name, **rules)


class Settings(BaseSettings):
    """All settings, frozen. Code uses the field names; the environment uses the aliases."""

    model_config = SettingsConfigDict(
        env_file=".env", env_file_encoding="utf-8", extra="ignore", frozen=True, populate_by_name=True
    )

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[Any, ...]:
        """Arguments in code first, then the environment, then `.env`.

        By default, pydantic would also read a variable named like a field, and MODEL or BASE_URL may be
        another program's.
        """
        return init_settings, _ours(env_settings), _ours(dotenv_settings)

    # Discord
    token: Secret = _env("DISCORD_TOKEN", None)
    allow_users: Ids = _env("DISCORD_ALLOW_USER_IDS", frozenset())
    allow_roles: Ids = _env("DISCORD_ALLOW_ROLE_IDS", frozenset())
    channels: Ids = _env("DISCORD_CHANNEL_IDS", frozenset())
    owners: Ids = _env("DISCOCLAW_OWNER_IDS", frozenset())
    discord_api: Address = _env("DISCORD_API_BASE", None)
    discord_gateway: Gateway = _env("DISCORD_GATEWAY", None)
    shards: ShardSet = _env("DISCOCLAW_SHARDS", None)
    respond_mode: RespondMode = _env("DISCOCLAW_RESPOND_MODE", "mention")
    catch_up_hours: int = _env("DISCOCLAW_CATCH_UP_HOURS", 72, ge=0, le=720)
    catch_up_messages: int = _env("DISCOCLAW_CATCH_UP_MESSAGES", 500, ge=1, le=5000)
    threads: bool = _env("DISCOCLAW_THREADS", False)
    edit_interval_s: float = _env("DISCOCLAW_EDIT_INTERVAL_S", 1.25, ge=0, le=30)
    answer_buttons: bool = _env("DISCOCLAW_ANSWER_BUTTONS", True)

    # Model
    model_provider: ModelProvider = _env("DISCOCLAW_MODEL_PROVIDER", "anthropic")
    api_key: Secret = _env("ANTHROPIC_API_KEY", None)
    base_url: Address = _env("ANTHROPIC_BASE_URL", None)
    openai_key: Secret = _env("OPENAI_API_KEY", None)
    openai_url: Address = _env("OPENAI_BASE_URL", None)
    openrouter_key: Secret = _env("OPENROUTER_API_KEY", None)
    gemini_key: Secret = _env("GEMINI_API_KEY", None)
    model_servers: Servers = _env("DISCOCLAW_MODEL_SERVERS", {})
    model: str = _env("DISCOCLAW_MODEL", DEFAULT, min_length=1, validate_default=True)
    max_tokens: int = _env("DISCOCLAW_MAX_TOKENS", 4096, ge=64, le=32_000)
    model_timeout_s: float = _env("DISCOCLAW_MODEL_TIMEOUT_S", 180.0, gt=0, le=3600)
    connect_timeout_s: float = _env("DISCOCLAW_CONNECT_TIMEOUT_S", 10.0, gt=0, le=300)
    loop_timeout_s: float = _env("DISCOCLAW_LOOP_TIMEOUT_S", 60.0, gt=0, le=3600)

    # The prompt: messages, UTF-16 units and tokens
    context_history: int = _env("DISCOCLAW_CONTEXT_HISTORY", 20, ge=1, le=200)
    history_budget: int = _env("DISCOCLAW_MESSAGE_HISTORY_BUDGET", 3000, ge=0, le=200_000)
    prompt_budget: int = _env("DISCOCLAW_PROMPT_BUDGET", 48_000, ge=4000, le=4_000_000)
    timezone: Zone = _env("DISCOCLAW_TIMEZONE", "UTC")
    context_tokens: Tokens = _env("DISCOCLAW_CONTEXT_TOKENS", None, ge=4000, le=10_000_000)

    # The model's tools
    tools_enabled: bool = _env("DISCOCLAW_TOOLS_ENABLED", True)

    # The cache of responses
    response_cache: bool = _env("DISCOCLAW_RESPONSE_CACHE", False)
    cache_ttl_s: int = _env("DISCOCLAW_CACHE_TTL", 3600, ge=1, le=31_536_000)
    cache_max_entries: int = _env("DISCOCLAW_CACHE_MAX_ENTRIES", 100, ge=1, le=10_000)

    # Rolling summary
    summary_enabled: bool = _env("DISCOCLAW_SUMMARY_ENABLED", True)
    summary_model: str = _env("DISCOCLAW_SUMMARY_MODEL", SMALL, min_length=1, validate_default=True)
    summary_max_chars: int = _env("DISCOCLAW_SUMMARY_MAX_CHARS", 2000, ge=100, le=20_000)
    summary_every: int = _env("DISCOCLAW_SUMMARY_EVERY_N_TURNS", 5, ge=1, le=1000)
    summary_dir: Folder = _env("DISCOCLAW_SUMMARY_DATA_DIR", None)

    # Files and pictures
    files_enabled: bool = _env("DISCOCLAW_FILES", True)
    file_max_mb: int = _env("DISCOCLAW_FILE_MAX_MB", 10, ge=1, le=25)
    file_max_chars: int = _env("DISCOCLAW_FILE_MAX_CHARS", 20_000, ge=100, le=200_000)
    files_per_message: int = _env("DISCOCLAW_FILES_PER_MESSAGE", 5, ge=1, le=10)
    older_files: int = _env("DISCOCLAW_OLDER_FILES", 4, ge=0, le=10)
    files_kept_mb: int = _env("DISCOCLAW_FILES_KEPT_MB", 64, ge=0, le=4096)

    # Durable memory
    durable_enabled: bool = _env("DISCOCLAW_DURABLE_MEMORY_ENABLED", True)
    extraction_enabled: bool = _env("DISCOCLAW_DURABLE_EXTRACTION_ENABLED", True)
    durable_model: str = _env("DISCOCLAW_DURABLE_MODEL", SMALL, min_length=1, validate_default=True)
    durable_every: int = _env("DISCOCLAW_DURABLE_EVERY_N_TURNS", 10, ge=1, le=1000)
    durable_dir: Folder = _env("DISCOCLAW_DURABLE_DATA_DIR", None)
    inject_max_chars: int = _env("DISCOCLAW_DURABLE_INJECT_MAX_CHARS", 2000, ge=0, le=100_000)
    max_items: int = _env("DISCOCLAW_DURABLE_MAX_ITEMS", 200, ge=1, le=1_000_000)
    dm_privacy: DmPrivacy = _env("DISCOCLAW_DM_PRIVACY", "balanced")
    memory_channel: Id = _env("DISCOCLAW_MEMORY_CHANNEL_ID", None)
    commands_enabled: bool = _env("DISCOCLAW_MEMORY_COMMANDS_ENABLED", True)
    heartbeat_minutes: float = _env("DISCOCLAW_HEARTBEAT_MINUTES", 30.0, ge=0, le=10_080)
    personas: ChannelPersonas = _env("DISCOCLAW_CHANNEL_PERSONAS", Personas())
    receipts: bool = _env("DISCOCLAW_RECEIPTS", False)
    asks_first: bool = _env("DISCOCLAW_MEMORY_APPROVAL", False)
    ask_back: bool = _env("DISCOCLAW_ASK_BACK", True)
    welcome: bool = _env("DISCOCLAW_WELCOME", True)
    pending_days: float = _env("DISCOCLAW_PENDING_DAYS", 14.0, ge=0, le=36_500)

    # Finding and forgetting knowledge
    recall_limit: int = _env("DISCOCLAW_RECALL_LIMIT", 5, ge=1, le=50)
    enrich_depth: int = _env("DISCOCLAW_ENRICH_DEPTH", 1, ge=0, le=2)
    recency_half_life_s: float = _env("MEMORY_RECENCY_HALF_LIFE", 0.0, ge=0, le=3_153_600_000)
    hygiene_max_age_s: int = _env("DISCOCLAW_HYGIENE_MAX_AGE", 604_800, ge=0, le=3_153_600_000)
    knowledge_decay: bool = _env("DISCOCLAW_KNOWLEDGE_DECAY", False)
    knowledge_max_idle_days: float = _env("DISCOCLAW_KNOWLEDGE_MAX_IDLE_DAYS", 30.0, ge=0, le=36_500)
    knowledge_survival_chance: float = _env("DISCOCLAW_KNOWLEDGE_SURVIVAL_CHANCE", 0.05, ge=0, le=1)

    # Vectors
    embedding_provider: str = _env("EMBEDDING_PROVIDER", "")
    embedding_model: str = _env("EMBEDDING_MODEL", "")
    embedding_url: Address = _env("EMBEDDING_BASE_URL", None)
    embedding_key: Secret = _env("EMBEDDING_API_KEY", None)
    embedding_auto: bool = _env("EMBEDDING_AUTO", False)
    embedding_talk_per_day: int = _env("EMBEDDING_TALK_PER_DAY", 10_000, ge=0)
    text_weight: float = _env("EMBEDDING_TEXT_WEIGHT", 0.4, ge=0, le=1)
    vector_weight: float = _env("EMBEDDING_VECTOR_WEIGHT", 0.6, ge=0, le=1)

    # Voice messages
    transcribe_url: Address = _env("DISCOCLAW_TRANSCRIBE_URL", None)
    transcribe_key: Secret = _env("DISCOCLAW_TRANSCRIBE_KEY", None)
    transcribe_model: str = _env("DISCOCLAW_TRANSCRIBE_MODEL", "whisper-1", min_length=1)
    transcribe_max_s: int = _env("DISCOCLAW_TRANSCRIBE_MAX_S", 300, ge=1, le=3600)
    transcribe_timeout_s: float = _env("DISCOCLAW_TRANSCRIBE_TIMEOUT_S", 60.0, gt=0, le=3600)

    # The archive of talk
    auto_save: Saved = _env("DISCOCLAW_AUTO_SAVE", AutoSave())

    # Nostr
    nostr_mode: NostrMode = _env("NOSTR_MODE", "mirror")
    nostr_relays: Relays = _env("NOSTR_RELAYS", ())
    nostr_key: Secret = _env("NOSTR_SECRET_KEY", None)
    nostr_key_password: Secret = _env("NOSTR_KEY_PASSWORD", None)
    nostr_box_key: Secret = _env("NOSTR_SECRETBOX_KEY", None)
    nostr_min_acks: int = _env("NOSTR_MIN_ACKS", 1, ge=1, le=100)
    nostr_timeout_s: float = _env("NOSTR_TIMEOUT_S", 10.0, gt=0, le=600)
    nostr_flush_s: float = _env("NOSTR_FLUSH_S", 300.0, ge=0, le=86_400)
    nostr_in_clear: bool = _env("NOSTR_ALLOW_PLAINTEXT", False)
    nostr_groups: GroupIds = _env("NOSTR_GROUPS", {})
    owner_pubkey: PublicKey = _env("NOSTR_OWNER", None)
    owner_secret_key: Secret = _env("NOSTR_OWNER_SECRET_KEY", None)
    owner_key_password: Secret = _env("NOSTR_OWNER_KEY_PASSWORD", None)

    # The program
    store: Store = _env("DISCOCLAW_STORE", SecretStr("files"))
    data_dir: Path = _env("DISCOCLAW_DATA_DIR", Path("data"))
    content_dir: Path = _env("DISCOCLAW_CONTENT_DIR", Path("content"))
    concurrent_turns: int = _env("DISCOCLAW_MAX_CONCURRENT_INVOCATIONS", 16, ge=0, le=1000)
    waiting_messages: int = _env("DISCOCLAW_MAX_WAITING_MESSAGES", 20, ge=1, le=1000)
    idle_s: int = _env("DISCOCLAW_IDLE_S", 3600, ge=1, le=31_536_000)
    shutdown_grace_s: float = _env("DISCOCLAW_SHUTDOWN_GRACE_S", 8.0, ge=0, le=600)
    log_level: LogLevel = _env("DISCOCLAW_LOG_LEVEL", "INFO")
    log_format: LogFormat = _env("DISCOCLAW_LOG_FORMAT", "text")
    metrics: ListenAt = _env("DISCOCLAW_METRICS", None)
    budget: Budget = _env("DISCOCLAW_BUDGET", ())
    prices: File = _env("DISCOCLAW_PRICES", None)
    page: ListenHere = _env("DISCOCLAW_PAGE", None)
    page_token: PageToken = _env("DISCOCLAW_PAGE_TOKEN", None)

    @field_validator("model")
    @classmethod
    def _of_its_provider(cls, name: str, info: ValidationInfo) -> str:
        """Anthropic's default is nobody else's model. Raises ValueError."""
        provider = info.data.get("model_provider", VENDOR)
        if name == DEFAULT and provider not in (VENDOR, "offline"):
            raise ValueError(f"must name a model of {provider}")
        return name

    @field_validator("summary_model", "durable_model")
    @classmethod
    def _with_a_provider(cls, name: str, info: ValidationInfo) -> str:
        """Where nobody has set up Anthropic, its small model is the one that answers people."""
        model, usual = info.data.get("model", DEFAULT), info.data.get("model_provider", VENDOR)
        reached = info.data.get("api_key") or info.data.get("base_url") or split(model)[0] in ("", VENDOR)
        there = usual == "offline" or (usual == VENDOR and reached)
        return name if name != SMALL or there else model

    @property
    def allowlist(self) -> Allowlist:
        """Who may talk to the bot, and where. The owners always may."""
        return Allowlist(self.allow_users | self.owners, self.allow_roles, self.channels)

    @property
    def overrides(self) -> Overrides:
        """The part of the policy that was set explicitly, so that `config get` can tell it from defaults."""
        known, given = names(), self.model_fields_set
        ours = {field.name: known.get(field.variable, "") for field in TABLE if not field.by_place}
        return Overrides(**{name: getattr(self, own) for name, own in ours.items() if own in given})

    @property
    def decay(self) -> Decay:
        """When items are removed from memory."""
        idle_days = self.knowledge_max_idle_days if self.knowledge_decay else 0
        return Decay(
            self.hygiene_max_age_s, idle_days, self.knowledge_survival_chance, pending_days=self.pending_days
        )

    @property
    def zone(self) -> tzinfo:
        """The time zone of people who have not said theirs."""
        return zone_named(self.timezone) or UTC

    @property
    def fade(self) -> Fade:
        """How age affects recall. Idle knowledge only fades if it may also be removed."""
        return Fade(self.recency_half_life_s, self.decay.max_idle_days)

    @property
    def memory_dir(self) -> Path:
        """The folder of everything that is memory."""
        return self.data_dir / "memory"

    @property
    def mirrors(self) -> bool:
        """Whether relays are named to mirror to."""
        return self.nostr_mode != "off" and bool(self.nostr_relays)

    @property
    def has_keys(self) -> bool:
        """Whether there is anything that the Nostr adapter is needed for: to mirror, or to redact a key."""
        given = (self.nostr_key, self.nostr_box_key, self.owner_secret_key, self.owner_pubkey)
        secrets = (*given, self.transcribe_key)
        return self.mirrors or any(secrets) or (self.data_dir / "nostr").exists()

    @property
    def outbox_path(self) -> Path:
        """The outbox of the mirror. The file exists if this memory was ever mirrored."""
        return self.memory_dir / "outbox" / "outbox.sqlite"


def names() -> dict[str, str]:
    """Every variable, with the name of its field."""
    return {str(field.validation_alias): name for name, field in Settings.model_fields.items()}


def given(*, in_file: bool = True) -> dict[str, str]:
    """Our variables as they are set, without empty ones; those of `.env` too, unless `in_file` is off."""
    written = {**(dotenv_values(".env") if in_file else {}), **os.environ}
    return {name.upper(): value for name, value in written.items() if value and name.upper() in names()}


def data_folders() -> tuple[Path, ...]:
    """Where a bot may have its data: where `.env` says, beside that, or where systemd's services have it."""
    written = dotenv_values(".env").get("DISCOCLAW_DATA_DIR")
    return Path(written or "data"), Path("data"), Path("/var/lib/discoclaw")


def load(**overrides: Any) -> Settings:
    """The settings of this process. `overrides` are by field name, and take precedence.

    Raises SettingsError with one line for each wrong value.
    """
    try:
        return Settings(**overrides)
    except ValidationError as error:
        raise SettingsError("\n".join(_line(fault) for fault in error.errors())) from None
    except UnicodeDecodeError as error:
        raise SettingsError(
            f".env is not UTF-8 text ({error.reason} at byte {error.start}); save it as UTF-8"
        ) from None


def unknown(environment: Mapping[str, str] | None = None) -> list[str]:
    """A line for each variable that begins like ours but is unknown, and so is probably a typo.

    `environment` is by default that of the process, and `.env`.
    """
    known = names()
    lines = []
    for name in sorted({**dotenv_values(".env"), **os.environ} if environment is None else environment):
        if name.upper() in known or not name.upper().startswith(("DISCOCLAW_", "DISCORD_", "NOSTR_")):
            continue
        # Only a warning: other programs may use these prefixes, and an old setting must not stop the bot.
        near = difflib.get_close_matches(name.upper(), known, n=1)
        hint = f"did you mean {near[0]}?" if near else "`.env.example` lists all of them"
        lines.append(f"{name} is not a setting of DiscoClaw, so it is ignored; {hint}")
    return lines


def _line(fault: Any) -> str:
    """One validation fault as `VARIABLE=value: what is allowed`."""
    given = str(fault["loc"][0]) if fault["loc"] else "settings"
    known = names()
    fields = {field: name for name, field in known.items()}
    variable = given if given in known else fields.get(given, given)
    field = Settings.model_fields[known[variable]] if variable in known else None
    kind = fault["type"]
    secret = kind == "secret" or ("SecretStr" in str(field and field.annotation) and kind != "store")
    reason = required(fault, field)
    value = "…" if secret else str(fault.get("input"))
    if set(value) & set(":/") or (field is not None and is_address(field)):
        value = without_login(value)
    return f"{variable}={value}: {reason[:1].lower()}{reason[1:]}"
