"""The prompt of one turn, from values to a model request: stable blocks first, then one user message.

Order (DNAM's, with its titles and `---` separators): sender, durable memory, rolling summary, recent
conversation, replied-to message, user message. Empty sections are left out. Every section has its own cap;
when the whole is still over the budget, the recent conversation gives way oldest first, then notes about
the group, then notes about the sender. System, sender and message are never cut.
All lengths are UTF-16 units. Pure: the present is an argument.
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


@dataclass(frozen=True, slots=True)
class PersonaNote:
    """The persona a person talks as: its name, their description of it, and their other personas."""

    name: str
    description: str = ""
    others: tuple[str, ...] = ()


Section = tuple[str, tuple[str, ...]]
"""A title and the texts below it."""


@dataclass(frozen=True, slots=True)
class Materials:
    """All that goes into one turn's prompt.

    `me` is ourselves. `owners` are the names and ids of ours; a name is "" where it is not known. `persona`
    is None for somebody who has only one. `soul` is who we are, as sections in order; with an identity it
    stands in place of the default one. `content` are the context files in order; `group` notes about the
    channel, what matters most first; `durable` the chosen items' lines, best first; `rolling` the summary;
    `window` the recent talk without the message itself, oldest first.
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
    """Caps in UTF-16 units: of the recent conversation (DISCOCLAW_MESSAGE_HISTORY_BUDGET), and of it all."""

    history: int = 3000
    total: int = 48_000


@dataclass(frozen=True, slots=True)
class Assembled:
    """What the model is sent. `shown` counts the messages of the window that made it in."""

    system: tuple[SystemBlock, ...]
    user: str
    shown: int


def assemble(materials: Materials, budget: Budget) -> Assembled:
    """The system blocks and the user message of a turn."""
    fixed = _fixed_sections(materials)
    lines = recent_lines(materials.window, materials.me, budget.history)
    durable = [quote_entry(line) for line in materials.durable]
    group = quote(materials.group)
    while True:
        system = system_blocks(materials, group)
        user = _join(fixed, durable, materials.rolling, lines)
        excess = sum(utf16_length(block.text) for block in system) + utf16_length(user) - budget.total
        if excess <= 0 or not (lines or group or durable):
            return Assembled(system, user, len(lines))
        if lines:
            lines = _without_oldest(lines, excess)
        elif group:
            group = clip(group, max(0, utf16_length(group) - excess))
        else:
            durable.pop()


def system_blocks(materials: Materials, group: str) -> tuple[SystemBlock, ...]:
    """Identity, rules and context files, the same for every turn, then what belongs to the place.

    A cache breakpoint stands behind each of the two, so that a provider's prompt cache hits within a
    place, and at least for the first block across places.
    """
    owners = _owners(materials.owners)
    stable = "\n\n".join([*_who(materials), *filter(None, [owners]), behaviour.RULES, *materials.content])
    notes = f"{titles.GROUP}\n{group}" if group else ""
    parts = [_place(materials.message.place), *materials.place_content, notes]
    return (SystemBlock(stable, cache=True), SystemBlock("\n\n".join(filter(None, parts)), cache=True))


def _who(materials: Materials) -> list[str]:
    """Who we are: the default identity, or the soul where it has one, and what else the soul says."""
    hatched = any(title == titles.SOUL_IDENTITY for title, _ in materials.soul)
    default = behaviour.ON_DISCORD if hatched else behaviour.IDENTITY
    return [default.format(name=speaker(materials.me.name)), *map(_section, materials.soul)]


def _owners(owners: Sequence[tuple[str, str]]) -> str:
    """A line that names our owners; "" where there are none."""
    people = [f"{speaker(name) if name else 'somebody'} (id {one})" for name, one in owners]
    if len(people) < 2:
        return behaviour.OWNER.format(people=people[0]) if people else ""
    return behaviour.OWNERS.format(people=f"{', '.join(people[:-1])} and {people[-1]}")


def _section(section: Section) -> str:
    """A title with its texts; what was stored is data, so nothing in it passes for structure."""
    title, texts = section
    if title == titles.TRAITS:
        return "\n".join([title, *(f"- {quote_entry(text)}" for text in texts)])
    return "\n".join([title, *map(quote, texts)])


def _without_oldest(lines: list[str], excess: int) -> list[str]:
    """The lines without as many of the oldest as make up for `excess`."""
    for index, line in enumerate(lines):
        if excess <= 0:
            return lines[index:]
        excess -= utf16_length(line) + 1
    return []


def recent_lines(window: Sequence[Said], me: Me, max_chars: int) -> list[str]:
    """The newest messages that fit, oldest first, one entry `[Name]: text` each; a giant last one is cut."""
    names = display_names(window, me)
    lines: list[str] = []
    room = max_chars
    for said in reversed(window):
        line = entry(said, names)
        cost = utf16_length(line) + 1
        if cost > room:
            if not lines and room > 80:
                lines.append(clip(line, room - 1))
            break
        lines.append(line)
        room -= cost
    return lines[::-1]


def entry(said: Said, names: dict[str, str]) -> str:
    """One message as `[Name]: text`, the owner and guests marked."""
    mark = " (owner)" if said.is_owner else " (guest)" if said.guest else ""
    return f"[{names[said.author_id]}{mark}]: {quote_entry(said.text)}"


def display_names(window: Sequence[Said], me: Me) -> dict[str, str]:
    """A name for each author of the window, by id; two people of one name are told apart by a number."""
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
    """Text that stands between quotation marks of ours: it has no line ends, and does not close them."""
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
        ours = speaker(materials.me.name)
        whose = ours if message.quoted.by_us else speaker(message.quoted.author)
        if not message.quoted.by_us and whose.casefold() == ours.casefold():
            whose += " #2"
        quoted = clip(message.quoted.text, QUOTED_MAX)
        replied_to = f"{titles.REPLIED_TO}\n[{whose}]: {quote_entry(quoted)}"
    text = with_attachments(message.text, message.attachments)
    return _Fixed(sender, replied_to, f"{titles.MESSAGE}\n{quote(text)}")


def _sender_name(materials: Materials) -> str:
    """The name the sender's lines have in the recent conversation, or would have."""
    author = materials.message.author
    asking = Said(materials.message.id, author.id, author.name, "", materials.now_ms)
    return display_names([*materials.window, asking], materials.me)[author.id]


def _persona(persona: PersonaNote | None) -> str:
    """A line about the persona; the description is the person's own, and stays between quotation marks."""
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
