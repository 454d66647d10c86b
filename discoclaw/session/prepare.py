"""Steps 1 to 3 of a turn: everything that decides what the model reads, and nothing that it answers.

A turn takes these steps for a message that somebody sent, and a preview for one that nobody has sent.
"""

from discoclaw.core.message import Said
from discoclaw.core.values import dataclass
from discoclaw.prompt.assemble import Assembled
from discoclaw.recall.select import Chosen, Selection
from discoclaw.session.arrival import Arrival
from discoclaw.session.files.arranging import Attached
from discoclaw.session.files.attaching import Attachments
from discoclaw.session.gather import Gathered, Gatherer
from discoclaw.session.item_search import ItemSearch
from discoclaw.session.prompts import Prompts
from discoclaw.session.refill import Refill


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
