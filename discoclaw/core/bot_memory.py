"""The bot's own memory: its subject, and the keys that are reserved for it.

The bot's personality is a handful of keyed items in the subject `BOT`: `soul:identity`, `soul:user`,
`soul:philosophy`, and one `personality:<name>` for each trait. In anyone else's memory such a key could pass
for the personality, so a draft refuses it there. Knows nothing about what a personality says.
"""

import unicodedata

from discoclaw.core.text import visible

BOT = "bot"
SOUL_PREFIX = "soul:"
TRAIT_PREFIX = "personality:"

HUMAN = "human"
"""Key in the metadata of a commit of `BOT`: the user id of the owner whose words it is based on.

When that person has their memory erased, what the bot learned from them is erased too.
"""


def is_bot_key(key: str | None) -> bool:
    """Whether a key is reserved for the bot, whatever its case, width or invisible characters.

    Normalised that way because a model would read such a look-alike as the real key.
    """
    if key is None:
        return False
    plain = unicodedata.normalize("NFKC", visible(key)).strip().casefold()
    return plain.startswith((SOUL_PREFIX, TRAIT_PREFIX))
