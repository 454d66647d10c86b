"""A stand-in for a language model that needs no network and no key, for the demo and for tests."""

from discoclaw.core.model import OFFLINE
from discoclaw.models.config import ModelConfig, Models
from discoclaw.models.offline.model import OfflineModel

__all__ = ["OfflineModel", "open_models"]

PIECE_PAUSE_S = 0.02
"""Pause between two pieces of an answer, so that a person sees it being written as a real one would be."""


def open_models(config: ModelConfig) -> Models:
    """One offline model for everything. It needs nothing from the configuration."""
    model = OfflineModel(pause_s=PIECE_PAUSE_S)
    return Models(model, model, model, named=lambda name: model, id_of=lambda name: OFFLINE)
