"""Facts about Anthropic's models, and what each purpose asks of them.

A model that thinks unless told otherwise counts its thoughts towards `max_tokens`, so a limit that fits the
answer would cut it off. Such a model gets room for thinking beside the answer's own, and an effort that says
how much it should think. Both are for Anthropic's own address: other servers know neither. A model that is
missing here gets nothing that it might reject.

From Anthropic's model pages and migration guides. Knows nothing about which models an account may use.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from anthropic.resources.messages import DEPRECATED_MODELS

from discoclaw.models.asking import Effort

ALIASES = {
    "fast": "claude-haiku-5-5",
    "haiku": "claude-haiku-5-5",
    "sonnet": "claude-sonnet-5-5",
    "opus": "claude-opus-5-5",
}


@dataclass(frozen=True, slots=True)
class Known:
    """One model. `thinks`: unless told otherwise. `efforts`: the values it accepts; others are rejected.

    All of them enforce a JSON schema.
    """

    thinks: bool
    efforts: tuple[Effort, ...] = ()


_THINKS = Known(thinks=True, efforts=("low", "medium", "high", "xhigh", "max"))

MODELS: Mapping[str, Known] = {
    "claude-haiku-5-5": _THINKS,
    "claude-sonnet-5-5": _THINKS,
    "claude-opus-5-5": _THINKS,
    "claude-fable-5-1": _THINKS,
    "claude-sonnet-5": _THINKS,
    "claude-opus-5": _THINKS,
    "claude-opus-4-8": Known(thinks=False, efforts=("low", "medium", "high", "xhigh", "max")),
    "claude-opus-4-7": Known(thinks=False, efforts=("low", "medium", "high", "xhigh", "max")),
    "claude-opus-4-6": Known(thinks=False, efforts=("low", "medium", "high", "max")),
    "claude-sonnet-4-6": Known(thinks=False, efforts=("low", "medium", "high", "max")),
    "claude-opus-4-5": Known(thinks=False, efforts=("low", "medium", "high")),
    "claude-sonnet-4-5": Known(thinks=False),
    "claude-haiku-4-5": Known(thinks=False),
}

_DATED = re.compile(r"-\d{8}$")


def resolve(name: str) -> str:
    """The model id of an alias.

    Any other name is returned as it is: local servers have names of their own.
    """
    return ALIASES.get(name.strip().lower(), name)


def ends(model: str) -> str | None:
    """The day on which Anthropic switches a model off, as its SDK knows it; None if no end is known."""
    return DEPRECATED_MODELS.get(resolve(model))


def known(model: str) -> Known | None:
    """Facts about a model, by its id or that of a dated snapshot; None if there are none."""
    return MODELS.get(_DATED.sub("", model))
