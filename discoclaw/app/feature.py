"""What a feature brings to the program, said in one place.

A feature is a part that an admin would name: the archive, vectors, the mirror. Each module of this package
has one, derived from `Feature`; the composition root lists them. Nothing is discovered by itself.
"""

from collections.abc import Sequence
from typing import ClassVar

from discord.ext import commands

from discoclaw.core.personal import PersonalData
from discoclaw.core.service import Service
from discoclaw.memory.changes import Listener


class Feature:
    """A feature builds its parts in its constructor, and says here what the program has to do with them."""

    settings: ClassVar[tuple[str, ...]] = ()
    """The fields of `Settings` that are this feature's; every field belongs to one feature."""
    services: Sequence[Service] = ()
    """What runs, in the order in which it starts."""
    joins: Sequence[PersonalData | Listener] = ()
    """What stores something about people, in the order in which an erasing visits it, and what hears that
    something was recorded."""
    cogs: Sequence[commands.Cog] = ()
    """Its commands in Discord."""
