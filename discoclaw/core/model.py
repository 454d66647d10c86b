"""Requests to a language model and its answers, as frozen values that no provider's types leak into.

A request is a list of turns. When the model wants to use tools, its turn ends with calls; the caller appends
a turn with their results and sends the request again.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Final, Literal, TypeAlias

from discoclaw.core import titles
from discoclaw.core.budgets import Less, Level
from discoclaw.core.message import Encoded
from discoclaw.core.values import dataclass, field, replace

Purpose: TypeAlias = Literal["answer", "summary", "extraction", "tidying", "suggestion", "title"]
"""The purpose of a call. A provider decides by it how hard a model thinks, and how much room that needs."""


@dataclass(frozen=True, slots=True)
class SystemBlock:
    """One block of the system prompt. `cache` asks the provider to cache the prompt up to the end of it."""

    text: str
    cache: bool = False


@dataclass(frozen=True)
class ToolSpec:
    """A tool the model may call. `description` says when to use it, `schema` is its input's JSON schema.

    `cache` asks the provider to cache the tools up to the end of it. `acts`: it does something in the chat,
    so a model that can call no tools may ask for it in writing.
    """

    name: str
    description: str
    schema: Mapping[str, object] = field(hash=False)
    cache: bool = False
    acts: bool = False

    @cached_property
    def text(self) -> str:
        """The text that a model reads of it, to estimate its length."""
        return f"{self.name} {self.description} {json.dumps(self.schema, default=str)}"


@dataclass(frozen=True, slots=True)
class ToolCall:
    """The model's request to run a tool. `input` is what it sent, unchecked: an object, if it got it right.

    None also stands for an input that could not be read.
    """

    id: str
    name: str
    input: object


@dataclass(frozen=True, slots=True)
class ToolResult:
    """A tool's answer, as text for the model. `failed` tells the model that the call did not succeed."""

    call_id: str
    text: str
    failed: bool = False


@dataclass(frozen=True, slots=True)
class UserTurn:
    """A message of the bot to the model. `media` stands before the text, which names each by its label."""

    text: str
    media: tuple[Encoded, ...] = field(default=(), kw_only=True)


@dataclass(frozen=True, slots=True)
class AssistantTurn:
    """The model's turn: text, tool calls, and `raw`, the provider's own content.

    Only the adapter that made `raw` reads it. In a tool loop it is sent back unchanged: thinking blocks, for
    example, are accepted only as they came.
    """

    text: str
    calls: tuple[ToolCall, ...] = ()
    raw: object = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class ToolTurn:
    """The results of every call in the assistant turn before it, in the same order."""

    results: tuple[ToolResult, ...]


Turn: TypeAlias = UserTurn | AssistantTurn | ToolTurn
WRITTEN: Final = "discord-action"
"""The name of a call that was written as text, by a model without tools; its `type` says of which."""


Reads: TypeAlias = Callable[[str], int]
"""The tokens that a model reads at once, by its name; "" is the one that usually answers."""
USUAL_READS = 128_000
"""Tokens of a model whose server doesn't say it; and the most that is used unless a setting allows more."""
SMALL_READS = 16_000
"""A model that reads fewer gets fewer tools and shorter rules, so that memory and talk have room."""


def reads_usual(model: str) -> int:
    """The usual number of tokens a model reads, where nobody asked its server."""
    return USUAL_READS


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One request: the system blocks, stable ones first so that prompt caches hit, then the turns so far.

    `may_call` False asks for an answer without further calls. The tools are still listed then, because
    providers reject turns with calls to tools they don't know. `subject` is the author's subject, or None if
    nothing may be stored; it is never sent to a provider. `max_tokens` is the room for the answer itself: the
    provider adds what thinking needs. `model` names the model that is to answer; "" is the usual one.
    `level` says which kind of model made the turns so far, and goes on with them; None at the begin.
    `writing`: calls of tools are to be written as text, since the model is said to call none.
    """

    system: tuple[SystemBlock, ...]
    turns: tuple[Turn, ...]
    tools: tuple[ToolSpec, ...] = ()
    max_tokens: int = 4096
    may_call: bool = True
    subject: str | None = None
    purpose: Purpose = "answer"
    model: str = ""
    level: Level | None = None
    writing: bool = False


@dataclass(frozen=True, slots=True)
class Usage:
    """The counts of a server: tokens, searches of its own on the web, and seconds of sound it listened to.

    Tokens that were read from a cache or written to it are not in `input_tokens`.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    searches: int = 0
    seconds: int = 0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cache_read_tokens + other.cache_read_tokens,
            self.cache_write_tokens + other.cache_write_tokens,
            self.searches + other.searches,
            self.seconds + other.seconds,
        )

    @property
    def prompt_tokens(self) -> int:
        """The tokens of all that the model read."""
        return self.input_tokens + self.cache_read_tokens + self.cache_write_tokens


@dataclass(frozen=True, slots=True)
class TextDelta:
    """The next piece of the answer's text.

    `instead`: it takes the place of all text so far, which turned out to be a thought.
    """

    text: str
    instead: bool = False


@dataclass(frozen=True, slots=True)
class Unseen:
    """A picture or document that the model was not given, and why.

    "blind": it takes none of this kind. "refused": not this one. "too large": the request was.
    """

    media: Encoded
    why: Literal["blind", "refused", "too large"]


def without(turn: UserTurn, unseen: Sequence[Unseen]) -> UserTurn:
    """The turn without these media. Its text begins by saying so, as it names them further down."""
    labels = [one.media.label for one in unseen if one.media in turn.media]
    if not labels:
        return turn
    left = tuple(one for one in turn.media if one.label not in labels)
    note = f"(You can't see {', '.join(labels)} this time. The person is told why.)"
    return replace(turn, text=f"{note}{titles.SEPARATOR}{turn.text}", media=left)


@dataclass(frozen=True, slots=True)
class Finished:
    """The last event of every stream.

    `stop` is "end" (the answer is complete), "tools" (the turn's calls wait for results) or "length" (the
    answer was cut off at `max_tokens`). A refusal is raised as `ModelRefused` instead. `unseen` are the media
    of the request that the answer was made without. `less` says why it is not from the usual model.
    """

    turn: AssistantTurn
    stop: Literal["end", "tools", "length"]
    usage: Usage = Usage()
    unseen: tuple[Unseen, ...] = ()
    less: Less | None = None


StreamEvent: TypeAlias = TextDelta | Finished


# ----------------------------------------------------------------------
# Providers, and names of models, which may begin with their provider: `ollama:qwen3:8b`. Pure; reaches
# nobody.

VENDOR: Final = "anthropic"
"""The provider whose models go by their bare names, as they did when there was no other."""
OFFLINE: Final = "offline"
OFFLINE_MODEL: Final = "the offline model"
SERVERS: Final = "DISCOCLAW_MODEL_SERVERS"
"""The setting that says where the servers are whose addresses have no setting of their own."""


@dataclass(frozen=True, slots=True)
class Provider:
    """Facts about a provider. `address` is where it usually is; the offline model is nowhere.

    `key` and `moved` are the settings with its key ("": it needs none) and with another address of it;
    `keys_at` says where people make a key, for `discoclaw init`.
    """

    title: str
    address: str | None = None
    key: str = ""
    moved: str = SERVERS
    keys_at: str = ""


PROVIDERS: Final[Mapping[str, Provider]] = {
    VENDOR: Provider(
        "Anthropic",
        "https://api.anthropic.com",
        "ANTHROPIC_API_KEY",
        "ANTHROPIC_BASE_URL",
        keys_at="at https://console.anthropic.com/settings/keys; they begin with sk-ant-",
    ),
    "openai": Provider(
        "OpenAI",
        "https://api.openai.com/v1",
        "OPENAI_API_KEY",
        "OPENAI_BASE_URL",
        keys_at="at https://platform.openai.com/api-keys",
    ),
    "ollama": Provider("Ollama", "http://127.0.0.1:11434/v1"),
    "lmstudio": Provider("LM Studio", "http://127.0.0.1:1234/v1"),
    "llamacpp": Provider("llama.cpp", "http://127.0.0.1:8080/v1"),
    "vllm": Provider("vLLM", "http://127.0.0.1:8000/v1"),
    "openrouter": Provider(
        "OpenRouter",
        "https://openrouter.ai/api/v1",
        "OPENROUTER_API_KEY",
        keys_at="at https://openrouter.ai/keys; they begin with sk-or-",
    ),
    "gemini": Provider(
        "Google",
        "https://generativelanguage.googleapis.com/v1beta/openai",
        "GEMINI_API_KEY",
        keys_at="at https://aistudio.google.com/apikey",
    ),
    OFFLINE: Provider("the offline model"),
}
"""The providers, by their names in the settings. Those without a way of their own in `models/providers` speak
OpenAI's chat completions.
"""


def split(name: str) -> tuple[str, str]:
    """The provider that a name begins with, and the rest; ("", name) for a name without one."""
    before, colon, rest = name.strip().partition(":")
    provider = before.strip().lower()
    return (provider, rest.strip()) if colon and rest.strip() and provider in PROVIDERS else ("", name)


def joined(provider: str, plain: str) -> str:
    """The name by which a provider's model is counted, priced and shown."""
    return plain if provider in ("", VENDOR, OFFLINE) else f"{provider}:{plain}"


def shown(name: str, id: str) -> str:
    """A model for people: its name, with the `id` of an alias. The offline model has no other name."""
    if id == OFFLINE:
        return OFFLINE_MODEL
    return name if split(id)[1] == split(name)[1] else f"{name} ({id})"
