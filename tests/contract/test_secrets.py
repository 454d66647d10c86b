"""Keys and passwords reach neither the disk, nor a model, nor an error, whichever way they came.

No real secret is here: the key of "somebody" is the example of NIP-19, the bot's is made of a word.
"""

import hashlib
import json
from typing import Any

import pytest

from tests.contract.world import Start, World

OURS = hashlib.sha256(b"a key of ours").hexdigest()
THEIRS = "nsec1" + "vl029mgpspedva04g90vltkh6fvh240zqtv9k0t9af8935ke9laqsnlfe5"
HINT = "[REDACTED nsec → npub10elfcs4fr0l0r8a...]"
LEAKS = (THEIRS[5:25], OURS[:16])
"""Pieces that are to be found nowhere, in lower case."""
SETTINGS: dict[str, Any] = {"nostr_key": OURS, "auto_save": "all", "summary_every": 1}


def leaks(world: World) -> list[str]:
    """Where a piece of a key is: files, by name, and "a model"."""
    files = [path for path in world.data.rglob("*") if path.is_file() and path.name != "key"]
    found = [path.name for path in files if any(one.encode() in path.read_bytes().lower() for one in LEAKS)]
    told = str([one.body for one in world.server.requests]).lower()
    return found + ["a model" for one in LEAKS if one in told]


class TestAKey:
    @pytest.mark.design(29)
    async def test_gets_in_with_no_message_of_any_kind(self, start: Start) -> None:
        async with start(**SETTINGS) as world:
            keys = world.guild.create_text_channel("keys", topic=f"keys such as {OURS}")
            carl = world.guild.add_member(world.env.create_user("carl", global_name=THEIRS))
            first = await world.ann.send(keys, f"my key is {THEIRS}")
            assert HINT in world.prompt
            await world.bob.send(keys, "what is that?", reply_to=first)
            assert world.prompt.count(HINT) >= 2  # as quoted, and as said before
            await world.ann.forward(first, world.general)
            assert f"(forwarded: my key is {HINT})" in world.prompt
            await world.ann.send(keys, "a file", attachments=[(f"{THEIRS}.txt", b"x")])
            edited = await world.ann.send(keys, "hm")
            await world.ann.edit(edited, f"0x{OURS.upper()}")
            taken = await carl.send(keys, f"take {OURS} instead")
            await world.ann.send(keys, "no", reply_to=taken)
            assert "[REDACTED key]" in world.prompt
            await world.settle()
            assert leaks(world) == []
            await world.restart()
            await world.says(world.bob, keys, "what have you all said?")  # which is read from Discord
            assert HINT in world.prompt
            assert leaks(world) == []

    @pytest.mark.design(29)
    async def test_gets_in_with_no_command_and_no_answer_of_a_model(self, start: Start) -> None:
        async with start(**SETTINGS) as world:
            await world.says(world.ann, world.general, f"!memory remember my key is {THEIRS}")
            await world.ann.slash(world.general, "memory remember", text=f"yours is {OURS}")
            await world.says(world.ann, world.general, f"!memory create-branch keys --persona {OURS}")
            content = json.dumps([{"key": "k", "content": f"from a file: {OURS}"}]).encode()
            files = [("snapshot.json", content)]
            await world.says(world.ann, world.general, "!memory import", attachments=files)
            held = "\n".join(world.memories(world.ann))
            assert f"my key is {HINT}" in held and "yours is [REDACTED key]" in held
            world.brain.says(f"Together that is {OURS}.", about="two halves")
            world.brain.learns(f"User knows {OURS}.", about="two halves")
            await world.says(world.ann, world.general, "two halves of something are one")
            assert "User knows [REDACTED key]." in world.memories(world.ann)
            await world.says(world.ann, world.general, "what else do you remember about me?")
            assert "Together that is [REDACTED key]." in world.prompt
            assert leaks(world) == []

    @pytest.mark.design(29)
    async def test_is_told_from_a_hash_that_can_be_talked_about(self, start: Start) -> None:
        async with start() as world:
            digits, other = (hashlib.sha256(one).hexdigest() for one in (b"anything", b"something else"))
            await world.says(world.ann, world.general, f"why did the transaction 0x{digits} fail?")
            assert f"why did the transaction 0x{digits} fail?" in world.prompt
            file = [("sums.txt", f"{digits}  discoclaw.whl\n".encode())]
            await world.says(world.bob, world.dev, "is that the right one?", attachments=file)
            assert f"{digits}  discoclaw.whl" in world.prompt
            await world.says(world.ann, world.dev, f"mein geheimer Schlüssel: {other}, und {other[::-1]}")
            await world.says(world.bob, world.dev, f"and what is {other}?")
            assert "mein geheimer Schlüssel: [REDACTED key], und [REDACTED key]" in world.prompt
            assert f"and what is [FLAGGED: unknown 64-char hex {other[:16]}…]?" in world.prompt
            told = str([one.body for one in world.server.requests])
            assert other[:17] not in told and other[::-1][:16] not in told
            await world.says(world.ann, world.general, f"my key is {THEIRS}")  # no key of ours is needed
            assert "my key is [REDACTED nsec" in world.prompt
            assert world.files_with(THEIRS[5:25]) == []


ADDRESSES = (
    *("DISCOCLAW_TRANSCRIBE_URL", "EMBEDDING_BASE_URL", "DISCORD_API_BASE", "ANTHROPIC_BASE_URL"),
    *("DISCORD_GATEWAY", "NOSTR_RELAYS", "DISCOCLAW_PAGE", "DISCOCLAW_METRICS", "DISCOCLAW_STORE"),
)
WRONG = (
    *("ftp://ann:hunter2@host/x", "http:/ann:hunter2@host", "ann:hunter2@host", "ws:://hunter2@host"),
    *("x://ann:hun/ter2@host", "x://ann:hun ter2@host", "x://ann:hun@ter2@host", "x://host?key=hunter2"),
)
NOT_ENCODED = ("http://ann:hun/ter2@host", "http://ann:hun#ter2@host", "http://:hunter2@")


async def test_a_password_in_a_wrong_setting_stands_in_no_error(start: Start) -> None:
    async with start() as world:
        await world.stop()
        for name in ADDRESSES:
            for address in (*WRONG, *(NOT_ENCODED if name in ADDRESSES[:4] else ())):
                refused = world.cli("memory", "show", str(world.ann.id), **{name: address})
                assert refused.exit_code != 0 and name in refused.stderr, (name, address)
                assert "ter2" not in refused.output
                if address in NOT_ENCODED:
                    assert "special characters in a password are percent-encoded" in refused.stderr
        refused = world.cli("memory", "show", "1", DISCORD_ALLOW_USER_IDS="<@123>")
        assert "DISCORD_ALLOW_USER_IDS=<@123>: '<@123>' is not a Discord id" in refused.stderr
