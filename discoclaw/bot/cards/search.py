"""The card of what a search of messages found."""

from collections.abc import Sequence

from discoclaw.bot.cards.card import Card, Entry, Turn
from discoclaw.bot.links import message_address
from discoclaw.bot.texts import search as texts
from discoclaw.bot.texts.markup import ago, plain, said
from discoclaw.core.text import speaker
from discoclaw.session.archive_search import ArchiveHit
from discoclaw.show.words import count

LONGEST_SHOWN = 300
"""UTF-16 units of a message that are shown."""


def found(hits: Sequence[ArchiveHit], turn: Turn, query: str, *, page: int) -> Card:
    """The messages that were found: what matches, then what was said next to it. Each best first."""
    matching = [_entry(hit) for hit in hits if not hit.beside]
    beside = [_entry(hit) for hit in hits if hit.beside]
    if beside:
        beside[0] = Entry(f"{texts.BESIDE}\n{beside[0].text}", beside[0].small, apart=bool(matching))
    small = [count(len(matching), "message")] if matching else ["nothing matches, but this was said near it"]
    return Card(f"Found for {said(query, 80)}", [*matching, *beside], small=small, turn=turn, page=page)


def _entry(hit: ArchiveHit) -> Entry:
    """One message: nothing in it is markup, a mention, or a link but ours."""
    entry = hit.entry
    link = message_address(entry.guild_id, entry.channel_id, entry.id)
    where = f"<#{entry.channel_id}>" if entry.guild_id is not None else "in our DMs"
    text = f"**{plain(speaker(entry.name))}**: {texts.quoted(entry.text, LONGEST_SHOWN)}"
    return Entry(text, f"{ago(entry.sent_at)} · {where} · [open it]({link})")
