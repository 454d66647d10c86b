"""Kinds of files: how each is recognised, what is read of it and how much, and what its sender is told.

`KINDS` is the one list of them; docs/members/discord.md shows it as a table. Only bytes decide: neither the
name of a file nor its stated type is asked.
"""

import re
from dataclasses import dataclass
from typing import Final

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
