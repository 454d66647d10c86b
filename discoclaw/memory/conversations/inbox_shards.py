"""The inboxes in a store that several processes share: one text for each of Discord's shards.

    cursors/inbox:<generation>:<shard>         the conversations of a shard
    cursors/inbox:<generation>:<shard>_recent  those that changed since, as they are now
    cursors/inbox-shards                       how many shards there are, and their generation

A generation begins when there are more or fewer shards than before: then each process moves the conversations
of its shards into their new texts, by the servers that they belong to. Whoever calls this has the leases of
these shards, so nobody else writes their texts. Blocking.
"""

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

from discoclaw.core.shards import Shards, shard_of
from discoclaw.store.files import render_json, session_name
from discoclaw.store.port import Documents

NAME: Final = "inbox"
SHARDS: Final = "inbox-shards"
_TEXT: Final = re.compile(r"inbox(?:[:-](\d+)[:-]\d+)?(_recent)?\.json", re.ASCII)


def recent(name: str) -> str:
    """The cursor beside another one, with what changed since that was written. It counts."""
    return f"{name}_recent"


def moved_in(documents: Documents, shards: Shards) -> tuple[dict[int, str], dict[str, Any]]:
    """The names of the cursors of these shards, and all conversations in them. Raises OSError.

    What lies where older generations, or one process alone, have left it is there afterwards.
    """
    generation = _generation(documents, shards.count)
    names = {shard: f"{NAME}:{generation}:{shard}" for shard in shards.ids}
    texts = {text: int(of[1] or 0) for text in documents.names() if (of := _TEXT.fullmatch(text))}
    older = [text for of, text in sorted((of, text) for text, of in texts.items()) if of != generation]
    found: dict[str, Any] = {}
    missing: dict[int, dict[str, Any]] = {}
    for shard, name in names.items():
        here = [text for text in map(session_name, (name, recent(name))) if text in texts]
        for text in here:
            found.update(_decoded(documents.read(text)))
        if not here:
            missing[shard] = {}
    for text in older:
        with suppress(FileNotFoundError):  # another process took the last of it, so nothing in it was ours
            for key, value in _decoded(documents.read(text)).items():
                if (shard := _shard(value, shards)) in missing:
                    missing[shard][key] = value
    for shard, conversations in missing.items():
        documents.write(session_name(names[shard]), render_json(conversations))
        found.update(conversations)
    for text in older:
        _leave(documents, text, shards)
    return names, found


def channels_in(documents: Documents) -> dict[str, str]:
    """The channels of all conversations (keys) in which anything was handled. Raises OSError."""
    texts = [documents.read(name) for name in documents.names() if _TEXT.fullmatch(name)]
    inboxes = [(key, value) for text in texts for key, value in _decoded(text).items()]
    return {key: str(value["channel"]) for key, value in inboxes if "channel" in value}


def _generation(documents: Documents, count: int) -> int:
    """The generation of so many shards; a new one if there were others before."""

    def agreed(content: bytes | None) -> bytes | None:
        value = _decoded(content or b"{}")
        if value.get("count") == count:
            return None
        return render_json({"count": count, "generation": int(value.get("generation", 0)) + 1})

    return int(_decoded(documents.change(session_name(SHARDS), agreed) or b"{}")["generation"])


def _leave(documents: Documents, text: str, shards: Shards) -> None:
    """Remove the conversations of these shards from a text, and the text with the last of them."""

    def others(content: bytes | None) -> bytes | None:
        if content is None:
            return None
        before = _decoded(content)
        left = {key: value for key, value in before.items() if _shard(value, shards) not in shards.ids}
        return render_json(left) if left != before else None

    content = documents.change(text, others)
    if content is not None and not _decoded(content):
        documents.remove([text])


def _shard(value: object, shards: Shards) -> int:
    guild = value.get("guild") if isinstance(value, Mapping) else None
    known = isinstance(guild, str) and guild.isascii() and guild.isdigit()
    return shard_of(guild if known else None, shards.count)


def _decoded(content: bytes) -> dict[str, Any]:
    """A text as a map; empty if it is damaged."""
    try:
        value = json.loads(content)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
