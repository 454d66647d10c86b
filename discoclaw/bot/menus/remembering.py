"""“Remember this”: a message becomes a memory of the person who chose it.

Their own words become what `/memory remember` makes of them. Other people's become a memory about what was
said, with its author: it rests on that message, so it goes when the message is deleted or edited.
"""

from dataclasses import replace

import discord

from discoclaw.bot import wire, words
from discoclaw.bot.answers import Answer, Page
from discoclaw.bot.cards.layout import below
from discoclaw.bot.cards.offers import undo
from discoclaw.bot.commands.call import Call
from discoclaw.bot.commands.everyday import keep
from discoclaw.bot.texts import menus as texts
from discoclaw.bot.voice import meant
from discoclaw.core.errors import ChatError, Refused
from discoclaw.core.item import MAX_TEXT, Sensitivity, Source
from discoclaw.core.message import Place
from discoclaw.core.own_words import split_added
from discoclaw.core.subject import user_subject
from discoclaw.core.text import clip, collapse, speaker

WHY = "remembered from a message's menu"
EVIDENCE = 200
"""Characters of a message that are kept as what a memory about it rests on."""


async def remember(call: Call, message: discord.Message) -> Answer:
    text = await _text(call, message)
    said, _ = split_added(text)
    # What one forwards are somebody else's words, and so is what Discord shows about a link.
    own = wire.author_id(message) == call.user_id and bool(said.strip())
    if not own:
        _check_consent(call, message)
    said = collapse(said if own else _reported(call, message, collapse(text)))
    if len(said) > MAX_TEXT:
        raise Refused(texts.too_long(len(said), MAX_TEXT))
    origin = replace(call.origin(), source=Source("discord", call.place.channel_id, str(message.id)))
    if own:  # they state it once more
        origin = replace(origin, evidence="")
    else:
        origin = replace(origin, author="inferred", evidence=clip(text, EVIDENCE), asked=True)
    secret: Sensitivity = "private" if call.place.private and not own else "normal"
    answer = await keep(call, said, origin, WHY, marked=secret, by="menu")
    commit = await _commit(call)
    return answer if commit is None else [Page(answer, view=below([undo(call.user_id, *commit)]))]


async def _text(call: Call, message: discord.Message) -> str:
    """The text of a message. Raises Refused if there is nothing to remember."""
    client = call.client
    if client.user is not None and message.author.id == client.user.id:
        raise Refused(texts.MY_OWN)
    if not wire.is_talk(message):
        raise Refused(texts.NO_TALK)
    try:
        spoken = await meant.words_below(message, client.user)
    except ChatError:
        spoken = ""  # where we aren't, we have not listened either
    text = spoken or words.text_of(message, client.me(), client.redactor)
    if not text.strip():
        raise Refused(texts.NO_TEXT)
    if wire.is_command(text) and not spoken:
        raise Refused(texts.A_COMMAND)
    return text


def _check_consent(call: Call, message: discord.Message) -> None:
    """Raise Refused if the author wants nothing of theirs kept: that holds in other people's memory too."""
    author, at = wire.author_id(message), int(message.created_at.timestamp() * 1000)
    if call.context.choices.opted_out(author) or call.memory.erased_at(user_subject(author)) >= at:
        raise Refused(texts.NOT_THEIRS)


def _reported(call: Call, message: discord.Message, text: str) -> str:
    """Somebody else's words, with who they are and where it was."""
    name = speaker(call.client.redactor.clean(message.author.display_name))
    if wire.is_webhook(message):
        name = f"A webhook called {name}"
    return f"{name} said{_where(call.place)}: “{text}”"


def _where(place: Place) -> str:
    if place.kind == "dm":
        return " in a DM"
    if place.name == wire.UNKNOWN:
        return ""
    name = speaker(place.name)
    return f" in the thread {name}" if place.kind == "thread" else f" in #{name}"


async def _commit(call: Call) -> tuple[str, str] | None:
    """The id of the change that was made just now, and its persona; None if nothing changed."""
    at = call.metadata["at"]
    commits = (await call.history()).commits.values()
    return next(((one.id, one.branch) for one in reversed(commits) if one.metadata.get("at") == at), None)
