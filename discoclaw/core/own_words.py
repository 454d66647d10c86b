"""A message's own words, those of its author, and whether a model's quotation is copied from them.

A model may learn only what a person said, and proves it by a quotation. Not their own are lines quoted with
">", what a message shows besides its text (a forward, an embed, a poll, files: `added` puts it behind), code
blocks, and passages of three words or more in quotation marks or backticks. Whatever looks like one of these
counts as one: it is safer not to learn. The words of a link or of a mentioned name (`as_mention`) are
nobody's, and may stand among others.
Pure. Knows nothing about models.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence

import regex

from discoclaw.core.text import visible

FEWEST_WORDS = 3
"""Fewest words of a quotation, unless it is a whole sentence, such as "yes please"."""
FEWEST_LETTERS = 4
"""Fewest letters of a quotation in a script that doesn't separate words."""

Span = tuple[int, int]

_KINDS = ("forwarded", "attached", "embed", "components", "poll", "sticker", "Discord says")
_ADDED = re.compile(rf"^[^\S\n]*\((?:{'|'.join(_KINDS)}):", re.MULTILINE)
# A block ends with the marks it began with, so that what merely looks like its end stays inside. As Discord
# shows it, it doesn't end before there is anything in it.
_BLOCK = re.compile(
    r"""
      ^[^\S\n]*(?P<fence>`{3,}+)[^\n]*(?:\s*^[^\S\n]*(?P=fence))?.*?(?:^[^\S\n]*(?P=fence)|\Z)
    | ^[^\S\n]*~{3,}+[^\n]*\n.*?^[^\S\n]*~{3,}+        # where this is a fence; Discord knows none
    | ```\s*(?:```)?.*?(?:```|\Z)
    | ^[^\S\n]*>>>[ ].*\Z                              # quoted up to the end
    | ^(?:[^\S\n]|[-*][^\S\n]|\|\|)*>(?!_<)[^\n]*      # also in a list or behind a spoiler
    """,
    re.VERBOSE | re.MULTILINE | re.DOTALL,
)
# Every way in which marks can be read counts. Signs that open and close are paired from the left, which one
# for inches would shift, and by what is beside them. Marks that close elsewhere open only a word.
_SAME = (re.compile(r'"[^"\n]+"'), re.compile(r"`[^`\n]+`"))
_PAIRS = tuple(
    (re.compile(opening), re.compile(closing))
    for opening, closing in [
        (r'(?<!\w)"(?=\S)', r'(?<=\S)"(?!\w)'),
        ("“", '[”"]'),
        (r"”(?=\w)", "”"),
        ("„", '[“”"]'),
        ("‚", "[‘’]"),
        ("«", "»"),
        (r"»(?=\w)", "«"),
        ("‹", "›"),
        (r"›(?=\w)", "‹"),
        ("「", "」"),
        ("『", "』"),
    ]
)
# The closing one is also an apostrophe, so a pair must be on one line.
_SINGLE = (
    re.compile(r"(?<!\w)['‘](?=\S)(?!(?:\d\ds|bout|cause|em|n|round|til|tis|twas)\b)"),
    re.compile(r"(?<=\S)['’](?!\w)"),
)
# Signs inside a word that are typed for an apostrophe, or in Hebrew for an abbreviation.
_TICK = re.compile(r"(?<=[^\W\d_])[`´](?=[^\W\d_])")
_GERSHAYIM = re.compile(r'(?<=[\u05d0-\u05ea])"(?=[\u05d0-\u05ea])')
_UNDERLINE = re.compile(r"(?<![^\W_])_+|_+(?![^\W_])")
_NO_BREAK = "\u00a0"
_MENTION = re.compile(rf"[@#][^\s]+(?:{_NO_BREAK}[^\s]+)+")
_LINK = re.compile(r"\b(?:https?://|www\.)[^\s<>]+", re.IGNORECASE)
_SENTENCE_END = re.compile(r"[!?;؟。…\n]+|\.+(?=\s|\Z)")
_APOSTROPHE = re.compile(r"(?<=\w)['’ʼ](?=\w)")
# Vowel signs are marks and no letters: without them a Hindi word would be several.
_WORD = regex.compile(r"[\w\p{M}]+")
_UNSPACED = re.compile(
    r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
)


def own_words(text: str) -> tuple[str, ...]:
    """The passages of a message that are its author's own words, in order and in their plain form."""
    plain = _plain(text)
    passages, begin = [], 0
    for start, end in [*_of_others(plain), (len(plain), len(plain))]:
        passages.append(plain[begin : max(begin, start)])
        begin = max(begin, end)
    return tuple(passage for passage in passages if _WORD.search(passage))


def holds_others(text: str) -> bool:
    """Whether anything in a message is not its author's own words."""
    return bool(_of_others(_plain(text)))


def added(kind: str, text: str) -> str:
    """A text that a message shows besides its author's words, one of `_KINDS`, as it stands behind these.

    Its other lines are indented, so that none looks like the author's, or like something else that is shown.
    """
    assert kind in _KINDS
    return f"({kind}: " + "\n  ".join(text.splitlines()) + ")"


def split_added(text: str) -> tuple[str, str]:
    """A message's own words, and all that is `added` behind them."""
    begins = _ADDED.search(text)
    at = begins.start() if begins else len(text)
    return text[:at], text[at:]


def as_mention(name: str) -> str:
    """A mentioned name, such as "@Ann", as it stands in a message: one that says something is one word.

    Whoever mentions somebody called "I hate all cats" does not say so.
    """
    return name if len(name.split()) < FEWEST_WORDS else _NO_BREAK.join(name.split())


def is_quoted(quote: str, passages: Sequence[str]) -> bool:
    """Whether a quotation is copied from one of the passages, and long enough to mean just that.

    Case, punctuation, width, white space and what cannot be seen do not count.
    """
    wanted = words_in(quote)
    if _enough(wanted):
        return any(within(wanted, words_in(passage)) for passage in passages)
    sentences = (sentence for passage in passages for sentence in _SENTENCE_END.split(passage))
    return bool(wanted) and any(wanted == words_in(sentence) for sentence in sentences)


def _of_others(text: str) -> list[Span]:
    """The parts of a text in its plain form that are not its author's words, sorted; they may overlap."""
    own, added = split_added(text)
    blocks = [match.span() for match in _BLOCK.finditer(own)]
    for start, end in blocks:
        own = f"{own[:start]}{' ' * (end - start)}{own[end:]}"
    marked = [(start, end) for start, end in _marked(own) if _enough(words_in(own[start:end]))]
    behind = [(len(own), len(text))] if added else []
    return sorted([*blocks, *marked, *behind])


def _marked(text: str) -> Iterator[Span]:
    """The passages in quotation marks or backticks, by every way in which these can be read."""
    for same in _SAME:
        yield from (match.span() for match in same.finditer(text))
    for opening, closing in _PAIRS:
        yield from _pairs(text, opening, closing)
    begin = 0
    for line in text.split("\n"):
        for start, end in _pairs(line, *_SINGLE):
            yield begin + start, begin + end
        begin += len(line) + 1


def _pairs(text: str, opening: re.Pattern[str], closing: re.Pattern[str]) -> Iterator[Span]:
    """Each opening mark with the next closing one, from the left."""
    ends, index, begin = [match.end() for match in closing.finditer(text)], 0, 0
    for start in (match.start() for match in opening.finditer(text)):
        while index < len(ends) and ends[index] <= start + 1:
            index += 1
        if start >= begin and index < len(ends):
            begin = ends[index]
            yield start, begin


def _plain(text: str) -> str:
    """A text in one width, with the line ends that a reader sees, without links, long names and blanks."""
    typed = _GERSHAYIM.sub("\u05f4", _TICK.sub("'", text))
    wide = _MENTION.sub(" ", visible(typed))
    return "\n".join(_LINK.sub(" ", unicodedata.normalize("NFKC", wide)).splitlines())


def words_in(text: str) -> list[str]:
    """The words of a text in their plain form: without case, width, marks and links."""
    folded = _UNDERLINE.sub(" ", _plain(text).casefold())
    return _WORD.findall(_APOSTROPHE.sub("", unicodedata.normalize("NFKC", folded)))


def _enough(words: Sequence[str]) -> bool:
    if len(words) >= FEWEST_WORDS:
        return True
    unspaced = _UNSPACED.findall("".join(words))
    return sum(unicodedata.category(char)[0] != "M" for char in unspaced) >= FEWEST_LETTERS


def within(wanted: Sequence[str], words: Sequence[str]) -> bool:
    """Whether these words stand in others, in this order and with nothing between them."""
    if _UNSPACED.search("".join(wanted)):
        return "".join(wanted) in "".join(words)
    return f" {' '.join(wanted)} " in f" {' '.join(words)} "
