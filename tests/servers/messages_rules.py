"""What the Messages API, and the strictest servers that speak it, demand of a request's messages.

The API itself unites neighbours of one role; servers behind a chat template refuse them, and so do we.
"""

import base64
from io import BytesIO
from typing import Any

from PIL import Image

MOST_BASE64 = 5 * 2**20
MOST_PIXELS = 8_000
"""A side of a picture."""

Json = dict[str, Any]


def fault(body: Json) -> str | None:
    """Why a request is refused with status 400, in the API's words; None when it is in order."""
    messages = body["messages"]
    uses = any(block["type"] in ("tool_use", "tool_result") for one in messages for block in blocks(one))
    if uses and not body.get("tools"):
        return "Requests which include `tool_use` or `tool_result` blocks must define tools"
    if not messages or messages[0]["role"] != "user":
        return 'messages: first message must use the "user" role'
    for number, one in enumerate(messages):
        before = messages[number - 1] if number else None
        why = _roles(one, before) or _contents(one) or _pairs(one, before)
        if why is not None:
            return f"messages.{number}: {why}"
    if _called(messages[-1]):
        return f"messages.{len(messages) - 1}: `tool_use` ids were found without `tool_result` blocks"
    return None


def blocks(message: Json) -> list[Json]:
    """The content blocks of a message; a plain text is one block."""
    content = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _roles(message: Json, before: Json | None) -> str | None:
    if message["role"] not in ("user", "assistant"):
        return f"unexpected role {message['role']!r}"
    if before is not None and before["role"] == message["role"]:
        return 'roles must alternate between "user" and "assistant"'
    return None


def _contents(message: Json) -> str | None:
    texts = [block["text"] for block in blocks(message) if block["type"] == "text"]
    if not blocks(message) or not all(text.strip() for text in texts):
        return "text content blocks must be non-empty"
    faults = (_media(block) for block in blocks(message) if block["type"] in ("image", "document"))
    return next(filter(None, faults), None)


def _media(block: Json) -> str | None:
    """Pictures must be what their type says, and not too large; the only other documents are PDF files."""
    source = block["source"]
    data = base64.b64decode(source["data"], validate=True)
    if block["type"] == "document":
        is_pdf = source["media_type"] == "application/pdf" and data.startswith(b"%PDF-")
        return None if is_pdf else "document: the data isn't a PDF"
    if len(source["data"]) > MOST_BASE64:
        return f"image exceeds 5 MB maximum: {len(source['data'])} bytes > {MOST_BASE64} bytes"
    with Image.open(BytesIO(data)) as picture:
        if picture.get_format_mimetype() != source["media_type"]:
            return f"image: the data is no {source['media_type']}"
        return None if max(picture.size) <= MOST_PIXELS else "image: dimensions exceed 8000 pixels"


def _pairs(message: Json, before: Json | None) -> str | None:
    """Every call of the message before is answered here, once, and first; nothing else is."""
    called = _called(before) if before is not None else []
    answered = [block["tool_use_id"] for block in blocks(message) if block["type"] == "tool_result"]
    if sorted(called) != sorted(answered):
        return f"`tool_use` ids {called} and `tool_result` ids {answered} of two messages do not match"
    if any(block["type"] != "tool_result" for block in blocks(message)[: len(answered)]):
        return "`tool_result` blocks must come first"
    return None


def _called(message: Json) -> list[str]:
    return [block["id"] for block in blocks(message) if block["type"] == "tool_use"]
