"""Earlier consolidations in a history: what they reviewed, and what the person decided. Pure."""

from collections.abc import Collection, Iterable, Sequence
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


@dataclass(frozen=True, slots=True)
class Review:
    """How far a branch was reviewed: up to one of the commits `heads`, at a time (ms).

    `left` are the ids of items that were not.
    """

    heads: frozenset[str] = frozenset()
    at: int = 0
    left: frozenset[str] = frozenset()


def changed_since(chain: Sequence[Commit], heads: Collection[str]) -> set[str] | None:
    """The ids of items that were added or changed after the newest of some commits of a branch.

    None if the branch has none of them, so that nothing of it was reviewed.
    """
    found: set[str] = set()
    for commit in reversed(chain):
        if commit.id in heads:
            return found
        changes = (event for event in commit.events if event.event_type in ("add", "modify"))
        found |= {target for event in changes if "link" not in event.ext and (target := _target(event))}
    return None


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
