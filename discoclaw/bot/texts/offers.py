"""Texts of proposals below an answer, each with a button."""

from discoclaw.bot.texts.markup import NOTE, name

NO_PERSONALITY = (
    f"{NOTE}I have no personality yet. Shall we set one up? It takes a few questions; I ask this only once."
)


def switch(persona: str) -> str:
    return f"{NOTE}Switch to your persona **{name(persona)}**?"
