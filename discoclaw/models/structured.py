"""Reading of a structured answer: text in, a checked value out. It is strict but for summaries.

Knows nothing about who answers: a provider that enforces the schema, a local server that has never seen
it, or the offline model.
"""

import logging

from pydantic import ValidationError

from discoclaw.core.errors import ModelBadOutput
from discoclaw.core.ports import Shape
from discoclaw.core.prose import ProseShape
from discoclaw.core.text import clip

log = logging.getLogger(__name__)

MAX_ANSWER = 200_000
"""Longest structured answer, in characters. An honest one doesn't come near it."""

_MAX_FAULTS = 5


def checked(text: str, shape: type[Shape]) -> Shape:
    """`text` as a value of `shape`.

    Raises ModelBadOutput unless the whole text is one JSON object of exactly that shape. JSON inside prose or
    a code fence is rejected too: the text around it is a sign that the model did something else. A shape that
    may be answered in prose decides itself about such a text. The error names fields and faults, never
    values, which may be somebody's memories.
    """
    try:
        return _strictly(text, shape)
    except ModelBadOutput:
        prose = shape.from_prose(text) if issubclass(shape, ProseShape) else None
        if prose is None:
            raise
        log.info("the model answered a %s in prose or with text around it", shape.__name__)
        return prose


def _strictly(text: str, shape: type[Shape]) -> Shape:
    if len(text) > MAX_ANSWER:
        raise ModelBadOutput(f"the structured answer is longer than {MAX_ANSWER} characters")
    if not text.lstrip(" \t\r\n").startswith("{"):
        raise ModelBadOutput("the structured answer is not one JSON object")
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
