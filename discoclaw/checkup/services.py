"""The services that a configuration may name beside Discord and the model: vectors, transcription, relays."""

import asyncio
import io
import time
import wave
from collections.abc import AsyncIterator

from discoclaw.app.models import embedding_config_of, transcriber_of
from discoclaw.checkup.topic import finding
from discoclaw.core.errors import (
    DiscoClawError,
    EmbeddingError,
    RelayError,
    SettingsError,
    TranscriptionError,
    TranscriptionRefused,
)
from discoclaw.core.health import Finding
from discoclaw.embed.providers import open_embedder
from discoclaw.memory.disk.files import read_in_thread
from discoclaw.mirroring import find_keys, nostr_config_with
from discoclaw.nostr.event import Keys
from discoclaw.nostr.relays.connection import Timing
from discoclaw.nostr.relays.info import Limits
from discoclaw.nostr.relays.relay import Relay
from discoclaw.nostr.relays.wire import Filter
from discoclaw.recall.floor import NEVER, PROBE, texts
from discoclaw.session.floor import floor_from
from discoclaw.settings import EMBEDDED, Settings
from discoclaw.show.words import count, line

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
        await server.words(_silence(), "silence.wav", "audio/wav", timeout_s=settings.transcribe_timeout_s)
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


def _silence() -> bytes:
    written = io.BytesIO()
    with wave.open(written, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(SILENCE_HZ)
        file.writeframes(bytes(2 * SILENCE))
    return written.getvalue()


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
            nostr_config_with(settings, keys)
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
        limits = await relay.limits()
        read = await relay.fetch([Filter(authors=(keys.public,), since=int(time.time()))])
    except RelayError as error:
        why = str(error).removeprefix(f"{relay.name}: ")
        return Finding(relay.address, "warning", f"can't be reached ({line(why, 200)})", "check NOSTR_RELAYS")
    finally:
        await relay.close()
    if not read.complete:
        text = f"connects, and can't be read ({line(read.reason, 200)})"
        return Finding(relay.address, "warning", text, "use another relay")
    return _policy(relay.address, limits)


def _policy(name: str, limits: Limits) -> Finding:
    """The finding about who may write, as a relay announces it."""
    if limits.paid:
        text = "can be read, and wants a payment before it takes events"
        return Finding(name, "warning", text, "pay there, or use another relay")
    if limits.restricted:
        text = "can be read, and takes events only from those it knows"
        return Finding(name, "warning", text, "ask its admin to let the mirror's key write")
    return Finding(name, "good", "can be read, and says nothing against writing")
