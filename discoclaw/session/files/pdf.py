"""PDF files: open to everybody, and no more pages than a model takes. They go to the model as they came.

The exceptions are made anew: what has something before its header, and what is encrypted without a password
being needed to open it, which models refuse. A file of a kilobyte can keep a reader busy; see `process`.
"""

from io import BytesIO
from typing import Final

from pypdf import PdfReader, PdfWriter

from discoclaw.session.files.refused import Refusal

MOST_PAGES: Final = 100
"""More are refused by the Messages API for models that read 200,000 tokens."""
ENCRYPTED = "is protected with a password. Please save it without one, and send it again."
EMPTY = "has no pages. Please check the file, and send it again."


def opened_pdf(data: bytes) -> tuple[int, bytes]:
    """The number of pages, and the file that a model gets, b"" if it is the same.

    Raises Refusal, and whatever pypdf runs into in a broken file.
    """
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
