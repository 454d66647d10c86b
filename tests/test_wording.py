"""The words that people read in Discord: theirs, not git's, and none that only we know."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import discoclaw

ROOT = Path(discoclaw.__file__).parent
GITS = re.compile(r"\b(?:branch(?:es)?|commits?|HEAD|deprecated|durable|standing|ledger)\b")
STIFF = re.compile(r"\bcan ?not\b|\bof you\b|\bin vain\b|\bof mine\b", re.IGNORECASE)
OF_A_TERMINAL = ("Terminal", "Typed")
LOGGED = ("debug", "info", "warning", "error", "exception")
"""What goes to the log is for whoever runs the bot."""


def texts(node: ast.AST) -> Iterator[str]:
    """The literal texts of code, without docstrings and other texts that stand alone; f-strings as one.

    What only a terminal shows is left out.
    """
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and "caller.terminal" in ast.unparse(child.test):
            for other in child.orelse:
                yield from texts(other)
            continue
        if isinstance(child, ast.Call) and _name(child.func) in OF_A_TERMINAL:
            continue
        if isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant):
            continue
        if isinstance(child, ast.JoinedStr):
            yield "".join(str(one.value) if isinstance(one, ast.Constant) else "'…'" for one in child.values)
        elif isinstance(child, ast.Constant) and isinstance(child.value, str):
            yield child.value
        elif not (isinstance(child, ast.Call) and _name(child.func) in LOGGED):
            yield from texts(child)


def _name(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def test_what_the_bot_says_is_plain_and_has_none_of_gits_words() -> None:
    said = [
        (str(path.relative_to(ROOT)), text)
        for path in sorted([*(ROOT / "bot").rglob("*.py"), *(ROOT / "commands").rglob("*.py")])
        for text in texts(ast.parse(path.read_text(encoding="utf-8")))
        if len(text.split()) >= 3
    ]
    assert any(text.startswith("Created the persona") for _, text in said)
    assert [one for one in said if GITS.search(re.sub(r"`[^`]*`", "", one[1]))] == []
    assert [one for one in said if STIFF.search(one[1])] == []
