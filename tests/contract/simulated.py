"""The simulated Discord, without what it does for nothing: a fifth of what a test takes.

It looks after every step of the bot whether that is quiet. None of this changes what it finds.
"""

import asyncio
import copy
import functools
import time
from collections import namedtuple
from types import SimpleNamespace
from typing import Any

import simcord
from discord import app_commands
from simcord import _dpy_internals, _runtime, _settlement, components, env, gateway, results
from simcord.http import router
from simcord.results import to_discord_message


def _newest(channel: Any) -> Any:
    """The newest message of a channel. simcord makes all of them for it, and copies each deeply."""
    kept = channel._env.backend.messages.get(channel.id, {})
    seen = [message for message in kept.values() if message.visible_to(None)]
    return to_discord_message(channel._env, max(seen, key=lambda one: one.id)) if seen else None


_is_parked = env._is_parked


def _parked(state: Any, task: Any, deadline: float) -> bool:
    """Whether a task waits for a distant time. While a thread works, the bot isn't quiet, whatever waits."""
    return not state.work.executors and bool(_is_parked(state, task, deadline))


def _sleeps(waiter: Any, loop: Any, deadline: float) -> bool:
    """Whether a timer of later wakes this future: most timers belong to others, or are cancelled."""
    return (
        waiter is not None
        and not waiter.done()
        and any(
            waiter in timer._args
            and not timer.cancelled()
            and timer.when() > deadline
            and _dpy_internals._original_callback(timer._callback).__name__ == "_set_result_unless_cancelled"
            for timer in loop._scheduled
            if timer._args
        )
    )


def _monotonic() -> float:
    """The time that the bot is shown. simcord looks for the same function in its modules, each time."""
    selected = _runtime._selected_env(driver=False)
    return _real_monotonic() if selected is None else float(selected._virtual_time)


def _copied(value: Any) -> Any:
    """A deep copy of what Discord sends or gets, which is JSON but for some parameters."""
    if type(value) is dict:
        return {key: _copied(one) for key, one in value.items()}
    if type(value) is list:
        return [_copied(one) for one in value]
    return value if isinstance(value, str | int | float | None) else copy.deepcopy(value)


def _track_callback(work: Any, original: Any, callback: Any, args: Any, **how: Any) -> asyncio.Handle:
    """Run a step of a task as asyncio would: that the task has a step to make is known by the task itself."""
    if how["when"] is None and isinstance(getattr(callback, "__self__", None), asyncio.Task):
        return original(callback, *args, context=how["context"])
    return _tracked(work, original, callback, args, **how)


async def _settle(
    self: Any,
    *,
    timeout: float | None = None,  # noqa: ASYNC109 - as simcord calls it
    idle: float = 0.005,
    dispatch: Any = None,
    _deadline: Any = None,
) -> None:
    """Wait until all that the bot has begun has ended, or waits for a distant time.

    simcord looks again after each task that ends, and waits for all of them, also for the thirty that wait
    for something to do. Raises TimeoutError.
    """
    effective = self.settle_timeout if timeout is None else timeout
    deadline = self._loop.time() + effective if _deadline is None else _deadline
    self._last_dispatch = dispatch
    still = 0
    while True:
        state = self._settlement_state()
        _settlement._run_due_virtual_callbacks(state, deadline)
        await asyncio.sleep(0)
        advancing = self._real_advance_task or self._advance_task
        if advancing is not None and advancing is not asyncio.current_task():
            await asyncio.wait((advancing,), timeout=max(0.0, deadline - self._loop.time()))
            if not advancing.done():
                raise TimeoutError("bot did not settle while advancing time")
            if self._real_advance_task is advancing:
                self._real_advance_task = None
            advancing.result()
            continue
        state = self._settlement_state()
        pending = _settlement._owned_tasks(state)
        _settlement._virtualize_recognized_waits(state, pending)
        running = [task for task in pending if not _parked(state, task, deadline)]
        busy = [*running, *self._work.executors]
        callbacks = [
            one
            for one in _settlement._active_callbacks(state)
            if not _settlement._callback_is_parked(state, one, deadline)
        ]
        if not busy and not callbacks:
            still += 1
            if still == 2:  # what has just ended may have more to do
                return
            continue
        still = 0
        if self._loop.time() >= deadline:
            raise TimeoutError(
                _settlement._settle_timeout_message(state, running, pending, effective, callbacks)
            )
        if busy:
            await asyncio.wait(busy, timeout=idle)
        else:
            await asyncio.sleep(idle)


_tracked = _runtime._track_callback
_real_monotonic = time.monotonic
_State = namedtuple("_State", env._SettlementState.__annotations__)


def quicken() -> None:
    """Do all this."""
    simcord.Env._settle_internal = _settle
    _runtime._track_callback = _track_callback
    simcord.ChannelHandle.last_message = property(_newest)
    env._is_parked = _parked
    _dpy_internals.is_sleep_waiter = _sleeps
    env._SettlementState = _State  # a frozen dataclass takes five times as long to make
    _dpy_internals._clock_monotonic = _monotonic
    # Each callback is looked up in a list of all, field by field, when it runs.
    _runtime._CallbackRecord.__eq__ = object.__eq__  # type: ignore[method-assign]
    # Each payload is copied several times; `deepcopy` takes five times as long.
    gateway.copy = router.copy = SimpleNamespace(deepcopy=_copied)
    results.deepcopy = components.deepcopy = _copied
    # The descriptions of 150 commands and parameters are wrapped anew at each start.
    app_commands.commands._shorten = functools.cache(app_commands.commands._shorten)
