"""What the offline model understands: simple statements about oneself, read with a table of patterns.

A statement ("I prefer tabs over spaces") becomes a sentence in the third person with a kind. A withdrawal
("I no longer use vim") names what to drop. Questions, conditions, quotes and code are never read. Among
remembered items it recognises duplicates, plain opposites, and those whose own end date has passed.
Pure: text in, plain JSON values out. Knows nothing about models or about other parts of a prompt.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from discoclaw.core import titles
from discoclaw.core.text import collapse, normalise
from discoclaw.core.words import STOP_WORDS, terms

_I = re.IGNORECASE
# Words that may stand between "I" and the verb without changing what is said.
_SOMEHOW = r"(?:(?:now|really|much|always|usually|mostly|still|also|currently|generally|absolutely|just) )*"
_KIN = "wife|husband|partner|girlfriend|boyfriend|brother|sister|mother|father|son|daughter|friend|boss"


@dataclass(frozen=True, slots=True)
class _Rule:
    kind: str
    pattern: re.Pattern[str]
    text: str
    single: bool = False
    """A person has only one of these at a time, so a new one replaces the old one."""


def _rule(kind: str, pattern: str, text: str, *, single: bool = False) -> _Rule:
    return _Rule(kind, re.compile(pattern, _I), text, single)


# The first rule that matches a whole clause wins. {x} is the object, always last in the text.
_RULES = (
    _rule("preference", rf"i {_SOMEHOW}prefer (?P<x>.+)", "User prefers {x}"),
    _rule("preference", rf"i {_SOMEHOW}(?P<v>love|like|enjoy) (?P<x>.+)", "User {v}s {x}"),
    _rule("preference", rf"i {_SOMEHOW}(?:hate|can't stand) (?P<x>.+)", "User hates {x}"),
    _rule("preference", r"i (?:don't|do not) like (?P<x>.+)", "User does not like {x}"),
    _rule("fact", r"(?:my name is|call me|you can call me) (?P<x>.+)", "User's name is {x}", single=True),
    _rule(
        "project",
        rf"i(?:'m| am) {_SOMEHOW}(?:working on|building|writing) (?P<x>.+)",
        "User is working on {x}",
    ),
    _rule(
        "project",
        r"my (?:current |new )?project is (?:called )?(?P<x>.+)",
        "User's project is {x}",
        single=True,
    ),
    _rule("tool", rf"i {_SOMEHOW}use (?P<x>.+)", "User uses {x}"),
    _rule("tool", r"i(?:'ve| have)? switched to (?P<x>.+)", "User uses {x}"),
    _rule("fact", r"i(?: have|'ve got) (?P<x>(?:an?|two) [\w -]{2,40} (?:called|named) .+)", "User has {x}"),
    _rule("fact", rf"i {_SOMEHOW}live in (?P<x>.+)", "User lives in {x}", single=True),
    _rule("fact", r"i(?:'ve| have)?(?: just)? moved to (?P<x>.+)", "User lives in {x}", single=True),
    _rule("fact", rf"i {_SOMEHOW}work (?P<v>at|for|as|in) (?P<x>.+)", "User works {v} {x}", single=True),
    _rule("constraint", r"i(?:'m| am) allergic to (?P<x>.+)", "User is allergic to {x}"),
    _rule("person", rf"my (?P<v>(?:{_KIN})(?:'s name)?) is (?P<x>.+)", "User's {v} is {x}", single=True),
    _rule("preference", r"my (?P<v>favou?rite [\w ]{2,30}?) is (?P<x>.+)", "User's {v} is {x}", single=True),
    _rule("fact", r"my (?P<v>[\w'-]+(?: [\w'-]+){0,2}?) is (?P<x>.+)", "User's {v} is {x}", single=True),
)
_WITHDRAWALS = tuple(
    re.compile(pattern, _I)
    for pattern in (
        r"i(?:'m| am)? no longer (?P<x>.+)",
        r"i (?:don't|do not) (?P<x>.+?) any ?(?:more|longer)",
        r"i(?:'m| am) not (?P<x>.+?) any ?(?:more|longer)",
        r"i(?:'ve| have)? stopped (?P<x>.+)",
        r"forget (?:that )?i (?P<x>.+)",
    )
)

_SENTENCE_END = re.compile(r"(?<=[.!?…])\s+|\n+|;\s+")
_CLAUSE_END = re.compile(r"(?:,? (?:and|but)|,) (?=(?:i|my)\b)", _I)
_OPENING = re.compile(
    r"^(?:<@!?\d+>|(?:actually|well|okay|ok|oh|yes|yeah|no|so|also|btw|by the way|hi|hello|hey|please|fyi|"
    r"and|but|from now on|these days|remember|note|don't forget|keep in mind|i think|(?-i:[A-Z])\w+(?=,))\b)"
    r"(?: there\b)?[,:!.]?\s*(?:that\s+)?",
    _I,
)
_CLOSING = re.compile(r",? (?:because|since|so that|although|though|which) .*$", _I)
_TAIL = re.compile(r"(?:,? (?:now|these days|instead|please|btw|too|as well|by the way|a lot|:\)))+$", _I)
_CHANGED = re.compile(r"\b(?:now|actually|instead|these days|from now on|switched|moved)\b", _I)
_PRIVATE = re.compile(
    r"allerg|doctor|medic|therap|diagnos|pregnan|salary|debt|wife|husband|girlfriend|boyfriend|divorc|religio"
    r"|address|phone",
    _I,
)
_TO_THIRD = {
    "i": "they",
    "i'm": "they're",
    "me": "them",
    "my": "their",
    "mine": "theirs",
    "myself": "themselves",
}
_FIRST_PERSON = re.compile(r"\b(?:i'm|i|me|my|mine|myself)\b", _I)
_POINTERS = frozenset({"it", "this", "that", "them", "these", "those", "you", "him", "her"})
_TAG = re.compile(r"[^\W_][\w+#.-]*")
_LIKING = frozenset({"prefer", "like", "love", "enjoy", "hate"})
_MAX_OBJECT = 120


@dataclass(frozen=True, slots=True)
class Statement:
    """Something a person says about themselves. `head` is the text before the object: the relation."""

    kind: str
    text: str
    head: str
    object: str
    single: bool
    changed: bool
    quote: str = ""

    def replaces(self, kind: str, text: str) -> bool:
        """Whether this replaces an older item of that kind and text."""
        old = normalise(text)
        if self.single:
            return old.startswith(normalise(self.head) + " ")
        if self.kind != "preference" or kind != "preference":
            return False
        mine, theirs = set(terms(self.object)), set(terms(text)) - _LIKING
        if not mine or not theirs:
            return False
        if "prefers" in self.head and "prefers" in old:
            # "tabs over spaces" has the same words as "spaces over tabs". "light mode" shares one with "dark
            # mode", which replaces it only if the person says that something changed.
            return mine <= theirs or theirs <= mine or (self.changed and bool(mine & theirs))
        return mine == theirs


@dataclass(frozen=True, slots=True)
class Withdrawal:
    """Something that is no longer true."""

    verb: frozenset[str]
    object: frozenset[str]
    quote: str = ""

    def hits(self, text: str) -> bool:
        """Whether an item with this text is withdrawn."""
        words = set(terms(text))
        return self.verb <= words and bool(self.object & words)


def read(text: str) -> list[Statement | Withdrawal]:
    """The statements and withdrawals in a message, in their order."""
    prose = "\n".join(line for line in _without_code(text).splitlines() if not line.lstrip().startswith(">"))
    found: list[Statement | Withdrawal] = []
    for sentence in _SENTENCE_END.split(prose.replace("’", "'")):
        if sentence.rstrip(" \"'*_)").endswith("?") or re.match(r"\s*if\b", sentence, _I):
            continue
        for clause in _CLAUSE_END.split(sentence):
            understood = _clause(clause)
            if understood:
                found.append(replace(understood, quote=collapse(clause)))
    return found


def extract(prompt: str) -> dict[str, list[dict[str, Any]]]:
    """The answer to an extraction prompt: `upserts` and `deprecations`."""
    parts = titles.sections(prompt)
    existing = parts.get(titles.EXISTING, "")
    known = [_known(*match.groups()) for match in _ITEM.finditer(existing)]
    deprecations: list[dict[str, Any]] = []
    for source, text in _messages(parts.get(titles.TALK, "")):
        for one in read(text):
            if isinstance(one, Withdrawal):
                gone = [item for item in known if one.hits(item.text)]
                why = {"reason": collapse(text)[:200], "source": source, "quote": one.quote}
                deprecations += [{"id": item.id, **why} for item in gone if item.id]
                known = [item for item in known if item not in gone]
            else:
                _remember(one, source, known)
    return {"upserts": [item.upsert for item in known if item.upsert], "deprecations": deprecations}


def consolidate(prompt: str) -> dict[str, list[dict[str, Any]]]:
    """The answer to a consolidation prompt: `duplicates`, `contradictions` and `outdated`."""
    parts = titles.sections(prompt)
    listed = _listed(parts.get(titles.TO_TIDY, ""))
    same: dict[str, list[_Listed]] = {}
    for item in listed:  # a text without letters ("!!!") is a duplicate of nothing
        same.setdefault(_letters(item.text) or item.id, []).append(item)
    duplicates: list[dict[str, Any]] = []
    single: list[_Listed] = []
    for group in same.values():
        keep = next((item for item in group if item.stated), group[-1])  # newest first, so the last is oldest
        drop = [item.id for item in group if item is not keep]
        if drop:
            duplicates.append({"keep": keep.id, "drop": drop, "text": None})
        else:
            single.append(keep)
    today = parts.get(titles.TODAY, "")
    outdated = [item for item in single if (until := _UNTIL.search(item.text)) and until[1] < today]
    contradictions: list[dict[str, Any]] = []
    waiting = [item for item in single if item not in outdated]
    while waiting:
        newer = waiting.pop(0)
        older = next((item for item in waiting if _opposed(_letters(newer.text), _letters(item.text))), None)
        if older is not None:
            waiting.remove(older)
            why = "they say the opposite of each other"
            contradictions.append({"older": older.id, "newer": newer.id, "reason": why})
    gone = [{"id": item.id, "reason": f"it was until {_UNTIL.findall(item.text)[0]}"} for item in outdated]
    return {"duplicates": duplicates, "contradictions": contradictions, "outdated": gone}


def suggest(prompt: str) -> dict[str, str]:
    """The answer to the question which of two conflicting notes is right: `how` and `reason`."""
    parts = titles.sections(prompt)
    old, new = (_listed(parts.get(title, "")) for title in (titles.REMEMBERED, titles.AGAINST))
    if any(item.stated for item in old) and not any(item.stated for item in new):
        return {"how": "keep_old", "reason": "You said the first one yourself."}
    return {"how": "use_new", "reason": "The newer note is usually the right one."}


def _without_code(text: str) -> str:
    return re.sub(r"```.*?(?:```|\Z)", "\n", text, flags=re.S)


def _clause(clause: str) -> Statement | Withdrawal | None:
    changed = bool(_CHANGED.search(clause))
    bare, before = collapse(clause).strip(" .!…,"), ""
    while bare != before:
        before, bare = bare, _OPENING.sub("", bare, count=1)
    bare = _TAIL.sub("", _CLOSING.sub("", bare)).strip(" .!…,")
    for pattern in _WITHDRAWALS:
        if match := pattern.fullmatch(bare):
            verb, _, rest = match["x"].partition(" ")
            verbs, objects = frozenset(terms(verb)), frozenset(terms(rest))
            return Withdrawal(verbs, objects) if objects else Withdrawal(frozenset(), verbs)
    for rule in _RULES:
        if match := rule.pattern.fullmatch(bare):
            return _statement(rule, match, changed)
    return None


def _statement(rule: _Rule, match: re.Match[str], changed: bool) -> Statement | None:
    thing = match["x"].strip(" \"'*_`,:")
    if not thing or len(thing) > _MAX_OBJECT or thing.lower() in _POINTERS:
        return None
    thing = _FIRST_PERSON.sub(lambda word: _TO_THIRD[word[0].lower()], thing)
    verb = match.groupdict().get("v", "").lower()
    head = rule.text.format(v=verb, x="").rstrip()
    return Statement(rule.kind, f"{head} {thing}.", head, thing, rule.single, changed)


@dataclass(frozen=True, slots=True)
class _Known:
    """An item that the prompt lists, or one that is about to be added or changed."""

    id: str | None
    kind: str
    text: str
    upsert: dict[str, Any] | None = None


def _known(name: str, kind: str, text: str) -> _Known:
    """An item of the prompt. Words of the person ("My dog is Rex") are read as if they were said."""
    match read(text):
        case [Statement() as said]:
            return _Known(name, said.kind, said.text)
    return _Known(name, kind, text)


def _remember(statement: Statement, source: str, known: list[_Known]) -> None:
    if any(normalise(item.text).rstrip(".") == normalise(statement.text).rstrip(".") for item in known):
        return
    old = next((item for item in known if statement.replaces(item.kind, item.text)), None)
    words = _TAG.findall(statement.object.lower())
    tags = [word for word in words if word not in STOP_WORDS["english"]][:3]
    upsert: dict[str, Any] = {"kind": statement.kind, "text": statement.text, "tags": tags}
    upsert |= {"source": source, "quote": statement.quote}
    if old and old.id:
        upsert["id"] = old.id
    if _PRIVATE.search(statement.text):
        upsert["sensitivity"] = "private"
    if old:
        known.remove(old)
    known.append(_Known(old.id if old else None, statement.kind, statement.text, upsert))


@dataclass(frozen=True, slots=True)
class _Listed:
    """An item as a consolidation prompt lists it, newest first."""

    id: str
    stated: bool
    text: str


_LISTED = re.compile(r"^- (.+?) \[\w+\] \((stated|inferred), since [^,)]*, updated [^,)]*\) (.*)$", re.M)
_UNTIL = re.compile(r"\b(?:until|till) (\d{4}-\d\d-\d\d)\b", _I)
_OVER = re.compile(r"user prefers (.+) over (.+)")
_LIKES = re.compile(r"user (?:likes|loves|enjoys) (.+)")
_HATES = re.compile(r"user (?:hates|dislikes|does not like) (.+)")
_HOLDS = re.compile(r"user (.+)")
_NO_LONGER = re.compile(r"user no longer (.+)")


def _listed(part: str) -> list[_Listed]:
    return [_Listed(match[1], match[2] == "stated", match[3]) for match in _LISTED.finditer(part)]


def _letters(text: str) -> str:
    """A text without case and punctuation. Signs that are part of a name ("C++") stay."""
    return " ".join(re.sub(r"[^\w+#@&%$*/-]+", " ", text.casefold()).split())


def _opposed(one: str, other: str) -> bool:
    """Whether two texts, normalised by `_letters`, are plain opposites."""
    for mine, theirs in ((_LIKES, _HATES), (_HATES, _LIKES), (_HOLDS, _NO_LONGER), (_NO_LONGER, _HOLDS)):
        ours, its = mine.fullmatch(one), theirs.fullmatch(other)
        if ours and its and ours[1] == its[1]:
            return True
    ours, its = _OVER.fullmatch(one), _OVER.fullmatch(other)
    return bool(ours and its and ours.groups() == its.groups()[::-1])


_ITEM = re.compile(r"^(i\d+) \[(\w+)\] (?:\(key [^)\n]*\) )?(.+)$", re.M)
_LINE = re.compile(r"^(m\d+) \w{3} [\d-]{10} [\d:]{5} (»?)\[[^\]\n]*\]: (.*)$")


def _messages(part: str) -> Iterator[tuple[str, str]]:
    """The person's own lines of a talk: the short name and the text of each.

    A line indented by two spaces continues the one before it.
    """
    source, lines = "", list[str]()
    for line in [*part.splitlines(), ""]:
        if source and line.startswith("  "):
            lines.append(line[2:])
            continue
        if source:
            yield source, "\n".join(lines)
        match = _LINE.match(line)
        source, lines = (match[1], [match[3]]) if match and match[2] else ("", [])
