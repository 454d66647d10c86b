"""Text rules: white space as JavaScript defines it, lengths as Discord counts them, safe file names.

The bot whose files we read was written in TypeScript. Ids are derived from its normalised texts, so white
space follows ECMA-262 (WhiteSpace and LineTerminator) rather than Python. Lengths are UTF-16 code units,
which is what Discord counts and JavaScript's `length` returns.
Knows nothing about items or prompts.
"""

import re
import unicodedata
from functools import lru_cache

import regex

# Unlike Python's white space, ECMA-262's contains U+FEFF, and neither U+0085 nor U+001C–U+001F.
_JS_SPACE = "\t\n\x0b\x0c\r \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
_JS_SPACES = re.compile(f"[{_JS_SPACE}]+")
_UNSAFE_KEY = re.compile(r"[^A-Za-z0-9:_-]+")
_INVISIBLE = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
_BRACKETS = {"Ps", "Pe"}  # of every width and style
# Characters that display as nothing: Unicode's Default_Ignorable_Code_Point, and the blank Braille pattern.
_BLANK = regex.compile(r"[\p{Default_Ignorable_Code_Point}\u2800]+")
# The same, with white space, control characters and interlinear marks; and the lines of code fences.
_NOTHING = regex.compile(r"[\s\p{Cc}\p{Default_Ignorable_Code_Point}\u2800\ufff9-\ufffb]*+")
_FENCE_LINE = regex.compile(r"(?m)^[ \t>]*+(?:`{3,}+[^`\n]*+|~{3,}+[^\n]*+)$")
_EMPTY_BLOCK = regex.compile(r"```[\s\p{Cc}\p{Default_Ignorable_Code_Point}\u2800]*+```")


def collapse(text: str) -> str:
    """The text trimmed, with every run of (JavaScript) white space replaced by one space."""
    if text.isascii() and text.isprintable() and "  " not in text:
        return text.strip(" ")  # the usual case; replaying a history calls this for every event
    return _JS_SPACES.sub(" ", text).strip(" ")


@lru_cache(maxsize=16_384)  # every draft compares the texts of all items
def normalise(text: str) -> str:
    """The form in which two texts count as the same memory: collapsed and lower-cased."""
    return _JS_SPACES.sub(" ", text.lower()).strip(" ")


def scrub(text: str) -> str:
    """The text made safe to encode as UTF-8: lone surrogates become U+FFFD, and NULs are removed."""
    if text.isascii():
        return text.replace("\x00", "")
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").replace("\x00", "")


def utf16_length(text: str) -> int:
    """The length in UTF-16 code units, as Discord counts it. Most emoji count as 2."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def utf16_prefix(text: str, units: int) -> str:
    """The longest prefix of at most `units` UTF-16 code units that does not split a character."""
    if len(text) * 2 <= units:  # even if every character took two units
        return text
    used = 0
    for index, char in enumerate(text):
        used += 2 if ord(char) > 0xFFFF else 1
        if used > units:
            return text[:index]
    return text


def clip(text: str, units: int) -> str:
    """The text, cut to at most `units` UTF-16 code units. A cut text ends in "…"."""
    if utf16_length(text) <= units:
        return text
    return utf16_prefix(text, max(0, units - 1)).rstrip() + "…" if units > 0 else ""


def safe_key(session_key: str) -> str:
    """The file name (without ".json") for a session key: runs of `[^A-Za-z0-9:_-]` become "-"."""
    return _UNSAFE_KEY.sub("-", session_key)


def visible(text: str) -> str:
    """The text without characters that display as nothing."""
    return text if text.isascii() else _BLANK.sub("", text)


def ends_blank(text: str, at: int = 0) -> bool:
    """Whether a text shows nothing from a place on: white space and characters that display as nothing."""
    return _NOTHING.fullmatch(text, at) is not None


def shows_nothing(text: str) -> bool:
    """Whether a text as a message shows nothing, or nothing but empty code blocks."""
    left = _EMPTY_BLOCK.sub("", text)
    return ends_blank(left) or ("\n" in left and ends_blank(_FENCE_LINE.sub("", left)))


@lru_cache(maxsize=4_096)  # every prompt asks it of the same few names, several times
def speaker(name: str) -> str:
    """A person's name in the form used in `[Name]: text`: one line, no brackets, nothing invisible.

    At most 48 UTF-16 units; "someone" if nothing is left. Brackets, parentheses and the mark of a person's
    own lines are removed so that nobody can call themselves "Ann (owner)" or "»".
    """
    # NFKC first, since it can produce brackets: "⒜" becomes "(a)".
    kept = "".join(
        " " if char in "<>`“”«»" or unicodedata.category(char) in _INVISIBLE | _BRACKETS else char
        for char in unicodedata.normalize("NFKC", _BLANK.sub(" ", name))
    )
    return clip(collapse(kept), 48) or "someone"


def size_text(size: int) -> str:
    """A number of bytes for people: “12.3 MB”."""
    return f"{size / 1e6:.1f} MB" if size >= 100_000 else f"{size / 1000:.1f} kB"
