"""Each kind of file that people have: made by its program, and read as docs/members/discord.md says."""

import base64
import gzip
import re
from io import BytesIO
from pathlib import Path
from typing import Any
from zipfile import ZipFile

from PIL import Image
from pypdf import PdfReader

from tests.attaching import content, files, shown
from tests.contract import corpus
from tests.contract.embedding import QUIET
from tests.contract.world import Start, World
from tests.servers.messages_api import Received

ONE = {**QUIET, "older_files": 0, "history_budget": 0}
SECRET = "sk-ant-" + "a1B2c3D4" * 5
LEFT_OUT = "has a picture, of which I saw nothing. Please send it as PNG."
HEADERS = b"HTTP/1.1 200 OK\r\nContent-Type: application/pdf\r\n\r\n"


def zipped(name: str, data: bytes = b"words", first: str = "") -> bytes:
    out = BytesIO()
    with ZipFile(out, "w", compression=8) as archive:
        if first:
            archive.writestr(first, "")
        archive.writestr(name, data)
    return out.getvalue()


def image(kind: str) -> bytes:
    return corpus.saved(corpus.photo(60, 40), kind)


def box(brand: str) -> bytes:
    """The beginning of an ISO media file."""
    return b"\x00\x00\x00\x18ftyp" + brand.encode() + b"\x00\x00\x00\x00mif1"


OF_EACH: dict[str, list[bytes]] = {
    "PNG": [image("PNG"), image("JPEG"), image("WEBP"), image("GIF")],
    "PDF": [corpus.made("plain.pdf")],
    "Word": [corpus.made("costs.xlsx")],
    "Jupyter": [corpus.made("plot.ipynb")],
    "SVG": [b'<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg"/>'],
    "text": [b"npm error", "Grüße".encode("utf-16"), b"{}", b'{"cells": 1}'],
    "HEIC": [box("heic")],
    "AVIF": [box("avif")],
    "BMP": [image("BMP")],
    "TIFF": [image("TIFF")],
    "Photoshop": [image("ICO")],
    "MP3": [
        box("M4A "),
        b"RIFF\x24\x00\x00\x00WAVEfmt \x10\x00\x00\x00",
        b"\xff\xfb\x90\x64" + b"\x00\x0f" * 99,
        b"OggS\x00\x02" + b"\x00" * 20,
    ],
    "MP4": [box("isom"), b"\x1aE\xdf\xa3\x9fB\x86\x81\x01B"],
    "older": [
        b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\x00" * 16,
        b"PK\x03\x04\x14\x00\x06\x00\x08\x00" + b"\x00" * 16 + b"[Content_Types].xml \xa2",
    ],
    "ZIP": [zipped("notes.txt"), gzip.compress(b"words"), b"PK\x03\x04\x14" + b"\x00\x9f" * 40],
    "programs": [b"MZ\x90\x00\x03\x00\x00\x00" + b"\x00\xff" * 200],
    "anything": [bytes(range(256)) * 4],
}
"""Files of each kind, by how its row begins in the docs."""


class Sent:
    """One file as it arrived at the model, and what its person was told below the answer."""

    def __init__(self, request: Received, answer: str) -> None:
        self.request = request
        self.told = answer.removeprefix("ok").strip().removeprefix("-# ")
        self.lines = files(request)

    @property
    def kind(self) -> str:
        """What the model was given: "image", "document" or "text"; "" if nothing."""
        if blocks := shown(self.request):
            return blocks[0].split()[0]
        return "text" if len(self.lines) > 1 else ""

    @property
    def text(self) -> str:
        """The text that is quoted; where something is left out in its middle stands "[…]"."""
        return "\n".join(line.removeprefix("  > ").strip("\r") for line in self.lines[1:])

    @property
    def data(self) -> list[bytes]:
        """The bytes of what stands beside the text."""
        blocks = [one for one in content(self.request) if one["type"] != "text"]
        return [base64.b64decode(one["source"]["data"]) for one in blocks]

    @property
    def pixels(self) -> list[Any]:
        return [corpus.pixels(one) for one in self.data]


async def sent(world: World, data: bytes, name: str = "it.bin") -> Sent:
    asked = len(world.turns())
    await world.says(world.ann, world.general, "look", attachments=[(name, data)])
    assert len(world.turns()) > asked
    return Sent(world.turns()[-1], world.answer(world.general))


class TestTheTableInTheDocs:
    async def test_holds_for_real_files_of_each_kind(self, start: Start) -> None:
        docs = Path("docs/members/discord.md").read_text("utf-8").partition("## Files and pictures")[2]
        rows = re.findall(r"^\| (.+) \| (.+) \|$", docs.partition("\n## ")[0], re.M)[1:]
        *read, (refused, told) = rows
        assert told == "answers what to send instead"
        named = [*(name for name, _ in read), *refused.split("; ")]
        assert sorted({begin for begin in OF_EACH for name in named if name.startswith(begin)}) == sorted(
            OF_EACH
        )
        assert len(named) == len(OF_EACH)
        wanted = {"PNG": "image", "PDF": "document"}
        wrong = {}
        async with start(**ONE) as world:
            for begin, kinds in OF_EACH.items():
                is_read = any(name.startswith(begin) for name, _ in read)
                for number, data in enumerate(kinds):
                    found = await sent(world, data)
                    good = found.kind == (wanted.get(begin, "text") if is_read else "")
                    if not is_read:
                        good &= "“it.bin” " in found.told and ". Please " in found.told
                    if not good:
                        wrong[begin, number] = (found.kind, found.told)
        assert wrong == {}


class TestAPicture:
    async def test_is_a_photo_without_its_camera_or_a_bomb_that_is_not_unpacked(self, start: Start) -> None:
        exif = Image.Exif()
        exif[0x010E] = "taken by Ann Example"
        photo = corpus.saved(corpus.photo(), "JPEG", exif=exif)
        async with start(**ONE) as world:
            (data,) = (await sent(world, photo, "cat.png")).data
            assert b"Ann" not in data and corpus.pixels(data).size == (640, 480)
            found = await sent(world, corpus.animation(3, "GIF"), "cat.gif")
            assert found.kind == "image" and "only the first picture" in found.told
            bomb = await sent(world, corpus.png_bomb(60_000, 60_000), "cat.png")
            assert bomb.data == [] and "too many pixels" in bomb.told


class TestPdf:
    async def test_reaches_the_model_open_and_from_its_header_on_or_is_refused_with_the_reason(
        self, start: Start
    ) -> None:
        async with start(**ONE) as world:
            for name, before in (("plain.pdf", HEADERS), ("owner.pdf", b"\r\n")):
                (data,) = (await sent(world, before + corpus.made(name))).data
                reader = PdfReader(BytesIO(data))
                assert data.startswith(b"%PDF-") and not reader.is_encrypted
                assert reader.pages[0].extract_text().strip() == "Invoice 4711"
            for why, data in {
                "protected with a password": corpus.made("open.pdf"),
                "damaged": corpus.pdf_of_endless_pages(),
            }.items():
                found = await sent(world, data, "paper.pdf")
                assert found.data == [] and why in found.told
            found = await sent(world, b"A file begins with\n%PDF-1.7\nor it is none.")
            assert found.text.endswith("none.")


class TestTexts:
    async def test_of_the_world_are_read_at_both_ends_and_leave_no_half_of_a_secret(
        self, start: Start
    ) -> None:
        async with start(**ONE) as world:
            found = await sent(world, "错误：找不到文件".encode("gbk"))
            assert "an encoding that I had to guess" in found.told
            found = await sent(world, b"started\n" + b"\x00" * 4096 + b"it failed\n")
            assert (found.text, found.told) == ("started\nit failed", "")
            found = await sent(world, "ünïcödé\n".encode() * 9 + b"\x1b[31mred\x1b[0m \xff")
            assert found.text.endswith("red\x1b[0m �") or "�" in found.text
            assert "damaged letters" in found.told
            for data in (b"", b"\x00" * 500, b" \n\t\n", b"\xef\xbb\xbf"):
                assert "is empty" in (await sent(world, data)).told
        async with start(**ONE, file_max_chars=1000) as world:
            lines = [*(f"строка {number}: всё хорошо" for number in range(9_000)), "последняя: ошибка 17"]
            for encoding in ("utf-8", "utf-16", "cp1251"):
                found = await sent(world, "\n".join(lines).encode(encoding))
                assert found.text.startswith("строка 0: ") and found.text.endswith("ошибка 17")
                assert "[…]" in found.text and "�" not in found.text
            whole = await sent(world, f"key={SECRET}".encode())
            assert "[REDACTED Anthropic key]" in whole.text
            key = "-----BEGIN PRIVATE KEY-----\n" + "MIIE" * 800 + "\n-----END PRIVATE KEY-----"
            for before in range(480, 500, 2):
                text = "x" * before + " " + SECRET + " y" * 9000
                assert "sk-ant" not in (await sent(world, text.encode())).text
            for before in range(0, 3_000, 500):
                assert "MIIE" not in (await sent(world, (key + "z" * before + "\n").encode() * 80)).text
            twice = f"sk-ant-{'a1B2' * 1030} {SECRET} {SECRET} {'y' * 9000}"
            assert "sk-" not in (await sent(world, twice.encode())).text


class TestOffice:
    async def test_is_read_as_text_what_is_left_out_is_told_and_no_bomb_goes_off(self, start: Start) -> None:
        async with start(**ONE) as world:
            found = await sent(world, corpus.made("minutes.docx"), "minutes.docx")
            assert "Ann brings the cake.\nwho\twhat" in found.text and LEFT_OUT in found.told
            bomb = zipped("word/document.xml", b" " * (64 * 2**20 + 1))
            assert len(bomb) < 100_000 and "unpacks to more than 64 MB" in (await sent(world, bomb)).told
            laughs = "".join(f'<!ENTITY a{n} "{f"&a{n - 1};" * 10}">' for n in range(1, 12))
            data = f'<!DOCTYPE x [<!ENTITY a0 "ha">{laughs}]><x><t>&a11;</t></x>'.encode()
            assert "damaged" in (await sent(world, zipped("word/document.xml", data))).told
            drawing = b'<?xml version="1.0"?>\n<!-- by hand -->\n<svg width="9"></svg>'
            found = await sent(world, drawing, "logo.svg")
            assert found.text.endswith('<svg width="9"></svg>') and "as PNG if I should see it" in found.told
