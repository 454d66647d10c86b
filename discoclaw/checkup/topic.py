"""Subjects that are looked at side by side. Each takes at most its time, and none costs the others anything.

Knows nothing about what is looked at.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass

from discoclaw.core.errors import DiscoClawError
from discoclaw.core.health import Finding
from discoclaw.core.text import collapse

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Topic:
    """One subject. `name` is for the command line, `title` for people.

    `look` yields what it finds, one after another, and is given up after `within_s` seconds; what it found
    until then counts. A DiscoClawError that it raises is a finding.
    """

    name: str
    title: str
    look: Callable[[], AsyncIterator[Finding]]
    within_s: float = 30.0


@dataclass(frozen=True, slots=True)
class Looked:
    """A topic, and what was found."""

    topic: Topic
    findings: tuple[Finding, ...]


async def examine(topics: Sequence[Topic]) -> AsyncIterator[Looked]:
    """All topics at the same time, each as soon as it is done."""
    tasks = [asyncio.create_task(_looked(topic), name=topic.name) for topic in topics]
    try:
        for done in asyncio.as_completed(tasks):
            yield await done
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _looked(topic: Topic) -> Looked:
    found: list[Finding] = []
    try:
        async with asyncio.timeout(topic.within_s):
            async for one in topic.look():
                found.append(one)
    except TimeoutError:
        found.append(
            Finding(
                topic.title, "bad", f"gave up after {topic.within_s:g} s", "see whether something hangs there"
            )
        )
    except DiscoClawError as error:
        found.append(finding(topic.title, error))
    except Exception as error:  # a named edge: a check that crashes must not hide what the others find
        log.exception("the check of %s failed", topic.name)
        why = f"couldn't be checked ({type(error).__name__}); that is a bug of DiscoClaw"
        found.append(Finding(topic.title, "bad", why, "report it with the traceback above"))
    return Looked(topic, tuple(found))


def finding(name: str, error: DiscoClawError) -> Finding:
    """A finding of what an error says: "the thing: the reason; the way out", or "…: check the setting"."""
    said = collapse(str(error))
    text, found, way_out = said.partition("; ")
    if not found and ": check " in said:
        text, _, way_out = said.partition(": check ")
        way_out = f"check {way_out}"
    return Finding(name, "bad", text, way_out)
