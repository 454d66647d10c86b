"""Reads files of cases: those that come with the program, and an admin's own.

A file that ends with `.jsonl` has one case a line; a `.json` file has one case, or a list of them.
"""

import json
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from importlib import resources
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from discoclaw.core.errors import Refused
from discoclaw.evals.case import Case
from discoclaw.evals.chain import Chain

One = TypeVar("One", Case, Chain)

_MOST_FAULTS = 3
_NEAREST = 3
"""How many ids are named beside one that there is not: all of them are a page."""


def cases(files: Sequence[Path] = ()) -> list[Case]:
    """The cases of these files, or the built-in ones. Raises Refused, naming file, case and fault."""
    return _all(Case, files or _built_in("extraction"))


def chains(files: Sequence[Path] = ()) -> list[Chain]:
    """The chains of summaries in these files, or the built-in ones. Raises Refused."""
    return _all(Chain, files or _built_in("summaries"))


def filler() -> list[list[tuple[str, str]]]:
    """Small talk that is worth nothing: exchanges of lines, each by somebody."""
    content = json.loads(_folder().joinpath("filler.json").read_text(encoding="utf-8"))
    return [[(by, text) for by, text in exchange] for exchange in content]


def chosen(all_: Sequence[One], *, ids: Sequence[str] = (), groups: Sequence[str] = ()) -> list[One]:
    """The cases with these ids or of these groups; all without either. Raises Refused for an unknown name."""
    for name, wanted, known in (
        ("case", ids, [one.id for one in all_]),
        ("group", groups, [one.group for one in all_]),
    ):
        if unknown := [one for one in wanted if one not in known]:
            if name == "case":
                near = ", ".join(get_close_matches(unknown[0], known, _NEAREST, cutoff=0))
                raise Refused(f"no case is called {unknown[0]!r}; the nearest are {near}")
            raise Refused(f"no group is called {unknown[0]!r}; there are {', '.join(dict.fromkeys(known))}")
    if not (ids or groups):
        return list(all_)
    return [one for one in all_ if one.id in ids or one.group in groups]


def _folder() -> Path:
    with resources.as_file(resources.files("discoclaw.evals") / "cases") as folder:
        return folder


def _built_in(name: str) -> list[Path]:
    return sorted(one for one in (_folder() / name).iterdir() if one.suffix in (".json", ".jsonl"))


def _all(shape: type[One], files: Iterable[Path]) -> list[One]:
    read: dict[str, One] = {}
    for path in files:
        for where, value in _values(path):
            one = _checked(shape, value, where)
            if one.id in read:
                raise Refused(f"{where}: there are two cases {one.id!r}; ids must be unique")
            read[one.id] = one if one.group else one.model_copy(update={"group": path.stem})
    return list(read.values())


def _values(path: Path) -> list[tuple[str, Any]]:
    """The values in a file, each with where it is: the file, and the line or the number. Raises Refused."""
    try:
        content = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise Refused(f"{path}: not UTF-8 text") from None
    except OSError as error:
        raise Refused(f"can't read {path}: {error.strerror or error}") from None
    if path.suffix == ".jsonl":
        lines = [(f"{path}:{number}", line) for number, line in enumerate(content.splitlines(), start=1)]
        values = [(where, _parsed(line, where)) for where, line in lines if line.strip()]
    else:
        value = _parsed(content, str(path))
        values = (
            [(f"{path}: number {n}", one) for n, one in enumerate(value, start=1)]
            if isinstance(value, list)
            else [(str(path), value)]
        )
    if not values:
        raise Refused(f"{path}: there is no case in it")
    return values


def _parsed(text: str, where: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        why = error.msg if isinstance(error, json.JSONDecodeError) else "nested too deep"
        raise Refused(f"{where}: not JSON: {why}") from None


def _checked(shape: type[One], value: Any, where: str) -> One:
    if not isinstance(value, dict):
        raise Refused(f"{where}: expected a JSON object")
    named = value.get("id")
    name = f"{where}: {named}" if isinstance(named, str) else where
    try:
        return shape.model_validate(value)
    except ValidationError as error:
        raise Refused(f"{name}: {faults(error)}") from None


def faults(error: ValidationError) -> str:
    """The faults of a case, field by field."""
    found = error.errors(include_url=False, include_context=False)
    shown = [_fault(one["loc"], one["msg"]) for one in found[:_MOST_FAULTS]]
    more = len(found) - len(shown)
    return "; ".join([*shown, *([f"and {more} more"] if more > 0 else [])])


def _fault(where: Sequence[int | str], message: str) -> str:
    text = message.removeprefix("Value error, ")
    return f"{'.'.join(map(str, where))}: {text}" if where else text
