"""What kind of file some bytes are, told by how they begin. Neither name nor stated type is asked. Pure."""

import re
from typing import Final

PICTURES: Final = (
    (b"\x89PNG\r\n\x1a\n", "PNG"),
    (b"\xff\xd8\xff", "JPEG"),
    (b"GIF87a", "GIF"),
    (b"GIF89a", "GIF"),
)
"""How pictures that can be decoded begin, and Pillow's name for each; WebP has its own place for it."""

_AS_PICTURE = "Please send it as PNG or JPEG."
_AS_TEXT = "Please send what matters of it as text, PDF, PNG or JPEG."
_AS_PDF = "Please save it as PDF or text, and send that."
_SAID = "Please write what is said in it."
_ARCHIVE = f"is an archive, which I don't open. {_AS_TEXT}"
_PROGRAM = f"is a program, which I don't open. {_AS_TEXT}"
_UNKNOWN_PICTURE = f"is a picture of a kind I can't read. {_AS_PICTURE}"
_OFFICE_FILE = f"is an Office document, which I can't read. {_AS_PDF}"
_VIDEO = "is a video, which I can't watch. Please send a picture of what matters, or write what it shows."
_SOUND = f"is sound, which I can't hear. {_SAID}"

_HEIC = frozenset({b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"mif1", b"msf1"})
_AVIF = frozenset({b"avif", b"avis"})
_OTHERS: Final = (
    (rb"BM.{4}\x00{4}", f"is a BMP picture, which I can't read. {_AS_PICTURE}"),
    (rb"II\*\x00|MM\x00\*", f"is a TIFF picture or a camera's raw one, which I can't read. {_AS_PICTURE}"),
    (
        rb"8BPS|\x00\x00\x01\x00|\xff\x0a|\x00{3}\x0cJXL ",
        f"is a picture of a kind I can't read. {_AS_PICTURE}",
    ),
    (rb"RIFF.{4}WAVE|OggS|ID3|fLaC|\xff[\xe2-\xfb]|FORM.{4}AIF", _SOUND),
    (rb"RIFF.{4}AVI |\x1aE\xdf\xa3|FLV\x01|\x00\x00\x01[\xb3\xba]", _VIDEO),
    (rb"\xd0\xcf\x11\xe0", _OFFICE_FILE),
    (rb"PK\x05\x06|\x1f\x8b|7z\xbc\xaf|Rar!|\xfd7zXZ|BZh|\x28\xb5\x2f\xfd|.{257}ustar", _ARCHIVE),
    (
        rb"MZ|\x7fELF|\xca\xfe\xba\xbe|\xcf\xfa\xed\xfe|\x00asm",
        f"is a program, which I don't open. {_AS_TEXT}",
    ),
)
_OFFICE = re.compile(rb"\[Content_Types\]\.xml|mimetypeapplication/vnd\.oasis|word/|xl/|ppt/")


def picture_kind(data: bytes) -> str | None:
    """Pillow's name of the kind of a picture, if it is one that is read."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "WEBP"
    return next((kind for begin, kind in PICTURES if data.startswith(begin)), None)


def is_pdf(data: bytes) -> bool:
    """Whether a file is a PDF."""
    return data.startswith(b"%PDF-")


def why_not(data: bytes) -> str:
    """Why a file that is neither picture, PDF nor text is not read, to go on behind its name."""
    if data[4:8] == b"ftyp":
        return _of_boxes(data[8:12])
    if data.startswith(b"PK\x03\x04"):
        is_office = _OFFICE.search(data[:4096]) is not None
        return _OFFICE_FILE if is_office else _ARCHIVE
    for begin, why in _OTHERS:
        if re.match(begin, data[:512], re.DOTALL):
            return why
    return f"is no picture, PDF or text, so I can't read it. {_AS_TEXT}"


def _of_boxes(brand: bytes) -> str:
    """The same for the family of MP4, by its brand: phones' pictures, sound and videos begin alike."""
    if brand in _HEIC:
        return f"is a HEIC picture, which I can't read. {_AS_PICTURE}"
    if brand in _AVIF:
        return f"is an AVIF picture, which I can't read. {_AS_PICTURE}"
    return _SOUND if brand in (b"M4A ", b"M4B ") else _VIDEO
