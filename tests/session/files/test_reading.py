"""Files through the reader: each becomes what a model can read, or a sentence with the way out."""

import asyncio
import base64
import gc
import subprocess
import sys
from collections.abc import Callable
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from discoclaw.core.attached import Content, Document, FileRef, Picture, TextFile, Unreadable
from discoclaw.core.errors import ChatGone, ChatUnavailable
from discoclaw.core.redact import PLAIN, Redactor
from discoclaw.session.files import process
from discoclaw.session.files.reading import Limits, Reader
from discoclaw.session.files.refused import Refusal
from tests.session.files import corpus
from tests.session.scene import until

SECRET = "sk-ant-" + "a1B2c3D4" * 5


class Served:
    """Files in RAM, by their names; an error in place of bytes is raised. `asked` are those downloaded."""

    def __init__(self, **files: bytes | Exception) -> None:
        self.files = files
        self.asked: list[str] = []

    async def download(self, file: FileRef, most: int) -> bytes:
        self.asked.append(file.name)
        found = self.files[file.id]
        if isinstance(found, Exception):
            raise found
        return found


def ref(name: str = "file", *, size: int = 1, id: str = "one", voice: bool = False) -> FileRef:
    return FileRef(id, "1", "2", name, size, voice=voice)


async def read(
    data: bytes | Exception, name: str = "file", redactor: Redactor = PLAIN, **limits: int
) -> Content | Unreadable:
    reader = Reader(Served(one=data), Limits(**limits), redactor)
    return await reader.read(ref(name))


async def picture(data: bytes, name: str = "file") -> Picture:
    found = await read(data, name)
    assert isinstance(found, Picture), found
    return found


async def text(data: bytes, name: str = "file", **limits: int) -> TextFile:
    found = await read(data, name, **limits)
    assert isinstance(found, TextFile), found
    return found


async def why_not(data: bytes | Exception, name: str = "file") -> str:
    found = await read(data, name)
    assert isinstance(found, Unreadable), found
    assert found.name == name and name in found.why and found.why.endswith(".")
    return found.why


class TestPictures:
    @pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP", "GIF"])
    async def test_each_kind_is_read_whatever_it_is_called(self, kind: str) -> None:
        found = await picture(corpus.saved(corpus.photo(), kind), "notes.txt")
        assert (found.width, found.height) == (640, 480)
        assert Image.MIME[corpus.pixels(found.data).format or ""] == found.type

    async def test_a_large_one_is_scaled_to_what_models_look_at(self) -> None:
        found = await picture(corpus.saved(corpus.photo(3000, 2000), "PNG"))
        assert (found.width, found.height) == corpus.pixels(found.data).size == (1568, 1045)

    async def test_a_line_of_pixels_stays_one(self) -> None:
        found = await picture(corpus.saved(Image.new("RGB", (60_000, 1), "red"), "PNG"))
        assert (found.width, found.height) == (1568, 1)

    async def test_what_the_camera_wrote_goes_nowhere(self) -> None:
        exif = Image.Exif()
        exif[0x010E] = "taken by Ann Example"
        exif.get_ifd(0x8825).update({1: "N", 2: (52.0, 31.0, 12.5)})
        taken = corpus.saved(corpus.photo(), "JPEG", exif=exif, comment=b"at Ann's house")
        assert b"Ann" in taken
        found = await picture(taken)
        assert b"Ann" not in found.data and b"Exif" not in found.data
        assert dict(corpus.pixels(found.data).getexif()) == {}

    async def test_a_picture_held_sideways_is_turned_upright(self) -> None:
        exif = Image.Exif()
        exif[0x0112] = 6
        lying = Image.new("RGB", (200, 100), "blue")
        lying.paste("red", (0, 0, 40, 100))
        found = await picture(corpus.saved(lying, "JPEG", exif=exif, quality=95))
        assert (found.width, found.height) == (100, 200)
        red, _, blue = corpus.pixels(found.data).convert("RGB").getpixel((50, 10))
        assert red > 200 > 60 > blue

    async def test_print_stays_sharp_and_photos_small(self) -> None:
        assert (await picture(corpus.saved(corpus.screenshot(), "PNG"))).type == "image/png"
        photo = await picture(corpus.saved(corpus.photo(1500, 1500), "PNG"))
        assert photo.type == "image/jpeg"

    @pytest.mark.parametrize("mode", ["RGB", "RGBA", "L"])
    async def test_none_is_larger_than_a_request_may_have(self, mode: str) -> None:
        """A photo with a transparent edge came to 13 MB in base64, and no model of Anthropic's took it."""
        size = (1568, 1568)
        noise = Random(7).randbytes(size[0] * size[1] * len(mode))
        found = await picture(corpus.saved(Image.frombytes(mode, size, noise), "PNG"))
        assert len(base64.b64encode(found.data)) <= 5 * 2**20
        assert (found.width, found.height, found.type) == (
            *size,
            "image/png" if mode == "L" else "image/jpeg",
        )

    async def test_what_was_transparent_is_white_then(self) -> None:
        noise = Image.frombytes("RGB", (1568, 1568), Random(7).randbytes(1568 * 1568 * 3)).convert("RGBA")
        noise.paste((255, 0, 0, 0), (0, 0, 200, 200))
        seen = corpus.pixels((await picture(corpus.saved(noise, "PNG"))).data)
        assert min(seen.convert("RGB").getpixel((90, 90))) > 240

    @pytest.mark.parametrize("kind", ["GIF", "WEBP"])
    async def test_of_an_animation_the_first_picture_is_seen(self, kind: str) -> None:
        found = await picture(corpus.animation(1000, kind))
        assert corpus.pixels(found.data).convert("RGB").getpixel((5, 5)) == (255, 0, 0)

    @pytest.mark.parametrize(
        ("made", "kind"),
        [
            (lambda: corpus.photo().convert("CMYK"), "JPEG"),
            (lambda: corpus.photo().convert("L"), "JPEG"),
            (lambda: corpus.photo().convert("P"), "PNG"),
            (lambda: corpus.photo().convert("1"), "PNG"),
            (lambda: corpus.photo().convert("LA"), "PNG"),
        ],
        ids=["CMYK", "grey", "palette", "black and white", "grey with transparency"],
    )
    async def test_whatever_its_colours_are(self, made: Callable[[], Image.Image], kind: str) -> None:
        image = made()
        found = await picture(corpus.saved(image, kind))
        seen, meant = corpus.pixels(found.data).convert("RGB"), image.convert("RGB")
        for at in [(100, 100), (320, 240), (600, 400)]:
            pairs = zip(seen.getpixel(at), meant.getpixel(at), strict=True)
            assert all(abs(one - other) < 40 for one, other in pairs)

    async def test_grey_of_sixteen_bits_keeps_its_shades(self) -> None:
        shades = Image.linear_gradient("L").convert("I").point(lambda value: value * 257).convert("I;16")
        seen = corpus.pixels((await picture(corpus.saved(shades, "PNG"))).data)
        assert [seen.getpixel((9, row)) for row in (0, 100, 255)] == [0, 100, 255]

    async def test_transparency_stays(self) -> None:
        clear = Image.new("P", (50, 50), 1)
        clear.putpalette([0, 0, 0, 255, 0, 0])
        clear.paste(0, (0, 0, 25, 50))
        seen = corpus.pixels((await picture(corpus.saved(clear, "PNG", transparency=0))).data)
        assert seen.getpixel((40, 5)) == (255, 0, 0, 255) and seen.getpixel((5, 5))[3] == 0

    @pytest.mark.parametrize("side", [5_001, 60_000, 2_000_000_000])
    async def test_one_that_unpacks_to_gigabytes_is_not_unpacked(self, side: int) -> None:
        assert "too many pixels" in await why_not(corpus.png_bomb(side, side), "bomb.png")

    @settings(deadline=None)
    @given(st.sampled_from(["PNG", "JPEG", "WEBP", "GIF"]), st.floats(0.0, 0.999))
    def test_half_a_picture_is_seen_or_refused(self, kind: str, share: float) -> None:
        whole = corpus.saved(corpus.photo(64, 48), kind)
        found = asyncio.run(read(whole[: int(len(whole) * share)], "half.png"))
        assert isinstance(found, Picture | Unreadable | TextFile)
        assert not isinstance(found, Unreadable) or "half.png" in found.why


class TestDocuments:
    async def test_a_pdf_goes_on_as_it_came(self) -> None:
        data = corpus.pdf(3)
        assert await read(data, "paper.txt") == Document("paper.txt", data, 3)

    @pytest.mark.parametrize(
        ("data", "why"),
        [
            (corpus.pdf(2, password="secret"), "without one"),
            (corpus.pdf(101), "101 pages; I read 100"),
            (corpus.pdf(0), "has no pages"),
            (corpus.pdf(5)[:400], "damaged"),
            (b"%PDF-1.7\n" + b"\x00\xff" * 400, "damaged"),
            (corpus.pdf_of_endless_pages(), "damaged"),
        ],
        ids=["password", "too long", "empty", "half", "nonsense", "a billion pages"],
    )
    async def test_one_that_no_model_reads_is_refused(self, data: bytes, why: str) -> None:
        assert why in await why_not(data, "paper.pdf")

    @pytest.mark.parametrize("kind", ["PDF", "PNG"])
    def test_one_that_keeps_its_reader_busy_is_given_up(self, kind: str) -> None:
        with pytest.raises(Refusal, match="takes too long"):
            process.opened("paper.pdf", corpus.pdf(1), kind, within_s=0)


class TestTexts:
    async def test_a_long_paste_without_a_type(self) -> None:
        assert await text("naïve — 日本".encode(), "message.txt") == TextFile("message.txt", "naïve — 日本")

    @pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-be", "cp1252"])
    async def test_whatever_its_encoding(self, encoding: str) -> None:
        mark = "\ufeff" if encoding == "utf-16-be" else ""
        words = "Grüße aus Köln, wo es früh kühl ist.\nHöchste Zeit!"
        assert (await text((mark + words).encode(encoding))).text == words

    async def test_a_log_with_damaged_places_and_colours(self) -> None:
        data = ("ünïcödé line\n" * 50).encode() + b"\x1b[31mred\x1b[0m \xff\n"
        assert (await text(data)).text.endswith("\x1b[31mred\x1b[0m �\n")

    async def test_secrets_are_gone_also_where_it_is_cut(self) -> None:
        whole = await text(f"key={SECRET}".encode(), characters=1000)
        assert SECRET not in whole.text and "[REDACTED Anthropic key]" in whole.text and not whole.cut
        for before in range(80, 100):
            cut = await text(("x" * before + " " + SECRET + " y" * 9000).encode(), characters=100)
            assert cut.cut and len(cut.text) <= 100 and "sk-ant" not in cut.text

    async def test_half_a_secret_behind_a_long_one_is_gone_too(self) -> None:
        for length in range(1020, 1050):
            long = "sk-ant-" + "a1B2" * length
            found = await text(f"{long} {SECRET} {SECRET} {'y' * 9000}".encode(), characters=100)
            assert found.cut and found.text.startswith("[REDACTED Anthropic ")
            assert "sk-" not in found.text

    async def test_a_long_one_is_cut_and_says_so(self) -> None:
        found = await text("日".encode() * 300_000, characters=500)
        assert found == TextFile("file", "日" * 250, cut=True, end="日" * 250)

    async def test_of_a_drawing_its_source_is_read(self) -> None:
        found = await text(b'<?xml version="1.0"?>\n<!-- made by hand -->\n<svg width="9"></svg>', "logo.svg")
        assert found.text.endswith('<svg width="9"></svg>') and "as PNG if I should see it" in found.note

    @pytest.mark.parametrize("data", [b"", b"\x00" * 500, b" \n\t\n", b"\xef\xbb\xbf"])
    async def test_an_empty_file_is_called_so(self, data: bytes) -> None:
        assert "is empty" in await why_not(data)


OTHERS = {
    "an exe called png": (b"MZ\x90\x00\x03\x00\x00\x00" + b"\x00\xff" * 200, "program"),
    "heic": (b"\x00\x00\x00\x18ftypheic\x00\x00\x00\x00mif1", "HEIC picture"),
    "avif": (b"\x00\x00\x00\x18ftypavif\x00\x00\x00\x00mif1", "AVIF picture"),
    "mp4": (b"\x00\x00\x00\x18ftypisom\x00\x00\x02\x00", "video"),
    "m4a": (b"\x00\x00\x00\x18ftypM4A \x00\x00\x02\x00", "sound"),
    "bmp": (corpus.saved(Image.new("RGB", (9, 9)), "BMP"), "BMP picture"),
    "tiff": (corpus.saved(Image.new("RGB", (9, 9)), "TIFF"), "TIFF picture"),
    "wav": (b"RIFF\x24\x00\x00\x00WAVEfmt \x10\x00\x00\x00", "sound"),
    "mp3": (b"\xff\xfb\x90\x64" + b"\x00\x0f" * 99, "sound"),
    "ogg": (b"OggS\x00\x02" + b"\x00" * 20, "sound"),
    "webm": (b"\x1aE\xdf\xa3\x9fB\x86\x81\x01B", "video"),
    "zip": (b"PK\x03\x04\x14\x00\x00\x00\x08\x00" + b"\x00\x9f" * 40, "archive"),
    "docx": (b"PK\x03\x04\x14\x00\x06\x00\x08\x00" + b"\x00" * 16 + b"[Content_Types].xml \xa2", "Office"),
    "gzip": (b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03K\xcb\xcf", "archive"),
    "nothing known": (bytes(range(256)) * 4, "no picture, PDF or text"),
}


class TestOthers:
    @pytest.mark.parametrize(("data", "why"), OTHERS.values(), ids=OTHERS.keys())
    async def test_each_kind_has_its_word(self, data: bytes, why: str) -> None:
        assert why in await why_not(data, "cat.png")

    @settings(deadline=None)
    @given(
        st.sampled_from(
            [b"", b"%PDF-", b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff\xe0", b"GIF89a", b"RIFF", b"PK"]
        ),
        st.binary(max_size=400),
    )
    def test_no_bytes_whatever_raise(self, begin: bytes, rest: bytes) -> None:
        found = asyncio.run(read(begin + rest, "any"))
        assert not isinstance(found, Unreadable) or (found.why.startswith("“any” ") and found.why[-1] == ".")


def running() -> list[int]:
    """The processes that were begun and have not ended."""
    found = (one for one in gc.get_objects() if isinstance(one, subprocess.Popen))
    # One that another thread is just beginning has no number yet.
    return [one.pid for one in found if getattr(one, "pid", None) and one.poll() is None]


class TestAFileThatNobodyWaitsForAnyMore:
    async def test_keeps_no_process_busy(self) -> None:
        """Each deleted message gave its place to the next one, while its own process went on."""
        reader = Reader(Served(one=b"%PDF-1.4\n" + b"(" * 9_000_000), Limits())
        before = {*running()}
        for _ in range(4):
            task = asyncio.create_task(reader.read(ref("busy.pdf")))
            await until(lambda: bool({*running()} - before))
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            assert task.cancelled() and not {*running()} - before

    def test_is_not_even_begun(self) -> None:
        stop = process.Stop()
        stop.now()
        with pytest.raises(Refusal):
            process.opened("paper.pdf", corpus.pdf(1), "PDF", stop=stop)

    def test_is_left_by_its_process_if_the_bot_is_gone(self) -> None:
        program = process._PROGRAM.format(path=sys.path, kind="PDF", s=1)
        with subprocess.Popen(
            [sys.executable, "-c", program], stdin=subprocess.PIPE, stderr=subprocess.DEVNULL
        ) as child:
            assert child.wait() == 1  # it waits for a file that never comes


BUSY = b"%PDF-1.4\n" + b"(" * 9_000_000  # takes seconds


class TestFilesOfOnePerson:
    async def test_hold_up_nobody_elses(self) -> None:
        reader = Reader(Served(one=BUSY, two=corpus.saved(corpus.photo(), "PNG")), Limits())
        many = [asyncio.create_task(reader.read(ref("busy.pdf"))) for _ in range(6)]
        await asyncio.sleep(0)
        found = await reader.read(FileRef("two", "2", "3", "cat.png", 1))
        assert isinstance(found, Picture) and sum(one.done() for one in many) <= 2
        for one in many:
            one.cancel()
        await asyncio.gather(*many, return_exceptions=True)

    async def test_take_no_more_than_so_much_of_a_processor(self) -> None:
        reader = Reader(Served(one=BUSY, two=b"words"), Limits(seconds=0.5))
        found = await asyncio.gather(*(reader.read(ref("busy.pdf")) for _ in range(4)))
        whys = [one.why for one in found if isinstance(one, Unreadable)]
        assert ["damaged" in why for why in whys] == [True, False, False, False]
        assert all("files before it took too long" in why for why in whys[1:])
        assert isinstance(await reader.read(ref(id="two")), TextFile)  # nothing of theirs waits any more


class TestBounds:
    async def test_a_large_file_is_not_even_downloaded(self) -> None:
        served = Served(one=b"text")
        found = await Reader(served, Limits(bytes=10_000_000)).read(ref("film.txt", size=12_000_000))
        assert isinstance(found, Unreadable) and "larger than 10 MB" in found.why
        assert served.asked == []

    async def test_what_cannot_be_downloaded_has_a_sentence(self) -> None:
        assert "no longer there" in await why_not(ChatGone("404"))
        assert "again in a moment" in await why_not(ChatUnavailable("500"))

    async def test_a_long_name_does_not_fill_the_sentence(self) -> None:
        found = await read(b"", "a" * 300 + "\n.png")
        assert isinstance(found, Unreadable) and len(found.why) < 140 and "\n" not in found.why
