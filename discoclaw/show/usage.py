"""Sums of calls of models, as people and programs read them. `usage_picture` draws it.

`grouped` makes one answer of them for all places: Discord shows its rows, the command line and the admin's
page its table, and programs read its data.
"""

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from decimal import Decimal
from typing import Final

from discoclaw.core.text import clip
from discoclaw.core.times import iso_ms
from discoclaw.core.usage import DOLLAR, PURPOSES, By, Call, Group, Total, amount, money
from discoclaw.show.answer import Answer, Grid, Row
from discoclaw.show.markup import words
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
_MENTIONS: Final[Mapping[By, str]] = {"person": "<@{}>", "channel": "<#{}>"}


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


def grouped(
    kind: By,
    groups: Sequence[Group],
    total: Total,
    names: Mapping[By, Callable[[str], str]],
    most: int | None = None,
    rest: str = "",
) -> Answer:
    """The first `most` of the groups of a kind, which together are the `total`.

    `names` finds what an id is called, "" if that isn't known. How many more groups there are is said with
    the `rest` behind it. Columns of the table in which nothing would stand are left out.
    """
    shown, name = groups[:most], names.get(kind)
    called = [name(one.key) if name is not None and one.key else "" for one in shown]
    more = [one for one in ("searches", "seconds") if getattr(total.usage, one)]
    numbers = ["cost", "calls", "input", "cached", "output", *more]
    rows, cells, data = [], [], []
    for one, found in zip(shown, called, strict=True):
        key, whole, usage = one.key, one.total, one.total.usage
        if key is None:
            plain = NOBODY[kind]
        else:
            plain = (PURPOSES.get(key, key) if kind == "purpose" else key) or "none"
        mention = _MENTIONS.get(kind) if key is not None else None
        title = mention.format(key) if mention else words(found or plain, 60) or "none"
        part, all_ = (whole.nano, total.nano) if total.nano else (whole.tokens, total.tokens)
        share = [f"{part * 100 // all_} %"] if all_ and kind != "day" else []
        rows.append(Row(f"**{title}**: {money(whole.nano)}", " · ".join([used(whole), *share])))
        amounts = [whole.calls, usage.input_tokens + usage.cache_write_tokens, usage.cache_read_tokens]
        amounts += [usage.output_tokens, *(getattr(usage, column) for column in more)]
        named = [clip(found, 40)] if any(called) else []
        cost = money(whole.nano) if whole else ""
        cells.append([plain, *named, cost, *(f"{number:,}" for number in amounts)])
        data.append({"key": key, "name": found or None, **counts(whole)})
    columns = [kind, *(["name"] if any(called) else []), *numbers]
    left = len(groups) - len(shown)
    foot = [f"and {left} more{rest}"] if left else []
    return Answer(f"By {kind}", rows, foot=foot, typed=Grid(columns, cells, right=numbers), data=data)


def counts(total: Total) -> dict[str, int]:
    """A sum of calls for programs."""
    usage = total.usage
    return {
        "nanodollars": total.nano,
        "calls": total.calls,
        "inputTokens": usage.input_tokens,
        "cacheReadTokens": usage.cache_read_tokens,
        "cacheWriteTokens": usage.cache_write_tokens,
        "outputTokens": usage.output_tokens,
        "searches": usage.searches,
        "seconds": usage.seconds,
        "estimatedCalls": total.estimated,
        "guessedPrices": total.guessed,
    }


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
