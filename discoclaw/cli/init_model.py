"""The question of `discoclaw init` about the model: Anthropic's with a key, or one on another server.

Knows nothing about Discord or files.
"""

import asyncio
from dataclasses import replace

from discoclaw.checkup import pasted
from discoclaw.checkup.asked import Exchange
from discoclaw.checkup.listing import models_at
from discoclaw.checkup.model import ask as ask_model_there
from discoclaw.checkup.model import check_key
from discoclaw.cli.asking import Terminal, clean, right
from discoclaw.cli.common import say
from discoclaw.cli.setup import Setup
from discoclaw.core.errors import ModelKeyRejected, ModelNotFound, SettingsError
from discoclaw.core.redact import without_login
from discoclaw.models.config import ModelConfig

OLLAMA = "http://127.0.0.1:11434"
"""What is offered as the address of a server."""
MODELS = ("DISCOCLAW_MODEL", "DISCOCLAW_SUMMARY_MODEL", "DISCOCLAW_DURABLE_MODEL")
"""All that name a model: another server has none of Anthropic's."""
MOST_SHOWN = 20
"""So many models of a server are shown; each can be named."""
KINDS = {
    "key": "Anthropic's API, with a key",
    "server": "a server of your own, such as Ollama or llama.cpp",
    "offline": "no model: the bot only repeats what it remembers (as it is set now)",
}


def ask_model(setup: Setup) -> dict[str, str]:
    """The settings of the model, by name; "" for those that have to go."""
    setup.tell("\n3. The model that answers")
    kind = _kind(setup)
    if kind == "offline":
        return {}
    values = _anthropic(setup) if kind == "key" else _Server(setup).asked()
    if "DISCOCLAW_MODEL_PROVIDER" in setup.written:
        values["DISCOCLAW_MODEL_PROVIDER"] = ""
    return values


def _kind(setup: Setup) -> str:
    """Which of `KINDS`."""
    if "ANTHROPIC_BASE_URL" in setup.flags:
        return "server"
    if "ANTHROPIC_API_KEY" in setup.flags:
        return "key"
    is_offline = setup.written.get("DISCOCLAW_MODEL_PROVIDER") == "offline"
    now = "offline" if is_offline else "server" if "ANTHROPIC_BASE_URL" in setup.written else "key"
    if setup.terminal is None:
        return now
    named = [kind for kind in KINDS if is_offline or kind != "offline"]
    found = setup.terminal.one_of("   Which", [KINDS[kind] for kind in named], offered=named.index(now))
    return named[found]


def _anthropic(setup: Setup) -> dict[str, str]:
    """A key for Anthropic's API."""
    elsewhere = "ANTHROPIC_BASE_URL" in setup.written
    written = setup.written.get("ANTHROPIC_API_KEY", "")
    known = "" if elsewhere and not written.startswith("sk-ant-") else written
    now = "" if elsewhere else setup.written.get("DISCOCLAW_MODEL", "")
    model = setup.flags.get("DISCOCLAW_MODEL", "") or now
    config = ModelConfig("anthropic", chat=model or "sonnet")

    def ask(terminal: Terminal | None) -> str:
        if (given := setup.flag("ANTHROPIC_API_KEY")) or terminal is None:
            return given or known
        if not known:
            setup.tell(
                "   Keys are made at https://console.anthropic.com/settings/keys; they begin with sk-ant-."
            )
        question = "   Key (one is set; Enter keeps it)" if known else "   Key (it is not shown)"
        return terminal.secret(question) or known

    def check(key: str) -> Exchange | None:
        if not key:
            raise SettingsError("ANTHROPIC_API_KEY is empty; paste a key")
        check_key(replace(config, key=key))
        return _seen(replace(config, key=key)) if setup.checks else None

    key, seen = right(setup.terminal, ask, check)
    _say(seen)
    values = {"ANTHROPIC_API_KEY": key} | ({"DISCOCLAW_MODEL": model} if model else {})
    if elsewhere:  # the other server's models are unknown here
        values = dict.fromkeys(("ANTHROPIC_BASE_URL", *MODELS), "") | values
    return values


class _Server:
    """The questions about another server: its address, a key if it wants one, and one of its models."""

    def __init__(self, setup: Setup) -> None:
        written = setup.written
        self._setup = setup
        self._before = self._address = written.get("ANTHROPIC_BASE_URL", "")
        self._known = written.get("DISCOCLAW_MODEL", "") if self._before else ""
        self._keys = {self._before: written.get("ANTHROPIC_API_KEY", "")} if self._before else {}
        self._wanting = set[str]()  # servers that refused us for lack of a key
        self._model = ""

    def asked(self) -> dict[str, str]:
        """The settings of the server."""
        terminal, written = self._setup.terminal, self._setup.written
        _, seen = right(terminal, self._typed, self._checked)
        _say(seen)
        self._model = self._model or self._chosen(terminal, None)
        models = dict.fromkeys(MODELS, self._model)
        if self._address == self._before:  # small models that somebody chose there stay
            main = written.get("DISCOCLAW_MODEL")
            models |= {name: written[name] for name in MODELS[1:] if written.get(name, main) != main}
        if written.get("ANTHROPIC_API_KEY") and not self._key:
            self._setup.tell("   The other key leaves .env, because the bot would send it to this server.")
        return {"ANTHROPIC_BASE_URL": self._address, **models, "ANTHROPIC_API_KEY": self._key}

    @property
    def _key(self) -> str:
        """The key for this server, "" for none. Another server's is never sent to it."""
        return self._setup.flags.get("ANTHROPIC_API_KEY") or self._keys.get(self._address, "")

    def _typed(self, terminal: Terminal | None) -> str:
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
        terminal, checks = self._setup.terminal, self._setup.checks
        names = asyncio.run(models_at(self._address, self._key or None)) if checks else None
        self._model = self._known = self._chosen(terminal, names)
        if not checks:
            return None
        self._setup.tell(f"   Asking {clean(self._model)} to say hello. Loading a model may take a minute.")
        config = ModelConfig("anthropic", chat=self._model, key=self._key or None, base_url=self._address)
        try:
            return _seen(config)
        except ModelNotFound:
            if names is None:
                raise
            raise ModelNotFound(
                f"{without_login(self._address)} has this model, but doesn't answer POST /v1/messages; use "
                "a newer version of Ollama or llama.cpp, or LiteLLM in front of it"
            ) from None

    def _chosen(self, terminal: Terminal | None, names: tuple[str, ...] | None) -> str:
        """One of the server's models, or any where it doesn't say which it has. Raises SettingsError."""
        given = self._setup.flag("DISCOCLAW_MODEL")
        if given or terminal is None:
            return _of(names, given or self._known, without_login(self._address))
        if names is not None and len(names) == 1:
            return names[0]
        if names is None:
            return terminal.words("   The name of the model there", offered=self._known)
        many = len(names) > MOST_SHOWN
        say(f"   It has {len(names)} models{f'; these are the first {MOST_SHOWN}' if many else ''}:")
        offered = names.index(self._known) if self._known in names else 0
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
