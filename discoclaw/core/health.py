"""Findings on what works: one shape for `/readyz`, metrics, the admin's page and `discoclaw doctor`."""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

State: TypeAlias = Literal["good", "off", "unknown", "warning", "bad"]
"""From best to worst. `off`: it isn't used. `unknown`: it was not looked at, or can't be."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at, and how it is.

    `name` says what ("Discord", "the store"), `text` in one line how it is, `way_out` what to do about it.
    They name no person, channel or file, and quote nobody.
    """

    name: str
    state: State
    text: str
    way_out: str = ""


Check: TypeAlias = Callable[[], Iterable[Finding]]
"""Says how something is by what is known already: it neither waits nor asks anybody."""


def healthy(findings: Iterable[Finding]) -> bool:
    """Whether nothing is bad."""
    return all(one.state != "bad" for one in findings)


def worst_first(findings: Iterable[Finding]) -> list[Finding]:
    """The findings by how bad they are; those that are alike stay in their order."""
    return sorted(findings, key=lambda one: -get_args(State).index(one.state))


def as_json(findings: Collection[Finding]) -> dict[str, Any]:
    """The findings as `/readyz` says them."""
    return {
        "ready": healthy(findings),
        "findings": [
            {"name": one.name, "state": one.state, "text": one.text, "wayOut": one.way_out}
            for one in findings
        ],
    }
