"""The first step of an erasing that touches what people said: every registered part drops it from RAM."""

import logging

from discoclaw.core.personal import Erasure, Registry

log = logging.getLogger(__name__)


def forget(personal: Registry, erasure: Erasure) -> None:
    """Remove what all parts have in RAM. Never blocks."""
    for part in personal:
        try:
            part.forget(erasure)
        except Exception:  # deliberately broad: whatever fails in RAM, the files must go
            log.exception("%s: what %s has in RAM could not be removed", erasure.subject, part.name)
