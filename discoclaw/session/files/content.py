"""What a file's bytes are, and what is read from them. It takes long: callers use a thread."""

from collections.abc import Callable
from dataclasses import replace

from discoclaw.core.attached import Content, TextFile
from discoclaw.session.files.kinds import TEXT, kind_of, why_not
from discoclaw.session.files.process import Stop, opened
from discoclaw.session.files.refused import Refusal
from discoclaw.session.files.texts import plain, shortened

_NOTHING = b"\x00\t\r\n \xef\xbb\xbf\xff\xfe"
"""White space, zero bytes and byte order marks."""


def content_of(
    name: str, data: bytes, most_characters: int, clean: Callable[[str], str], stop: Stop
) -> Content:
    """The content of a file. `clean` removes secrets from text, `stop` ends it early. Raises Refusal."""
    kind = kind_of(data)
    if kind.opener == TEXT.opener:
        if (text := plain(name, data, most_characters, clean)) is not None:
            return replace(text, note=kind.note or text.note)
        if not data.strip(_NOTHING):
            raise Refusal("is empty. Please check it, and send it again.")
        if why_not(data) != why_not(b""):  # known by how it begins
            raise Refusal(why_not(data))
    found = opened(name, data, kind.opener, stop=stop)
    return shortened(found, most_characters, clean) if isinstance(found, TextFile) else found
