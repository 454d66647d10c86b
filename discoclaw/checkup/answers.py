"""The model that answers people and the small ones: what they can, how fast, and what a turn costs.

Every question is one that the bot itself asks: its own prompt, tools and shapes.
"""

import asyncio
import base64
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from PIL import Image

from discoclaw.app.build import build, now_ms
from discoclaw.app.models import config_of, is_own
from discoclaw.checkup.model import (
    QUESTION,
    Asked,
    Exchange,
    Listening,
    address_of,
    check_key,
    is_at_vendor,
    plainly,
    used_by,
)
from discoclaw.checkup.pasted import vendor_of
from discoclaw.checkup.store import cost_of
from discoclaw.checkup.topic import finding
from discoclaw.core.errors import ModelError, SettingsError
from discoclaw.core.health import Finding, State
from discoclaw.core.message import Author, Encoded, Inbound, Me, Place, Said
from discoclaw.core.model import PROVIDERS, VENDOR, ModelRequest, SystemBlock, Usage, UserTurn, shown, split
from discoclaw.core.ports import AnyOffer, Ending, Held, Model
from discoclaw.core.subject import user_subject
from discoclaw.core.times import snowflake_at
from discoclaw.core.usage import CHARS_A_TOKEN
from discoclaw.evals import casefile, run
from discoclaw.evals.casefile import Chain
from discoclaw.evals.judge import Verdict
from discoclaw.models.anthropic import ends
from discoclaw.models.config import ModelConfig, Models
from discoclaw.models.providers import open_models, usable
from discoclaw.settings import Settings
from discoclaw.show.words import count, line

# One turn of the real bot with the configured model, on a memory of its own that is removed afterwards.

ME = Me("1000000000000000900", "DiscoClaw")
PERSON = Author("1000000000000000001", "Anna")
PLACE = Place("dm", "1000000000000000500", None, "direct message", private=True)
WORDS = "Please remember this with your tool for that: my teapot is turquoise."
WANTED = "turquoise"
KEPT = (
    "model_provider",
    "api_key",
    "base_url",
    "model",
    "max_tokens",
    "model_timeout_s",
    "connect_timeout_s",
    "loop_timeout_s",
    "context_history",
    "history_budget",
    "prompt_budget",
    "timezone",
    "context_tokens",
    "tools_enabled",
    "summary_model",
    "durable_model",
    "inject_max_chars",
    "recall_limit",
    "enrich_depth",
    "content_dir",
    "dm_privacy",
    "commands_enabled",
)
"""Settings that decide about the prompt, the tools and the model."""
NEVER = 1000
"""Loops begin after so many turns: this is one."""


@dataclass(frozen=True, slots=True)
class Turn:
    """The result of a turn: the requests it took, what the person was told, and what is remembered now."""

    exchanges: Sequence[Exchange]
    told: str
    remembered: bool


async def take_turn(settings: Settings, model: Listening) -> Turn:
    """Let the bot answer somebody who wants something remembered. Failures are in the exchanges."""
    before = len(model.exchanges)
    with TemporaryDirectory(prefix="discoclaw-doctor-", ignore_cleanup_errors=True) as folder:
        reply = _Reply()
        # All other settings are as they are by default, so that it neither listens nor connects anywhere,
        # whatever is set beside these.
        kept: dict[str, Any] = {name: getattr(settings, name) for name in KEPT}
        apart = Settings.model_construct(
            **kept, data_dir=Path(folder), summary_every=NEVER, durable_every=NEVER
        )
        app = build(apart, model=model, history=_NoHistory(), me=lambda: ME)
        async with app:
            at, key = now_ms(), PLACE.session_key(PERSON.id)
            message = Inbound(str(snowflake_at(at)), PERSON, PLACE, key, WORDS, at, mentions_us=True)
            await app.talk.receive(message, reply.begun)
            await app.settle()
            view = await app.storage.memory.view(user_subject(PERSON.id))
            remembered = any(WANTED in item.text.lower() for item in view.active())
    return Turn(model.exchanges[before:], reply.text, remembered)


class _NoHistory:
    """The port `History` of a chat in which nothing was said."""

    async def pages(self, place: Place, message_id: str) -> AsyncGenerator[list[Said], None]:
        for page in list[list[Said]]():
            yield page


@dataclass(slots=True)
class _Reply:
    """The port `Reply` of a chat that nobody reads."""

    text: str = ""
    unsaid: str = ""
    shown: Callable[[str, str], None] = field(default=lambda message_id, channel_id: None)

    def begun(self, shown: Callable[[str, str], None]) -> "_Reply":
        self.shown = shown
        return self

    async def push(self, text: str) -> None:
        self.text += text

    async def retract(self, left: str) -> None:
        self.text = left

    async def doing(self, line: str) -> None:
        """Nobody waits for a sign of life."""

    async def note(self, sentences: Sequence[str]) -> None:
        """Nobody reads small print."""

    async def finish(self, ending: Ending = "other") -> str | None:
        message_id = str(snowflake_at(now_ms()))
        self.shown(message_id, "0")
        return message_id

    async def branch_off(self, name: str) -> Place | None:
        return None

    @property
    def held(self) -> Held:
        return Held(self.text, PLACE.channel_id, "")

    def hold(self) -> None:
        """Do nothing: this reply shows nothing to anybody."""

    async def drop(self) -> None:
        """There is nothing to drop."""

    async def unsend(self) -> None:
        """Nobody deletes a message."""

    async def offer(self, offer: AnyOffer) -> None:
        """Nobody presses a button."""

    async def fail(self, text: str, also: Sequence[str] = (), *, ending: Ending = "other") -> None:
        self.text = text


SLOW_S = 10.0
"""People begin to wonder after so many seconds without a word."""
TURN_S = 300.0
"""For the turn that is tried, with its tools."""
SLOW_RATE = 8.0
"""Tokens a second; people read about as fast."""
LEAST_CONTEXT = 8_000
"""The fewest tokens with room for memories and talk beside the bot's rules and tools."""
NO_TOOLS = "set DISCOCLAW_TOOLS_ENABLED=0"
DURABLE, SUMMARY = "DISCOCLAW_DURABLE_MODEL", "DISCOCLAW_SUMMARY_MODEL"
PICTURE_PX, PICTURE_COLOUR, COLOURS = 32, (255, 225, 0), ("yellow", "gold", "gelb")
LOOK = ModelRequest(
    (SystemBlock("You are being tested. Answer with one word."),),
    (UserTurn("Which colour does Picture 1 have?"),),
    max_tokens=64,
)
FORM_CASE = "plain-01"
FORM_CHAIN = Chain.model_validate(
    {
        "id": "checkup",
        "start": "2026-11-19T18:00:00+01:00",
        "updates": 1,
        "planted": [{"by": "A", "text": "I'm moving the release of Atlas to Friday", "update": 1}],
        "facts": [{"all": ["friday"], "since": 1, "example": "Anna moves the release of Atlas to Friday."}],
    }
)
"""The smallest talk that the summary loop sums up."""


@dataclass(slots=True)
class Examined:
    """The configured models during one checkup. `lane`: a local server answers one question after another.

    `answers` is set once it is known whether the model that answers people does. `can` are the parts of the
    sentence about what it is good enough for; `learns` says that the topic of learning adds one, and says it.
    """

    settings: Settings
    asked: Asked = field(default_factory=Asked)
    lane: asyncio.Lock = field(default_factory=asyncio.Lock)
    answers: bool | None = None
    can: list[str] = field(default_factory=list)
    learns: bool = False

    def good_for(self) -> Finding:
        """The finding about what the model is good enough for, in one line."""
        return Finding("good for", "good", f"{line(self.settings.model)} {'; '.join(self.can)}")

    @property
    def config(self) -> ModelConfig:
        return config_of(self.settings)

    def counted(self, model: Model, name: str) -> Listening:
        """A model whose answers count. `name` is what the settings call it."""
        return Listening(model, self.asked, split(name)[0] or self.settings.model_provider)


async def answers(seen: Examined) -> AsyncIterator[Finding]:
    """Findings about what the models can do, without those that only follow from an error."""
    async with seen.lane:
        seen.answers, settings, config = False, seen.settings, seen.config
        for name, model in (
            ("DISCOCLAW_MODEL", settings.model),
            (SUMMARY, settings.summary_model),
            (DURABLE, settings.durable_model),
        ):
            provider, plain = split(model)
            own = config.of(provider)
            if own.provider == VENDOR and is_at_vendor(own) and (day := ends(plain)) is not None:
                text = f"{name}={line(model)}: Anthropic switches this model off on {day}"
                yield Finding("deprecated", "warning", text, f"set {name} to sonnet, haiku or opus")
        try:
            check_key(config)
            models = open_models(config)
        except SettingsError as error:
            yield finding("model", error)
            return
        try:
            async for one in _answers(seen, models, seen.counted(models.chat, settings.model)):
                yield one
        finally:
            await models.close()


async def _answers(seen: Examined, models: Models, chat: Listening) -> AsyncIterator[Finding]:
    settings, config = seen.settings, seen.config
    own = config.of(split(config.chat)[0])
    first = await chat.exchange(QUESTION)
    if first.error is not None:
        yield finding("model", plainly(first.error, config))
        return
    seen.answers = True
    name = line(shown(config.chat, models.id_of(config.chat)))
    where = "" if own.provider == "offline" else f" at {address_of(own)}"
    yield Finding("model", "good", f"{name}{where} answers: first word after {first.first_s:.1f} s")
    for each in used_by(config):  # whether a vendor's key goes somewhere else
        provider, whose = PROVIDERS[each.provider], vendor_of(each.key or "")
        if whose == provider.title and not is_at_vendor(each) and not is_own(each.base_url):
            text = f"a key of {whose} is sent to {address_of(each)}"
            way_out = f"take it out of {provider.key}, unless that server passes it on"
            yield Finding("key", "warning", text, way_out)
    context, known = None, PROVIDERS[own.provider]
    if (own.base_url or known.address) is not None and not (known.key and is_at_vendor(own)):
        context = await models.context_of(config.chat)
    reads = settings.context_tokens or usable(context)
    try:
        async with asyncio.timeout(TURN_S):
            turn = await take_turn(settings.model_copy(update={"context_tokens": reads}), chat)
    except TimeoutError:
        seen.can.append("answers, but too slowly")
        yield Finding("turn", "bad", f"a turn of the bot took more than {TURN_S:.0f} s", "use a faster model")
    else:
        refused = {one.name for one in models.left_out()}
        remembers = "answers, but can't use tools"
        for one in _turn(turn, settings, context, chat.name, tools_refused="tools" in refused):
            if one.name == "tools" and one.state in ("good", "off"):
                remembers = "answers and remembers" if one.state == "good" else "answers"
            yield one
        seen.can.append(remembers)
    if own.provider == "offline":
        text = "the offline model only repeats what it remembers"
        yield Finding("model", "warning", text, "set ANTHROPIC_API_KEY")
        return
    forms = [one async for one in _forms(seen, models)]
    for one in forms:
        yield one
    if settings.files_enabled:
        pictures = await _picture(chat)
        yield pictures
        seen.can.append("sees pictures" if pictures.state == "good" else "can't see pictures")
    seen.can += [f"{one.name} don't work" for one in forms if one.name == "summaries" and one.state == "bad"]
    if not seen.learns:
        yield seen.good_for()
    for one in models.left_out():
        if one.name not in ("tools", "image"):  # they have findings of their own
            yield one


# ---------------------------------------------------------------------- a turn and its tools


def _turn(
    turn: Turn, settings: Settings, context: int | None, model: str, *, tools_refused: bool
) -> Iterator[Finding]:
    if not turn.exchanges:
        yield Finding("turn", "bad", "the bot asked the model nothing", "report this; it is a bug")
        return
    first = turn.exchanges[0]
    if first.error is not None:
        yield Finding("turn", "bad", f"a turn of the bot fails: {first.error}", "use another model")
        return
    # About the most tokens of a prompt: what is there always, and what may come to it.
    more = settings.history_budget + settings.inject_max_chars + settings.summary_max_chars
    longest = first.prompt_tokens + min(more, settings.prompt_budget) // CHARS_A_TOKEN
    used = sum((one.usage for one in turn.exchanges), Usage())
    cost = cost_of(settings, {model: used})
    yield Finding(
        "turn",
        "good",
        f"{first.prompt_tokens:,} tokens for a short message, up to about {longest:,} with a full memory and "
        f"long talk; {used.output_tokens:,} tokens of answer in {count(len(turn.exchanges), 'request')}; "
        f"the first sign after {first.first_s:.1f} s{f'; {cost}' if cost else ''}",
    )

    # Whether what the server reads at once is enough, and what the bot was told about it.
    needed = longest + settings.max_tokens
    if context is not None and settings.context_tokens is not None and context < settings.context_tokens:
        text = f"the server reads {context:,} tokens at once, and DISCOCLAW_CONTEXT_TOKENS says more"
        yield Finding("context", "bad", text, "leave it out, and the bot asks the server")
    elif context is not None and context < needed:
        text = (
            f"the server reads {context:,} tokens at once, and a long turn with its answer needs {needed:,}; "
            "the bot leaves out the oldest talk and answers more briefly"
        )
        level: State = "bad" if context < LEAST_CONTEXT else "warning"
        yield Finding("context", level, text, "start the server with a longer context (Ollama: num_ctx)")
    elif context is not None:
        yield Finding("context", "good", f"the server reads {context:,} tokens at once")

    faster = "use a smaller model or faster hardware"
    if first.first_s > SLOW_S:
        text = f"people wait {first.first_s:.0f} s until anything happens"
        yield Finding("speed", "warning", text, faster)
    last = turn.exchanges[-1]
    writing = last.whole_s - last.first_s
    if last.usage.output_tokens >= 20 and last.pieces >= 2 and writing > 0:  # else it is too little to tell
        rate = last.usage.output_tokens / writing
        if rate < SLOW_RATE:
            text = f"the model writes {rate:.0f} tokens a second, slower than people read"
            yield Finding("speed", "warning", text, faster)
        else:
            yield Finding("speed", "good", f"the model writes {rate:,.0f} tokens a second")
    yield _tools(turn, settings, refused=tools_refused)


def _tools(turn: Turn, settings: Settings, *, refused: bool) -> Finding:
    called = [name for one in turn.exchanges for name in one.calls]
    if not settings.tools_enabled:
        return Finding("tools", "off", "they are switched off (DISCOCLAW_TOOLS_ENABLED)")
    if refused:
        text = "the server refuses the bot's tools, so people are answered without"
        return Finding("tools", "bad", text, f"use a model that can call tools, or {NO_TOOLS}")
    failed = next((one.error for one in turn.exchanges if one.error is not None), None)
    if failed is not None:
        return Finding(
            "tools", "bad", f"the model fails after a tool: {failed}", "use a model that can call tools"
        )
    if not called:
        text = "told to remember something, the model called no tool"
        return Finding("tools", "warning", text, f"use a model that can call tools, or {NO_TOOLS}")
    if not turn.remembered:
        text = (
            f"told to remember something, the model called {line(called[0], 60)}, and nothing was remembered"
        )
        return Finding("tools", "warning", text, "use a larger model")
    return Finding(
        "tools", "good", f"told to remember something, the model called {line(called[0], 60)} and it worked"
    )


# ---------------------------------------------------------------------- forms and pictures


def learns(settings: Settings) -> bool:
    """Whether the bot learns about people from what they say."""
    return settings.durable_enabled and settings.extraction_enabled


async def _forms(seen: Examined, models: Models) -> AsyncIterator[Finding]:
    """Whether the small models answer in the form in which the loops read."""
    settings, config = seen.settings, seen.config
    facts = seen.counted(models.facts, settings.durable_model)
    summary = seen.counted(models.summary, settings.summary_model)
    if learns(settings):
        cases = casefile.chosen(casefile.cases(), ids=[FORM_CASE])
        try:
            (verdict,) = await run.extraction(cases, lambda _: facts)
            yield _form(verdict, "learning", DURABLE)
        except ModelError as error:
            yield finding("learning", plainly(error, config, settings.durable_model, DURABLE))
    if settings.summary_enabled:
        try:
            (verdict,) = await run.summaries([FORM_CHAIN], lambda _: summary)
            yield _form(verdict, "summaries", SUMMARY)
        except ModelError as error:
            yield finding("summaries", plainly(error, config, settings.summary_model, SUMMARY))


def _form(verdict: Verdict, what: str, variable: str) -> Finding:
    valid, answered = verdict.scores.get("valid", (0, 0))
    failed = next((one for one in verdict.faults if one.startswith("the model failed")), "")
    if failed:
        why = failed.partition(": ")[2]
        form = "it is not in the form that was asked for" if why.startswith("ModelBadOutput") else why
        text = f"the model's answer for {what} can't be used: {form}"
        return Finding(what, "bad", text, f"set {variable} to a larger model")
    if valid < answered:
        text = f"the model needed a second try to answer for {what} in the right form"
        return Finding(what, "warning", text, f"a larger {variable} would cost fewer tokens")
    return Finding(what, "good", f"the model answers for {what} in the right form")


async def _picture(chat: Listening) -> Finding:
    picture = BytesIO()
    Image.new("RGB", (PICTURE_PX, PICTURE_PX), PICTURE_COLOUR).save(picture, "PNG")
    data = base64.b64encode(picture.getvalue()).decode()
    shown = Encoded("yellow.png", "image/png", data, tokens=2, label="Picture 1")
    (turn,) = LOOK.turns
    assert isinstance(turn, UserTurn)
    done = await chat.exchange(replace(LOOK, turns=(replace(turn, media=(shown,)),)))
    if done.unseen:
        text = "the model takes no pictures; people who send one are told so"
        return Finding("pictures", "warning", text, "use a model that sees, or set DISCOCLAW_FILES=0")
    if done.error is not None:
        return Finding(
            "pictures", "warning", f"a picture makes the model fail: {done.error}", "set DISCOCLAW_FILES=0"
        )
    if not any(colour in done.said.lower() for colour in COLOURS):
        text = f"the model calls a yellow picture “{line(done.said, 60)}”, so it may not see any"
        return Finding("pictures", "warning", text, "use a model that sees, or set DISCOCLAW_FILES=0")
    return Finding("pictures", "good", "the model sees pictures")
