"""Dataclasses whose frozen values take little time to make: a message becomes some seventy of them.

mypy sees `dataclasses.dataclass`, and refuses whatever would change a frozen value. The standard one refuses
it once more while the program runs, and for that calls a function for each field: a tenth of a turn.
Knows nothing about what values hold.
"""

import dataclasses
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

__all__ = ["dataclass", "field", "replace"]

if not TYPE_CHECKING:

    def dataclass(*, frozen: bool = False, eq: bool = True, **options: Any) -> Any:
        """The standard decorator. Values of a `frozen` class can be compared and hashed as usual."""
        return dataclasses.dataclass(eq=eq, unsafe_hash=frozen and eq, **options)
