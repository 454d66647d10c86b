"""Tells what a model says from what it thinks, from calls it writes as text, and from marks of its prompt.

A server that understands its model sends thoughts and calls apart. Many local ones don't for some models: all
of it is text then, with `<think>…</think>`, the channels of OpenAI's harmony format, `<|im_end|>`, and calls
such as `<tool_call>{…}</tool_call>`. In a code block or in backticks, these are what the answer is about.
Knows nothing about servers, requests or tools.
"""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import regex

from discoclaw.core.model import WRITTEN

LONGEST = 256
"""No more characters than these are held back to see whether they are a mark."""
MOST_CALL = 50_000
"""Longest call that is read, in characters. An honest one doesn't come near it."""
_STEP = 4096  # a longer piece is heard in parts, because each mark in it costs a copy of what follows
_CALLS = {
    f"<{WRITTEN}>": f"</{WRITTEN}>",
    "<tool_call>": "</tool_call>",  # Qwen, Hermes
    "<function_call>": "</function_call>",
    "<function_calls>": "</function_calls>",
    "<minimax:tool_call>": "</minimax:tool_call>",
    "<function=": "</function>",  # Llama 3.1
    "<|python_tag|>": "<|eom_id|>",  # Llama 3
    "[TOOL_CALLS]": "</s>",  # Mistral
    "<|tool_call|>": "<|/tool_call|>",  # Granite, Phi
    "<｜tool▁calls▁begin｜>": "<｜tool▁calls▁end｜>",  # DeepSeek
    "<|tool_calls_section_begin|>": "<|tool_calls_section_end|>",  # Kimi
}
_MARK = regex.compile(
    r"(?:(?P<think><think(?:ing)?>|<thought>|<seed:think>|\[THINK\])"
    r"|(?P<thought></think(?:ing)?>|</thought>|</seed:think>|\[/THINK\])"
    rf"|(?P<call>{'|'.join(map(re.escape, _CALLS))})"
    r"|<\|(?:im_end|eot_id|eom_id|endoftext|end_of_text|end|return|call)\|>|<end_of_turn>|<｜end▁of▁sentence｜>"
    r")(?=(?P<after>[\s\S]))"
    r"|(?:<\|(?:im_start|start|start_header_id)\|>(?=\w)|<start_of_turn>"
    r"|(?=<\|channel\|>(?:analysis|commentary|final)))"
    r"(?P<head>[^\n]{0,180}?)(?:<\|message\|>|<\|end_header_id\|>|\n)"
)
_STARTS = re.compile(r"[<\[\n]")
_THOUGHT_ENDS = re.compile(r"</think(?:ing)?>|</thought>|</seed:think>|\[/THINK\]")
_MESSAGE_ENDS = re.compile(r"<\|(?:end|return|call)\|>|(?=<\|(?:start|channel)\|>)")
_NEVER = re.compile(r"(?!)")


class Written(NamedTuple):
    """A call of a tool that was written as text.

    `input` is None, and `name` "", where it can't be read. `source` is what `input` was read from.
    """

    name: str
    input: object
    source: str = ""


@dataclass(frozen=True, slots=True)
class Speech:
    """Speech of a model, and the calls that it wrote."""

    text: str
    calls: tuple[Written, ...] = ()


def spoken(text: str) -> Speech:
    """Find the speech in a whole text."""
    hearing = Hearing()
    said = hearing.feed(text)
    rest = hearing.end()
    return Speech(rest if hearing.anew else said + rest, tuple(hearing.calls))


def meant(calls: Sequence[Written], given: str) -> tuple[Written, ...]:
    """The calls, without the input of those that only repeat what the model was `given` to read."""
    given = _bare(given) if calls else ""

    def again(call: Written) -> bool:
        return _bare(call.source) in given and _bare(call.name) in given

    return tuple(call._replace(input=None) if again(call) else call for call in calls)


class Hearing:
    """Hears a text in pieces: `feed` and `end` return what is certain to be said, and `calls` grows.

    Blanks before the first word are dropped. `anew`: what was returned last takes the place of everything
    before it, which turned out to be a thought. `thinking`: the text is expected to begin with a thought, as
    some models begin without a mark. `thinks_first`: it did.
    """

    def __init__(self, *, thinking: bool = False) -> None:
        self.calls: list[Written] = []
        self.anew = self.thinks_first = False
        self._left = ""  # not decided yet
        self._said: list[str] = []  # not returned yet
        self._spoke = self._thought = False
        self._line = self._last = self._fence = ""  # the line's first characters; the last one
        self._ticks = 0  # in this line
        self._region = "guess" if thinking else ""  # or "thought", "call", "over"
        self._closed, self._called, self._seen = _THOUGHT_ENDS, "", 0  # of the region

    def feed(self, piece: str) -> str:
        """The speech so far as this piece makes it certain."""
        anew, said = False, list[str]()
        for at in range(0, len(piece), _STEP):
            more = self._hear(piece[at : at + _STEP], last=False)
            anew, said = (True, [more]) if self.anew else (anew, [*said, more])
        self.anew = anew
        return "".join(said)

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

    def _outside(self, last: bool) -> bool:
        """Say what comes before the next mark. Returns whether one was found."""
        text, at, left = self._left + "\n" * last, 0, len(self._left)  # the last line may be a mark
        while start := _STARTS.search(text, at):
            self._say(text[at : start.start()])
            at = start.start()
            found = _MARK.match(text, at, partial=not last) if text[at] != "\n" else None
            if at >= left or (found is not None and found.partial):
                break
            if found is not None and self._counts(found):
                self._left = self._left[found.end() :]
                self._take(found)
                return True
            self._say(text[at])
            at += 1
        else:
            self._say(text[at:left])
            at = left
        self._left = self._left[at:]
        return False

    def _say(self, text: str) -> None:
        """Say a piece of a line, or its end."""
        if text == "\n":
            run = self._line.lstrip()[:3]
            if run == (self._fence or run) and (run == "~~~" or (run == "```" and self._ticks % 2)):
                self._fence = "" if self._fence else run
            self._line, self._last, self._ticks = "", "", 0
        elif text:
            self._line, self._last = (self._line + text[:9])[:9], text[-1]
            self._ticks += text.count("`")
        if text := text if self._spoke else text.lstrip():
            self._said.append(text)
            self._spoke = True

    def _counts(self, mark: "regex.Match[str]") -> bool:
        """Whether it is a mark and not what the text is about."""
        line = self._line.strip()
        if line[:3] != self._fence if self._fence else self._ticks % 2:
            return False
        if mark["think"] or not line:
            return not line
        return self._last not in " \t\"'“‘(" or (mark["after"] or "<") in "[{<\n"

    def _take(self, mark: "regex.Match[str]") -> None:
        """Go on behind a mark: in a region that isn't speech, or with speech."""
        head, begun = mark["head"], mark["call"]
        if mark["think"]:
            self._enter("thought", _THOUGHT_ENDS)
        elif begun:
            called = WRITTEN if begun == f"<{WRITTEN}>" else ""
            self._enter("call", re.compile(re.escape(_CALLS[begun])), called)
            self._left = (begun if begun.endswith("=") else "") + self._left
        elif mark["thought"] and not self._thought:
            self.anew = self.thinks_first = self._thought = True
            self._said, self.calls, self._spoke = [], [], False
        elif head and not re.match(r"<\||(?:assistant|model)\b", head):
            self._enter("over", _NEVER)  # it goes on with what others might say
        elif head and (to := re.search(r"\bto=([\w.-]+)", head)):
            self._enter("call", _MESSAGE_ENDS, to[1])
        elif head and "<|channel|>analysis" in head:
            self._enter("thought", _MESSAGE_ENDS)
        self._line, self._last, self._ticks, self._fence = "", "", 0, ""

    def _enter(self, region: str, closed: "re.Pattern[str]", called: str = "") -> None:
        self._region, self._closed, self._called, self._seen = region, closed, called, 0

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
        self.thinks_first = self.thinks_first or region == "guess"
        self._thought = self._thought or region in ("thought", "guess")
        return True


_OBJECT = re.compile(
    r"(?<![\w.:-])([\w.:-]{0,100})(?:\[ARGS\]|<\|tool_call_argument_begin\|>|\s{0,9}```json)?\s{0,9}(?=\{)"
)
_TAGGED = re.compile(
    r"<(?:function=|invoke name=\")([\w.:-]+)\"?>(.*?)(?:</(?:function|invoke)>|\Z)", re.DOTALL
)
_PARAMETER = re.compile(r"<parameter(?:=| name=\")([\w.-]+)\"?>(.*?)(?:</parameter>|\Z)", re.DOTALL)


def _calls(body: str, name: str = "") -> list[Written]:
    """The calls written in `body`, or one that can't be read. With a `name`, `body` is that call's input."""
    if name or len(body) > MOST_CALL:
        return [Written(_plain(name), _read(body[:MOST_CALL]), body)]
    found = _TAGGED.findall(body) if body.lstrip().startswith("<") else ()
    tagged = [Written(_plain(name), _parameters(given), given) for name, given in found]
    return tagged or [*_objects(body)] or [Written("", None)]


def _parameters(text: str) -> object:
    """The input of a call in tags: JSON, or a tag for each value, which may be JSON too."""
    if text.lstrip().startswith("{"):
        return _read(text)
    pairs = ((name, value.strip()) for name, value in _PARAMETER.findall(text))
    return {name: text if (value := _read(text)) is None else value for name, text in pairs}


def _objects(body: str) -> Iterator[Written]:
    """The calls in JSON, each with its name inside or before it."""
    at = 0
    while found := _OBJECT.search(body, at):
        call, at = _decoded(body, found.end())
        name, given, source = found[1], call, body[found.end() : at]
        if not name and call is not None:
            call = call["function"] if isinstance(call.get("function"), dict) else call
            name = call["name"] if isinstance(call.get("name"), str) else ""
            given = next((call[key] for key in ("arguments", "parameters", "input") if key in call), {})
        given = _read(given) if isinstance(given, str) else given if name else None
        yield Written(_plain(name), given, source)


def _read(text: str) -> object:
    return _decoded(text.strip(), 0)[0]


def _decoded(text: str, at: int) -> tuple[Any, int]:
    """The JSON that begins there and where it ends; None and the end of the text if there is none."""
    try:
        return json.JSONDecoder().raw_decode(text, at)
    except (ValueError, RecursionError):
        return None, len(text)


def _bare(text: str) -> str:
    """Its letters and digits, which stay the same however a text is quoted."""
    return re.sub(r"\W+", "", text)


def _plain(name: str) -> str:
    """The name of a tool without what some formats put around it."""
    return name.removeprefix("functions.").partition(":")[0]
