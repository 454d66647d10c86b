"""Step 1 of a turn: collects everything known for a message, before later steps choose what matters.

What is in RAM is taken from there, without a task; the rest is read concurrently, with a short deadline. No
failure here prevents a reply. Independent of prompts and of how items are ranked.
"""

import asyncio
import logging
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import aiofiles

from discoclaw.core.errors import MemoryFault
from discoclaw.core.history import MAIN
from discoclaw.core.item import Item
from discoclaw.core.message import Place
from discoclaw.core.profile import Profile
from discoclaw.core.subject import BOT
from discoclaw.core.text import clip
from discoclaw.core.values import dataclass, field, replace
from discoclaw.core.view import EMPTY, View
from discoclaw.memory.conversations.rolling import NoSummaries, RollingMemory
from discoclaw.memory.cursors import Cursors, names_of
from discoclaw.memory.people.groups import Groups
from discoclaw.memory.people.last_used import LastUsed
from discoclaw.memory.people.profiles import Profiles
from discoclaw.memory.subjects.store import AnyMemory
from discoclaw.prompt.assemble import PersonaNote
from discoclaw.session.turn import Turn
from discoclaw.soul.soul import Soul, exists, of_view
from discoclaw.store.files import read_in_thread
from discoclaw.store.threads import DISK, WAIT_S

log = logging.getLogger(__name__)

Texts = tuple[tuple[str, ...], tuple[str, ...]]
"""The context files' texts: those for everywhere, ordered by file name, and those for one place."""
Owners = tuple[tuple[str, str], ...]
"""Names and ids; a name is "" if it is unknown."""


@dataclass(frozen=True, slots=True)
class Who:
    """The soul shown to one person. `hatched`: there is one, or that is unknown."""

    soul: Soul = field(default=Soul())
    hatched: bool = True


@dataclass(frozen=True, slots=True)
class Items:
    """A person's active items that may be shown where they speak, and the branch they come from.

    `branch` is None if nothing could be read. `persona` is what the model is told about the branch, if
    anything.
    """

    active: tuple[Item, ...] = ()
    branch: str | None = None
    persona: PersonaNote | None = None


@dataclass(frozen=True, slots=True)
class Gathered:
    """Everything known for one message.

    `used` has the times (ms) items were last used, by id, where that counts. `summary` is the conversation's,
    `names` what people are called in it, by id, `group` the notes about the channel, `texts` the context
    files.
    """

    items: Items = field(default=Items())
    who: Who = field(default=Who())
    used: Mapping[str, int] = field(default_factory=dict)
    summary: str = ""
    names: Mapping[str, str] = field(default_factory=dict)
    group: str = ""
    owners: Owners = ()
    texts: Texts = ((), ())


_CALLED: Mapping[str, str] = {
    "items": "what is remembered",
    "who": "the personality",
    "used": "the times of use",
    "summary": "the summary",
    "names": "the names in the summary",
    "group": "what the channel is about",
    "owners": "the owners' names",
    "texts": "the context files",
}
"""The fields of `Gathered` as the log calls them."""


@dataclass(frozen=True, slots=True)
class Gatherer:
    """Collects what the parts of memory know. `last_used` is None where the times of use don't count."""

    memory: AnyMemory
    content: "Content"
    last_used: LastUsed | None
    rolling: RollingMemory | NoSummaries
    cursors: Cursors
    groups: Groups
    profiles: Profiles
    owners: Sequence[str]

    async def gather(self, turn: Turn) -> Gathered:
        """Return everything known for a message. What can't be read in time is as if there were nothing."""
        # The fields of `Gathered` whose values are in RAM; None for those that have to be read first.
        holds, subject = turn.permission.holds, turn.subject
        # Who wants no memory has neither items nor times of use. A DM has one person.
        items: Items | None = Items()
        used: Mapping[str, int] | None = {}
        if holds:
            view = self._view_in_ram(subject, turn.persona)
            items = self._visible(turn, view) if view is not None else None
            if self.last_used is not None:
                used = self.last_used.of(subject) if self.last_used.complete(subject) else None
        files, view = self.content.soul_in_ram(), self._view_in_ram(BOT)
        summary = self.rolling.in_ram(turn.session_key)
        names = {} if turn.in_dm else self.cursors.in_ram(f"people-{turn.session_key}")
        at_hand = all(map(self.profiles.at_hand, self.owners))
        found: dict[str, Any] = {
            "items": items,
            "who": _who(turn, files, view) if files is not None and view is not None else None,
            "used": used,
            "summary": summary.summary if summary is not None else None,
            "names": names_of(names) if names is not None else None,
            "group": self.groups.notes_in_ram(turn.place),
            "owners": tuple((_name(self.profiles.in_ram(one)), one) for one in self.owners)
            if at_hand
            else None,
            "texts": self.content.in_ram(turn.place),
        }
        late = [name for name, value in found.items() if value is None]
        if late:
            nothing = Gathered(owners=tuple(("", one) for one in self.owners))
            readings = {name: asyncio.create_task(self._read(name, turn)) for name in late}
            await asyncio.wait(readings.values(), timeout=WAIT_S)
            for name, reading in readings.items():
                found[name] = getattr(nothing, name)
                if not reading.done():  # it goes on, so that its result is in RAM for the next reply
                    log.warning("answering without %s: the disk does not answer", _CALLED[name])
                    reading.add_done_callback(lambda one: one.cancelled() or one.exception())
                    continue
                try:
                    found[name] = reading.result()
                except (MemoryFault, OSError) as fault:
                    log.warning("answering without %s: %s", _CALLED[name], fault)
        return Gathered(**found)

    async def _read(self, name: str, turn: Turn) -> Any:
        """Read a field of `Gathered` from disk. Raises MemoryFault or OSError."""
        match name:
            case "items":
                return self._visible(turn, await self.memory.view(turn.subject, turn.persona))
            case "who":
                files = self.content.soul_in_ram() or await self.content.soul()
                try:
                    return _who(turn, files, await self.memory.view(BOT))
                except MemoryFault:
                    return _who(turn, files, None)
            case "used":
                return await self.last_used.load(turn.subject) if self.last_used is not None else {}
            case "summary":
                return (await self.rolling.get(turn.session_key)).summary
            case "names":
                return names_of(await self.cursors.get(f"people-{turn.session_key}"))
            case "group":
                return await self.groups.notes(turn.place)
            case "owners":
                return tuple([(_name(await self.profiles.get(one)), one) for one in self.owners])
            case _:
                return await self.content.of(turn.place)

    def _view_in_ram(self, subject: str, branch: str | None = None) -> View | None:
        try:
            return self.memory.view_in_ram(subject, branch)
        except MemoryFault:
            return None

    def _visible(self, turn: Turn, view: View) -> Items:
        """The items that may be shown where the author speaks, with the branches at the same moment."""
        in_dm, branch = turn.in_dm, turn.persona
        items, branches = view.visible(in_dm=in_dm), self.memory.branches_in_ram(turn.subject)
        if branches is None:
            return Items(items, branch)
        name = branch or branches.current
        if len(branches.all) == 1 and branch in (None, MAIN):
            return Items(items, name)
        known = branches.all.get(name)
        about = known.persona if known is not None and (in_dm or not known.private) else ""
        return Items(items, name, PersonaNote(name, about, tuple(one for one in branches.all if one != name)))


def _name(profile: Profile | None) -> str:
    return profile.name if profile is not None else ""


def _who(turn: Turn, files: Soul, view: View | None) -> Who:
    """The bot as a message's author sees it: its own memory, overridden by the personality's files.

    `view` is the bot's own memory, None if it can't be read.
    """
    author, kept = turn.message.author, view or EMPTY
    soul = files.over(of_view(kept, with_whom=author.id, in_dm=turn.in_dm))
    if soul.user and (not author.is_owner or turn.permission.opted_out):
        soul = replace(soul, user="")
    return Who(soul, view is None or bool(files) or exists(kept))


# ----------------------------------------------------------------------
# The context files an admin writes: `content/discord/base/*.md` for everywhere, one file a channel, `dm.md`.
#
# How the bot uses its memory is in `base/core.md`, below `## Memory`. Where no text has that heading, because
# the folder is older than it, the program's own section is used; an empty section is none.
# The personality may be there too: `content/soul/identity.md`, `user.md`, `philosophy.md`.
#
# Files are read when used, and again only after a change, so that an edit takes effect without a restart. A
# file that cannot be read is left out with a warning.

MOST_KNOWN = 1_000
MAX_FILE = 20_000
"""The most UTF-16 units of a context file that are used."""


PACKAGED: Final = next(
    folder for above in (1, 2) if (folder := Path(__file__).parents[above] / "content").exists() or above == 2
)
"""The `content/` that comes with the program: in an installed package, or in the checkout."""
_SOUL: Final = "/"  # no file's name
_MEMORY = re.compile(r"^## Memory[ \t]*$(.*?)(?=^##? |\Z)", re.MULTILINE | re.DOTALL)


class Content:
    """Context files below `folder` (the `content` folder), or the package's own until somebody makes one."""

    def __init__(self, folder: Path) -> None:
        self._own = folder
        self._known: dict[str, tuple[dict[Path, int], Any]] = {}
        """What was made of files, and when each of them had been changed, by its name."""

    @property
    def _folder(self) -> Path:
        return self._own if _changed(self._own) else PACKAGED

    def in_ram(self, place: Place) -> Texts | None:
        """The texts if they were read and no file changed since, else None. Costs a `stat` for each file."""
        found: Texts | None = self._look(_file_name(place))
        return found

    def soul_in_ram(self) -> Soul | None:
        """The personality if it was read and no file changed since, else None. Costs a `stat` for each."""
        found: Soul | None = self._look(_SOUL)
        return found

    def _look(self, name: str) -> Any:
        looked_at, found = self._known.get(name, ({}, None))
        return None if any(_changed(path) != changed for path, changed in looked_at.items()) else found

    async def soul(self) -> Soul:
        """The personality, read from its files again."""
        looked_at = {self._own: _changed(self._own)}  # first, so that no change is missed
        files = [self._folder / "soul" / f"{name}.md" for name in ("identity", "user", "philosophy")]
        looked_at.update((path, _changed(path)) for path in files)
        identity, user, philosophy = [await _text(path) for path in files]
        found = Soul(identity, user, philosophy)
        self._known[_SOUL] = (looked_at, found)
        return found

    async def of(self, place: Place) -> Texts:
        """The texts, read from their files again."""
        name = _file_name(place)
        looked_at = {self._own: _changed(self._own)}  # first, so that no change is missed
        common, channels = self._folder / "discord" / "base", self._folder / "discord" / "channels"
        looked_at[common] = _changed(common)
        base = await read_in_thread(lambda: sorted(common.glob("*.md")))
        own = [channels / f"{name}.md"] if name else []
        packaged = PACKAGED / "discord" / "base" / "core.md"
        looked_at.update((path, _changed(path)) for path in [packaged, *base, *own])
        found = await _texts(base), await _texts(own)
        if not any(map(_MEMORY.search, found[0])) and (rules := _MEMORY.search(await _text(packaged))):
            found = (*found[0], rules[0].strip()), found[1]
        if len(self._known) >= MOST_KNOWN:
            self._known.clear()
        self._known[name] = (looked_at, found)
        return found


def _file_name(place: Place) -> str:
    """The name of a place's file. It comes from Discord, so only a plain file name may choose a file."""
    if place.kind == "dm":
        return "dm"
    name = os.path.basename(place.group_name)
    return "" if name.lower() == "dm" else name  # `dm.md` is for DMs, not for a channel of that name


def _changed(path: Path) -> int:
    """When a file or folder was last changed (ns); 0 if it does not exist or cannot be read."""
    try:
        return os.stat(path).st_mtime_ns
    except (OSError, ValueError):
        return 0


async def _texts(paths: Sequence[Path]) -> tuple[str, ...]:
    """The texts of some files; empty ones are left out."""
    return tuple([text for path in paths if (text := await _text(path))])


async def _text(path: Path) -> str:
    """A file's text, stripped; "" if it cannot be read."""
    try:
        async with aiofiles.open(path, encoding="utf-8", executor=DISK) as file:
            return clip((await file.read()).strip(), MAX_FILE)
    except FileNotFoundError:
        return ""
    except (OSError, ValueError) as error:
        log.warning("the context file %a is left out: %s", path.name, type(error).__name__)
        return ""
