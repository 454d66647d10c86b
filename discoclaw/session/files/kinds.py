"""Kinds of files: how each is recognised, what is read of it and how much, and what its sender is told.

`KINDS` is the one list of them; docs/members/discord.md shows it as a table. Only bytes decide: neither the
name of a file nor its stated type is asked.
"""

import codecs
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from discoclaw.core.message import TextFile
from discoclaw.core.text import scrub

_AS_PICTURE = "Please send it as PNG or JPEG."
_AS_TEXT = "Please send what matters of it as text, PDF, PNG or JPEG."
_SAID = "Please write what is said in it."
_MARKUP = rb"(?:\xef\xbb\xbf)?(?:<\?xml[^>]*+>|<!--.*?-->|<!DOCTYPE[^>]*+>|\s++)*+<svg[\s>]"


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of file, `name` to people, which `begins` with a pattern and `has` one of these pieces.

    `opener` is what reads it: a name that `child.main` knows, "text", or "" for what is not read. `told` is
    what people are told: in the docs if it is read, else behind the file's name. `note`
    is told with each one.
    """

    name: str
    opener: str
    begins: bytes
    told: str
    has: tuple[bytes, ...] = ()
    note: str = ""

    def fits(self, data: bytes) -> bool:
        """Whether a file is of this kind."""
        found = re.match(self.begins, data[:4096], re.DOTALL | re.IGNORECASE)
        return found is not None and (not self.has or any(one in data for one in self.has))


TEXT: Final = Kind(
    "text of any kind and encoding: logs, code, CSV, a long paste",
    "text",
    b"",
    "reads up to 20,000 characters; of a longer one the first and the last 10,000, and says so. It also says "
    "if it isn't sure of the encoding, because letters may be wrong then",
)
KINDS: Final = (
    Kind(
        "PNG, JPEG, WebP, GIF",
        "picture",
        rb"\x89PNG\r\n\x1a\n|\xff\xd8\xff|GIF8[79]a|RIFF.{4}WEBP",
        "sees the picture, scaled to 1,568 pixels. A long screenshot is cut into up to eight parts; it says "
        "so if small print may be illegible even then, and if of an animation it sees the first picture only",
    ),
    Kind(
        "PDF",
        "PDF",
        rb"[\s\x00\xef\xbb\xbf]*%PDF-|.{0,1000}?[\r\n]%PDF-\d\.\d\s*%[\x80-\xff]{4}",
        "reads it, up to 48 pages (up to 100 where `DISCOCLAW_CONTEXT_TOKENS` leaves room), also if a "
        "password protects it only from changes; if it takes a password to open it, it says so",
    ),
    Kind(
        "Word, Excel, PowerPoint (.docx, .xlsx, .pptx), OpenDocument (.odt, .ods, .odp)",
        "office",
        rb"PK\x03\x04",
        "reads the text like any other text, a table line by line with its values; says how many pictures it "
        "left out",
        has=(
            b"word/document.xml",
            b"xl/workbook.xml",
            b"ppt/presentation.xml",
            b"application/vnd.oasis.opendocument.",
        ),
    ),
    Kind(
        "Jupyter notebook (.ipynb)",
        "notebook",
        rb"(?:\xef\xbb\xbf)?\s*\{",
        "reads the cells and what they printed like any other text; says how many pictures it left out",
        has=(b'"nbformat"',),
    ),
    Kind(
        "SVG",
        "text",
        _MARKUP,
        "reads its source, and says that it can't see the drawing",
        note="is a drawing of which I read only the source. Please send it as PNG if I should see it.",
    ),
    TEXT,
    Kind(
        "HEIC",
        "",
        rb".{4}ftyp(?:hei[cxms]|hev[cx]|mif1)",
        f"is a HEIC picture, which I can't read. {_AS_PICTURE}",
    ),
    Kind("AVIF", "", rb".{4}ftypavi[fs]", f"is an AVIF picture, which I can't read. {_AS_PICTURE}"),
    Kind("BMP", "", rb"BM.{4}\x00{4}", f"is a BMP picture, which I can't read. {_AS_PICTURE}"),
    Kind(
        "TIFF, raw pictures of cameras",
        "",
        rb"II\*\x00|MM\x00\*",
        f"is a TIFF picture or a camera's raw one, which I can't read. {_AS_PICTURE}",
    ),
    Kind(
        "Photoshop, icons, JPEG XL",
        "",
        rb"8BPS|\x00\x00\x01\x00|\xff\x0a|\x00{3}\x0cJXL ",
        f"is a picture of a kind I can't read. {_AS_PICTURE}",
    ),
    Kind(
        "MP3, M4A, WAV, Ogg, FLAC",
        "",
        rb".{4}ftypM4[AB] |RIFF.{4}WAVE|OggS|ID3|fLaC|\xff[\xe2-\xfb]|FORM.{4}AIF",
        f"is sound, which I can't hear. {_SAID}",
    ),
    Kind(
        "MP4, WebM, AVI",
        "",
        rb".{4}ftyp|RIFF.{4}AVI |\x1aE\xdf\xa3|FLV\x01|\x00\x00\x01[\xb3\xba]",
        "is a video, which I can't watch. Please send a picture of what matters, or write what it shows.",
    ),
    Kind(
        "older Office documents (.doc, .xls, .ppt), and those with a password",
        "",
        rb"\xd0\xcf\x11\xe0|PK\x03\x04.*(?:\[Content_Types\]\.xml|mimetypeapplication/vnd\.oasis)",
        "is an Office document that is old or has a password, which I can't read. "
        "Please save it without one as .docx, .xlsx or PDF, and send that.",
    ),
    Kind(
        "ZIP and other archives",
        "",
        rb"PK[\x03\x05][\x04\x06]|\x1f\x8b|7z\xbc\xaf|Rar!|\xfd7zXZ|BZh|\x28\xb5\x2f\xfd|.{257}ustar",
        f"is an archive, which I don't open. {_AS_TEXT}",
    ),
    Kind(
        "programs",
        "",
        rb"MZ|\x7fELF|\xca\xfe\xba\xbe|\xcf\xfa\xed\xfe|\x00asm",
        f"is a program, which I don't open. {_AS_TEXT}",
    ),
    Kind("anything else", "", b"", f"isn't a picture, PDF or text, so I can't read it. {_AS_TEXT}"),
)


def kind_of(data: bytes) -> Kind:
    """The kind of a file that is read; `TEXT` for what may be text, which only its letters say."""
    return next(kind for kind in KINDS if kind.fits(data))


def why_not(data: bytes) -> str:
    """Why a file that turned out not to be text is not read, to go on behind its name."""
    return next(kind.told for kind in KINDS if not kind.opener and kind.fits(data))


# ----------------------------------------------------------------------
# Text from bytes of unknown encoding, and as much of it as a prompt may have. Pure.
#
# Nothing is believed about a file but its bytes: a paste comes as `message.txt` without a type, and a program
# may be called `notes.txt`. `plain` knows UTF-8, and UTF-16 with a byte order mark; what it does not know is
# left to `detected`, which takes a library, and therefore runs in the process that opens files.

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
