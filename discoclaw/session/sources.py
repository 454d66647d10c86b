"""The sources of `Gathered`: a small one for each field, over the part of memory that has the data."""

from collections.abc import Mapping, Sequence

from discoclaw.core.errors import MemoryFault
from discoclaw.core.history import MAIN, Branches
from discoclaw.core.profile import Profile
from discoclaw.core.subject import BOT
from discoclaw.core.view import View
from discoclaw.memory.conversations.rolling import RollingMemory
from discoclaw.memory.cursors import Cursors, names_of
from discoclaw.memory.off import AnyMemory, NoGroups, NoLastUsed, NoProfiles, NoSummaries
from discoclaw.memory.people.groups import Groups
from discoclaw.memory.people.last_used import LastUsed
from discoclaw.memory.people.profiles import Profiles
from discoclaw.prompt.assemble import PersonaNote
from discoclaw.session.arrival import Arrival
from discoclaw.session.content import Content, Texts
from discoclaw.session.gather import Items, Owners, Who, who_for


class ItemSource:
    """The author's items from their ledger. Empty if the author's words may not be stored."""

    name, nothing = "what is remembered", Items()

    def __init__(self, memory: AnyMemory) -> None:
        self._memory = memory

    def in_ram(self, arrival: Arrival) -> Items | None:
        if not arrival.permission.holds:
            return Items()
        try:
            view = self._memory.view_in_ram(arrival.subject, arrival.persona)
        except MemoryFault:
            return None
        if view is None:
            return None
        return self._visible(arrival, view)

    async def read(self, arrival: Arrival) -> Items:
        return self._visible(arrival, await self._memory.view(arrival.subject, arrival.persona))

    def _visible(self, arrival: Arrival, view: View) -> Items:
        """The items that may be shown where the author speaks, with the branches at the same moment."""
        in_dm = arrival.in_dm
        items = view.visible(in_dm=in_dm)
        branches = self._memory.branches_in_ram(arrival.subject)
        if branches is None:
            return Items(items, arrival.persona)
        return Items(
            items, arrival.persona or branches.current, _persona(branches, arrival.persona, in_dm=in_dm)
        )


def _persona(branches: Branches, branch: str | None, *, in_dm: bool) -> PersonaNote | None:
    """The note about the persona; None if the person has only `main`."""
    if len(branches.all) == 1 and branch in (None, MAIN):
        return None
    name = branch or branches.current
    known = branches.all.get(name)
    about = known.persona if known is not None and (in_dm or not known.private) else ""
    return PersonaNote(name, about, tuple(one for one in branches.all if one != name))


class SoulSource:
    """The bot's personality: its own memory, overridden by the files of the content folder."""

    name, nothing = "the personality", Who()

    def __init__(self, memory: AnyMemory, content: Content) -> None:
        self._memory = memory
        self._content = content

    def in_ram(self, arrival: Arrival) -> Who | None:
        files = self._content.soul_in_ram()
        try:
            view = self._memory.view_in_ram(BOT)
        except MemoryFault:
            return None
        if files is None or view is None:
            return None
        return who_for(arrival, files, view)

    async def read(self, arrival: Arrival) -> Who:
        files = self._content.soul_in_ram() or await self._content.soul()
        try:
            view = await self._memory.view(BOT)
        except MemoryFault:
            return who_for(arrival, files, None)
        return who_for(arrival, files, view)


class UsedSource:
    """When the author's items were last used."""

    name = "the times of use"
    nothing: Mapping[str, int] = {}

    def __init__(self, last_used: LastUsed | NoLastUsed) -> None:
        self._last_used = last_used

    def in_ram(self, arrival: Arrival) -> Mapping[str, int] | None:
        if not arrival.permission.holds:
            return {}
        return self._last_used.of(arrival.subject) if self._last_used.complete(arrival.subject) else None

    async def read(self, arrival: Arrival) -> Mapping[str, int]:
        return await self._last_used.load(arrival.subject)


class SummarySource:
    """The conversation's rolling summary."""

    name, nothing = "the summary", ""

    def __init__(self, rolling: RollingMemory | NoSummaries) -> None:
        self._rolling = rolling

    def in_ram(self, arrival: Arrival) -> str | None:
        known = self._rolling.in_ram(arrival.session_key)
        return known.summary if known is not None else None

    async def read(self, arrival: Arrival) -> str:
        return (await self._rolling.get(arrival.session_key)).summary


class NameSource:
    """Names of people in the conversation's summary, by id. A DM has one person."""

    name = "the names in the summary"
    nothing: Mapping[str, str] = {}

    def __init__(self, cursors: Cursors) -> None:
        self._cursors = cursors

    def in_ram(self, arrival: Arrival) -> Mapping[str, str] | None:
        known = {} if arrival.in_dm else self._cursors.in_ram(f"people-{arrival.session_key}")
        return names_of(known) if known is not None else None

    async def read(self, arrival: Arrival) -> Mapping[str, str]:
        return names_of(await self._cursors.get(f"people-{arrival.session_key}"))


class GroupSource:
    """The notes from the channel's own memory."""

    name, nothing = "what the channel is about", ""

    def __init__(self, groups: Groups | NoGroups) -> None:
        self._groups = groups

    def in_ram(self, arrival: Arrival) -> str | None:
        return self._groups.notes_in_ram(arrival.place)

    async def read(self, arrival: Arrival) -> str:
        return await self._groups.notes(arrival.place)


class OwnerSource:
    """The bot's owners, with the names under which they last spoke."""

    name = "the owners' names"

    def __init__(self, owners: Sequence[str], profiles: Profiles | NoProfiles) -> None:
        self._owners = sorted(owners)
        self._profiles = profiles
        self.nothing: Owners = tuple(("", one) for one in self._owners)

    def in_ram(self, arrival: Arrival) -> Owners | None:
        if not all(map(self._profiles.at_hand, self._owners)):
            return None
        return tuple((_name(self._profiles.in_ram(one)), one) for one in self._owners)

    async def read(self, arrival: Arrival) -> Owners:
        return tuple([(_name(await self._profiles.get(one)), one) for one in self._owners])


def _name(profile: Profile | None) -> str:
    return profile.name if profile is not None else ""


class TextSource:
    """The context files for the place."""

    name = "the context files"
    nothing: Texts = ((), ())

    def __init__(self, content: Content) -> None:
        self._content = content

    def in_ram(self, arrival: Arrival) -> Texts | None:
        return self._content.in_ram(arrival.place)

    async def read(self, arrival: Arrival) -> Texts:
        return await self._content.of(arrival.place)
