"""Learns traits of the bot that its owners ask for in ordinary talk, as part of that talk's extraction.

A trait shows in every answer to everybody, so the rules are stricter than for an item. It may come only from
an owner's own words, with nobody else's beside them or in them (a forward, a quotation), which could have
influenced the model. Traits go into the bot's own memory in a commit of their own; if a rule or the disk
refuses one, that is only logged.
"""

import logging
from collections.abc import Callable, Collection, Sequence
from typing import Any

from discoclaw.core.draft import Draft
from discoclaw.core.draft_patch import Shown
from discoclaw.core.errors import MemoryFault, Refused
from discoclaw.core.message import Said
from discoclaw.core.own_words import holds_others
from discoclaw.core.patch import Patch
from discoclaw.core.subject import BOT, HUMAN
from discoclaw.memory.subjects.store import Memory
from discoclaw.soul.soul import MOST_SHOWN, learn

log = logging.getLogger(__name__)

RULE = """\

This person owns the assistant. Only when they say how the assistant itself is to be or to talk from now on, \
add "traits": [{"key": "<one or two words>", "text": "<the trait, in a few words>", "source": "m1", \
"quote": "…"}]. A wish for one answer is no trait, and nothing about a person is."""


class Traits:
    """Learns traits from what `owners` (user ids) say."""

    def __init__(self, memory: Memory, owners: Collection[str]) -> None:
        self._memory = memory
        self._owners = owners

    def welcome(self, user_id: str, own: Sequence[Said], context: Sequence[Said]) -> bool:
        """Whether a person's `own` lines may yield traits, with the lines of `context` in the prompt."""
        if user_id not in self._owners:
            return False
        theirs = [*own, *(said for said in context if not said.by_us)]
        return all(said.author_id == user_id and not holds_others(said.text) for said in theirs)

    async def learn(
        self, user_id: str, patch: Patch, shown: Shown, messages: Sequence[str], still: Callable[[], bool]
    ) -> None:
        """Adopt the traits of a patch. `still` checks at the last moment that the words count."""
        if not patch.traits:
            return

        def wish(draft: Draft) -> list[str]:
            if not still():
                return ["their words no longer count"]
            refused: list[str] = []
            for trait in patch.traits[:MOST_SHOWN]:
                try:
                    refused += learn(draft, [trait], shown.basis(trait))
                except Refused as refusal:
                    refused.append(str(refusal))
            return refused

        try:
            about: dict[str, Any] = {"by": "extraction", "messages": list(messages), HUMAN: user_id}
            refused = await self._memory.change(BOT, "learned from talk", wish, **about)
        except (MemoryFault, Refused) as fault:
            refused = [str(fault)]
        for reason in refused:
            log.info("a trait was not learned: %s", reason)
