"""A question as memory looks it up: a value that is parsed once and handed to every step that needs it.

`recall/query.py` makes it. Pure.
"""

from collections.abc import Mapping

from discoclaw.core.values import dataclass, field


@dataclass(frozen=True, slots=True)
class Query:
    """A parsed message, or any text that memory is searched for.

    `terms` are those of the text, each once, in order; `dates` the date terms it names. `in_english` maps a
    term to its English form, which is tried if no item contains the term: a short question doesn't tell its
    language for sure. `wanted` are all of these. `names` are what is written as names, each as its terms.
    `everything`: the person asks for all that is remembered about them. `sentences` has the terms and dates
    of each sentence, since words of different sentences don't ask for one thing.
    """

    terms: tuple[str, ...] = ()
    dates: frozenset[str] = frozenset()
    in_english: Mapping[str, str] = field(default_factory=dict)
    wanted: tuple[str, ...] = ()
    names: tuple[frozenset[str], ...] = ()
    everything: bool = False
    sentences: tuple[frozenset[str], ...] = ()
