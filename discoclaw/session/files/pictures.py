"""Pictures, made anew: turned upright, scaled, and without anything but their pixels.

What a camera wrote beside them (place, time, its owner's name) goes nowhere. The size in the header is looked
at before anything is decoded: a few kilobytes can unpack to gigabytes. `reading` says where this runs.
"""

import struct
import warnings
from io import BytesIO
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

from PIL import Image, ImageFile

from discoclaw.session.files.refused import Refusal

if TYPE_CHECKING:  # this takes longer than a small picture does
    from discoclaw.core.message import PictureType

LONGEST_SIDE: Final = 1568
"""Pixels. The models scale larger pictures down to this themselves."""
LONG: Final = 2.5
"""A picture this many times as long as it is wide is cut, if it is large. A phone's screen has 2.2."""
THIN: Final = 64
"""Pixels. What is thinner has nothing to read."""
MOST_PARTS: Final = 8
"""A part takes up to 3,300 tokens."""
AGAIN: Final = 40
"""Pixels of a part that the next one begins with: a line of print may be cut."""
LEGIBLE: Final = 0.5
"""Print of 20 pixels on a phone has 10 then, which can still be read."""
SMALL_PRINT: Final = (
    "is so long that small print in it may be illegible to me. Please send it in several parts."
)
FIRST_ONLY: Final = "is an animation, of which I see only the first picture."
MOST_PIXELS: Final = 25_000_000
"""25 megapixels take 100 MB of RAM in each copy, and WebP makes five."""
MOST_JPEG_PIXELS: Final = 80_000_000
"""JPEG is decoded at a fraction of its size. Above this, Pillow itself gives a warning."""
QUALITY: Final = 88
PNG_SHARE: Final = 2
"""A PNG is taken if it is at most this many times as large as the JPEG: it keeps small print sharp."""
MOST_BYTES: Final = 5 * 2**20 * 3 // 4
"""The most bytes of a new picture: the Messages API refuses one that takes more than 5 MiB in base64."""
ROUGHLY: Final = 60
"""The quality of what is still larger, which only noise is."""
FEW_COLOURS: Final = 256
TOO_LARGE = "has too many pixels. Please scale it down to at most 5,000 × 5,000, and send it again."

# At 89 megapixels Pillow warns, and goes on.
warnings.simplefilter("error", Image.DecompressionBombWarning)
ImageFile.LOAD_TRUNCATED_IMAGES = False

# What broken camera data raises, without which a picture is still a picture.
_BAD_EXIF = (
    OSError,
    SyntaxError,
    ValueError,
    EOFError,
    TypeError,
    LookupError,
    ArithmeticError,
    struct.error,
)
_ORIENTATION = 0x0112
_PNG: Final = b"\x89PNG\r\n\x1a\n"
_UPRIGHT: Final = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}


class Made(NamedTuple):
    """A picture written anew."""

    type: "PictureType"
    data: bytes
    width: int
    height: int


def made_anew(data: bytes) -> tuple[list[Made], str]:
    """The picture in a file, in several parts if it is long, and what to tell its sender.

    Raises Refusal, and whatever Pillow runs into in a broken file.
    """
    try:
        with Image.open(BytesIO(_without_texts(data)), formats=["PNG", "JPEG", "GIF", "WEBP"]) as opened:
            photo = opened.format not in ("PNG", "GIF", "WEBP")
            note = FIRST_ONLY if not photo and getattr(opened, "is_animated", False) else ""
            parts = _parts(_decoded(opened))
        if min(max(part.size) for part in parts) > LONGEST_SIDE / LEGIBLE and len(parts) == MOST_PARTS:
            note = SMALL_PRINT
        return [_made(_scaled(part), photo=photo) for part in parts], note
    except (Image.DecompressionBombError, Image.DecompressionBombWarning, MemoryError):
        raise Refusal(TOO_LARGE) from None


def _without_texts(data: bytes) -> bytes:
    """A PNG without its texts and colour profile. Pillow refuses to unpack those above 1 MB."""
    if not data.startswith(_PNG):
        return data
    kept, at = [data[: len(_PNG)]], len(_PNG)
    while at < len(data):
        end = at + 12 + int.from_bytes(data[at : at + 4])
        if data[at + 4 : at + 8] not in (b"tEXt", b"zTXt", b"iTXt", b"iCCP"):
            kept.append(data[at:end])
        at = end
    return b"".join(kept)


def _parts(image: Image.Image) -> list[Image.Image]:
    """A picture that is long, in equal parts from its top or its left, as few as stay legible."""
    longest, shortest = max(image.size), min(image.size)
    if longest <= max(LONGEST_SIDE, LONG * shortest) or shortest < THIN:
        return [image]
    number = min(MOST_PARTS, -(-longest // LONGEST_SIDE))
    ends = [longest * part // number for part in range(number + 1)]
    if longest == image.height:
        return [image.crop((0, max(0, begin - AGAIN), image.width, end)) for begin, end in pairwise(ends)]
    return [image.crop((max(0, begin - AGAIN), 0, end, image.height)) for begin, end in pairwise(ends)]


def _decoded(opened: ImageFile.ImageFile) -> Image.Image:
    """The pixels of an opened picture: upright, as grey, colours, or colours with transparency."""
    is_jpeg = opened.format == "JPEG"
    if opened.width * opened.height > (MOST_JPEG_PIXELS if is_jpeg else MOST_PIXELS):
        raise Refusal(TOO_LARGE)
    if is_jpeg:
        opened.draft(None, (LONGEST_SIDE, LONGEST_SIDE))  # decode a half, a quarter or an eighth of it
    opened.load()
    turned = _UPRIGHT.get(_orientation(opened))
    image = _plain(opened)
    if turned is not None:
        image = image.transpose(turned)
    image.info = {}  # a comment in here would be written again
    return image


def _scaled(image: Image.Image) -> Image.Image:
    """A picture as large as models look at it."""
    longest = max(image.size)
    if longest <= LONGEST_SIDE:
        return image
    width, height = (max(1, round(side * LONGEST_SIDE / longest)) for side in image.size)
    return image.resize((width, height), Image.Resampling.LANCZOS, reducing_gap=2.0)


def _orientation(opened: ImageFile.ImageFile) -> int:
    """Which way up a camera held the picture, by its own words; 1 if it says nothing that can be read."""
    try:
        found = opened.getexif().get(_ORIENTATION, 1)
    except _BAD_EXIF:
        return 1
    return found if isinstance(found, int) else 1


def _plain(image: Image.Image) -> Image.Image:
    """A picture in one of the three forms that everything can read: L, RGB, RGBA."""
    if image.mode.startswith("I"):  # grey of 16 bits, which `convert` would cut instead of scale
        return image.convert("F").point(lambda value: value * (1 / 257) + 0).convert("L")
    if image.mode in ("1", "L") and "transparency" not in image.info:
        return image.convert("L")
    if "transparency" in image.info or image.mode in ("LA", "La", "PA", "RGBA", "RGBa"):
        clear = image.convert("RGBA")
        is_opaque = clear.getchannel("A").getextrema() == (255, 255)
        return clear.convert("RGB") if is_opaque else clear
    return image.convert("RGB")


def _made(image: Image.Image, *, photo: bool) -> Made:
    type_, data = _written(image, photo=photo)
    return Made(type_, data, image.width, image.height)


def _written(image: Image.Image, *, photo: bool) -> "tuple[PictureType, bytes]":
    """A picture as PNG or JPEG, and which of them."""
    if image.mode == "RGBA" or (not photo and image.getcolors(FEW_COLOURS) is not None):
        png = _saved(image, "PNG")
        if len(png) <= MOST_BYTES:
            return "image/png", png
        image, photo = _on_white(image), True
    jpeg = _saved(image, "JPEG", quality=QUALITY)
    png = b"" if photo else _saved(image, "PNG")
    if png and len(png) <= min(PNG_SHARE * len(jpeg), MOST_BYTES):
        return "image/png", png
    if len(jpeg) > MOST_BYTES:
        jpeg = _saved(image, "JPEG", quality=ROUGHLY)
    return "image/jpeg", jpeg


def _on_white(image: Image.Image) -> Image.Image:
    """A picture without transparency, which JPEG doesn't have."""
    if image.mode != "RGBA":
        return image
    white = Image.new("RGBA", image.size, "white")
    return Image.alpha_composite(white, image).convert("RGB")


def _saved(image: Image.Image, kind: str, **how: int) -> bytes:
    out = BytesIO()
    image.save(out, kind, **how)
    return out.getvalue()
