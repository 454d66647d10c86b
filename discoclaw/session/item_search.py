"""Chooses the items that matter: for a prompt (step 2 of a turn), and for the model's search tools.

It combines words, meaning (vectors) and times of last use; `recall` ranks. Never raises: what cannot be read
is left out.
"""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence

from discoclaw.core.item import Item
from discoclaw.core.message import Me, Said
from discoclaw.core.ports import LINKED_WITH, Clock, Recall, Signals
from discoclaw.core.visible import VisibleItems
from discoclaw.memory.off import NoLastUsed
from discoclaw.memory.people.last_used import LastUsed
from discoclaw.recall.document import in_context, parse
from discoclaw.recall.select import Chosen, Selection, select
from discoclaw.session.arrival import Arrival
from discoclaw.session.gather import Gathered
from discoclaw.session.kept_terms import MANY, KeptTerms
from discoclaw.session.meaning import Meaning, NoMeaning, Question

AT_ONCE = 32
"""How many items are read before others get their turn, which takes about 5 ms."""


class ItemSearch:
    """Finds items with `ranker`. `usual_limit` applies to a search that sets no limit."""

    def __init__(
        self,
        ranker: Recall,
        terms: KeptTerms,
        meaning: Meaning | NoMeaning,
        last_used: LastUsed | NoLastUsed,
        *,
        clock: Clock,
        me: Callable[[], Me],
        usual_limit: int = 5,
        prompt_chars: int = 2000,
    ) -> None:
        self.usual_limit = usual_limit
        self._ranker = ranker
        self._terms = terms
        self._meaning = meaning
        self._last_used = last_used
        self._clock = clock
        self._me = me
        self._prompt_chars = prompt_chars

    def ask(self, arrival: Arrival) -> Question | None:
        """Begin to embed a message; None without vectors, or if nothing may be stored.

        Only the author's own words go to a provider: other people in the talk may not have agreed to that.
        """
        if not (arrival.permission.holds and self._meaning.in_time):
            return None
        message = arrival.message
        window = arrival.talk_before()
        before = [said.text for said in window[-2:] if said.author_id == message.author.id]
        text = in_context(message.text, "\n".join(before))
        names, private = self.names_in(arrival), arrival.place.private
        return self._meaning.ask(arrival.subject, text, private=private, names=names)

    async def for_prompt(
        self, arrival: Arrival, gathered: Gathered, window: Sequence[Said], question: Question | None
    ) -> Selection:
        """The items for the prompt, given the talk before the message and the message's vector."""
        items, message = VisibleItems.of(gathered.items.active), arrival.message
        replied_to = message.quoted.text if message.quoted is not None else ""
        recent = "\n".join(said.text for said in window[-2:])
        query = parse(message.text, replied_to=replied_to, recent=recent)
        cosines: Mapping[str, float] = {}
        if arrival.permission.holds:
            self._meaning.want(arrival.subject, items)
            cosines = await question.cosines(items) if question is not None else {}
        branch = gathered.items.branch
        await self._prepare(arrival.subject, branch, items)
        return select(
            self._ranker,
            query,
            items,
            max_chars=self._prompt_chars,
            now_ms=self._clock(),
            signals=Signals(
                cosines,
                gathered.used,
                own_name=message.author.name,
                floor=self._meaning.floor,
            ),
        )

    async def _prepare(self, subject: str, branch: str | None, items: VisibleItems) -> None:
        """Read items in slices: all at once would stop everybody for a second."""
        save = await self._terms.load(subject, items)
        for _ in items.deriving() if len(items) >= MANY else ():
            await asyncio.sleep(0)
        for number, _ in enumerate(self._ranker.prepare(items)):
            if number % AT_ONCE == AT_ONCE - 1:
                await asyncio.sleep(0)
        if save:
            self._terms.save(subject, branch)

    def names_in(self, arrival: Arrival) -> frozenset[str]:
        """The names of the people in the talk, which say nothing about a question's meaning."""
        said = (one.name for one in arrival.talk_before())
        return frozenset({self._me().name, arrival.message.author.name, *said})

    def question(
        self, subject: str, query: str, *, private: bool, names: Collection[str], always: bool
    ) -> Question | None:
        """Begin to embed a search; see `Meaning.ask`."""
        return self._meaning.ask(subject, query, private=private, names=names, always=always)

    async def find(
        self,
        subject: str,
        branch: str,
        query: str,
        items: Sequence[Item],
        *,
        limit: int,
        question: Question | None,
    ) -> tuple[list[Item], int]:
        """The items that a query finds among these, best first, and how many more would fit.

        Those returned, at most `limit`, count as used now.
        """
        asked, used = parse(query, search=True), await self._last_used.load(subject)
        cosines = await question.cosines(items) if question is not None else {}
        known = VisibleItems.of(items)
        await self._prepare(subject, branch, known)
        signals = Signals(cosines, used, floor=self._meaning.floor)
        hits = self._ranker.rank(asked, known, now_ms=self._clock(), signals=signals)
        # The tools follow links themselves, to the depth that the model asks for.
        fitting = [hit.item for hit in hits if not hit.why.startswith(LINKED_WITH)]
        found = fitting[:limit]
        self._last_used.touch(subject, [item.id for item in found])
        return found, len(fitting) - len(found)

    def note_use(self, arrival: Arrival, chosen: Sequence[Chosen]) -> None:
        """Record the use of items that an answer rested on by matching its words or meaning."""
        self._last_used.touch(arrival.subject, [one.item.id for one in chosen if one.called_for])
