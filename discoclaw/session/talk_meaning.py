"""The meaning of a search of talk: its vector, compared with those of the archived messages.

A question of the model's search tool is embedded once, for memories and talk alike. Nothing waits longer than
`Meaning` does, and without an answer talk is found by its words.
"""

from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial

from discoclaw.core.consent import Consent
from discoclaw.core.message import Place
from discoclaw.loops.talk_embedding import TalkEmbedding
from discoclaw.recall.talk import NOTHING_MEANT, Meant
from discoclaw.search.talk_vectors import TalkVectors
from discoclaw.session.meaning import Meaning, Question

Speakers = Callable[[], Awaitable[Collection[str]]]
"""Returns the names of those who spoke where a search looks."""
Archived = Callable[[Place], bool]
"""Whether messages at a place are archived now."""


@dataclass(frozen=True, slots=True)
class Asker:
    """A searcher of talk, and whether that is `private`. `question`: the query, if it is embedded already."""

    user_id: str
    private: bool
    question: Question | None = None


class TalkMeaning:
    """Embeds searches of talk; `touch` says that the archive has changed."""

    def __init__(
        self,
        meaning: Meaning,
        vectors: TalkVectors,
        embedding: TalkEmbedding,
        *,
        consent: Consent,
        weights: Meant,
    ) -> None:
        self._meaning = meaning
        self._vectors = vectors
        self._embedding = embedding
        self._consent = consent
        self._weights = weights

    @property
    def weights(self) -> Meant:
        """How much the meaning counts."""
        return replace(self._weights, floor=self._meaning.floor)

    def saw(self, place: Place, archived: Archived) -> None:
        """Note a place where something is said. Never blocks.

        What is said where not everybody reads along goes to no provider elsewhere, nor does what was kept of
        a place where nothing is archived any more.
        """
        if place.group_id is not None:
            still = partial(archived, place)
            where = place.channel_id if place.closed else place.group_id
            self._vectors.saw(f"@g{where}", open_=still() and not place.private, still=still)

    def touch(self) -> None:
        """Embed what is new. Never blocks."""
        self._embedding.touch()

    async def asked(self, query: str, by: Asker, speakers: Speakers) -> Sequence[float] | None:
        """The vector to search the archive with; None if the query has none, or not in time.

        The names of `speakers` are left out of what is embedded. Raises what that raises.
        """
        if not self._meaning.in_time or self._consent.opted_out(by.user_id):
            return None
        if by.question is not None:
            vector = await by.question.vector()
        else:
            vector = await self._meaning.vector(query, private=by.private, names=await speakers())
        if vector is None:
            return None
        if self._vectors.dims not in (0, len(vector)):
            self._meaning.embedding.doubted()  # whether the provider's model is another now
            self._embedding.touch()
        return self._vectors.asked(vector)


class NoTalkMeaning:
    """Stands in for `TalkMeaning` where there are no vectors."""

    weights = NOTHING_MEANT

    def saw(self, place: Place, archived: Archived) -> None:
        """Does nothing: nothing is embedded."""

    def touch(self) -> None:
        """Does nothing: nothing is embedded."""

    async def asked(self, query: str, by: Asker, speakers: Speakers) -> None:
        """Return None: there is no provider to ask."""
