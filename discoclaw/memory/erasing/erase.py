"""Erasing: every byte kept of a person goes, however often the program is killed in the middle of it.

    1  the intent     erasing/<subject>.json {subject, at, sessions, todo}, synced before anything is touched
    2  the tombstone  nothing said or recorded up to `at` is learned or imported again (`tombstones`)
    3  RAM            who holds words of the person is told to let go of them
    4  the files      ledger, durable file, snapshot, cursors, tool log; the summaries of the person's DM and
                      of every conversation whose summary they took part in; their name in what was cleared;
                      their profile, and of groups what rests on their words (`erase_groups`); what was kept
                      aside of any of these
    5  outside        what has to be removed elsewhere (`todo`: a message in the chat), by whoever can, and
                      again until it is done; the intent has only {subject, todo} by then
    6  the intent goes

Step 4 is done in every store that there is, used now or not. Each step can be done twice, and `resume`
finishes at the start what was interrupted. Until 4 is done nothing is remembered of the person: what the
disk does not give away could else be taken over as memory again. An intent that can not be written is a
fault, and nothing has happened.

Whose words are in a summary is known from the cursor `people-<session>` and, for one that an earlier version
wrote, from the sessions in the person's own cursor. The cursors `summary-<session>` are not removed but
advanced to `at`: they hold only ids of messages, and old talk stays seen. The person's DM needs none: its
cursor's name says whose it is, and the tombstone holds for all that was said there.

Kept on purpose: other people's ledgers, and those of groups they had no part in, byte for byte; what a person
chose about being remembered, which outlives what is remembered; and what is not ours: the talk in the chat,
backups, exports, logs. A durable file saved after the erasing is a person's own hand, but only what is new in
it: its items from before stay erased (see `subject`). Knows nothing about Discord.
"""

import contextlib
import logging
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from discoclaw.core.errors import MemoryFault
from discoclaw.core.subject import dm_of, group_of, user_of
from discoclaw.core.times import snowflake_at, valid_ms
from discoclaw.memory.conversations import clears
from discoclaw.memory.conversations.rolling import RollingMemory
from discoclaw.memory.disk import cursors as cursor_files
from discoclaw.memory.disk.cursors import Cursors
from discoclaw.memory.disk.files import in_thread, render_json, safe_id, session_name
from discoclaw.memory.disk.port import (
    CURSORS,
    GROUPS,
    INTENTS,
    LEDGERS,
    PROFILES,
    ROLLING,
    TOOLS,
    Disk,
    Documents,
    FileDocuments,
    Ledgers,
    Log,
)
from discoclaw.memory.erasing import groups as erase_groups
from discoclaw.memory.erasing.groups import EVERY, GroupsErased, GroupStores
from discoclaw.memory.erasing.tombstones import Tombstones

log = logging.getLogger(__name__)
T = TypeVar("T")

OUTSIDE = ("transparency",)
"""Cursors that note something outside, by user id. A note goes only when that is gone, which is a step."""

_JSON = ".json"


def people_of(cursor: Mapping[str, object]) -> set[str]:
    """Whose words are in a summary, by user id, as its cursor `people-<session>` has it."""
    return set(_texts(cursor.get("people")))


@dataclass(frozen=True, slots=True)
class Places:
    """The folders of one store in which there may be something of a person.

    `wipe` destroys what is left of anything that was removed there. Raises OSError.
    """

    ledgers: Documents
    durable: Documents | None
    snapshots: Documents
    rolling: Documents
    cursors: Documents
    intents: Documents
    wipe: Callable[[], None]
    tools: Documents
    beside: Documents
    clears: Log
    profiles: Documents
    groups: Documents
    logs: Ledgers


def places_of(disk: Disk, snapshots: Documents) -> Places:
    """The folders of a store; `snapshots` lie beside all stores."""
    return Places(
        disk.documents(LEDGERS),
        FileDocuments(disk.durable) if disk.durable is not None else None,
        snapshots,
        disk.documents(ROLLING),
        disk.documents(CURSORS),
        disk.documents(INTENTS),
        disk.wipe,
        tools=disk.documents(TOOLS),
        beside=disk.documents(""),
        clears=disk.log(clears.FILE),
        profiles=disk.documents(PROFILES),
        groups=disk.documents(GROUPS),
        logs=disk.ledgers,
    )


@dataclass(frozen=True, slots=True)
class Intent:
    """What is to be erased: everything of `subject` until `at` (ms), and these conversations' summaries.

    `todo` are the steps outside. `at` is None when only those are left.
    """

    subject: str
    at: int | None
    sessions: tuple[str, ...] = ()
    todo: tuple[str, ...] = ()

    def to_json(self) -> dict[str, object]:
        outside: dict[str, object] = {"subject": self.subject, "todo": list(self.todo)}
        return outside if self.at is None else {**outside, "at": self.at, "sessions": list(self.sessions)}


@dataclass(frozen=True, slots=True)
class Erased:
    """What an erasing did. `removed` counts files and notes: 0 when there was nothing.

    `sessions` are the conversations whose summaries are gone, `left` what could not be removed and why,
    `todo` the steps outside that are still to come. `soul`: the bot's personality went along. `groups` are
    the subjects of the groups that the person had part in.
    """

    subject: str
    at: int
    removed: int
    sessions: tuple[str, ...]
    left: tuple[str, ...] = ()
    todo: tuple[str, ...] = ()
    soul: bool = False
    groups: tuple[str, ...] = ()


class Eraser:
    """Erases subjects. Callers hold the subject's lock, and the data folder.

    `told` are called with subject, time (ms) and sessions as soon as the erasing stands; `asked` are asked
    before it for further conversations of which a summary may have words of the subject; `outside` are steps
    that every erasing has, beside those that a note asks for, and those that one of `steps` names for a
    subject, asked in a thread. `beside` are the stores that are not used now.
    `also` remove what lies in no store (step 4): they return how many files there were, what stays, and why.
    `held` are contexts, by subject, in which nobody writes that.
    """

    def __init__(
        self,
        places: Places,
        tombstones: Tombstones,
        *,
        rolling: RollingMemory,
        cursors: Cursors,
        beside: Sequence[Places] = (),
    ) -> None:
        self.told: list[Callable[[str, int, frozenset[str]], None]] = []
        self.asked: list[Callable[[str], Iterable[str]]] = []
        self.outside: set[str] = set()
        self.steps: list[Callable[[str], Collection[str]]] = []
        self.also: list[Callable[[str], tuple[int, list[str]]]] = []
        self.held: list[Callable[[str], contextlib.AbstractAsyncContextManager[None]]] = []
        self.pending: dict[str, Intent] = {}
        self._stuck: dict[str, set[str]] = {}  # by who is erased: the groups that still have their words
        self._intents = places.intents
        self._wipe = places.wipe
        self._everywhere = (places, *beside)
        self._tombstones = tombstones
        self._rolling = rolling
        self._cursors = cursors

    def resume(self, now_ms: int) -> None:
        """Finish what was interrupted. Blocking; nobody else is at work yet. Raises MemoryFault."""
        folder = self._intents
        try:
            folder.remove(_half_written(folder))  # of an erasing that was interrupted before it was noted
            intents = list(_intents(folder, now_ms))
            for intent in intents:
                self.pending[intent.subject] = intent
                if intent.at is not None:
                    self._tombstones.add(intent.subject, intent.at)
        except OSError as error:
            raise MemoryFault(f"an erasing that was interrupted can not be finished: {error}") from error
        for intent in intents:
            if intent.at is not None and not self._finish(intent, intent.at).left:
                log.info("%s: the erasing that was interrupted is finished", intent.subject)
        if waiting := [one for one in self.pending.values() if one.at is None]:
            steps = sorted({step for one in waiting for step in one.todo})
            log.info("%d erasings wait for a step outside: %s", len(waiting), ", ".join(steps))

    def why_not(self, subject: str) -> str | None:
        """Why nothing may be remembered of a subject now; None when it may."""
        stuck = set[str]().union(*self._stuck.values())
        if group_of(subject) is not None and {subject, EVERY} & stuck:
            return f"{subject} has words of somebody who was erased, which could not be removed (see the log)"
        intent = self.pending.get(subject)
        if intent is None or intent.at is None:
            return None
        return (
            f"{subject} was erased, and not everything could be removed (see the log); "
            "nothing is remembered until that is done: erase once more, or start again"
        )

    async def erase(self, subject: str, at: int) -> Erased:
        """Erase a subject. Raises MemoryFault when that can not even be noted; nothing has happened then."""
        known = {session for ask in self.asked for session in ask(subject)}
        async with self._cursors.alone():
            intent = await in_thread(self._begin, subject, at, known)
            self._tell(intent, at)
            async with self._rolling.cleared(intent.sessions), contextlib.AsyncExitStack() as stack:
                for hold in self.held:
                    await stack.enter_async_context(hold(subject))
                return await in_thread(self._finish, intent, at)

    def step_done(self, subject: str, step: str) -> None:
        """A step outside is done. Blocking. Raises MemoryFault when that can not be noted."""
        intent = self.pending.get(subject)
        if intent is None or step not in intent.todo:
            return
        try:
            self._keep(replace(intent, todo=tuple(one for one in intent.todo if one != step)))
        except OSError as error:
            raise MemoryFault(f"a step of an erasing could not be noted: {error}") from error

    def _begin(self, subject: str, at: int, known: Collection[str]) -> Intent:
        """Note what is to be done, durably: from here on it will be done."""
        before = self.pending.get(subject, Intent(subject, None))
        try:
            sessions, steps = {*before.sessions, *known}, {*before.todo, *self.outside}
            steps.update(step for ask in self.steps for step in ask(subject))
            for places in self._everywhere:
                sessions |= _sessions(places.cursors, subject)
                steps |= _noted(places.cursors, subject)
            intent = Intent(subject, at, tuple(sorted(sessions)), tuple(sorted(steps)))
            self._keep(intent)
        except OSError as error:
            raise MemoryFault(f"the erasing could not be noted, so nothing was erased: {error}") from error
        try:
            self._tombstones.add(subject, at)
        except (OSError, MemoryFault) as error:
            with contextlib.suppress(
                OSError
            ):  # else it is done at the next start; nothing is used until then
                self._keep(before)
            raise MemoryFault(f"the erasing could not be noted, so nothing was erased: {error}") from error
        return intent

    def _tell(self, intent: Intent, at: int) -> None:
        for tell in self.told:
            try:
                tell(intent.subject, at, frozenset(intent.sessions))
            except Exception:  # a named edge: whatever happens to RAM, the files go
                log.exception("%s: not everything in RAM could be let go", intent.subject)

    def _finish(self, intent: Intent, at: int) -> Erased:
        """Remove the files. The intent stays, with all it says, when the disk does not give them all away."""
        removed = 0
        left: list[str] = []
        groups = GroupsErased()
        for places in self._everywhere:
            count, stays = _remove(places, intent, at, groups)
            removed, left = removed + count, left + stays
        self._stuck[intent.subject] = groups.stuck
        for remove in self.also:
            count, stays = remove(intent.subject)
            removed, left = removed + count, left + stays
        for one in left:
            log.error(
                "%s: could not be erased, and is tried again at the next start: %s", intent.subject, one
            )
        if left:
            self._rolling.hide(intent.sessions)
        else:
            try:
                self._keep(Intent(intent.subject, None, (), intent.todo))
            except OSError as error:
                log.warning("%s: erased, which could not be noted (%s)", intent.subject, error)
                left.append(f"the note of the erasing: {error}")
        changed = tuple(sorted(groups.changed))
        return Erased(intent.subject, at, removed, intent.sessions, tuple(left), intent.todo, groups=changed)

    def _keep(self, intent: Intent) -> None:
        """Have the intent on disk, or none when nothing is left of it. Raises OSError; it stays as it was."""
        name = f"{safe_id(intent.subject)}.json"
        if intent.at is not None or intent.todo:
            self._intents.write(name, render_json(intent.to_json()))
            self.pending[intent.subject] = intent
            return
        _, left = self._intents.remove(_called(self._intents, {name}))
        if left:
            raise OSError("; ".join(left))
        self.pending.pop(intent.subject, None)
        try:
            self._wipe()
        except OSError as error:
            log.warning("the bytes of the note that somebody was erased are left: %s", error)


# ---------------------------------------------------------------------- what there is


def _intents(folder: Documents, now_ms: int) -> Iterator[Intent]:
    """The intents on disk. One that can not be read is one all the same: its name says whom it is about."""
    for name in _named(folder):
        subject = safe_id(name.removesuffix(_JSON))
        value = cursor_files.read(folder, name)
        at = value.get("at", None if value else now_ms)
        at = at if at is None or valid_ms(at) else now_ms
        yield Intent(subject, at, tuple(_texts(value.get("sessions"))), tuple(_texts(value.get("todo"))))


def _texts(value: object) -> list[str]:
    return [one for one in value if isinstance(one, str) and one] if isinstance(value, list) else []


def _named(folder: Documents) -> list[str]:
    """The names of the JSON texts in a folder, without copies and leftovers. Raises OSError."""
    return [name for name in folder.names() if name.endswith(_JSON)]


def _half_written(folder: Documents) -> list[str]:
    return [name for name in folder.names() if name.startswith(".") and name.endswith(".tmp")]


def _sessions(folder: Documents, subject: str) -> set[str]:
    """The conversations whose summaries may have words of a subject. Raises OSError."""
    user = user_of(subject)
    if user is None:
        return set()
    found = {dm_of(user), *cursor_files.read(folder, session_name(f"facts-{user}"))}
    for name in _named(folder):
        value = cursor_files.read(folder, name) if name.startswith("people-") else {}
        session = value.get("session")
        if isinstance(session, str) and user in people_of(value):
            found.add(session)
    return found - {""}


def _noted(folder: Documents, subject: str) -> set[str]:
    """The steps outside that a note asks for."""
    user = user_of(subject)
    return {step for step in OUTSIDE if user in cursor_files.read(folder, session_name(step))}


# ---------------------------------------------------------------------- what goes


def _remove(places: Places, intent: Intent, at: int, groups: GroupsErased) -> tuple[int, list[str]]:
    """Remove every file and note of a subject. Returns how many there were, and what stays and why.

    What was done to groups is added to `groups`.
    """
    subject, user = intent.subject, user_of(intent.subject)
    own: dict[Documents, Collection[str]] = {
        places.ledgers: {f"{subject}.jsonl"},
        places.snapshots: {f"{subject}.json"},
        places.tools: {f"{subject}.jsonl"},
    }
    if user is not None:
        own[places.rolling] = {session_name(key) for key in intent.sessions}
        own[places.profiles] = {f"{user}.json"}
        if places.durable is not None:
            own[places.durable] = {f"{user}.json"}
    elif (group := group_of(subject)) is not None:
        own[places.groups] = {f"{group}.json"}
    removed = 0
    left: list[str] = []
    if user is not None:
        shelf = GroupStores(places.logs, places.ledgers, places.groups, places.snapshots, places.cursors)
        purged = erase_groups.purge(shelf, user, _remove_named)
        removed, left = purged.removed, purged.left
        groups.add(purged)
    for folder, names in own.items():
        count, stays = _remove_named(folder, names)
        removed, left = removed + count, left + stays
    count, stays = _scrub(places.cursors, intent, at)
    try:
        if user is not None:
            stays += _scrub_clears(places, user)
        places.wipe()
    except OSError as error:
        stays.append(str(error))
    return removed + count, left + stays


def _remove_named(folder: Documents, names: Collection[str]) -> tuple[int, list[str]]:
    try:
        return folder.remove(_called(folder, names))
    except OSError as error:
        return 0, [f"{folder.folder}: {error}"]


def _called(folder: Documents, names: Collection[str]) -> list[str]:
    """What has one of these names, and all that is called after them: copies kept aside, half-written files,
    what editors leave. Raises OSError.

    After a name stands nothing, or something that is no part of another id: "1.json.v1-2026",
    ".1.json.x.tmp", "1.json~", "#1.json#".
    """
    if not names:
        return []
    either = "|".join(map(re.escape, sorted(names)))
    called = re.compile(rf"[.#~]{{0,2}}({either})([^A-Za-z0-9].*)?", re.DOTALL)
    return [name for name in folder.names() if called.fullmatch(name)]


def _scrub(folder: Documents, intent: Intent, at: int) -> tuple[int, list[str]]:
    """Remove a subject from the cursors; nobody writes one meanwhile."""
    user = user_of(intent.subject)
    names = {intent.subject} if user is None else {intent.subject, user}
    own = {session_name(f"summary-{dm_of(name)}") for name in names}
    gone = own | {session_name(f"people-{key}") for key in intent.sessions}
    seen = {session_name(f"summary-{key}") for key in intent.sessions} - own
    kept = {session_name(step) for step in intent.todo}
    ours = tuple(f"-{name}{_JSON}" for name in names)
    try:
        gone |= {name for name in _named(folder) if name.endswith(ours)}
    except OSError as error:
        return 0, [f"{folder.folder}: {error}"]
    removed, left = _remove_named(folder, gone)
    try:
        _, stays = folder.remove(_half_written(folder))
        for name in _named(folder):
            if name in seen:
                stays += _rewrite(folder, name, _advanced, at)
            elif name not in kept:
                stays += _rewrite(folder, name, _without, names)
    except OSError as error:
        return removed, [*left, f"{folder.folder}: {error}"]
    return removed, left + stays


def _scrub_clears(places: Places, user: str) -> list[str]:
    """Take a person out of what was cleared, and remove what a killed writer or an editor left beside it.

    Returns what stays, and why. Raises OSError.
    """
    clears.erase(places.clears, user, dm_of(user))
    copies = [name for name in _called(places.beside, {clears.FILE}) if name != clears.FILE]
    return places.beside.remove(copies)[1]


def _rewrite(
    folder: Documents,
    name: str,
    change: Callable[[str, Mapping[str, object], T], Mapping[str, object]],
    by: T,
) -> list[str]:
    """Change one cursor. One that nobody can read goes: it can be lost, and may name anybody."""
    before = cursor_files.read(folder, name)
    after = change(name, before, by)
    if not after:
        return folder.remove([name])[1]
    try:
        if after != before:
            folder.write(name, render_json(after))
    except OSError as error:
        return [f"{folder.folder / name}: {error.strerror or error}"]
    return []


def _advanced(file: str, value: Mapping[str, object], at: int) -> Mapping[str, object]:
    known = value.get("upTo")
    up_to = int(known) if isinstance(known, str) and known.isascii() and known.isdigit() else 0
    return {"upTo": str(max(up_to, snowflake_at(at)))}


def _without(file: str, value: Mapping[str, object], names: Collection[str]) -> Mapping[str, object]:
    """A cursor without a subject, where its keys are people; those of the loops have keys of their own."""
    if file.startswith(("facts-", "summary-", "people-")):
        return value
    return {key: one for key, one in value.items() if key not in names}
