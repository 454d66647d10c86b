"""Talk as the loops' models read it: in order, each line with a short id, its time and its speaker.

    m1 Thu 2026-11-19 18:06 »[Anna]: I have the dentist tomorrow
    m2 Thu 2026-11-19 18:07 [Ben (guest)]: good luck

`»` marks the lines of the person it is about. Whatever a message says stands behind its speaker or is
indented, so that it cannot imitate a line. Pure.
"""

from collections.abc import Iterable, Mapping
from datetime import tzinfo

from discoclaw.core.message import Said
from discoclaw.core.short_ids import ShortIds
from discoclaw.core.zones import minute
from discoclaw.prompt.memory_block import strip_memory_context
from discoclaw.prompt.quote import quote_entry

OWN = "»"


def transcript(
    talk: Iterable[Said],
    names: Mapping[str, str],
    zone: tzinfo,
    lines: ShortIds,
    own: Iterable[str] = (),
) -> list[str]:
    """The lines of a talk. `names` has each author's by id, `own` are the ids of the marked messages."""
    marked = set(own)
    return [
        f"{lines.of(said.id)} {minute(said.as_of, zone)} {OWN if said.id in marked else ''}"
        f"[{names[said.author_id]}{_mark(said)}]: {quote_entry(strip_memory_context(said.text))}"
        for said in talk
    ]


def _mark(said: Said) -> str:
    return " (owner)" if said.is_owner else " (guest)" if said.guest else ""
