"""Steps 1 to 3 of a turn: everything that decides what the model reads, and nothing that it answers.

A turn takes these steps for a message that somebody sent, and a preview for one that nobody has sent.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, tzinfo
from functools import cached_property

from discoclaw.core.item import Item, by_newest
from discoclaw.core.message import Me, Said
from discoclaw.core.model import ToolSpec
from discoclaw.core.ports import IDLE, LINKED_WITH, Clock, Recall, Signals
from discoclaw.core.privacy import may_show
from discoclaw.core.query import NO_COSINES
from discoclaw.core.values import dataclass, replace
from discoclaw.core.visible import VisibleItems, is_standing
from discoclaw.core.zones import zone_of
from discoclaw.memory.people.last_used import LastUsed
from discoclaw.prompt.assemble import Assembled, Budget, Materials, Now, assemble, instructions
from discoclaw.recall.document import in_context, parse
from discoclaw.recall.select import NO_ROOM, SAID, UNRELATED, WAITS, Chosen, Selection, select
from discoclaw.session.compact import RESULTS_SHARE, AnswerRules, most_tokens, tokens_of
from discoclaw.session.files.attaching import Attached, Attachments
from discoclaw.session.gather import Gathered, Gatherer
from discoclaw.session.hearing import Refill
from discoclaw.session.kept_terms import MANY, KeptTerms
from discoclaw.session.meaning import Meaning, NoMeaning, Question
from discoclaw.session.turn import Turn
from discoclaw.soul.soul import sections

# ----------------------------------------------------------------------
# Chooses the items that matter: for a prompt (step 2 of a turn), and for the model's search tools.
#
# It combines words, meaning (vectors) and times of last use; `recall` ranks. Never raises: what cannot be
# read is left out.

AT_ONCE = 32
"""How many items are read before others get their turn, which takes about 5 ms."""


@dataclass(frozen=True, slots=True)
class ItemSearch:
    """Finds items with `ranker`. `usual_limit` applies to a search that sets no limit."""

    ranker: Recall
    terms: KeptTerms
    meaning: Meaning | NoMeaning
    last_used: LastUsed
    clock: Clock
    me: Callable[[], Me]
    usual_limit: int = 5
    prompt_chars: int = 2000

    def ask(self, turn: Turn) -> Question | None:
        """Begin to embed a message; None without vectors, or if nothing may be stored.

        Only the author's own words go to a provider: other people in the talk may not have agreed to that.
        """
        if not (turn.permission.holds and self.meaning.in_time):
            return None
        message = turn.message
        window = turn.talk_before()
        before = [said.text for said in window[-2:] if said.author_id == message.author.id]
        text = in_context(message.text, "\n".join(before))
        names, private = self.names_in(turn), turn.place.private
        return self.meaning.ask(turn.subject, text, private=private, names=names)

    async def for_prompt(
        self, turn: Turn, gathered: Gathered, window: Sequence[Said], question: Question | None
    ) -> Selection:
        """The items for the prompt, given the talk before the message and the message's vector."""
        items, message = VisibleItems.of(gathered.items.active), turn.message
        replied_to = message.quoted.text if message.quoted is not None else ""
        recent = "\n".join(said.text for said in window[-2:])
        query = parse(message.text, replied_to=replied_to, recent=recent)
        cosines: Mapping[str, float] = {}
        if turn.permission.holds:
            self.meaning.want(turn.subject, items)
            cosines = await question.cosines(items) if question is not None else {}
        branch = gathered.items.branch
        await self._prepare(turn.subject, branch, items)
        return select(
            self.ranker,
            query,
            items,
            max_chars=self.prompt_chars,
            now_ms=self.clock(),
            signals=Signals(
                cosines,
                gathered.used,
                own_name=message.author.name,
                floor=self.meaning.floor,
            ),
        )

    async def _prepare(self, subject: str, branch: str | None, items: VisibleItems) -> None:
        """Read items in slices: all at once would stop everybody for a second."""
        save = await self.terms.load(subject, items)
        for _ in items.deriving() if len(items) >= MANY else ():
            await asyncio.sleep(0)
        for number, _ in enumerate(self.ranker.prepare(items)):
            if number % AT_ONCE == AT_ONCE - 1:
                await asyncio.sleep(0)
        if save:
            self.terms.save(subject, branch)

    def names_in(self, turn: Turn) -> frozenset[str]:
        """The names of the people in the talk, which say nothing about a question's meaning."""
        said = (one.name for one in turn.talk_before())
        return frozenset({self.me().name, turn.message.author.name, *said})

    async def find(
        self,
        subject: str,
        branch: str,
        query: str,
        items: Sequence[Item],
        *,
        limit: int,
        question: Question | None,
    ) -> tuple[list[Item], list[Item], int]:
        """The items that a query finds among these, best first; those possibly related; how many more fit.

        Together they are at most `limit`. Those that were found count as used now.
        """
        asked, used = parse(query, search=True), await self.last_used.load(subject)
        cosines = await question.cosines(items) if question is not None else {}
        known = VisibleItems.of(items)
        await self._prepare(subject, branch, known)
        signals = Signals(cosines, used, floor=self.meaning.floor)
        hits = self.ranker.rank(asked, known, now_ms=self.clock(), signals=signals)
        # The tools follow links themselves, to the depth that the model asks for.
        fitting = [hit for hit in hits if not hit.why.startswith(LINKED_WITH)]
        found = [hit.item for hit in fitting if not hit.possible]
        possible = [hit.item for hit in fitting if hit.possible][: max(0, limit - len(found))]
        self.last_used.touch(subject, [item.id for item in found[:limit]])
        return found[:limit], possible, max(0, len(found) - limit)

    def note_use(self, turn: Turn, chosen: Sequence[Chosen]) -> None:
        """Record the use of items that an answer rested on by matching its words or meaning."""
        self.last_used.touch(turn.subject, [one.item.id for one in chosen if one.called_for])


# ----------------------------------------------------------------------
# Turns what was gathered and chosen into the model's prompt (step 3 of a turn).


@dataclass(frozen=True, slots=True)
class Prepared:
    """All that was gathered and chosen for a message, the talk before it, the files, and the prompt."""

    gathered: Gathered
    window: tuple[Said, ...]
    selection: Selection
    prompt: Assembled
    attached: Attached

    @property
    def used(self) -> tuple[Chosen, ...]:
        """The items that are in the prompt, best first."""
        return self.selection.chosen[: self.prompt.durable]


@dataclass(frozen=True, slots=True)
class Preparation:
    """Makes the prompts of turns, within `budget` and within what the model reads at once, beside its answer.

    `tools` are those that it is offered in a turn, by what it reads. `zone` is for people who
    haven't named theirs.
    """

    refill: Refill
    gatherer: Gatherer
    items: ItemSearch
    attachments: Attachments
    budget: Budget
    zone: tzinfo = UTC
    rules: AnswerRules = AnswerRules()
    tools: Callable[[Turn, int], Sequence[ToolSpec]] = lambda turn, reads: ()

    async def of(self, turn: Turn, *, files: bool = True) -> Prepared:
        """Prepare the answer to a message. What a disk or Discord cannot give in time is left out.

        Without `files`, those that the prompt would have are only named.
        """
        turn = await self.refill.back_then(await self.refill.quote(turn))
        begun = self.attachments.begin(turn) if files else None
        question = self.items.ask(turn)
        # 1 what is known: who the bot is, the person's items that may be shown here, the summary, the group
        gathered = await self.gatherer.gather(turn)
        # 2 what matters now: the recent talk, and the items related to it
        await self.refill.fill(turn)
        window = turn.talk_before()
        selection = await self.items.for_prompt(turn, gathered, window, question)
        # 3 the prompt, with the files that were read meanwhile
        if begun is not None:
            turn, attached = await self.attachments.of(begun, turn, window)
            # That may have taken ten seconds, in which something was deleted or edited.
            now = {said.id: said for said in turn.talk_before()}
            window = tuple(now[said.id] for said in window if said.id in now)
        else:
            attached = self.attachments.named(turn, window)
        prompt = self._assemble(turn, gathered, window, selection.chosen, attached)
        return Prepared(gathered, window, selection, prompt, attached)

    def _assemble(
        self,
        turn: Turn,
        gathered: Gathered,
        window: Sequence[Said],
        chosen: Sequence[Chosen],
        attached: Attached,
    ) -> Assembled:
        """The system blocks and the user message. `window` is the talk before the message."""
        content, place_content = gathered.texts
        if turn.policy.prompt:
            place_content = (*place_content, instructions(turn.policy.prompt))
        zone = zone_of(gathered.items.active, self.zone, in_dm=turn.in_dm)
        materials = Materials(
            message=turn.message,
            me=self.items.me(),
            now=Now(self.items.clock(), zone),
            owners=gathered.owners,
            soul=sections(gathered.who.soul),
            content=content,
            place_content=place_content,
            group=gathered.group,
            durable=tuple(one.line for one in chosen),
            places=tuple(one.place for one in chosen),
            persona=gathered.items.persona,
            rolling=gathered.summary,
            window=tuple(window),
            names={**turn.window.names, **gathered.names},
            summarised=gathered.names,
        )
        reads = self.rules.reads(turn.policy.model)
        beside = tokens_of(self.tools(turn, reads)) + sum(one.tokens for one in attached.media)
        room = reads - reads // RESULTS_SHARE - self.rules.answer(turn.policy.model) - beside
        # Shortened until it takes at most `room` tokens, or has nothing more to leave out.
        found = whole = assemble(materials, self.budget, attached.entries)
        while (tokens := most_tokens([found.user, *(block.text for block in found.system)])) > room:
            least, budget = found, replace(self.budget, total=max(0, found.size * room // tokens))
            found = assemble(materials, budget, attached.entries)
            if found.size >= least.size:
                break
        if found is not whole and found != whole:
            found = replace(found, whole=whole, reads=reads)
        here = {said.author_id for said in window}
        turn.window.names = {one: name for one, name in found.names.items() if one in here}
        return found


# ----------------------------------------------------------------------
# Previews what a model would read if somebody wrote now. Nothing is sent to it, and nothing is kept.
#
# The message takes the same steps as one that was sent (`prepare`), in a copy of its conversation's window.
# Independent of Discord.

FITS, PRIVATE, CONFIDENTIAL = "fits", "private", "confidential"
FORGOTTEN, OPTED_OUT = "forgotten", "opted out"
REASONS = (FITS, PRIVATE, CONFIDENTIAL, NO_ROOM, SAID, WAITS, UNRELATED, IDLE, OPTED_OUT, FORGOTTEN)
"""Why an item is not in the prompt, in the order in which they are shown.

`FITS` has the items that come once a message calls for them, if it is not known what the message says.
"""


@dataclass(frozen=True)
class Preview:
    """A message that nobody sent, and the prompt for it. Without a text, only what is always there counts."""

    turn: Turn
    ready: Prepared

    @property
    def asked(self) -> bool:
        """Whether it is known what the message says."""
        return bool(self.turn.message.text)

    @property
    def used(self) -> tuple[Chosen, ...]:
        """The items that would be in the prompt, best first; without a text, those that always are."""
        used = self.ready.used
        return used if self.asked else tuple(one for one in used if one.item.id in self._always)

    @cached_property
    def _always(self) -> frozenset[str]:
        """The ids of the items that are there whatever the message says.

        The talk before it may have called for others, by its words or its meaning.
        """
        made = self.ready.selection
        whatever = select(
            made.recall,
            parse(""),
            made.items,
            max_chars=made.max_chars,
            now_ms=made.now_ms,
            signals=replace(made.signals, cosines=NO_COSINES),
        )
        return frozenset(one.item.id for one in whatever.chosen if is_standing(one.item))

    @property
    def crowded(self) -> bool:
        """Whether a message could still replace some of what is always there."""
        return not self.asked and self.ready.selection.crowded

    def left_out(self, items: Iterable[Item]) -> Mapping[str, list[Item]]:
        """The other items of the person by reason, those of each reason newest first."""
        used = {one.item.id for one in self.used}
        reasons = self.ready.selection.left_out()
        reasons |= {one.item.id: NO_ROOM for one in self.ready.selection.chosen[self.ready.prompt.durable :]}
        found: dict[str, list[Item]] = {reason: [] for reason in REASONS}
        for item in sorted(items, key=by_newest):
            if item.id not in used:
                found[self._why_not(item, reasons)].append(item)
        return {reason: those for reason, those in found.items() if those}

    def _why_not(self, item: Item, reasons: Mapping[str, str]) -> str:
        if not item.active:
            return FORGOTTEN
        if not self.turn.permission.holds:
            return OPTED_OUT
        if not may_show(item, in_dm=self.turn.in_dm):
            return CONFIDENTIAL if item.facets.sensitivity == CONFIDENTIAL else PRIVATE
        if not self.asked and not is_standing(item):
            return IDLE if self.ready.selection.faded(item) else FITS
        why = reasons.get(item.id, WAITS if is_standing(item) else UNRELATED)
        return FITS if why == WAITS and not self.asked else why
