"""Step 3 of a turn: turns what was gathered and chosen into the model's prompt."""

from collections.abc import Callable, Sequence

from discoclaw.core.message import Me, Said
from discoclaw.core.ports import Clock
from discoclaw.prompt.assemble import Assembled, Budget, Materials, assemble
from discoclaw.recall.select import Chosen
from discoclaw.session.arrival import Arrival
from discoclaw.session.gather import Gathered
from discoclaw.soul.soul import sections


class Prompts:
    """Assembles prompts within `budget`."""

    def __init__(self, budget: Budget, *, clock: Clock, me: Callable[[], Me]) -> None:
        self._budget = budget
        self._clock = clock
        self._me = me

    def assemble(
        self, arrival: Arrival, gathered: Gathered, window: Sequence[Said], chosen: Sequence[Chosen]
    ) -> Assembled:
        """Return the system blocks and the user message. `window` is the talk before the message."""
        content, place_content = gathered.texts
        materials = Materials(
            message=arrival.message,
            me=self._me(),
            now_ms=self._clock(),
            owners=gathered.owners,
            soul=sections(gathered.who.soul),
            content=content,
            place_content=place_content,
            group=gathered.group,
            durable=tuple(one.line for one in chosen),
            persona=gathered.items.persona,
            rolling=gathered.summary,
            window=tuple(window),
        )
        return assemble(materials, self._budget)
