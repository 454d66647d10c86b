"""A client by others, in JavaScript, reads every event of a story: nostr-tools and tweetnacl under node.

`make nostr-client` installs them. Without node the same is said by nostr-sdk and PyNaCl in other tests.
"""

import json
import shutil
import subprocess
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from discoclaw.core.consent import UNLIMITED
from discoclaw.core.draft import Draft, Origin
from discoclaw.core.profile import Profile
from discoclaw.memory.subjects import verbs
from discoclaw.nostr.event import Event, Keys
from discoclaw.nostr.owner import OwnerNotes
from discoclaw.nostr.schemas import APP, CLEAR, DELETE, PREFERENCE, SUMMARY, TOOL, TOPICS
from tests.memory.kit import NOW, remember
from tests.nostr.mirror_kit import ANN, ANN_ID, BOB, BOB_ID, KEYS, MirrorSetup, mirror_setup

CLIENT = Path(__file__).parent / "client"
INSTALLED = shutil.which("node") is not None and (CLIENT / "node_modules/nostr-tools").is_dir()
OWNER = Keys.generate()
STATED = Origin("stated")

SHAPES: dict[str, dict[str, type | tuple[type, ...]]] = {
    "discoclaw:ledger": {"subject": str, "line": int, "record": dict},
    "discoclaw:index": {"units": dict},
    "snowclaw:memory:npub": {
        "display_names": list,
        "first_seen": int,
        "notes": list,
        "preferences": dict,
        "is_owner": bool,
        "x_discord": str,
    },
    "snowclaw:memory:group": {
        "purpose": (str, type(None)),
        "members": list,
        "themes": list,
        "decisions": list,
        "x_members": list,
        "x_discord": str,
    },
    str(PREFERENCE): {"history_key": str, "preference": str, "updated_at": int},
    str(SUMMARY): {"history_key": str, "summary": str, "message_count": int, "updated_at": int},
    str(TOOL): {
        "history_key": str,
        "tool_name": str,
        "success": bool,
        "content": str,
        "sender_id": (str, type(None)),
        "group_id": (str, type(None)),
        "created_at": int,
    },
    str(CLEAR): {"history_key": str, "sender_id": (str, type(None)), "created_at": int},
    str(TOPICS): {"history_key": str, "topics": list, "updated_at": int},
}
"""The fields of each payload, as docs/admins/nostr.md has them; others begin with "x_"."""


def read(events: list[Event], keys: Keys = KEYS) -> list[dict[str, Any]]:
    """What the client makes of events."""
    asked = subprocess.run(
        ["node", "read.mjs"],
        cwd=CLIENT,
        input=json.dumps({"secret": keys.secret_hex(), "events": [event.to_json() for event in events]}),
        capture_output=True,
        text=True,
        check=True,
    )
    said: list[dict[str, Any]] = json.loads(asked.stdout)
    return said


def named(d: str) -> str:
    return next(name for name in SHAPES if d.startswith(f"{name}:"))


async def told(setup: MirrorSetup) -> list[Event]:
    """Everything that is published while a memory lives: added, changed, forgotten, merged, noted, erased."""
    memory = setup.memory

    def edit(draft: Draft) -> None:
        item = next(one for one in draft.items.values() if "vim" in one.text)
        draft.upsert("preference", "User prefers emacs.", STATED, given_id=item.id)

    def forget(draft: Draft) -> None:
        draft.deprecate(next(one for one in draft.items.values() if "tea" in one.text), STATED)

    await memory.change(ANN, "added", remember("User prefers vim.", "preference"))
    await memory.change(ANN, "added", remember("Ænn drinks tea 🐍"))
    await memory.change(ANN, "changed", edit)
    await memory.change(ANN, "forgotten", forget)
    await verbs.create_branch(memory, ANN, "coding", "Terse.", by="command")
    await memory.change(ANN, "added", remember("User writes Rust."), branch="coding")
    await verbs.merge(memory, ANN, "coding", STATED, by="command")
    note = json.dumps({"notes": ["Leads the team."], "preferences": {"language": "en"}})
    event = OWNER.sign(APP, note, [["d", f"snowclaw:memory:npub:{ANN_ID}"]], NOW // 1000)
    assert await OwnerNotes(memory, str, consent=UNLIMITED).add(event, note)
    await memory.change(BOB, "added", remember("Bob's secret."))
    shown = Profile().with_view(await memory.view(ANN))
    setup.profile(preferences=dict(shown.preferences), notes=list(shown.notes))
    setup.profile(BOB_ID)
    setup.group()
    setup.summary("They planned a fête.", NOW)
    setup.tool()
    setup.clear(NOW - 1)
    await setup.mirror.push()
    events = setup.sent()
    setup.clock.forward(minutes=5)
    await memory.erase(BOB)
    await setup.mirror.push()
    return [*events, *setup.sent()]


@pytest.mark.skipif(not INSTALLED, reason="nostr-tools is not installed; other tests read with nostr-sdk")
class TestAClientByOthers:
    async def test_verifies_and_decrypts_every_event_of_a_story_in_its_documented_shape(
        self, tmp_path: Path
    ) -> None:
        with mirror_setup(tmp_path) as setup:
            events = await told(setup)
            await setup.mirror.close()
        said = read(events)
        assert [one for one in said if "error" in one] == []
        payloads = [one for one in said if one["kind"] != DELETE]
        tombstones = [one for one in payloads if one["body"].get("x_erased") is True]
        shown = [one for one in payloads if one not in tombstones]
        assert len(tombstones) >= 2 and len(payloads) < len(said)
        found = Counter(named(str(one["d"])) if one["kind"] == APP else str(one["kind"]) for one in shown)
        assert found.keys() == SHAPES.keys()
        for one in shown:
            name = named(str(one["d"])) if one["kind"] == APP else str(one["kind"])
            fields = {key: value for key, value in one["body"].items() if key in SHAPES[name]}
            assert list(fields) == list(SHAPES[name])
            assert all(isinstance(value, SHAPES[name][key]) for key, value in fields.items())
            assert all(key in fields or key.startswith("x_") for key in one["body"])
            if one["kind"] in (TOOL, CLEAR):
                assert one["d"] == f"{one['body']['history_key']}:{one['hash']}"
        story = [one["body"]["record"] for one in shown if "record" in one["body"]]
        assert {"added", "changed", "forgotten", "noted by the owner"} <= {
            record.get("message") for record in story
        }
        assert any("merged" in record["metadata"] for record in story)
        profiles = {one["body"]["x_discord"]: one["body"] for one in shown if "notes" in one["body"]}
        profile = profiles[ANN_ID]
        assert profile["notes"] == ["User writes Rust.", "Leads the team."]
        assert profile["preferences"]["language"] == "en"

    async def test_refuses_what_was_changed_and_reads_nothing_with_another_key(self, tmp_path: Path) -> None:
        with mirror_setup(tmp_path) as setup:
            await setup.memory.change(ANN, "added", remember("User prefers vim.", "preference"))
            await setup.mirror.push()
            events = setup.sent()
            await setup.mirror.close()
        changed = [replace(event, created_at=event.created_at + 1) for event in events]
        assert {one["error"] for one in read(changed)} == {"id or signature do not verify"}
        assert {one["error"] for one in read(events, Keys.generate())} == {"by somebody else"}
