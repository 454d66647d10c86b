"""What the settings say of models, embeddings and transcription; and the models, opened and counted."""

import ipaddress
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import tzinfo
from functools import partial
from typing import Final
from urllib.parse import urlsplit

from pydantic import SecretStr

from discoclaw.app.services import Part
from discoclaw.core.errors import EmbeddingError, MemoryFault, SettingsError
from discoclaw.core.health import Check, Finding, Seen
from discoclaw.core.message import Me
from discoclaw.core.model import OFFLINE, PROVIDERS, SERVERS, VENDOR, Reads
from discoclaw.core.ports import Clock, Model, Service, Transcriber
from discoclaw.core.redact import Redactor
from discoclaw.core.subject import person_of, user_subject
from discoclaw.core.usage import Prices
from discoclaw.core.zones import zone_of
from discoclaw.embed.providers import EmbeddingConfig, open_embedder
from discoclaw.loops.embedding import Embedding, TalkEmbedding
from discoclaw.loops.facts import FactsLoop, FactsRules
from discoclaw.loops.nearest import Nearest
from discoclaw.loops.summary import SummaryLoop, SummaryRules
from discoclaw.loops.traits import Traits
from discoclaw.memory.conversations.responses import Responses
from discoclaw.memory.people.asked_back import AskedBack
from discoclaw.models.config import Access, ModelConfig
from discoclaw.models.config import Models as Opened
from discoclaw.models.offline import OfflineModel
from discoclaw.models.providers import ByName, Contexts, open_models
from discoclaw.recall.talk import Meant
from discoclaw.search.talk_vectors import Provider, TalkVectors
from discoclaw.session.caching import CachingModel
from discoclaw.session.meaning import Meaning, TalkMeaning
from discoclaw.settings import Settings, names
from discoclaw.storage import Storage
from discoclaw.usage.accounts import Accounts
from discoclaw.usage.metered import Metered, MeteredEmbedder, MeteredTranscriber, Rates, StandIns, prices
from discoclaw.voice import HttpTranscriber, SeenTranscriber

log = logging.getLogger(__name__)

WAY_OUT: Final = "look at the provider's status page, the model's name, its address and the key"
OWN_NAMES: Final = ("localhost", ".local", ".internal", ".lan")


@dataclass(frozen=True, slots=True)
class Models:
    """The language models. `chat` answers people, `summary` and `facts` work for the loops.

    Every call is counted, and `seen` notes how it ended. The loops' answers go to disk, so secrets are taken
    out of them. The chat's answers may come from a cache, and from another model if a budget is nearly spent;
    those of `named` come from the model that was asked for, or there is none. `names` are models to offer;
    `answers` says which one answers where a name is set. `reads` says how many tokens each reads at once.
    """

    chat: Model
    named: Model
    summary: Model
    facts: Model
    names: tuple[str, ...]
    answers: Callable[[str], str]
    reads: Reads
    seen: Seen
    health: tuple[Check, ...]
    services: tuple[Service, ...]


def models_of(
    settings: Settings,
    accounts: Accounts,
    *,
    clock: Clock,
    redactor: Redactor,
    responses: Responses | None,
    model: Model | None,
    small_model: Model | None,
) -> Models:
    """The models of the settings, or those passed in. `responses` are cached answers, if there is a cache.

    Raises SettingsError when there is neither a key nor an address of a model.
    """
    seen = Seen(clock)
    opened = _open(settings, model, small_model)
    models = opened.seen(seen, settings.model_timeout_s, settings.loop_timeout_s)
    rates = Rates(prices_of(settings, free=model is not None), models.id_of, models.room_of)
    by_name = ByName(models.chat, settings.model, models.named)
    stand_ins = StandIns(settings.summary_model, OfflineModel(stands_in=True))
    chat = Metered(by_name, accounts, rates, name=settings.model, stand_ins=stand_ins)
    loops = replace(
        models,
        summary=Metered(models.summary, accounts, rates, name=settings.summary_model),
        facts=Metered(models.facts, accounts, rates, name=settings.durable_model),
    ).redacting(redactor)
    offered = dict.fromkeys([settings.model, settings.summary_model, *models.aliases])
    asked = (settings.model, settings.summary_model, settings.durable_model)
    contexts = Contexts(models.context_of, asked, fixed=settings.context_tokens)
    cached = CachingModel(chat, settings.model, responses, clock=clock) if responses is not None else None
    closing = (
        Part(closing=models.close) if cached is None else Part(settling=cached.settle, closing=models.close)
    )
    return Models(
        chat=cached or chat,
        named=Metered(by_name, accounts, rates, name=settings.model),
        summary=loops.summary,
        facts=loops.facts,
        names=tuple(one for one in offered if models.id_of(one) != OFFLINE),
        answers=chat.answers,
        reads=contexts.of,
        seen=seen,
        health=(lambda: _how_seen(seen), opened.left_out),
        services=(closing, contexts),
    )


def _how_seen(seen: Seen) -> Iterator[Finding]:
    """How the last calls of the models ended. Nobody asks one only to find out."""
    yield seen.finding("the model", "answer", WAY_OUT)
    for purpose, last in sorted(seen.last.items()):
        if purpose != "answer" and (last.fails or last.stopped):
            yield seen.finding(f"the model for {purpose}", purpose, WAY_OUT, worst="warning")


def _open(settings: Settings, model: Model | None, small: Model | None) -> Opened:
    """The models of the configured provider, replaced by those that are passed in. Raises SettingsError."""
    if model is not None:
        return Opened(model, small or model, small or model, named=lambda name: model)
    models = open_models(config_of(settings))
    return replace(models, summary=small, facts=small) if small is not None else models


def config_of(settings: Settings) -> ModelConfig:
    """What the settings say about models."""
    fields, reached = names(), dict[str, Access]()
    for name, one in PROVIDERS.items():
        key: SecretStr | None = getattr(settings, fields[one.key]) if one.key else None
        in_servers = one.moved == SERVERS
        moved = settings.model_servers.get(name) if in_servers else getattr(settings, fields[one.moved])
        reached[name] = Access(key.get_secret_value() if key is not None else None, moved)
    own = reached[settings.model_provider]
    return ModelConfig(
        provider=settings.model_provider,
        chat=settings.model,
        summary=settings.summary_model,
        facts=settings.durable_model,
        key=own.key,
        base_url=own.base_url,
        connect_timeout_s=settings.connect_timeout_s,
        chat_timeout_s=settings.model_timeout_s,
        loop_timeout_s=settings.loop_timeout_s,
        others=reached,
    )


def prices_of(settings: Settings, *, free: bool = False) -> Prices:
    """What the models cost; `free`: nothing. Raises SettingsError for a file of prices that can't be used."""
    config = config_of(settings)
    at = {name: config.of(name).base_url or one.address for name, one in PROVIDERS.items()}
    here = [name for name, address in at.items() if is_own(address)]
    free = free or settings.model_provider == OFFLINE or VENDOR in here
    return prices(settings.prices, free=free, free_at=here)


def rates_of(settings: Settings, address: str | None, *, free: bool = False) -> Rates:
    """What the models behind an address cost; None is their vendor's.

    Those on this machine or its network are free.
    """
    return Rates(prices(settings.prices, free=free or is_own(address)))


def is_own(address: str | None) -> bool:
    """Whether an address is on this machine or its network, so that nobody charges for what is there."""
    host = urlsplit(address or "").hostname or ""
    try:
        found = ipaddress.ip_address(host)
    except ValueError:
        return bool(host) and ("." not in host or host.endswith(OWN_NAMES))
    return found.is_loopback or found.is_private


# ---------------------------------------------------------------------- embeddings


def meaning_of(settings: Settings, storage: Storage, accounts: Accounts) -> Meaning | None:
    """Vectors, if the settings ask for them and a provider is usable; otherwise one log line says why not."""
    try:
        embedder = open_embedder(embedding_config_of(settings))
    except EmbeddingError as error:
        log.warning("vectors are switched off: %s", error)
        return None
    if embedder is None or not storage.remembers:
        return None
    rates = rates_of(settings, settings.embedding_url, free=embedder.stays_here)
    rates = replace(rates, id_of=lambda name: name.partition("/")[2])  # it begins with the provider
    behind = MeteredEmbedder(embedder, accounts, rates, background=True)
    embedding = Embedding(behind, storage.memory, storage.vectors, consent=storage.consent)
    return Meaning(MeteredEmbedder(embedder, accounts, rates), embedding)


def meaning_of_talk(
    settings: Settings, storage: Storage, meaning: Meaning, *, clock: Clock
) -> tuple[TalkMeaning, TalkEmbedding]:
    """What finds archived talk by what it means, and what gives it vectors."""
    embedder = meaning.embedder
    most = None if embedder.stays_here else settings.embedding_talk_per_day
    provider = Provider(embedder.name, embedder.stays_here, most)
    vectors = TalkVectors(storage.conversations.archive, provider, consent=storage.consent)
    embedding = TalkEmbedding(
        embedder, vectors, clock=clock, items=meaning.embedding, processes=storage.processes
    )
    weights = Meant(text_weight=settings.text_weight, vector_weight=settings.vector_weight)
    return TalkMeaning(meaning, vectors, embedding, consent=storage.consent, weights=weights), embedding


def embedding_config_of(settings: Settings) -> EmbeddingConfig:
    """What the settings say about vectors. A key of another server stays there."""
    here = settings.embedding_url or PROVIDERS["openai"].address or ""
    is_there = settings.openai_url is None or settings.openai_url.rstrip("/") == here.rstrip("/")
    openai_key = settings.openai_key if is_there else None
    return EmbeddingConfig(
        provider=settings.embedding_provider,
        model=settings.embedding_model,
        base_url=settings.embedding_url,
        key=settings.embedding_key.get_secret_value() if settings.embedding_key is not None else None,
        openai_key=openai_key.get_secret_value() if openai_key is not None else None,
        auto=settings.embedding_auto,
    )


# ---------------------------------------------------------------------- transcription


def counted_transcriber(settings: Settings, accounts: Accounts, seen: Seen) -> Transcriber | None:
    """The transcription server, whose use is counted and whose answers are `seen`. Raises SettingsError."""
    transcriber = transcriber_of(settings)
    if transcriber is None:
        return None
    rates = rates_of(settings, settings.transcribe_url)
    return MeteredTranscriber(SeenTranscriber(transcriber, seen), accounts, rates, settings.transcribe_model)


def transcriber_of(settings: Settings) -> Transcriber | None:
    """The transcription server of the settings, None if they name none. Raises SettingsError."""
    if settings.transcribe_url is None:
        return None
    key = settings.transcribe_key
    try:
        return HttpTranscriber(
            base_url=settings.transcribe_url,
            model=settings.transcribe_model,
            key=key.get_secret_value() if key is not None else None,
        )
    except ValueError as error:
        raise SettingsError(f"DISCOCLAW_TRANSCRIBE_URL=…: not an address ({error})") from None


# ----------------------------------------------------------------------
# What learns from talk, as the bot and the evals build it.


def asked_back_of(settings: Settings, storage: Storage, clock: Clock) -> AskedBack:
    """The limits for questions in return. What they know is on disk, so it may be built more than once."""
    choices, on = storage.people.choices, settings.ask_back and storage.remembers
    return AskedBack(storage.used, storage.cursors, choices, clock=clock, on=on)


def facts_loop(
    settings: Settings,
    storage: Storage,
    me: Callable[[], Me],
    clock: Clock,
    model: Model,
    reads: Reads,
    nearest: Nearest | None = None,
) -> FactsLoop:
    """The extraction, as the bot and the evals run it; the evals find what is known by its words alone."""
    choices = storage.people.choices
    return FactsLoop(
        model,
        storage.memory,
        storage.cursors,
        rules=FactsRules(
            storage.places.dm_privacy,
            storage.places,
            settings.zone,
            choices.asks_first,
            asked_back_of(settings, storage, clock).may_raise,
            nearest or Nearest(),
            partial(reads, settings.durable_model),
        ),
        me=me,
        clock=clock,
        consent=storage.consent,
        traits=Traits(storage.memory, settings.owners),
    )


def summary_loop(
    settings: Settings,
    storage: Storage,
    me: Callable[[], Me],
    clock: Clock,
    model: Model,
    reads: Reads,
) -> SummaryLoop:
    """The rolling summary, as the bot and the evals run it."""

    async def zone(session_key: str) -> tzinfo:
        """The person's own zone in their DM, if it is known; the server's elsewhere."""
        if (person := person_of(session_key)) is None:
            return settings.zone
        try:
            items = (await storage.used.view(user_subject(person))).active()
        except MemoryFault:
            return settings.zone
        return zone_of(items, settings.zone, in_dm=True)

    return SummaryLoop(
        model,
        storage.conversations.rolling,
        storage.cursors,
        me=me,
        rules=SummaryRules(clock, settings.summary_max_chars, zone, partial(reads, settings.summary_model)),
        consent=storage.consent,
        taken_back=storage.purger.of,
        groups=storage.people.groups,
    )
