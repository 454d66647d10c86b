"""What a file's bytes are, and what is read from them. It takes long: callers use a thread."""

from collections.abc import Callable

from discoclaw.core.attached import Content
from discoclaw.session.files.refused import Refusal
from discoclaw.session.files.texts import text_of


def content_of(name: str, data: bytes, most_characters: int, clean: Callable[[str], str]) -> Content:
    """The content of a file. Raises Refusal, and whatever a decoder raises."""
    if not data.strip():
        raise Refusal("is empty.")
    text = text_of(name, data, most_characters, clean)
    if text is None:
        raise Refusal("is no picture, PDF or text, so I can't read it.")
    return text
