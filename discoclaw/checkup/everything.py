"""The list of everything that `discoclaw doctor` looks at, in the order in which people read it.

The running bot, `.env`, what the small model learns, and Python's packages are looked at here.
"""

import asyncio
import io
import os
import platform
import stat
import time
import wave
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any, Final, TypeAlias, get_args

from packaging.requirements import Requirement

from discoclaw import __version__
from discoclaw import settings as settings_module
from discoclaw.app.models import embedding_config_of, transcriber_of
from discoclaw.checkup.answers import DURABLE, Examined, answers, learns
from discoclaw.checkup.folder import folder
from discoclaw.checkup.model import plainly
from discoclaw.checkup.on_discord import on_discord
from discoclaw.checkup.store import costs, database, ledgers
from discoclaw.checkup.topic import Topic, finding
from discoclaw.core.errors import (
    DiscoClawError,
    EmbeddingError,
    ModelError,
    RelayError,
    SettingsError,
    TranscriptionError,
    TranscriptionRefused,
)
from discoclaw.core.health import Finding, State
from discoclaw.embed.providers import open_embedder
from discoclaw.evals import casefile, run
from discoclaw.evals.judge import Verdict
from discoclaw.memory.folder import locked
from discoclaw.memory.stores import POSTGRES
from discoclaw.mirroring import find_keys, nostr_config
from discoclaw.models.providers import open_models
from discoclaw.nostr.event import Keys
from discoclaw.nostr.relays.connection import Timing
from discoclaw.nostr.relays.protocol import Filter
from discoclaw.nostr.relays.relay import Relay
from discoclaw.recall.floor import NEVER, PROBE, texts
from discoclaw.session.meaning import floor_from
from discoclaw.settings import EMBEDDED, Settings
from discoclaw.settings_types import Listen
from discoclaw.show.words import count, line
from discoclaw.store.files import read_in_thread

NAMES = (
    "program",
    "settings",
    "folder",
    "discord",
    "model",
    "learning",
    "embeddings",
    "voice",
    "mirror",
    "database",
    "ledgers",
    "costs",
    "bot",
)
"""The topics there are, for the command line."""
LONG_S = 3600.0
"""For what has a limit of its own for each step, and may have many steps."""

Asks: TypeAlias = Callable[[Listen], tuple[Mapping[str, Any] | None, str]]
"""Asks /readyz: returns what it says, or None and why it says nothing of use. Blocking."""
Progress = Callable[[str], None]
"""Called with a line that says how far something long has come."""


def topics(seen: Examined, *, quick: bool, progress: Progress, ask: Asks) -> list[Topic]:
    """Everything that these settings allow to look at. `quick` leaves out what takes a minute.

    `ask` asks the running bot how it is.
    """
    settings = seen.settings
    found = [
        *without_settings(settings, ()),
        Topic("folder", "Data folder", partial(folder, settings)),
        Topic("discord", "Discord", partial(on_discord, settings), within_s=90.0),
        Topic("model", "Model", partial(answers, seen), within_s=LONG_S),
        Topic("embeddings", "Embeddings", partial(embeddings, settings), within_s=150.0),
        Topic(
            "voice", "Voice messages", partial(voice, settings), within_s=settings.transcribe_timeout_s + 10
        ),
        Topic("mirror", "Mirror", partial(relays, settings), within_s=60.0),
        Topic("database", "PostgreSQL", partial(database, settings), within_s=60.0),
        Topic("ledgers", "Memories", partial(ledgers, settings, progress), within_s=LONG_S),
        Topic("costs", "Costs", partial(costs, settings)),
        Topic("bot", "The running bot", partial(running, settings, ask)),
    ]
    if not quick and settings.model_provider != "offline" and learns(settings):
        found.insert(5, Topic("learning", "Learning", partial(learning, seen, progress), within_s=LONG_S))
    return found


def without_settings(settings: Settings | None, faults: tuple[str, ...]) -> list[Topic]:
    """The topics that need no settings, for when these can't be read; `faults` are the lines that say why."""
    return [
        Topic("program", "Program", partial(program, settings)),
        Topic("settings", "Settings", partial(environment, faults)),
    ]


# ---------------------------------------------------------------------- the running bot


async def running(settings: Settings, ask: Asks) -> AsyncIterator[Finding]:
    """The running bot's findings about itself, if it can be asked."""
    runs = await read_in_thread(locked, settings.memory_dir)
    if settings.metrics is None or not settings.metrics.port:
        text = "it can't be asked how it is, because DISCOCLAW_METRICS is not set"
        way_out = "set an address and a port, for example 127.0.0.1:9464" if runs else ""
        yield Finding("the bot", "off", text, way_out)
        return
    said, fault = await read_in_thread(ask, settings.metrics)
    if said is None:
        text, _, way_out = fault.partition("; ")
        # Without the lock it doesn't run, which is nothing wrong.
        yield Finding("the bot", "unknown" if runs is False else "bad", text, way_out)
        return
    found = []
    for one in said["findings"]:
        if isinstance(one, Mapping):
            name, text, way_out = (line(str(one.get(key, ""))) for key in ("name", "text", "wayOut"))
            state: State = next((each for each in get_args(State) if each == one.get("state")), "unknown")
            found.append(Finding(name, state, text, way_out))
            yield found[-1]
    if said.get("ready") is True:
        yield Finding("the bot", "good", "it says that it is ready")
    elif all(one.state != "bad" for one in found):
        yield Finding("the bot", "bad", "it says that it isn't ready", "see its log")


# ---------------------------------------------------------------------- .env and the variables

FILE = Path(".env")
_OTHERS = 0o077


async def environment(faults: tuple[str, ...]) -> AsyncIterator[Finding]:
    """Faults of the settings themselves. `faults`: the lines of values that can't be read."""
    for fault in faults:
        variable, _, why = fault.partition(": ")
        way_out = "correct it in .env or in the environment"
        yield Finding(variable.partition("=")[0], "bad", fault if why else variable, way_out)
    yield _file()
    if faults and faults[0].startswith(".env"):
        return  # it can't be read at all
    unknown = settings_module.unknown()
    for one in unknown:
        text, _, way_out = one.partition("; ")
        yield Finding(text.partition(" ")[0], "warning", text, way_out)
    if not (unknown or faults):
        yield Finding("variables", "good", "every variable is known, and every value allowed")


def _file() -> Finding:
    try:
        mode = FILE.stat().st_mode
    except FileNotFoundError:
        return Finding(
            ".env", "good", f"there is none in {Path.cwd()}; the settings come from the environment"
        )
    except OSError as error:
        return Finding(".env", "bad", f"can't be read: {error.strerror or error}", "see who owns it")
    if not os.access(FILE, os.R_OK):
        return Finding(".env", "bad", "this user may not read it", "let the bot's user own it (chown)")
    if os.name != "nt" and mode & _OTHERS:
        text = f"other users of this machine can read it (mode {stat.S_IMODE(mode):04o}), and it has secrets"
        return Finding(".env", "warning", text, "run: chmod 600 .env")
    return Finding(".env", "good", "only this user can read it")


# ---------------------------------------------------------------------- what the small model learns

CASES: Final = {
    "plain-02": "a fact",
    "third-02": "a fact about somebody else",
    "sensitive-01": "something private",
    "update-02": "something that changed",
    "empty-02": "talk with nothing in it",
}
"""The built-in talks, and what each is about."""
FAULTS: Final = (
    ("missing: ", "it was not learned"),
    ("not private: ", "it was not kept private"),
    ("beside the old item", "the old memory stays in use beside the new one"),
    ("forbidden by ", "something was learned that is not so, or not worth it"),
    ("too much: ", "too much was learned"),
    ("the model failed: ModelBadOutput", "the answer was not in the form that was asked for"),
)
"""How the evals begin to say what went wrong, and what that means to people."""
ENOUGH = 3
"""The fewest right ones: with fewer, people will be wrong about what the bot knows."""
NOT_NEEDED = "not needed: "
MORE = "see `discoclaw eval extraction`, and try a larger DISCOCLAW_DURABLE_MODEL"


async def learning(seen: Examined, progress: Callable[[str], None]) -> AsyncIterator[Finding]:
    """One finding for all talks, and one for each that went wrong. Waits for the other questions."""
    settings = seen.settings
    async with seen.lane:
        if seen.answers is False:
            yield Finding("learning", "unknown", "not tried, because the model doesn't answer")
            return
        models, cases = open_models(seen.config), casefile.chosen(casefile.cases(), ids=tuple(CASES))
        facts = seen.counted(models.facts, settings.durable_model)

        def done(number: int) -> None:
            progress(f"learning from built-in talks: {number} of {len(cases)}")

        done(0)
        try:
            verdicts = await run.extraction(cases, lambda _: facts, done=done)
        except ModelError as error:
            yield finding("learning", plainly(error, seen.config, settings.durable_model, DURABLE))
            return
        finally:
            await models.close()
    wrong = [one for one in verdicts if _faults(one)]
    right = len(verdicts) - len(wrong)
    text = f"{right} of {len(verdicts)} built-in talks were learned from as they should be"
    state: State = "good" if not wrong else "warning" if right >= ENOUGH else "bad"
    yield Finding("learning", state, text, MORE if wrong else "")
    by = f" with {line(settings.durable_model)}" if settings.durable_model != settings.model else ""
    seen.can.append(f"learning{by}: {right} of {len(verdicts)} examples")
    yield seen.good_for()
    for one in wrong:
        more = f"see `discoclaw eval extraction --case {one.id}`"
        fault = _faults(one)[0]
        meant = next((said for start, said in FAULTS if fault.startswith(start)), line(fault, 200))
        yield Finding(CASES[one.id], "warning", meant, more)


def _faults(verdict: Verdict) -> list[str]:
    """The faults, without things learned in addition, which cost nobody anything."""
    return [one for one in verdict.faults if not one.startswith(NOT_NEEDED)]


# ---------------------------------------------------------------------- Python and packages

NAME = "discoclaw"
EXTRAS = ("postgres", "vectors", "local-vectors")
"""The optional parts that settings may ask for, the smaller ones first."""


async def program(settings: Settings | None) -> AsyncIterator[Finding]:
    """Python, and the packages. Without settings, those that every configuration needs."""
    try:
        about = metadata.metadata(NAME)
    except metadata.PackageNotFoundError:
        about = None
    version, python = platform.python_version(), (about["Requires-Python"] or "") if about else ""
    if python and not Requirement(f"python{python}").specifier.contains(version, prereleases=True):
        text = f"this is Python {version}, and {python} is needed"
        yield Finding("Python", "bad", text, "install a newer Python")
    else:
        yield Finding("Python", "good", f"Python {version} on {platform.system()}")
    if about is None:
        text = "DiscoClaw isn't installed as a package here, so nobody says which packages it needs"
        yield Finding("packages", "unknown", text, "install it with `pip install .`")
        return
    extras = _extras(settings) if settings is not None else frozenset()
    wanted = map(Requirement, metadata.requires(NAME) or [])
    needed = [one for one in wanted if any(_applies(one, name) for name in ("", *extras))]
    wrong = list(_wrong(needed))
    for fault in wrong:
        yield fault
    if not wrong:
        more = f", with {', '.join(sorted(extras))}" if extras else ""
        text = f"all {len(needed)} requirements of discoclaw {__version__} are met{more}"
        yield Finding("packages", "good", text)


def _extras(settings: Settings) -> frozenset[str]:
    """The optional parts of the package that the settings need."""
    wanted = set()
    if settings.store.get_secret_value().startswith(POSTGRES):
        wanted.add("postgres")
    provider = settings.embedding_provider.strip().lower()
    if provider == "local":
        wanted.add("local-vectors")
    elif provider or (settings.embedding_auto and embedding_config_of(settings).openai_key is not None):
        wanted.add("vectors")
    return frozenset(wanted)


def _wrong(needed: list[Requirement]) -> Iterator[Finding]:
    for one in needed:
        try:
            version = metadata.version(one.name)
        except metadata.PackageNotFoundError:
            extra = None if _applies(one, "") else next(name for name in EXTRAS if _applies(one, name))
            install = f"'{NAME}[{extra}]'" if extra is not None else f"'{one.name}{one.specifier}'"
            yield Finding("packages", "bad", f"{one.name} is not installed", f"run: pip install {install}")
            continue
        if not one.specifier.contains(version, prereleases=True):
            why = f"{one.name} is {version}, and {one.specifier} is needed"
            yield Finding("packages", "bad", why, f"run: pip install '{one.name}{one.specifier}'")


def _applies(one: Requirement, extra: str) -> bool:
    return one.marker is None or one.marker.evaluate({"extra": extra})


# The services that a configuration may name beside Discord and the model: vectors, transcription, relays.

EMBED_S = 60.0
SLOW_EMBED_S = 0.25
"""Longer than this no reply waits for a vector (`session/meaning`)."""
RELAY_S = 5.0
SILENCE_HZ, SILENCE = 16_000, 4_000
"""Samples a second, as whisper.cpp's server wants them, and samples in all: a quarter of a second."""


async def embeddings(settings: Settings) -> AsyncIterator[Finding]:
    """The embedding provider, with texts of ours."""
    try:
        embedder = open_embedder(embedding_config_of(settings))
    except EmbeddingError as error:
        yield finding("embeddings", error)
        return
    if embedder is None:
        yield Finding("embeddings", "off", "none are set up; memories are found by their words")
        return
    try:
        began = time.monotonic()
        (vector,) = await embedder.embed([PROBE], timeout_s=EMBED_S)
        took = time.monotonic() - began
        where = "on this machine" if embedder.stays_here else "elsewhere, so memories leave this machine"
        yield Finding(
            "embeddings", "good", f"{embedder.name}: {len(vector)} numbers after {took:.2f} s, {where}"
        )
        if took > SLOW_EMBED_S:
            text = f"no reply waits longer than {SLOW_EMBED_S} s for a vector, so most will do without"
            yield Finding("speed", "warning", text, "use a faster provider")
        floor = floor_from(await embedder.embed(texts(), timeout_s=EMBED_S))
        if floor >= NEVER:
            text = "its vectors don't tell what belongs together from what doesn't, so they aren't used"
            yield Finding("meaning", "warning", text, "use another EMBEDDING_MODEL")
        else:
            yield Finding("meaning", "good", f"what has a cosine from {floor:.2f} on belongs together")
    except EmbeddingError as error:
        yield finding("embeddings", error)
    finally:
        await embedder.close()


async def voice(settings: Settings) -> AsyncIterator[Finding]:
    """The transcription server, with a moment of silence."""
    try:
        server = transcriber_of(settings)
    except SettingsError as error:
        yield finding("transcription", error)
        return
    if server is None:
        yield Finding("transcription", "off", "no server is set up; voice messages are not listened to")
        return
    began = time.monotonic()
    try:
        written = io.BytesIO()
        with wave.open(written, "wb") as file:
            file.setnchannels(1)
            file.setsampwidth(2)
            file.setframerate(SILENCE_HZ)
            file.writeframes(bytes(2 * SILENCE))
        sound, within_s = written.getvalue(), settings.transcribe_timeout_s
        await server.words(sound, "silence.wav", "audio/wav", timeout_s=within_s)
    except TranscriptionRefused as error:
        text = f"the server answers, and refuses a moment of silence ({error})"
        yield Finding("transcription", "warning", text, "send a voice message to try it")
        return
    except TranscriptionError as error:
        yield finding("transcription", error)
        return
    finally:
        await server.close()
    took = time.monotonic() - began
    yield Finding("transcription", "good", f"the server listened to a moment of silence in {took:.1f} s")


# ---------------------------------------------------------------------- relays


async def relays(settings: Settings) -> AsyncIterator[Finding]:
    """The key of the mirror, and each relay: whether it can be read. Nothing is published."""
    if not settings.mirrors:
        yield Finding("mirror", "off", "no relays are set up; the memory is mirrored nowhere")
        return
    embedded = EMBEDDED in settings.nostr_relays
    try:
        keys = await read_in_thread(find_keys, settings)
        if keys is not None:
            nostr_config(settings, keys)
            yield Finding("key", "good", f"the mirror's key is {keys.npub}")
        elif embedded:
            yield Finding("key", "good", "there is none yet; the bot makes one at its first start")
        else:
            yield Finding("key", "bad", "there is no key for the mirror", "run `discoclaw nostr new-key`")
    except DiscoClawError as error:
        yield finding("key", error)
        return
    if embedded:
        yield Finding("relays", "good", "the embedded relay runs while the bot runs")
        return
    keys, wait_s = keys or Keys.generate(), min(RELAY_S, settings.nostr_timeout_s)
    found = await asyncio.gather(*(_relay(url, keys, wait_s) for url in settings.nostr_relays))
    for one in found:
        yield one
    works = sum(one.state == "good" for one in found)
    if works < settings.nostr_min_acks:
        least = f"NOSTR_MIN_ACKS={settings.nostr_min_acks}"
        text = f"{count(works, 'relay')} can be used, and {least} are needed"
        yield Finding("relays", "bad", text, "add relays, or lower NOSTR_MIN_ACKS")


async def _relay(url: str, keys: Keys, wait_s: float) -> Finding:
    relay = Relay(url, keys, timing=Timing(timeout_s=wait_s))
    relay.start()
    try:
        await relay.ready(wait_s)
        limits = await relay.informed()
        read = await relay.fetch([Filter(authors=(keys.public,), since=int(time.time()))])
    except RelayError as error:
        why = str(error).removeprefix(f"{relay.url}: ")
        return Finding(relay.address, "warning", f"can't be reached ({line(why, 200)})", "check NOSTR_RELAYS")
    finally:
        await relay.close()
    if not read.complete:
        text = f"connects, and can't be read ({line(read.reason, 200)})"
        return Finding(relay.address, "warning", text, "use another relay")
    if limits.paid:
        text = "can be read, and wants a payment before it takes events"
        return Finding(relay.address, "warning", text, "pay there, or use another relay")
    if limits.restricted:
        text = "can be read, and takes events only from those it knows"
        return Finding(relay.address, "warning", text, "ask its admin to let the mirror's key write")
    return Finding(relay.address, "good", "can be read, and says nothing against writing")
