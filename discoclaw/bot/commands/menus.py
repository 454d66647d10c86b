"""The commands in a message's menu; and `/ask`, a question whose answer only the one who asks sees.

What is asked and answered isn't part of the channel's talk: it is an aside (`core.message.Place`). The answer
is a reply over the interaction, and goes on in a DM where Discord no longer takes it.
"""

import logging
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import discord

from discoclaw.bot import naming, voice, wire, words
from discoclaw.bot.commands.alone import keep
from discoclaw.bot.commands.call import UNKNOWN_ANSWER, Call, explained
from discoclaw.bot.deliver import DiscordReply, in_dm
from discoclaw.bot.proposals import undo_button
from discoclaw.bot.sending import ANSWER, REST, Followups
from discoclaw.bot.wire import discord_errors
from discoclaw.core.errors import ChatError, Refused
from discoclaw.core.item import MAX_TEXT, Item, Sensitivity, Source, by_newest
from discoclaw.core.message import Said
from discoclaw.core.own_words import split_added
from discoclaw.core.ports import Ending, Held
from discoclaw.core.subject import user_subject
from discoclaw.core.text import clip, collapse, scrub, shows_nothing, speaker
from discoclaw.core.yours import yours
from discoclaw.show import text as shown
from discoclaw.show.answer import Answer, Reply
from discoclaw.show.answer import message as buttoned
from discoclaw.show.markup import NOTE, ago, plain
from discoclaw.show.words import count, line

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

MOST_SHOWN, LONGEST_SHOWN = 8, 150
"""Memories in one message, and characters of each, so that buttons fit below."""

# “Remember this”: a message becomes a memory of the person who chose it.

WHY = "remembered from a message's menu"
EVIDENCE = 200
"""Characters of a message that are kept as what a memory about it rests on."""


async def remember(call: Call, message: discord.Message) -> Reply:
    text = await _text(call, message)
    said, _ = split_added(text)
    # What one forwards are somebody else's words, and so is what Discord shows about a link.
    own = wire.author_id(message) == call.user_id and bool(said.strip())
    if not own:  # an author who wants nothing of theirs kept: that holds in other people's memory too
        author, at = wire.author_id(message), int(message.created_at.timestamp() * 1000)
        if call.context.choices.opted_out(author) or call.memory.erased_at(user_subject(author)) >= at:
            raise Refused(NOT_THEIRS)
    said = collapse(said if own else _reported(call, message, collapse(text)))
    if len(said) > MAX_TEXT:
        raise Refused(
            f"that message is too long for a memory ({len(said):,} characters, and {MAX_TEXT:,} fit); "
            "`/memory remember` takes what matters of it"
        )
    origin = replace(call.origin(), source=Source("discord", call.place.channel_id, str(message.id)))
    if own:  # they state it once more
        origin = replace(origin, evidence="")
    else:
        origin = replace(origin, author="inferred", evidence=clip(text, EVIDENCE), asked=True)
    secret: Sensitivity = "private" if call.place.private and not own else "normal"
    answer = await keep(call, said, origin, WHY, marked=secret, by="menu")
    for commit in reversed((await call.history()).commits.values()):
        if commit.metadata.get("at") == call.metadata["at"]:  # it was made just now
            return buttoned(answer, [undo_button(call.user_id, commit.id, commit.branch)])
    return answer


async def _text(call: Call, message: discord.Message) -> str:
    """The text of a message. Raises Refused if there is nothing to remember."""
    client = call.client
    if client.user is not None and message.author.id == client.user.id:
        raise Refused(MY_OWN)
    if not wire.is_talk(message):
        raise Refused(NO_TALK)
    try:
        spoken = await voice.words_below(message, client.user)
    except ChatError:
        spoken = ""  # where we aren't, we have not listened either
    text = spoken or words.text_of(message, client.me(), client.redactor)
    if not text.strip():
        raise Refused(NO_TEXT)
    if wire.is_command(text) and not spoken:
        raise Refused(A_COMMAND)
    return text


def _reported(call: Call, message: discord.Message, text: str) -> str:
    """Somebody else's words, with who they are and where it was."""
    name = speaker(call.client.redactor.clean(message.author.display_name))
    if wire.is_webhook(message):
        name = f"A webhook called {name}"
    place, where = call.place, ""
    if place.kind == "dm":
        where = " in a DM"
    elif place.name != wire.UNKNOWN:
        there = speaker(place.name)
        where = f" in the thread {there}" if place.kind == "thread" else f" in #{there}"
    return f"{name} said{where}: “{text}”"


# “What was learned from this?”: the memories of the person who asks that rest on a message.

FORGET = "forget"
"""The command that the buttons give."""


async def learned(call: Call, message: discord.Message) -> Reply:
    history = await call.history()
    branch = call.persona(history.branches) if history.records else None
    at = f"{call.place.channel_id}/{message.id}"
    items: list[Item] = []
    pending = 0
    if branch is not None:
        view = history.view(history.branch(branch).head)
        # The items that a change of the person's memory made from the message, or from a command in it.
        secrets, found = shown.Secrets(history, in_private=True, branch=branch), set[str]()
        for commit in shown.commits_of(history, branch):
            for event in commit.events:
                if event.source == f"discord:{at}" or event.evidence == at:
                    found.add(secrets.target(event))
        items = sorted((item for key, item in view.items.items() if key in found), key=by_newest)
        pending = sum(str(one.item.source) == f"discord:{at}" for one in view.pending)
    if branch is None or not (items or pending):
        return _why_nothing(call, message)

    active = [item for item in items if item.active]
    lines = [f"**Learned from this message** ({count(len(items), 'memory')})"] if items else []
    for item in items[:MOST_SHOWN]:
        gone = "" if item.active else ", forgotten"
        secret = ", private" if item.facets.sensitivity != "normal" else ""
        words_ = line(yours(item.text), LONGEST_SHOWN)
        lines.append(f"- {plain(words_)} ({ago(item.updated_at)}{secret}{gone})")
    if len(items) > MOST_SHOWN:
        lines.append(f"(and {len(items) - MOST_SHOWN} more)")
    if pending:
        wait = "waits" if pending == 1 else "wait"
        lines.append(f"{count(pending, 'memory')} from it {wait} for your yes: `/memory pending`.")
    if not active:
        return "\n".join(lines)
    if len(active) == 1:
        text = "\n".join([*lines, "Forget it?"])
        return naming.about_one(text, call.user_id, FORGET, active[0], branch)
    text = "\n".join([*lines, "Which one should I forget?"])
    return naming.about_several(text, call.user_id, FORGET, active, branch)


def _why_nothing(call: Call, message: discord.Message) -> str:
    """That nothing was learned, and why if that is known."""
    client, author = call.client, wire.author_id(message)
    if client.user is not None and author == str(client.user.id):
        return NOT_FROM_MINE
    if author != call.user_id:
        return OF_OTHERS
    if call.context.choices.opted_out(author):
        return OPTED_OUT
    if not client.listens(message.channel):
        return DEAF
    if not client.settings.extraction_enabled:
        return NOT_LEARNING
    return WAITS if call.context.loops.tracks.waits(author, str(message.id)) else NOTHING


# “Why this answer?”: what one of my answers was based on, for the person who got it.

OF_ANSWERS = ("stop:", "again:", "more:")
"""How the custom ids of the buttons begin that stand below answers."""


async def why(call: Call, message: discord.Message) -> Reply:
    if call.client.user is None or message.author.id != call.client.user.id:
        raise Refused(NOT_AN_ANSWER)
    # A later part of an answer is no reply, no receipt and no question with buttons.
    alone = message.reference is None and message.interaction_metadata is None
    parts = [one for part in message.components for one in getattr(part, "children", [part])]
    known = all(str(getattr(one, "custom_id", "")).startswith(OF_ANSWERS) for one in parts)
    later = alone and known and not message.content.startswith(NOTE)
    found = call.context.explained.answer(call.session_key, str(message.id), later_part=later)
    if found is None:
        return UNKNOWN_ANSWER
    user_id, last = found
    if user_id != call.user_id:
        raise Refused(NOT_FOR_YOU)
    return await explained(call, last, "that answer")


# “Ask about this”: a form for a question, which is then asked about the message that was chosen.


async def ask_about(call: Call, message: str, question: str) -> Reply:
    # The message that was chosen is asked for again after a restart.
    if (quoted := call.client.talk.chosen.take(call.user_id, message)) is None:
        try:
            with discord_errors():
                found = await call.channel.fetch_message(int(message))
            quoted = await call.client.meant_by(found)
        except ChatError as error:
            raise Refused(GONE) from error
    if not quoted.by_us and call.context.choices.opted_out(quoted.author_id):
        raise Refused(NOT_READ)  # it would be left out, and the answer be about nothing
    return await ask(call, question, None, quoted)


# ----------------------------------------------------------------------
# `/ask`: a question, wherever somebody is.

log = logging.getLogger(__name__)

NOT_HERE = "I don't answer here; whoever runs me has switched that off"
NO_QUESTION = "there is no question in that"

NO_ANSWERS: tuple[Answer, ...] = ()
"""The answer streams into the interaction by itself."""


async def ask(call: Call, text: str, file: discord.Attachment | None, quoted: Said | None = None) -> Reply:
    """Ask a question, which may be about a message. Raises Refused where nothing is answered."""
    if shows_nothing(text):
        raise Refused(NO_QUESTION)
    assert isinstance(call.source, discord.Interaction)  # it is a slash command, or a form
    client, number = call.client, call.source.id
    asked = wire.supposed(
        text,
        call.author,
        call.channel,
        message_id=number,
        sent_at=call.asked_at,
        owners=client.settings.owners,
        redactor=client.redactor,
    )
    place = replace(call.place, topic="", tags=()).aside()
    asked = replace(asked, place=place, session_key=place.session_key(call.user_id), quoted=quoted)
    if file is not None:
        note = client.redactor.clean(scrub(wire.file_note(file)))
        named = wire.file_of(file, number, call.user_id, call.channel.id, redactor=client.redactor)
        asked = replace(asked, attachments=(note,), files=(named,))
    begin = partial(AsideAnswer, call.source, client.settings.edit_interval_s)
    if not await client.talk.ask(asked, begin):
        raise Refused(NOT_HERE)
    return NO_ANSWERS


# ---------------------------------------------------------------------- the answer

IN_DM = "Discord no longer took {what} where you asked, so here it is:"


class AsideAnswer(DiscordReply):
    """A reply over an interaction. What Discord no longer takes there, its person gets in a DM.

    Discord takes it for 15 minutes. Nothing is answered again after a restart, so whatever the reason is, the
    DM is the only other way.
    """

    def __init__(
        self, interaction: discord.Interaction[Any], edit_every_s: float, shown: Callable[[str, str], None]
    ) -> None:
        super().__init__(Followups(interaction), None, edit_every_s=edit_every_s, shown=shown)
        self._person = interaction.user

    async def finish(self, ending: Ending = "other") -> str | None:
        """Show everything pushed, in a DM if the command can't take it. Returns its first message's id."""
        try:
            return await super().finish(ending)
        except ChatError as error:
            log.info("an answer to a command goes on in a DM: %s", error)
            what = ANSWER if self._sender.first is None else REST
            there = await in_dm(self._person, f"{IN_DM.format(what=what)}\n\n{self.unsaid}")
            return str(self._sender.first.id) if self._sender.first is not None else there

    @property
    def held(self) -> Held:
        """The missing part, which its person is to get in a DM."""
        return Held(self.unsaid, f"dm-{self._person.id}", "")

    async def _notice(self, text: str, ending: Ending = "other") -> None:
        try:
            await super()._notice(text, ending)
        except ChatError as error:
            log.info("a person is told in a DM why a command has no answer: %s", error)
            await in_dm(self._person, text)
