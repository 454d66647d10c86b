"""What a file's bytes are, and what is read from them. It takes long: callers use a thread."""

from collections.abc import Callable

from discoclaw.core.attached import Content
from discoclaw.session.files.kinds import is_pdf, picture_kind, why_not
from discoclaw.session.files.process import Stop, opened
from discoclaw.session.files.refused import Refusal
from discoclaw.session.files.texts import text_of

_NOTHING = b"\x00\t\r\n \xef\xbb\xbf\xff\xfe"
"""White space, zero bytes and byte order marks."""


def content_of(
    name: str, data: bytes, most_characters: int, clean: Callable[[str], str], stop: Stop
) -> Content:
    """The content of a file. `clean` removes secrets from text, `stop` ends it early. Raises Refusal."""
    kind = "PDF" if is_pdf(data) else picture_kind(data)
    if kind is not None:
        return opened(name, data, kind, stop=stop)
    text = text_of(name, data, most_characters, clean)
    if text is not None:
        return text
    if not data.strip(_NOTHING):
        raise Refusal("is empty. Please check it, and send it again.")
    raise Refusal(why_not(data))
