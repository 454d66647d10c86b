"""Reading of a structured answer: text in, a checked value out.

The value is strict; what stands around it doesn't count. Only a summary may come without.

Knows nothing about who answers: a provider that enforces the schema, a local server that has never seen
it, or the offline model.
"""

import logging

from pydantic import ValidationError

from discoclaw.core.errors import ModelBadOutput
from discoclaw.core.patch import ProseShape, bare, objects_in
from discoclaw.core.ports import Shape
from discoclaw.core.text import clip

log = logging.getLogger(__name__)

MAX_ANSWER = 200_000
"""Longest structured answer, in characters. An honest one doesn't come near it."""

_MAX_FAULTS = 5
_NOT_ONE = "the structured answer is not one JSON object"


def checked(text: str, shape: type[Shape]) -> Shape:
    """`text` as a value of `shape`.

    Raises ModelBadOutput unless there is one JSON object of exactly that shape in it. A code fence, a list of
    one, or sentences around it are only wrapping; two objects that say different things, or one that is
    broken, aren't an answer. Without such an object, a shape that may be answered in prose decides itself.
    The error names fields and faults, never values, which may be somebody's memories.
    """
    try:
        return _unwrapped(text, shape)
    except ModelBadOutput:
        prose = shape.from_prose(text) if issubclass(shape, ProseShape) else None
        if prose is None:
            raise
        log.info("the model answered a %s in prose", shape.__name__)
        return prose


def _unwrapped(text: str, shape: type[Shape]) -> Shape:
    if len(text) > MAX_ANSWER:
        raise ModelBadOutput(f"the structured answer is longer than {MAX_ANSWER} characters")
    alone = bare(text)
    found = list(dict.fromkeys(objects_in(alone)))
    if alone in found:
        return _strictly(alone, shape)
    # An empty object between sentences is a piece of somebody's code rather than an answer.
    fitting, faults = list[Shape](), list[ModelBadOutput]()
    for one in found:
        try:
            if one != "{}" and (value := _strictly(one, shape)) not in fitting:
                fitting.append(value)
        except ModelBadOutput as fault:
            faults.append(fault)
    if len(fitting) == 1 and "" not in found:
        log.info("the model answered a %s with something around it", shape.__name__)
        return fitting[0]
    raise faults[0] if len(found) == len(faults) == 1 else ModelBadOutput(_NOT_ONE)


def _strictly(text: str, shape: type[Shape]) -> Shape:
    flawed: list[str] = []
    try:
        answer = shape.model_validate_json(text, strict=True, context=flawed)
    except ValidationError as error:
        faults = error.errors(include_url=False, include_input=False, include_context=False)[:_MAX_FAULTS]
        shown = "; ".join(
            f"{'.'.join(map(str, fault['loc'])) or 'answer'}: {fault['type']}" for fault in faults
        )
        shown = "; ".join(flawed[:_MAX_FAULTS]) or shown
        raise ModelBadOutput(clip(f"the structured answer is not a {shape.__name__}: {shown}", 400)) from None
    if flawed:
        log.info("%s: dropped as flawed: %s", shape.__name__, clip("; ".join(flawed[:_MAX_FAULTS]), 400))
    return answer
