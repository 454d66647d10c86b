"""Section titles and short names of prompts, shared by what writes prompts and what reads them.

The user turn of a prompt consists of the first ten sections in this order, separated by `SEPARATOR`, with
the user's message last. The offline model and the tests read prompts; `prompt/quote` keeps quoted text from
imitating a title. The titles are behaviour: changing one changes what models are told.
"""

from collections.abc import Iterable

GROUP = "Notes about this channel:"
SENDER = "Sender:"
DURABLE = "Durable memory (user-specific notes; may be empty):"
ROLLING = "Conversation memory (rolling summary; may be empty):"
RECENT = "Recent conversation:"
NOW = "Current time:"
LINKED = "Linked messages:"
FILES = "Files in this talk:"
REPLIED_TO = "Replied-to message:"
MESSAGE = "User message:"
ACTIONS = "Discord Actions:"
"""Behind the message, for a model that can call no tools: how it writes what is to be done."""

SEPARATOR = "\n\n---\n"

# The bot's personality, at the start of the system prompt.
SOUL_IDENTITY = "Your Identity"
SOUL_USER = "About your human"
SOUL_PHILOSOPHY = "Your philosophy"
TRAITS = "Learned traits"
INSTRUCTIONS = "Instructions for this channel:"
HATCHING = "An interview about who you are to be:"
"""The first line of the system prompt in an interview, which replaces the usual one."""

# The prompts of the background loops.
EXISTING = "Existing items:"
TALK = "Talk:"
PREVIOUS_SUMMARY = "Previous summary:"
NEW_MESSAGES = "New messages:"
MAXIMUM = "Maximum length:"
THEMES = "Known themes of this channel:"
DECISIONS = "Known decisions of this channel:"
TODAY = "Today's date:"
TO_TIDY = "Items to tidy:"
REMEMBERED = "What is remembered:"
AGAINST = "What stands against it:"


def sections(prompt: str) -> dict[str, str]:
    """The sections of a prompt: body by title. Quoted text cannot contain a separator (`prompt/quote`)."""
    found = {}
    for part in prompt.split(SEPARATOR):
        title, _, body = part.partition("\n")
        found[title] = body
    return found


# ----------------------------------------------------------------------
# Short names for what a model is shown, such as i1 and m12: it copies them right, and code maps them back.
#
# A name that was never given means nothing; whoever maps it back refuses it.


class ShortIds:
    """Names things in the order in which they are first named: `letter` and a number from 1."""

    def __init__(self, letter: str, ids: Iterable[str] = ()) -> None:
        self._letter = letter
        self._short: dict[str, str] = {}
        self._long: dict[str, str] = {}
        for one in ids:
            self.of(one)

    def of(self, long: str) -> str:
        """The short name of an id; a new one, if it has none."""
        if long not in self._short:
            short = f"{self._letter}{len(self._short) + 1}"
            self._short[long], self._long[short] = short, long
        return self._short[long]

    def meant(self, short: str) -> str | None:
        """The id that a short name stands for; None if it was never given."""
        return self._long.get(short.strip().strip("[]()").casefold())

    def knows(self, long: str) -> bool:
        """Whether an id has a short name."""
        return long in self._short
