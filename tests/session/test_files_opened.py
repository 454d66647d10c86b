"""What is read from each kind of file, and what is said about it; here in this process, without limits.

That this happens in a process of its own, and what arrives at the model, is in
`contract/test_kinds_of_files` and `contract/test_files_people_attach`.
"""

from collections.abc import Callable
from typing import Any

import pytest
from PIL import Image

from discoclaw.session.files.documents import notebook_text, office_text, opened_pdf
from discoclaw.session.files.kinds import detected, kind_of, plain
from discoclaw.session.files.pictures import made_anew
from discoclaw.session.files.refused import Refusal
from tests.contract import corpus

LEFT_OUT = "has a picture, of which I saw nothing. Please send it as PNG."
Right = Callable[[list[Any]], bool]


PICTURES: dict[str, tuple[Callable[[], bytes], Right, str]] = {
    "print stays sharp": (
        lambda: corpus.saved(corpus.screenshot(), "PNG"),
        lambda parts: parts[0].format == "PNG",
        "",
    ),
    "photos are small": (
        lambda: corpus.saved(corpus.photo(600, 600), "PNG"),
        lambda parts: parts[0].format == "JPEG",
        "",
    ),
    "no camera tells where it was": (
        lambda: taken(),
        lambda parts: dict(parts[0].getexif()) == {} and not parts[0].info.get("comment"),
        "",
    ),
    "one held sideways is turned upright": (
        lambda: lying(),
        lambda parts: parts[0].size == (100, 200) and reddish(parts[0], 50, 10),
        "",
    ),
    "one that moves is told to be seen in part": (
        lambda: corpus.animation(3, "GIF"),
        lambda parts: reddish(parts[0], 5, 5),
        "is an animation, of which I see only the first picture.",
    ),
    "a long one is cut into parts in their order": (
        lambda: corpus.saved(Image.linear_gradient("L").resize((1080, 14_000)), "PNG"),
        lambda parts: in_order(parts),
        "",
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
    def test_are_as_their_person_sees_them_and_tell_no_more(self) -> None:
        wrong = {}
        for name, (made, right, wanted) in PICTURES.items():
            parts, note = made_anew(made())
            names = [word for word in (b"Ann", b"Exif") if word in b"".join(one.data for one in parts)]
            if not right([corpus.pixels(one.data) for one in parts]) or note != wanted or names:
                wrong[name] = ([(one.type, one.width, one.height) for one in parts], note, names)
        assert wrong == {}


PDFS = {
    "is protected with a password": corpus.made("open.pdf"),
    "is protected with a password. Please save it without one": corpus.pdf(2, password="secret"),
    "has 101 pages; I read 100": corpus.pdf(101),
    "has no pages": corpus.pdf(0),
}


class TestPdf:
    def test_is_refused_with_the_reason(self) -> None:
        for why, data in PDFS.items():
            with pytest.raises(Refusal, match=f"^{why}"):
                opened_pdf(data)


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
    def test_of_the_world_are_read_and_a_guess_is_told(self) -> None:
        wrong: dict[str, Any] = {}
        for encoding, line in LANGUAGES.items():
            words = "\n".join([line] * 6)
            found = read(words.encode(encoding))
            if found != (words, ""):
                wrong[encoding] = found
        for encoding, line in UNSURE.items():
            found = read(line.encode(encoding))
            if found is None or "an encoding that I had to guess" not in found[1]:
                wrong[f"{encoding}, unsure"] = found
        assert wrong == {}


def read(data: bytes) -> tuple[str, str] | None:
    """The text of a file, and what its sender is told."""
    found = plain("it.txt", data, 100_000, str)
    return detected(data) if found is None else (found.text, found.note)


OFFICE = [
    ("minutes.docx", "Ann brings the cake.\nwho\twhat\t\nBob\ttea\t\n\nThe end.", LEFT_OUT),
    ("costs.xlsx", "## Costs\nwhat\twhen\teuro\ncake\t2026-11-27\t12.5\ntea\t2026-11-27 15:30:00\t3", ""),
    ("letter.odt", "Letter\nDear Ann, the cake was good.\na\tb\t", ""),
    ("sheet.ods", "## Sheet\nx\ty\n1\t2", ""),
    ("talk.pptx", "Title 9\nbody 9\n\nTitle 10\nbody 10", ""),
    ("plot.ipynb", "# Result\nIt *works*\n\n[3: code]\nprint(42)\n1/0\n\n[3: output]\n42\n", LEFT_OUT),
]


class TestOffice:
    def test_is_read_as_text_and_what_is_left_out_is_told(self) -> None:
        wrong = {}
        for name, words, note in OFFICE:
            data = corpus.made(name)
            opener = {"office": office_text, "notebook": notebook_text}[kind_of(data).opener]
            text, told = opener(data)
            bare = [line.rstrip() for line in text.splitlines()]
            wanted = [line.rstrip() for line in words.strip().splitlines()]
            if "\n".join(wanted) not in "\n".join(bare) or told != note:
                wrong[name] = (text, told)
        assert wrong == {}
