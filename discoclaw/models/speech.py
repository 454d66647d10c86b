"""Tells what a model says from what it thinks, from calls it writes as text, and from marks of its prompt.

A server that understands its model sends thoughts and calls apart. Many local ones don't for some models: all
of it is text then, with `<think>…</think>`, the channels of OpenAI's harmony format, `<|im_end|>`, and calls
such as `<tool_call>{…}</tool_call>` in a dozen spellings. In a code block or in backticks, these are what the
answer is about. Knows nothing about servers, requests or tools.
"""

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import regex

LONGEST = 256
"""No more characters than these are held back to see whether they are a mark."""
MOST_CALL = 50_000
"""Longest call that is read, in characters. An honest one doesn't come near it."""
_THOUGHTS = {
    "<think>": "</think>",
    "<thinking>": "</thinking>",
    "<thought>": "</thought>",
    "<seed:think>": "</seed:think>",
    "[THINK]": "[/THINK]",
}
_CALLS = {
    "<tool_call>": "</tool_call>",  # Qwen, Hermes, GLM
    "<function_call>": "</function_call>",
    "<function_calls>": "</function_calls>",
    "<function=": "</function>",  # Llama 3.1
    "<|python_tag|>": "<|eom_id|>",  # Llama 3
    "[TOOL_CALLS]": "</s>",  # Mistral
    "<|tool_call|>": "<|/tool_call|>",  # Granite, Phi
    "<｜tool▁calls▁begin｜>": "<｜tool▁calls▁end｜>",  # DeepSeek
    "<|tool_calls_section_begin|>": "<|tool_calls_section_end|>",  # Kimi
    "```tool_call\n": "```",
}


def _any(marks: Iterable[str]) -> str:
    return "|".join(map(re.escape, marks))


_ROLE = r"(?:<\|(?:im_start|start|start_header_id)\|>|<start_of_turn>)(?P<role>\w{1,32})(?P<to>[^<\n]{0,80})"
_CHANNEL = r"<\|channel\|>(?P<channel>analysis|commentary|final)(?P<rest>[^\n]{0,80}?)"
_MARK = regex.compile(
    rf"(?P<think>{_any(_THOUGHTS)})|(?P<thought>{_any(_THOUGHTS.values())})(?=(?P<after>[\s\S]))"
    rf"|(?P<call>{_any(_CALLS)})"
    rf"|(?P<head>(?:{_ROLE}(?:{_CHANNEL})?|{_CHANNEL})(?:<\|message\|>|<\|end_header_id\|>|\n))"
    r"|(?P<end><\|(?:im_end|eot_id|eom_id|endoftext|end_of_text|end|return|call)\|>|<end_of_turn>"
    r"|<｜end▁of▁sentence｜>)(?=[\n<])"
)
_GIVEN = regex.compile(r"\s{0,4}[\[{<]")
_TURNS = re.compile(r"\n|`+|~+|<|\[")
_THOUGHT_ENDS = re.compile(_any(_THOUGHTS.values()))
_MESSAGE_ENDS = re.compile(r"<\|(?:end|return|call)\|>|(?=<\|(?:start|channel)\|>)")
_NEVER = re.compile(r"(?!)")
_CALL_INSIDE = re.compile(rf"^[ \t]*(?:{_any(_CALLS)})", re.MULTILINE)


class Written(NamedTuple):
    """A call of a tool that was written as text. `input` is None, and `name` "", where it can't be read."""

    name: str
    input: object


@dataclass(frozen=True, slots=True)
class Speech:
    """What a model said with a text. `marked`: there was more in it than that."""

    text: str
    calls: tuple[Written, ...] = ()
    marked: bool = False


def spoken(text: str) -> Speech:
    """What is said with a whole text, without thoughts and marks, and the calls that are written in it."""
    hearing = Hearing()
    said = hearing.feed(text)
    rest = hearing.end()
    return Speech(rest if hearing.anew else said + rest, tuple(hearing.calls), hearing.marked)


class Hearing:
    """Hears a text in pieces: `feed` and `end` return what is certain to be said, and `calls` grows.

    `anew`: what was returned last takes the place of everything before it, which turned out to be a thought.
    `thinking`: the text is expected to begin with a thought, as some models begin without a mark.
    `thinks_first`: it did.
    """

    def __init__(self, *, thinking: bool = False) -> None:
        self.calls: list[Written] = []
        self.marked = self.anew = self.thinks_first = False
        self._left = ""  # not decided yet
        self._said: list[str] = []  # not returned yet
        self._spoke = self._trim = False  # a word was said; blanks before the first are dropped
        self._last = ""
        self._begins = True  # a line, or what follows a mark
        self._fence = self._ticks = ""
        self._thought = False
        self._region: Literal["", "thought", "call", "over", "guess"] = "guess" if thinking else ""
        self._closed, self._called, self._seen = _THOUGHT_ENDS, "", 0  # of the region

    def feed(self, piece: str) -> str:
        """What is said, as far as this piece makes it certain."""
        return self._hear(piece, last=False)

    def end(self) -> str:
        """The rest of what is said. A thought or a call that isn't closed ends here."""
        return self._hear("", last=True)

    def _hear(self, piece: str, *, last: bool) -> str:
        self.anew = False
        self._left += piece
        while self._left and (self._inside(last) if self._region else self._outside(last)):
            pass
        text, self._said = "".join(self._said), []
        return text

    def _say(self, text: str) -> None:
        self._last = text[-1:] or self._last
        if text := text.lstrip() if self._trim else text:
            self._said.append(text)
            self._trim, self._spoke = False, self._spoke or not text.isspace()

    def _outside(self, last: bool) -> bool:
        """Say what comes before the next mark. Returns whether one was found."""
        text, at = self._left + "\n" * last, 0  # a mark may need the character after it
        while (turn := _TURNS.search(text, at)) and turn.start() < len(self._left):
            self._begins = self._begins and not text[at : turn.start()].strip()
            at = turn.start()
            if text[at] == "\n":
                self._begins, self._ticks, at = True, "", at + 1
                continue
            mark = None if self._fence or self._ticks else _MARK.match(text, at, partial=not last)
            if mark is not None and (counts := self._counts(mark, text, last)) is not False:
                self._say(self._left[:at])
                self._left = self._left[mark.end() if counts else at :]
                if counts:
                    self._take(mark)
                return bool(counts)
            if text[at] in "`~":
                if turn.end() == len(text) and len(turn[0]) < LONGEST:
                    break
                self._code(turn[0])
            self._begins, at = False, turn.end()
        else:
            self._begins = self._begins and not text[at:].strip()
            at = len(self._left)
        self._say(self._left[:at])
        self._left = self._left[at:]
        return False

    def _counts(self, mark: "regex.Match[str]", text: str, last: bool) -> bool | None:
        """Whether it is a mark and not what the text is about; None if more of the text will tell."""
        if mark.partial:
            return None
        if mark["think"]:
            return self._begins
        if mark["call"] and not self._begins:
            given = _GIVEN.match(text, mark.end(), partial=not last)
            return None if given is not None and given.partial else given is not None
        if mark["thought"]:
            before = text[mark.start() - 1] if mark.start() else self._last
            return not before or before not in " \t\"'“‘(" or mark["after"] == "\n"
        return True

    def _code(self, run: str) -> None:
        """Note a run of backticks or tildes, which begins or ends code."""
        if self._begins and len(run) > 2 and (not self._fence or self._fence == run[0]):
            self._fence = "" if self._fence else run[0]
        elif not self._fence and run[0] == "`":
            self._ticks = "" if self._ticks == run else self._ticks or run

    def _take(self, mark: "regex.Match[str]") -> None:
        """Go on behind a mark: in a region that is no speech, or with speech."""
        self._called = ""
        if (begun := mark["think"]) is not None:
            self._region, self._closed = "thought", re.compile(re.escape(_THOUGHTS[begun]))
        elif (begun := mark["call"]) is not None:
            self._region, self._closed = "call", re.compile(re.escape(_CALLS[begun]))
            self._left = (begun if begun.endswith("=") else "") + self._left
        elif mark["thought"] and not self._thought:
            self.anew = self.thinks_first = self._thought = True
            self._said, self.calls, self._spoke = [], [], False
        elif (mark["role"] or "assistant") not in ("assistant", "model"):
            self._region, self._closed = "over", _NEVER  # it goes on with what others might say
        elif to := re.search(r"to=([\w.-]+)", f"{mark['to']} {mark['rest']}"):
            self._region, self._closed, self._called = "call", _MESSAGE_ENDS, to[1]
        elif mark["channel"] == "analysis":
            self._region, self._closed = "thought", _MESSAGE_ENDS
        self._begin()

    def _begin(self) -> None:
        self.marked, self._begins, self._seen, self._trim = True, True, 0, not self._spoke

    def _inside(self, last: bool) -> bool:
        """Take what stands in a region. Returns whether its end was found, or made by the end of the text."""
        end = self._closed.search(self._left, max(0, self._seen - LONGEST))
        if end is None and not last:
            self._seen = len(self._left)
            return False
        region, self._region = self._region, ""
        if region == "guess" and end is None:
            return True
        body, self._left = (self._left[: end.start()], self._left[end.end() :]) if end else (self._left, "")
        if region == "call":
            self.calls += _calls(body, self._called)
        elif region == "thought" and end is None and (inside := _CALL_INSIDE.search(body)):
            self.calls += _calls(body[inside.end() :])  # some models forget to end a thought before they call
        self.thinks_first = self.thinks_first or region == "guess"
        self._thought = self._thought or region in ("thought", "guess")
        self._begin()
        return True


_OBJECT = re.compile(
    r"([\w.:-]{0,100})\s{0,9}(?:\[ARGS\]|<\|tool_call_argument_begin\|>|```json)?\s{0,9}(?=\{)"
)
_TAGGED = re.compile(r"<(?:function=|invoke\s+name=\")([\w.:-]+)\"?>")
_KEYED = re.compile(r"\s*([\w.-]+)\s*(?=<arg_key>|\Z)")
_PARAMETER = re.compile(
    r"<(?:parameter=|parameter\s+name=\"|arg_key>)([\w.-]+)(?:\"?>|</arg_key>\s*<arg_value>)(.*?)"
    r"(?:</(?:parameter|arg_value)>|\Z)",
    re.DOTALL,
)


def _calls(body: str, name: str = "") -> list[Written]:
    """The calls written in `body`, or one that can't be read. With a `name`, `body` is that call's input."""
    if name or len(body) > MOST_CALL:
        return [Written(_plain(name), _read(body[:MOST_CALL]))]
    keyed = _KEYED.match(body)
    found = [keyed] if keyed is not None else [*_TAGGED.finditer(body)]
    if not found:
        return [*_objects(body)] or [Written("", None)]
    ends = [*(one.start() for one in found[1:]), len(body)]
    inputs = (body[one.end() : end].strip() for one, end in zip(found, ends, strict=True))
    return [Written(_plain(one[1]), _given(text)) for one, text in zip(found, inputs, strict=True)]


def _given(text: str) -> object:
    """The input of a call in tags: JSON, or each parameter in tags of its own, whose value may be JSON."""
    if text.startswith("{"):
        return _read(text)
    pairs = ((one[1], one[2].strip()) for one in _PARAMETER.finditer(text))
    return {name: text if (value := _read(text)) is None else value for name, text in pairs}


def _objects(body: str) -> Iterator[Written]:
    """The calls in JSON, each with its name inside or before it."""
    at = 0
    while found := _OBJECT.search(body, at):
        call, at = _decoded(body, found.end())
        name, given = found[1], call
        if not name and call is not None:
            call = call["function"] if isinstance(call.get("function"), dict) else call
            name = call["name"] if isinstance(call.get("name"), str) else ""
            given = next((call[key] for key in ("arguments", "parameters", "input") if key in call), {})
        yield Written(_plain(name), _read(given) if isinstance(given, str) else given if name else None)


def _read(text: str) -> object:
    return _decoded(text.strip(), 0)[0]


def _decoded(text: str, at: int) -> tuple[Any, int]:
    """The JSON that begins there and where it ends; None and the end of the text if there is none."""
    try:
        return json.JSONDecoder().raw_decode(text, at)
    except (ValueError, RecursionError):
        return None, len(text)


def _plain(name: str) -> str:
    """The name of a tool without what some formats put around it."""
    return name.removeprefix("functions.").partition(":")[0]
