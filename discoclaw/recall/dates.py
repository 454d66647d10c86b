"""Dates as terms: "8 May 2023", "2023-05-08" and "May 2023" meet each other, and a time in milliseconds.

A date becomes up to four terms: its year, its month of that year, its day, and the month of any year
("d:2023", "d:2023-05", "d:2023-05-08", "d:05"). Months are known by their names in the languages of
`core/languages`. Pure.
"""

import re
from functools import lru_cache

from discoclaw.core.languages import MONTHS
from discoclaw.core.times import date_of, valid_ms
from discoclaw.core.words import fold

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
    """The date terms of a time in ms (UTC); none for a time that is no date."""
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
