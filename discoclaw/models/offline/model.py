"""`OfflineModel`: the port `Model` without a network, a key or a language model. For the demo and for tests.

It repeats what the prompt holds, understands simple sentences, and gives the same answer to the same prompt.
What it understands is in `facts`.
"""

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC
from typing import NamedTuple

from discoclaw.core import titles
from discoclaw.core.errors import ModelBadOutput, Refused
from discoclaw.core.model import (
    AssistantTurn,
    Finished,
    ModelRequest,
    Purpose,
    StreamEvent,
    TextDelta,
    ToolCall,
    ToolTurn,
    UserTurn,
)
from discoclaw.core.ports import Shape
from discoclaw.core.text import clip, collapse
from discoclaw.core.words import terms
from discoclaw.core.yours import yours
from discoclaw.models.offline import facts
from discoclaw.models.offline.acts import asked_for
from discoclaw.models.offline.facts import Language, language_of, languages, read, remembered
from discoclaw.models.structured import checked
from discoclaw.reminders.when import divided

REMIND_TOOL = "remind"
ACT_TOOLS = "discord_"
STORE_TOOL = "memory_store"
SEARCH_TOOL = "memory_search"
MOST_FOUND = 50
"""The most memories that a search shows it."""

_WORDS_PER_PIECE = 6


class OfflineModel:
    """`name` is the bot's name in a conversation. `pause_s` is the pause between two pieces of an answer.

    `stands_in`: for a language model that may not be asked for now, so it says only what is in the memory.
    """

    def __init__(self, *, name: str = "DiscoClaw", pause_s: float = 0.0, stands_in: bool = False) -> None:
        self._name = name
        self._pause_s = pause_s
        self._stands_in = stands_in

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        """Yield the answer in pieces of a few words, or a call of the tool that stores or finds memories."""
        asked = (_act_call, _remind_call, _store_call, _search_call)
        if call := next(filter(None, (one(request) for one in asked)), None):
            yield Finished(AssistantTurn("", (call,)), "tools")
            return
        text = self._text(request)
        for piece in re.findall(rf"(?:\S+\s*){{1,{_WORDS_PER_PIECE}}}|\s+", text):
            yield TextDelta(piece)
            await asyncio.sleep(self._pause_s)
        yield Finished(AssistantTurn(text), "end")

    async def structured(
        self, *, purpose: Purpose, system: str, prompt: str, shape: type[Shape], max_tokens: int = 2048
    ) -> Shape:
        """Fill the shape of an extraction, a summary, a consolidation or a suggestion.

        A shape is recognised by a field that only it has, so that this module doesn't import the loops'
        shapes. Raises ModelBadOutput for any other shape.
        """
        fields = shape.model_fields.keys()
        if "upserts" in fields:
            found: dict[str, object] = dict(facts.extract(prompt))
        elif "summary" in fields:
            found = {
                "summary": {"add": summary_lines(prompt, name=self._name)},
                "themes": themes(prompt, name=self._name),
                "decisions": decisions(prompt, name=self._name),
            }
        elif "duplicates" in fields:
            found = dict(facts.consolidate(prompt))
        elif "how" in fields:
            found = dict(facts.suggest(prompt))
        else:
            raise ModelBadOutput(f"the offline model cannot fill a {shape.__name__}")
        return checked(json.dumps({name: value for name, value in found.items() if name in fields}), shape)

    async def close(self) -> None:
        """Do nothing: there is no connection."""

    def _text(self, request: ModelRequest) -> str:
        last = request.turns[-1] if request.turns else UserTurn("")
        turn = parse(_last_message(request))
        if isinstance(last, ToolTurn):
            asked = (one.calls for one in reversed(request.turns) if isinstance(one, AssistantTurn))
            calls = next(asked, ())
            if any(call.name.startswith(ACT_TOOLS) for call in calls):
                return "\n".join(one.text if one.failed else "Done." for one in last.results)
            if not calls or any(call.name != SEARCH_TOOL for call in calls):
                return "\n".join(from_tool(one.text, failed=one.failed) for one in last.results)
            turn = with_found(turn, "\n".join(one.text for one in last.results if not one.failed))
        if request.system and request.system[0].text.startswith(titles.HATCHING):
            # The first turn is the request to begin it, not an answer.
            return interview([one.text for one in request.turns[1:] if isinstance(one, UserTurn)])
        return from_memory(turn) if self._stands_in else answer(turn, name=self._name)


def _last_message(request: ModelRequest) -> str:
    """The newest user turn, "" if there is none."""
    return next((turn.text for turn in reversed(request.turns) if isinstance(turn, UserTurn)), "")


def _act_call(request: ModelRequest) -> ToolCall | None:
    """The call for what is to be done in the chat, made once and only when the tool is offered."""
    prompt = _last_message(request)
    offset = re.search(rf"{titles.NOW}\n.*\(UTC([+-]\d\d:\d\d)\)", prompt)
    found = asked_for(_addressed(parse(prompt).message), offset[1] if offset else "+00:00")
    if found is None or not _may_call(request, found[0]):
        return None
    return ToolCall(f"offline_{len(request.turns)}", *found)


def _remind_call(request: ModelRequest) -> ToolCall | None:
    """The tool call for "remind me …", made once and only when the tool is offered."""
    if not _may_call(request, REMIND_TOOL):
        return None
    message = parse(_last_message(request)).message
    if (match := _REMIND.match(_addressed(message))) is None:
        return None
    try:
        # Only which words are the time: the tool reads them, and knows the person's clock.
        when, what = divided(collapse(match["x"]).rstrip(" .!?"), 0, UTC)
    except Refused:
        return None
    wanted = {"what": what, "when": when, "quote": collapse(message)}
    return ToolCall(f"offline_{len(request.turns)}", REMIND_TOOL, wanted)


def _store_call(request: ModelRequest) -> ToolCall | None:
    """The tool call for "remember that …", made once and only when the tool is offered."""
    if not _may_call(request, STORE_TOOL):
        return None
    text = asked_to_remember(parse(_last_message(request)).message)
    if not text:
        return None
    # The words that extraction would use, so that it later finds this item instead of adding another.
    read = [one for one in facts.read(text) if not one.ended]
    stored = {"text": read[0].text, "kind": read[0].rule.topic.kind} if len(read) == 1 else {"text": text}
    return ToolCall(f"offline_{len(request.turns)}", STORE_TOOL, stored)


def _search_call(request: ModelRequest) -> ToolCall | None:
    """The search for what the prompt doesn't answer, made once and only when the tool is offered."""
    hatching = request.system and request.system[0].text.startswith(titles.HATCHING)
    if hatching or not _may_call(request, SEARCH_TOOL):
        return None
    query = to_look_up(parse(_last_message(request)))
    wanted = {"query": query, "limit": MOST_FOUND}
    return ToolCall(f"offline_{len(request.turns)}", SEARCH_TOOL, wanted) if query else None


def _may_call(request: ModelRequest, tool: str) -> bool:
    """Whether a tool is offered, and the person said something since it was last called."""
    offered = any(one.name == tool for one in request.tools)
    return offered and bool(request.turns) and isinstance(request.turns[-1], UserTurn)


# ----------------------------------------------------------------------
# Words of the offline model. It answers from the prompt and from nothing else.

NO_FILES = "I can't look at files: that takes a real model."
NO_FILES_NOW = "I can't look at files for now."
NOT_IN_MEMORY = (
    "I can only look things up in my memory for now, and there is nothing about that. You can still ask what "
    "I remember about you, or tell me to remember something."
)
INTRODUCTION = "*(offline model: no API key is set, so I only repeat what I remember.)*"

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
_SHORT_ID = re.compile(r":? ?\[(?:i\d+|[0-9a-f]{8})\]")
_LINKED = re.compile(r"^i\d+ and i\d+: (\w+)\.$", re.M)
_FILE = re.compile(r"^- (?:\w+ \d+: )?“(?P<name>.*?)”(?: \([^)\n]*\))?, (?P<now>with this message)?", re.M)
_QUOTED = re.compile(r"^  > (.*\S.*)$", re.M)
_MOST_QUOTED = 5
_LINE = re.compile(r"^\[([^\]\n]+)\]: (.*)$", re.M)

# A line of the talk as the loops' prompts have it.
_DATED = re.compile(r"^(?P<id>m\d+) \w{3} [\d-]{10} [\d:]{5} »?\[(?P<name>[^\]\n]+)\]: (?P<text>.*)$", re.M)

# A title counts only where a section begins, at the start or under a separator: people can type titles too.
_MESSAGE = re.compile(rf"(?:^|(?<=\n---\n)){re.escape(titles.MESSAGE)}")

_PAST = re.compile(r"\bsummar|\btalk(?:ed|ing)? about|\bdiscuss|\bconversation\b|\bso far\b", _I)
_LONG = re.compile(r"\blong\b", _I)
_CODE = re.compile(
    r"^(?:long|code)[.!?]*$"
    r"|\b(?:show|write|give|print|post|send|make)\b.{0,200}\b(?:code|script|snippet|program|function|long)\b",
    _I,
)
_THIRD = re.compile(r"\b(?:they|they're|them|their|theirs|themselves)\b", _I)
_OF_USER = re.compile(r"\b(?:users?|i|i'm|my|me|ich|meine?|je|mon|ma|mi)\b", _I)
_UNTIL = re.compile(r"^\(until [\d-]+\) ")
_REMEMBER = re.compile(
    r"^(?:please,? |can you |could you |hey,? )*remember(?: that|:| this:)? "
    r"(?!(?:when|how|what|who|me)\b)(?P<x>.+)$",
    _I | re.S,
)

_REMIND = re.compile(
    r"^(?:please,? |can you |could you |would you |hey,? |bitte,? |kannst du )*"
    r"(?:remind me|erinner(?:e|st)? mich(?: bitte)?)\b[,:]? (?P<x>.+)$",
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


class File(NamedTuple):
    """A file of the talk. `lines` are those of a text, `now` says that it came with the message."""

    name: str
    lines: tuple[str, ...]
    now: bool


@dataclass(frozen=True, slots=True)
class ParsedTurn:
    """The parts of a user turn: the message, and what the prompt adds to it."""

    message: str
    notes: tuple[str, ...] = ()
    looked: bool = False
    """Whether the notes are what a search of the memory found."""
    summary: str = ""
    speakers: frozenset[str] = frozenset()
    recent: str = ""
    files: tuple[File, ...] = ()

    @property
    def unreadable(self) -> bool:
        """Whether a file came with the message that has no text."""
        return any(file.now and not file.lines for file in self.files)


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
        notes_in(sections.get(titles.DURABLE, "")),
        False,
        sections.get(titles.ROLLING, ""),
        frozenset(match[1] for match in _LINE.finditer(recent)),
        recent,
        _files(sections.get(titles.FILES, "")),
    )


def notes_in(text: str) -> tuple[str, ...]:
    """The remembered items that a section or the result of a search lists."""
    return tuple(match["text"] for match in _NOTE.finditer(text))


def _files(section: str) -> tuple[File, ...]:
    heads = list(_FILE.finditer(section))
    ends = [*(head.start() for head in heads[1:]), len(section)]  # one more than none
    return tuple(
        File(head["name"], tuple(_QUOTED.findall(section[head.end() : end])), bool(head["now"]))
        for head, end in zip(heads, ends, strict=False)
    )


def asked_to_remember(message: str) -> str | None:
    """The text that a "remember that …" asks to store; None for any other message."""
    match = _REMEMBER.match(_addressed(message))
    return collapse(match["x"]).strip(" .!?") or None if match else None


def answer(turn: ParsedTurn, *, name: str) -> str:
    """The whole answer. `name` is the bot's name, by which it finds out whether it has spoken before."""
    text = f"{_reply(turn)}\n\n{NO_FILES}" if turn.unreadable else _reply(turn)
    met = INTRODUCTION.strip("*()") in turn.recent or any(each.startswith(name) for each in turn.speakers)
    introduced = any(one.says["introduction"] in text for one in languages())
    return text if met or introduced else f"{INTRODUCTION}\n\n{text}"


def to_look_up(turn: ParsedTurn) -> str | None:
    """The query for the memory if the prompt doesn't answer the question; None if it does."""
    message, language = _addressed(turn.message), language_of(turn.message)
    if _any("all", message):
        return None if languages()[0].patterns["all"].search(message) else "*"  # the prompt has everything
    if not _asks(message) or not _of_oneself(message) or _PAST.search(message) or _CODE.search(message):
        return None
    if any(file.now for file in turn.files) or _relevant(message, turn.notes):
        return None
    topics = {rule.topic.name: rule.topic for rule in language.rules}
    tags = [tag for name in _asked(message)[0] if name in topics for tag in topics[name].tags]
    return clip(" ".join([message, *tags]), 500)


def with_found(turn: ParsedTurn, result: str) -> ParsedTurn:
    """The turn with what a search found beside what the prompt has."""
    return replace(turn, notes=tuple(dict.fromkeys([*turn.notes, *notes_in(result)])), looked=True)


def from_memory(turn: ParsedTurn) -> str:
    """The whole answer while no language model may be asked: what is remembered, and nothing else."""
    message = _addressed(turn.message)
    if _any("all", message):
        text = _everything(turn, languages()[0])
    elif _PAST.search(message) and turn.summary:
        text = f"So far: {turn.summary}"
    elif language_of(message).patterns["thanks"].match(message):
        text = language_of(message).says["thanks"]
    else:
        found = _relevant(message, turn.notes) or _sharing(message, turn.notes)
        text = (
            f"I can only look it up in my memory for now. It says: {_told(found)}" if found else NOT_IN_MEMORY
        )
    return f"{text}\n\n{NO_FILES_NOW}" if any(file.now for file in turn.files) else text


def from_tool(result: str, *, failed: bool) -> str:
    """A sentence about what a tool did, without the ids by which a model names memories."""
    text = _NOTE.sub(lambda note: f"- {to_person(note['text'])}", result)
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


def summary_lines(prompt: str, *, name: str) -> list[dict[str, str]]:
    """The lines to add to a summary: one for each new message of a person, in the section that it fits."""
    added = []
    for line in _DATED.finditer(titles.sections(prompt).get(titles.NEW_MESSAGES, "")):
        text = collapse(line["text"])
        if not line["name"].startswith(name) and text:
            first = re.split(r"[!?;؟。…]|\.(?=\s|$)", text, maxsplit=1)[0]  # of few words, a whole sentence
            words = text if len(first.split()) >= _WORDS_PER_PIECE else first or text
            quote = " ".join(words.split()[:12])
            added.append(
                {
                    "section": _section(text),
                    "text": f"“{clip(text, 80)}”",
                    "source": line["id"],
                    "quote": quote,
                }
            )
    return added


def _section(text: str) -> str:
    """The section of a summary in which a message belongs."""
    if text.rstrip().endswith("?"):
        return "open"
    if _DECISION.match(text.rstrip(".!")):
        return "decided"
    return "wanted" if _WISH.search(text) else "now"


def themes(prompt: str, *, name: str) -> list[str]:
    """The channel's topics that the new messages state and the prompt doesn't list yet."""
    return _stated(prompt, _THEME, titles.THEMES, name)


def decisions(prompt: str, *, name: str) -> list[str]:
    """The decisions that the new messages state and the prompt doesn't list yet."""
    return [f"{one[:1].upper()}{one[1:]}." for one in _stated(prompt, _DECISION, titles.DECISIONS, name)]


def _stated(prompt: str, pattern: re.Pattern[str], known_title: str, name: str) -> list[str]:
    """Statements in people's sentences that fit a pattern, each once. Guests and the bot decide nothing."""
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
    language = language_of(message)
    if _CODE.search(message) and not re.match(r"i\b|i'm\b", message, _I):
        return _code(200 if _LONG.search(message) else 100)
    if _any("all", message):
        return _everything(turn, language)
    asks = _asks(message)
    if _PAST.search(message) and (asks or message.lower().startswith(("summar", "please summar"))):
        return f"So far: {turn.summary}" if turn.summary else "I have no summary of our conversation yet."
    if _any("smalltalk", message):
        return _smalltalk(turn, language)
    if asks:
        return _answered(turn, message, language)
    if language.patterns["greeting"].match(message):
        return f"{language.says['hello']} {_example(turn, language)}"
    if language.patterns["thanks"].match(message):
        return language.says["thanks"]
    if understood := read(message):
        return language.says["ended" if all(one.ended for one in understood) else "noted"]
    return _quoted(turn, message, language) or _smalltalk(turn, language)


def _answered(turn: ParsedTurn, question: str, language: Language) -> str:
    """The answer to a question: from a file that came with it, from the memory, or from an older file."""
    if any(file.now and file.lines for file in turn.files):
        return _quoted(turn, question, language)
    if found := _relevant(question, turn.notes):
        return _told(found)
    if quoted := _quoted(turn, question, language):
        return quoted
    if not _of_oneself(question):
        return language.says["others"]
    return language.says["unknown" if turn.notes or not turn.looked else "nothing"]


def _any(name: str, message: str) -> bool:
    """Whether a message has a pattern in any language."""
    return any(one.patterns[name].search(message) for one in languages())


def _asks(message: str) -> bool:
    return message.endswith("?") or _any("asks", message)


def _of_oneself(question: str) -> bool:
    """Whether a question is about the person who asks it."""
    return language_of(question).patterns["mine"].search(question) is not None or bool(_asked(question)[0])


def _asked(question: str) -> tuple[tuple[str, ...], dict[str, str]]:
    """The topics that a question is about, if any, and whom or what it names ("my sister")."""
    first = language_of(question)
    for language in (first, *(one for one in languages() if one is not first)):
        for pattern, topics in language.questions:
            if match := pattern.search(question.replace("’", "'")):
                named = {key.rstrip("234"): part for key, part in match.groupdict().items() if part}
                return topics, named
    return (), {}


def _relevant(question: str, notes: Sequence[str]) -> list[str]:
    """The notes that answer a question: those of its topic, or else those with most of its words."""
    topics, named = _asked(question)
    now = [note for note in notes if not _UNTIL.match(note)]
    if found := [note for note in now if _is_about(note, topics, named)]:
        return found
    asked, mine = set(terms(question)), _of_oneself(question)
    shared = {
        note: len(asked & set(terms(note)))
        for note in now
        if (mine or not re.search(r"\bUsers?\b", note)) and not _is_of_another(note, question)
    }
    fewest = 0 if re.search(r" (?:or|oder|ou|o) ", question) else len(asked) / 2
    return [note for note, count in shared.items() if count > fewest and count == max(shared.values())]


def _sharing(question: str, notes: Sequence[str]) -> list[str]:
    """The notes that share most words with a question: what is shown is not said to be the answer."""
    asked = set(terms(question))
    shared = {note: len(asked & set(terms(note))) for note in notes}
    return [note for note, count in shared.items() if 0 < count == max(shared.values())]


def _is_of_another(note: str, question: str) -> bool:
    """Whether a note is about somebody, such as a sister, whom the question doesn't name."""
    whom = [one.parts.get("kin", "").lower() for one in remembered(note)]
    return any(one not in question.lower() for one in whom)


def _is_about(note: str, topics: Sequence[str], named: dict[str, str]) -> bool:
    about, whom = named.get("about"), (named.get("kin") or named.get("pet") or "").lower()
    return any(
        one.rule.topic.name in topics
        and (about is None or not set(terms(about)).isdisjoint(terms(one.parts["x"])))
        and whom in " ".join(one.parts.values()).lower()
        for one in remembered(note)
    )


def to_person(text: str) -> str:
    """A memory as it is said to its person: "You work as a nurse." for "User works as a nurse."."""
    until = _UNTIL.match(text)
    when, told = (until[0], text[until.end() :]) if until else ("", text)
    if _THIRD.search(told):  # whose "their" is, the memory doesn't say
        return f"I remember: “{text}”"
    if known := remembered(told):
        return f"{when}{known[0].told}"
    told = yours(told)
    return f"I remember: “{text}”" if _OF_USER.search(told) else f"{when}{told}"


def _told(notes: Sequence[str]) -> str:
    """The memories, as sentences to the person."""
    return " ".join(to_person(note) for note in notes)


def _everything(turn: ParsedTurn, language: Language) -> str:
    if not turn.notes:
        return language.says["nothing"]
    return "\n".join([language.says["all"], *(f"- {to_person(note)}" for note in turn.notes)])


def _quoted(turn: ParsedTurn, message: str, language: Language) -> str:
    """The lines of text files that have most words of a message; "" if there are no such files."""
    asked, texts = set(terms(message)), [file for file in turn.files if file.lines]
    shared = {(file.name, line): len(asked & set(terms(line))) for file in texts for line in file.lines}
    best = [key for key, count in shared.items() if 0 < count == max(shared.values())][:_MOST_QUOTED]
    if best:
        name = best[0][0]
        return "\n".join(
            [language.says["file"].format(name), *(f"> {line}" for of, line in best if of == name)]
        )
    new = [file for file in texts if file.now]
    says = "not_in_file" if _asks(message) else "ask_file"
    return language.says[says].format(new[0].name) if new else ""


def _smalltalk(turn: ParsedTurn, language: Language) -> str:
    return f"{language.says['introduction']} {_example(turn, language)}"


def _example(turn: ParsedTurn, language: Language) -> str:
    """Something to try that wasn't said lately."""
    fresh = min(language.examples, key=turn.recent.rfind)
    return language.says["try"].format(fresh)


def _code(lines: int) -> str:
    """A code block that is long enough to be split over several messages."""
    body = [f'    {number}: "{"=" * (number % 37 + 1)}",' for number in range(1, lines + 1)]
    return "\n".join(["Here is some code:", "```python", "BARS = {", *body, "}", "```", "That is all of it."])
