"""Files that come with messages: how one is named before it is read, and what was read from it. Values only.

A `FileRef` travels with its message, and costs nothing. Reading it takes a download and a decoder, so that
happens only for a message that is answered. Knows nothing about Discord, decoders or models.
"""

import hashlib
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

PictureType: TypeAlias = Literal["image/png", "image/jpeg", "image/webp", "image/gif"]


@dataclass(frozen=True, slots=True)
class FileRef:
    """A file that somebody attached. Nothing about it was checked: its sender chose name, size and type.

    `message_id` and `author_id` name the message it came with, by which it is forgotten; `channel_id` is
    where that message is. Secrets are redacted from `name`. `size` is in bytes; `type` is the media type that
    the chat gives, "" if it gives none. `url` ends within a day.
    """

    id: str
    message_id: str
    author_id: str
    name: str
    size: int
    type: str = ""
    url: str = field(default="", repr=False, compare=False)
    voice: bool = False
    """A voice message: its words are the message's text."""
    channel_id: str = ""


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture as a model gets it: decoded once, scaled, written anew, so that it is what its type says.

    `rest` are the other parts of one that was cut. `note` goes on behind the file's name, for its sender.
    """

    name: str
    type: PictureType
    data: bytes = field(repr=False)
    width: int
    height: int
    rest: tuple["Picture", ...] = ()
    note: str = ""


@dataclass(frozen=True, slots=True)
class Document:
    """A PDF file as it came. `pages` is their number."""

    name: str
    data: bytes = field(repr=False)
    pages: int


@dataclass(frozen=True, slots=True)
class TextFile:
    """The text of a file, without secrets. `cut`: its middle is left out, and `end` are its last characters.

    `note` goes on behind the file's name, for its sender.
    """

    name: str
    text: str = field(repr=False)
    cut: bool = False
    end: str = field(default="", repr=False)
    note: str = ""


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A file that was not read. `why` is a sentence for the person who sent it, with the way out."""

    name: str
    why: str


Media: TypeAlias = Picture | Document
"""Content that goes to a model beside the text."""
Content: TypeAlias = Media | TextFile
"""Content that can be read from a file."""
Kind: TypeAlias = Literal["picture", "document"]

PIXELS_A_TOKEN = 750
TOKENS_A_PAGE = 2_000
"""Tokens of a page of a PDF. Anthropic names 1,500 to 3,000."""


@dataclass(frozen=True, slots=True)
class Encoded:
    """A picture or document as a request carries it: in base64, which is made once and beside the event loop.

    `label` is what the prompt calls it ("Picture 1"). `tokens` is an estimate. `older`: it came with an
    earlier message, so it is what a request that is too large goes without first. `rest` are the other parts
    of a picture that was cut, until `parts` takes it apart; `note` is told to its sender.
    """

    name: str
    type: str
    data: str = field(repr=False)
    tokens: int
    label: str = ""
    older: bool = False
    pages: int = 0
    rest: tuple["Encoded", ...] = ()
    note: str = ""

    @property
    def kind(self) -> Kind:
        """The kind of thing that it is to a person."""
        return "picture" if self.type.startswith("image/") else "document"

    @property
    def parts(self) -> tuple["Encoded", ...]:
        """The parts that a request carries: one, or the parts of a picture in their order."""
        return replace(self, rest=()), *self.rest


def tokens_of(media: Media) -> int:
    """About how many tokens a picture or document costs."""
    if isinstance(media, Document):
        return media.pages * TOKENS_A_PAGE
    return max(1, media.width * media.height // PIXELS_A_TOKEN)


def digest(data: bytes) -> str:
    """The name of a content: the same bytes have the same one, whoever sent them (SHA-256, hex)."""
    return hashlib.sha256(data).hexdigest()
