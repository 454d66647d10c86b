"""Rules about text: white space as JavaScript sees it, lengths as Discord counts them, safe file names.

Knows nothing about items or prompts. Sources: ECMA-262 (WhiteSpace, LineTerminator) for `js_*`;
Discord counts message lengths in UTF-16 code units, and so did the files we are compatible with.
"""

import re
import unicodedata
from functools import lru_cache

import regex

# ECMA-262 white space: contains U+FEFF, and unlike Python's neither U+0085 nor U+001C–U+001F.
_JS_SPACE = "\t\n\x0b\x0c\r \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
_JS_SPACES = re.compile(f"[{_JS_SPACE}]+")
_UNSAFE_KEY = re.compile(r"[^A-Za-z0-9:_-]+")
_INVISIBLE = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
_BRACKETS = {"Ps", "Pe"}  # of every width and style
# Letters, marks and a symbol that show nothing (Unicode: Default_Ignorable_Code_Point, and U+2800).
_BLANK = regex.compile(r"[\p{Default_Ignorable_Code_Point}\u2800]+")


def collapse(text: str) -> str:
    """Trim, and fold every run of (JavaScript) white space to one space."""
    if text.isascii() and text.isprintable() and "  " not in text:
        return text.strip(" ")  # nearly always, and folding a history asks it of every event
    return _JS_SPACES.sub(" ", text).strip(" ")


@lru_cache(maxsize=16_384)  # every draft asks it of every item
def normalise(text: str) -> str:
    """The form under which two texts are the same memory: collapsed and lower-cased."""
    return _JS_SPACES.sub(" ", text.lower()).strip(" ")


def scrub(text: str) -> str:
    """Text that can be encoded as UTF-8: lone surrogates become U+FFFD, NUL is dropped."""
    if text.isascii():
        return text.replace("\x00", "")
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").replace("\x00", "")


def utf16_length(text: str) -> int:
    """Length in UTF-16 code units: what Discord counts (an emoji is 2)."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def utf16_prefix(text: str, units: int) -> str:
    """The longest prefix of at most `units` UTF-16 code units; never cuts a code point."""
    if len(text) * 2 <= units:
        return text
    used = 0
    for index, char in enumerate(text):
        used += 2 if ord(char) > 0xFFFF else 1
        if used > units:
            return text[:index]
    return text


def clip(text: str, units: int) -> str:
    """Text of at most `units` UTF-16 code units; what is cut off is shown by a final "…"."""
    if utf16_length(text) <= units:
        return text
    return utf16_prefix(text, max(0, units - 1)).rstrip() + "…" if units > 0 else ""


def safe_key(session_key: str) -> str:
    """File name (without ".json") of a session key: runs of `[^A-Za-z0-9:_-]` become "-"."""
    return _UNSAFE_KEY.sub("-", session_key)


def visible(text: str) -> str:
    """The text without characters that show nothing."""
    return text if text.isascii() else _BLANK.sub("", text)


@lru_cache(maxsize=4_096)  # every prompt asks it of the same few names, several times
def speaker(name: str) -> str:
    """A person's name as it may stand in `[Name]: text`: one line, no brackets, nothing invisible.

    Brackets and parentheses are dropped so that nobody can call themselves "Ann (owner)".
    """
    kept = "".join(
        " " if char in "<>`“”" or unicodedata.category(char) in _INVISIBLE | _BRACKETS else char
        for char in unicodedata.normalize("NFKC", _BLANK.sub(" ", name))
    )
    return clip(collapse(kept), 48) or "someone"
