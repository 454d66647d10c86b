"""Assembles the prompt of one turn: the system blocks, then one user message in sections.

The order of the sections, their titles and the `---` separators are DNAM's: sender, durable memory, rolling
summary, recent conversation, replied-to message, user message. Empty sections are left out. Every section has
its own limit. If the prompt is still over the budget, the recent conversation is shortened first (oldest
messages first), then notes about the channel, then durable memory. The rest of the system prompt, the sender
and the message are never cut.
All lengths are UTF-16 units. Pure: the current time is an argument.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from discoclaw.core import titles
from discoclaw.core.message import Inbound, Me, Place, Said, with_attachments
from discoclaw.core.model import SystemBlock
from discoclaw.core.text import clip, collapse, scrub, speaker, utf16_length
from discoclaw.core.times import iso_ms
from discoclaw.prompt import behaviour
from discoclaw.prompt.quote import quote, quote_entry

QUOTED_MAX = 1000
"""Longest part of a replied-to message that is quoted."""


@dataclass(frozen=True, slots=True)
class PersonaNote:
    """The persona a person talks as: its name, the person's description of it, and their other personas."""

    name: str
    description: str = ""
    others: tuple[str, ...] = ()


Section = tuple[str, tuple[str, ...]]
"""A title and the texts below it."""


@dataclass(frozen=True, slots=True)
class Materials:
    """Everything that goes into one turn's prompt.

    `me` is the bot. `owners` are (name, user id) of its owners; a name is "" if it is not known. `persona` is
    None for somebody who has only one. `soul` is the bot's personality as sections in order; if it has an
    identity, that replaces the default one. `content` are the context files in order, `place_content` those
    for this channel. `group` are notes about the channel, the most important first, `durable` the chosen
    items as lines, best first, `rolling` the summary. `window` is the recent conversation without the message
    itself, oldest first.
    """

    message: Inbound
    me: Me
    now_ms: int
    owners: tuple[tuple[str, str], ...] = ()
    soul: tuple[Section, ...] = ()
    content: tuple[str, ...] = ()
    place_content: tuple[str, ...] = ()
    group: str = ""
    persona: PersonaNote | None = None
    durable: tuple[str, ...] = ()
    rolling: str = ""
    window: tuple[Said, ...] = ()


@dataclass(frozen=True, slots=True)
class Budget:
    """Limits in UTF-16 units: `history` for the recent conversation, `total` for the whole prompt.

    They are DISCOCLAW_MESSAGE_HISTORY_BUDGET and DISCOCLAW_PROMPT_BUDGET.
    """

    history: int = 3000
    total: int = 48_000


@dataclass(frozen=True, slots=True)
class Assembled:
    """The prompt, and what of its materials is in it.

    `lines` are the messages of the window, oldest first, and `group` the notes about the channel, both as the
    model reads them. `durable` is how many of the items are in it, from the first. `sender` is the section
    about the person.
    """

    system: tuple[SystemBlock, ...]
    user: str
    lines: tuple[str, ...]
    durable: int
    group: str
    sender: str

    @property
    def shown(self) -> int:
        """How many messages of the window are in it."""
        return len(self.lines)


def assemble(materials: Materials, budget: Budget) -> Assembled:
    """The system blocks and the user message of a turn."""
    fixed = _fixed_sections(materials)
    lines = recent_lines(materials.window, materials.me, budget.history)
    durable = [quote_entry(line) for line in materials.durable]
    group = quote(materials.group)
    while True:  # each round shortens one part by what is too much, so there are only a few
        system = system_blocks(materials, group)
        user = _join(fixed, durable, materials.rolling, lines)
        excess = sum(utf16_length(block.text) for block in system) + utf16_length(user) - budget.total
        if excess <= 0 or not (lines or group or durable):
            return Assembled(system, user, tuple(lines), len(durable), group, fixed.sender)
        if lines:
            lines = _without_oldest(lines, excess)
        elif group:
            group = clip(group, max(0, utf16_length(group) - excess))
        else:
            durable.pop()


def system_blocks(materials: Materials, group: str) -> tuple[SystemBlock, ...]:
    """Two blocks: identity, rules and context files, which are the same in every turn; then the place.

    Both end at a cache breakpoint. So a provider's prompt cache covers both within a place, and the first
    block across places.
    """
    owners = _owners(materials.owners)
    stable = "\n\n".join([*_who(materials), *filter(None, [owners]), behaviour.RULES, *materials.content])
    notes = f"{titles.GROUP}\n{group}" if group else ""
    parts = [_place(materials.message.place), *materials.place_content, notes]
    return (SystemBlock(stable, cache=True), SystemBlock("\n\n".join(filter(None, parts)), cache=True))


def _who(materials: Materials) -> list[str]:
    """The bot's identity: the default one, or the personality's if it has one, and the personality's rest."""
    hatched = any(title == titles.SOUL_IDENTITY for title, _ in materials.soul)
    default = behaviour.ON_DISCORD if hatched else behaviour.IDENTITY
    return [default.format(name=speaker(materials.me.name)), *map(_section, materials.soul)]


def _owners(owners: Sequence[tuple[str, str]]) -> str:
    """The line that names the bot's owners; "" if there are none."""
    people = [f"{speaker(name) if name else 'somebody'} (id {one})" for name, one in owners]
    if len(people) < 2:
        return behaviour.OWNER.format(people=people[0]) if people else ""
    return behaviour.OWNERS.format(people=f"{', '.join(people[:-1])} and {people[-1]}")


def _section(section: Section) -> str:
    """A title with its texts. Stored texts are data, so they are quoted and cannot imitate structure."""
    title, texts = section
    if title == titles.TRAITS:
        return "\n".join([title, *(f"- {quote_entry(text)}" for text in texts)])
    return "\n".join([title, *map(quote, texts)])


def _without_oldest(lines: list[str], excess: int) -> list[str]:
    """The lines without the oldest ones that together are at least `excess` long."""
    for index, line in enumerate(lines):
        if excess <= 0:
            return lines[index:]
        excess -= utf16_length(line) + 1
    return []


def recent_lines(window: Sequence[Said], me: Me, max_chars: int) -> list[str]:
    """The newest messages that fit, oldest first, each as `[Name]: text`.

    If not even the newest one fits, it is cut rather than left out.
    """
    names = display_names(window, me)
    lines: list[str] = []
    left = max_chars
    for said in reversed(window):
        line = entry(said, names)
        cost = utf16_length(line) + 1  # and its line break
        if cost > left:
            if not lines and left > 80:  # less would not be worth reading
                lines.append(clip(line, left - 1))
            break
        lines.append(line)
        left -= cost
    return lines[::-1]


def entry(said: Said, names: dict[str, str]) -> str:
    """One message as `[Name]: text`, with a mark for owners and guests."""
    mark = " (owner)" if said.is_owner else " (guest)" if said.guest else ""
    return f"[{names[said.author_id]}{mark}]: {quote_entry(said.text)}"


def display_names(window: Sequence[Said], me: Me) -> dict[str, str]:
    """A name for each author in the window, by id. People with the same name are numbered: "Sam #2".

    The bot's own name is taken first, so that nobody else can appear under it.
    """
    names = {me.id: speaker(me.name)}
    taken = {names[me.id].casefold()}
    for said in window:
        if said.author_id in names:
            continue
        name = wanted = speaker(said.name)
        count = 1
        while name.casefold() in taken:
            count += 1
            name = f"{wanted} #{count}"
        taken.add(name.casefold())
        names[said.author_id] = name
    return names


def _place(place: Place) -> str:
    if place.kind == "dm":
        return behaviour.DIRECT
    template = behaviour.THREAD if place.kind == "thread" else behaviour.CHANNEL
    about = clip(collapse(_one_line(place.topic)), 300)
    topic = f", whose topic is “{about}”" if about else ""
    group = behaviour.OF_CHANNEL.format(name=speaker(place.group_name)) if place.group_name else ""
    text = template.format(name=speaker(place.name), topic=topic, group=group)
    return text + (behaviour.PRIVATE if place.private else "")


def _one_line(text: str) -> str:
    """Text to put between “ and ”: without line breaks, and without those quotation marks inside."""
    return " ".join(scrub(text).splitlines()).replace("“", '"').replace("”", '"')


@dataclass(frozen=True, slots=True)
class _Fixed:
    """The sections that are never cut."""

    sender: str
    replied_to: str
    message: str


def _fixed_sections(materials: Materials) -> _Fixed:
    message, author = materials.message, materials.message.author
    sender = (
        f"{titles.SENDER}\n- name: {_sender_name(materials)} (id {author.id})\n"
        f"- owner: {'yes' if author.is_owner else 'no'}\n- time: {iso_ms(materials.now_ms)[:16]}Z"
        + _persona(materials.persona)
    )
    replied_to = ""
    if message.quoted is not None:
        # The quoted author may not be in the window, so somebody with the bot's name is told apart here too.
        ours = speaker(materials.me.name)
        whose = ours if message.quoted.by_us else speaker(message.quoted.author)
        if not message.quoted.by_us and whose.casefold() == ours.casefold():
            whose += " #2"
        quoted = clip(message.quoted.text, QUOTED_MAX)
        replied_to = f"{titles.REPLIED_TO}\n[{whose}]: {quote_entry(quoted)}"
    text = with_attachments(message.text, message.attachments)
    return _Fixed(sender, replied_to, f"{titles.MESSAGE}\n{quote(text)}")


def _sender_name(materials: Materials) -> str:
    """The sender's name as the recent conversation has it, so that the model can connect the two."""
    author = materials.message.author
    # Named after everybody in the window, who thus keep the names that their lines have.
    asking = Said(materials.message.id, author.id, author.name, "", materials.now_ms)
    return display_names([*materials.window, asking], materials.me)[author.id]


def _persona(persona: PersonaNote | None) -> str:
    """The lines about the persona. Its description is the person's own text, so it is put in quotes."""
    if persona is None:
        return ""
    about = clip(collapse(_one_line(persona.description)), 500)
    name, *others = (clip(collapse(_one_line(name)), 40) for name in (persona.name, *persona.others))
    line = f"\n- persona: {name}" + (f", described as “{about}”" if about else "")
    return line + (f"\n- other personas: {', '.join(others)}" if others else "")


def _join(fixed: _Fixed, durable: list[str], rolling: str, lines: list[str]) -> str:
    sections = [
        fixed.sender,
        "\n".join([titles.DURABLE, *durable]) if durable else "",
        f"{titles.ROLLING}\n{quote(rolling)}" if rolling else "",
        "\n".join([titles.RECENT, *lines]) if lines else "",
        fixed.replied_to,
        fixed.message,
    ]
    return titles.SEPARATOR.join(section for section in sections if section)
