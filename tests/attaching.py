"""Files to attach in tests, and what a request's files look like."""

import base64
import random
from io import BytesIO
from typing import Any

from PIL import Image
from pypdf import PdfWriter

from tests.prompt.reader import FILES, TURN_TITLES, sections
from tests.servers.messages_api import Received

RED, BLUE = "image (255, 0, 0)", "image (0, 0, 255)"


def picture(width: int = 40, height: int = 30, colour: str = "red") -> bytes:
    """A PNG of one colour."""
    out = BytesIO()
    Image.new("RGB", (width, height), colour).save(out, "PNG")
    return out.getvalue()


def noise(width: int, height: int) -> bytes:
    """A PNG that nothing makes small."""
    out = BytesIO()
    pixels = random.Random(7).randbytes(width * height * 3)
    Image.frombytes("RGB", (width, height), pixels).save(out, "PNG")
    return out.getvalue()


def pdf(pages: int = 1) -> bytes:
    """A PDF of blank pages."""
    out, writer = BytesIO(), PdfWriter()
    for _ in range(pages):
        writer.add_blank_page(200, 200)
    writer.write(out)
    return out.getvalue()


def encoded(data: bytes) -> str:
    """Bytes as a request carries them."""
    return base64.b64encode(data).decode()


def content(received: Received) -> list[dict[str, Any]]:
    """The blocks of the first user message."""
    return list(received.body["messages"][0]["content"])


def shown(received: Received) -> list[str]:
    """The types of the blocks beside texts, with the colour of a picture."""
    return [_seen(block) for block in content(received) if block["type"] != "text"]


def files(received: Received) -> list[str]:
    """The lines of the section about files."""
    return sections(content(received)[-1]["text"], TURN_TITLES).get(FILES, [])


def _seen(block: dict[str, Any]) -> str:
    if block["type"] == "document":
        return "document"
    with Image.open(BytesIO(base64.b64decode(block["source"]["data"]))) as image:
        return f"image {image.convert('RGB').getpixel((0, 0))}"
