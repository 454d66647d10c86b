"""The section titles used in prompts, shared by the code that writes prompts and the code that reads them.

The user turn of a prompt consists of the first ten sections in this order, separated by `SEPARATOR`, with
the user's message last. The offline model and the tests read prompts; `prompt/quote` keeps quoted text from
imitating a title. The titles are behaviour: changing one changes what models are told.
"""

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
