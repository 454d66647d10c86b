"""The statements of the published designs, and the tests that exercise them, as docs/dev/designs.md.

    @pytest.mark.design(79, 84)     on a test that starts where people or programs do, and asserts the value

A design is added once each of its statements has a test; `test_table.py` keeps it so. Markers are read from
the sources of the tests, without importing them.
"""

import ast
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

TESTS = Path(__file__).parent.parent
STATEMENTS = Path(__file__).with_name("statements.toml")
_HEAD = """\
# The designs, statement by statement

If you know one of the public designs that DiscoClaw implements, look up here what holds, which command,
tool or setting shows it, and which tests.

*Here* says what differs, and links to the reason. Tests carry the row's number: `@pytest.mark.design(12)`.
`make docs` renews these tables.
"""
_MARKER = "pytest.mark.design"
Tests = Mapping[int, Sequence[str]]
"""For each statement the tests that name it, as "folder/file.py::name"."""


@dataclass(frozen=True, slots=True)
class Statement:
    """What a design says, the commands, tools or settings that show it, and what differs here (or "")."""

    number: int
    says: str
    reached: str
    deviation: str


@dataclass(frozen=True, slots=True)
class Design:
    """A public design. `about` says what it is, in Markdown."""

    name: str
    about: str
    statements: tuple[Statement, ...]

    def missing(self, tests: Tests) -> list[int]:
        """The statements that no test exercises."""
        return [one.number for one in self.statements if not tests.get(one.number)]


def designs() -> list[Design]:
    """All designs whose statements are written down."""
    found = tomllib.loads(STATEMENTS.read_text(encoding="utf-8"))
    return [
        Design(name, value["about"], tuple(Statement(*row) for row in value["statements"]))
        for name, value in found.items()
    ]


@cache
def marked() -> Tests:
    """Which tests carry the marker, in the order of their names."""
    found: dict[int, list[str]] = defaultdict(list)
    for path in sorted(TESTS.rglob("test_*.py")):
        source = path.read_text(encoding="utf-8")
        if _MARKER not in source:  # to parse all of them takes a second
            continue
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                for number in _numbers(node.decorator_list):
                    found[number].append(f"{path.relative_to(TESTS).as_posix()}::{node.name}")
    return found


def _numbers(decorators: Sequence[ast.expr]) -> Iterator[int]:
    for one in decorators:
        if isinstance(one, ast.Call) and ast.unparse(one.func) == _MARKER:
            yield from map(ast.literal_eval, one.args)


def document() -> str:
    """The whole of docs/dev/designs.md."""
    known = marked()
    return "\n".join([_HEAD, *(_section(one, known) for one in designs())])


def _section(design: Design, known: Tests) -> str:
    head = ["| | statement | seen in | tests |", "|---|---|---|---|"]
    rows = [_row(one, known.get(one.number, ())) for one in design.statements]
    return "\n".join([f"## {design.name}", "", design.about.strip(), "", *head, *rows, ""])


def _row(one: Statement, tests: Sequence[str]) -> str:
    says = f"{one.says}<br>*Here:* {one.deviation}" if one.deviation else one.says
    return f"|{one.number}|{says}|{one.reached}|{'<br>'.join(dict.fromkeys(map(_link, tests)))}|"


def _link(test: str) -> str:
    file = test.partition("::")[0]
    return f"[{file.removesuffix('.py').replace('/test_', '/')}](../../tests/{file})"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(document(), encoding="utf-8")
