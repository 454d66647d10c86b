"""What is the bot's own: the subject of its memory, and the keys only that memory may have.

A personality is a handful of keyed items of the subject `BOT`: `soul:identity`, `soul:user`,
`soul:philosophy`, and `personality:<name>` for each trait. In anybody else's memory these keys would only
mislead, so a draft refuses them there. Knows nothing about what a personality says.
"""

import unicodedata

from discoclaw.core.text import visible

BOT = "bot"
SOUL_PREFIX = "soul:"
TRAIT_PREFIX = "personality:"

HUMAN = "human"
"""In the metadata of a commit of `BOT`: the user id of the owner whose words it rests on. An erasing of
that person takes the bot's memory along."""


def is_bot_key(key: str | None) -> bool:
    """Whether a key is one of the bot's own, in whatever case, width or invisible characters."""
    if key is None:
        return False
    plain = unicodedata.normalize("NFKC", visible(key)).strip().casefold()
    return plain.startswith((SOUL_PREFIX, TRAIT_PREFIX))
