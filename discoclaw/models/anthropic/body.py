"""Sends requests with files without holding up the event loop.

The SDK writes a request's JSON in one go and hands all of it to the connection: for a PDF of 10 MB, nobody
else was answered for a quarter of a second. Base64 needs no escaping, so here it stands between the pieces of
the rest, and leaves a chunk at a time. It also stays out of the SDK's log.
"""

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Final
from uuid import uuid4

from anthropic import AsyncAnthropic
from anthropic._models import FinalRequestOptions

_CHUNK: Final = 256 * 1024


class Client(AsyncAnthropic):
    """The SDK's client. Only its hook before each attempt is another one."""

    async def _prepare_options(self, options: FinalRequestOptions) -> FinalRequestOptions:
        options = await super()._prepare_options(options)
        if isinstance(options.json_data, Mapping) and (body := body_of(options.json_data)) is not None:
            given = options.headers if isinstance(options.headers, Mapping) else {}
            options.headers = {**given, "Content-Length": str(body.size)}
            options.content, options.json_data = body, None
        return options


class Body:
    """The pieces of a body, which can be sent more than once."""

    def __init__(self, pieces: Sequence[bytes | str]) -> None:
        self._pieces = pieces  # the files are text still, without a copy
        self.size = sum(map(len, pieces))

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
    source = block.get("source") if isinstance(block, Mapping) else None
    if not isinstance(source, Mapping):
        return block
    data = source.get("data")
    if not isinstance(data, str) or not data:
        return block
    token = uuid4().hex
    files[token] = data
    return {**block, "source": {**source, "data": token}}
