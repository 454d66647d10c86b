"""What the offline model says. It answers from the prompt and from nothing else.

Pure: the text of a user turn in, the text of an answer out. It reads the sections that `core.titles` names,
lists what is remembered, and says so when it knows nothing. Knows nothing about streams, tools or shapes.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

from discoclaw.core import titles
from discoclaw.core.rolling_text import DECIDED, NOW, OPEN, WANTED, Line, Notes, fitted, ordered
from discoclaw.core.rolling_text import read as read_summary
from discoclaw.core.text import clip, collapse
from discoclaw.core.words import terms
from discoclaw.models.offline.facts import Statement, read

NO_FILES = "I can't look at files: that takes a real model."
NO_FILES_NOW = "I can't look at files for now."
NOT_IN_MEMORY = (
    "I can only look things up in my memory for now, and there is nothing about that. You can still ask what "
    "I remember about you, or tell me to remember something."
)
INTRODUCTION = "*(offline model: no API key is set, so I only repeat what I remember.)*"

_MAXIMUM = re.compile(rf"^{re.escape(titles.MAXIMUM)} (\d+) characters", re.M)

_I = re.IGNORECASE
_TITLES = (
    titles.SENDER,
    titles.DURABLE,
    titles.ROLLING,
    titles.RECENT,
    titles.NOW,
    titles.LINKED,
    titles.FILES,
    titles.REPLIED_TO,
)
_NOTE = re.compile(
    r"^- \[(?P<kind>\w+)\] (?P<text>.+?)(?: \(src: .*, updated (?P<date>[\d-]+)\))?"
    r"(?: \[i\d+\](?: \(linked\))?)?$",
    re.M,
)
_SHORT_ID = re.compile(r":? ?\[i\d+\]")
_LINKED = re.compile(r"^i\d+ and i\d+: (\w+)\.$", re.M)
_FILE = re.compile(r"^- .*, with this message", re.M)
_LINE = re.compile(r"^\[([^\]\n]+)\]: (.*)$", re.M)

# A line of the talk as the loops' prompts have it.
_DATED = re.compile(r"^m\d+ \w{3} (?P<date>[\d-]{10}) [\d:]{5} »?\[(?P<name>[^\]\n]+)\]: (?P<text>.*)$", re.M)
_MARK = re.compile(r"(?: \((?:owner|guest|was [^()\n]+)\))+$")

# A title counts only where a section begins, at the start or under a separator: people can type titles too.
_MESSAGE = re.compile(rf"(?:^|(?<=\n---\n)){re.escape(titles.MESSAGE)}")

_ASKS = re.compile(
    r"^(?:what|which|who|whom|whose|where|when|why|how|do|does|did|is|are|am|was|were|can|could|will|would|"
    r"should|have|has|tell me|list|show me what)\b",
    _I,
)
_ALL = re.compile(
    r"\bwhat (?:do|did|have|can) you (?:\w+ )?(?:remember|know|learn(?:ed)?|stored?)(?: (?:about|of) me)?"
    r"[ ?.!]*$"
    r"|\b(?:remember|know|tell me) (?:everything |anything |something )?(?:about (?:me|myself)|of me)\b"
    r"|\bwho am i\b",
    _I,
)
_PAST = re.compile(r"\bsummar|\btalk(?:ed|ing)? about|\bdiscuss|\bconversation\b|\bso far\b", _I)
_LONG = re.compile(r"\blong\b", _I)
_CODE = re.compile(
    r"^(?:long|code)[.!?]*$"
    r"|\b(?:show|write|give|print|post|send|make)\b.*\b(?:code|script|snippet|program|function|long)\b",
    _I,
)
_GREETING = re.compile(
    r"^(?:hi|hello|hey|hallo|salut|yo|good (?:morning|afternoon|evening))\b[^?]{0,30}$", _I
)
_THANKS = re.compile(r"^(?:thanks|thank you|thx|cheers)\b", _I)
_REMEMBER = re.compile(
    r"^(?:please,? |can you |could you |hey,? )*remember(?: that|:| this:)? "
    r"(?!(?:when|how|what|who|me)\b)(?P<x>.+)$",
    _I | re.S,
)


# Phrases by which people state a channel's topic or a decision.
_THEME = re.compile(
    r"^(?:(?:our|the|today's) )?topic(?: is|:) (?P<x>.+)$"
    r"|^this channel is (?:about|for) (?P<y>.+)$"
    r"|^let'?s talk about (?P<z>.+)$",
    _I,
)
_DECISION = re.compile(
    r"^(?:ok(?:ay)?|so|then|right)?,? ?(?P<x>we(?:'ve| have)? (?:decided|agreed) .+)$"
    r"|^(?:ok(?:ay)?|so|then|right)?,? ?(?P<y>let'?s (?:go with|use|take) .+)$"
    r"|^decision: (?P<z>.+)$",
    _I,
)
_WISH = re.compile(r"\bI(?:'d| would)? (?:want|need|prefer|wish|like)\b", _I)
_GUEST = "(guest)"


@dataclass(frozen=True, slots=True)
class ParsedTurn:
    """The parts of a user turn: the message, and what the prompt adds to it."""

    message: str
    notes: tuple[tuple[str, str, str], ...] = ()
    """Remembered items as kind, text and date."""
    summary: str = ""
    speakers: frozenset[str] = frozenset()
    recent: str = ""
    files: bool = False
    """Whether files came with the message."""


def parse(turn: str) -> ParsedTurn:
    """Split a user turn into its sections. Text without a title is a message."""
    sections: dict[str, str] = {}
    last = _MESSAGE.search(turn)
    if not last:
        return ParsedTurn(turn.strip())
    before, message = turn[: last.start()], turn[last.end() :]
    for part in re.split(r"(?:^|\n+)---\n", before):
        title = next((title for title in _TITLES if part.lstrip("\n").startswith(title)), None)
        if title:
            sections[title] = part.lstrip("\n").removeprefix(title).strip()
    recent = sections.get(titles.RECENT, "")
    return ParsedTurn(
        message.strip(),
        tuple(
            (match["kind"], match["text"], match["date"] or "")
            for match in _NOTE.finditer(sections.get(titles.DURABLE, ""))
        ),
        sections.get(titles.ROLLING, ""),
        frozenset(match[1] for match in _LINE.finditer(recent)),
        recent,
        _FILE.search(sections.get(titles.FILES, "")) is not None,
    )


def asked_to_remember(message: str) -> str | None:
    """The text that a "remember that …" asks to store; None for any other message."""
    match = _REMEMBER.match(_addressed(message))
    return collapse(match["x"]).strip(" .!?") or None if match else None


def answer(turn: ParsedTurn, *, name: str) -> str:
    """The whole answer. `name` is the bot's name, by which it finds out whether it has spoken before."""
    text = f"{_reply(turn)}\n\n{NO_FILES}" if turn.files else _reply(turn)
    met = INTRODUCTION.strip("*()") in turn.recent or any(each.startswith(name) for each in turn.speakers)
    return text if met else f"{INTRODUCTION}\n\n{text}"


def from_memory(turn: ParsedTurn) -> str:
    """The whole answer while no language model may be asked: what is remembered, and nothing else."""
    message = _addressed(turn.message)
    if _ALL.search(message):
        text = _list("Here is what I remember about you:", turn.notes) or _nothing(turn)
    elif _PAST.search(message) and turn.summary:
        text = f"So far: {turn.summary}"
    elif _THANKS.match(message):
        text = "You're welcome!"
    else:
        found = _relevant(message, turn.notes) if terms(message) else []
        text = _list("I can only look it up in my memory for now. It says:", found) or NOT_IN_MEMORY
    return f"{text}\n\n{NO_FILES_NOW}" if turn.files else text


def from_tool(result: str, *, failed: bool) -> str:
    """What a tool did, without the ids by which a model names memories."""
    text = _NOTE.sub(lambda note: _line(note["kind"], note["text"], note["date"] or ""), result)
    text = _LINKED.sub(r"The memories are \1.", _SHORT_ID.sub("", text)).strip()
    done = "That did not work:" if failed else "Done."
    return "\n".join([done, text]) if text.startswith("- ") else f"{done} {text}"


def interview(answers: Sequence[str]) -> str:
    """The next line in the interview about the bot's personality: two questions, then a `<soul>` block."""
    if len(answers) == 1:
        return "That suits me. And **who are you**: what should I call you, and what do you do?"
    if len(answers) == 2:
        return "Good to know. Last: **what do we believe in**, and what should I always do, or never?"
    parts = (*answers[:2], answers[-1])
    identity, user, philosophy = (clip(collapse(answer), 900) or "nothing yet" for answer in parts)
    soul = {"identity": identity, "user": user, "philosophy": philosophy}
    return f"Thank you, I'm ready.\n<soul>{json.dumps(soul, ensure_ascii=False)}</soul>"


def summary(prompt: str, *, name: str) -> str:
    """The previous summary, and a line for each new message of a person, in the section that it fits.

    When it exceeds the prompt's maximum, the oldest lines are dropped.
    """
    parts = titles.sections(prompt)
    previous = read_summary(parts.get(titles.PREVIOUS_SUMMARY, ""))
    maximum = _MAXIMUM.search(prompt)
    lines = []
    for line in _DATED.finditer(parts.get(titles.NEW_MESSAGES, "")):
        if not line["name"].startswith(name):
            said = f"{_MARK.sub('', line['name'])}: “{clip(collapse(line['text']), 80)}”"
            lines.append(Line(_section(line["text"]), line["date"], said))
    kept = previous.prose if previous.prose != "none" else ""
    notes = Notes(kept, ordered([*reversed(lines), *previous.lines]))
    return fitted(str(notes), int(maximum[1]) if maximum else 2000)


def _section(text: str) -> int:
    """The section of a summary in which a message belongs."""
    if text.rstrip().endswith("?"):
        return OPEN
    if _DECISION.match(collapse(text).rstrip(".!")):
        return DECIDED
    return WANTED if _WISH.search(text) else NOW


def themes(prompt: str, *, name: str) -> list[str]:
    """The channel's topics that the new messages state and the prompt doesn't list yet."""
    return _stated(prompt, _THEME, titles.THEMES, name)


def decisions(prompt: str, *, name: str) -> list[str]:
    """The decisions that the new messages state and the prompt doesn't list yet."""
    return [f"{one[:1].upper()}{one[1:]}." for one in _stated(prompt, _DECISION, titles.DECISIONS, name)]


def _stated(prompt: str, pattern: re.Pattern[str], known_title: str, name: str) -> list[str]:
    """What people's sentences state by a pattern, each once. Guests and the bot decide nothing."""
    parts = titles.sections(prompt)
    known = {_words(line.removeprefix("- ")) for line in parts.get(known_title, "").splitlines()}
    found: dict[tuple[str, ...], str] = {}
    for line in _DATED.finditer(parts.get(titles.NEW_MESSAGES, "")):
        if line["name"].startswith(name) or line["name"].endswith(_GUEST):
            continue
        for sentence in re.split(r"(?<=[.!?])\s+", line["text"]):
            match = pattern.match(collapse(sentence).rstrip(".!"))
            if match is not None and not sentence.rstrip().endswith("?"):
                text = next(group for group in match.groups() if group)
                found.setdefault(_words(text), clip(text, 200))
    return [text for key, text in found.items() if key not in known]


def _words(text: str) -> tuple[str, ...]:
    """The words of a text in lower case, to compare it with another."""
    return tuple(re.findall(r"\w+", text.lower()))


def _addressed(message: str) -> str:
    """The message without a mention at its start."""
    return re.sub(r"^(?:<@!?\d+>|@\S+)[\s,:]*", "", message.strip())


def _reply(turn: ParsedTurn) -> str:
    message = _addressed(turn.message)
    if _CODE.search(message) and not re.match(r"i\b|i'm\b", message, _I):
        return _code(200 if _LONG.search(message) else 100)
    if _ALL.search(message):
        return _list("Here is what I remember about you:", turn.notes) or _nothing(turn)
    asks = message.endswith("?") or bool(_ASKS.match(message))
    if _PAST.search(message) and (asks or message.lower().startswith(("summar", "please summar"))):
        return f"So far: {turn.summary}" if turn.summary else "I have no summary of our conversation yet."
    if asks:
        return _list("From what I remember:", _relevant(message, turn.notes)) or _nothing(turn)
    if _GREETING.match(message):
        return "Hi! Tell me something about yourself, or ask me what I remember about you."
    if _THANKS.match(message):
        return "You're welcome!"
    return _acknowledge(message)


def _relevant(question: str, notes: Sequence[tuple[str, str, str]]) -> list[tuple[str, str, str]]:
    """The notes that share a word with the question, or all notes if the question has only function words."""
    asked = set(terms(question))
    if not asked:
        return list(notes)
    return [note for note in notes if asked & set(terms(f"{note[0]} {note[1]}"))]


def _list(lead: str, notes: Sequence[tuple[str, str, str]]) -> str:
    return "\n".join([lead, *(_line(*note) for note in notes)]) if notes else ""


def _line(kind: str, text: str, date: str) -> str:
    return f"- {text} *({', '.join(filter(None, (kind, date)))})*"


def _nothing(turn: ParsedTurn) -> str:
    if not turn.notes:
        return (
            "I don't remember anything about you yet. Tell me something, for example what you are working on."
        )
    count = "one thing" if len(turn.notes) == 1 else f"{len(turn.notes)} things"
    return f"I don't know that. I do remember {count} about you; ask me what I remember."


def _acknowledge(message: str) -> str:
    understood = read(message)
    kept = [one.text for one in understood if isinstance(one, Statement)]
    if kept:
        return f"Noted. What I understood: {' '.join(kept)}"
    if understood:
        return "Noted. I understood that this is no longer true."
    return (
        "I've read that, but offline I only understand simple sentences, such as "
        "“I prefer tabs over spaces” or “I'm working on a Discord bot”."
    )


def _code(lines: int) -> str:
    """A code block that is long enough to be split over several messages."""
    body = [f'    {number}: "{"=" * (number % 37 + 1)}",' for number in range(1, lines + 1)]
    return "\n".join(["Here is some code:", "```python", "BARS = {", *body, "}", "```", "That is all of it."])
