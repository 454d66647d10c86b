"""Calls that are asked for, and permissions for them. Values only; knows nothing about who decides."""

import asyncio
import secrets
from collections.abc import Sequence

from discoclaw.core.budgets import Choice, Wish
from discoclaw.core.model import Usage
from discoclaw.core.usage import Call, For, Payer
from discoclaw.core.values import dataclass, field


@dataclass(frozen=True, slots=True)
class Grant:
    """The permission for one call. `choice` says which model makes it; no model if a budget is spent."""

    id: str
    at: int
    purpose: For
    payer: Payer
    choice: Choice
    held: bool = False


@dataclass(slots=True)
class Pending:
    """A call that waits for a decision."""

    purpose: For
    payer: Payer
    wishes: Sequence[Wish]
    background: bool
    decided: Grant | None = None
    """The decision, as soon as it was made; `granted` follows when it is on disk."""
    granted: asyncio.Future[Grant] = field(default_factory=lambda: asyncio.get_running_loop().create_future())


def unused(grant: Grant) -> Call:
    """A call that was granted and not made."""
    return Call(grant.id, grant.at, grant.purpose, "", Usage(), payer=grant.payer, requests=0)


def new_id() -> str:
    return secrets.token_hex(8)
