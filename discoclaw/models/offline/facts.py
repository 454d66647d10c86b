"""Understands, for the offline model, simple statements about oneself, read by the rules of `phrases.toml`.

A statement ("I prefer tabs over spaces") becomes a sentence in the third person with a kind. A withdrawal
("I no longer use vim") is the statement that ends. Questions, conditions, quotations, jokes and code are
never read, and a sentence only as far as it is understood: better to learn nothing than something wrong.
Among remembered items it recognises duplicates, plain opposites, and those whose own end date has passed.
Pure: text in, plain JSON values out. Knows nothing about models or about other parts of a prompt.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Any

from discoclaw.core import titles
from discoclaw.core.own_words import own_words
from discoclaw.core.text import collapse, normalise
from discoclaw.core.words import STOP_WORDS, terms, tokenise

# ----------------------------------------------------------------------
# Reads `phrases.toml`: for each language its rules, its questions, and its own sentences.
#
# A rule turns a clause ("I work as a nurse") into a memory ("User works as a nurse."), and a memory back
# into a sentence to its person ("You work as a nurse.").


_SLOT = re.compile(r"\{([a-z]+)(\d?)\}")
_GROUP = re.compile(r"\(\?P<(\w+)>")


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic of statements. `single`: a newer one replaces it. `dated`: it is about some day."""

    name: str
    kind: str = "fact"
    single: bool = False
    dated: bool = False
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Rule:
    """`says` is a whole clause, `holds` the memory of it without its full stop."""

    topic: Topic
    says: re.Pattern[str]
    holds: re.Pattern[str]
    item: str
    you: str


@dataclass(frozen=True, slots=True)
class Language:
    """One language. `patterns` are its regular expressions by name, `says` its sentences."""

    name: str
    subject: str
    rules: tuple[Rule, ...]
    questions: tuple[tuple[re.Pattern[str], tuple[str, ...]], ...]
    takes_back: tuple[tuple[re.Pattern[str], str], ...]
    patterns: Mapping[str, re.Pattern[str]]
    says: Mapping[str, str]
    examples: tuple[str, ...]


@cache
def languages() -> tuple[Language, ...]:
    """All languages, English first."""
    told = tomllib.loads((files(__package__) / "phrases.toml").read_text(encoding="utf-8"))
    topics = told.pop("topics")
    return tuple(_language(name, one, topics) for name, one in told.items())


def language_of(text: str) -> Language:
    """The language of a text, English if we speak another one."""
    name = tokenise(text).language
    return next((one for one in languages() if one.name == name), languages()[0])


def recognised(memory: str) -> Iterator[tuple[Rule, dict[str, str]]]:
    """The rules that could have made a memory, with what stood in their places."""
    bare, said, day = memory.strip().rstrip(".").partition(" (said ")
    for language in languages():
        for rule in language.rules:
            if match := rule.holds.fullmatch(bare):
                yield rule, {**match.groupdict(), "said": said + day}


def _language(name: str, told: Mapping[str, Any], topics: Mapping[str, Mapping[str, Any]]) -> Language:
    words = {**told["words"], **told["times"]}

    def pattern(text: str) -> re.Pattern[str]:
        return re.compile(_expanded(text, words), re.I)

    def topic(key: str) -> Topic:
        facets = dict(topics[key])
        tags = dict.fromkeys(f"{told.get('tags', {}).get(key, '')} {facets.pop('tags', '')}".split())
        return Topic(key, tags=tuple(tags), **facets)

    kept = {each: topic(each) for each in topics}
    rules = tuple(
        Rule(kept[key], pattern(says), pattern(_holds(item)), _named(item, words), _named(you, words))
        for key, says, item, you in told["rules"]
    )
    patterns = {each: pattern(text) for each, text in told["patterns"].items()}
    questions = tuple((pattern(asked), tuple(about.split())) for asked, about in told["questions"])
    takes_back = tuple((pattern(clause), ended) for clause, ended in told["takes_back"])
    says = dict(told["says"])
    examples = tuple(says.pop("examples"))
    return Language(name, told["subject"], rules, questions, takes_back, patterns, says, examples)


def _expanded(text: str, words: Mapping[str, str]) -> str:
    """A pattern with the words' patterns in their places. {kin2} is {kin} with a group of that name."""

    def word(slot: re.Match[str]) -> str:
        inner = _expanded(words[slot[1]], words)
        return _GROUP.sub(rf"(?P<\g<1>{slot[2]}>", inner) if slot[2] else f"(?:{inner})"

    return _SLOT.sub(word, text)


def _holds(item: str) -> str:
    """The pattern of a memory's text: only its places vary."""
    parts = re.split(r"(\{\w+\})", item)
    return "".join(part if part.startswith("{") else re.escape(part) for part in parts)


def _named(template: str, words: Mapping[str, str]) -> str:
    """A template with the names of groups in its places, not those of words."""

    def group(slot: re.Match[str]) -> str:
        found = _GROUP.search(words[slot[1]])
        assert found is not None, slot[0]
        return f"{{{found[1]}}}"

    return _SLOT.sub(group, template)


def filled(template: str, groups: Mapping[str, str]) -> str:
    """A template with what stands in its places."""
    return _SLOT.sub(lambda slot: groups[slot[1]], template)


# ----------------------------------------------------------------------
# Statements.


_I = re.IGNORECASE
_SENTENCE_END = re.compile(
    r"(?<=[!?…])\s+|(?<=\w\w\.)\s+|(?<=\d\.)\s+(?=[A-ZÀ-Þ])(?!(?:Jan|Feb|Mär|Apr|Mai|Jun|Jul|Aug|Sep|Okt|Nov|Dez))|\n+|;\s+"
)
_NEXT = re.compile(
    r"(?:,? (?:and|but|und|aber|et|mais|y|pero)|,) (?=(?:i|my|ich|meine?|je|j'|mon|ma|mi|yo)\b)", _I
)
_PRIVATE = re.compile(
    r"allerg|alérg|doctor|medic|therap|diagnos|pregnan|salary|debt|divorc|religio|address|phone"
    r"|\b(?:wife|husband|girlfriend|boyfriend)\b",
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
_TAG = re.compile(r"[^\W_][\w+#.-]*")
_TASTES = frozenset({"like", "dislike", "prefer"})
_PLACES = frozenset({"home", "origin", "kin_home"})
_MAX_OBJECT = 120
_MOST_READ = 2_000
"""Longest message that is read, in characters: what is longer isn't a simple statement."""


@dataclass(frozen=True, slots=True)
class Statement:
    """Something a person says about themselves, or with `ended` no longer says.

    `parts` is what stands in the places of its rule; `instead` what it corrects ("not a nurse").
    """

    rule: Rule
    parts: dict[str, str]
    changed: bool = False
    instead: str = ""
    ended: bool = False
    quote: str = ""

    @property
    def text(self) -> str:
        """The memory, a whole sentence."""
        return f"{filled(self.rule.item, self.parts)}{self.parts.get('said', '')}."

    @property
    def told(self) -> str:
        """The sentence that says the memory to its person."""
        return f"{filled(self.rule.you, self.parts)}{self.parts.get('said', '')}."

    def replaces(self, text: str) -> bool:
        """Whether this replaces an older memory, or ends it."""
        return any(self._replaces(one) for one in remembered(text))

    def _replaces(self, older: "Statement") -> bool:
        topic, mine, theirs = self.rule.topic, self._object, older._object
        both_tastes = {topic.name, older.rule.topic.name} <= _TASTES
        if self.ended:
            alike = topic == older.rule.topic or both_tastes
            return alike and bool(mine & theirs) and self._whose == older._whose
        if topic == older.rule.topic and self.instead and set(terms(self.instead)) & theirs:
            return True
        if topic.single:
            return topic == older.rule.topic and self._whose == older._whose
        if not both_tastes or not mine or not theirs:
            return False
        if topic.name == older.rule.topic.name == "prefer":
            # "tabs over spaces" has the same words as "spaces over tabs". "light mode" shares one with "dark
            # mode", which replaces it only if the person says that something changed.
            return mine <= theirs or theirs <= mine or (self.changed and bool(mine & theirs))
        return mine == theirs

    @property
    def _object(self) -> set[str]:
        return set(terms(self.parts.get("x", "")))

    @property
    def _whose(self) -> tuple[str, ...]:
        """The kind of relation, where there are several: the sister, the editor."""
        named = ("kin", "pet") if self.rule.topic.name not in ("favourite", "thing") else ("v",)
        return tuple(self.parts.get(name, "").lower() for name in named)


def remembered(text: str) -> list[Statement]:
    """The statements that a memory may be, also if it has the words of its person ("My dog is Rex")."""
    made = [Statement(rule, parts) for rule, parts in recognised(text)]
    return made or [one for one in read(text) if not one.ended]


def read(text: str, day: str = "") -> list[Statement]:
    """The statements in a message, in their order. `day` is when it was said (2026-11-19)."""
    if len(text) > _MOST_READ or any(one.patterns["joke"].search(text) for one in languages()):
        return []
    prose = "\n".join(own_words(text)).replace("’", "'")
    found: list[Statement] = []
    for sentence in _SENTENCE_END.split(prose):
        plain = collapse(sentence)
        if not plain.rstrip(" \"'*_)").endswith("?"):
            found += [replace(one, quote=plain) for one in _sentence(plain, day)]
    return found


def extract(prompt: str) -> dict[str, list[dict[str, Any]]]:
    """The answer to an extraction prompt: `upserts` and `deprecations`."""
    parts = titles.sections(prompt)
    existing = parts.get(titles.EXISTING, "")
    known = [_Known(match[1], match[2], match[3]) for match in _ITEM.finditer(existing)]
    deprecations: list[dict[str, Any]] = []
    for source, day, text in _messages(parts.get(titles.TALK, "")):
        for one in read(text, day):
            if one.ended:
                gone = [item for item in known if one.replaces(item.text)]
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


def _sentence(sentence: str, day: str) -> list[Statement]:
    """The statements of a sentence, in the first language in which it has any."""
    stated = (_stated(language, sentence, day) for language in languages())
    return next(filter(None, stated), [])


def _stated(language: Language, sentence: str, day: str) -> list[Statement]:
    """The statements of a sentence up to the first clause that is not understood."""
    found: list[Statement] = []
    if language.patterns["unsure"].search(sentence):
        return found
    for number, clause in enumerate(_NEXT.split(sentence)):
        bare = _bare(language, clause)
        if not bare or (number == 0 and " " not in bare and clause != sentence):
            continue  # only a greeting, or whom it is said to
        first, *others = (
            one
            for half in language.patterns["but"].split(bare)
            for one in language.patterns["also"].split(half)
        )
        # "but love truffles" goes on about the same person; "but not at night" limits what stands before.
        clauses = [first, *(_bare(language, f"{language.subject} {one}") for one in others)]
        understood = [one for one in (_clause(language, each, day) for each in clauses) if one]
        if len(understood) < len(clauses):
            break
        found += understood
    return found


def _bare(language: Language, clause: str) -> str:
    """A clause without the words that open it, as rules have it."""
    bare, before = clause.strip(" .!…,"), ""
    while bare != before:
        before, bare = bare, language.patterns["opening"].sub("", bare, count=1).strip()
    return re.sub(r"^(?:je )?j(?:e n)?'(?=\w)", "je ", bare, flags=_I) if language.name == "french" else bare


def _clause(language: Language, clause: str, day: str) -> Statement | None:
    changed = bool(language.patterns["changed"].search(clause))
    bare = language.patterns["closing"].sub("", clause).strip(" .!…,")
    if corrected := language.patterns["instead"].search(bare):
        stated = _ruled(language, bare[: corrected.start()], day)
        if stated:
            return replace(stated, changed=changed, instead=corrected["old"])
    for pattern, positive in language.takes_back:
        if match := pattern.fullmatch(bare):
            ended = _ruled(language, match.expand(positive), day)
            return replace(ended, ended=True) if ended else None
    stated = _ruled(language, bare, day)
    return replace(stated, changed=changed) if stated else None


def _ruled(language: Language, clause: str, day: str) -> Statement | None:
    """The statement of a bare clause by the first rule that fits."""
    matches = ((rule, match) for rule in language.rules if (match := rule.says.fullmatch(clause)))
    rule, match = next(matches, (None, None))
    if rule is None or match is None:
        return None
    parts = {name: part for name, part in match.groupdict().items() if part is not None}
    thing = parts.get("x", "").strip(" \"'*_`,:")
    if not thing or len(thing) > _MAX_OBJECT or language.patterns["junk"].search(thing):
        return None
    if rule.topic.name in _PLACES and language.patterns["no_place"].search(thing):
        return None
    if rule.topic.dated:
        parts["said"] = f" (said {day})" if day else ""
    elif rule.topic.name != "birthday" and any(
        language.patterns[one].search(thing) for one in ("past", "future")
    ):
        return None
    if language.name == "english":
        thing = _FIRST_PERSON.sub(lambda word: _TO_THIRD[word[0].lower()], thing)
    verb = {name: parts[name].lower() for name in ("v",) if name in parts}
    return Statement(rule, {**parts, **verb, "x": thing})


@dataclass(frozen=True, slots=True)
class _Known:
    """An item that the prompt lists, or one that is about to be added or changed."""

    id: str | None
    kind: str
    text: str
    upsert: dict[str, Any] | None = None


def _remember(statement: Statement, source: str, known: list[_Known]) -> None:
    said = normalise(statement.text)
    texts = (text for item in known for text in (item.text, *(one.text for one in remembered(item.text))))
    if any(said.rstrip(".") == normalise(text).rstrip(".") for text in texts):
        return
    old = next((item for item in known if statement.replaces(item.text)), None)
    topic = statement.rule.topic
    words = [word for word in _TAG.findall(statement.parts["x"].lower()) if word not in STOP_WORDS["english"]]
    tags = [*dict.fromkeys([*words[:3], *topic.tags])]
    upsert: dict[str, Any] = {"kind": topic.kind, "text": statement.text, "tags": tags}
    upsert |= {"category": "conversation"} if topic.dated else {}
    upsert |= {"source": source, "quote": statement.quote}
    if old and old.id:
        upsert["id"] = old.id
    if _PRIVATE.search(statement.text):
        upsert["sensitivity"] = "private"
    if old:
        known.remove(old)
    known.append(_Known(old.id if old else None, topic.kind, statement.text, upsert))


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
_LINE = re.compile(r"^(m\d+) \w{3} ([\d-]{10}) [\d:]{5} (»?)\[[^\]\n]*\]: (.*)$")


def _messages(part: str) -> Iterator[tuple[str, str, str]]:
    """The person's own lines of a talk: the short name, the day and the text of each.

    A line indented by two spaces continues the one before it.
    """
    source, day, lines = "", "", list[str]()
    for line in [*part.splitlines(), ""]:
        if source and line.startswith("  "):
            lines.append(line[2:])
            continue
        if source:
            yield source, day, "\n".join(lines)
        match = _LINE.match(line)
        source, day, lines = (match[1], match[2], [match[4]]) if match and match[3] else ("", "", [])
