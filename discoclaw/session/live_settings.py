"""The live configuration as an owner or an admin sees and changes it.

A change is written to the local file, as `discoclaw config set` writes it, and applies to the next message.
The caller has checked who may do that. Knows nothing about Discord.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path

from discoclaw.core.errors import (
    MemoryFault,
    ModelBadRequest,
    ModelError,
    ModelKeyRejected,
    ModelNotFound,
    ModelNotSetUp,
    ModelOverloaded,
    ModelRateLimited,
    ModelSpent,
    ModelTimeout,
    ModelUnreachable,
    Refused,
)
from discoclaw.core.live import Effective, Scope, fitting
from discoclaw.core.message import Place
from discoclaw.core.model import ModelRequest, UserTurn
from discoclaw.core.policy import FIELDS, NO_OVERRIDES, Allowlist, Field, Value, value_words
from discoclaw.core.ports import Clock, Model
from discoclaw.core.usage import Payer, paid_by
from discoclaw.memory.changed_by import Changed, ChangedBy
from discoclaw.memory.live import FILE, LOCK, PlaceRules
from discoclaw.show.words import line
from discoclaw.store.files import in_thread

log = logging.getLogger(__name__)

NO_ALLOWLIST = Allowlist()
MODEL_WAIT_S = 8.0
"""The longest wait for a model that somebody names to answer."""
_NOT_THERE = (ModelNotFound, ModelBadRequest, ModelKeyRejected)
_NOT_NOW = (ModelUnreachable, ModelTimeout, ModelOverloaded, ModelRateLimited)


@dataclass(frozen=True, slots=True)
class By:
    """The person who makes a change: user id and name. An id of "" is somebody whose id isn't known."""

    id: str
    name: str


@dataclass(frozen=True, slots=True)
class Row:
    """One field at a scope: what is in effect, whether it is set here, and by whom if that is known.

    `fixed`: an event that the owner signed sets it for this scope, so that the local file doesn't count.
    """

    field: Field
    effective: Effective
    own: Value | None
    fixed: bool
    changed: Changed | None = None


class LiveSettings:
    """The live configuration as people see and change it.

    `folder` has the file that guards the local file, `models` are names of models to offer, and `model` is
    asked whether it knows another one. `allowlist` says where the bot listens, `answers` which model answers
    where a name is set, and `archives` whether there is an archive at all.
    """

    def __init__(
        self,
        places: PlaceRules,
        changed_by: ChangedBy,
        model: Model,
        *,
        folder: Path,
        clock: Clock,
        allowlist: Allowlist = NO_ALLOWLIST,
        models: Sequence[str] = (),
        answers: Callable[[str], str] = str,
        archives: bool = True,
    ) -> None:
        self.places = places
        self.answers = answers
        self._archives = archives
        self.models = tuple(models)
        self._live = places.live
        self._changed_by = changed_by
        self._model = model
        self._lock = folder / LOCK
        self._clock = clock
        self._allowlist = allowlist

    async def refresh(self) -> None:
        """Take over what was changed in the local file meanwhile."""
        await self._live.look()

    def rows(self, scope: Scope) -> list[Row]:
        """Every field that makes sense at a scope, from RAM."""
        effective, own = self._live.explain(scope), self._live.local(scope)
        signed = self._live.signed(scope)
        fixed = (signed.overrides if signed is not None else None) or NO_OVERRIDES
        return [
            Row(field, effective[name], own.get(name), name in fixed, self._by(effective[name], name))
            for name, field in FIELDS.items()
            if scope.kind in field.kinds
        ]

    def row(self, scope: Scope, name: str) -> Row:
        """One field at a scope. Raises Refused if it makes no sense there."""
        found = next((one for one in self.rows(scope) if one.field.name == name), None)
        if found is None:
            raise Refused("there is no such setting here any more")
        return found

    def listed(self, name: str, place: Place) -> Value | None:
        """The value for a place in the settings' lists of places; None for a field that has no such list."""
        if name == "persona":
            return self.places.fixed.of(place)
        if name == "archive":
            return self.places.auto_save.covers(place)
        return self._allowlist.channel(place.group_id, place.channel_id)

    def words(self, row: Row, place: Place | None) -> str:
        """A row's present meaning, in words that are not markup yet. `place`: the channel, if known."""
        field, value = row.field, row.effective.value
        if field.name == "model":
            return self.answers(str(value))
        if field.name == "archive" and not self._archives:
            return "off, because nothing is stored here (DISCOCLAW_STORE=none)"
        if field.name == "actions" and place is not None:
            return ", ".join(self.places.actions(place)) or "none"
        if value is None and field.by_place:
            if place is None:
                lists = {"archive": str(self.places.auto_save), "actions": str(self.places.acts)}
                return lists.get(field.name, f"as {field.variable} says")
            value = self.listed(field.name, place)
        return value_words(field, value)

    def lists(self, name: str) -> bool:
        """Whether the settings have a list of places for a field."""
        listed = {
            "persona": bool(self.places.fixed.names),
            "archive": bool(self.places.auto_save),
            "actions": bool(self.places.acts),
            "listen": bool(self._allowlist.channels),
        }
        return listed.get(name, False)

    async def change(self, scope: Scope, name: str, value: Value | None, by: By) -> bool:
        """Give a field a value at a scope, or None to leave it to wider ones. Returns whether it is new.

        Raises Refused, which says why nothing has changed.
        """
        row = self.row(scope, name)
        if row.fixed:
            raise Refused(FIXED)
        fitting(scope, {name: value} if value is not None else {})
        if value == row.own:
            return False
        if name == "model" and isinstance(value, str) and value != row.effective.value:
            with paid_by(Payer(by.id or None)):
                await self._ask(value)
        try:
            await self._live.write(scope, {name: value}, self._lock)
        except MemoryFault as fault:
            raise Refused(_why(fault)) from fault
        was, now = (line(repr(one), 200) for one in (row.own, value))
        who = f"{line(by.name, 80)} ({by.id})" if by.id else by.name
        log.info("%s set %s for %s: %s → %s", who, name, scope, was, now)
        await in_thread(self._changed_by.note, scope, name, value, by.id, self._clock())
        return True

    def _by(self, effective: Effective, name: str) -> Changed | None:
        if effective.source != "file" or effective.value is None:
            return None
        return self._changed_by.of(effective.scope, name, effective.value)

    async def _ask(self, name: str) -> None:
        """Let a model say its first word, so that a wrong name shows at once. Raises Refused."""
        request = ModelRequest((), (UserTurn("Say OK."),), max_tokens=16, purpose="title", model=name)
        try:
            async with asyncio.timeout(MODEL_WAIT_S), aclosing(self._model.stream(request)) as events:
                async for _ in events:
                    break
        except ModelNotSetUp as error:
            raise Refused(str(error)) from None
        except _NOT_THERE as error:
            log.info("the model %s can't be used: %s", name, error)
            raise Refused(
                f"the server doesn't give me the model `{name}`, so I keep the one there is"
            ) from None
        except (*_NOT_NOW, TimeoutError) as error:
            log.info("the model %s could not be asked: %s", name, error)
            raise Refused(
                f"I couldn't find out whether the server has the model `{name}`, so nothing has changed. "
                "Please try again in a minute"
            ) from None
        except ModelSpent as error:
            raise Refused(error.user_message) from None
        except ModelError as error:  # the model exists; it only had nothing to say
            log.info("the model %s answered oddly: %s", name, error)


FIXED = "the owner has signed this with their key, so it can't be changed here"


def _why(fault: MemoryFault) -> str:
    """Why the local file was not written, for somebody who may not see paths."""
    if isinstance(fault.__cause__, OSError):
        why = fault.__cause__.strerror or "the disk fails"
        return f"I couldn't save that ({why.lower()}), so nothing has changed. Please try again later"
    reason = str(fault).partition(FILE)[2]
    return f"`{FILE}`{reason}. So nothing has changed; whoever runs me has to correct it first"
