"""Questions in return: extraction may ask about one thing that it is unsure of, instead of leaving it out.

The thing then waits for the person's yes like any proposal, and the model's question is shown with it. The
question is data: these are the checks that it has to pass. Pure. Who may be asked, and when, is not known
here.
"""

import re

from discoclaw.core.errors import Refused
from discoclaw.core.text import collapse, scrub, utf16_length

LONGEST = 200
"""Longest text of a question, in UTF-16 units."""
_ENDS = ("?", "？", "؟", "\u037e", "՞", "፧")
_LIVE = re.compile(r"<[@#:]|<a:|@(?:everyone|here)\b|[a-z]+://", re.IGNORECASE)
"""Texts that Discord turns into a mention, an emoji or a link."""


def question(text: str) -> str:
    """A model's question as it may be shown. Raises Refused."""
    asked = collapse(scrub(text))
    if len(text.strip().splitlines()) != 1:
        raise Refused("a question to the person must be one line")
    if utf16_length(asked) > LONGEST:
        raise Refused(f"a question to the person can have at most {LONGEST} characters")
    if not asked.endswith(_ENDS):
        raise Refused("what is to be asked is not a question")
    if _LIVE.search(asked):
        raise Refused("a question to the person can't hold mentions or links")
    return asked
