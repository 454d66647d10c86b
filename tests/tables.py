"""Tests that look at every row of a table."""

import contextlib
import functools
import inspect
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest

Row = dict[str, Any]


def each_row(names: str | tuple[str, ...], table: Iterable[Any]) -> Callable[[Callable[..., Any]], Any]:
    """Have one test look at each row of a table, and name every row that fails.

    It reads as `pytest.mark.parametrize`, and is for what needs no fresh fixture: as tests of their own,
    a thousand rows took each worker three seconds before the first one ran.
    """
    keys = [names] if isinstance(names, str) else list(names)
    rows = [dict(zip(keys, row if len(keys) > 1 else (row,), strict=True)) for row in table]

    def over(test: Callable[..., Any]) -> Any:
        @functools.wraps(test)
        def whole(*given: Any, **fixtures: Any) -> None:
            for trying in _tries(rows):
                with trying as row:
                    test(*given, **fixtures, **row)

        @functools.wraps(test)
        async def whole_async(*given: Any, **fixtures: Any) -> None:
            for trying in _tries(rows):
                with trying as row:
                    await test(*given, **fixtures, **row)

        made = whole_async if inspect.iscoroutinefunction(test) else whole
        known = inspect.signature(test)
        left = [one for name, one in known.parameters.items() if name not in keys]
        vars(made)["__signature__"] = known.replace(parameters=left)
        return made

    return over


def _tries(rows: list[Row]) -> Iterator[contextlib.AbstractContextManager[Row]]:
    """What each row is tried in; at the end, everything that failed is raised together."""
    failed: list[BaseException] = []

    @contextlib.contextmanager
    def trying(row: Row) -> Iterator[Row]:
        try:
            yield row
        except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001 - all are raised below
            error.add_note(f"in the row {row!r}"[:500])
            failed.append(error)

    yield from map(trying, rows)
    if failed:
        raise BaseExceptionGroup(f"{len(failed)} of {len(rows)} rows", failed)


@contextlib.contextmanager
def naming(*case: object) -> Iterator[None]:
    """Have a failure say of which case it is: for what isn't a row of values alone."""
    try:
        yield
    except BaseException as failure:  # pytest's own aren't Exception
        failure.add_note(f"of the case {', '.join(repr(one)[:200] for one in case)}")
        raise
