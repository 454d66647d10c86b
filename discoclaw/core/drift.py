"""Takes back what a model changed in a summary without a reason in the new messages.

A summary is written again and again from itself, so a word that changes each time soon says something else.
What it said stays word for word, unless a new message gives a reason to change it:

- A line that is nearly an old one, and whose new words nobody said, is the old one again.
- In a line that has news, numbers, dates, names and links that nobody said are the old ones again. If it has
  fewer of them, or lacks much else of the old line, that stays beside it.
- A line that was left out comes back unless it was marked as done, or a message has most of its words; else
  only the maximum length ends it. Under Now, lines of earlier days may leave.
- A mark or another section needs a message that shares a word with the line, or for a mark a date that is
  over.
- A new line needs a word that somebody said if it is of an earlier day, has a number or link that nobody
  said, or is nearly what its speaker said that day. If that leaves no line of a first summary, those without
  such a number stay. A day after today is the last day of the messages.
- Beside an answer in prose, a line leaves too if a message shares a word with it.

Words are compared by their stems, and those of many lines tell none of them. In doubt a line stays: a summary
should rather say something twice than lose news. Prose itself is not compared. What a model or a person can
write without end is looked at once, or in a bounded part. Pure.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain, islice

import regex

from discoclaw.core.purge import FRAME, distinctive, terms_of
from discoclaw.core.rolling_text import NOW, Line, Notes, ordered, read
from discoclaw.core.words import tokenise

_ALIKE = 0.6
_ALIKE_THEN = 0.3
"""How much two lines share (Dice's coefficient) if they are versions of one; the second for a day that is
over, on which nothing new was said."""
_PART = 0.8
_FEWEST = 3
"""How much of one line is in another that is the same shortened or gone on with; the fewest terms of it. The
first is also how much of an old line has to be in the one that takes its place."""
_DIGITS_SAID_IN_WORDS = 2
_MANY = 3
"""In how many lines of a summary a word isn't evidence for one of them."""
_MOST_COMPARED = 60
"""With how many old lines a new one is compared for each of its words."""

_ISO = r"\d{4}-\d\d-\d\d"
_DATE = regex.compile(_ISO)
_EXACT = regex.compile(
    rf"(?P<link>https?://[^\s<>\"]*[^\s<>\".,;:!?)\]])|(?P<date>{_ISO})|(?P<number>(?<![A-Za-z])[A-Za-z]*\d+(?:[.,:'’]\d+)*[A-Za-z\d]*)"
)
_NO_DIGIT = regex.compile(r"\D+")


@dataclass(frozen=True, slots=True)
class NewMessage:
    """One new message: who said it, by the name in the summary, and on which day (ISO) of the talk's zone."""

    name: str
    day: str
    text: str


@dataclass(frozen=True, slots=True)
class News:
    """The new messages, the names of everybody in the summary, and the day (ISO) on which it is made."""

    messages: tuple[NewMessage, ...]
    names: frozenset[str] = frozenset()
    today: str = ""


def settled(previous: str, answer: str, news: News) -> str:
    """A model's new summary, with what the previous one said as long as nothing new speaks against it."""
    newest = max((message.day for message in news.messages), default=news.today)
    news = replace(news, today=news.today or newest)
    old, new = (_until_today(read(text), news.today, newest) for text in (previous, answer))
    names = frozenset(name for name in news.names if name in previous or name in answer)
    settling = _Settling(old, replace(news, names=names))
    lines = settling.lines(new.lines) if new.lines else settling.beside_prose()
    return str(Notes(new.prose, ordered(lines)))


def _until_today(notes: Notes, today: str, newest: str) -> Notes:
    """Notes without days after today: such a line would stand first, and outlast all others."""
    lines = [replace(line, date=newest) if line.date > today > "" else line for line in notes.lines]
    return replace(notes, lines=ordered(lines))


class _Settling:
    """One comparison. Old lines wait here until a new one takes their place."""

    def __init__(self, before: Notes, news: News) -> None:
        self._old, self._waiting = before.lines, {id(line): line for line in before.lines}
        self._beside: list[Line] = []
        self._from_prose = bool(before.prose) and not before.lines
        self._messages, self._today = news.messages, news.today
        self._days = {message.day for message in news.messages}
        longest_first = sorted(news.names, key=len, reverse=True)
        self._name = regex.compile("|".join(map(_whole, longest_first)) or r"(?!)")
        counts = Counter(chain.from_iterable(terms_of(line.text) for line in self._old))
        self._many = frozenset(term for term, count in counts.items() if count >= _MANY)
        self._name_terms = frozenset(chain.from_iterable(map(terms_of, news.names)))
        self._topics: dict[str, frozenset[str]] = {}
        self._said = "\n".join(one.text for one in news.messages)
        self._known = "\n".join([self._said, *(one.text for one in self._old)])
        self._numbers_said, self._numbers_known = _numbers(self._said), _numbers(self._known)
        self._copies = defaultdict[tuple[str, ...], list[Line]](list)
        self._about = defaultdict[str, list[Line]](list)
        for line in self._old:
            self._copies[_words(line)].append(line)
            for term in self._topic(line):
                self._about[term].append(line)

    def lines(self, new: Sequence[Line]) -> list[Line]:
        """The lines of the new summary: what is new, then what stays in its old order."""
        copied = [self._claim(self._copy_of(line)) for line in new]
        found: dict[tuple[str, ...], Line] = {}
        for line, copy in zip(new, copied, strict=True):
            old = copy or self._claim(self._version_before(line))
            after = self._fresh(line) if old is None else self._settle(old, line)
            if after is not None:
                found.setdefault(_words(after), after)
        left_out = [line for line in self._waiting.values() if not self._is_taken_up(line)]
        for line in (*left_out, *self._beside):
            if not line.done and not self._is_over(line):
                found.setdefault(_words(line), line)
        if not found and not self._old:  # perhaps in another language than the messages
            found = {_words(line): self._of_last_day(line) for line in new if not self._has_unsaid(line)}
        place = {_words(line): number for number, line in enumerate(self._old)}
        return sorted(found.values(), key=lambda line: place.get(_words(line), -1))

    def beside_prose(self) -> list[Line]:
        """The old lines that stay beside an answer in prose, which has no lines to mark as done."""
        return [line for line in self._old if not (line.done or self._is_over(line) or self._touched(line))]

    def _is_over(self, line: Line) -> bool:
        """Whether a line says what they were at on an earlier day."""
        return line.section == NOW and self._is_earlier(line)

    def _is_taken_up(self, line: Line) -> bool:
        """Whether a message has most words of a line, so that it may be the reason to leave the line out."""
        words = self._telling(line)
        most = max(_FEWEST, _PART * len(words))
        return any(len(words & terms_of(message.text)) >= most for message in self._messages)

    def _claim(self, line: Line | None) -> Line | None:
        self._waiting.pop(id(line), None)
        return line

    def _copy_of(self, line: Line) -> Line | None:
        return next((one for one in self._copies.get(_words(line), ()) if id(one) in self._waiting), None)

    def _near(self, line: Line) -> list[Line]:
        """The old lines that share a word with this one, in their order; of very many, some."""
        found = {
            id(one) for term in self._topic(line) for one in islice(self._about.get(term, ()), _MOST_COMPARED)
        }
        return [one for one in self._old if id(one) in found] if found else []

    def _version_before(self, line: Line) -> Line | None:
        """The old line that this one is another version of."""
        near = [one for one in self._near(line) if id(one) in self._waiting]
        if not near:
            return None
        likeness = {id(one): self._likeness(one, line) for one in near}
        best = max(near, key=lambda one: (likeness[id(one)], one.date == line.date))
        over = line.date == best.date and self._is_earlier(line)
        return best if likeness[id(best)] >= (_ALIKE_THEN if over else _ALIKE) else None

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
            plain = _EXACT.sub(" ", line.text)
            words = distinctive(plain) - self._name_terms
            others = terms_of(plain) - self._name_terms
            self._topics[line.text] = words - self._many or others - self._many or words or others
        return self._topics[line.text]

    # ------------------------------------------------------------------ a version of an old line

    def _settle(self, old: Line, new: Line) -> Line:
        """The version of a line that counts."""
        about = [message for message in self._messages if self._topic(old) & terms_of(message.text)]
        is_news = _words(old) != _words(new) and self._is_news(old, new, about)
        touched = is_news or self._touched(old)
        over = max(_DATE.findall(old.text), default=self._today) < self._today
        settled = replace(
            new if touched else old,
            date=new.date if is_news and new.date in self._days else old.date,
            text=old.text,
            done=old.done or (new.done and (touched or over)),
        )
        if not is_news:
            return settled
        text, lacks = self._exact(old.text, new.text, about)
        topic = self._topic(old)
        if lacks or len(topic & terms_of(text)) < _PART * len(topic):
            self._beside.append(old)
        return replace(settled, text=text)

    def _touched(self, line: Line) -> bool:
        """Whether a message has any word of a line that is not in every second line."""
        words = self._telling(line)
        return any(words & terms_of(message.text) for message in self._messages)

    def _telling(self, line: Line) -> frozenset[str]:
        return terms_of(_DATE.sub(" ", line.text)) - FRAME - self._name_terms - self._many

    def _is_news(self, old: Line, new: Line, about: Collection[NewMessage]) -> bool:
        """Whether what is new in a line was said: half of the telling words at once, or any on its topic.

        Of words that everybody uses, half have to be said on its topic.
        """
        before, after = _DATE.sub(" ", old.text), _DATE.sub(" ", new.text)
        telling = ((terms_of(after) - terms_of(before)) & distinctive(after)) - self._name_terms
        said = [len(telling & terms_of(message.text)) for message in self._messages]
        if any(2 * count >= len(telling) for count in said if count) or (about and any(said)):
            return True
        others = _runs(after) - _runs(before)
        if others and any(2 * len(others & _runs(f"{one.name} {one.text}")) >= len(others) for one in about):
            return True
        exact = set(self._exacts(new.text)) - set(self._exacts(old.text))
        return any(self._was_said(kind, value, about) for kind, value in exact)

    def _exact(self, old: str, new: str, about: Collection[NewMessage]) -> tuple[str, bool]:
        """The new text with the old values where nobody said the new ones, and whether it lacks any."""
        before, after, lacks = self._exacts(old), self._exacts(new), False
        for sort in dict.fromkeys(kind for kind, _ in before):
            gone = [value for kind, value in before if kind == sort and (kind, value) not in after]
            come = [value for kind, value in after if kind == sort and (kind, value) not in before]
            unsaid = [value for value in come if not self._was_said(sort, value, about)]
            for was, now in zip(gone, unsaid, strict=False):
                new = regex.sub(_whole(now), lambda _, was=was: was, new)  # type: ignore[misc]
            lacks = lacks or len(gone) > len(come)
        return new, lacks

    def _exacts(self, text: str) -> list[tuple[str, str]]:
        """The sorts and values of what must not change by itself, in their order and each once."""
        names = [(one.start(), "name", one[0]) for one in self._name.finditer(text)]
        others = [(one.start(), one.lastgroup or "", one[0]) for one in _EXACT.finditer(text)]
        return list(dict.fromkeys((kind, value) for _, kind, value in sorted([*names, *others])))

    def _was_said(self, kind: str, value: str, about: Collection[NewMessage]) -> bool:
        """Whether new messages give such a value. Dates and small numbers are also said in words."""
        if kind == "name":
            pattern = regex.compile(_whole(value), regex.IGNORECASE)
            return any(one.name == value or pattern.search(one.text) for one in about)
        in_words = kind == "date" or (kind == "number" and len(value) <= _DIGITS_SAID_IN_WORDS)
        return (in_words and bool(about)) or _has(self._said, self._numbers_said, kind, value)

    # ------------------------------------------------------------------ a line of its own

    def _fresh(self, line: Line) -> Line | None:
        """A line that isn't a version of an old one, unless nothing of it can be from the new messages.

        It is from their last day, if it does not say from which.
        """
        telling = distinctive(_DATE.sub(" ", line.text)) - self._name_terms
        said = self._from_prose or any(telling & terms_of(message.text) for message in self._messages)
        if not said and (self._is_earlier(line) or self._has_unsaid(line) or self._rewords(line)):
            return None
        return line if line.date else self._of_last_day(line)

    def _of_last_day(self, line: Line) -> Line:
        return replace(line, date=max(self._days, default=""))

    def _is_earlier(self, line: Line) -> bool:
        return bool(line.date) and line.date not in self._days

    def _rewords(self, line: Line) -> bool:
        """Whether a line says in other words what its speaker said on that day."""
        return any(
            one.date == line.date
            and _speaker(one) == _speaker(line)
            and self._likeness(one, line) >= _ALIKE_THEN
            for one in self._near(line)
        )

    def _has_unsaid(self, line: Line) -> bool:
        """Whether a line has a link or a number that is neither in the messages nor in the old summary."""
        return any(
            kind in ("link", "number")
            and len(value) > _DIGITS_SAID_IN_WORDS
            and not _has(self._known, self._numbers_known, kind, value)
            for kind, value in self._exacts(line.text)
        )


def _whole(value: str) -> str:
    """A pattern for a value that isn't part of a longer word, in scripts that have spaces between words."""
    letters = r"[\p{Latin}\p{Greek}\p{Cyrillic}\d]"
    before = rf"(?<!{letters})" if regex.match(letters, value) else ""
    after = rf"(?!{letters})" if regex.match(letters, value[-1:]) else ""
    return f"{before}{regex.escape(value)}{after}"


def _has(text: str, numbers: Collection[str], kind: str, value: str) -> bool:
    """Whether a text with these numbers has a value."""
    return _NO_DIGIT.sub("", value) in numbers if kind == "number" else value in text


def _numbers(text: str) -> frozenset[str]:
    """The digits of the numbers in a text, in whatever way they are grouped, and with any unit."""
    return frozenset(_NO_DIGIT.sub("", one[0]) for one in _EXACT.finditer(text) if one["number"])


def _speaker(line: Line) -> str:
    return line.text.partition(":")[0]


@lru_cache(maxsize=2_048)
def _in_order(text: str) -> tuple[str, ...]:
    return tuple(tokenise(text).runs)


def _runs(text: str) -> frozenset[str]:
    return frozenset(_in_order(text))


def _words(line: Line) -> tuple[str, ...]:
    """A line's day and words, by which it is the same line: without its mark, case and punctuation."""
    return (line.date, *(_in_order(line.text) or (line.text,)))
