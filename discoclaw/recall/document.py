"""The searchable form of an item or an entry: its terms, counted, and what names the whole.

Tags and keys are names for the whole item, and a speaker's name is one for the whole message, so they do not
add to a text's length. What is written as a name in an item's text is one of its names too. The date of an
item or entry is kept beside the dates that its text names. Pure.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Generic, TypeAlias, TypeVar
from weakref import KeyedRef

from discoclaw.core.entry import Entry
from discoclaw.core.item import KINDS, Item
from discoclaw.core.values import dataclass
from discoclaw.core.words import Tokens, terms, terms_in, tokenise
from discoclaw.recall.dates import date_terms, dates_in
from discoclaw.recall.names import LONGEST_NAME, names_in

T = TypeVar("T")
Names: TypeAlias = tuple[frozenset[str], ...]
_KINDS = {kind: terms(kind) for kind in KINDS}
MOST_KNOWN = 100_000
"""The most documents that are kept, for all people together."""
NO_TERMS = frozenset[str]()
"""One object, because a garbage collection stops everybody for longer the more of them there are."""
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


class Kept(Generic[T]):
    """Values derived from items, each as long as its item is alive: a memory that changes makes new items.

    Of more than `most`, those made first are dropped.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._made: dict[int, tuple[KeyedRef[int, Item], T]] = {}  # by the identity of the item

    def known(self, item: Item) -> T | None:
        """The value derived from an item before, or None. Called far more often than anything else."""
        made = self._made.get(id(item))
        return made[1] if made is not None else None

    def add(self, item: Item, made: T) -> T:
        """Keep what was made of an item, and return it."""
        if len(self._made) >= self._most:
            self._made.pop(next(iter(self._made)), None)
        self._made[id(item)] = KeyedRef(item, self._died, id(item)), made
        return made

    def forget(self) -> None:
        """Drop everything, because somebody's words have to go."""
        self._made.clear()

    def _died(self, item: KeyedRef[int, Item]) -> None:
        self._made.pop(item.key, None)


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
    parts: Iterable[str] = (),
    names: tuple[Names, Names] = ((), ()),
) -> Document:
    bag = Counter(tokens.terms)
    length = max(1, bag.total())
    bag.update(sorted(dates_in(text)))  # so that each process has them in the same order
    return Document(
        identity,
        dict(bag),
        length,
        frozenset(marks) or NO_TERMS,
        date_terms(when),
        when,
        frozenset(parts) or NO_TERMS,
        *names,
    )
