"""Files of the TypeScript DiscoClaw are taken over on the first read: nothing of a memory is lost."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from discoclaw.memory.subjects.durable_file import render
from discoclaw.memory.subjects.store import Memory
from tests.memory.kit import ANN, STAMP, asides, commits_of, durable_of, fingerprint, remember

Restart = Callable[[], Memory]


def entry(number: int, text: str, source: dict[str, str], **fields: Any) -> dict[str, Any]:
    """An item as that bot wrote it."""
    return {
        "id": f"durable-0000000{number}",
        "kind": "fact",
        "text": text,
        "tags": [],
        "status": "active",
        "source": source,
        "createdAt": 1_760_000_000_000 + number,
        "updatedAt": 1_765_000_000_000 + number,
        "hitCount": 4,
        "lastHitAt": 1_766_000_000_000,
        **fields,
    }


MESSAGE = {"type": "discord", "channelId": "70", "messageId": "80", "guildId": "90", "channelName": "dev"}
ITEMS = [
    entry(1, "Uses VS Code", {"type": "manual"}, kind="tool", tags=["editor"]),
    entry(2, "Works at Acme", MESSAGE, kind="project"),
    entry(3, "Likes tea", {"type": "summary"}, status="deprecated"),
    entry(4, "Has a cat", {"type": "consolidation"}),
    entry(5, "TypeScript", {"type": "manual"}, status="deprecated", updatedAt=1_769_000_000_000),
    entry(5, "TypeScript", {"type": "summary"}, createdAt=1_762_000_000_000),
]
BODY = ("id", "kind", "text", "tags", "status", "createdAt", "updatedAt")


@pytest.fixture(params=[1, 2])
def original(request: pytest.FixtureRequest, memory: Memory) -> bytes:
    """The file, of version 2, or of version 1 with the fields of version 2, before anybody read it."""
    value = {"version": request.param, "updatedAt": 1_769_500_000_000, "items": ITEMS}
    content = (json.dumps(value, indent=2) + "\n").encode()
    memory.durable_folder.mkdir()
    durable_of(memory).write_bytes(content)
    return content


class TestTheFirstReadTakesItOver:
    async def test_as_one_commit_that_loses_nothing_and_only_once(
        self, memory: Memory, original: bytes, restart: Restart
    ) -> None:
        taken = (await memory.view(ANN)).items
        for given in ITEMS[:4]:
            now = taken[given["id"]].to_json()
            assert {name: now[name] for name in BODY} == {name: given[name] for name in BODY}
        assert len(taken) == 5
        five = taken["durable-00000005"]
        assert five.active, "of two with one id the active one counts"
        assert five.created_at == 1_762_000_000_000
        assert [(str(item.source), item.facets.author) for item in taken.values()] == [
            ("manual", "stated"),
            ("discord:70/80", "inferred"),
            ("manual", "inferred"),
            ("manual", "inferred"),
            ("manual", "inferred"),
        ]
        (commit,) = commits_of(memory)
        assert commit.message == "take over the durable file"
        assert {event.evidence for event in commit.events} == {"taken over"}
        content = durable_of(memory).read_bytes()
        assert content == render(await memory.view(ANN))
        assert json.loads(content)["version"] == 1
        (aside,) = [path for path in memory.durable_folder.iterdir() if path != durable_of(memory)]
        assert aside.name == f"123.json.v{json.loads(original)['version']}-{STAMP}"
        assert aside.read_bytes() == original
        before = fingerprint(memory.durable_folder)
        assert dict((await restart().view(ANN)).items) == dict(taken)
        assert (fingerprint(memory.durable_folder), commits_of(memory)) == (before, (commit,))

    async def test_to_change_before_any_read_takes_it_over_first(
        self, memory: Memory, original: bytes
    ) -> None:
        await memory.change(ANN, "why", remember("likes coffee"))
        assert len((await memory.view(ANN)).items) == 6
        assert len(commits_of(memory)) == 2


class TestGoingBackAndForth:
    async def test_what_that_bot_learned_in_between_is_added_and_nothing_is_lost(
        self, memory: Memory, restart: Restart
    ) -> None:
        await memory.change(ANN, "why", remember("likes hiking"))
        content = json.dumps({"version": 2, "updatedAt": 1, "items": ITEMS[:2]}).encode()
        durable_of(memory).write_bytes(content)
        later = restart()
        held = [item.text for item in (await later.view(ANN)).active()]
        assert held == ["likes hiking", "Uses VS Code", "Works at Acme"]
        assert [path.read_bytes() for path in asides(durable_of(memory), "v2")] == [content]
