"""What is remembered at a message: items, summary, who we are; and of the items, those that matter now.

Everything is read from RAM where it is at hand, and waited for a short while where it is not. None of it can
prevent a reply.
"""

import asyncio
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from discoclaw.core.errors import MemoryFault
from discoclaw.core.history import MAIN, Branches
from discoclaw.core.item import Item
from discoclaw.core.message import Inbound, Place, Said
from discoclaw.core.ports import Signals
from discoclaw.core.profile import Profile
from discoclaw.core.query import Query
from discoclaw.core.subject import user_subject
from discoclaw.core.view import EMPTY, View
from discoclaw.memory.conversations.rolling import NOTHING
from discoclaw.memory.people.profiles import Profiles
from discoclaw.memory.subjects.store import Memory
from discoclaw.prompt.assemble import PersonaNote
from discoclaw.recall.query import in_context, parse
from discoclaw.recall.select import Chosen, choose
from discoclaw.session.finding import Pool
from discoclaw.session.meaning import Question
from discoclaw.session.parts import Parts, soon, whose
from discoclaw.session.who import Who, who_for

T = TypeVar("T")


Owners = tuple[tuple[str, str], ...]
"""Names and ids; a name is "" where it is not known."""


@dataclass(frozen=True, slots=True)
class Recalled:
    """What is remembered of a person that may be shown here: active items, and the branch they are of.

    `branch` is None where nothing could be read; `persona` is what the model is told of it, if anything.
    `accessed` says when (ms) items were last used, by id, as far as that is known; `rolling` is the summary,
    `who` the personality. `group` is what the channel's own memory says, `owners` are ours.
    """

    items: tuple[Item, ...] = ()
    branch: str | None = None
    persona: PersonaNote | None = None
    accessed: Mapping[str, int] = field(default_factory=dict)
    rolling: str = ""
    who: Who = field(default_factory=Who)
    group: str = ""
    owners: Owners = ()


async def remembered(parts: Parts, message: Inbound) -> Recalled:
    """All that memory has for a message, before anybody asks what of it matters."""
    reading = who_for(message, parts.content, parts.memory, parts.choices)
    # Beside each other: on a disk that hangs a reply waits for all of them as long as for one.
    group, owners = _beside(parts, message.place)
    recalled, who, accessed, rolling = await asyncio.gather(
        _recall(parts, message),
        soon(reading, Who(), "the personality"),
        _accessed(parts, message),
        _rolling(parts, message.session_key),
    )
    recalled = replace(recalled, group=await group, owners=await owners)
    return replace(recalled, who=who, accessed=accessed, rolling=rolling)


async def called_for(
    parts: Parts,
    message: Inbound,
    recalled: Recalled,
    window: Sequence[Said],
    question: Question | None,
) -> tuple[Chosen, ...]:
    """The items that go into the prompt, given the talk before the message and what it means."""
    recent = "\n".join(said.text for said in window[-2:])
    replied_to = message.quoted.text if message.quoted is not None else ""
    query = parse(message.text, replied_to=replied_to, recent=recent)
    cosines = await _cosines(parts, message, question, recalled.items)
    pool = await _pool(parts, message, recalled, query, cosines)
    return choose(
        parts.recall,
        query,
        pool.items,
        max_chars=parts.inject_chars,
        now_ms=parts.clock(),
        signals=Signals(cosines, recalled.accessed, pool.corpus, own_name=message.author.name),
    )


def question(parts: Parts, message: Inbound) -> Question | None:
    """Begin to find out what the message means; None without vectors, or where nothing is to be kept.

    Only the person's own words are asked about: others may want nothing of theirs to be sent around.
    """
    subject = whose(parts, message)
    if parts.meaning is None or subject is None:
        return None
    window = parts.windows.use(message.session_key).before(message.id)
    before = [said.text for said in window[-2:] if said.author_id == message.author.id]
    text = in_context(message.text, "\n".join(before))
    names = {parts.me().name, message.author.name, *(said.name for said in window)}
    return parts.meaning.ask(subject, text, private=message.place.private, names=names)


async def _recall(parts: Parts, message: Inbound) -> Recalled:
    if parts.memory is None or not parts.remembers(message.author.id):
        return Recalled()
    subject, branch = user_subject(message.author.id), parts.personas.of(message.place)
    memory = parts.memory
    try:
        known, branches = memory.view_in_ram(subject, branch), memory.branches_in_ram(subject)
    except MemoryFault:
        known = None
    view = known or EMPTY
    if known is None:
        view, branches = await soon(_look(memory, subject, branch), (EMPTY, None), "what is remembered")
    in_dm = message.place.kind == "dm"
    items = view.visible(in_dm=in_dm)
    if branches is None:
        return Recalled(items, branch)
    return Recalled(items, branch or branches.current, _persona(branches, branch, in_dm=in_dm))


async def _look(memory: Memory, subject: str, branch: str | None) -> tuple[View, Branches | None]:
    """What a branch says, and the branches of the same moment."""
    view = await memory.view(subject, branch)
    return view, memory.branches_in_ram(subject)


async def _accessed(parts: Parts, message: Inbound) -> Mapping[str, int]:
    """When the person's items were last used, where that counts; waited for no longer than they are."""
    access, subject = parts.access, user_subject(message.author.id)
    if access is None or not parts.fade or not parts.remembers(message.author.id):
        return {}
    if access.complete(subject):
        return access.of(subject)
    return await soon(access.load(subject), access.of(subject), "the times of use")


def _persona(branches: Branches, branch: str | None, *, in_dm: bool) -> PersonaNote | None:
    """What the model is told of the persona; nothing for a person who has no other than `main`."""
    if len(branches.all) == 1 and branch in (None, MAIN):
        return None
    name = branch or branches.current
    known = branches.all.get(name)
    about = known.persona if known is not None and (in_dm or not known.private) else ""
    return PersonaNote(name, about, tuple(one for one in branches.all if one != name))


async def _rolling(parts: Parts, session_key: str) -> str:
    if parts.rolling is None:
        return ""
    rolling = parts.rolling.in_ram(session_key)
    if rolling is None:
        rolling = await soon(parts.rolling.get(session_key), NOTHING, "the summary")
    return rolling.summary


def _beside(parts: Parts, place: Place) -> tuple[Awaitable[str], Awaitable[Owners]]:
    """What the channel's own memory says, and our owners: mostly at hand, else they are read meanwhile."""
    group = parts.groups.notes_in_ram(place) if parts.groups is not None else ""
    ids, profiles = sorted(parts.owners), parts.profiles
    if group is None and parts.groups is not None:
        reading = soon(parts.groups.notes(place), "", "what the channel is about")
        notes: Awaitable[str] = asyncio.create_task(reading)
    else:
        notes = _known(group or "")
    nameless = tuple(("", one) for one in ids)
    if profiles is None or all(map(profiles.at_hand, ids)):
        named = tuple((_name(profiles.in_ram(one)), one) for one in ids) if profiles is not None else nameless
        return notes, _known(named)
    return notes, asyncio.create_task(soon(_owners(profiles, ids), nameless, "our owners' names"))


async def _owners(profiles: Profiles, ids: Sequence[str]) -> Owners:
    return tuple([(_name(await profiles.get(one)), one) for one in ids])


def _name(profile: Profile | None) -> str:
    return profile.name if profile is not None else ""


def _known(value: T) -> asyncio.Future[T]:
    """What nobody has to wait for."""
    future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
    future.set_result(value)
    return future


async def _cosines(
    parts: Parts, message: Inbound, question: Question | None, items: Sequence[Item]
) -> Mapping[str, float]:
    """How near the items are to what the message means. What has no vector yet gets one later."""
    subject = whose(parts, message)
    if parts.meaning is None or subject is None:
        return {}
    parts.meaning.embedding.want(subject, items)
    return await question.cosines(items) if question is not None else {}


async def _pool(
    parts: Parts, message: Inbound, recalled: Recalled, query: Query, cosines: Mapping[str, float]
) -> Pool:
    """What of it is ranked: all, or of a big memory what may be meant."""
    if parts.finder is None:
        return Pool(recalled.items)
    subject = user_subject(message.author.id)
    return await parts.finder.pool(subject, recalled.branch, recalled.items, query, cosines=cosines)
