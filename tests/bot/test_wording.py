"""The words that people read in Discord: theirs, not git's, and none that only we know."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import discoclaw
from discoclaw.bot.answers import sentence
from discoclaw.bot.texts.markup import ago, plain, unmarked, without_times
from discoclaw.bot.texts.wording import for_people
from discoclaw.core.errors import Refused

ROOT = Path(discoclaw.__file__).parent
GITS = re.compile(r"\b(?:branch(?:es)?|commits?|HEAD|deprecated|durable|standing|ledger)\b")
STIFF = re.compile(r"\bcan ?not\b|\bof you\b|\bin vain\b|\bof mine\b", re.IGNORECASE)
LOGGED = ("debug", "info", "warning", "error", "exception")
"""What goes to the log is for whoever runs the bot."""
_QUOTED = re.compile(r"`[^`]*`")


def texts(node: ast.AST) -> Iterator[str]:
    """The literal texts of code, without docstrings and other texts that stand alone; f-strings as one."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant):
            continue
        if isinstance(child, ast.JoinedStr):
            yield "".join(str(one.value) if isinstance(one, ast.Constant) else "'…'" for one in child.values)
            continue
        if isinstance(child, ast.Constant) and isinstance(child.value, str):
            yield child.value
            continue
        if isinstance(child, ast.Call) and _name(child.func) in LOGGED:
            continue
        yield from texts(child)


def _name(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def sentences(*folders: str) -> list[tuple[str, str]]:
    """What is said in a package, of three words or more, by file."""
    return [
        (str(path.relative_to(ROOT)), text)
        for folder in folders
        for path in sorted((ROOT / folder).rglob("*.py"))
        for text in texts(ast.parse(path.read_text(encoding="utf-8")))
        if len(text.split()) >= 3
    ]


def refusals() -> list[tuple[str, str]]:
    """Every text of a refusal in the core and in memory, as far as it is literal."""
    found = []
    for folder in ("core", "memory/subjects"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Call) and _name(node.func) == "Refused":
                    found += [(path.name, text) for text in texts(node)]
    return found


class TestWhatWeSay:
    def test_has_none_of_gits_words(self) -> None:
        told = [(where, text) for where, text in sentences("bot") if GITS.search(_QUOTED.sub("", text))]
        assert told == []

    def test_is_plain(self) -> None:
        assert [(where, text) for where, text in sentences("bot") if STIFF.search(text)] == []

    def test_the_scan_sees_the_texts(self) -> None:
        said = [text for _, text in sentences("bot")]
        assert any("aren't on my allowlist" in text for text in said)
        assert any(text.startswith("Created the persona") for text in said)


class TestWhatTheCoreSays:
    def test_every_refusal_comes_out_in_words_that_people_know(self) -> None:
        found = refusals()
        assert len(found) > 20
        for where, text in found:
            told = re.sub(r"'[^']*'|`[^`]*`|\"[^\"]*\"", "", for_people(text))
            assert not GITS.search(told), (where, text)
            assert not STIFF.search(told), (where, text)

    @pytest.mark.parametrize(
        ("text", "told"),
        [
            (
                "there is no branch 'codn'; did you mean 'coding'? there are: main, coding",
                "There is no persona 'codn'; did you mean 'coding'? there are: main, coding.",
            ),
            ("'a branch' cannot name a branch", "'a branch' can't name a persona."),
            ('"it\'s a commit" is no commit', '"it\'s a commit" is no change.'),
            ("durable-2ed36192 is deprecated", "2ed36192 is forgotten."),
            ("“HEAD” and `commit` stay, commits change", "“HEAD” and `commit` stay, changes change."),
            ("an item is missing", "A memory is missing."),
            ("is it over?", "Is it over?"),
        ],
    )
    def test_only_our_own_words_are_exchanged(self, text: str, told: str) -> None:
        assert sentence(Refused(text)) == told


class TestTimes:
    def test_are_left_to_discord_and_spelled_out_in_files(self) -> None:
        assert ago(1_770_645_781_234) == "<t:1770645781:R>"
        told = f"updated {ago(1_770_645_781_234)}, <t:nonsense:R>"
        assert without_times(told) == "updated Mon 2026-02-09 14:03 UTC, <t:nonsense:R>"


@given(st.text(alphabet="a *_~|\\`[]>\n“”"))
def test_words_without_markup_can_be_read_back_as_they_were(text: str) -> None:
    assert unmarked(plain(text)) == text
