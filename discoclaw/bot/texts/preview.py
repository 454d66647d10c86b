"""Texts of a preview: what the model would read about them in a place, and what it would not."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from discoclaw.bot.commands.context import OFF
from discoclaw.bot.commands.spec import Need
from discoclaw.bot.texts.markup import for_people, name, plain, said, words
from discoclaw.bot.texts.memory import NOT_USED, line_of
from discoclaw.core.item import Item
from discoclaw.core.message import Place
from discoclaw.core.ports import IDLE
from discoclaw.core.times import date_of
from discoclaw.core.yours import yours
from discoclaw.prompt.assemble import notes_about
from discoclaw.recall import select
from discoclaw.recall.select import NO_ROOM, SAID, UNRELATED, WAITS, Chosen
from discoclaw.session import prepare
from discoclaw.session.prepare import Preview
from discoclaw.show.words import count

INTERVIEW = (
    "You are in the interview about my personality there. Until it ends, what you write there belongs to it, "
    "and nothing I remember about you is used."
)
Line = Callable[[Item], str]
"""A memory as a line."""
SILENT = "(I don't answer you there as I am set up now. This is what I would use if I did.)"
LONGEST_LINE = 160
"""UTF-16 units of a recent message that are shown."""

WHY: Mapping[str, str] = {
    prepare.FITS: "When it fits what you write",
    prepare.PRIVATE: "Private: I use these in our DMs only",
    prepare.CONFIDENTIAL: "Confidential: I give these to no model",
    NO_ROOM: "No room: what I give the model at once is limited",
    SAID: "Says the same as one that is used",
    WAITS: "Too many to use in every answer: these come when you write about their topic",
    UNRELATED: "Not related closely enough to that message",
    IDLE: "Not used for too long",
    prepare.OPTED_OUT: "Not used, because you have opted out",
    prepare.FORGOTTEN: "Forgotten",
}
"""The heading of each reason why a memory is not used."""
ALWAYS: Mapping[str, str] = {
    select.ALWAYS: "always",
    select.EVERYTHING: "you ask for everything",
    select.NEWER: "newer than one that fits",
}
"""The reason shown for a memory that no word of a message called for."""


@dataclass(frozen=True, slots=True)
class Facts:
    """Facts that a preview says besides what is in the prompt.

    `left_out` are the person's other memories by reason. `elsewhere` is how many memories only the person's
    other personas have; `persona` is the one of the place, named only if there are others. `off` is switched
    off. `answers`: the bot would answer there. `tools`: the model can search the memory, with `archive` also
    the place's earlier messages.
    """

    left_out: Mapping[str, Sequence[Item]]
    elsewhere: Mapping[str, int]
    persona: str
    off: frozenset[Need]
    answers: bool
    tools: bool
    archive: bool


def page(made: Preview, facts: Facts) -> str:
    """Everything, for the eyes of the person alone."""
    head = f"**{title(made)}**{_under(made, facts)}"
    return "\n\n".join(["\n".join([head, *warnings(made, facts)]), *parts(made, facts, line_of)])


def parts(made: Preview, facts: Facts, line: Line) -> list[str]:
    """Everything, a text for each part; `line` is how a memory is shown."""
    left_out = dict(facts.left_out)
    fitting = left_out.pop(prepare.FITS, [])
    found = [
        _memories(made, line),
        _group(WHY[prepare.FITS], [*map(line, fitting)], len(fitting)) if fitting else "",
        _summary(made, facts),
        _recent(made),
        _files(made),
        _notes(made),
        _shortened(made),
        _person(made),
        _left_out(left_out, facts, line),
    ]
    return [one for one in found if one]


def counted(made: Preview, facts: Facts) -> str:
    """Numbers only, where others read the answer."""
    fitting = len(facts.left_out.get(prepare.FITS, ()))
    found = [count(len(made.used), "memory")]
    found += [f"{count(fitting, 'memory')} when they fit what you write"] if fitting else []
    found += ["a summary of the conversation"] if made.ready.gathered.summary else []
    found += [count(made.ready.prompt.shown, "recent message")]
    found += [count(number, kind) for kind, number in made.ready.attached.kinds.items()]
    found += ["notes about the channel"] if made.ready.gathered.group and made.ready.prompt.group else []
    left = sum(len(those) for why, those in facts.left_out.items() if why != prepare.FITS)
    lines = [*_warnings(facts), f"Here I would use: {', '.join(found)}."]
    lines += [f"{count(left, 'memory')} would be left out."] if left else []
    return "\n".join([*lines, "Only you may see which: use `/memory preview` here, or ask me in a DM."])


def title(made: Preview) -> str:
    """The title of a preview."""
    return f"What I could say about you in {_place(made.arrival.place)}"


def _under(made: Preview, facts: Facts) -> str:
    persona = f", as your persona {name(facts.persona)}" if facts.persona else ""
    about = f" if you wrote {said(made.arrival.message.text, 200)}" if made.asked else ""
    return persona + about


def warnings(made: Preview, facts: Facts) -> list[str]:
    """The warnings above a preview."""
    return [*([NOT_USED] if made.arrival.permission.opted_out else []), *_warnings(facts)]


def small(made: Preview, facts: Facts) -> list[str]:
    """The small print below the title of a card."""
    under = _under(made, facts).lstrip(", ")
    return [*([under] if under else []), *warnings(made, facts)]


def row(item: Item) -> str:
    """A memory in a card: without its id."""
    secret = "" if item.facets.sensitivity == "normal" else "🔒 "
    return f"- {secret}{words(yours(item.text))} ({item.kind})"


def _warnings(facts: Facts) -> list[str]:
    found = [SILENT] if not facts.answers else []
    if "memory" in facts.off:
        found.append(f"I use nothing I remember: {OFF['memory']}.")
    return found


def _place(place: Place) -> str:
    if place.kind == "dm":
        return "our direct messages"
    return f"the thread {said(place.name)}" if place.kind == "thread" else f"#{words(place.name)}"


def _memories(made: Preview, line: Line) -> str:
    title = "From your memory" if made.asked else "Always"
    lines = [f"{line(one.item)}{_why(made, one)}" for one in made.used]
    if made.crowded:
        lines.append("(Some of these leave if what fits your message needs the room.)")
    return _group(title, lines, len(made.used))


def _why(made: Preview, one: Chosen) -> str:
    """Why a memory is chosen for a message; without a message there is one reason, which is the heading."""
    ended = f"; until {date_of(one.until)[:7]}" if one.until is not None else ""
    if not made.asked:
        return ended
    if one.hit is not None:
        return f"; for {plain(for_people(one.why))}{ended}"
    return f"; {ALWAYS[one.always]}{ended}"


def _summary(made: Preview, facts: Facts) -> str:
    title, text = "**Summary of the conversation**", made.ready.prompt.rolling
    if text:
        return f"{title}\n{text}"
    if made.ready.gathered.summary:
        return f"{title}: no room"
    return f"{title}: {'switched off' if 'summaries' in facts.off else 'none yet'}"


def _recent(made: Preview) -> str:
    lines, older = made.ready.prompt.lines, len(made.ready.window) - made.ready.prompt.shown
    shown = [f"- {words(line.text, LONGEST_LINE)}" for line in lines]
    return _group(
        "Recent messages", shown + ([f"({count(older, 'older one')}: no room)"] if older else []), len(lines)
    )


def _files(made: Preview) -> str:
    """The files of the last messages. They are named only: nothing is read for a preview."""
    entries = made.ready.prompt.files
    lines = [f"- {words(one.label)}: {said(one.name)}, {words(one.whence)}" for one in entries]
    return _group("Files", lines, len(lines)) if lines else ""


def _notes(made: Preview) -> str:
    notes = made.ready.prompt.group
    if not notes:
        return ""
    lines = [f"> {words(line)}" for line in notes.splitlines()]
    whole = notes_about(made.arrival.place, made.ready.gathered.group)
    cut = ["(shortened: no room)"] if notes != whole else []
    return "\n".join(["**Notes about the channel**", *lines, *cut])


def _shortened(made: Preview) -> str:
    """The sentence about what is left out because the model there reads little at once."""
    prompt, whole = made.ready.prompt, made.ready.prompt.whole
    if whole is None:
        return ""
    lost = [
        (whole.shown > prompt.shown, f"{count(whole.shown - prompt.shown, 'older message')}"),
        (whole.group != prompt.group, "a part of the notes about the channel"),
        (whole.rolling != prompt.rolling, "a part of the summary" if prompt.rolling else "the summary"),
        (whole.durable > prompt.durable, f"{count(whole.durable - prompt.durable, 'memory')}"),
    ]
    lines = [f"- {what}" for is_lost, what in lost if is_lost]
    head = f"**Left out because the model here reads {prompt.reads:,} tokens at once**"
    return "\n".join([head, *lines]) if lines else ""


def _person(made: Preview) -> str:
    """The section about the person, and what is there for everybody."""
    _, *sender = made.ready.prompt.sender.splitlines()
    lines = ["**About you**", *map(plain, sender)]
    soul = made.ready.gathered.who.soul
    if soul.user:
        lines.append(f"- what my personality says about you: {words(soul.user)}")
    base, own = made.ready.gathered.texts
    besides = ["my rules", *(["my personality"] if soul else [])]
    besides += ["who my owners are"] if made.ready.gathered.owners else []
    files = len(base) + len(own)
    besides += [f"{count(files, 'text')} by whoever runs me"] if files else []
    # The empty line ends the list: without it the next line would be a part of the last row.
    return "\n".join([*lines, "", f"Everybody also gets there: {', '.join(besides)}."])


def _left_out(left_out: Mapping[str, Sequence[Item]], facts: Facts, line: Line) -> str:
    groups = [f"{WHY[why]} ({len(those)})\n" + "\n".join(map(line, those)) for why, those in left_out.items()]
    lines = [
        f"- {count(number, 'memory')} that only your persona {name(one)} has"
        for one, number in facts.elsewhere.items()
        if number
    ]
    groups += ["\n".join(["Other personas", *lines])] if lines else []
    parts = ["**Left out**", *groups] if groups else []
    if facts.tools:
        also = ", and the earlier messages of this conversation" if facts.archive else ""
        parts.append(
            "(The model can also search what I remember about you by itself, without what is private or "
            f"confidential above{also}.)"
        )
    return "\n".join(parts)


def _group(title: str, lines: Sequence[str], number: int) -> str:
    return "\n".join([f"**{title}** ({number})", *lines])
