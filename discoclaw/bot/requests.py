"""Recognises what people ask of the bot in a few plain words, so that no model has to be asked.

    request_of("Hey, what do you know about me?")  ->  Request("show")
    request_of("please forget my cat")             ->  Request("forget", "my cat")
    request_of("can you help me cook?")            ->  None

Only a message that is such a request as a whole, and quotes nobody, counts: a request that is missed goes to
the model, which can answer it, but talk that is taken for a request gets no answer. The sentences are in
`requests.txt`, in every language whose function words `core/languages` has, and a few more. Knows nothing
about what is done then.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from discoclaw.core.own_words import own_words
from discoclaw.core.words import fold

_LONGEST = 100
_PART = re.compile(r"\$?\w+|[()\[\]|]")
_MARKS = {"[": "(?:", "]": ")?", "(": "(?:", ")": ")", "|": "|"}


@dataclass(frozen=True, slots=True)
class Request:
    """A plain request: "help", to "show", "erase" or "forget" memories, "optout" or "optin", or "mistyped".

    `what` is to be forgotten, or the commands that were meant, each in a line.
    """

    kind: str
    what: str = ""


def request_of(text: str, name: str = "") -> Request | None:
    """The request in a message; None if it is talk. `name` is ours, with which people may address us."""
    if len(text) > _LONGEST:
        return None
    said = _plain(text)
    if name:
        said = f" {said}".replace(f" {_plain(name)}", " ", 1).lstrip()
    kinds, to_forget, of_talk = _sentences()
    for kind, known in kinds.items():
        if known.fullmatch(said):
            return Request(kind) if _plain(" ".join(own_words(text))) == _plain(text) else None
    found = to_forget.fullmatch(text.strip())
    return Request("forget", found["what"]) if found and not of_talk.search(found["what"]) else None


def _plain(text: str) -> str:
    """The words of a text, each with a space behind it, as the sentences of the file are compared."""
    return "".join(f"{word} " for word in re.findall(r"\w+", re.sub(r"['’`´]", "", fold(text))))


@cache
def _sentences() -> tuple[Mapping[str, re.Pattern[str]], re.Pattern[str], re.Pattern[str]]:
    """A pattern for each kind of request, one for what is to be forgotten, and one for what isn't."""
    parts, kinds, lines = dict[str, str](), dict[str, list[str]](), list[str]()
    for line in files(__package__).joinpath("requests.txt").read_text("utf-8").splitlines():
        name, sign, part = line.partition(" ~ " if " ~ " in line else " = ")
        if kind := re.fullmatch(r"\[(\w+)\]", line):
            lines = kinds.setdefault(kind[1], [])
        elif sign:
            parts[name] = parts.get(name, "") + (part if "~" in sign else f"(?:{_pattern(part, parts)})")
        elif line and not line.startswith("#"):
            lines.append(_pattern(line, parts))
    around = f"{parts['before']}*(?:{{}}){parts['after']}*"
    asked = {kind: re.compile(around.format("|".join(lines))) for kind, lines in kinds.items()}
    return asked, re.compile(parts["to_forget"], re.IGNORECASE), re.compile(parts["of_talk"], re.IGNORECASE)


def _pattern(line: str, parts: Mapping[str, str]) -> str:
    """A line of the file as a regular expression for what `_plain` makes of texts."""
    found = _PART.findall(re.sub("['’]", "", fold(line)))
    return "".join(parts[one[1:]] if one[0] == "$" else _MARKS.get(one, f"{one} ") for one in found)
