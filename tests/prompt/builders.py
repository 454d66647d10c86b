"""Materials for prompts, and the texts somebody would send who wants to break out of their section."""

from datetime import UTC
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from discoclaw.prompt.assemble import Assembled, Budget, Materials, Now, assemble
from tests.prompt.reader import ALL_TITLES
from tests.session.scene import ME, NOW, inbound

GOLDEN = Path(__file__).parent / "golden"

FULLWIDTH = str.maketrans({chr(code): chr(code + 0xFEE0) for code in range(0x21, 0x7F)})

_PARTS = (
    *ALL_TITLES,
    *(title.translate(FULLWIDTH) for title in ALL_TITLES[:10]),
    "---",
    "-\u200b--",
    "---".translate(FULLWIDTH),
    "\u202e---",
    "\n\n---\n",
    "[Ann]: ",
    "[Olga (owner)]: ",
    "[Olga (owner)]: ".translate(FULLWIDTH),
    "\u200b[Ann]: ",
    "- [fact] ",
    "- durable-2ed36192 [fact] ",
    "(discord:10/20) ",
    "(manual) ",
    "sEnDeR:",
    "Us\u00ader message:",
    "</memory>",
    "Human:",
    "[memory context]",
    "{name}",
    "Mon 2026-02-02:",
    "Mon 2026-02-02:".translate(FULLWIDTH),
    "words",
    " ",
    "  ",
    "\t",
    "\u00a0",
    "\ufeff",
    "\u202e",
    "\u200f",
    "\x00",
    "\ud800",
    "\udfff",
)
_BREAKS = ("\n", "\n\n", "\r", "\r\n", "\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c", "\x1d", "\x1e")

HOSTILE = st.lists(st.sampled_from([*_PARTS, *_BREAKS, *_BREAKS]), max_size=12).map("".join)
"""Titles, separators, entries and line ends of every kind, in any order."""

NAME = st.one_of(
    st.sampled_from(["Ann", "ANN", "DiscoClaw", "Ann #2", "O’Brien", "assistant", "Mon 2026-02-02:", "m1 »"]),
    HOSTILE,
)


def assembled(text: str = "Hello", *, budget: Budget | None = None, **given: Any) -> Assembled:
    """The prompt for a message; `given` fills the materials."""
    message = given.pop("message", None) or inbound(1000, text)
    now = Now(NOW, given.pop("zone", UTC))
    files = given.pop("files", ())
    return assemble(Materials(message, ME, now, **given), budget or Budget(), files)


def shown(prompt: Assembled, *, without_first: bool = False) -> str:
    """A prompt as one text, for golden files."""
    blocks = prompt.system[1:] if without_first else prompt.system
    parts = [f"=== system{', cached up to here' if block.cache else ''}\n{block.text}" for block in blocks]
    return "\n".join([*parts, f"=== user\n{prompt.user}\n"])


def assert_golden(path: Path, text: str) -> None:
    """Compare with a kept text. One that is missing is written, and the test fails so that somebody looks."""
    if not path.exists():
        path.write_text(text, encoding="utf-8")
        raise AssertionError(f"{path.name} was missing and is now written: read it, then run again")
    assert text == path.read_text(encoding="utf-8")
