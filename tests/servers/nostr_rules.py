"""The rules of Nostr that a loopback relay keeps or breaks: what replaces what, what a filter means (NIP-01).

Events are plain decoded JSON. Knows nothing about connections, or about DiscoClaw.
"""

import json
from collections.abc import Mapping
from typing import Any

import nostr_sdk

Event = Mapping[str, Any]
Json = dict[str, Any]


def changed(event: Event, **fields: Any) -> Json:
    """An event with other fields and its old id and signature: a forgery."""
    return {**event, **fields}


def fits(event: Event, asked: Json, *, until_is_out: bool = False) -> bool:
    """Whether an event is asked for; `until_is_out`: one of exactly that second is not."""
    tags: dict[str, set[str]] = {}
    for name, value, *_ in (tag for tag in event["tags"] if len(tag) > 1):
        tags.setdefault(f"#{name}", set()).add(value)
    for name, wanted in asked.items():
        match name:
            case "ids" | "authors" | "kinds":
                if event[{"ids": "id", "authors": "pubkey", "kinds": "kind"}[name]] not in wanted:
                    return False
            case "since":
                if event["created_at"] < wanted:
                    return False
            case "until":
                if event["created_at"] > wanted - until_is_out:
                    return False
            case _ if name.startswith("#") and not tags.get(name, set()) & set(wanted):
                return False
    return True


def rank(event: Event) -> tuple[int, str]:
    """The order in which NIP-01 prefers events: the newest, of one second the one with the lowest id."""
    return (-event["created_at"], event["id"])


def address(event: Event) -> str | None:
    """What a replaceable event replaces others of; None for an event that stands for itself."""
    kind = event["kind"]
    if 30_000 <= kind < 40_000:
        d = next((tag[1] for tag in event["tags"] if len(tag) > 1 and tag[0] == "d"), "")
        return f"{kind}:{event['pubkey']}:{d}"
    if kind in (0, 3) or 10_000 <= kind < 20_000:
        return f"{kind}:{event['pubkey']}:"
    return None


def verified(event: Json) -> bool:
    """Whether id and signature are right."""
    try:
        return bool(nostr_sdk.Event.from_json(json.dumps(event)).verify())
    except nostr_sdk.NostrSdkError:
        return False
