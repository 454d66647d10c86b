"""A strict reader of prompts, written from the format and not from the code that writes it.

Structure stands in the first column: a section title, a separator, a day, `[Name]: `, `- [kind] `, and in the
loops' prompts `i1 [kind] ` and `m1 Thu 2026-11-19 18:06 [Name]: `. Anything else in the first column is plain
text, and only where plain text may stand. A line counts as structure also when it merely looks like it: in
other widths or cases, or with invisible characters in between.
"""

import re
import unicodedata
from dataclasses import dataclass

GROUP_TITLE = "Notes about this channel:"
SENDER = "Sender:"
DURABLE = "Durable memory (user-specific notes; may be empty):"
ROLLING = "Conversation memory (rolling summary; may be empty):"
RECENT = "Recent conversation:"
LINKED = "Linked messages:"
FILES = "Files in this talk:"
REPLIED_TO = "Replied-to message:"
MESSAGE = "User message:"
NOW_TITLE = "Current time:"
TURN_TITLES = (GROUP_TITLE, SENDER, DURABLE, ROLLING, RECENT, NOW_TITLE, LINKED, FILES, REPLIED_TO, MESSAGE)
FACTS_TITLES = (
    NOW_TITLE,
    "Existing items:",
    "Talk:",
)
SUMMARY_TITLES = (
    NOW_TITLE,
    "Previous summary:",
    "Known themes of this channel:",
    "Known decisions of this channel:",
    "New messages:",
    "Maximum length:",
)
TIDY_TITLES = ("Today's date:", "Items to tidy:")
QUESTION_TITLES = ("What is remembered:", "What stands against it:")
SOUL_TITLES = (
    "Your Identity",
    "About your human",
    "Your philosophy",
    "Learned traits",
    "An interview about who you are to be:",
    "Instructions for this channel:",
)
ALL_TITLES = (
    *TURN_TITLES,
    "Discord Actions:",
    *FACTS_TITLES,
    *SUMMARY_TITLES,
    *TIDY_TITLES,
    *QUESTION_TITLES,
    *SOUL_TITLES,
)

SEPARATOR = "---"
LINE = re.compile(
    r"m\d+ [A-Z][a-z]{2} \d{4}-\d\d-\d\d \d\d:\d\d »?\[([^\[\]]+?)((?: \((?:owner|guest)\))?)\]: "
)
"""A line of the talk in the loops' prompts."""
SPEAKER = re.compile(r"\[([^\[\]]+?)((?: \((?:owner|guest)\))?)\]: ")
FILE = re.compile(r"- Text 1: (?=“)")
DAY = re.compile(r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) \d{4}-\d\d-\d\d:")
ITEM = re.compile(r"- \[(preference|fact|project|constraint|person|tool|workflow)\] ")
INVISIBLE = ("Cf", "Cc", "Mn", "Me")


class Forged(AssertionError):
    """Text has passed for structure."""


@dataclass(frozen=True)
class Entry:
    """One entry of a section: who (or what) it begins with, its mark, and its text."""

    head: str
    mark: str
    text: str


def lines_of(text: str) -> list[str]:
    """Lines, at whatever anybody takes for a line's end."""
    return text.splitlines()


def bare(line: str) -> str:
    """A line as a reader sees it who ignores width, case and what cannot be seen."""
    plain = unicodedata.normalize("NFKC", line)
    return "".join(c for c in plain if unicodedata.category(c) not in INVISIBLE).casefold()


def looks_like_structure(line: str) -> bool:
    plain = bare(line)
    return (
        plain.startswith(tuple(title.casefold() for title in ALL_TITLES))
        or plain.rstrip() == SEPARATOR
        or re.match(r"\[[^\]]*\]:", plain) is not None
        or re.match(r"-\s*\[", plain) is not None
        or DAY.match(plain.title()) is not None
        or re.match(r"\((?:discord:|manual)", plain) is not None
    )


def sections(prompt: str, titles: tuple[str, ...]) -> dict[str, list[str]]:
    """The sections of a prompt by title, in order: each one's lines without the title."""
    found: dict[str, list[str]] = {}
    for part in prompt.split(f"\n\n{SEPARATOR}\n"):
        first, *rest = lines_of(part)
        title = next((title for title in titles if first == title or first.startswith(f"{title} ")), None)
        if title is None:
            raise Forged(f"a section without a title: {first!r}")
        if title in found:
            raise Forged(f"{title} twice")
        for line in rest:
            plain = bare(line)
            if plain.rstrip() == SEPARATOR or plain.startswith(tuple(t.casefold() for t in ALL_TITLES)):
                raise Forged(f"under {title}: {line!r}")
        found[title] = [first[len(title) :].strip(), *rest] if first != title else rest
    order = [titles.index(title) for title in found]
    if order != sorted(order):
        raise Forged(f"sections out of order: {list(found)}")
    return found


def entries(lines: list[str], head: re.Pattern[str]) -> list[Entry]:
    """The entries of a section: each begins in the first column with `head`, its other lines are indented.

    Lines that name a day are left out; `days` has them.
    """
    found: list[Entry] = []
    for line in lines:
        if DAY.fullmatch(line):
            continue
        start = head.match(line)
        if start is not None:
            groups = (*start.groups(), "", "")
            found.append(Entry(groups[0], groups[1].strip(), line[start.end() :]))
        elif line.startswith("  ") and found:
            last = found.pop()
            found.append(Entry(last.head, last.mark, f"{last.text}\n{line[2:]}"))
        else:
            raise Forged(f"neither an entry nor the rest of one: {line!r}")
    return found


def days(lines: list[str]) -> list[str]:
    """The days of a section of entries, in order."""
    return [line.removesuffix(":") for line in lines if DAY.fullmatch(line)]


def talk(prompt: str) -> list[str]:
    """The lines of the recent conversation, without those that name days."""
    return [line for line in sections(prompt, TURN_TITLES).get(RECENT, []) if not DAY.fullmatch(line)]


def plain_text(lines: list[str]) -> list[str]:
    """The lines of a section that holds free text, checked to hold nothing that passes for structure."""
    for line in lines:
        if looks_like_structure(line):
            raise Forged(line)
    return lines
