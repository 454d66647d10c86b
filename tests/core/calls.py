"""Calls of models for tests: single ones, and any list of them."""

from typing import Final, get_args

from hypothesis import strategies as st

from discoclaw.core.model import Usage
from discoclaw.core.usage import Call, For, Payer

NOW: Final = 1_770_136_175_000  # 2026-02-03T16:29:35Z
DAY: Final = 86_400_000
ANN: Final = Payer("1")
PURPOSES: Final = [one for part in get_args(For) for one in (get_args(part) or (part,))]

_ids = st.sampled_from([None, "1", "2", "3"])
_counts = st.integers(0, 10**12)


def calls(**given: st.SearchStrategy[object]) -> st.SearchStrategy[list[Call]]:
    """Lists of calls within some weeks around `NOW`; `given` are fields with other values."""
    fields = {
        "id": st.uuids().map(str),
        "at": st.integers(NOW - 40 * DAY, NOW + 2 * DAY),
        "purpose": st.sampled_from(PURPOSES),
        "model": st.sampled_from(["opus", "haiku", "local"]),
        "usage": st.builds(Usage, *[_counts] * 6),
        "nano": _counts,
        "payer": st.builds(Payer, _ids, _ids, _ids),
        "requests": st.integers(1, 3),
        "counted": st.booleans(),
        "priced": st.booleans(),
    }
    return st.lists(st.builds(Call, **{**fields, **given}), max_size=30)


def call(
    at: int = NOW,
    nano: int = 1_000_000,
    *,
    purpose: str = "answer",
    payer: Payer = ANN,
    model: str = "opus",
    tokens: tuple[int, int] = (1000, 200),
) -> Call:
    """One call, with an id that is made of what it is."""
    id = f"{at % 10**10}-{nano}-{purpose}-{payer.user}"[:40]
    return Call(id, at, purpose, model, Usage(*tokens), nano, payer)
