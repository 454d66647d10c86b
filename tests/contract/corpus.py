"""Files as people send them, and as nobody should: made here, byte by byte where no program writes them."""

import struct
import zlib
from io import BytesIO
from pathlib import Path
from typing import Any

from PIL import Image, ImageDraw
from PIL.Image import Image as Pixels
from pypdf import PdfWriter

MADE = Path(__file__).parent / "made"
"""By python-docx, openpyxl, odfpy, python-pptx, nbformat and reportlab; pypdf encrypted two, with AES-256."""
PNG = b"\x89PNG\r\n\x1a\n"


def photo(width: int = 640, height: int = 480) -> Pixels:
    """A picture of many colours, without repetition."""
    noise = Image.effect_noise((max(1, width // 8), max(1, height // 8)), 80)
    shades = [
        noise,
        noise.transpose(Image.Transpose.ROTATE_180),
        Image.linear_gradient("L").resize(noise.size),
    ]
    return Image.merge("RGB", shades).resize((width, height), Image.Resampling.BICUBIC)


def screenshot(width: int = 800, height: int = 600) -> Pixels:
    """Small print on white."""
    image = Image.new("RGB", (width, height), "white")
    draw = ImageDraw.Draw(image)
    for line in range(10, height - 10, 14):
        draw.text((10, line), f"{line:04d} error: the build failed, see the log of step {line}", fill="black")
    return image


def saved(image: Pixels, kind: str, **how: Any) -> bytes:
    """A picture as the bytes of a file."""
    out = BytesIO()
    if kind == "PNG":
        how = {"compress_level": 1, **how}  # packing noise well takes seconds, and gains nothing
    image.save(out, kind, **how)
    return out.getvalue()


def pixels(data: bytes) -> Pixels:
    """The pixels of a file, as somebody would see them."""
    image = Image.open(BytesIO(data))
    image.load()
    return image


def png_chunk(name: bytes, data: bytes) -> bytes:
    """A chunk of a PNG file."""
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def png_bomb(width: int, height: int) -> bytes:
    """A PNG that says it has so many pixels, and takes next to nothing."""
    header = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    packed = zlib.compress(b"\x00" * 5_000_000)
    return PNG + png_chunk(b"IHDR", header) + png_chunk(b"IDAT", packed) + png_chunk(b"IEND", b"")


def animation(frames: int, kind: str) -> bytes:
    """An animation that begins red and goes on in shades of blue."""
    first = Image.new("RGB", (40, 30), (255, 0, 0))
    others = [Image.new("RGB", (40, 30), (0, 0, one % 200 + 50)) for one in range(1, frames)]
    return saved(first, kind, save_all=True, append_images=others, duration=20, quality=100, lossless=True)


def made(name: str) -> bytes:
    """A file that a program of its kind has made."""
    return (MADE / name).read_bytes()


def pdf(pages: int, password: str = "") -> bytes:
    """A PDF file with empty pages."""
    writer = PdfWriter()
    for _ in range(pages):
        writer.add_blank_page(200, 200)
    if password:
        writer.encrypt(password, algorithm="RC4-128")
    out = BytesIO()
    writer.write(out)
    return out.getvalue()


def pdf_of(objects: list[str]) -> bytes:
    """A PDF file of these objects, the first of which is its catalog."""
    out, places = b"%PDF-1.4\n", []
    for number, one in enumerate(objects, start=1):
        places.append(len(out))
        out += f"{number} 0 obj\n{one}\nendobj\n".encode()
    table = "".join(f"{place:010d} 00000 n \n" for place in places)
    head = f"xref\n0 {len(places) + 1}\n0000000000 65535 f \n"
    tail = f"trailer\n<< /Size {len(places) + 1} /Root 1 0 R >>\nstartxref\n{len(out)}\n%%EOF\n"
    return out + (head + table + tail).encode()


def pdf_of_endless_pages(levels: int = 40) -> bytes:
    """A PDF of 2 kB whose page tree has more than a billion pages: each level names the next one twice."""
    objects = ["<< /Type /Catalog /Pages 2 0 R >>"]
    objects += [
        f"<< /Type /Pages /Count 2 /Kids [{number + 1} 0 R {number + 1} 0 R] >>"
        for number in range(2, levels)
    ]
    objects.append("<< /Type /Page /MediaBox [0 0 1 1] >>")
    return pdf_of(objects)
