"""Revises a summary: decides which of the changes that a model proposes are made to its lines.

A model that fills the shape proposes patches (`core/patch.Lines`): new lines, and lines that change, are done
or go, each with the new message that it rests on and a quotation from it. From a summary in prose, which a
model without structured output writes, the same edits are found by comparing it with the old lines, and their
messages by the words they share. One set of rules then decides, whichever way an edit was found:

- It rests on a new message. Only what is over needs none: a line under Now of an earlier day may leave, and
  one whose date has passed may be marked as done.
- A line changes only if a message has something of what is new in it. Numbers, dates, links and speakers
  that nobody said are the old ones again. The old line stays beside one that says little of what it was
  about, in a patch if the message isn't about it either.
- A new line has no number or link that nobody said, unless a message is about it, and doesn't only repeat an
  old line.
- A line goes only if a message has half of its words. What was done in the old summary goes by itself.
- A line is its speaker's in whose message its new words are. A quotation that has none of them, such as "ok,
  fine", makes nobody say what somebody else said.
- Every other line stays, word for word. A day after today is the last day of the messages.
- The sentences of an old summary in prose become lines under Now, of the day on which it was written, as soon
  as a model answers with a patch: they change, go and make room like others.

Words are compared by their stems, and those of many lines tell none of them. In doubt a line stays: a summary
should rather say something twice than lose news. Prose isn't compared with prose. What a model or a person
can write without end is looked at once, or in a bounded part. Pure.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import chain, islice
from typing import Literal, get_args

import regex

from discoclaw.core.own_words import is_quoted, own_words
from discoclaw.core.patch import SECTIONS, Lines
from discoclaw.core.purge import FRAME, distinctive, terms_of
from discoclaw.core.rolling_text import HEADINGS, NOW, Line, Notes, line_of, ordered, read, sentences
from discoclaw.core.text import collapse, scrub
from discoclaw.core.titles import ShortIds
from discoclaw.core.words import tokenise

MOST = 50
"""Edits of each kind in one answer that are looked at: each is compared with all messages."""
_ALIKE = 0.6
_ALIKE_THEN = 0.3
"""How much two lines share (Dice's coefficient) if they are versions of one; the second for a day that is
over, on which nothing new was said."""
_PART = 0.8
_FEWEST = 3
"""How much of one line is in another that is the same shortened or gone on with; the fewest terms of it. The
first is also how much of an old line has to be in the one that takes its place in prose."""
_DIGITS_SAID_IN_WORDS = 2
_MANY = 3
"""In how many lines of a summary a word isn't evidence for one of them."""
_ENOUGH = 2
"""How many of a line's words a message needs at least to end it, besides half of them, if it has so many."""
_MOST_COMPARED = 60
"""With how many old lines a new one is compared for each of its words."""

_ISO = r"\d{4}-\d\d-\d\d"
_DATE = regex.compile(_ISO)
_VALUE = regex.compile(
    rf"(?P<link>https?://[^\s<>\"]*[^\s<>\".,;:!?)\]])|(?P<date>{_ISO})|(?P<number>(?<![A-Za-z])[A-Za-z]*\d+(?:[.,:'’]\d+)*[A-Za-z\d]*)"
)
_COPIED_NAME = regex.compile(r"(?m)^([-*•\s]*)l\d+ ")
"""The short name of a line, which a model that copies lines copies too."""
_NO_DIGIT = regex.compile(r"\D+")


@dataclass(frozen=True, slots=True)
class NewMessage:
    """One new message: who said it, by the name in the summary, and on which day (ISO) of the talk's zone."""

    name: str
    day: str
    text: str


@dataclass(frozen=True, slots=True)
class News:
    """The new messages (m1, m2 … in a prompt), the names of everybody in the summary, and today (ISO).

    `before` is the day on which the previous summary was written, if that is known.
    """

    messages: tuple[NewMessage, ...]
    names: frozenset[str] = frozenset()
    today: str = ""
    before: str = ""


_How = Literal["change", "add", "done", "drop"]


@dataclass(frozen=True, slots=True)
class _Edit:
    """A change to the line `old`, or a line that is `new`. `reasons` are the messages that may be why.

    A version of an old line that is added has that line as `old`, too, and stands beside it.
    """

    how: _How
    reasons: Sequence[NewMessage]
    old: Line | None = None
    new: Line | None = None


class Revision:
    """One revision of a summary: `numbered` is what a model is shown, `revised` takes its answer."""

    def __init__(self, previous: str, news: News) -> None:
        self._messages = news.messages
        self._days = {message.day for message in news.messages}
        self._newest = max(self._days, default=news.today)
        self._today = news.today or self._newest
        before = read(previous)
        self._prose = before.prose
        self._old = self._until_today(before.lines)
        of_prose = [line_of(NOW, one) for one in sentences(before.prose)]
        day = news.before or min(self._days, default="")
        self._sentences = [replace(line, date=line.date or day) for line in of_prose if line.text]
        self._shown = [*self._sentences, *self._old]
        counts = Counter(chain.from_iterable(terms_of(line.text) for line in self._old))
        self._many = frozenset(term for term, count in counts.items() if count >= _MANY)
        self._names = frozenset(news.names)
        self._name_terms = frozenset(chain.from_iterable(map(terms_of, news.names)))
        self._topics: dict[str, frozenset[str]] = {}
        self._about = defaultdict[str, list[Line]](list)
        for line in self._old:
            for term in self._topic(line):
                self._about[term].append(line)
        self._said = "\n".join(message.text for message in news.messages)
        self._known = "\n".join([self._said, *(line.text for line in self._shown)])
        self._numbers_said, self._numbers_known = _numbers(self._said), _numbers(self._known)

    @property
    def numbered(self) -> str:
        """The old summary, each line with the short name by which an answer calls it."""
        found, under = list[str](), -1
        for number, line in enumerate(self._shown, start=1):
            is_prose = number <= len(self._sentences)
            if not is_prose and line.section != under:
                under = line.section
                found.append(HEADINGS[under])
            found.append(f"l{number} {line.text if is_prose else str(line).removeprefix('- ')}")
        return "\n".join(found)

    def revised(self, answer: Lines | str) -> tuple[str, list[str]]:
        """The new summary, and why edits were refused, for the log."""
        refused = list[str]()
        if isinstance(answer, str):
            notes = read(_COPIED_NAME.sub(r"\1", answer))
            edits, prose = self._compared(self._until_today(notes.lines)), notes.prose
            before = list(self._old)
        else:
            edits, prose = self._quoted(answer, refused), ""
            before = [*self._old, *self._sentences]
        stay = {id(line): line for line in self._shown if not line.done}
        new = list[Line]()
        for edit in map(self._exact, edits):
            old = edit.old
            if fault := self._fault(edit):
                refused.append(fault)
            elif edit.how == "done" and id(old) in stay:
                stay[id(old)] = replace(stay[id(old)], done=True)
            else:
                if edit.how != "add":
                    stay.pop(id(old), None)
                new += [edit.new] if edit.new is not None else []
        kept = dict[tuple[str, ...], Line]()
        for line in (*new, *(stay[id(line)] for line in before if id(line) in stay)):
            kept.setdefault(_words(line), line)
        return str(Notes(prose, ordered(kept.values()))), refused

    def _until_today(self, lines: Iterable[Line]) -> tuple[Line, ...]:
        """Lines without days after today: such a line would stand first, and outlast all others."""
        return ordered(
            [replace(line, date=self._newest) if line.date > self._today > "" else line for line in lines]
        )

    # ------------------------------------------------------------------ the edits of a patch

    def _quoted(self, patch: Lines, refused: list[str]) -> Iterator[_Edit]:
        """What a model proposes, with the days and names of the messages that it quotes."""
        messages = ShortIds("m", map(str, range(len(self._messages))))
        lines = ShortIds("l", map(str, range(len(self._shown))))
        for how in get_args(_How):
            for proposal in getattr(patch, how)[:MOST]:
                found = messages.meant(proposal.source)
                basis = self._messages[int(found)] if found is not None else None
                if basis is not None and not is_quoted(proposal.quote, own_words(basis.text)):
                    basis = None
                place = None if how == "add" else lines.meant(proposal.id)
                old = self._shown[int(place)] if place is not None else None
                if old is None and how != "add":
                    refused.append(f"there is no line {collapse(scrub(proposal.id))[:20]!r}")
                elif how in ("done", "drop"):
                    yield _Edit(how, [basis] if basis else [], old)
                elif basis is None:
                    name = collapse(scrub(proposal.source))[:20]
                    refused.append(f"what it quotes from {name!r} isn't there")
                else:
                    section = old.section if old is not None else SECTIONS.index(proposal.section)
                    says = line_of(section, scrub(proposal.text)).text
                    if _speaker(says) in {*self._names, basis.name}:
                        says = says.partition(":")[2].strip()
                    if says:
                        by = self._whose(says, old, proposal.quote, basis)
                        new = Line(section, by.day, f"{by.name}: {says}")
                        apart = old is not None and not self._touching(old, [by]) and self._lacks(new, old)
                        # What isn't about the old line can't end it.
                        yield _Edit("add" if apart else how, [by], old, new)

    def _whose(self, says: str, old: Line | None, quoted: str, basis: NewMessage) -> NewMessage:
        """The message that the new words of a line are from: the one it quotes, unless others are the source.

        That is so if the quotation has none of these words, and another message half of them.
        """
        words = distinctive(_DATE.sub(" ", says)) - self._name_terms
        if old is not None:
            words = words - terms_of(old.text) or words
        if words & terms_of(quoted):
            return basis
        has = [len(words & own) for own in self._own_terms]
        best = max(range(len(has)), key=lambda at: (has[at], self._messages[at] is basis))
        return self._messages[best] if 2 * has[best] >= max(1, len(words)) else basis

    @cached_property
    def _own_terms(self) -> list[frozenset[str]]:
        """The terms of each message that are its author's own words."""
        return [terms_of("\n".join(own_words(message.text))) for message in self._messages]

    # ------------------------------------------------------------------ the edits of a summary in prose

    def _compared(self, new: Sequence[Line]) -> Iterator[_Edit]:
        """What a summary says otherwise than the old one, with the messages that may be the reason."""
        waiting, others = {id(line): line for line in self._old}, list[Line]()
        copies = defaultdict[tuple[str, ...], list[Line]](list)
        for line in self._old:
            copies[_words(line)].append(line)
        for line in new:
            copy = next((one for one in copies[_words(line)] if id(one) in waiting), None)
            if copy is None:
                others.append(line)
            else:
                del waiting[id(copy)]
                yield from self._marked(copy, line)
        from_prose, fresh = bool(self._prose) and not self._old, list[_Edit]()
        for line in others:
            old = self._version_before(line, waiting)
            if old is None:
                # What nobody said may still be news in other words, but not of an earlier day.
                known = from_prose or self._is_said(line) or not self._is_earlier(line)
                dated = replace(line, date=line.date or self._newest)
                fresh.append(_Edit("add", self._messages if known else [], new=dated))
                continue
            del waiting[id(old)]
            changed = replace(line, date=line.date if line.date in self._days else old.date)
            # Whatever else the old line said stays beside the new one.
            yield _Edit("add" if self._lacks(line, old) else "change", self._messages, old, changed)
            yield from self._marked(old, line)
        if not self._old and not any(edit.reasons for edit in fresh):
            # A first summary, perhaps in another language than the messages.
            fresh = [_Edit("add", self._messages, new=replace(line, date=self._newest)) for line in others]
        yield from fresh
        for line in waiting.values():
            words = self._telling(line)
            # Beside sections a line was left out, so a message has to have most of it.
            most = max(_FEWEST, _PART * len(words)) if new else 0
            reasons = [one for one in self._messages if len(words & terms_of(one.text)) >= most]
            yield _Edit("drop", reasons, line)

    def _marked(self, old: Line, new: Line) -> Iterator[_Edit]:
        """The edit of a line that is marked as done, if a message has a word of it."""
        if new.done and not old.done:
            yield _Edit("done", self._touching(old, self._messages), old)

    def _lacks(self, new: Line, old: Line) -> bool:
        """Whether a version of a line has fewer numbers, dates and links, or little of what it was about."""
        before, after = _values(old.text), _values(new.text)
        if any(
            sum(sort == kind for sort, _ in before) > sum(sort == kind for sort, _ in after)
            for kind, _ in before
        ):
            return True
        topic = self._topic(old)
        return len(topic & terms_of(new.text)) < _PART * len(topic)

    # ------------------------------------------------------------------ the rules

    def _exact(self, edit: _Edit) -> _Edit:
        """An edit with the values of the old line in place of new ones that nobody said."""
        old, new = edit.old, edit.new
        if old is None or new is None:
            return edit
        before, after, about = _values(old.text), _values(new.text), self._about_it(old, edit.reasons)
        back = dict[tuple[str, str], str]()
        for sort in dict.fromkeys(kind for kind, _ in before):
            gone = [value for kind, value in before if kind == sort and (kind, value) not in after]
            come = [one for one in after if one[0] == sort and one not in before]
            back |= zip((one for one in come if not self._was_said(*one, about)), gone, strict=False)
        text = _VALUE.sub(lambda one: back.get((one.lastgroup or "", one[0]), one[0]), new.text)
        was, now = _speaker(old.text), _speaker(text)
        heard = about if len(edit.reasons) > 1 else edit.reasons
        said = any(one.name == now or now in one.text for one in heard)
        if not said and {was, now} <= self._names:
            text = was + text[len(now) :]  # nobody of that name has said it
        return replace(edit, new=replace(new, text=text))

    def _fault(self, edit: _Edit) -> str:
        """Why an edit may not be made; "" if it may."""
        old, new = edit.old, edit.new
        if not edit.reasons:
            may = {"drop": self._is_over, "done": self._has_passed}.get(edit.how)
            if old is None or may is None or not may(old):
                return f"no message is a reason to {edit.how} a line"
        if new is None:
            if old is None or edit.how != "drop" or self._is_over(old):
                return ""
            words = self._telling(old)
            enough = max(1, min(_ENOUGH, len(words)), len(words) / 2)
            reason = any(len(words & terms_of(one.text)) >= enough for one in edit.reasons)
            return "" if reason else "no message is about the line that is to go"
        if old is not None:
            about, come = self._about_it(old, edit.reasons), set(_values(new.text)) - set(_values(old.text))
            if not all(self._was_said(*one, about) for one in come):
                return "a line was to have a number or link that nobody said"
            return "" if self._is_news(old, new, about) else "nothing that is new in a line was said"
        known = (
            kind == "date" or _in_words(kind, value) or _has(self._known, self._numbers_known, kind, value)
            for kind, value in _values(new.text)
        )
        if not (self._is_said(new) or all(known)):
            return "a new line has a number or link that nobody said"
        return "a new line only repeats an old one" if self._repeats(new) else ""

    def _is_over(self, line: Line) -> bool:
        """Whether a line says what they were at on an earlier day."""
        return line.section == NOW and self._is_earlier(line)

    def _is_earlier(self, line: Line) -> bool:
        return bool(line.date) and line.date not in self._days

    def _has_passed(self, line: Line) -> bool:
        return max(_DATE.findall(line.text), default=self._today) < self._today

    def _touching(self, line: Line, messages: Sequence[NewMessage]) -> list[NewMessage]:
        """The messages that have any word of a line which tells it from others."""
        words = self._telling(line)
        return [message for message in messages if words & terms_of(message.text)]

    def _telling(self, line: Line) -> frozenset[str]:
        return terms_of(_DATE.sub(" ", line.text)) - FRAME - self._name_terms - self._many

    def _is_said(self, line: Line) -> bool:
        """Whether a message has a word of a line that not everybody uses."""
        telling = distinctive(_DATE.sub(" ", line.text)) - self._name_terms
        return any(telling & terms_of(message.text) for message in self._messages)

    def _about_it(self, line: Line, messages: Sequence[NewMessage]) -> list[NewMessage]:
        return [one for one in messages if self._topic(line) & terms_of(one.text)]

    def _is_news(self, old: Line, new: Line, about: Sequence[NewMessage]) -> bool:
        """Whether what is new in a line was said: half of the telling words at once, or any if there are
        messages `about` it. Of words that everybody uses, one of these has to have half.
        """
        before, after = _DATE.sub(" ", old.text), _DATE.sub(" ", new.text)
        telling = ((terms_of(after) - terms_of(before)) & distinctive(after)) - self._name_terms
        said = [len(telling & terms_of(message.text)) for message in self._messages]
        if any(2 * count >= len(telling) for count in said if count) or (about and any(said)):
            return True
        others = _runs(after.partition(":")[2]) - _runs(before)
        if others and any(2 * len(others & _runs(f"{one.name} {one.text}")) >= len(others) for one in about):
            return True
        come = set(_values(new.text)) - set(_values(old.text))
        return any(self._was_said(*one, about) for one in come)

    def _was_said(self, kind: str, value: str, about: Sequence[NewMessage]) -> bool:
        """Whether new messages give such a value. Dates and small numbers are also said in words."""
        in_words = kind == "date" or _in_words(kind, value)
        return (in_words and bool(about)) or _has(self._said, self._numbers_said, kind, value)

    def _repeats(self, line: Line) -> bool:
        """Whether a line says again, perhaps in other words, what an old one does."""
        old = self._version_before(line)
        if old is not None:
            return not self._is_news(old, line, self._about_it(old, self._messages))
        return not self._is_said(line) and any(
            one.date == line.date
            and _speaker(one.text) == _speaker(line.text)
            and self._likeness(one, line) >= _ALIKE_THEN
            for one in self._near(line)
        )

    # ------------------------------------------------------------------ versions of a line

    def _version_before(self, line: Line, among: Container[int] | None = None) -> Line | None:
        """The old line that this one is another version of; `among` these ids."""
        near = [one for one in self._near(line) if among is None or id(one) in among]
        if not near:
            return None
        likeness = {id(one): self._likeness(one, line) for one in near}
        best = max(near, key=lambda one: (likeness[id(one)], one.date == line.date))
        over = line.date == best.date and self._is_earlier(line)
        return best if likeness[id(best)] >= (_ALIKE_THEN if over else _ALIKE) else None

    def _near(self, line: Line) -> list[Line]:
        """The old lines that share a word with this one, in their order; of very many, some."""
        found = {
            id(one) for term in self._topic(line) for one in islice(self._about.get(term, ()), _MOST_COMPARED)
        }
        return [one for one in self._old if id(one) in found] if found else []

    def _likeness(self, one: Line, other: Line) -> float:
        """How much of two lines is about the same, from 0 to 1."""
        ours, theirs = self._topic(one), self._topic(other)
        if not ours or not theirs:
            return 0.0
        shared, fewer = len(ours & theirs), min(len(ours), len(theirs))
        dice = 2 * shared / (len(ours) + len(theirs))
        return max(dice, _PART) if fewer >= _FEWEST and shared >= _PART * fewer else dice

    def _topic(self, line: Line) -> frozenset[str]:
        """The terms that say what a line is about: not its names and numbers, which may be others'."""
        if line.text not in self._topics:
            plain = _VALUE.sub(" ", line.text)
            words = distinctive(plain) - self._name_terms
            others = terms_of(plain) - self._name_terms
            self._topics[line.text] = words - self._many or others - self._many or words or others
        return self._topics[line.text]


def _values(text: str) -> list[tuple[str, str]]:
    """The sorts and values of what has to be exact, each once."""
    return list(dict.fromkeys((one.lastgroup or "", one[0]) for one in _VALUE.finditer(text)))


def _in_words(kind: str, value: str) -> bool:
    """Whether people may say a value in words: a small number."""
    return kind == "number" and len(value) <= _DIGITS_SAID_IN_WORDS


def _has(text: str, numbers: Collection[str], kind: str, value: str) -> bool:
    """Whether a text with these numbers has a value."""
    return _NO_DIGIT.sub("", value) in numbers if kind == "number" else value in text


def _numbers(text: str) -> frozenset[str]:
    """The digits of the numbers in a text, in whatever way they are grouped, and with any unit."""
    return frozenset(_NO_DIGIT.sub("", one[0]) for one in _VALUE.finditer(text) if one["number"])


def _speaker(text: str) -> str:
    """Whose name a line's text begins with, before its colon."""
    return text.partition(":")[0]


@lru_cache(maxsize=2_048)
def _in_order(text: str) -> tuple[str, ...]:
    return tuple(tokenise(text).runs)


def _runs(text: str) -> frozenset[str]:
    return frozenset(_in_order(text))


def _words(line: Line) -> tuple[str, ...]:
    """A line's day and words, by which it is the same line: without its mark, case and punctuation."""
    return (line.date, *(_in_order(line.text) or (line.text,)))
