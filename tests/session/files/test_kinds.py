"""Each kind of file that people have: made by its program, and read as docs/members/discord.md says."""

import gzip
import re
from io import BytesIO
from pathlib import Path
from zipfile import ZipFile

import pytest
from PIL import Image
from pypdf import PdfReader

from discoclaw.core.attached import Document, Picture, TextFile, Unreadable
from discoclaw.session.files.kinds import KINDS, TEXT
from discoclaw.session.files.office import MOST_UNPACKED
from tests.session.files import corpus
from tests.session.files.test_reading import OTHERS, picture, read, text, why_not

PDF, LEFT_OUT = "Invoice 4711", "has a picture, of which I saw nothing. Please send it as PNG."
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


OF_EACH: dict[str, list[bytes]] = {
    "PNG": [image("PNG"), image("JPEG"), image("WEBP"), image("GIF")],
    "PDF": [corpus.made("plain.pdf"), corpus.made("owner.pdf")],
    "Word": [
        corpus.made(name) for name in ("minutes.docx", "costs.xlsx", "talk.pptx", "letter.odt", "sheet.ods")
    ],
    "Jupyter": [corpus.made("plot.ipynb")],
    "SVG": [b'<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg"/>'],
    "text": [b"npm error", "Grüße".encode("utf-16"), b"{}", b'{"cells": 1}'],
    "HEIC": [OTHERS["heic"][0]],
    "AVIF": [image("AVIF") if Image.registered_extensions().get(".avif") else OTHERS["avif"][0]],
    "BMP": [image("BMP")],
    "TIFF": [image("TIFF")],
    "Photoshop": [image("ICO")],
    "MP3": [OTHERS[name][0] for name in ("m4a", "wav", "mp3", "ogg")],
    "MP4": [OTHERS["mp4"][0], OTHERS["webm"][0]],
    "older": [b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\x00" * 16, OTHERS["docx"][0]],
    "ZIP": [zipped("notes.txt"), gzip.compress(b"words")],
    "programs": [OTHERS["an exe called png"][0]],
    "anything": [OTHERS["nothing known"][0]],
}


class TestTheTable:
    def test_in_the_docs_says_what_the_program_does(self) -> None:
        docs = Path("docs/members/discord.md").read_text("utf-8").partition("## Files and pictures")[2]
        rows = re.findall(r"^\| (.+) \| (.+) \|$", docs.partition("\n## ")[0], re.M)[1:]
        assert rows[:-1] == [(k.name, k.told) for k in KINDS if k.opener]
        refused = [k for k in KINDS if not k.opener]
        assert rows[-1] == ("; ".join(k.name for k in refused), "answers what to send instead")
        assert all(". Please s" in k.told or ". Please write" in k.told for k in refused)

    @pytest.mark.parametrize("kind", KINDS, ids=[kind.name for kind in KINDS])
    async def test_holds_for_real_files_of_each_kind(self, kind: object) -> None:
        assert kind in KINDS
        (files,) = [files for begin, files in OF_EACH.items() if kind.name.startswith(begin)]
        types = {"picture": Picture, "PDF": Document, "": Unreadable}
        for data in files:
            found = await read(data, "it.bin")
            assert isinstance(found, types.get(kind.opener, TextFile))
            if isinstance(found, Unreadable):
                assert found.why == f"“it.bin” {kind.told}"

    async def test_names_how_much_of_a_text_is_read(self) -> None:
        found = await text(b"ab" * 10_001, characters=20_000)
        assert (len(found.text), len(found.end)) == (10_000, 10_000) and "the last 10,000" in TEXT.told


class TestPdf:
    @pytest.mark.parametrize("name", ["plain.pdf", "owner.pdf"])
    @pytest.mark.parametrize("before", [b"", b"\r\n", HEADERS], ids=["nothing", "a line", "headers"])
    async def test_reaches_the_model_open_and_from_its_header_on(self, name: str, before: bytes) -> None:
        found = await read(before + corpus.made(name))
        assert isinstance(found, Document) and found.data.startswith(b"%PDF-")
        reader = PdfReader(BytesIO(found.data))
        assert not reader.is_encrypted and reader.pages[0].extract_text().strip() == PDF

    async def test_with_a_password_to_open_it_is_refused(self) -> None:
        assert "protected with a password" in await why_not(corpus.made("open.pdf"))

    async def test_is_text_where_it_is_only_named(self) -> None:
        assert (await text(b"A file begins with\n%PDF-1.7\nor it is none.")).text.endswith("none.")


class TestLongPictures:
    @pytest.mark.parametrize("size", [(1080, 14_000), (14_000, 1080)], ids=["tall", "wide"])
    async def test_are_cut_into_legible_parts_in_their_order(self, size: tuple[int, int]) -> None:
        shades = Image.linear_gradient("L").resize(size)
        if size[0] > size[1]:
            shades = Image.linear_gradient("L").rotate(90).resize(size)
        found = await picture(corpus.saved(shades, "PNG"))
        parts = [found, *found.rest]
        assert len(parts) == 8 and found.note == ""
        assert all(min(one.width, one.height) > 900 and max(one.width, one.height) == 1568 for one in parts)
        light = [corpus.pixels(one.data).convert("L").getpixel((9, 9)) for one in parts]
        assert light == sorted(light) and light[0] < 10 and light[-1] > 200

    async def test_that_are_still_too_small_to_read_are_told(self) -> None:
        found = await picture(corpus.saved(Image.new("RGB", (600, 40_000), "white"), "PNG"))
        assert len(found.rest) == 7 and "may be illegible" in found.note

    async def test_do_not_include_the_screen_of_a_phone(self) -> None:
        assert (await picture(corpus.saved(corpus.screenshot(1170, 2532), "PNG"))).rest == ()


class TestPictures:
    async def test_with_a_large_text_inside_are_seen(self) -> None:
        found = await picture(corpus.with_texts(corpus.saved(corpus.photo(), "PNG")))
        assert (found.width, found.height) == (640, 480)

    async def test_that_move_are_told_to_be_seen_in_part(self) -> None:
        assert "only the first picture" in (await picture(corpus.animation(3, "GIF"))).note
        assert (await picture(image("GIF"))).note == ""


LANGUAGES = {
    "cp1250": "Zażółć gęślą jaźń, a potem wróć do domu. Dziękuję bardzo, proszę przesłać plik jeszcze raz.",
    "cp1251": "Привет, как дела? Сегодня хорошая погода, и мы пошли гулять в парк.",
    "cp1252": "Der Fluß führt über die Höhe. Schöne Grüße aus München, es ist größer und schöner als früher.",
    "gbk": "你好，今天天气很好，我们去公园散步吧。请把文件再发一次。",
    "shift_jis": "こんにちは。今日は天気がとても良いので、公園に散歩に行きましょう。",
    "euc_kr": "안녕하세요. 오늘 날씨가 아주 좋아서 공원에 산책하러 갑시다.",
    "utf-16-le": "npm error code 1, see the log",
    "utf-16-be": "Привет, как дела? Сегодня хорошая погода",
}
GUESSED = "an encoding that I had to guess"


class TestEncodings:
    @pytest.mark.parametrize("encoding", LANGUAGES)
    async def test_of_the_world_are_read_and_nothing_is_told(self, encoding: str) -> None:
        words = "\n".join([LANGUAGES[encoding]] * 6)
        found = await text(words.encode(encoding))
        assert (found.text, found.note) == (words, "")

    @pytest.mark.parametrize(
        ("encoding", "words"),
        [
            ("cp1254", "Günaydın, nasılsınız? Bugün hava çok güzel. Şimdi öğle yemeği yiyeceğiz.\n" * 9),
            ("cp1250", "id;imię;miasto\n1;Łukasz;Łódź\n2;Paweł;Kraków\n"),
            ("koi8_r", "Привет, как дела? Сегодня хорошая погода"),
            ("gbk", "错误：找不到文件"),
        ],
    )
    async def test_that_are_not_certain_are_told(self, encoding: str, words: str) -> None:
        assert GUESSED in (await text(words.encode(encoding))).note

    async def test_of_a_log_with_a_run_of_zero_bytes_is_its_own(self) -> None:
        found = await text(b"started\n" + b"\x00" * 4096 + b"it failed\n")
        assert (found.text, found.note) == ("started\nit failed\n", "")

    async def test_that_are_damaged_are_told(self) -> None:
        assert "damaged letters" in (await text("ünïcödé\n".encode() * 9 + b"\xff")).note


class TestLongTexts:
    @pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "cp1251"])
    async def test_are_read_at_both_ends(self, encoding: str) -> None:
        lines = [f"строка {number}: всё хорошо" for number in range(20_000)]
        found = await text("\n".join([*lines, "последняя: ошибка 17"]).encode(encoding), characters=1000)
        assert found.cut and found.text.startswith("строка 0: ") and found.end.endswith("ошибка 17")
        assert "�" not in found.text + found.end

    async def test_leave_no_half_of_a_secret_at_either_cut(self) -> None:
        key = "-----BEGIN PRIVATE KEY-----\n" + "MIIE" * 800 + "\n-----END PRIVATE KEY-----"
        for before in range(0, 3_000, 500):
            found = await text((key + "z" * before + "\n").encode() * 80, characters=1000)
            assert found.cut and "MIIE" not in found.text + found.end


class TestOffice:
    @pytest.mark.parametrize(
        ("name", "words", "note"),
        [
            ("minutes.docx", "Ann brings the cake.\nwho\twhat\t\nBob\ttea\t\n\nThe end.", LEFT_OUT),
            (
                "costs.xlsx",
                "## Costs\nwhat\twhen\teuro\ncake\t2026-11-27\t12.5\ntea\t2026-11-27 15:30:00\t3\n",
                "",
            ),
            ("letter.odt", "Letter\nDear Ann, the cake was good.\na\tb\t\n", ""),
            ("sheet.ods", "## Sheet\nx\ty\n1\t2", ""),
            ("talk.pptx", "Title 9\nbody 9\n\nTitle 10\nbody 10\n", ""),
            ("plot.ipynb", "plot(x)\n\n[1: output]\n<Figure", LEFT_OUT),
            (
                "plot.ipynb",
                "# Result\nIt *works*\n\n[3: code]\nprint(42)\n1/0\n\n[3: output]\n42\n",
                LEFT_OUT,
            ),
        ],
    )
    async def test_is_read_as_text_and_what_is_left_out_is_told(
        self, name: str, words: str, note: str
    ) -> None:
        found = await text(corpus.made(name), name)
        assert words in found.text and found.note == note and not found.cut

    async def test_that_unpacks_to_gigabytes_is_not_unpacked(self) -> None:
        bomb = zipped("word/document.xml", b" " * (MOST_UNPACKED + 1))
        assert len(bomb) < 100_000 and "unpacks to more than 64 MB" in await why_not(bomb)

    async def test_with_entities_that_multiply_is_refused(self) -> None:
        laughs = "".join(f'<!ENTITY a{n} "{f"&a{n - 1};" * 10}">' for n in range(1, 12))
        data = f'<!DOCTYPE x [<!ENTITY a0 "ha">{laughs}]><x><t>&a11;</t></x>'.encode()
        assert "damaged" in await why_not(zipped("word/document.xml", data))
