"""The question of `discoclaw init` about the model: a vendor's with a key, or one on a server of somebody's.

Knows nothing about Discord or files.
"""

import asyncio
from dataclasses import replace

from discoclaw.checkup import pasted
from discoclaw.checkup.model import Exchange, check_key, found_at, models_at, small_for
from discoclaw.checkup.model import ask as ask_model_there
from discoclaw.cli.asking import Setup, Terminal, clean, right
from discoclaw.cli.common import say
from discoclaw.core.errors import ModelBadRequest, ModelKeyRejected, ModelNotFound, SettingsError
from discoclaw.core.model import PROVIDERS, VENDOR, split
from discoclaw.core.redact import without_login
from discoclaw.models.config import ModelConfig
from discoclaw.settings_types import servers_in

OLLAMA = "http://127.0.0.1:11434"
"""The address of a server that is offered."""
MODELS = ("DISCOCLAW_MODEL", "DISCOCLAW_SUMMARY_MODEL", "DISCOCLAW_DURABLE_MODEL")
"""All that name a model: another server has none of Anthropic's."""
PROVIDER = "DISCOCLAW_MODEL_PROVIDER"
MOST_SHOWN = 20
"""How many models of a server are shown; each can be named."""
KINDS = {
    VENDOR: "Anthropic's API, with a key",
    "openai": "OpenAI's API, with a key",
    "openrouter": "OpenRouter, with a key",
    "server": "a server at another address, such as Ollama, LM Studio, llama.cpp or vLLM",
}
OFFLINE = "no model: the bot only repeats what it remembers (as it is set now)"
HERE = tuple(name for name, one in PROVIDERS.items() if one.address and not one.key)
"""The providers that run on this machine."""


def ask_model(setup: Setup) -> dict[str, str]:
    """The settings of the model, by name; "" for those that have to go."""
    setup.tell("\n3. The model that answers")
    kind = _kind(setup)
    if kind == "offline":
        return {}
    keyed = kind in PROVIDERS and PROVIDERS[kind].key
    values = _keyed(setup, kind) if keyed else _Server(setup, kind).asked()
    return ({PROVIDER: ""} if PROVIDER in setup.written else {}) | values


def _kind(setup: Setup) -> str:
    """One of `KINDS`, of `HERE`, or "offline"."""
    if "ANTHROPIC_BASE_URL" in setup.flags:
        return "server"
    if (named := split(setup.flags.get("DISCOCLAW_MODEL", ""))[0]) in PROVIDERS and named != "offline":
        return named
    if "ANTHROPIC_API_KEY" in setup.flags:
        return VENDOR
    now = _now(setup)
    if setup.terminal is None:
        return now
    kinds = dict(KINDS)
    if setup.checks:  # with those that answer on this machine, or where the settings say that they are
        there = {name: _address(setup, name) for name in HERE}
        found = asyncio.run(found_at(there))
        kinds |= {name: f"{PROVIDERS[name].title}, found at {without_login(there[name])}" for name in found}
    if now not in kinds:
        kinds[now] = OFFLINE if now == "offline" else f"{PROVIDERS[now].title} (as it is set now)"
    names = list(kinds)
    return names[setup.terminal.one_of("   Which", list(kinds.values()), offered=names.index(now))]


def _now(setup: Setup) -> str:
    """The model in the settings so far, in words."""
    written = setup.written
    now = split(written.get("DISCOCLAW_MODEL", ""))[0] or written.get(PROVIDER) or VENDOR
    return "server" if now in (VENDOR, "openai") and PROVIDERS[now].moved in written else now


def _address(setup: Setup, name: str) -> str:
    """A provider's address, without the /v1. Raises SettingsError if the setting can't be read."""
    try:
        moved = servers_in(setup.written.get("DISCOCLAW_MODEL_SERVERS", ""))
    except ValueError as error:
        raise SettingsError(f"DISCOCLAW_MODEL_SERVERS=…: {error}") from None
    return moved.get(name, PROVIDERS[name].address or "").removesuffix("/v1")


def _keyed(setup: Setup, name: str) -> dict[str, str]:
    """A vendor's API, with its key and for others than Anthropic one of its models."""
    provider = PROVIDERS[name]
    elsewhere = provider.moved in setup.written and provider.moved.endswith("_BASE_URL")
    written = setup.written.get(provider.key, "")
    known = "" if elsewhere and pasted.vendor_of(written) != provider.title else written
    stays = _now(setup) in ((name, "offline") if name == VENDOR else (name,))
    now = setup.written.get("DISCOCLAW_MODEL", "") if stays else ""
    model = split(setup.flags.get("DISCOCLAW_MODEL", "") or now)[1]
    names: tuple[str, ...] | None = None

    def ask(terminal: Terminal | None) -> str:
        if (given := setup.flag("ANTHROPIC_API_KEY")) or terminal is None:
            return given or known
        if not known and provider.keys_at:
            setup.tell(f"   Keys are made {provider.keys_at}.")
        question = "   Key (one is set; Enter keeps it)" if known else "   Key (it is not shown)"
        return terminal.secret(question) or known

    def check(key: str) -> Exchange | None:
        nonlocal model, names
        if not key:
            raise SettingsError(f"{provider.key} is empty; paste a key")
        config = ModelConfig(name, chat=model or "sonnet", key=key)
        check_key(config)
        if name != VENDOR:
            address = _address(setup, name)
            listed = setup.checks and name in KINDS
            names = asyncio.run(models_at(address, key)) if listed else None
            model = _chosen(setup, names, model, address)
            config = replace(config, chat=model, base_url=f"{address}/v1" if name in KINDS else address)
        return _seen(config) if setup.checks else None

    key, seen = right(setup.terminal, ask, check)
    _say(seen)
    if name == VENDOR:
        values = {provider.key: key} | ({"DISCOCLAW_MODEL": model} if model else {})
        if elsewhere or not stays:  # the other server's models are unknown here
            values = dict.fromkeys((provider.moved, *MODELS), "") | values
        return values
    model = model or _chosen(setup, None, "", name)
    small = small_for(model, names or ())
    if small != model and not stays:
        say(f"   {clean(small)} learns and sums up in the background: it is small, so that this costs less.")
    gone = {provider.moved: ""} if elsewhere else {}
    named = {MODELS[0]: model} if stays else dict.fromkeys(MODELS, small) | {MODELS[0]: model}
    return gone | {PROVIDER: name, provider.key: key} | named


class _Server:
    """The questions about a server: its address, a key if it wants one, and one of its models.

    `here` is one of `HERE`, of which the address is known, and OpenAI's API is asked. Elsewhere it is
    Anthropic's, and OpenAI's if the server doesn't have that.
    """

    def __init__(self, setup: Setup, here: str) -> None:
        written = setup.written
        self._setup = setup
        self._here = here if here in HERE else ""
        self._offers = _address(setup, here) if self._here else ""
        was = PROVIDERS["openai" if written.get(PROVIDER) == "openai" else VENDOR]
        self._before = self._address = written.get(was.moved, "").removesuffix("/v1")
        if self._here:
            self._before = self._offers if _now(setup) == here else ""
        self._known = split(written.get("DISCOCLAW_MODEL", ""))[1] if self._before else ""
        self._keys = {self._before: written.get(was.key, "")} if self._before and not self._here else {}
        self._wanting = set[str]()  # servers that refused us for lack of a key
        self._model, self._way = "", VENDOR

    def asked(self) -> dict[str, str]:
        """The settings of the server."""
        terminal, written = self._setup.terminal, self._setup.written
        _, seen = right(terminal, self._typed, self._checked)
        _say(seen)
        self._model = self._model or _chosen(self._setup, None, "", self._address)
        models = dict.fromkeys(MODELS, self._model)
        if self._address == self._before:  # small models that somebody chose there stay
            main = written.get("DISCOCLAW_MODEL")
            models |= {name: written[name] for name in MODELS[1:] if written.get(name, main) != main}
        if models[MODELS[1]] == self._model:
            self._setup.tell("   It learns and sums up too, so that the server has to load only one model.")
        if self._way in HERE:
            return {"ANTHROPIC_BASE_URL": "", PROVIDER: self._way, **models}
        if self._way != VENDOR:
            reached = {"OPENAI_BASE_URL": f"{self._address}/v1", "OPENAI_API_KEY": self._key}
            return {"ANTHROPIC_BASE_URL": "", PROVIDER: self._way, **reached, **models}
        if written.get("ANTHROPIC_API_KEY") and not self._key:
            self._setup.tell("   The other key leaves .env, because the bot would send it to this server.")
        return {"ANTHROPIC_BASE_URL": self._address, **models, "ANTHROPIC_API_KEY": self._key}

    @property
    def _key(self) -> str:
        """The key for this server, "" for none. Another server's is never sent to it."""
        return self._setup.flags.get("ANTHROPIC_API_KEY") or self._keys.get(self._address, "")

    def _typed(self, terminal: Terminal | None) -> str:
        if found := self._offers:
            self._offers = ""  # next time, the address is asked for
            return found
        if (given := self._setup.flag("ANTHROPIC_BASE_URL")) or terminal is None:
            return given or self._address
        offered = without_login(self._address or OLLAMA)
        typed = terminal.words("   Its address", offered=offered)
        return self._address if self._address and typed == offered else typed  # with its password

    def _checked(self, typed: str) -> Exchange | None:
        server = pasted.server_at(typed)
        if server.remark:
            say(f"   {server.remark}")
        self._address, self._model = server.address, ""
        terminal = self._setup.terminal
        if terminal is not None and self._address in self._wanting:
            self._setup.flags.pop("ANTHROPIC_API_KEY", None)  # it was wrong
            self._keys[self._address] = terminal.secret("   Its key (it is not shown)")
        try:
            return self._answered()
        except ModelKeyRejected as error:
            self._wanting.add(self._address)
            if terminal is None:
                raise ModelKeyRejected(f"{error}; give it with --api-key-file") from None
            raise

    def _answered(self) -> Exchange | None:
        checks, key = self._setup.checks, self._key or None
        names = asyncio.run(models_at(self._address, key)) if checks else None
        self._model = self._known = _chosen(self._setup, names, self._known, self._address)
        known = self._here if self._here and self._address == _address(self._setup, self._here) else ""
        ways = ("openai" if key else known,) if known else (VENDOR, "openai")
        self._way = ways[0]
        if not checks:
            return None
        self._setup.tell(f"   Asking {clean(self._model)} to say hello. Loading a model may take a minute.")
        for self._way in ways:
            address = self._address if self._way == VENDOR else f"{self._address}/v1"
            try:
                return _seen(ModelConfig(self._way, chat=self._model, key=key, base_url=address))
            except (ModelNotFound, ModelBadRequest) as error:
                if self._way == ways[-1] and names is None:
                    raise
                reason = str(error)
        raise ModelNotFound(
            f"{without_login(self._address)} has this model, but answers neither POST /v1/messages nor POST "
            f"/v1/chat/completions ({reason}); use a newer version of its program"
        )


def _chosen(setup: Setup, names: tuple[str, ...] | None, known: str, address: str) -> str:
    """One of a server's models, or any where it doesn't say which it has. Raises SettingsError."""
    given, terminal = split(setup.flag("DISCOCLAW_MODEL"))[1], setup.terminal
    if given or terminal is None:
        return _of(names, given or known, without_login(address))
    if names is not None and len(names) == 1:
        return names[0]
    if names is None:
        return terminal.words("   The name of the model there", offered=known)
    many = len(names) > MOST_SHOWN
    say(f"   It has {len(names)} models{f'; these are the first {MOST_SHOWN}' if many else ''}:")
    offered = names.index(known) if known in names else 0
    return names[terminal.one_of("   Which model", names, offered=offered, most=MOST_SHOWN)]


def _of(names: tuple[str, ...] | None, name: str, where: str) -> str:
    """The model with this name, or the only one. Raises SettingsError if the server doesn't have it."""
    if names is not None and len(names) == 1 and not name:
        return names[0]
    if name and (names is None or name in names or f"{name}:latest" in names):
        return name
    if names is None:
        raise SettingsError("DISCOCLAW_MODEL is not set; name a model of that server with --model")
    listed = clean(", ".join(names[:MOST_SHOWN]))
    missing = f"has no model {name!r}" if name else "has several models"
    raise SettingsError(f"DISCOCLAW_MODEL: {where} {missing}; it has {listed} (name one with --model)")


def _seen(config: ModelConfig) -> Exchange:
    return asyncio.run(ask_model_there(config))


def _say(seen: Exchange | None) -> None:
    if seen is not None:
        say(f"   {clean(seen.model)} answers, in {seen.whole_s:.1f} s.")
