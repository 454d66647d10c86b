"""What a history says about earlier consolidations: what they reviewed, and what the person decided. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from discoclaw.core.event import Commit, Event
from discoclaw.core.text import normalise


@dataclass(frozen=True, slots=True)
class PastDecisions:
    """The person's decisions on earlier consolidations, so that nothing is asked or done twice.

    `answered`: questions the person has settled, as an item's id and the normalised text that contradicted
    it. `kept`: ids of items that a consolidation had deprecated and that were then restored.
    """

    answered: frozenset[tuple[str, str]] = frozenset()
    kept: frozenset[str] = frozenset()


def past_decisions(chain: Iterable[Commit]) -> PastDecisions:
    """The decisions on a branch, given its commits in order. Rewording an item makes it a new case."""
    answered: set[tuple[str, str]] = set()
    gone: set[str] = set()
    kept: set[str] = set()
    words: dict[str, str] = {}
    for commit in chain:
        tidied = "consolidated" in commit.metadata
        for event in commit.events:
            target, body = _target(event), event.ext.get("item", {})
            if target is None:
                continue
            noted = event.ext.get("conflict", {})
            if event.event_type == "observe" and noted.get("settled"):
                answered.add((target, normalise(str(noted.get("text", "")))))
            text = normalise(str(body.get("text", words.get(target, ""))))
            if text != words.get(target, text):
                answered = {pair for pair in answered if pair[0] != target}
                kept.discard(target)
            words[target] = text
            if body.get("status") == "deprecated":
                (gone.add if tidied else gone.discard)(target)
            elif target in gone and body.get("status") == "active" and not tidied:
                gone.discard(target)
                if commit.metadata.get("by") != "extraction":  # learning it once more is not a decision
                    kept.add(target)
    return PastDecisions(frozenset(answered), frozenset(kept))


def _target(event: Event) -> str | None:
    given: Any = event.ext.get("item", {}).get("id")
    return given if isinstance(given, str) else None
