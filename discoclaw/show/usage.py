"""What calls of models add up to, in words for people. `usage_picture` draws it."""

from collections.abc import Iterator
from datetime import timedelta

from discoclaw.core.usage_report import PURPOSES, Total, amount
from discoclaw.show.words import count


def used(total: Total) -> str:
    """What a sum of calls used: `12 calls · 34.5k tokens in, 2.1k out · 3 searches`."""
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
    """Sentences about what in a sum isn't exact."""
    if total.estimated:
        calls = count(total.estimated, "call")
        yield f"The tokens of {calls} are an estimate, because a server didn't count them."
    if total.guessed:
        calls = count(total.guessed, "call")
        yield f"The price of {calls} is a guess, because none is set for the model."


def purpose(name: str) -> str:
    """What people call a purpose."""
    return PURPOSES.get(name, name)
