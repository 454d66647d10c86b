"""The known providers, and the models that names ask for. A provider is opened when a name first needs it.

A name without a provider is one of the usual provider's. Nothing is connected yet.
"""

from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, replace
from difflib import get_close_matches

from discoclaw.core.errors import ModelNotFound, ModelNotSetUp, SettingsError
from discoclaw.core.health import Finding
from discoclaw.core.model import VENDOR, ModelRequest, Purpose, StreamEvent, joined, split
from discoclaw.core.ports import Model, Shape
from discoclaw.models import offline
from discoclaw.models.config import ModelConfig, Models
from discoclaw.models.context import context_of

SERVERS = "DISCOCLAW_MODEL_SERVERS"
NOT_SET_UP = (
    "I can't reach the model `{name}`, which was chosen for here: its provider isn't set up. "
    "An admin can choose another one with `/model`."
)


def _anthropic(config: ModelConfig) -> Models:
    # The SDK is 3,000 modules, half of the time in which the whole bot is imported.
    from discoclaw.models import anthropic

    return anthropic.open_models(config)


def _openai(config: ModelConfig) -> Models:
    from discoclaw.models import openai  # slow to import, as above

    return openai.open_models(config)


@dataclass(frozen=True, slots=True)
class Provider:
    """Facts about a provider that isn't open yet. `address`: None if its adapter knows it, or it has none.

    `key` and `moved` are the settings with its key ("": it needs none) and with another address of it.
    """

    title: str
    opens: Callable[[ModelConfig], Models]
    address: str | None = None
    key: str = ""
    moved: str = SERVERS


PROVIDERS: Mapping[str, Provider] = {
    VENDOR: Provider(
        "Anthropic", _anthropic, "https://api.anthropic.com", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"
    ),
    "openai": Provider("OpenAI", _openai, "https://api.openai.com/v1", "OPENAI_API_KEY", "OPENAI_BASE_URL"),
    "ollama": Provider("Ollama", _openai, "http://127.0.0.1:11434/v1"),
    "lmstudio": Provider("LM Studio", _openai, "http://127.0.0.1:1234/v1"),
    "llamacpp": Provider("llama.cpp", _openai, "http://127.0.0.1:8080/v1"),
    "vllm": Provider("vLLM", _openai, "http://127.0.0.1:8000/v1"),
    "openrouter": Provider("OpenRouter", _openai, "https://openrouter.ai/api/v1", key="OPENROUTER_API_KEY"),
    "gemini": Provider(
        "Google", _openai, "https://generativelanguage.googleapis.com/v1beta/openai", key="GEMINI_API_KEY"
    ),
    "offline": Provider("the offline model", offline.open_models),
}
"""The providers, by their names in the settings. All that `_openai` opens speak OpenAI's chat completions."""


def provider_at(config: ModelConfig) -> Provider:
    """The provider of a configuration. Raises SettingsError for an unknown one."""
    provider = PROVIDERS.get(config.provider)
    if provider is None:
        *others, last = PROVIDERS
        raise SettingsError(
            f"DISCOCLAW_MODEL_PROVIDER={config.provider}: unknown provider; use {', '.join(others)} or {last}"
        )
    return provider


def open_models(config: ModelConfig) -> Models:
    """The configured models, each of its provider. Raises SettingsError, which says what to change."""
    pools = _Pools(config)
    chat, summary, facts = (pools.of(name) for name in (config.chat, config.summary, config.facts))
    return Models(
        chat=chat.chat,
        summary=summary.summary,
        facts=facts.facts,
        named=pools.named,
        aliases=pools.aliases(),
        id_of=pools.id_of,
        room_of=pools.room_of,
        left_out=pools.left_out,
        context_of=pools.context_of,
        others=pools.all,
    )


class _Pools:
    """The providers that were needed so far: one pool of connections for each."""

    def __init__(self, config: ModelConfig) -> None:
        self._config = config
        self._open: dict[str, Models] = {}

    def of(self, name: str) -> Models:
        """All models of the provider that a name is of. Raises SettingsError without its key or address."""
        config = self._config.of(split(name)[0])
        if config.provider not in self._open:
            provider = provider_at(config)
            if provider.opens is _openai:
                if provider.key and config.key is None and config.base_url is None:
                    raise SettingsError(
                        f"{provider.key} is not set, and the model {name} needs it; set it, or "
                        f"{provider.moved} for a server that needs none, or name another model"
                    )
                config = replace(config, base_url=config.base_url or provider.address)
            try:
                self._open[config.provider] = provider.opens(config)
            except SettingsError as error:
                near = get_close_matches(name.partition(":")[0], PROVIDERS, 1) if ":" in name else []
                also = f"; or is {name} one of the provider {near[0]}?" if near else ""
                raise SettingsError(f"{error}{also}") from None
        return self._open[config.provider]

    def named(self, name: str) -> Model:
        """The model with this name. Raises ModelNotSetUp for a provider that isn't set up."""
        try:
            return self.of(name).named(split(name)[1])
        except SettingsError as error:
            raise ModelNotSetUp(str(error), user_message=NOT_SET_UP.format(name=name)) from None

    def aliases(self) -> tuple[str, ...]:
        found = self._reached("")
        return found.aliases if found is not None else ()

    def id_of(self, name: str) -> str:
        """The name under which a model is counted."""
        provider, plain = split(name)
        found = self._reached(name)
        return joined(provider or self._config.provider, found.id_of(plain) if found is not None else plain)

    def room_of(self, name: str, purpose: Purpose, own: int) -> int:
        found = self._reached(name)
        return found.room_of(split(name)[1], purpose, own) if found is not None else own

    async def context_of(self, name: str) -> int | None:
        """How many tokens a model reads at once; None if its server doesn't say."""
        provider, plain = split(name)
        config, found = self._config.of(provider), self._reached(name)
        known = PROVIDERS[config.provider]
        address = config.base_url or known.address
        if found is None or address is None:
            return None
        local = not known.key or config.base_url not in (None, known.address)
        return await context_of(address, found.id_of(plain), config.key, local=local)

    def left_out(self) -> Iterator[Finding]:
        for models in self.all():
            yield from models.left_out()

    def all(self) -> tuple[Models, ...]:
        """The models of the providers that are open now."""
        return tuple(self._open.values())

    def _reached(self, name: str) -> Models | None:
        try:
            return self.of(name)
        except SettingsError:
            return None


# ----------------------------------------------------------------------
# A wrapper that gives each request to the model it names. Knows no provider.

MOST_OPEN = 50
NOT_THERE = (
    "The server doesn't have the model `{name}`, which was chosen for here. "
    "An admin can choose another one with `/model`."
)


class ByName:
    """The port `Model`: requests that name `name` or no model go to `usual`, others to what `named` makes."""

    def __init__(self, usual: Model, name: str, named: Callable[[str], Model]) -> None:
        self._usual = usual
        self._name = name
        self._named = named
        self._open: dict[str, Model] = {}

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        """Yield what the model says that the request names. Raises ModelError."""
        try:
            async with aclosing(self._of(request.model).stream(request)) as events:
                async for event in events:
                    yield event
        except ModelNotFound as error:
            if request.model in ("", self._name):
                raise
            raise ModelNotFound(str(error), user_message=NOT_THERE.format(name=request.model)) from None

    async def structured(
        self, *, purpose: Purpose, system: str, prompt: str, shape: type[Shape], max_tokens: int = 2048
    ) -> Shape:
        """Pass the request on to the usual model."""
        return await self._usual.structured(
            purpose=purpose, system=system, prompt=prompt, shape=shape, max_tokens=max_tokens
        )

    async def close(self) -> None:
        """Close the usual model, and with it the connections that all of them share."""
        await self._usual.close()

    def _of(self, name: str) -> Model:
        if name in ("", self._name):
            return self._usual
        if name not in self._open:
            if len(self._open) >= MOST_OPEN:
                self._open.clear()  # they hold no connections of their own
            self._open[name] = self._named(name)
        return self._open[name]
