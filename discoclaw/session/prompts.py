"""Step 3 of a turn: turns what was gathered and chosen into the model's prompt."""

from collections.abc import Callable, Sequence
from datetime import UTC, tzinfo

from discoclaw.core.message import Me, Said
from discoclaw.core.ports import Clock
from discoclaw.core.zones import zone_of
from discoclaw.prompt.assemble import Assembled, Budget, Materials, Now, assemble, instructions
from discoclaw.prompt.files import Entry
from discoclaw.recall.select import Chosen
from discoclaw.session.arrival import Arrival
from discoclaw.session.gather import Gathered
from discoclaw.soul.soul import sections


class Prompts:
    """Assembles prompts within `budget`. `zone` is for people who haven't named theirs."""

    def __init__(self, budget: Budget, *, clock: Clock, me: Callable[[], Me], zone: tzinfo = UTC) -> None:
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
    ) -> Assembled:
        """Return the system blocks and the user message. `window` is the talk before the message."""
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
        found, here = assemble(materials, self._budget, files), {said.author_id for said in window}
        arrival.window.names = {one: name for one, name in found.names.items() if one in here}
        return found
