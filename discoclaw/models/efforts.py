"""How hard a model that thinks should think, by what it is asked for. Knows no provider and no model."""

from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

from discoclaw.core.model import Purpose

Effort: TypeAlias = Literal["low", "medium", "high", "xhigh", "max"]

EFFORTS: Final[Mapping[Purpose, Effort]] = {
    "answer": "medium",  # a person waits; Sonnet's own default is high
    "summary": "low",
    "extraction": "low",
    "tidying": "medium",  # it merges memories, and nobody waits
    "suggestion": "low",
    "title": "low",
}

THINKING_ROOM: Final[Mapping[Effort, int]] = {"low": 8_000, "medium": 16_000}
"""Tokens for thinking, beside the answer's own, for each effort in `EFFORTS`."""
