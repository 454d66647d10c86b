"""Which items somebody means by the words they typed: one way for commands, buttons, tools and the terminal.

    find(items, "everything about my old flat") -> Found(certain, meant, near, whole)

An item that is named by its id, its key or its text needs no question. For all others, in this order:

- an identifier (a phone number, a mail address, `report_v2`), however it is written, and then nothing else
- all the words, in any form, also as everyday synonyms, or as kind, key and tags
- most of the words by what they weigh; a word that everybody uses weighs little
- words that begin so, and similar spellings

What is found here is only asked about, so it may be wrong; `core/matching` has the rule for acting at once.
Pure.
"""

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches

from discoclaw.core.item import Item, by_newest
from discoclaw.core.languages import DIGITS, EVERYTHING, EVERYTHING_UNSPACED, LISTING, NEGATIONS, SAYING
from discoclaw.core.matching import find_one, spaced, without_user
from discoclaw.core.query import Query
from discoclaw.core.text import collapse
from discoclaw.core.words import STOP_WORDS, fold, terms, tokenise
from discoclaw.recall.document import COMPOUNDING, Document, of_item, parse
from discoclaw.recall.index import Index
from discoclaw.recall.terms import asked_of

# ----------------------------------------------------------------------
# Identifiers in what somebody typed, and the items that have them, however they are written.
#
# A number is the same with and without separators, case and country code ("0170 / 12-34 567"), and with its
# digits spelled out. A mail address is the same as "name at x dot org". A name with a sign inside it, such
# as `report_v2` or `notes/plan`, isn't part of a longer one. With characters masked ("na**@x.org") it only
# may be.


FEWEST_DIGITS = 3
_SHORTEST = 4
"""Characters of a number, without separators."""

_BETWEEN = r"[\s().,/:_-]{0,3}"
_MAIL = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
_KINDS = (
    (("mail", "email", "address"), _MAIL),
    (
        ("phone", "telephon", "mobil", "number"),
        re.compile(r"(?<![\w.])\+?\(?\d(?:[\s()/-]?\d){6,14}(?![\w-])"),
    ),
    (("iban", "bank", "account"), re.compile(r"\b[A-Z]{2}\d{2}(?: ?[A-Z\d]{4}){3,7}")),
)
_WRITTEN_OUT = re.compile(
    r"([\w.+-]+)\s*[\[({]?\s*(?:@|\bat\b)\s*[\])}]?\s*([\w-]+(?:\s*[\[({]?\s*(?:\.|\bdot\b|\bpunkt\b)\s*[\])}]?\s*[\w-]+)+)"
)
_DOT = re.compile(r"\s*[\[({]?\s*(?:\bdot\b|\bpunkt\b|\.)\s*[\])}]?\s*")
_SIGNED = re.compile(r"[^\W_]+(?:[-./@:_#+]+[^\W_]+)+")
_MASKED = re.compile(r"[\w.@+-]*[*•]{2,}[\w.@+*•-]*")
_TOKEN = re.compile(r"[^\W_]+")
_YEAR = re.compile(r"(?:19|20)\d\d(?:(?:19|20)?\d\d)?")
_GAP = re.compile(r"[\s().,/:+_-]{1,3}")


@dataclass(frozen=True, slots=True)
class Known:
    """`exact` have all identifiers, `near` may mean one of them: it is masked, or written alike.

    `others` are the ids of items that only have longer ones. `unknown`: no item has what was named.
    """

    exact: tuple[Item, ...] = ()
    near: tuple[Item, ...] = ()
    others: frozenset[str] = frozenset()
    unknown: bool = False


def identified(typed: str, items: Collection[Item]) -> Known:
    """The items that have the identifiers of a request."""
    plain = _plain(typed)
    masked = [re.sub(r"(?:\\\*|•)+", r"[\\w.+-]+", re.escape(one)) for one in _MASKED.findall(plain)]
    masks = [re.compile(rf"(?<!\w){one}(?!\w)") for one in masked]
    signed = [found[0] for found in _SIGNED.finditer(plain)]
    # Those with a digit and no letter are numbers.
    signed = [one for one in signed if any(char.isalpha() for char in one) and not _numbers(one)]
    names = dict.fromkeys([*_MAIL.findall(plain), *signed])
    forms = [re.compile(_written(one)) for one in _numbers(plain)]
    if not (masks or names or forms):
        return Known()
    texts = {item.id: _plain(f"{item.text} {item.facets.key or ''} {' '.join(item.tags)}") for item in items}
    if masks:
        near = tuple(item for item in items if any(mask.search(texts[item.id]) for mask in masks))
        return Known(near=near, unknown=True)
    whole = {
        key: {
            *_MAIL.findall(text),
            *(one.rstrip(".") for one in _SIGNED.findall(text)),
            *_TOKEN.findall(text),
        }
        for key, text in texts.items()
    }
    has = {
        key: [name in whole[key] for name in names] + [bool(form.search(text)) for form in forms]
        for key, text in texts.items()
    }
    exact = tuple(item for item in items if all(has[item.id]))
    longer = {key for key, text in texts.items() if not any(has[key]) and any(one in text for one in names)}
    alike = tuple(
        item
        for item in items
        if names and not exact and any(get_close_matches(one, whole[item.id], 1, 0.8) for one in names)
    )
    return Known(exact, alike, frozenset(longer), unknown=bool(names) and not exact)


def kinds(text: str) -> frozenset[str]:
    """The words by which people ask for the identifiers of a text: "my phone number", "my mail address"."""
    return frozenset(word for words, form in _KINDS if form.search(text) for word in words)


def _plain(text: str) -> str:
    """A text folded, with mail addresses and digits as they are usually written."""
    folded = fold(text)
    if "at" in folded or "@" in folded:
        folded = _WRITTEN_OUT.sub(lambda found: f"{found[1]}@{_DOT.sub('.', found[2])}", folded)
    words = folded.split()
    if sum(word.strip(".,") in DIGITS for word in words) >= FEWEST_DIGITS:
        folded = " ".join(DIGITS.get(word.strip(".,"), word) for word in words)
    return folded


def _numbers(plain: str) -> list[str]:
    """The numbers of a text without their separators: neighbouring groups with digits, or between such."""
    found: list[list[str]] = []
    group: list[str] = []
    end = 0
    tokens = list(_TOKEN.finditer(plain))
    for token in tokens:
        if group and _GAP.fullmatch(plain, end, token.start()) is None:
            found.append(group)
            group = []
        word = token[0]
        if any(char.isdigit() for char in word) or (group and len(word) == 4):  # a bank's letters in an IBAN
            group.append(word)
        elif group:
            found.append(group)
            group = []
        end = token.end()
    found.append(group)
    joined = ("".join(one) for one in found)
    return [
        one
        for one in joined
        if len(one) >= _SHORTEST and sum(map(str.isdigit, one)) >= FEWEST_DIGITS and not _YEAR.fullmatch(one)
    ]


def _written(number: str) -> str:
    """A pattern for a number with any separators, and not within a longer one."""
    forms = [number]
    if number.isdigit() and len(number) > 8:
        national = number.removeprefix("00") if number.startswith("00") else number.removeprefix("0")
        forms += [national, f"0{number[2:]}", f"0{national}"]
    bodies = (_BETWEEN.join(map(re.escape, form)) for form in dict.fromkeys(forms))
    ahead = r"(?:\+?\d{1,3}[\s-]?(?:\(0\))?)?" if number.isdigit() and len(number) > 8 else ""
    return rf"(?<![^\W_]){ahead}(?:{'|'.join(bodies)})(?![^\W_])(?![\s-]\d{{2}})"


# ----------------------------------------------------------------------
# What is meant.


MOSTLY, PARTLY = 0.45, 0.35
"""The share of what was typed, by weight, that an item has to have to be meant, and to be near."""
ALL_OF_IT = 0.75
"""The share of what the best has that others need, where everything about something is asked for."""
MOST_NEAR = 9

# "pot A", "gate 7": signs that aren't terms, and that tell two sentences with the same words apart.
_CAPITAL = re.compile(r"\b[^\W\d_a-z]\w+")
_BUT = re.compile(
    r"\b(?:except|apart from|but not|not (?:the|my|that)|außer|aber nicht|sauf|excepto|tranne|behalve)\b",
    re.IGNORECASE,
)
_CLAUSE = re.compile(r"(?:that |the fact that |dass |que |che |dat )", re.IGNORECASE)
_OWN = re.compile(
    r"\b(?:my|mine|i|i'm|mein\w*|ich|mon|ma|mes|je|mi|mis|yo|meu|minha|mio|mia|io|mijn|ik)\b", re.IGNORECASE
)
_SAYS_I = re.compile(r"(?:that |the fact that |where )?i(?:['’]?m)?\b", re.IGNORECASE)
_ABOUT_USER = re.compile(r"(?:the )?(?:user|i)\s", re.IGNORECASE)
# "User's neighbour's dog": whose, and whether it is somebody else's.
_OF_USER = re.compile(r"(?:the )?user['’]s\s+([\w-]+)(['’]s)?", re.IGNORECASE)
_PERSON = frozenset(
    terms(
        """
        mother mum father dad parents sister brother wife husband partner son daughter child friend
        neighbour neighbor landlord landlady boss colleague roommate flatmate housemate aunt uncle cousin
        grandmother gran grandfather girlfriend boyfriend ex tenant stepdad stepmum
        """
    )
)
_LIGHT = frozenset(terms("anymore longer pls please true thing project fact preference person ok okay"))
_SIGN = re.compile(r"(?<=\s)(?:[B-HJ-Z]|A(?=\W*$)|\d+)\b")


@dataclass(frozen=True, slots=True)
class Found:
    """The items that somebody may mean.

    `certain` is named so exactly that nobody has to be asked. `meant` is likely, `near` was considered, each
    best first, then newest. `whole`: everything about something was asked for.
    """

    certain: Item | None = None
    meant: tuple[Item, ...] = ()
    near: tuple[Item, ...] = ()
    whole: bool = False


def holds(text: str, typed: str) -> bool:
    """Whether every word that was typed is part of a text, in any order, case and accent."""
    folded = fold(text)
    return all(word in folded for word in fold(typed).split())


def has_all(item: Item, typed: str) -> bool:
    """Whether an item has all the words of what a request is about, in some form."""
    asked = set(terms(about(typed)[0]))
    document = _document(item)
    return bool(asked) and asked <= document.terms | document.marks


def find(items: Collection[Item], typed: str) -> Found:
    """Find what is meant among active items, and by its id among others."""
    if (exact := named(items, typed)) is not None:
        return Found(exact)
    if len(parts := [part for part in typed.split(";") if part.strip()]) > 1:
        # Several requests in one: "my ex; my old flat".
        each = [find(items, part) for part in parts]
        meant = {item.id: item for one in each for item in ([one.certain] if one.certain else one.meant)}
        besides = {item.id: item for one in each for item in one.near if item.id not in meant}
        near_all = tuple(besides.values())[:MOST_NEAR]
        return Found(None, tuple(meant.values()), near_all, any(one.whole for one in each))
    active = sorted((item for item in items if item.active), key=by_newest)
    topic, whole = about(typed)
    if not tokenise(topic).runs:
        return Found(meant=tuple(active) if whole else (), whole=whole)
    likely = [] if whole else [item for item in find_one(active, typed) if _as_words(item.text, typed)]
    known = identified(topic, active)
    rest = [item for item in active if item.id not in known.others]
    near: list[Item] = []
    likely = likely or list(known.exact)
    if not likely and known.near:
        near = list(known.near)
    elif not likely:
        likely, near = _by_words(topic, rest, whole=whole)
        if known.unknown:  # "slides_v3" is not meant by "slides"
            likely, near = [], [*likely, *near]
    ids = {item.id for item in likely}
    also = {item.id: item for item in near if item.id not in ids}
    return Found(None, tuple(likely), tuple(also.values())[:MOST_NEAR], whole)


def named(items: Collection[Item], typed: str) -> Item | None:
    """The one item that was named by its id, key or text, or by most of its text in whole words."""
    found = find_one(items, typed)
    if len(found) != 1:
        return None
    text = found[0].text
    by_text = fold(collapse(typed)) in fold(text)
    return found[0] if not by_text or _as_words(text, typed) else None


def about(typed: str) -> tuple[str, bool]:
    """The topic of a request, and whether it asks for everything: "all I said about Rome" is about Rome."""
    folded = fold(typed)
    whole = any(part in folded for part in EVERYTHING_UNSPACED)
    if whole:
        for part in EVERYTHING_UNSPACED:
            folded = folded.replace(part, " ")
        return folded.strip(), True
    words = typed.split()
    plain = [fold(word).strip(".,:;!?…\"'“”()").replace("’", "'") for word in words]
    stop = STOP_WORDS[tokenise(typed).language] | STOP_WORDS["english"]
    begin = next((one for one in plain if one in EVERYTHING or one in LISTING or one not in stop), "")
    whole = begin in EVERYTHING or begin in LISTING
    if not whole and begin not in SAYING:
        return typed, False
    left_out = (EVERYTHING | LISTING | SAYING) if whole else SAYING
    kept = [word for word, one in zip(words, plain, strict=True) if one not in left_out]
    if any(tokenise(word).runs and not set(tokenise(word).runs) <= stop for word in kept):
        return " ".join(kept), whole
    return ("", True) if begin in EVERYTHING else (typed, False)  # "my information" alone


def _by_words(typed: str, items: Sequence[Item], *, whole: bool) -> tuple[list[Item], list[Item]]:
    """The items that have all the words, or else most of them; and those that have some."""
    asked, *but = _BUT.split(typed, maxsplit=1)
    if not tokenise(asked).runs:
        asked, but = typed, []
    documents = {item.id: _document(item) for item in items}
    index = Index.of(documents.values())
    query = _named_in(asked)
    wanted = asked_of(query, index, index.vocabulary, naming=True)
    if not wanted.concepts:
        return [item for item in items if not asked.isascii() and holds(item.text, asked)], []
    shares = dict(zip(documents, index.shares(wanted, partly=not whole), strict=True))
    some = sorted((item for item in items if shares[item.id] >= PARTLY), key=lambda one: -shares[one.id])
    best = shares[some[0].id] if some else 0.0
    least = max(MOSTLY, best * (ALL_OF_IT if whole else 1))
    likely = [item for item in some if shares[item.id] >= least]
    others = [item for item in items if shares[item.id] < PARTLY]
    begun = _begun(others, asked) if whole or not likely else []  # "tea" is found, so a team is not meant
    if not some or (whole and tokenise(asked).language in COMPOUNDING):
        likely, begun = [*likely, *begun], []
    unwanted = [asked_of(_named_in(part), index, naming=True).terms - wanted.terms for part in but]
    known = {item.id: documents[item.id].terms | documents[item.id].marks for item in items}
    likely = [one for one in likely if all(part.isdisjoint(known[one.id]) for part in unwanted)]
    likely = _told_apart(asked, likely, wanted.terms, whole=whole)
    if not whole:
        return likely, [*some, *begun]
    names = {name for item in likely[:MOST_NEAR] for name in of_item(item).written}
    linked = [item for item in others if any(name <= known[item.id] for name in names)]
    return likely, [*some, *begun, *linked]


def _named_in(typed: str) -> Query:
    """What somebody names; "3 May" is not met by another day of May: only the narrowest dates count."""
    query = parse(typed, search=True)
    narrowest = max(map(len, query.dates), default=0)
    return replace(
        query,
        terms=tuple(term for term in query.terms if term not in _LIGHT) or query.terms,
        dates=frozenset(one for one in query.dates if len(one) == narrowest),
    )


def _document(item: Item) -> Document:
    """An item as a document, which also has the words by which people ask for its identifiers."""
    document = of_item(item)
    return replace(document, marks=document.marks | kinds(item.text))


# ---------------------------------------------------------------------- telling likely ones apart


def _told_apart(typed: str, items: list[Item], wanted: frozenset[str], *, whole: bool) -> list[Item]:
    """Those items that fit best, among items with the same words, in what these don't tell.

    Each test counts only if any item passes it, but for what is denied.
    """
    stop = STOP_WORDS["english"]
    signs = set(map(str.casefold, _SIGN.findall(f" {typed}")))
    capital = _CAPITAL.findall(typed)
    written = {word for word in capital if fold(word) not in stop or not typed.startswith(word)}
    order = [] if whole else terms(typed)
    own = _OWN.search(typed) or not (whole or written)
    tests: list[tuple[object, Callable[[str], bool]]] = [
        (signs, lambda text: signs <= set(spaced(text).split())),  # "pot A"
        (written, lambda text: written <= set(_CAPITAL.findall(text))),  # "Mark", and no marks
        (typed, lambda text: not _within_names(text, typed)),  # "report", and not "report_v2"
        (order, lambda text: _in_order(order, terms(text))),  # "tea before coffee"
        (own, lambda text: _is_own(text, wanted)),  # "my dog", and not the neighbour's
        (_CLAUSE.match(typed), lambda text: wanted >= {*terms(without_user(text))}),  # "that I'm single"
        (_SAYS_I.match(typed), lambda text: _ABOUT_USER.match(text) is not None),  # "that I'm into chess"
    ]
    if _CLAUSE.match(typed) or _denies(typed):
        denied = _denies(typed.partition(",")[0])
        items = [one for one in items if _denies(one.text) == denied]
    for applies, test in tests:
        if applies:
            items = [one for one in items if test(one.text)] or items
    return items


def _within_names(text: str, typed: str) -> bool:
    """Whether a word that was typed is only a part of a name with signs in it."""
    words = set(spaced(text).split())
    names = [word for word in words if not word.isalpha()]
    asked = [word for word in spaced(typed).split() if word.isalpha() and len(word) > 1]
    return any(word not in words and any(word in name for name in names) for word in asked)


def _in_order(words: Sequence[str], text: Iterable[str]) -> bool:
    there = iter(text)
    return all(word in there for word in words)


def _is_own(text: str, wanted: frozenset[str]) -> bool:
    """Whether a text is about the person, and not about one of theirs who was not asked about."""
    if (found := _OF_USER.match(text)) is None:
        return True
    whose = set(terms(found[1]))
    return not _PERSON & whose or (not found[2] and not wanted.isdisjoint(whose))


def _denies(text: str) -> bool:
    words = fold(text).replace("’", "'").split()
    return any(word.strip(".,!?") in NEGATIONS or word.endswith("n't") for word in words)


def _begun(items: Iterable[Item], typed: str) -> list[Item]:
    """The items in which, for every word that was typed, a word begins so, or has a long one within it."""
    tokens = tokenise(typed)
    wanted = [run for run in tokens.runs if run not in STOP_WORDS[tokens.language] | STOP_WORDS["english"]]

    def has(runs: Sequence[str], one: str) -> bool:
        within = len(one) >= _SHORTEST or not one.isascii()
        return any(run.startswith(one) or (within and one in run) for run in runs)

    return [item for item in items if wanted and all(has(tokenise(item.text).runs, one) for one in wanted)]


def _as_words(text: str, typed: str) -> bool:
    return spaced(typed) in spaced(text)
