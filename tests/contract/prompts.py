"""Reading what the model was sent: the sections of a prompt, by their titles."""

GROUP = "Notes about this channel:"
SENDER = "Sender:"
DURABLE = "Durable memory (user-specific notes; may be empty):"
ROLLING = "Conversation memory (rolling summary; may be empty):"
RECENT = "Recent conversation:"
NOW = "Current time:"
FILES = "Files in this talk:"
REPLIED_TO = "Replied-to message:"
MESSAGE = "User message:"


def section(prompt: str, title: str) -> str:
    """The body of a section; empty if the prompt has none."""
    parts = (part.partition("\n") for part in prompt.split("\n\n---\n"))
    return next((body for found, _, body in parts if found == title), "")


def recent(prompt: str) -> list[str]:
    """The lines of the recent talk that begin with a name."""
    return [line for line in section(prompt, RECENT).splitlines() if line.startswith("[")]
