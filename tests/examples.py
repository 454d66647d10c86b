"""How often a property is tried, as a share of what the profile says (see conftest).

A number of its own would have `HYPOTHESIS_PROFILE=thorough` try no more than any other run.
"""

from hypothesis import settings

_USUAL = settings.default.max_examples if settings.default is not None else 100

MANY = settings(max_examples=3 * _USUAL)
"""Of what takes no time and goes wrong in many ways."""
FEW = settings(max_examples=_USUAL // 2)
"""Of whole histories, streams and stores."""
FEWEST = settings(max_examples=_USUAL // 5)
"""Of what asks a database server a thousand times."""
