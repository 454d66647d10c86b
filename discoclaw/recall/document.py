"""The searchable form of an item or an entry: its terms, counted, and what names the whole.

Tags and keys are names for the whole item, and a speaker's name is one for the whole message, so they do not
add to a text's length. What is written as a name in an item's text is one of its names too. The date of an
item or entry is kept beside the dates that its text names. Pure.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TypeAlias

from discoclaw.core.entry import Entry
from discoclaw.core.item import KINDS, Item
from discoclaw.core.values import dataclass
from discoclaw.core.words import Tokens, terms, terms_in, tokenise
from discoclaw.recall.dates import date_terms, dates_in
from discoclaw.recall.names import LONGEST_NAME, as_token, names_in

Names: TypeAlias = tuple[frozenset[str], ...]
_KINDS = {kind: terms(kind) for kind in KINDS}
_SEPARATORS = str.maketrans("-_:", "   ")


@dataclass(frozen=True, slots=True)
class Document:
    """`bag` counts the terms of the text, `length` is their number (at least 1).

    `marks` are terms that name the whole: aliases and keys of one word, kind, speaker. `parts` are terms of
    longer aliases and keys. `given` are aliases and keys, each as its terms, `written` the names in the text.
    `dates` are the date terms of when it was said, `when` the same in ms.
    """

    id: str
    bag: Mapping[str, int]
    length: int
    marks: frozenset[str]
    dates: frozenset[str]
    when: int
    parts: frozenset[str] = frozenset()
    given: tuple[frozenset[str], ...] = ()
    written: tuple[frozenset[str], ...] = ()


def of_item(item: Item) -> Document:
    """An item as a document."""
    tokens = tokenise(item.text)
    names = [*item.tags, *([item.facets.key.translate(_SEPARATORS)] if item.facets.key is not None else ())]
    given = [frozenset(terms(name) or terms_in(name, "english")) for name in names]
    marks = {term for name in given if len(name) == 1 for term in name}
    if item.kind != "fact":  # "in fact" does not ask about all facts
        marks.update(_KINDS[item.kind])
    parts = {term for name in given if len(name) > 1 for term in name} - marks
    aliases = tuple(dict.fromkeys(name for name in given if 0 < len(name) <= LONGEST_NAME))
    written = dict.fromkeys(names_in(item.text, tokens.language, note=True))
    both = aliases, tuple(name for name in written if len(name) <= LONGEST_NAME and name not in aliases)
    return _document(item.id, item.text, tokens, marks, item.updated_at, parts, both)


def of_entry(entry: Entry) -> Document:
    """A message as a document."""
    return _document(entry.id, entry.text, tokenise(entry.text), terms(entry.name), entry.sent_at)


def indexed(document: Document) -> list[str]:
    """The tokens that a full-text index keeps of a document."""
    tokens = [term for term, count in document.bag.items() for _ in range(count)]
    names = (document.marks | document.parts) - document.bag.keys()
    return [
        *tokens,
        *sorted(names),
        *sorted(document.dates),
        *map(as_token, (*document.given, *document.written)),
    ]


def _document(
    identity: str,
    text: str,
    tokens: Tokens,
    marks: Iterable[str],
    when: int,
    parts: Iterable[str] = (),
    names: tuple[Names, Names] = ((), ()),
) -> Document:
    bag = Counter(tokens.terms)
    length = max(1, bag.total())
    bag.update(sorted(dates_in(text)))  # in the order in which an index on disk has them at the next start
    return Document(
        identity,
        dict(bag),
        length,
        frozenset(marks),
        date_terms(when),
        when,
        frozenset(parts),
        *names,
    )
