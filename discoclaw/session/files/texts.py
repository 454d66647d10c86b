"""Text from bytes of unknown encoding, and as much of it as a prompt may have. Pure.

Nothing is believed about a file but its bytes: a paste comes as `message.txt` without a type, and a program
may be called `notes.txt`. `plain` knows UTF-8, and UTF-16 with a byte order mark; what it does not know is
left to `detected`, which takes a library, and therefore runs in the process that opens files.
"""

import codecs
import re
from collections.abc import Callable
from typing import Final

from discoclaw.core.message import TextFile
from discoclaw.core.text import scrub

MARGIN: Final = 4096
"""Characters beside a cut that may be half of a secret. The longest secret is a PEM key."""
SAMPLE: Final = 2**16
"""Bytes by which an encoding is recognised."""
FEW: Final = 64
"""Bytes beyond ASCII. Of fewer, the detector took Russian (KOI8-R, 51 of them) for Japanese."""
CLOSE: Final = 0.1
"""How much worse a second reading may look, and still be the right one: Turkish was 0.08 behind Danish."""
UNSURE: Final = (
    "is in an encoding that I had to guess; letters may be wrong. Please send it as UTF-8 if they are."
)
DAMAGED: Final = "has damaged letters, which I read as “�”. Please send it again if they matter."
# All but those of text: tab, line feed, form feed, carriage return, backspace, escape, bell.
_CONTROL = re.compile("[\x00-\x06\x0b\x0e-\x1a\x1c-\x1f\x7f]")
_WITHIN = bytes(range(0x80, 0xC0))  # no character of UTF-8 begins with these
_MARKS = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}


def plain(name: str, data: bytes, most: int, clean: Callable[[str], str]) -> TextFile | None:
    """A text in Unicode as `shortened` makes it; None if it is none, as far as can be said here."""
    taken = 4 * (most + 4 * MARGIN)  # as many bytes as one character has at most; an even number
    encoding = _MARKS.get(data[:2], "utf-8")
    texts = [_decoded(data, encoding)] if len(data) <= 2 * taken else []
    if not texts:
        end = data[-taken - len(data) % 2 :]
        texts = [
            _decoded(data[:taken], encoding, final=False),
            _decoded(end if encoding != "utf-8" else end.lstrip(_WITHIN), encoding),
        ]
    text = "".join(texts)
    broken = text.count("�")
    good = sum(character > "\x7f" for character in text) - broken if broken else 1
    if broken >= good or not text.strip("\x00 \t\r\n") or _is_binary(text):
        return None
    note = DAMAGED if broken else ""
    return shortened(TextFile(name, texts[0], end="".join(texts[1:]), note=note), most, clean)


def detected(data: bytes) -> tuple[str, str] | None:
    """The text in bytes that aren't UTF-8, and what to tell their sender; None if it is none."""
    from charset_normalizer import from_bytes  # 10 MB of RAM, which only the process for files should take

    sample = data[:SAMPLE]
    matches = list(from_bytes(sample))
    if not matches:
        return None
    best = matches[0]
    close = [
        one for one in matches if one.chaos <= best.chaos + CLOSE and one.coherence >= best.coherence - CLOSE
    ]
    # If the letters decide which language it is, it is most often the encoding of western Windows.
    western = (one for one in close if one.encoding == "cp1252" and one.language != best.language)
    encoding = next(western, best).encoding
    text = data.decode(encoding, "replace")
    if _is_binary(text) or (b"\x00" in sample and not encoding.startswith("utf_16")):
        return None
    few = sum(byte > 0x7F for byte in sample) < FEW and not encoding.startswith("utf_16")
    return text, UNSURE if few or len(close) > 1 or "�" in text else ""


def shortened(file: TextFile, most: int, clean: Callable[[str], str]) -> TextFile:
    """A text without secrets; its beginning and its end if it has more than `most` characters.

    `clean` removes the secrets. Where the text is cut before that, a margin of what it makes is dropped, so
    that no half of a secret is left. `file.end` are the last characters of a text of which the middle was
    never decoded.
    """
    half, head, end = most // 2, file.text, file.end
    taken = most + 4 * MARGIN
    if not end and len(head) <= 2 * taken:
        whole = clean(scrub(head))
        if len(whole) <= most:
            return TextFile(file.name, whole, note=file.note)
        head, end = whole, whole
    else:
        head, end = clean(scrub(head[:taken]))[:-MARGIN], clean(scrub((end or head)[-taken:]))[MARGIN:]
    end = end[max(0, len(end) - half) :]
    return TextFile(file.name, head[: most - half], cut=True, end=end, note=file.note)


def _decoded(piece: bytes, encoding: str, *, final: bool = True) -> str:
    """The text of a piece of a file. A run of zero bytes, which a crash leaves in a log, becomes one."""
    if encoding == "utf-8":
        piece = re.sub(rb"\x00+", b"\x00", piece)
    return codecs.getincrementaldecoder(encoding)("replace").decode(piece, final).removeprefix("\ufeff")


def _is_binary(text: str) -> bool:
    """Whether there are control characters that no text has. One in a thousand may be damage of a log."""
    return len(_CONTROL.findall(text)) > max(1, len(text) // 1000)
