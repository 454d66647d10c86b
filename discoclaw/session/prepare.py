"""Steps 1 to 3 of a turn: everything that decides what the model reads, and nothing that it answers.

A turn takes these steps for a message that somebody sent, and a preview for one that nobody has sent.
"""

from collections.abc import Callable, Sequence
from datetime import UTC, tzinfo

from discoclaw.core.message import Encoded, Me, Said
from discoclaw.core.model import Reads, ToolSpec, reads_usual
from discoclaw.core.ports import Clock
from discoclaw.core.values import dataclass, replace
from discoclaw.core.zones import zone_of
from discoclaw.prompt.assemble import Assembled, Budget, Entry, Materials, Now, assemble, instructions
from discoclaw.recall.select import Chosen, Selection
from discoclaw.session.arrival import Arrival
from discoclaw.session.compact import RESULTS_SHARE, most_tokens, tokens_of
from discoclaw.session.files.attaching import Attached, Attachments
from discoclaw.session.gather import Gathered, Gatherer
from discoclaw.session.item_search import ItemSearch
from discoclaw.session.refill import Refill
from discoclaw.soul.soul import sections

# ----------------------------------------------------------------------
# Step 3 of a turn: turns what was gathered and chosen into the model's prompt.

LEAST_ANSWER = 256
"""An answer may take so many tokens, however little a model reads."""


@dataclass(frozen=True, slots=True)
class AnswerRules:
    """The most tokens of one answer, and how many each model reads at once, its answer included.

    `remembers`: an answer may be stored and reused for the person who got it.
    """

    answer_tokens: int = 4096
    reads: Reads = reads_usual
    remembers: bool = True

    def answer(self, model: str) -> int:
        """The most tokens of an answer of this model: a quarter of what it reads."""
        return min(self.answer_tokens, max(LEAST_ANSWER, self.reads(model) // 4))


USUAL_RULES = AnswerRules()


class Prompts:
    """Assembles prompts within `budget` and within what the model reads at once, beside answer and tools.

    `tools` are those that it is offered, by what it reads. `zone` is for people who haven't named theirs.
    """

    def __init__(
        self,
        budget: Budget,
        *,
        clock: Clock,
        me: Callable[[], Me],
        zone: tzinfo = UTC,
        rules: AnswerRules = USUAL_RULES,
        tools: Callable[[int], Sequence[ToolSpec]] = lambda reads: (),
    ) -> None:
        self._rules = rules
        self._tools = tools
        self._budget = budget
        self._clock = clock
        self._me = me
        self._zone = zone

    def assemble(
        self,
        arrival: Arrival,
        gathered: Gathered,
        window: Sequence[Said],
        chosen: Sequence[Chosen],
        files: Sequence[Entry] = (),
        media: Sequence[Encoded] = (),
    ) -> Assembled:
        """Return the system blocks and the user message. `window` is the talk before the message.

        `media` are shown beside it.
        """
        content, place_content = gathered.texts
        if arrival.policy.prompt:
            place_content = (*place_content, instructions(arrival.policy.prompt))
        zone = zone_of(gathered.items.active, self._zone, in_dm=arrival.in_dm)
        materials = Materials(
            message=arrival.message,
            me=self._me(),
            now=Now(self._clock(), zone),
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
            names={**arrival.window.names, **gathered.names},
            summarised=gathered.names,
        )
        reads = self._rules.reads(arrival.policy.model)
        beside = tokens_of(self._tools(reads)) + sum(one.tokens for one in media)
        room = reads - reads // RESULTS_SHARE - self._rules.answer(arrival.policy.model) - beside
        found = self._within(room, reads, materials, files)
        here = {said.author_id for said in window}
        arrival.window.names = {one: name for one, name in found.names.items() if one in here}
        return found

    def _within(self, room: int, reads: int, materials: Materials, files: Sequence[Entry]) -> Assembled:
        """The prompt, shortened until it takes at most `room` tokens or has nothing more to leave out."""
        found = whole = assemble(materials, self._budget, files)
        while (tokens := most_tokens([found.user, *(block.text for block in found.system)])) > room:
            least, budget = found, replace(self._budget, total=max(0, found.size * room // tokens))
            found = assemble(materials, budget, files)
            if found.size >= least.size:
                break
        return found if found is whole or found == whole else replace(found, whole=whole, reads=reads)


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


class Preparation:
    """Makes the prompts of turns."""

    def __init__(
        self,
        refill: Refill,
        gatherer: Gatherer,
        items: ItemSearch,
        prompts: Prompts,
        attachments: Attachments,
    ) -> None:
        self._refill = refill
        self._gatherer = gatherer
        self._items = items
        self._prompts = prompts
        self._attachments = attachments

    async def of(self, arrival: Arrival, *, files: bool = True) -> Prepared:
        """Prepare the answer to a message. What a disk or Discord cannot give in time is left out.

        Without `files`, those that the prompt would have are only named.
        """
        arrival = await self._refill.back_then(await self._refill.quote(arrival))
        begun = self._attachments.begin(arrival) if files else None
        question = self._items.ask(arrival)
        # 1 what is known: who the bot is, the person's items that may be shown here, the summary, the group
        gathered = await self._gatherer.gather(arrival)
        # 2 what matters now: the recent talk, and the items related to it
        await self._refill.fill(arrival)
        window = arrival.talk_before()
        selection = await self._items.for_prompt(arrival, gathered, window, question)
        # 3 the prompt, with the files that were read meanwhile
        if begun is not None:
            arrival, attached = await self._attachments.of(begun, arrival, window)
            # That may have taken ten seconds, in which something was deleted or edited.
            now = {said.id: said for said in arrival.talk_before()}
            window = tuple(now[said.id] for said in window if said.id in now)
        else:
            attached = self._attachments.named(arrival, window)
        entries, media = attached.entries, attached.media
        prompt = self._prompts.assemble(arrival, gathered, window, selection.chosen, entries, media)
        return Prepared(gathered, window, selection, prompt, attached)

    def note_use(self, arrival: Arrival, ready: Prepared) -> None:
        """Record that the items of an answer that was given were used."""
        self._items.note_use(arrival, ready.used)
