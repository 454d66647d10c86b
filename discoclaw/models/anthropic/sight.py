"""Pictures and documents that a model doesn't take: it is asked again without them, and that is remembered.

Not every server behind the Messages API has a model that can look at pictures, and fewer read PDFs. None of
them says so beforehand: they answer with an error, each with another one. Knows nothing about how a request
is sent.
"""

import logging
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import replace

from discoclaw.core.attached import Encoded, Kind
from discoclaw.core.errors import ModelBadRequest, ModelError, ModelTooLong
from discoclaw.core.model import Finished, ModelRequest, StreamEvent, Unseen, UserTurn, without

log = logging.getLogger(__name__)

_SURE = 2
"""So many doubts are enough. A rejected request counts as two; a server that fails may only be unwell."""


FORGOTTEN_S = 3600.0
"""After this long it is tried again: it may have been one bad file, or there is another model now."""


class Sight:
    """What a model was found not to take, for an hour. `certain`: it takes all there is."""

    def __init__(self, *, certain: bool, clock: Callable[[], float] = time.monotonic) -> None:
        self.certain = certain
        self._clock = clock
        self._doubts: dict[Kind, int] = {}
        self._since: dict[Kind, float] = {}

    def blind(self, kind: Kind) -> bool:
        """Whether the model takes none of this kind."""
        is_sure = self._doubts.get(kind, 0) >= _SURE
        return is_sure and self._clock() - self._since[kind] < FORGOTTEN_S

    def saw(self, kinds: set[Kind]) -> None:
        """The model answered a request that had these."""
        for kind in kinds:
            self._doubts.pop(kind, None)

    def doubt(self, kind: Kind, error: ModelError) -> None:
        """The model answered a request without this kind, after it had failed with it."""
        if not self.certain:
            weight = _SURE if isinstance(error, ModelBadRequest) else 1
            self._doubts[kind] = self._doubts.get(kind, 0) + weight
            self._since[kind] = self._clock()


async def shown(
    request: ModelRequest,
    ask: Callable[[ModelRequest], AsyncGenerator[StreamEvent, None]],
    sight: Sight,
) -> AsyncGenerator[StreamEvent, None]:
    """The answer to a request, made without the media that the model doesn't take. Raises ModelError."""
    media = [one for turn in request.turns if isinstance(turn, UserTurn) for one in turn.media]
    unseen = [Unseen(one, "blind") for one in media if sight.blind(one.kind)]
    last: list[Encoded] = []  # what it was asked again without
    failure: ModelError | None = None
    while True:
        began = False
        try:
            async with aclosing(ask(_without(request, unseen))) as events:
                async for event in events:
                    began = True
                    if isinstance(event, Finished):
                        sight.saw({one.kind for one in _left(media, unseen)})
                        event = replace(event, unseen=_reasons(unseen, last, failure, sight))
                    yield event
            return
        except ModelError as error:
            left = _left(media, unseen)
            if began or not left or not _may_be_theirs(error, sight):
                raise
            failure, last = error, _first_to_go(left, error)
            log.warning("asking again without %s: %s", ", ".join(one.label for one in last), error)
            too_large = isinstance(error, ModelTooLong)
            unseen += [Unseen(one, "too large" if too_large else "refused") for one in last]


def _without(request: ModelRequest, unseen: Sequence[Unseen]) -> ModelRequest:
    if not unseen:
        return request
    turns = (without(turn, unseen) if isinstance(turn, UserTurn) else turn for turn in request.turns)
    return replace(request, turns=tuple(turns))


def _left(media: Sequence[Encoded], unseen: Sequence[Unseen]) -> list[Encoded]:
    gone = {one.media.label for one in unseen}
    return [one for one in media if one.label not in gone]


def _may_be_theirs(error: ModelError, sight: Sight) -> bool:
    """Whether a request may have failed because of its media. Some servers say so with status 500 or 501."""
    if isinstance(error, ModelBadRequest | ModelTooLong):
        return True
    return error.status in (500, 501) and not sight.certain


def _first_to_go(left: Sequence[Encoded], error: ModelError) -> list[Encoded]:
    """What to leave out next: the older ones if it was too much, documents if it was refused, or all."""
    if isinstance(error, ModelTooLong):
        return [one for one in left if one.older] or [*left]
    return [one for one in left if one.kind == "document"] or [*left]


def _reasons(
    unseen: Sequence[Unseen], last: Sequence[Encoded], failure: ModelError | None, sight: Sight
) -> tuple[Unseen, ...]:
    """What the model was not given, and why, now that it has answered without."""
    if failure is None or isinstance(failure, ModelTooLong):
        return tuple(unseen)
    for kind in {one.kind for one in last}:
        sight.doubt(kind, failure)
    return tuple(
        replace(one, why="blind") if one.media in last and sight.blind(one.media.kind) else one
        for one in unseen
    )
