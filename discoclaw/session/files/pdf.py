"""PDF files: not encrypted, and no more pages than a model takes. They go to the model as they came.

A file of a kilobyte can keep a reader busy for minutes; see `process`.
"""

from io import BytesIO
from typing import Final

from pypdf import PdfReader

from discoclaw.session.files.refused import Refusal

MOST_PAGES: Final = 100
"""More are refused by the Messages API for models that read 200,000 tokens."""
ENCRYPTED = "is protected with a password. Please save it without one, and send it again."
EMPTY = "has no pages. Please check the file, and send it again."


def pages_of(data: bytes) -> int:
    """The number of pages. Raises Refusal, and whatever pypdf runs into in a broken file."""
    reader = PdfReader(BytesIO(data), strict=False)
    if reader.is_encrypted:
        raise Refusal(ENCRYPTED)
    pages = len(reader.pages)
    if pages > MOST_PAGES:
        raise Refusal(f"has {pages:,} pages; I read {MOST_PAGES} at most. Please send those that matter.")
    if not pages:
        raise Refusal(EMPTY)
    return pages
