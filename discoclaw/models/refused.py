"""Parts of a request that a server refuses: it is asked again without, and that is remembered.

Not every server knows every field of its API's requests, and not every model can look at pictures or call
tools. None of them says so beforehand: they answer with an error, each with another one. It
often names the part that isn't known, or that part is found by leaving out one after another. Where a
server is certain to know all fields, only files are left out. Knows nothing about how a request is sent.
"""

import logging
import re
import time
from collections.abc import AsyncGenerator, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Final

from discoclaw.core.attached import Encoded
from discoclaw.core.errors import ModelBadRequest, ModelError, ModelTooLong
from discoclaw.core.health import Finding
from discoclaw.core.model import Finished, ModelRequest, StreamEvent, Unseen, UserTurn, without

log = logging.getLogger(__name__)

_NO_SCHEMA: Final = "nothing holds a model to the form of its answer, so learning depends on its discipline"
COSTS: Final[Mapping[str, str]] = {
    "cache_control": "nothing is cached there, so each turn pays for the whole prompt",
    "output_config": _NO_SCHEMA,
    "response_format": _NO_SCHEMA,
    "stream_options": "what answers cost there is estimated",
    "reasoning_effort": "the model thinks as long as it does by itself",
    "tool_choice": "a model that has called enough tools may go on calling them",
    "temperature": "the model's own temperature counts",
    "system": "the system prompt is sent as one text, and no part of it is cached",
    "tools": "the bot looks nothing up and saves nothing while it answers",
    "document": "people who attach a PDF file are told that the model can't read it",
    "image": "people who attach a picture are told that the model can't see it",
}
"""The parts of a request that may be left out, in the order in which that is tried, and what it costs."""

NO_TOOLS = "You can't call tools here: you can't look anything up or save anything. Say so if asked to."
"""In the system prompt for a server that refuses tools."""

FORGOTTEN_S: Final = 3600.0
"""After this long a refused file is tried again: it may have been a bad one, or there is a new model."""

_SURE: Final = 2
"""How many doubts are enough. What an error names counts as two, as does a file that is refused. A guess may
be wrong, and a server that fails may only be unwell."""
_NAMES: Final[Mapping[str, str]] = {
    "cache_control": r"cache_control|prompt.cach",
    "output_config": r"output_config|output_format|response_format|json_schema",
    "response_format": r"response_format|json_schema|grammar",
    "stream_options": r"stream_options|include_usage",
    "reasoning_effort": r"reasoning.effort",
    "reasoning_content": r"reasoning",
    # It has two names. One that is too large is no reason for the other name.
    "max_tokens": r"max_completion_tokens|(?:unsupported|unknown|unrecognized)\b.{0,30}max_tokens",
    "parallel_calls": r"parallel|(?:single|one|multiple) tool.?calls?",  # they are sent one by one then
    "tool_choice": r"tool_choice",
    "temperature": r"temperature",
    "system": r"\bsystem\b",
    "tools": r"\btools?\b|function.call",
}
"""The fields among them, and what an error that is about one has in it."""
_OTHERS: Final = r"(?i)\bexpected\b|\ballowed\b"
"""Behind these words an error may list the names that the server knows."""


class Refused:
    """Parts that one model at one server was found not to take. `certain`: the server knows every field."""

    def __init__(self, *, certain: bool, clock: Callable[[], float] = time.monotonic) -> None:
        self.certain = certain
        self._clock = clock
        self._doubts: dict[str, int] = {}
        self._since: dict[str, float] = {}
        self._taken: set[str] = set()
        self._cleared: dict[str, float] = {}

    def out(self, part: str) -> bool:
        """Whether the model takes none of this."""
        is_sure = self._doubts.get(part, 0) >= _SURE
        return is_sure and (part in _NAMES or self._clock() - self._since[part] < FORGOTTEN_S)

    def took(self, parts: Collection[str]) -> None:
        """The model answered a request that had these."""
        self._taken.update(parts)
        for part in parts:
            self._doubts.pop(part, None)

    def doubt(self, part: str, *, sure: bool) -> None:
        """The model answered a request without this, after it had failed with it."""
        self._doubts[part] = self._doubts.get(part, 0) + (_SURE if sure else 1)
        self._since[part] = self._clock()

    def cleared(self, fields: Iterable[str]) -> None:
        """A request failed without these fields too: for a while they aren't suspected again."""
        self._cleared.update(dict.fromkeys(fields, self._clock() + FORGOTTEN_S))

    def named(self, error: ModelError, fields: Collection[str]) -> str:
        """The one of these fields that an error names; "" if it names none."""
        said = re.split(_OTHERS, str(error), maxsplit=1)[0] if not isinstance(error, ModelTooLong) else ""
        return next(
            (one for one in self._suspects(fields) if re.search(_NAMES[one], said, re.IGNORECASE)), ""
        )

    def guess(self, error: ModelError, fields: Collection[str]) -> str:
        """The one of these fields to leave out after a rejection that names none; "" if none is left."""
        rejected = error.status in (400, 422) and not isinstance(error, ModelTooLong)
        suspects = self._suspects(fields) if rejected else ()
        unknown = [one for one in suspects if one not in self._taken]
        return max(unknown, key=lambda one: self._doubts.get(one, 0), default="")

    def findings(self, model: str) -> Iterator[Finding]:
        """Findings about what is left out for this model, and what that costs."""
        for part in filter(self.out, COSTS):
            text = f"the server refuses `{part}` for {model}, so it is left out: {COSTS[part]}"
            yield Finding(part, "warning", text, "use a server or a model that takes it, if that matters")

    def _suspects(self, fields: Collection[str]) -> list[str]:
        now = self._clock()
        return [one for one in _NAMES if one in fields and self._cleared.get(one, now) <= now]


async def asked(
    request: ModelRequest,
    fields: Collection[str],
    ask: Callable[[ModelRequest, Collection[str]], AsyncGenerator[StreamEvent, None]],
    refused: Refused,
) -> AsyncGenerator[StreamEvent, None]:
    """The answer to a request, made without what the server doesn't take. Raises ModelError.

    `fields` are those of the request that may be left out; `ask` is told which ones to leave out.
    """
    media = [one for turn in request.turns if isinstance(turn, UserTurn) for one in turn.media]
    unseen = [Unseen(one, "blind") for one in media if refused.out(one.kind)]
    fields = set(fields) if not refused.certain else set[str]()
    out = {one for one in fields if refused.out(one)}
    named, guessed = list[str](), list[str]()
    last, field = list[Encoded](), ""  # what it was asked again without
    failure: ModelError | None = None
    while True:
        began = False
        try:
            async with aclosing(ask(_without(request, unseen), out)) as events:
                async for event in events:
                    began = True
                    if isinstance(event, Finished):
                        refused.took({*fields, *(one.kind for one in _left(media, unseen))} - out)
                        for one in {*named, field} - {""}:
                            refused.doubt(one, sure=one in named)
                        event = replace(event, unseen=_reasons(unseen, last, failure, refused))
                    yield event
            return
        except ModelError as error:
            too_large = isinstance(error, ModelTooLong)
            # Some servers say with status 500 or 501 that they don't take something.
            theirs = isinstance(error, ModelBadRequest) or (
                error.status in (500, 501) and not refused.certain
            )
            if began or not (theirs or too_large):
                raise
            if field in named and refused.named(error, [field]):  # it says the same without that field
                named.remove(field)
                refused.cleared([field])
            last, left, failure = [], _left(media, unseen), error
            if field := refused.named(error, fields - out):
                named.append(field)
            elif left:
                last = [one for one in left if (one.older if too_large else one.kind == "document")] or left
            elif field := refused.guess(error, fields - out):
                guessed.append(field)
            else:
                refused.cleared(guessed if theirs else ())
                raise
            out |= {field} - {""}
            log.warning("asking again without %s: %s", field or ", ".join(one.label for one in last), error)
            unseen += [Unseen(one, "too large" if too_large else "refused") for one in last]


def _without(request: ModelRequest, unseen: Sequence[Unseen]) -> ModelRequest:
    if not unseen:
        return request
    turns = (without(turn, unseen) if isinstance(turn, UserTurn) else turn for turn in request.turns)
    return replace(request, turns=tuple(turns))


def _left(media: Sequence[Encoded], unseen: Sequence[Unseen]) -> list[Encoded]:
    gone = {one.media.label for one in unseen}
    return [one for one in media if one.label not in gone]


def _reasons(
    unseen: Sequence[Unseen], last: Sequence[Encoded], failure: ModelError | None, refused: Refused
) -> tuple[Unseen, ...]:
    """The files that the model was not given, and why, now that it has answered without."""
    if failure is None or isinstance(failure, ModelTooLong):
        return tuple(unseen)
    if not refused.certain:
        for kind in {one.kind for one in last}:
            refused.doubt(kind, sure=isinstance(failure, ModelBadRequest))
    return tuple(
        replace(one, why="blind") if one.media in last and refused.out(one.media.kind) else one
        for one in unseen
    )
