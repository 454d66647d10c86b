"""Extraction: turns what a person has said since the last run into proposals, which core decides on."""

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, tzinfo
from functools import partial
from typing import Any

from discoclaw.core.consent import UNLIMITED, Consent
from discoclaw.core.draft import Draft, Origin
from discoclaw.core.draft_patch import Shown, ShownLine, apply_patch
from discoclaw.core.errors import Refused
from discoclaw.core.history import Branches
from discoclaw.core.item import Source
from discoclaw.core.message import Me, Place, Said
from discoclaw.core.model import USUAL_READS
from discoclaw.core.own_words import own_words
from discoclaw.core.patch import AskingPatch, Patch
from discoclaw.core.policy import Personas, PlacePersonas
from discoclaw.core.ports import Clock, Model
from discoclaw.core.privacy import DmPrivacy
from discoclaw.core.subject import user_subject
from discoclaw.core.text import clip, collapse
from discoclaw.core.view import View
from discoclaw.core.zones import zone_of
from discoclaw.loops.facts_prompt import ASK, Asked, Context, asked, clues_of, rules, share, to_show
from discoclaw.loops.heard import LEFT, Backlog, Heard, ids_in
from discoclaw.loops.nearest import Nearest
from discoclaw.loops.traits import RULE, Traits
from discoclaw.memory.disk.cursors import Cursors
from discoclaw.memory.erasing.cursor_files import names_of
from discoclaw.memory.subjects.store import Memory
from discoclaw.prompt.memory_block import strip_memory_context

log = logging.getLogger(__name__)

BATCH_CHARS = 12_000
MAX_TOKENS = 8_192


async def _never(user_id: str) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class FactsRules:
    """What extraction goes by: what DMs say about privacy, the places' personas, the server's time zone.

    `nearest` finds which known items are to be compared with what was said.
    `asks_first` tells whether a person (user id) wants to be asked in a place before something is remembered,
    `may_ask` whether extraction may ask them something of its own now. `reads`: tokens that its model reads.
    """

    dm_privacy: Callable[[], DmPrivacy] = lambda: "balanced"
    personas: PlacePersonas = field(default_factory=Personas)
    zone: tzinfo = UTC
    asks_first: Callable[[str, Place], bool] = lambda user_id, place: False
    may_ask: Callable[[str], Awaitable[bool]] = _never
    nearest: Nearest = field(default_factory=Nearest)
    reads: Callable[[], int] = lambda: USUAL_READS


class FactsLoop:
    """Extracts one person's durable items from all their unseen messages, as far as they consent."""

    def __init__(
        self,
        model: Model,
        memory: Memory,
        cursors: Cursors,
        *,
        rules: FactsRules,
        me: Callable[[], Me],
        clock: Clock,
        consent: Consent = UNLIMITED,
        traits: Traits | None = None,
    ) -> None:
        self._traits = traits or Traits(memory, owners=())
        self._model = model
        self._memory = memory
        self._cursors = cursors
        self._rules = rules
        self._me = me
        self._clock = clock
        self._consent = consent

    @property
    def batch_chars(self) -> int:
        """The most that a batch of messages takes, in UTF-16 units."""
        return share(BATCH_CHARS, self._rules.reads())

    def hears(self, said: Said) -> bool:
        """Whether a message is to wait for extraction."""
        return not said.by_us and not said.guest

    async def seen_up_to(self, user_id: str) -> dict[str, int]:
        """Return the newest message ids (snowflakes) that extraction has seen, by session."""
        return _seen(await self._cursors.get(f"facts-{user_id}"))

    async def left(self, user_id: str) -> dict[str, list[str]]:
        """Return the ids of older messages that still wait for extraction, by session."""
        return _left(await self._cursors.get(f"facts-{user_id}"))

    async def run(
        self,
        user_id: str,
        backlog: Backlog,
        context: Context,
        *,
        there: Callable[[str, Said], bool] = lambda session_key, said: True,
    ) -> bool:
        """Extract from the person's oldest unseen messages. Returns whether others are still waiting.

        Messages that arrive while the model is working wait for the next run. `context` is the recent talk of
        their conversations, and `there` tells what of it was not taken back since.
        Raises ModelError or MemoryFault; memory and backlog are then unchanged.
        """
        subject = user_subject(user_id)
        branches = await self._memory.branches(subject)
        erased_at = self._memory.erased_at(subject)
        if self._drop_unwanted(backlog, branches, erased_at):
            return bool(backlog.waiting)  # the next batch has a different context
        batch = backlog.oldest(self.batch_chars)
        if not batch:
            return False
        waited = set(backlog.waiting)
        branch = self._persona(branches, batch[0])
        context = self._beside(batch, branch, branches, context, erased_at)
        own = [heard.said for heard in batch]
        traits_welcome = self._traits.welcome(
            user_id, own, [one for talk in context.values() for one in talk]
        )
        may_ask = await self._rules.may_ask(user_id)
        nearest = await self._nearest(user_id, branch, batch, context)
        known: dict[str, str] = {}
        for key in context:
            known |= names_of(await self._cursors.get(f"people-{key}"))
        # Finding them may take seconds. What was taken back meanwhile is shown to no model.
        context = {key: [said for said in talk if there(key, said)] for key, talk in context.items()}
        asked = self._asked(await self._memory.view(subject, branch), batch, context, nearest, known)
        changed = partial(backlog.changed, batch)
        unwanted = partial(self._unwanted_since, user_id, batch, erased_at, changed)
        patch, reads = Patch(), self._rules.reads()
        if not unwanted():
            patch = await self._model.structured(
                purpose="extraction",
                system=rules(reads) + (ASK if may_ask else "") + (RULE if traits_welcome else ""),
                prompt=asked.prompt,
                shape=AskingPatch if may_ask else Patch,
                max_tokens=share(MAX_TOKENS, reads),
            )
        shown = self._shown(batch, asked, asks=partial(self._rules.asks_first, user_id), may_ask=may_ask)
        await self._learn(user_id, branch, patch, batch, shown, unwanted)
        if traits_welcome:
            shown, ids = self._shown(batch, asked), [heard.said.id for heard in batch]
            await self._traits.learn(user_id, patch, shown, ids, lambda: not unwanted())
        if changed():
            return backlog.once_more()  # with what is left, as it is now
        backlog.take(batch)
        await self._save_cursor(user_id, backlog, erased_at)
        return not waited.isdisjoint(backlog.waiting)

    def _drop_unwanted(self, backlog: Backlog, branches: Branches, erased_at: int) -> bool:
        """Drop messages from before an erasing, or to a persona deleted since. Returns whether any were.

        Also makes sure that a batch belongs to one persona, and is entirely private or entirely open.
        """
        persona = partial(self._persona, branches)
        backlog.group = lambda heard: (heard.place.private, persona(heard))
        known = {*branches.all, *self._rules.personas.names}
        unwanted = [
            heard
            for heard in backlog.waiting.values()
            if heard.said.sent_at <= erased_at or persona(heard) not in known
        ]
        if unwanted:  # else it would count as a run that worked
            backlog.take(unwanted)
        return bool(unwanted)

    def _unwanted_since(
        self, user_id: str, batch: Sequence[Heard], erased_at: int, changed: Callable[[], bool]
    ) -> str:
        """Why a batch may no longer be learned from, checked at the last moment; "" if it may."""
        if self._memory.erased_at(user_subject(user_id)) != erased_at:
            return "their memory was erased meanwhile"
        if changed():
            return "a message was deleted or edited meanwhile"
        agreed = all(self._consent.may_keep(user_id, heard.said.sent_at) for heard in batch)
        return "" if agreed else "they have opted out meanwhile"

    def _beside(
        self, batch: Sequence[Heard], branch: str, branches: Branches, context: Context, erased_at: int
    ) -> Context:
        """The recent talk that may stand beside a batch: said after an erasing, and to the same persona."""
        places = {heard.session_key: heard.place for heard in batch}

        def fits(place: Place, said: Said) -> bool:
            persona = self._rules.personas.of(place) or branches.head_at(said.sent_at)
            return said.sent_at > erased_at and persona == branch

        return {
            key: [said for said in talk if fits(places[key], said)]
            for key, talk in context.items()
            if key in places
        }

    async def _nearest(
        self, user_id: str, branch: str, batch: Sequence[Heard], context: Context
    ) -> Sequence[str]:
        """The ids of the items that come near to what was said, nearest first. Raises MemoryFault."""
        subject, private = user_subject(user_id), batch[0].place.private
        items = (await self._memory.view(subject, branch)).visible(in_dm=private)
        clues = clues_of(batch, context)
        return await self._rules.nearest.to(subject, items, clues, private=private)

    def _asked(
        self,
        view: View,
        batch: Sequence[Heard],
        context: Context,
        nearest: Sequence[str],
        known: Mapping[str, str],
    ) -> Asked:
        """The prompt for a batch, in the person's time zone."""
        # Private items must not stand beside open talk: a model would repeat them as if said there.
        in_private = batch[0].place.private
        items = view.visible(in_dm=in_private)
        zone = zone_of(items, self._rules.zone, in_dm=in_private)
        reads, me, now = self._rules.reads(), self._me(), self._clock()
        shown = to_show(items, nearest, reads)
        return asked(shown, batch, context, known, me=me, now_ms=now, zone=zone, reads=reads)

    def _shown(
        self,
        batch: Sequence[Heard],
        asked: Asked,
        *,
        asks: Callable[[Place], bool] = lambda place: False,
        may_ask: bool = False,
    ) -> Shown:
        own = {
            heard.said.id: ShownLine(
                self._origin(heard, asks=asks(heard.place)), own_words(strip_memory_context(heard.said.text))
            )
            for heard in batch
        }
        return Shown(own, asked.lines, asked.items, may_ask)

    async def _learn(
        self,
        user_id: str,
        branch: str,
        patch: Patch,
        batch: Sequence[Heard],
        shown: Shown,
        unwanted: Callable[[], str],
    ) -> None:
        """Let core decide about the model's proposals, in one commit. Raises MemoryFault."""
        subject = user_subject(user_id)

        def learn(draft: Draft) -> list[str]:
            why = unwanted()
            return [why] if why else apply_patch(draft, patch, shown)

        try:
            refused = await self._memory.change(
                subject,
                "learned from talk",
                learn,
                branch=branch,
                begin=branch in self._rules.personas.names,
                by="extraction",
                messages=[heard.said.id for heard in batch],
            )
        except Refused as refusal:
            refused = [str(refusal)]
        for reason in refused:
            log.info("%s: a proposal was refused: %s", subject, reason)

    async def _save_cursor(self, user_id: str, backlog: Backlog, erased_at: int) -> None:
        """Save how far extraction has come, unless the person was erased meanwhile."""

        def further(cursor: Mapping[str, object]) -> Mapping[str, object] | None:
            if self._memory.erased_at(user_subject(user_id)) != erased_at:
                return None
            known, ours = _seen(cursor), backlog.ours
            left = {key: ids for key, ids in _left(cursor).items() if key not in ours}
            left |= {key: ids for key, ids in backlog.left_behind().items() if key in ours}
            seen = {key: str(max(known.get(key, 0), one)) for key, one in (known | backlog.taken).items()}
            return {**seen, LEFT: left} if left else seen

        await self._cursors.update(f"facts-{user_id}", further)

    def _persona(self, branches: Branches, heard: Heard) -> str:
        """The persona a message was addressed to: the place's, or else the person's at that time."""
        return heard.persona or branches.head_at(heard.said.sent_at)

    def prescribed(self, place: Place) -> str:
        """The persona that everybody has in a place right now; "" if there is none."""
        return self._rules.personas.of(place) or ""

    def _origin(self, heard: Heard, *, asks: bool = False) -> Origin:
        return Origin(
            "inferred",
            Source("discord", heard.place.channel_id, heard.said.id),
            said_at=heard.said.as_of,
            edited=heard.said.edited_at > 0,
            private=heard.place.private,
            evidence=clip(collapse(strip_memory_context(heard.said.text)), 200),
            dm_privacy=self._rules.dm_privacy(),
            needs_yes=asks,
        )


class NoFacts(FactsLoop):
    """Learns nothing: stands in where extraction is switched off."""

    def __init__(self) -> None:
        """Set up nothing."""

    def hears(self, said: Said) -> bool:
        return False

    def prescribed(self, place: Place) -> str:
        return ""

    async def seen_up_to(self, user_id: str) -> dict[str, int]:
        return {}

    async def left(self, user_id: str) -> dict[str, list[str]]:
        return {}

    async def run(self, *args: Any, **given: Any) -> bool:
        return False


def _left(cursor: Mapping[str, object]) -> dict[str, list[str]]:
    found = cursor.get(LEFT)
    return {key: ids_in(found, key) for key in found} if isinstance(found, Mapping) else {}


def _seen(cursor: Mapping[str, object]) -> dict[str, int]:
    return {
        key: int(value)
        for key, value in cursor.items()
        if isinstance(value, str) and value.isascii() and value.isdigit()
    }
