"""Learns traits of the bot that its owners ask for in ordinary talk, as part of that talk's extraction.

A trait shows in every answer to everybody, so the rules are stricter than for an item. It may come only from
an owner's own words, with nobody else's beside them or in them (a forward, a quotation), which could have
influenced the model. Traits go into the bot's own memory in a commit of their own; if a rule or the disk
refuses one, that is only logged.
"""

import logging
import re
from collections.abc import Callable, Collection, Sequence
from typing import Any

from discoclaw.core.bot_memory import BOT, HUMAN
from discoclaw.core.draft import Draft, Origin
from discoclaw.core.errors import MemoryFault, Refused
from discoclaw.core.message import Said
from discoclaw.core.patch import Patch
from discoclaw.memory.subjects.store import Memory
from discoclaw.soul.soul import learn

log = logging.getLogger(__name__)

RULE = """\

This person is the owner of the assistant they talk with. Only when they say how the assistant itself is to \
be or to talk from now on, add to the JSON: "traits": [{"key": "<one or two words>", "text": "<the trait, in \
a few words>"}]. A wish for one answer is no trait, and nothing about a person is."""

_OTHERS = re.compile(r"^\s*(?:\(forwarded: |>)", re.MULTILINE)
"""Where another person's words begin in a message: a forward, in `bot/wire`'s form, or a quotation."""


class Traits:
    """Learns traits from what `owners` (user ids) say."""

    def __init__(self, memory: Memory, owners: Collection[str]) -> None:
        self._memory = memory
        self._owners = owners

    def welcome(self, user_id: str, own: Sequence[Said], context: Sequence[Said]) -> bool:
        """Whether a person's `own` lines may yield traits, with the lines of `context` in the prompt."""
        alone = all(said.by_us for said in context) and not any(_OTHERS.search(said.text) for said in own)
        return user_id in self._owners and alone

    async def learn(
        self, user_id: str, patch: Patch, origin: Origin, messages: Sequence[str], still: Callable[[], bool]
    ) -> None:
        """Adopt the traits of a patch. `still` checks at the last moment that the words count."""
        if not patch.traits:
            return

        def wish(draft: Draft) -> list[str]:
            return learn(draft, patch.traits, origin) if still() else ["their words no longer count"]

        try:
            about: dict[str, Any] = {"by": "extraction", "messages": list(messages), HUMAN: user_id}
            refused = await self._memory.change(BOT, "learned from talk", wish, **about)
        except (MemoryFault, Refused) as fault:
            refused = [str(fault)]
        for reason in refused:
            log.info("a trait was not learned: %s", reason)
