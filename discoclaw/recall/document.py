"""The searchable form of an item, an entry and a question: terms, counted, and what names the whole.

Tags and keys are names for the whole item, and a speaker's name is one for the whole message, so they do not
add to a text's length. What is written as a name in an item's text is one of its names too. The date of an
item or entry is kept beside the dates that its text names. Pure.
"""

import re
import unicodedata
from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache
from itertools import chain
from typing import Generic, TypeAlias, TypeVar
from weakref import KeyedRef

from discoclaw.core.item import KINDS, Item
from discoclaw.core.languages import ACCOUNT, ASKING, MONTHS, POINTING
from discoclaw.core.message import Entry
from discoclaw.core.query import Query, Topic
from discoclaw.core.times import date_of, valid_ms
from discoclaw.core.values import dataclass
from discoclaw.core.words import (
    STOP_WORDS,
    Tokens,
    beginning_with,
    fold,
    is_common,
    terms,
    terms_in,
    tokenise,
)

T = TypeVar("T")
Names: TypeAlias = tuple[frozenset[str], ...]
_KINDS = {kind: terms(kind) for kind in KINDS}
MOST_KNOWN = 100_000
"""The most documents that are kept, for all people together."""
LONGEST_OPENING = 3
NO_TERMS = frozenset[str]()
"""One object, because a garbage collection stops everybody for longer the more of them there are."""
_SEPARATORS = str.maketrans("-_:", "   ")


@dataclass(frozen=True, slots=True)
class Document:
    """`terms` are those of the text and of dates in it, `length` is their number in the text (at least 1).

    `marks` are terms that name the whole: those of aliases and keys, kind, speaker. `given` are aliases and
    keys, each as its terms, `written` the names in the text.
    `dates` are the date terms of when it was said, `when` the same in ms.
    """

    id: str
    terms: frozenset[str]
    length: int
    marks: frozenset[str]
    dates: frozenset[str]
    when: int
    given: tuple[frozenset[str], ...] = ()
    written: tuple[frozenset[str], ...] = ()
    opening: tuple[str, ...] = ()
    """The first terms of the text: what a sentence is about mostly stands there."""


def of_item(item: Item) -> Document:
    """An item as a document."""
    tokens = tokenise(item.text)
    names = [*item.tags, *([item.facets.key.translate(_SEPARATORS)] if item.facets.key is not None else ())]
    given = [frozenset(terms(name) or terms_in(name, "english")) for name in names]
    marks = {term for name in given for term in name}
    if item.kind != "fact":  # "in fact" does not ask about all facts
        marks.update(_KINDS[item.kind])
    aliases = tuple(dict.fromkeys(name for name in given if 0 < len(name) <= LONGEST_NAME))
    written = dict.fromkeys(names_in(item.text, tokens.language, note=True))
    both = aliases, tuple(name for name in written if len(name) <= LONGEST_NAME and name not in aliases)
    return _document(item.id, item.text, tokens, marks, item.updated_at, both)


def of_entry(entry: Entry) -> Document:
    """A message as a document."""
    return _document(entry.id, entry.text, tokenise(entry.text), terms(entry.name), entry.sent_at)


class Kept(Generic[T]):
    """Values derived from items, each as long as its item is alive: a memory that changes makes new items.

    Of more than `most`, those made first are dropped.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self.made: dict[int, tuple[KeyedRef[int, Item], T]] = {}  # by the identity of the item

    def known(self, item: Item) -> T | None:
        """The value derived from an item before, or None. Called far more often than anything else."""
        made = self.made.get(id(item))
        return made[1] if made is not None else None

    def add(self, item: Item, made: T) -> T:
        """Keep what was made of an item, and return it."""
        if len(self.made) >= self._most:
            self.made.pop(next(iter(self.made)), None)
        self.made[id(item)] = KeyedRef(item, self._died, id(item)), made
        return made

    def forget(self) -> None:
        """Drop everything, because somebody's words have to go."""
        self.made.clear()

    def _died(self, item: KeyedRef[int, Item]) -> None:
        self.made.pop(item.key, None)


class Documents(Kept[Document]):
    """The documents of items, each made once, since an item never changes. For all people together.

    What is known to `others` is not made again.
    """

    def __init__(self, others: "Documents | None" = None) -> None:
        super().__init__(MOST_KNOWN)
        self._others = others

    def of(self, item: Item) -> Document:
        """An item's document."""
        return self.known(item) or self.add(item, of_item(item))

    def known(self, item: Item) -> Document | None:
        """An item's document, if it was made before."""
        return super().known(item) or (self._others.known(item) if self._others is not None else None)


def _document(
    identity: str,
    text: str,
    tokens: Tokens,
    marks: Iterable[str],
    when: int,
    names: tuple[Names, Names] = ((), ()),
) -> Document:
    return Document(
        identity,
        dates_in(text).union(tokens.terms),
        max(1, len(tokens.terms)),
        frozenset(marks) or NO_TERMS,
        date_terms(when),
        when,
        *names,
        tuple(tokens.terms[:LONGEST_OPENING]),
    )


# ----------------------------------------------------------------------
# Dates as terms: "8 May 2023", "2023-05-08" and "May 2023" meet each other, and a time in milliseconds.

_ENGLISH = "|".join(list(MONTHS)[:12])
_NAMES = "|".join(sorted({fold(name) for name in MONTHS}, key=len, reverse=True))
_NUMBERS = {fold(name): number for name, number in MONTHS.items()}
_FORMS = tuple(
    re.compile(form)
    for form in (
        r"(?<![\d.])(?P<year>\d{4})[-/.](?P<number>\d{1,2})(?:[-/.](?P<day>\d{1,2}))?(?!\d)",
        r"(?<![\d.])(?P<day>\d{1,2})\.(?P<number>\d{1,2})\.(?P<year>\d{4})(?!\d)",
        r"(?P<year>\d{4})年(?:(?P<number>\d{1,2})月)?(?:(?P<day>\d{1,2})日)?",
        rf"(?<!\d)(?P<day>\d{{1,2}})(?:st|nd|rd|th|\.|er|º)?\s+(?:of\s+|de\s+)?(?P<month>{_NAMES})\b\.?"
        r"(?:,?\s+(?:de\s+|del\s+)?(?P<year>\d{4}))?",
        rf"\b(?P<month>{_NAMES})\.?\s+(?P<day>\d{{1,2}})(?:st|nd|rd|th)?\b(?:,?\s+(?P<year>\d{{4}}))?(?!\d)",
        rf"\b(?P<month>{_NAMES})\.?,?\s+(?:of\s+|de\s+|del\s+)?(?P<year>\d{{4}})\b",
        # A month alone, where it can be no other word ("may", "march"; "this may be" is none).
        rf"\b(?!this\s+may\b)(?:in|last|this|next|since|during|of|every|by|until)\s+(?P<month>{_ENGLISH})\b",
        rf"\b(?:im|en|em|w|в)\s+(?P<month>{_NAMES})\b",
    )
)
_MARKED = re.compile(rf"\d{{4}}|\b(?:{_NAMES})\b")


def dates_in(text: str) -> frozenset[str]:
    """The date terms of what a text names as dates; relative ones ("yesterday") are not known."""
    folded = fold(text)
    if _MARKED.search(folded) is None:
        return frozenset()
    found: set[str] = set()
    for form in _FORMS:
        for match in form.finditer(folded):
            parts = match.groupdict()
            month = _NUMBERS.get(parts.get("month") or "") or int(parts.get("number") or 0)
            found |= _terms(int(parts.get("year") or 0), month, int(parts.get("day") or 0))
    return frozenset(found)


def date_terms(at_ms: int) -> frozenset[str]:
    """The date terms of a time in ms (UTC); none for a time that isn't a date."""
    if not valid_ms(at_ms):
        return frozenset()
    return _terms_of_day(date_of(at_ms))


@lru_cache(maxsize=4_096)  # so that the documents of one day have one set
def _terms_of_day(date: str) -> frozenset[str]:
    year, month, day = map(int, date.split("-"))
    return frozenset(_terms(year, month, day))


def _terms(year: int, month: int, day: int) -> set[str]:
    found = set()
    if not 0 <= month <= 12 or not 0 <= day <= 31:
        month = day = 0
    if month:
        found.add(f"d:{month:02}")
    if month and day:
        found.add(f"d:{month:02}-{day:02}")
    if 1900 <= year <= 2200:
        found.add(f"d:{year}")
        if month:
            found.add(f"d:{year}-{month:02}")
            if day:
                found.add(f"d:{year}-{month:02}-{day:02}")
    return found


# ----------------------------------------------------------------------
# Names in a text, as far as writing shows them: words with a capital letter, and codes such as "WEB-903".

LONGEST_NAME = 8
"""A name of more terms is a sentence: nobody asks for it as a whole."""
LONGEST_ACRONYM = 4
_WORD = re.compile(r"[^\W_](?:[\w.'’/-]*\w)?|[^\w\s]")
_PARTICLES = frozenset(["da", "de", "del", "della", "den", "der", "des", "di", "do", "dos", "du"])
_PARTICLES |= frozenset(["la", "las", "le", "les", "of", "the", "van", "von", "zu"])


def names_in(text: str, language: str, *, note: bool) -> list[frozenset[str]]:
    """The names in a text that is in `language`.

    `note`: the text is a note, in which "SLA" is a name. In what people ask it isn't a person whom one could
    know.
    """
    found: list[frozenset[str]] = []
    run: list[str] = []
    words = [*_WORD.findall(text), ""]
    for number, word in enumerate(words):
        if _is_part(word, inside=bool(run)) or (
            run and word in _PARTICLES and _is_part(words[number + 1], inside=True)
        ):
            run.append(word)
            continue
        if run and _is_name(run, language, begins=number == len(run), note=note):
            found.append(frozenset(terms_in(" ".join(run), language)))
        run = []
    return [name for name in found if name]


def _is_part(word: str, *, inside: bool) -> bool:
    """Whether a word can be part of a name: with a capital, a code, or a number inside a name."""
    if not word or not word[0].isalnum():
        return False
    numbered = any(map(str.isdigit, word))
    return word[0].isupper() or (numbered and (inside or any(map(str.isalpha, word))))


def _is_name(run: Sequence[str], language: str, *, begins: bool, note: bool) -> bool:
    if language == "german":
        if begins and fold(run[0]) in STOP_WORDS[language]:
            run = run[1:]  # "Vom Buch" is no name
        return note and len(run) > 1
    if len(run) > 1:
        return True
    if len(run[0]) > LONGEST_ACRONYM and run[0].isupper():
        return False  # it is emphasis
    acronym = len(run[0]) > 1 and run[0].isupper()
    if note:
        return not begins or acronym or any(map(str.isdigit, run[0]))
    return not begins and not acronym


# ----------------------------------------------------------------------
# Parses a message into a `Query`: terms to look up and dates, however the message is phrased.
#
# A message is parsed once a turn, together with what it replies to and the talk before it. Ranking, selection
# and the archive all use the result.


LONGEST = 6_000
"""Characters of a text that are read, from its beginning and its end: the request is at one of them."""
MOST_TERMS = 128
"""The most terms of a text that are looked up; of more, those that are common in any talk are left out."""
LONGEST_REQUEST = 300
"""A message with more characters than this asks for something in particular."""
TALKATIVE = 3
"""In so many sentences, only those that ask something are cut into topics."""
COMPOUNDING = frozenset(["german", "dutch", "swedish", "danish", "norwegian", "finnish", "hungarian"])
"""Languages that write compounds as one word: a "Geburtstagskuchen" is a "Kuchen"."""
LONGEST_LISTED = 4
"""Words of a topic in a list of topics."""
_ENDS = ("st", "nd", "rd", "th")
_BREAK = re.compile(r"(?:(?<=\w\w\w[.…])|(?<=[!?…]))[\"'”’»)\]]*\s+|(?<=[。！？])|\n\s*")
"""The end of a sentence; after two letters and a full stop none does ("Dr. Okonkwo")."""
_AND = re.compile(r"[,;]?\s+(?:and|or|plus|und|oder|sowie|et|ou|y|o|e|и|или|&)\s+", re.IGNORECASE)
_COMMA = re.compile(r"[,;、；，،]\s*")
"""Where another topic may begin."""
_OWN_VERB = re.compile(
    r"\b(?:i|let me)\s+(?:[\w'’]+\s+){0,3}?(?:know|remember|recall|learn\w*)\b", re.IGNORECASE
)
"""Phrases about a person's knowing ("I don't know") that don't ask what is known about them."""
_EVERYTHING = re.compile(
    r"\b(?:remember|know|recall|learn\w*|memor\w+|stor\w+|notes?)\b[^.!?\n]*\b(?:me|myself|i|my)\b"
    r"|\bwho am i\b|\bmy (?:memor\w+|notes)\b",
    re.IGNORECASE,
)
_ACCOUNT = beginning_with(ACCOUNT)
_MEMORY_WORDS = frozenset(
    terms("recall learned memory memories stored notes everything anything facts show list far date")
)


def parse(message: str, *, replied_to: str = "", recent: str = "", search: bool = False) -> Query:
    """Return what a message asks for.

    `replied_to` is the text of the message it answers. `recent` is the talk before it, which is used too if
    the message alone says next to nothing ("and why?"). With `search` it was typed to find something, so
    "sleep test" isn't a courtesy.
    """
    text = f"{message}\n{replied_to}" if replied_to else message
    brief = len(text) <= LONGEST_REQUEST
    tokens = tokenise(text[:LONGEST_REQUEST])
    # Everything that is remembered about them, and nothing in particular. English only; in other languages
    # the model finds it with its search tool.
    plain = brief and _MEMORY_WORDS.issuperset(tokens.terms)
    everything = plain and _EVERYTHING.search(_OWN_VERB.sub("", text)) is not None
    if recent and not _says_something(tokens.terms):
        text = f"{text}\n{recent}"
    if len(text) > LONGEST:
        text = f"{text[: LONGEST // 2]}\n{text[-LONGEST // 2 :]}"
    known = {text: tokens} if brief else {}
    asked: dict[str, None] = {}
    forms: dict[str, tuple[str, ...]] = {}
    dates: set[str] = set()
    names: dict[frozenset[str], None] = {}
    topics: list[set[str]] = []
    about: set[int] = set()
    accounts: set[int] = set()
    compounds = False
    sentences = [one for one in _BREAK.split(text) if one]
    brief = len(text) <= LONGEST_REQUEST  # with what was added
    for sentence in sentences:
        tokens, named = known.get(sentence) or tokenise(sentence), dates_in(sentence)
        if tokens.asks_nothing and not search:
            continue
        left_out = _spoken(named)
        forms |= tokens.forms() if tokens.sure else tokens.forms(STOP_WORDS)
        compounds |= tokens.language in COMPOUNDING
        dates |= named
        names |= dict.fromkeys(names_in(sentence, tokens.language, note=False))
        begun = len(topics)
        account = brief and _ACCOUNT.search(fold(sentence)) is not None
        cut = brief and (len(sentences) < TALKATIVE or sentence.rstrip("\"')”’").endswith(("?", "？", "؟")))
        for part in _parts(sentence, tokens) if cut else [tokens]:
            words = part.terms
            if search and not words:
                words = Tokens(part.runs, "english").terms  # "go" alone looks Polish
            found = dict.fromkeys(term for term in words if term not in left_out)
            asked |= found
            asks = part.asks and POINTING.isdisjoint(part.runs)
            if topics and all(map(is_common, found)) and not (named or (brief and asks and found)):
                topics[-1] |= found.keys()  # "Have I heard them live?" goes on about what was named before
                continue
            if asks:
                about.add(len(topics))
            if account:
                accounts.add(len(topics))
            topics.append(set(found))
        for topic in topics[begun:] if named else ():
            topic |= named
        if named and begun == len(topics):
            topics.append(set(named))
    if not asked and not dates:
        # The names of its signs: who sends nothing but a sailing boat means one.
        signs = [sign for sign in text if unicodedata.category(sign) == "So"]
        named_so = [term for sign in signs for term in terms_in(unicodedata.name(sign, ""), "english")]
        asked = dict.fromkeys(named_so)
        topics = [set(asked)]
    kept = tuple(asked)
    if len(asked) > MOST_TERMS:  # those that are common in any talk go first; the sort is stable
        rarer = set(sorted(asked, key=is_common)[:MOST_TERMS])
        kept = tuple(term for term in asked if term in rarer)
    forms = {term: forms[term] for term in kept if term in forms}
    unique: dict[frozenset[str], Topic] = {}
    for place, terms_here in enumerate(topics):
        if terms_here:
            key = frozenset(terms_here)
            known_as = unique.get(key, Topic(key))
            unique[key] = Topic(key, known_as.asks or place in about, known_as.account or place in accounts)
    return Query(
        kept,
        frozenset(dates),
        forms,
        (*kept, *chain.from_iterable(forms.values()), *sorted(dates)),
        tuple(names),
        everything,
        tuple(unique.values()),
        len(sentences) == 1 and _is_bare(known.get(sentences[0]) or tokenise(sentences[0])),
        compounds,
    )


def in_context(message: str, recent: str) -> str:
    """The message, with the talk before it where it says next to nothing: the text to embed."""
    says_something = _says_something(terms(message[:LONGEST_REQUEST]))
    return message if says_something else f"{message}\n{recent}"


def _is_bare(tokens: Tokens) -> bool:
    """Whether there are no function words."""
    return (STOP_WORDS[tokens.language] | STOP_WORDS["english"]).isdisjoint(tokens.runs)


def _parts(sentence: str, tokens: Tokens) -> list[Tokens]:
    """A sentence cut where another topic begins: "my dog and my employer", "cello, novel".

    Behind "and" it begins with a function word of its own, and a comma stands between topics only in a list
    without any: "red and green apples" and "the taxi is at number 3, which door?" are one topic each.
    """
    listed = _COMMA.split(sentence)
    if len(listed) == 1 and _AND.search(sentence) is None:
        return [tokens] if tokens.runs else []
    stop = STOP_WORDS[tokens.language] | STOP_WORDS["english"]
    bare = _is_bare(tokens)
    short = [len(tokenise(one).runs) <= LONGEST_LISTED for one in listed]
    if not bare and len(listed) > 2 and all(short[1:]):  # "tell me about my back, the publisher, the cat"
        listed = [one for part in listed for one in _AND.split(f" {part}")]
    elif not bare:
        listed = [one for part in _asked_apart(listed) for one in _AND.split(part)]
    else:
        listed = [one for part in listed for one in _AND.split(part)]
    found: list[Tokens] = []
    for part in listed:
        runs = tokenise(part).runs
        new = Tokens(runs, tokens.language)
        begins = bare or (runs and runs[0] in stop and POINTING.isdisjoint(runs))
        if found and not (begins and new.terms and found[-1].terms):
            found[-1] = Tokens([*found[-1].runs, *runs], tokens.language)
        elif runs:
            found.append(new)
    return found


def _asked_apart(listed: Sequence[str]) -> list[str]:
    """The parts between commas, each with those behind it unless both it and the next begin as a question."""
    found = [listed[0]]
    for part in listed[1:]:
        before, runs = tokenise(found[-1]).runs[:1], tokenise(part).runs[:1]
        if before and runs and ASKING.issuperset((*before, *runs)):
            found.append(part)
        else:
            found[-1] = f"{found[-1]}, {part}"
    return found


def _says_something(found: Sequence[str]) -> bool:
    return len(set(found)) > 1


def _spoken(dates: Collection[str]) -> set[str]:
    """The terms by which dates were named: as words they would meet any other "8" or "August"."""
    if not dates:
        return set()
    parts = {int(part) for date in dates for part in date[2:].split("-")}
    numbers = {f"{part:02}" for part in parts} | {f"{part}{end}" for part in parts for end in ("", *_ENDS)}
    months = {term for name, month in MONTHS.items() if month in parts for term in terms(name)}
    return numbers | months
