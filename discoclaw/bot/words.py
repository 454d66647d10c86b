"""The words of a Discord message: its author's words without Discord's markup, and what else it shows.

The only place that reads a message's words, for talk, replies, forwards, links, commands, menus and forms. An
embed, a poll, components, stickers and a forward stand behind the author's words, each in parentheses
(`core/own_words.added`), so nobody is taken to have said them. A mention becomes a name, a time a date; a
mention whose name we don't know stays as it is, since Discord shows the name when we show the mention.
Secrets are redacted before anything is cut. Knows nothing about who may read, or what becomes of the words.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, cast

import discord

from discoclaw.core.message import Me
from discoclaw.core.own_words import added, as_mention, own_words
from discoclaw.core.redact import PLAIN, Redactor
from discoclaw.core.text import clip, scrub
from discoclaw.core.words import fold
from discoclaw.show.answer import GREY, MOST_PARTS, Answer, Row
from discoclaw.show.markup import NOTE, clock, unmarked
from discoclaw.show.words import quoted

TALK = (
    discord.MessageType.default,
    discord.MessageType.reply,
    discord.MessageType.chat_input_command,  # how an app answers its slash commands and menus
    discord.MessageType.context_menu_command,
)
"""Types of people's and bots' messages; others are lines of Discord's, such as "Ann pinned a message"."""
_MOST_OWN = 16_000
"""Longest text taken from one message, in code points; Discord's own limit is 4,000."""
_MOST_SHOWN = 4_000
"""Longest text of all that a message shows besides, in UTF-16 units: no more than anybody can write."""
_MOST_OF_PREVIEW = 300
"""Longest text that Discord shows about a link."""

Named = Callable[[str, int], str | None]
"""The name of what a mark and an id stand for: "@" a person, "@&" a role, "#" a channel. None if unknown."""

_MARKUP = re.compile(
    r"""
      (?P<code>```(?s:.+?)```|``[^\n]+?``|`[^`\n]+`)  # Discord shows no markup in there
    | <(?P<kind>@[!&]?|\#)(?P<id>\d{15,20})>
    | <a?(?P<emoji>:\w{1,32}:)\d{15,20}>
    | <t:(?P<time>-?\d{1,15})(?::[A-Za-z])?>
    | <(?P<command>/[-\w]+(?:[ ][-\w]+){0,2}):\d{15,20}>
    | <id:(?P<page>browse|customize|guide|linked-roles)(?::\d{1,20})?>
    | \[(?P<label>[^\[\]\n]+)\]\(<?(?P<url>https?://(?:[^\s<>()]|\([^\s<>()]*\))+)>?(?:[ ]+"[^"\n]*")?\)
    | <(?P<bare>https?://[^\s<>]+)>
    """,
    re.VERBOSE,
)
_RESOLVED = {"@": ("members", "users"), "@&": ("roles",), "#": ("channels",)}
"""Fields of an interaction that have the names of what its texts mention."""


def resolved(text: str, named: Named) -> str:
    """A text as people read it: names for mentions, dates for times, and links with their addresses."""

    def plain(found: re.Match[str]) -> str:
        if found["id"]:
            kind = found["kind"].rstrip("!")
            name = named(kind, int(found["id"]))
            return as_mention(f"{kind[0]}{' '.join(name.split())}") if name else found[0]
        if found["time"]:
            return clock(int(found["time"]))
        if found["label"]:
            return f"{found['label']} ({found['url']})"
        page = (found["page"] or "").replace("-", " ").title()
        return found["emoji"] or found["command"] or found["bare"] or page or found[0]

    return _MARKUP.sub(plain, text)


def names_of(source: discord.Message | discord.Interaction[Any]) -> Named:
    """The names that a message or an interaction tells, or its server. Discord is not asked for any."""
    told: Mapping[str, Any] = {}
    client: discord.Client | None = None
    if isinstance(source, discord.Interaction):
        told, client = cast("Mapping[str, Any]", source.data or {}).get("resolved", {}), source.client
    known = names_in(source.guild, client)

    def named(kind: str, number: int) -> str | None:
        for part in _RESOLVED[kind]:
            one = told.get(part, {}).get(str(number), {})
            if name := next(filter(None, map(one.get, ("nick", "global_name", "username", "name"))), None):
                return str(name)
        # a malformed message lacks the lists
        listed = getattr(source, {"@": "mentions", "@&": "role_mentions"}.get(kind, ""), ())
        return known(kind, number) or _name(discord.utils.get(listed, id=number))

    return named


def names_in(guild: discord.Guild | None, client: discord.Client | None) -> Named:
    """The names that a server tells; of people also, who spoke or was named there lately."""

    def lately() -> Iterator[Any]:
        for one in reversed(client.cached_messages if client is not None and guild is not None else ()):
            if one.guild == guild:
                yield from (one.author, *getattr(one, "mentions", ()))

    def named(kind: str, number: int) -> str | None:
        found: Any = None
        if isinstance(guild, discord.Guild):
            ask = {"@": guild.get_member, "@&": guild.get_role, "#": guild.get_channel_or_thread}[kind]
            found = ask(number)
        return _name(found or (discord.utils.get(lately(), id=number) if kind == "@" else None))

    return named


def _name(one: Any) -> str | None:
    return getattr(one, "display_name", None) or getattr(one, "name", None)


def text_of(message: discord.Message, me: Me, redactor: Redactor = PLAIN) -> str:
    """The text of a message: its author's words, without our mention at the front, and then what it shows.

    Of ours it is what the model wrote: no buttons, previews or small print; or the words of a card.
    """
    named = names_of(message)

    def clean(text: str) -> str:
        return redactor.clean(scrub(resolved(text, named)))

    if str(message.author.id) == me.id and message.webhook_id is None:
        said = redactor.clean(scrub(message.content))
        return (_without_note(said) or clean(words_of(message)))[:_MOST_OWN]
    own = _unaddressed(clean(message.content), message, me) if message.type in TALK else ""
    parts, room = [own[:_MOST_OWN]], _MOST_SHOWN
    for kind, text in _shown(message, clean):
        if text := text.strip():
            parts.append(added(kind, clip(text, max(room, 1))))  # "…" if there is no room
            room -= len(parts[-1])
    return "\n".join(filter(None, parts))


def written(message: discord.Message) -> object:
    """The parts of a message that only its author changes, to compare: no previews or votes."""
    embeds = [one.to_dict() for one in message.embeds if not _is_preview(one, message)]
    parts = [one.to_dict() for one in _components(message)]
    return message.content, embeds, parts, [one.id for one in message.attachments]


def _unaddressed(text: str, message: discord.Message, me: Me) -> str:
    """A text without our mention at the front."""
    us: discord.Member | None = message.guild.me if message.guild is not None else None
    ours = {me.name, us.display_name if us is not None else me.name}  # a server that was fetched has no `me`
    for name in sorted(ours, key=len, reverse=True):
        for mention in (f"@{name}", as_mention(f"@{name}")):
            if text.startswith(mention):
                return text[len(mention) :].lstrip(" ,:\n")
    return text


def _without_note(text: str) -> str:
    """An answer of ours without the small print below it, which isn't talk."""
    lines = text.split("\n")
    while len(lines) > 1 and (lines[-1].startswith(NOTE) or not lines[-1].strip()):
        lines.pop()
    return "\n".join(lines)


_Any = discord.Message | discord.MessageSnapshot
_Clean = Callable[[str], str]


def _shown(message: _Any, clean: _Clean) -> Iterator[tuple[str, str]]:
    """Texts that a message shows besides its author's words, by kind; Discord's own line, if it is one."""
    if isinstance(message, discord.Message):
        for one in message.message_snapshots:
            yield "forwarded", _whole(one, clean)
        if message.type not in TALK:
            yield from _noted(message, clean)
        elif message.poll is not None:
            yield "poll", clean(_poll(message.poll))
    for embed in message.embeds:
        if embed.type != "poll_result":
            preview = _is_preview(embed, message)
            yield "embed", clip(clean(_embed(embed)), _MOST_OF_PREVIEW if preview else _MOST_SHOWN)
    yield "components", clean("\n".join(_labels(message)))
    yield "sticker", clean(", ".join(one.name for one in message.stickers))


def _whole(message: _Any, clean: _Clean) -> str:
    """A message within another one: its words and what it shows."""
    shown = (added(kind, text) for kind, text in _shown(message, clean) if text)
    return "\n".join(filter(None, [clean(message.content), *shown]))


def _noted(message: discord.Message, clean: _Clean) -> Iterator[tuple[str, str]]:
    """Lines of Discord's own: how a poll ended, how a thread began, a pin and the like."""
    first = message.reference.resolved if message.reference is not None else None
    if message.type is discord.MessageType.poll_result:
        told = {one.name: one.value for embed in message.embeds for one in embed.fields}
        question, answer = told.get("poll_question_text"), told.get("victor_answer_text")
        votes = f"{told.get('victor_answer_votes', 0)} of {told.get('total_votes', 0)} votes"
        won = f": {quoted(answer)} has most, {votes}" if answer else ""
        yield "poll", clean(f"{quoted(question or '')} has ended{won}")
    elif message.type is discord.MessageType.thread_starter_message and isinstance(first, discord.Message):
        yield "forwarded", _whole(first, clean)
    else:
        with suppress(LookupError, AttributeError):  # a malformed one lacks what its line is made from
            yield "Discord says", clean(message.system_content or "")


def _is_preview(embed: discord.Embed, message: _Any) -> bool:
    """Whether Discord made an embed, about a link: people can't make any, and those of apps are "rich"."""
    by_person = isinstance(message, discord.Message) and not message.author.bot and not message.webhook_id
    return by_person or embed.type != "rich"


def _embed(embed: discord.Embed) -> str:
    fields = (f"{one.name}: {one.value}" for one in embed.fields)
    parts = [embed.author.name, embed.title, embed.description, *fields, embed.footer.text]
    return "\n".join(filter(None, parts))


def _components(message: _Any) -> Iterator[Any]:
    return parts_of(getattr(message, "components", ()))  # a malformed message lacks them


def _labels(message: _Any) -> Iterator[str]:
    """The texts on a message's components."""
    for part in _components(message):
        if isinstance(part, discord.TextDisplay):
            yield part.content
        elif isinstance(part, discord.Button):
            yield f"button {quoted(part.label or _emoji(part.emoji))}"
        elif isinstance(part, discord.SelectMenu):
            options = [quoted(one.label) for one in part.options]
            yield f"menu {', '.join([quoted(part.placeholder or ''), *options])}"
        else:
            media = [part, *getattr(part, "items", ())]
            yield from filter(None, (getattr(one, "description", None) for one in media))


def _poll(poll: discord.Poll) -> str:
    """A poll on one line, with the votes as far as Discord tells them."""
    counted = poll.total_votes > 0 or poll.is_finalised()
    answers = [
        quoted(" ".join(filter(None, [_emoji(one.emoji), one.text])))
        + (f" ({one.vote_count} vote{'s' * (one.vote_count != 1)})" if counted else "")
        for one in poll.answers
    ]
    ended = "; it has ended" if poll.is_finalised() else ""
    return f"{quoted(str(poll.question))} with the answers {', '.join(answers)}{ended}"


def _emoji(emoji: discord.PartialEmoji | discord.Emoji | None) -> str:
    return "" if emoji is None else f":{emoji.name}:" if emoji.id else emoji.name


# ----------------------------------------------------------------------
# Reads a card of ours back from the message that shows it.


def texts_of(message: discord.Message | None) -> Mapping[int, str]:
    """The texts of a card by the ids of their components."""
    return {one.id: one.content for one in _texts_in(message) if one.id}


def texts_shown(message: discord.Message) -> str:
    """All that a message says, as a text or as a card, as it is written."""
    return "\n".join([message.content, *(one.content for one in _texts_in(message))])


def words_of(message: discord.Message) -> str:
    """All that a message says, as a text or as a card, as people read it: nothing is escaped."""
    return unmarked(texts_shown(message))


def parts_of(components: Sequence[Any]) -> Iterator[Any]:
    """Components, and all that are in them."""
    for part in components:
        yield part
        yield from parts_of(getattr(part, "children", ()))
        yield from parts_of([one for one in [getattr(part, "accessory", None)] if one is not None])


def can_be_pressed(message: discord.Message) -> bool:
    """Whether a message has buttons or menus."""
    return any(isinstance(one, discord.Button | discord.SelectMenu) for one in _parts(message))


def frame_of(message: discord.Message | None) -> int | None:
    """The colour of what a card says next: None for one without a frame."""
    return GREY if any(isinstance(one, discord.Container) for one in _parts(message)) else None


def closed(message: discord.Message, *foot: str) -> Answer:
    """A card without its buttons, with more small print below it."""
    lines = [part.removeprefix(NOTE) for part in foot]
    rows = [Row(one.content) for one in _texts_in(message)]
    return Answer(rows=rows, foot=lines, most=MOST_PARTS, colour=frame_of(message))


def _texts_in(message: discord.Message | None) -> list[discord.TextDisplay]:
    return [one for one in _parts(message) if isinstance(one, discord.TextDisplay)]


def _parts(message: discord.Message | None) -> Iterator[Any]:
    return parts_of(message.components if message is not None else [])


# ----------------------------------------------------------------------
# Recognises what people ask of the bot in a few plain words, so that no model has to be asked.

_LONGEST = 100
_PART = re.compile(r"\$?\w+|[()\[\]|]")
_MARKS = {"[": "(?:", "]": ")?", "(": "(?:", ")": ")", "|": "|"}


@dataclass(frozen=True, slots=True)
class Request:
    """A plain request: "help", to "show", "erase" or "forget" memories, "optout" or "optin", or "mistyped".

    `what` is to be forgotten, or the commands that were meant, each in a line.
    """

    kind: str
    what: str = ""


def request_of(text: str, name: str = "") -> Request | None:
    """The request in a message; None if it is talk. `name` is ours, with which people may address us."""
    if len(text) > _LONGEST:
        return None
    said = _plain(text)
    if name:
        said = f" {said}".replace(f" {_plain(name)}", " ", 1).lstrip()
    kinds, to_forget, of_talk = _sentences()
    for kind, known in kinds.items():
        if known.fullmatch(said):
            return Request(kind) if _plain(" ".join(own_words(text))) == _plain(text) else None
    found = to_forget.fullmatch(text.strip())
    return Request("forget", found["what"]) if found and not of_talk.search(found["what"]) else None


def _plain(text: str) -> str:
    """The words of a text, each with a space behind it, as the sentences of the file are compared."""
    return "".join(f"{word} " for word in re.findall(r"\w+", re.sub(r"['’`´]", "", fold(text))))


@cache
def _sentences() -> tuple[Mapping[str, re.Pattern[str]], re.Pattern[str], re.Pattern[str]]:
    """A pattern for each kind of request, one for what is to be forgotten, and one for what isn't."""
    parts, kinds, lines = dict[str, str](), dict[str, list[str]](), list[str]()
    for line in files(__package__).joinpath("requests.txt").read_text("utf-8").splitlines():
        name, sign, part = line.partition(" ~ " if " ~ " in line else " = ")
        if kind := re.fullmatch(r"\[(\w+)\]", line):
            lines = kinds.setdefault(kind[1], [])
        elif sign:
            parts[name] = parts.get(name, "") + (part if "~" in sign else f"(?:{_pattern(part, parts)})")
        elif line and not line.startswith("#"):
            lines.append(_pattern(line, parts))
    around = f"{parts['before']}*(?:{{}}){parts['after']}*"
    asked = {kind: re.compile(around.format("|".join(lines))) for kind, lines in kinds.items()}
    return asked, re.compile(parts["to_forget"], re.IGNORECASE), re.compile(parts["of_talk"], re.IGNORECASE)


def _pattern(line: str, parts: Mapping[str, str]) -> str:
    """A line of the file as a regular expression for what `_plain` makes of texts."""
    found = _PART.findall(re.sub("['’]", "", fold(line)))
    return "".join(parts[one[1:]] if one[0] == "$" else _MARKS.get(one, f"{one} ") for one in found)
