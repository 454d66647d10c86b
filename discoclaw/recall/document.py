"""The searchable form of an item or an entry: its terms, counted, and the marks that name the whole.

Tags and keys are names for the whole item, and a speaker's name is one for the whole message, so they do not
add to a text's length. The date of an item or entry is kept beside the dates that its text names. Pure.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from discoclaw.core.entry import Entry
from discoclaw.core.item import Item
from discoclaw.core.words import terms
from discoclaw.recall.dates import date_terms, dates_in


@dataclass(frozen=True, slots=True)
class Document:
    """`bag` counts the terms of the text, `length` is their number (at least 1).

    `marks` are terms that name the whole: aliases, key, kind, speaker. `dates` are the date terms of when it
    was said, `when` the same in ms.
    """

    id: str
    bag: Mapping[str, int]
    length: int
    marks: frozenset[str]
    dates: frozenset[str]
    when: int


def of_item(item: Item) -> Document:
    """An item as a document."""
    names = [term for tag in item.tags for term in terms(tag)]
    if item.facets.key is not None:
        names += terms(item.facets.key.replace("-", " ").replace("_", " ").replace(":", " "))
    if item.kind != "fact":  # "in fact" does not ask about all facts
        names += terms(item.kind)
    return _document(item.id, item.text, names, item.updated_at)


def of_entry(entry: Entry) -> Document:
    """A message as a document."""
    return _document(entry.id, entry.text, terms(entry.name), entry.sent_at)


def indexed(document: Document) -> list[str]:
    """The tokens that a full-text index keeps of a document."""
    tokens = [term for term, count in document.bag.items() for _ in range(count)]
    return tokens + sorted(document.marks - document.bag.keys()) + sorted(document.dates)


def _document(identity: str, text: str, names: list[str], when: int) -> Document:
    bag = Counter(terms(text))
    length = max(1, bag.total())
    bag.update(dates_in(text))
    return Document(identity, dict(bag), length, frozenset(names), date_terms(when), when)
