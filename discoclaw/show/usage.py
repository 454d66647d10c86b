"""Sums of calls of models, in words for people. `usage_picture` draws it."""

import csv
import io
from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta
from decimal import Decimal
from typing import Final

from discoclaw.core.times import iso_ms
from discoclaw.core.usage import DOLLAR, PURPOSES, By, Call, Total, amount
from discoclaw.show.words import count, word

COLUMNS: Final = (
    *("time", "purpose", "model", "dollars", "input_tokens", "output_tokens"),
    *("cache_read_tokens", "cache_write_tokens", "searches", "seconds"),
    *("channel", "server", "counted", "priced"),
)
"""The columns of `as_csv`."""
NOBODY: Final[Mapping[By, str]] = {
    "person": "nobody in particular",
    "channel": "direct messages, and the bot by itself",
    "server": "direct messages, and the bot by itself",
}
"""Names of the groups of calls that have no id."""


def used(total: Total) -> str:
    """A sum of calls in words: `12 calls · 34.5k tokens in, 2.1k out · 3 searches`."""
    if not total.calls:
        return "no calls"
    usage = total.usage
    parts = [count(total.calls, "call")]
    if total.tokens:
        parts.append(f"{amount(usage.prompt_tokens)} tokens in, {amount(usage.output_tokens)} out")
    if usage.searches:
        parts.append(f"{usage.searches} search{'es' if usage.searches != 1 else ''}")
    if usage.seconds:
        parts.append(f"{timedelta(seconds=usage.seconds)} of speech")
    return " · ".join(parts)


def cautions(total: Total) -> Iterator[str]:
    """Sentences about what in a sum isn't exact, and why nothing was charged."""
    if total.calls and not total.nano:
        yield "Nobody charged for this: the offline model answered, or one on this machine or its network."
    if total.estimated:
        calls = count(total.estimated, "call")
        yield f"The tokens of {calls} are an estimate, because a server didn't count them."
    if total.guessed:
        calls = count(total.guessed, "call")
        yield f"The price of {calls} is a guess, because none is set for the model."


def purpose(name: str) -> str:
    """The people's word for a purpose."""
    return PURPOSES.get(name, name)


def as_csv(calls: Iterable[Call]) -> bytes:
    """Calls as a table for spreadsheets, a line for each, with the columns `COLUMNS`; times are UTC."""
    out = io.StringIO()
    table = csv.writer(out)
    table.writerow(COLUMNS)
    for call in calls:
        used, payer = call.usage, call.payer
        cost = f"{Decimal(call.nano) / DOLLAR:.9f}"
        read = (used.input_tokens, used.output_tokens, used.cache_read_tokens, used.cache_write_tokens)
        where = (payer.channel or "", payer.server or "")
        # Other people's servers name models: a letter in front keeps a spreadsheet from reading a formula.
        name = word(call.model)
        model = f"_{name}" if name[0] in "+-@" else name
        flags = (int(call.counted), int(call.priced))
        row = (iso_ms(call.at), call.purpose, model, cost, *read, used.searches, used.seconds, *where, *flags)
        table.writerow(row)
    return out.getvalue().encode()
