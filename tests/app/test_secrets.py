"""Keys that people paste: they reach neither the disk, nor a model, nor the archive, whichever way they came.

No real secret is here: the key of "somebody" is the example of NIP-19, ours is made of a word.
"""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from discoclaw.core.item import Item
from discoclaw.nostr.event import Keys
from discoclaw.nostr.redactor import redactor_of
from tests.app.conftest import Start, World
from tests.app.models import Scripted

VECTORS = json.loads((Path(__file__).parent.parent / "vectors" / "nostr.json").read_bytes())
OURS = Keys.parse(hashlib.sha256(b"a key of ours").hexdigest())
THEIRS = "nsec1" + "vl029mgpspedva04g90vltkh6fvh240zqtv9k0t9af8935ke9laqsnlfe5"
HINT = "[REDACTED nsec → npub10elfcs4fr0l0r8a...]"
OUR_FORMS = (
    OURS.secret_hex(),
    OURS.secret_hex().upper(),
    "0x" + OURS.secret_hex(),
    OURS.nsec(),
    OURS.nsec().upper(),
)
LEAKS = tuple(text.encode() for text in (THEIRS[5:25], OURS.nsec()[5:25], OURS.secret_hex()[:16]))
"""Pieces that are to be found nowhere, in lower case."""


class TestWhatIsKnownOfKeys:
    @pytest.mark.parametrize("case", VECTORS["redaction"], ids=lambda case: case["text"][:12])
    def test_each_recorded_text_becomes_what_is_recorded(self, case: dict[str, str]) -> None:
        done = redactor_of(OURS)(case["text"])
        if "redacted" in case:
            assert done.text == case["redacted"]
        else:
            assert case["must_not_contain"] not in done.text
            assert done.redacted or done.flagged

    @pytest.mark.parametrize("form", OUR_FORMS, ids=["hex", "HEX", "0x", "nsec", "NSEC"])
    def test_ours_is_hidden_in_every_form_and_not_even_named(self, form: str) -> None:
        done = redactor_of(OURS)(f"look: {form}!")
        assert done.text.replace("0x", "") == "look: [REDACTED key]!"

    def test_so_are_other_secrets_of_the_settings(self) -> None:
        owner = Keys.generate()
        clean = redactor_of(OURS, secrets=[f"hex:{'cd' * 32}", owner.secret_hex(), "short"])
        for text in ("cd" * 32, owner.nsec(), owner.secret_hex()):
            assert clean(text).text == "[REDACTED key]"
        assert clean("short").text == "short"

    def test_public_keys_of_ours_and_the_owners_are_not_flagged(self) -> None:
        owner = Keys.generate()
        clean = redactor_of(OURS, owner=owner.npub)
        for known in (OURS.public, owner.public.upper(), OURS.npub):
            assert clean(known).text == known
        assert clean("ab" * 32).flagged

    def test_and_nothing_of_it_is_shown_by_what_knows_it(self) -> None:
        assert not any(form in repr(redactor_of(OURS)) for form in OUR_FORMS)

    def test_values_are_cleaned_wherever_a_text_lies(self) -> None:
        deep: Any = {"a": [THEIRS, {THEIRS: 1}], "b": 2, "c": None}
        assert redactor_of(OURS).value(deep) == {"a": [HINT, {HINT: 1}], "b": 2, "c": None}


def leaks(world: World) -> list[str]:
    """The files below the data folder that hold a piece of a key."""
    found = (path for path in (world.folder / "data").rglob("*") if path.is_file())
    return [str(path) for path in found if any(piece in path.read_bytes().lower() for piece in LEAKS)]


def told(model: Scripted) -> str:
    """All that a model was ever given."""
    return repr(model.requests) + "\n".join(model.structured_prompts)


def is_clean(text: str) -> bool:
    return not any(piece.decode() in text.lower() for piece in LEAKS)


def settings(**more: Any) -> dict[str, Any]:
    return {"nostr_key": OURS.nsec(), "auto_save": "all", "summary_every": 1, **more}


@pytest.mark.design(29)
async def test_none_gets_in_with_a_message_of_any_kind(start: Start) -> None:
    model = Scripted()
    async with start(model, **settings()) as world:
        topic = f"keys such as {OURS.secret_hex()}"
        keys = world.guild.create_text_channel("keys", topic=topic)
        carl = world.guild.add_member(world.env.create_user("carl", global_name=THEIRS))
        first = await world.ann.send(keys, f"my key is {THEIRS}")
        assert HINT in model.prompt
        await world.bob.send(keys, "what is that?", reply_to=first)
        assert model.prompt.count(HINT) >= 2  # as quoted, and as said before
        await world.ann.forward(first, world.general)
        assert f"(forwarded: my key is {HINT})" in model.prompt
        await world.ann.send(keys, "a file", attachments=[(f"{THEIRS}.txt", b"x")])
        edited = await world.ann.send(keys, "hm")
        await world.ann.edit(edited, f"0x{OURS.secret_hex().upper()}")
        taken = await carl.send(keys, f"take {OURS.nsec()} instead")
        await world.ann.send(keys, "no", reply_to=taken)
        assert "[REDACTED key]" in model.prompt
        await world.settle()
        assert (is_clean(told(model)), leaks(world)) == (True, [])
        again = Scripted()
        await world.restart(again)
        await world.bob.send(keys, "what have you all said?")  # which is read from Discord's history
        await world.settle()
        assert HINT in again.prompt
        assert (is_clean(told(again)), leaks(world)) == (True, [])


@pytest.mark.design(29)
async def test_nor_with_a_command_or_a_file(start: Start) -> None:
    model = Scripted()
    async with start(model, **settings()) as world:
        await world.ann.send(world.general, f"!memory remember my key is {THEIRS}")
        await world.ann.slash(world.general, "memory remember", text=f"yours is {OURS.secret_hex()}")
        await world.ann.send(world.general, f"!memory create-branch keys --persona {OURS.nsec()}")
        content = json.dumps([{"key": "k", "content": f"from a file: {OURS.secret_hex()}"}])
        await world.ann.send(
            world.general, "!memory import", attachments=[("snapshot.json", content.encode())]
        )
        await world.settle()
        held = "\n".join(item.text for item in await items(world))
        assert f"my key is {HINT}" in held and "yours is [REDACTED key]" in held
        await world.ann.send(world.general, "what else do you remember about me?")
        await world.settle()
        assert (is_clean(told(model)), leaks(world)) == (True, [])


async def test_nor_by_what_a_model_makes_of_two_halves(start: Start) -> None:
    half = f"I begin with {OURS.nsec()[:30]}"
    model = Scripted(f"Together that is {OURS.nsec()}.")
    upsert = {"kind": "fact", "text": f"User knows {OURS.secret_hex()}."}
    model.facts.append(json.dumps({"upserts": [upsert]}))
    async with start(model, **settings()) as world:
        await world.ann.send(world.general, "two halves of something are one")
        await world.settle()
        assert [item.text for item in await items(world)] == ["User knows [REDACTED key]."]
        await world.ann.send(world.general, "and?")
        assert "Together that is [REDACTED key]." in model.prompt
        await world.settle()
        assert (is_clean(told(model)), leaks(world)) == (True, [])
        assert half not in told(model)


@pytest.mark.design(29)
async def test_a_hash_can_be_talked_about_and_a_key_of_the_same_form_cannot(start: Start) -> None:
    model, digits = Scripted(), hashlib.sha256(b"anything").hexdigest()
    async with start(model) as world:
        await world.ann.send(world.general, f"why did the transaction 0x{digits} fail?")
        assert f"why did the transaction 0x{digits} fail?" in model.prompt
        file = [("sums.txt", f"{digits}  discoclaw.whl\n".encode())]
        await world.bob.send(world.dev, "is that the right one?", attachments=file)
        assert f"{digits}  discoclaw.whl" in model.prompt
        carl = world.guild.add_member(world.env.create_user("carl"))
        other = hashlib.sha256(b"something else").hexdigest()
        await carl.send(world.dev, f"mein geheimer Schlüssel: {other}, und {other[::-1]}")
        await world.bob.send(world.dev, f"and what is {other}?")
        assert "mein geheimer Schlüssel: [REDACTED key], und [REDACTED key]" in model.prompt
        assert f"and what is [FLAGGED: unknown 64-char hex {other[:16]}…]?" in model.prompt
        assert other[:17] not in told(model) and other[::-1][:16] not in told(model)


async def test_without_a_key_of_ours_it_is_as_before(start: Start) -> None:
    model = Scripted()
    async with start(model) as world:
        await world.ann.send(world.general, f"my key is {THEIRS}")
        assert "my key is [REDACTED nsec]" in model.prompt
        await world.settle()
        assert leaks(world) == []


async def items(world: World) -> list[Item]:
    return (await world.memory.view(f"user-{world.ann.id}")).active()
