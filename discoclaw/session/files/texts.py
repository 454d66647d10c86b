"""Text from bytes of unknown encoding. Pure.

Nothing is believed about a file but its bytes: a paste comes as `message.txt` without a type, and a program
may be called `notes.txt`. Text is what decodes as UTF-8 or, with a byte order mark, as UTF-16, and else what
looks like a western language in Windows' encoding; zero bytes and other control characters mean binary.
"""

import codecs
import re
from collections.abc import Callable

from discoclaw.core.attached import TextFile
from discoclaw.core.text import scrub

MARGIN = 4096
"""Characters read beyond the limit, so that a secret across it is recognised. The longest is a PEM key."""
_SVG = re.compile(r"(?is)(?:<\?xml[^>]*+>|<!--.*?-->|<!DOCTYPE[^>]*+>|\s++)*+<svg[\s>]")
_SVG_NOTE = "(An SVG drawing. This is its source; the drawing itself cannot be seen.)\n"
# All but those of text: tab, line feed, form feed, carriage return, backspace, escape, bell.
_CONTROL = re.compile("[\x00-\x06\x0b\x0e-\x1a\x1c-\x1f\x7f]")
_NOT_WINDOWS = re.compile(rb"[\x81\x8d\x8f\x90\x9d]")


def text_of(name: str, data: bytes, most: int, clean: Callable[[str], str]) -> TextFile | None:
    """A file's text, up to `most` characters and without secrets; None if it is not text.

    `clean` removes the secrets, before the text is cut, so that no half of one is left.
    """
    more = most + MARGIN
    taken = data[: 4 * more]  # as many bytes as one character has at most
    text = _decoded(taken, whole=len(taken) == len(data))
    if text is None:
        return None
    beyond = len(text) > more or len(taken) < len(data)
    cleaned = clean(scrub(text[:more]))
    if beyond and len(cleaned) <= most:  # so much was secret that the end is seen, which may be half a secret
        cleaned = cleaned[: max(cleaned.rfind(" "), cleaned.rfind("\n")) + 1]
    if _SVG.match(cleaned[:2000]):
        cleaned = _SVG_NOTE + cleaned
    return TextFile(name, cleaned[:most], cut=beyond or len(cleaned) > most)


def _decoded(data: bytes, *, whole: bool) -> str | None:
    """The text of some bytes, of which the last character may be cut off unless they are `whole`."""
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        try:
            text = codecs.getincrementaldecoder("utf-16")().decode(data, final=whole)
        except UnicodeDecodeError:
            return None
        return None if _is_binary(text) else text
    if b"\x00" in data:
        return None
    text = codecs.getincrementaldecoder("utf-8-sig")("replace").decode(data, final=whole)
    broken = text.count("�")
    if broken:
        good = sum(character > "\x7f" for character in text) - broken
        if broken >= good:  # not UTF-8 with a few damaged places, but something else
            text = _windows(data) or ""
    return text if text.strip() and not _is_binary(text) else None


def _windows(data: bytes) -> str | None:
    """The text of bytes that look like a western language in Windows' encoding, a superset of Latin-1."""
    foreign = sum(byte > 0x7F for byte in data)
    if _NOT_WINDOWS.search(data) or foreign * 3 > len(data):
        return None
    return data.decode("cp1252")


def _is_binary(text: str) -> bool:
    """Whether there are control characters that no text has. One in a thousand may be damage of a log."""
    return len(_CONTROL.findall(text)) * 1000 > len(text)
