"""Texts for whoever chooses something in the menu of a message."""

from collections.abc import Sequence

from discoclaw.bot.texts.markup import ago, words
from discoclaw.core.item import Item
from discoclaw.core.yours import yours
from discoclaw.show.words import count

MY_OWN = "that is one of my answers; `/memory remember` takes what you want to keep of it"
NO_TALK = "Discord wrote that message itself, so there is nothing to remember"
NO_TEXT = "there is no text in that message that I could remember"
A_COMMAND = "that is a command to me, and nothing to remember"
NOT_THEIRS = "I can't keep what they wrote: its author wants me to remember nothing"
NOT_READ = "I can't read what they wrote: its author wants no memory. Please copy what your question is about"

NOT_AN_ANSWER = "that isn't one of my answers; choose one that I gave you"
NOT_FOR_YOU = "I answered somebody else there, so only they can see what it was based on"
GONE = "I no longer have that message. Please choose “Ask about this” once more"

NOT_FROM_MINE = "I don't learn from my own answers."
NOTHING = "Nothing was learned from this message."
WAITS = "Nothing was learned from this message yet: I read it later, together with what else you say."
OPTED_OUT = "Nothing was learned from this message: you have opted out of memory."
DEAF = "Nothing was learned from this message: I don't listen in this channel."
NOT_LEARNING = "Nothing was learned from this message: I only remember what I'm told to, not what is said."
OF_OTHERS = "Nothing was learned about you from this message. Its author sees what was learned about them."

MOST_SHOWN, LONGEST = 8, 150
"""Memories in one message, and characters of each, so that buttons fit below."""


def too_long(length: int, most: int) -> str:
    return (
        f"that message is too long for a memory ({length:,} characters, and {most:,} fit); "
        "`/memory remember` takes what matters of it"
    )


def learned(items: Sequence[Item], pending: int) -> str:
    """The memories that rest on a message, and how many wait for the person's yes."""
    active = sum(item.active for item in items)
    lines = [f"**Learned from this message** ({count(len(items), 'memory')})"] if items else []
    lines += [_line(item) for item in items[:MOST_SHOWN]]
    if len(items) > MOST_SHOWN:
        lines.append(f"(and {len(items) - MOST_SHOWN} more)")
    if pending:
        lines.append(f"{count(pending, 'memory')} from it {_wait(pending)} for your yes: `/memory pending`.")
    if active:
        lines.append("Forget it?" if active == 1 else "Which one should I forget?")
    return "\n".join(lines)


def _line(item: Item) -> str:
    gone = "" if item.active else ", forgotten"
    secret = ", private" if item.facets.sensitivity != "normal" else ""
    return f"- {words(yours(item.text), LONGEST)} ({ago(item.updated_at)}{secret}{gone})"


def _wait(number: int) -> str:
    return "waits" if number == 1 else "wait"
