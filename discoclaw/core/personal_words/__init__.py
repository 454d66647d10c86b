"""Words that show that a text is about something personal, in 21 languages, for `core/matters`. Data only.

Every language has the same matters. Those of `OPENLY` count wherever something was said, the others only for
what was said in private. "loosely" has words that are often about something personal (a bank, a city, a
trip), but too often about something else.

    word     this word                      word-    words that begin like this
    -word    words that end like this       -word-   words that contain this
    a_phrase these words in this order
    word?    not beside a technical word, in the open ("child process")

Case and accents don't matter. A text may mix languages, and is often too short to tell which one it is in. So
every word counts in every text, and has to be safe in all of them: German "Kind" is an English word, so only
"mein Kind" is listed.
"""

from discoclaw.core.personal_words import latin, scripts, technical, west

OPENLY = ("health", "family", "religion", "money", "whereabouts")
SPACED: dict[str, dict[str, str]] = {**west.LATIN, **latin.LATIN, **scripts.ALPHABETS}
UNSPACED: dict[str, dict[str, str]] = scripts.UNSPACED
"""Languages written without spaces: a word counts wherever it stands, and has no marks. `_` is a space."""

TECHNICAL: frozenset[str] = frozenset(technical.TECHNICAL.split())
JOINING: frozenset[str] = frozenset(technical.JOINING.split())
