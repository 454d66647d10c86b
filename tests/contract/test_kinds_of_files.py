"""Each kind of file that people have: made by its program, and read as docs/members/discord.md says."""

import base64
import gzip
import re
from collections.abc import Callable
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
    "PDF": [corpus.made("plain.pdf"), corpus.made("owner.pdf")],
    "Word": [
        corpus.made(name) for name in ("minutes.docx", "costs.xlsx", "talk.pptx", "letter.odt", "sheet.ods")
    ],
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


PICTURES: dict[str, tuple[Callable[[], bytes], Callable[[Sent], bool]]] = {
    "a large one is scaled": (
        lambda: corpus.saved(corpus.photo(3000, 2000), "PNG"),
        lambda found: found.pixels[0].size == (1568, 1045),
    ),
    "print stays sharp": (
        lambda: corpus.saved(corpus.screenshot(), "PNG"),
        lambda found: found.pixels[0].format == "PNG",
    ),
    "photos are small": (
        lambda: corpus.saved(corpus.photo(1500, 1500), "PNG"),
        lambda found: found.pixels[0].format == "JPEG",
    ),
    "no camera tells where it was": (
        lambda: taken(),
        lambda found: (
            b"Ann" not in found.data[0]
            and b"Exif" not in found.data[0]
            and dict(found.pixels[0].getexif()) == {}
        ),
    ),
    "one held sideways is turned upright": (
        lambda: lying(),
        lambda found: found.pixels[0].size == (100, 200) and reddish(found.pixels[0], 50, 10),
    ),
    "one that moves is told to be seen in part": (
        lambda: corpus.animation(3, "GIF"),
        lambda found: "only the first picture" in found.told and reddish(found.pixels[0], 5, 5),
    ),
    "a long one is cut into parts in their order": (
        lambda: corpus.saved(Image.linear_gradient("L").resize((1080, 14_000)), "PNG"),
        lambda found: in_order(found.pixels) and found.told == "",
    ),
    "a bomb is not unpacked": (
        lambda: corpus.png_bomb(60_000, 60_000),
        lambda found: found.data == [] and "too many pixels" in found.told,
    ),
}


def taken() -> bytes:
    exif = Image.Exif()
    exif[0x010E] = "taken by Ann Example"
    exif.get_ifd(0x8825).update({1: "N", 2: (52.0, 31.0, 12.5)})
    return corpus.saved(corpus.photo(), "JPEG", exif=exif, comment=b"at Ann's house")


def lying() -> bytes:
    exif = Image.Exif()
    exif[0x0112] = 6
    image = Image.new("RGB", (200, 100), "blue")
    image.paste("red", (0, 0, 40, 100))
    return corpus.saved(image, "JPEG", exif=exif, quality=95)


def reddish(image: Any, x: int, y: int) -> bool:
    red, _, blue = image.convert("RGB").getpixel((x, y))
    return bool(red > 200 > 60 > blue)


def in_order(parts: list[Any]) -> bool:
    light = [one.convert("L").getpixel((9, 9)) for one in parts]
    sizes = [sorted(one.size) for one in parts]
    return (
        len(parts) == 8
        and light == sorted(light)
        and light[0] < 10
        and light[-1] > 200
        and all(low > 900 and high == 1568 for low, high in sizes)
    )


class TestPictures:
    async def test_are_seen_as_their_person_sees_them(self, start: Start) -> None:
        async with start(**ONE) as world:
            wrong = {}
            for name, (made, right) in PICTURES.items():
                found = await sent(world, made(), "cat.png")
                if not right(found):
                    wrong[name] = (found.lines, found.told)
        assert wrong == {}


class TestPdf:
    async def test_reaches_the_model_open_and_from_its_header_on_or_is_refused_with_the_reason(
        self, start: Start
    ) -> None:
        async with start(**ONE) as world:
            for name in ("plain.pdf", "owner.pdf"):
                for before in (b"\r\n", HEADERS):
                    (data,) = (await sent(world, before + corpus.made(name))).data
                    reader = PdfReader(BytesIO(data))
                    assert data.startswith(b"%PDF-") and not reader.is_encrypted
                    assert reader.pages[0].extract_text().strip() == "Invoice 4711"
            refused = {
                "protected with a password": corpus.made("open.pdf"),
                "without one": corpus.pdf(2, password="secret"),
                "101 pages; I read 100": corpus.pdf(101),
                "has no pages": corpus.pdf(0),
                "damaged": corpus.pdf(5)[:400],
                "damaged, so I can": corpus.pdf_of_endless_pages(),
            }
            wrong = {}
            for why, data in refused.items():
                found = await sent(world, data, "paper.pdf")
                if found.data or why.split(",")[0].removeprefix("is ") not in found.told:
                    wrong[why] = found.told
            assert wrong == {}
            found = await sent(world, b"A file begins with\n%PDF-1.7\nor it is none.")
            assert found.text.endswith("none.")


LANGUAGES = {
    "cp1250": "Zażółć gęślą jaźń, a potem wróć do domu. Dziękuję bardzo, proszę przesłać plik jeszcze raz.",
    "cp1251": "Привет, как дела? Сегодня хорошая погода, и мы пошли гулять в парк.",
    "cp1252": "Der Fluß führt über die Höhe. Schöne Grüße aus München, es ist größer und schöner als früher.",
    "gbk": "你好，今天天气很好，我们去公园散步吧。请把文件再发一次。",
    "shift_jis": "こんにちは。今日は天気がとても良いので、公園に散歩に行きましょう。",
    "euc_kr": "안녕하세요. 오늘 날씨가 아주 좋아서 공원에 산책하러 갑시다.",
    "utf-8": "naïve — 日本",
    "utf-8-sig": "Grüße aus Köln, wo es früh kühl ist.",
    "utf-16-le": "npm error code 1, see the log",
    "utf-16-be": "Привет, как дела? Сегодня хорошая погода",
}
UNSURE = {
    "cp1254": "Günaydın, nasılsınız? Bugün hava çok güzel. Şimdi öğle yemeği yiyeceğiz.\n" * 9,
    "cp1250": "id;imię;miasto\n1;Łukasz;Łódź\n2;Paweł;Kraków\n",
    "koi8_r": "Привет, как дела? Сегодня хорошая погода",
    "gbk": "错误：找不到文件",
}


class TestTexts:
    async def test_of_the_world_are_read_at_both_ends_and_leave_no_half_of_a_secret(
        self, start: Start
    ) -> None:
        async with start(**ONE) as world:
            wrong = {}
            for encoding, line in LANGUAGES.items():
                words = "\n".join([line] * 6)
                found = await sent(world, words.encode(encoding), "message.txt")
                if (found.text, found.told) != (words, ""):
                    wrong[encoding] = (found.text, found.told)
            for encoding, line in UNSURE.items():
                found = await sent(world, line.encode(encoding))
                if "an encoding that I had to guess" not in found.told:
                    wrong[f"{encoding}, unsure"] = found.told
            assert wrong == {}
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


OFFICE = [
    ("minutes.docx", "Ann brings the cake.\nwho\twhat\t\nBob\ttea\t\n\nThe end.", LEFT_OUT),
    ("costs.xlsx", "## Costs\nwhat\twhen\teuro\ncake\t2026-11-27\t12.5\ntea\t2026-11-27 15:30:00\t3", ""),
    ("letter.odt", "Letter\nDear Ann, the cake was good.\na\tb\t", ""),
    ("sheet.ods", "## Sheet\nx\ty\n1\t2", ""),
    ("talk.pptx", "Title 9\nbody 9\n\nTitle 10\nbody 10", ""),
    ("plot.ipynb", "# Result\nIt *works*\n\n[3: code]\nprint(42)\n1/0\n\n[3: output]\n42\n", LEFT_OUT),
]


class TestOffice:
    async def test_is_read_as_text_what_is_left_out_is_told_and_no_bomb_goes_off(self, start: Start) -> None:
        async with start(**ONE) as world:
            wrong = {}
            for name, words, note in OFFICE:
                found = await sent(world, corpus.made(name), name)
                bare = [line.rstrip() for line in found.text.splitlines()]
                wanted = [line.rstrip() for line in words.strip().splitlines()]
                if "\n".join(wanted) not in "\n".join(bare) or note not in found.told:
                    wrong[name] = (found.text, found.told)
            assert wrong == {}
            bomb = zipped("word/document.xml", b" " * (64 * 2**20 + 1))
            assert len(bomb) < 100_000 and "unpacks to more than 64 MB" in (await sent(world, bomb)).told
            laughs = "".join(f'<!ENTITY a{n} "{f"&a{n - 1};" * 10}">' for n in range(1, 12))
            data = f'<!DOCTYPE x [<!ENTITY a0 "ha">{laughs}]><x><t>&a11;</t></x>'.encode()
            assert "damaged" in (await sent(world, zipped("word/document.xml", data))).told
            drawing = b'<?xml version="1.0"?>\n<!-- by hand -->\n<svg width="9"></svg>'
            found = await sent(world, drawing, "logo.svg")
            assert found.text.endswith('<svg width="9"></svg>') and "as PNG if I should see it" in found.told
