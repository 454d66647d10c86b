"""The text of Office and OpenDocument files and of Jupyter notebooks. Runs in the process for files.

Calamine reads sheets, whose numbers, dates and shared strings take more than XML. Of other documents all that
counts are the paragraphs, for which the standard library is enough: their libraries need `lxml`, or rest. No
tree is built of a part, and what unpacks to too much is refused before it is unpacked.
"""

import json
import re
from datetime import datetime
from io import BytesIO
from itertools import chain
from typing import Final
from xml.etree.ElementTree import XMLParser
from zipfile import ZipFile, is_zipfile

from discoclaw.session.files.refused import Refusal

MOST_UNPACKED: Final = 64_000_000
"""Bytes of all XML in a file. Neither library reads more of a part than its entry says."""
TOO_LARGE = "unpacks to more than 64 MB, which is the most I read. Please send what matters of it."
ENCRYPTED = "is protected with a password. Please save it without one, and send it again."
_PICTURE = re.compile(r"(?:(?:word|xl|ppt)/media|Pictures)/.+")
_PARTS = re.compile(
    r"content\.xml|word/(?:document|footnotes|endnotes|comments)\.xml|ppt/slides/slide(\d+)\.xml"
)
_BREAKS: Final = {"p": "\n", "h": "\n", "br": "\n", "cr": "\n", "line-break": "\n", "tab": "\t"}
_CELLS: Final = frozenset({"tc", "table-cell"})
_UNSEEN: Final = frozenset({"Fallback", "tracked-changes"})
"""Elements that are there twice, or were deleted."""


def office_text(data: bytes) -> tuple[str, str]:
    """The text of a document, and what to tell its sender. Raises Refusal, and what broken files raise."""
    if not is_zipfile(BytesIO(data)):
        return _sheets(data), ""
    with ZipFile(BytesIO(data)) as archive:
        names = archive.namelist()
        if (
            sum(one.file_size for one in archive.infolist() if not _PICTURE.match(one.filename))
            > MOST_UNPACKED
        ):
            raise Refusal(TOO_LARGE)
        if "META-INF/manifest.xml" in names and b"encryption-data" in archive.read("META-INF/manifest.xml"):
            raise Refusal(ENCRYPTED)
        if any(name.startswith("xl/") for name in names) or b"opendocument.spreadsheet" in data[:100]:
            text = _sheets(data)
        else:
            parts = sorted((found for name in names if (found := _PARTS.fullmatch(name))), key=_order)
            text = "\n".join(_parsed(archive, part[0]) for part in parts)
    return text, _without(sum(_PICTURE.fullmatch(name) is not None for name in names))


def notebook_text(data: bytes) -> tuple[str, str]:
    """A notebook as text: its cells and what they printed; and what the sender is told of its pictures.

    Raises KeyError, TypeError and ValueError for what is none.
    """
    found, pictures = list[str](), 0
    for number, cell in enumerate(json.loads(data)["cells"], 1):
        found.append(f"[{number}: {cell['cell_type']}]\n{''.join(cell['source'])}")
        for output in cell.get("outputs", ()):
            shown = output.get("data", {})
            pictures += any(kind.startswith("image/") for kind in shown)
            text = output.get("text") or shown.get("text/plain") or "\n".join(output.get("traceback", ()))
            found += [f"[{number}: output]\n{''.join(text)}"] if text else []
    return "\n\n".join(found), _without(pictures)


def _without(pictures: int) -> str:
    what, those = ("a picture", "it") if pictures == 1 else (f"{pictures} pictures", "those that matter")
    return f"has {what}, of which I saw nothing. Please send {those} as PNG." if pictures else ""


def _order(part: re.Match[str]) -> tuple[int, bool, str]:
    return int(part[1] or 0), "document" not in part[0], part[0]


def _sheets(data: bytes) -> str:
    """The sheets of a workbook, a row a line, with tabs between its cells."""
    from python_calamine import CalamineWorkbook, PasswordError

    try:
        book = CalamineWorkbook.from_object(BytesIO(data))
    except PasswordError:
        raise Refusal(ENCRYPTED) from None
    sheets = [(name, book.get_sheet_by_name(name)) for name in book.sheet_names]
    lines = (
        chain([f"## {name}"], ("\t".join(map(_shown, row)).rstrip("\t") for row in sheet.iter_rows()))
        for name, sheet in sheets
    )
    return "\n".join(chain.from_iterable(lines))


def _shown(value: object) -> str:
    """A cell as people read it, on one line; a whole number without ".0", and a day without its midnight."""
    if isinstance(value, datetime):
        return value.isoformat(" ").removesuffix(" 00:00:00")
    return f"{value:.15g}" if isinstance(value, float) else " ".join(str(value).split())


def _parsed(archive: ZipFile, name: str) -> str:
    """The text of a part of an archive, which is never in RAM as a whole."""
    parser = XMLParser(target=(text := _Text()))
    with archive.open(name) as part:
        while chunk := part.read(2**16):
            parser.feed(chunk)
    parser.close()
    return text.close()


class _Text:
    """Collects text: what is in `t` in Office's files, in `p` and `h` in OpenDocument's. A row is a line."""

    def __init__(self) -> None:
        self._out: list[str] = []
        self._cells: list[int] = []
        """Positions in `_out` at which the open cells begin."""
        self._holders = self._unseen = 0

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        """An element begins."""
        name = self._count(tag, 1)
        if name in _CELLS:
            self._cells.append(len(self._out))
        elif name == "s" and "opendocument" in tag:  # several spaces
            self._out.append(" ")

    def data(self, text: str) -> None:
        """Some text of the element that began last."""
        if self._holders and not self._unseen:
            self._out.append(text)

    def end(self, tag: str) -> None:
        """An element ends."""
        name = self._count(tag, -1)
        if name in _BREAKS and not self._unseen:
            self._out.append(_BREAKS[name])
        elif name in _CELLS:
            begin = self._cells.pop()
            self._out[begin:] = [" ".join("".join(self._out[begin:]).split()), "\t"]
        elif name in ("tr", "table-row"):
            self._out.append("\n")

    def close(self) -> str:
        """The whole text."""
        return "".join(self._out)

    def _count(self, tag: str, change: int) -> str:
        """An element's name without its namespace; begun or ended, it may hold text or hide it."""
        name = tag.rpartition("}")[2]
        self._unseen += change * (name in _UNSEEN)
        self._holders += change * (name in ("p", "h") if "opendocument" in tag else name == "t")
        return name


# ----------------------------------------------------------------------
# PDF files: open to everybody, and no more pages than a model takes. They go to the model as they came.
#
# The exceptions are made anew: what has something before its header, and what is encrypted without a password
# being needed to open it, which models refuse. A file of a kilobyte can keep a reader busy; see `reading`.

MOST_PAGES: Final = 100
"""More are refused by the Messages API for models that read 200,000 tokens."""
EMPTY = "has no pages. Please check the file, and send it again."


def opened_pdf(data: bytes) -> tuple[int, bytes]:
    """The number of pages, and the file that a model gets, b"" if it is the same.

    Raises Refusal, and whatever pypdf runs into in a broken file.
    """
    from pypdf import PdfReader, PdfWriter  # office files are opened without it

    begin = data.index(b"%PDF-")
    reader = PdfReader(BytesIO(data[begin:]), strict=False)
    if reader.is_encrypted and not reader.decrypt(""):
        raise Refusal(ENCRYPTED)
    pages = len(reader.pages)
    if pages > MOST_PAGES:
        raise Refusal(f"has {pages:,} pages; I read {MOST_PAGES} at most. Please send those that matter.")
    if not pages:
        raise Refusal(EMPTY)
    if not begin and not reader.is_encrypted:
        return pages, b""
    out = BytesIO()
    PdfWriter(clone_from=reader).write(out)
    return pages, out.getvalue()
