"""The section titles of the prompt: one vocabulary for who writes them and who reads them.

A user turn is sections in this order, each under its title, divided by `SEPARATOR`; the message is last.
"""

SENDER = "Sender:"
DURABLE = "Durable memory (user-specific notes; may be empty):"
ROLLING = "Conversation memory (rolling summary; may be empty):"
RECENT = "Recent conversation:"
REPLIED_TO = "Replied-to message:"
MESSAGE = "User message:"

SEPARATOR = "\n\n---\n"

GROUP = "Notes about this channel:"
"""In the system prompt, behind the place."""

# Who we are, at the head of the system prompt.
SOUL_IDENTITY = "Your Identity"
SOUL_USER = "About your human"
SOUL_PHILOSOPHY = "Your philosophy"
TRAITS = "Learned traits"
HATCHING = "An interview about who you are to be:"
"""The first line of the system prompt of such an interview, which has no other."""

# The loops' prompts.
EXISTING = "Existing items:"
FORGOTTEN = "Forgotten at the person's wish:"
OWN_MESSAGES = "Messages of this person:"
OTHERS = "Said by others (context only):"
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
    """The bodies of a prompt's sections by their first line. Quoted text can not forge a separator."""
    found = {}
    for part in prompt.split(SEPARATOR):
        title, _, body = part.partition("\n")
        found[title] = body
    return found
