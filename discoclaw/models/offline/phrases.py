"""Reads `phrases.toml`: for each language its rules, its questions, and its own sentences.

A rule turns a clause ("I work as a nurse") into a memory ("User works as a nurse."), and a memory back into a
sentence to its person ("You work as a nurse."). Knows nothing about prompts.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from discoclaw.core.words import tokenise

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
