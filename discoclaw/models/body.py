"""Sends requests with files without holding up the event loop.

The SDKs write a request's JSON in one go and hand all of it to the connection: for a PDF of 10 MB, nobody
else was answered for a quarter of a second. Base64 needs no escaping, so here it stands between the pieces of
the rest, and leaves a chunk at a time. It also stays out of the SDKs' logs.
"""

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Final
from uuid import uuid4

_CHUNK: Final = 256 * 1024
_FILES: Final = (("source", "data"), ("image_url", "url"), ("file", "file_data"))
"""The path in a block of either API at which its file is: as base64, or as a URL of it."""


def in_pieces(options: Any) -> None:
    """Have an SDK send a request with files in pieces. `options` are what it prepares before each attempt."""
    if isinstance(options.json_data, Mapping) and (body := body_of(options.json_data)) is not None:
        given = options.headers if isinstance(options.headers, Mapping) else {}
        options.headers = {**given, "Content-Length": str(body.size)}
        options.content, options.json_data = body, None


class Body:
    """The pieces of a body, which can be sent more than once."""

    def __init__(self, pieces: Sequence[bytes | str]) -> None:
        self._pieces = pieces  # the files are text still, without a copy
        self.size = sum(map(len, pieces))

    def seek(self, at: int = 0) -> int:
        """Do nothing. OpenAI's SDK sends a body again only if it can rewind it like a file."""
        return 1

    read = seekable = tell = seek

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self._pieces:
            for begin in range(0, len(piece), _CHUNK):
                chunk = piece[begin : begin + _CHUNK]
                yield chunk.encode("ascii") if isinstance(chunk, str) else chunk


def body_of(request: Mapping[str, Any]) -> Body | None:
    """The request as the SDK would write it; None if it has no files."""
    files: dict[str, str] = {}
    messages = [_without(message, files) for message in request.get("messages", ())]
    if not files:
        return None
    rest = json.dumps(
        {**request, "messages": messages}, ensure_ascii=False, separators=(",", ":"), allow_nan=False
    )
    pieces: list[bytes | str] = []
    for token, data in files.items():
        before, _, rest = rest.partition(token)
        pieces += [before.encode(), data]
    return Body([*pieces, rest.encode()])


def _without(message: Any, files: dict[str, str]) -> Any:
    """The message with a token for each file, which is unique and stands in their order."""
    if not isinstance(message, Mapping) or not isinstance(message.get("content"), list):
        return message
    return {**message, "content": [_block(block, files) for block in message["content"]]}


def _block(block: Any, files: dict[str, str]) -> Any:
    for field, key in _FILES if isinstance(block, Mapping) else ():
        source = block.get(field)
        data = source.get(key) if isinstance(source, Mapping) else None
        if isinstance(source, Mapping) and isinstance(data, str) and data:
            token = uuid4().hex
            files[token] = data
            return {**block, field: {**source, key: token}}
    return block
