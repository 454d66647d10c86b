"""Texts of a search in the archive."""

from collections.abc import Sequence

from discoclaw.bot.links import message_address
from discoclaw.bot.texts.markup import ago, plain
from discoclaw.core.text import speaker, utf16_length
from discoclaw.session.archiving import ArchiveHit
from discoclaw.show.words import count, line

LONGEST_SHOWN = 160
"""UTF-16 units of a message that are shown."""
LONGEST_ANSWER = 1900
NOTHING = "I found nothing like that in the messages I kept and you can read."
MATCHING = "**These match**"
BESIDE = "**Said right before or after**"
STILL = "I'm still looking for what you asked before. Please try again in a moment."
NOT_NOW = "I can't search the archive right now. Please try again in a while."


def off(what: str) -> str:
    """The answer where nothing is kept. `what` is the value that would change that."""
    return (
        "Messages here aren't kept, so there is nothing to search. Whoever runs me can change that with "
        f"DISCOCLAW_AUTO_SAVE in `.env`: it takes {what}, or `all`."
    )


def found(hits: Sequence[ArchiveHit]) -> str:
    """The messages that were found, in one message of Discord: what matches, then what was said next to it.

    Each best first.
    """
    beside = [hit for hit in hits if hit.beside]
    matching = [hit for hit in hits if not hit.beside]
    parts = [(MATCHING, matching), (BESIDE, beside)] if beside else [("", matching)]
    lines: list[str] = []
    room, shown = LONGEST_ANSWER, 0
    for title, some in parts:
        for number, hit in enumerate(some):
            new = [title, _line(hit)] if title and not number else [_line(hit)]
            room -= sum(utf16_length(one) + 1 for one in new)
            if room < 0:
                break
            lines += new
            shown += 1
    if more := len(hits) - shown:
        lines.append(f"({count(more, 'more message')}; add words to find fewer)")
    return "\n".join(lines)


def _line(hit: ArchiveHit) -> str:
    """One message: nothing in it is markup, a mention, or a link but ours."""
    entry = hit.entry
    where = f"<#{entry.channel_id}>, " if entry.guild_id is not None else ""
    link = message_address(entry.guild_id, entry.channel_id, entry.id)
    return f"- {ago(entry.sent_at)}, {where}**{plain(speaker(entry.name))}**: {quoted(entry.text)} <{link}>"


def quoted(text: str, most: int = LONGEST_SHOWN) -> str:
    """A message's text as it is: nothing in it is markup, a mention or a link."""
    kept = line(text, most).replace("`", "'") or " "
    return f"`{kept}`"
