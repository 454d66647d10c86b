"""What learns from talk, as the bot and the evals build it."""

from collections.abc import Callable
from datetime import tzinfo
from functools import partial

from discoclaw.core.errors import MemoryFault
from discoclaw.core.message import Me
from discoclaw.core.model import Reads
from discoclaw.core.ports import Clock, Model
from discoclaw.core.subject import person_of, user_subject
from discoclaw.core.zones import zone_of
from discoclaw.loops.facts import FactsLoop, FactsRules
from discoclaw.loops.nearest import Nearest
from discoclaw.loops.summary import SummaryLoop, SummaryRules
from discoclaw.loops.traits import Traits
from discoclaw.memory.people.asked_back import AskedBack
from discoclaw.settings import Settings
from discoclaw.storage import Storage


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
