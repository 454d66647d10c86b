"""The contract of a feature: what it adds to the program, declared in one place.

A feature is a part that an admin would name: the archive, vectors, the mirror. Each module of this package
has one, derived from `Feature`; the composition root lists them. There is no automatic discovery.
"""

from collections.abc import Sequence
from typing import ClassVar

from discord.ext import commands

from discoclaw.core.health import Check
from discoclaw.core.personal import PersonalData
from discoclaw.core.service import Service
from discoclaw.memory.changes import Listener


class Feature:
    """Builds its parts in its constructor, and declares here what the program has to do with them."""

    settings: ClassVar[tuple[str, ...]] = ()
    """The fields of `Settings` that belong to this feature; every field belongs to exactly one."""
    services: Sequence[Service] = ()
    """The running parts, in the order in which they start."""
    joins: Sequence[PersonalData | Listener] = ()
    """The parts with personal data, in the order in which an erasing visits them, and the parts that listen
    to changes."""
    health: Sequence[Check] = ()
    """How it is. Its workers are found without being listed here; see `jobs`."""
    cogs: Sequence[commands.Cog] = ()
    """Its commands in Discord."""
