"""Decides when one answer has called enough tools.

Rounds alone are the wrong measure: forty small look-ups are useful work, and eight that fill the context cost
more than they bring. So what counts is what the requests cost, how long the person waits, and whether the
calls still bring anything new. The number of rounds only stops what slips through all of these.
Independent of which tools there are.
"""

import json
from collections.abc import Callable

from discoclaw.core.model import AssistantTurn, ToolTurn
from discoclaw.session.compact import estimate

MOST_TOKENS = 1_000_000
"""Tokens of all requests of one answer: what eight requests of a full context (128,000) take."""
MOST_SECONDS = 300.0
"""How long an answer may go on calling tools."""
MOST_ROUNDS = 60
MOST_REPEATED = 3
"""Rounds in which every call and its result were the same as earlier ones: a model that loops."""


class Allowance:
    """What one answer has spent on tools. `now` returns seconds from any starting point.

    `answer_tokens`: the length of an answer. A model that has written so much between its calls is done.
    """

    def __init__(self, answer_tokens: int, now: Callable[[], float]) -> None:
        self._text_left = float(answer_tokens)
        self._tokens_left = float(MOST_TOKENS)
        self._rounds_left = MOST_ROUNDS
        self._repeats_left = MOST_REPEATED
        self._now = now
        self._until = now() + MOST_SECONDS
        self._seen: set[tuple[str, str, str]] = set()

    def may_call(self) -> bool:
        """Whether the next request may still call tools."""
        left = (self._tokens_left, self._text_left, self._rounds_left, self._repeats_left)
        return min(left) > 0 and self._now() < self._until

    def add(self, tokens: float, turn: AssistantTurn, results: ToolTurn) -> None:
        """Count a round: its request's tokens, what the model wrote, its calls, and what they brought."""
        self._tokens_left -= tokens
        self._rounds_left -= 1
        self._text_left -= estimate(turn.text)
        made = {
            (call.name, json.dumps(call.input, sort_keys=True, default=str), result.text)
            for call, result in zip(turn.calls, results.results, strict=True)
        }
        if made <= self._seen:
            self._repeats_left -= 1
        self._seen |= made
