"""What is said to a language model and what it says back: frozen values, and nothing of any provider.

A request is a list of turns. Within one answer the model may ask for tools: its turn then ends with
calls, we append a turn with their results, and ask again.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias


@dataclass(frozen=True, slots=True)
class SystemBlock:
    """One block of the system prompt. `cache` puts a prompt-cache breakpoint behind it."""

    text: str
    cache: bool = False


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool the model may call: its name, when to use it, and the JSON schema of its input object."""

    name: str
    description: str
    schema: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class ToolCall:
    """The model asks for a tool. `input` is whatever object the model sent: not yet checked."""

    id: str
    name: str
    input: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a tool answered, as text for the model. `failed` marks a clear failure."""

    call_id: str
    text: str
    failed: bool = False


@dataclass(frozen=True, slots=True)
class UserTurn:
    """What we say to the model."""

    text: str


@dataclass(frozen=True, slots=True)
class AssistantTurn:
    """What the model said: text, tool calls, and `raw`, the provider's own content.

    `raw` belongs to the door that made it and goes back through the same door untouched; nobody else
    reads it.
    """

    text: str
    calls: tuple[ToolCall, ...] = ()
    raw: object = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class ToolTurn:
    """The results of all calls of the assistant turn before it, in the same order."""

    results: tuple[ToolResult, ...]


Turn: TypeAlias = UserTurn | AssistantTurn | ToolTurn


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One request: stable system blocks first (so that prompt caches hit), then the turns so far.

    `may_call` False asks for an answer without further calls; the tools stay named, since turns that hold
    calls need them. `subject` is whose talk this is, if an answer to it may be kept; no provider is told.
    """

    system: tuple[SystemBlock, ...]
    turns: tuple[Turn, ...]
    tools: tuple[ToolSpec, ...] = ()
    max_tokens: int = 4096
    may_call: bool = True
    subject: str | None = None


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens as the provider counted them."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0


@dataclass(frozen=True, slots=True)
class TextDelta:
    """A further piece of the answer's text."""

    text: str


@dataclass(frozen=True, slots=True)
class Finished:
    """The last event of every stream.

    `stop` is "end" (complete), "tools" (the turn's calls wait for results) or "length" (cut at
    `max_tokens`). A refusal is raised as `ModelRefused` instead.
    """

    turn: AssistantTurn
    stop: Literal["end", "tools", "length"]
    usage: Usage = Usage()


StreamEvent: TypeAlias = TextDelta | Finished
