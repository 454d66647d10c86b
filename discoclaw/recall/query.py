"""What a question asks for: terms to look up, dates, and nothing of how it is put. Pure."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from discoclaw.core.languages import MONTHS
from discoclaw.core.words import in_english, terms
from discoclaw.recall.dates import dates_in

LONGEST = 6_000
"""Characters of a question that are read, from its begin and its end: the request stands at one of them."""
MOST_TERMS = 48
_ENDS = ("st", "nd", "rd", "th")


@dataclass(frozen=True, slots=True)
class Query:
    """`terms` are those of the text, each once, in order; `dates` the date terms it names.

    `in_english` is what to look for instead of a term that nobody used: short questions do not tell their
    language for sure.
    """

    text: str
    terms: tuple[str, ...]
    dates: frozenset[str]
    in_english: Mapping[str, str] = field(default_factory=dict)

    @property
    def wanted(self) -> tuple[str, ...]:
        """Everything to look up."""
        return (*self.terms, *self.in_english.values(), *sorted(self.dates))


def read(text: str, *, without: Collection[str] = ()) -> Query:
    """A question, or any talk that memory is looked up for. `without` are terms that say nothing here."""
    if len(text) > LONGEST:
        text = f"{text[: LONGEST // 2]}\n{text[-LONGEST // 2 :]}"
    dates = dates_in(text)
    left_out = {*without, *_spoken(dates)}
    found = [term for term in dict.fromkeys(terms(text)) if term not in left_out]
    other = in_english(text)
    asked = tuple(found[:MOST_TERMS])
    return Query(text, asked, dates, {term: other[term] for term in asked if term in other})


def _spoken(dates: Collection[str]) -> set[str]:
    """The terms by which dates were named: as words they would meet any other "8" or "August"."""
    parts = {int(part) for date in dates for part in date[2:].split("-")}
    numbers = {f"{part:02}" for part in parts} | {f"{part}{end}" for part in parts for end in ("", *_ENDS)}
    months = {term for name, month in MONTHS.items() if month in parts for term in terms(name)}
    return numbers | months if dates else set()
