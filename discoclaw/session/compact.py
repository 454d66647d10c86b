"""Keeps the transcript of an answer within the model's context. Pure.

A transcript grows with every round of tools. When it gets too long, its beginning (the prompt) and its last
messages stay, and one line says what was left out in between. Calls are never separated from their results,
because every provider rejects that. The result of a single tool is cut to a share of the context, so that it
cannot fill it alone. Independent of any tool and of where the turns come from: answers and interviews use
it alike.
"""

import json
import re
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache

from discoclaw.core.model import (
    AssistantTurn,
    Finished,
    ModelRequest,
    Reads,
    ToolResult,
    ToolSpec,
    ToolTurn,
    Turn,
    Unseen,
    Usage,
    UserTurn,
    reads_usual,
    without,
)
from discoclaw.core.text import clip, scrub
from discoclaw.core.values import dataclass, replace

MOST_MESSAGES = 50
FULL = 0.75
"""The share of the context above which a transcript is compacted."""
FEWEST_MESSAGES = 12
"""A transcript of at most so many messages is left as it is."""
KEPT = 10
"""How many of the last messages stay."""
TOKENS_A_WORD = 1.3

_BYTES_A_TOKEN = 6  # for text without spaces, where counting words underestimates
RESULTS_SHARE = 10  # the results of one round take at most this part (1/10) of the context
_DENSE = 3  # bytes a token: scripts other than Latin, and JSON, come near this
_CALLS_SHOWN = 10
_OUTCOME_MAX = 80
_NO_NAME = re.compile(r"[^A-Za-z0-9_.-]+")


LEAST_ANSWER = 256
"""An answer may take so many tokens, however little a model reads."""


@dataclass(frozen=True, slots=True)
class AnswerRules:
    """The most tokens of one answer, and how many each model reads at once, its answer included.

    `remembers`: an answer may be stored and reused for the person who got it. `compacted(subject)` is called
    soon after a transcript had to be shortened.
    """

    answer_tokens: int = 4096
    reads: Reads = reads_usual
    remembers: bool = True
    compacted: Callable[[str], None] = lambda subject: None

    def answer(self, model: str) -> int:
        """The most tokens of an answer of this model: a quarter of what it reads."""
        return min(self.answer_tokens, max(LEAST_ANSWER, self.reads(model) // 4))


@dataclass(frozen=True, slots=True)
class Called:
    """A call that was left out: the tool's name, the beginning of what it answered, whether it failed."""

    name: str
    outcome: str
    failed: bool = False


@dataclass(frozen=True, slots=True)
class LeftOut(UserTurn):
    """The line in place of `count` messages. A type of its own, so that no text can be mistaken for one."""

    count: int
    calls: tuple[Called, ...] = ()


def word_tokens(text: str) -> float:
    """Tokens by the rule of thumb: 1.3 a word, where words are separated by white space."""
    return len(text.split()) * TOKENS_A_WORD


def estimate(text: str) -> float:
    """Estimated tokens of a text: by its words, or by its bytes if it has few spaces."""
    return max(word_tokens(text), _bytes(text) / _BYTES_A_TOKEN)


def _bytes(text: str) -> int:
    """The length of a text in UTF-8; of ASCII it is known without another copy of the whole prompt."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


_of_tool = lru_cache(maxsize=256)(estimate)


def most_tokens(texts: Iterable[str]) -> int:
    """The tokens that texts hardly exceed, whatever their script."""
    return sum(map(_bytes, texts)) // _DENSE


def tokens_of(tools: Iterable[ToolSpec]) -> int:
    """The tokens that the descriptions of tools hardly exceed."""
    return most_tokens(tool.text for tool in tools)


def estimate_turns(turns: Iterable[Turn]) -> float:
    """Estimated tokens of turns, with what is shown beside their texts."""
    return sum(sum(map(estimate, _texts(turn))) + _shown(turn) for turn in turns)


def counted(usage: Usage) -> int | None:
    """Tokens of a request and its answer as the provider counted them, or None if it did not."""
    asked = usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens
    return asked + usage.output_tokens if asked > 0 else None


def compact(turns: Sequence[Turn], tokens: float, context_tokens: int) -> tuple[Turn, ...]:
    """Return the turns, shortened if they are over 50 or take over 75 % of the context, and are more than 12.

    The first message and the last 10 stay; a cut between calls and their results moves to before the calls.
    What stays loses the provider's own content: thoughts are only accepted behind all that they rest on.
    The result is never longer than the input, and compacting it again changes nothing.
    """
    turns = tuple(turns)
    too_many = len(turns) > MOST_MESSAGES or tokens > FULL * context_tokens
    if not too_many or len(turns) <= FEWEST_MESSAGES:
        return turns
    begin = 1
    while isinstance(turns[begin], ToolTurn) and begin < len(turns) - KEPT:
        begin += 1
    end = len(turns) - KEPT
    while isinstance(turns[end], ToolTurn) and end > begin:
        end -= 1
    if end - begin < 2:
        return turns  # replacing one message by one line gains nothing
    return (*turns[:begin], left_out(turns[begin:end]), *map(_plain, turns[end:]))


def left_out(turns: Sequence[Turn]) -> LeftOut:
    """The line in place of these turns; an earlier such line counts as all the turns it replaced."""
    count = sum(turn.count if isinstance(turn, LeftOut) else 1 for turn in turns)
    calls = tuple(_calls(turns))
    said = [
        f"{call.name}{' failed' if call.failed else ''} → {json.dumps(call.outcome, ensure_ascii=False)}"
        for call in calls[-_CALLS_SHOWN:]
    ]
    if len(calls) > len(said):
        said.insert(0, f"{len(calls) - len(said)} calls of tools")
    messages = "1 earlier message" if count == 1 else f"{count} earlier messages"
    return LeftOut(f"[{messages} left out{': ' if said else ''}{'; '.join(said)}]", count, calls)


def clipped(turn: ToolTurn, context_tokens: int) -> ToolTurn:
    """The results, each cut to its share of what one round may take, with a note about the cut."""
    room = context_tokens * _DENSE // (RESULTS_SHARE * max(1, len(turn.results)))
    return ToolTurn(tuple(_clipped(result, room) for result in turn.results))


class Transcript:
    """The turns of one answer so far, in a context of so many tokens."""

    def __init__(self, request: ModelRequest, context_tokens: int) -> None:
        self._request = request
        self._context_tokens = context_tokens
        self._counted: int | None = None
        self._since: list[Turn] = []  # what was appended after the provider's last count

    @property
    def tokens(self) -> float:
        """Its length: the provider's count plus an estimate of the rest, or an estimate of all."""
        if self._counted is not None:
            return self._counted + estimate_turns(self._since)
        system = sum(estimate(block.text) for block in self._request.system)
        tools = sum(_of_tool(tool.text) for tool in self._request.tools)
        return system + tools + estimate_turns(self._request.turns)

    def request(self, *, may_call: bool) -> ModelRequest:
        """The next request to the model."""
        return replace(self._request, may_call=may_call)

    def compact(self) -> bool:
        """Shorten the transcript if necessary. Returns whether anything was left out."""
        if len(self._request.turns) <= FEWEST_MESSAGES:
            return False  # the usual case, which needs no counting
        turns = compact(self._request.turns, self.tokens, self._context_tokens)
        if len(turns) == len(self._request.turns):
            return False
        self._request, self._counted = replace(self._request, turns=turns), None
        return True

    def leave_out(self, unseen: Sequence[Unseen]) -> None:
        """Go on without media that the model was not given, so that they are not refused in every round."""
        turns = (
            without(turn, unseen) if isinstance(turn, UserTurn) else turn for turn in self._request.turns
        )
        self._request = replace(self._request, turns=tuple(turns))

    def ask(self, text: str) -> None:
        """Append a message of the bot. The model's own turn, which can't be sent, is left out."""
        self._request = replace(self._request, turns=(*self._request.turns, UserTurn(text)))
        self._counted = None

    def add(self, finished: Finished, results: ToolTurn) -> None:
        """Append the model's turn, and the results of its calls."""
        results = clipped(results, self._context_tokens)
        turns = (*self._request.turns, finished.turn, results)
        level = finished.less.level if finished.less is not None else self._request.level or "usual"
        self._request = replace(self._request, turns=turns, level=level)
        known = counted(finished.usage)
        if known is not None:
            self._counted, self._since = known, [results]
        elif self._counted is not None:
            self._since += [finished.turn, results]


def _plain(turn: Turn) -> Turn:
    return replace(turn, raw=None) if isinstance(turn, AssistantTurn) else turn


def _shown(turn: Turn) -> int:
    return sum(one.tokens for one in turn.media) if isinstance(turn, UserTurn) else 0


def _texts(turn: Turn) -> Iterable[str]:
    match turn:
        case UserTurn(text):
            yield text
        case AssistantTurn(text, calls):
            yield text
            for call in calls:
                yield f"{call.name} {json.dumps(call.input, ensure_ascii=False, default=str)}"
        case ToolTurn(results):
            for result in results:
                yield result.text


def _calls(turns: Sequence[Turn]) -> Iterable[Called]:
    names: dict[str, str] = {}
    for turn in turns:
        match turn:
            case LeftOut(calls=calls):
                yield from calls
            case AssistantTurn(calls=made):
                names = {call.id: call.name for call in made}
            case ToolTurn(results):
                for result in results:
                    yield _called(names.get(result.call_id, ""), result)


def _called(name: str, result: ToolResult) -> Called:
    """A short description of a call. The model chose the name, so it may not be the name of any tool."""
    outcome = clip(" ".join(scrub(result.text[: _OUTCOME_MAX * 4]).split()), _OUTCOME_MAX)
    return Called(clip(_NO_NAME.sub("-", name), 64) or "a tool", outcome, result.failed)


def _clipped(result: ToolResult, room: int) -> ToolResult:
    text = scrub(result.text)
    content = text.encode()
    if len(content) <= room:
        return result
    note = "\n[the last {} of {} characters are left out: the result was too long; ask for less]"
    longest = len(note.format(len(text), len(text)))
    kept = content[: max(0, room - longest)].decode("utf-8", "ignore")
    return replace(result, text=kept + note.format(len(text) - len(kept), len(text)))
