"""Which texts the inboxes of each of Discord's shards are in, and what becomes of them with other shards."""

import json
from pathlib import Path
from typing import Any

import pytest

from discoclaw.core.inbox import Inbox
from discoclaw.core.shards import Shards, every, shard_of
from discoclaw.memory.conversations.inboxes import moved_in, recent
from discoclaw.memory.exchange.archive import Archive, StoreTexts, bring_texts
from discoclaw.store.files import session_name
from discoclaw.store.plain import FilesDisk
from discoclaw.store.port import CURSORS, Documents
from tests.memory.together import Together

GUILDS = [str(number << 22) for number in range(1, 9)]
ROOMS = {f"discord:channel:{700 + at}": guild for at, guild in enumerate(GUILDS)}
DM = "discord:dm:41"


def documents(store: Together) -> Documents:
    return store.join().disk.documents(CURSORS)


def inbox(channel: int, floor: int, guild: str | None) -> dict[str, Any]:
    return Inbox(str(channel), floor, guild_id=guild).as_json()


def everything(floor: int) -> dict[str, Any]:
    rooms = {key: inbox(700 + at, floor, guild) for at, (key, guild) in enumerate(ROOMS.items())}
    return {**rooms, DM: inbox(900, floor, None)}


def alone(store: Together, floor: int = 1) -> None:
    """What one process without shards has left."""
    documents(store).write("inbox.json", json.dumps(everything(floor)).encode())


def written(store: Together, names: dict[int, str], floor: int) -> None:
    """Somebody handled everything there is in the texts of these shards, up to a message."""
    for name in names.values():
        texts = documents(store)
        before = json.loads(texts.read(f"{name}.json"))
        texts.write(
            f"{name}.json", json.dumps({k: {**v, "floor": str(floor)} for k, v in before.items()}).encode()
        )


def texts(store: Together) -> list[str]:
    return [name for name in documents(store).names() if name.startswith("inbox")]


def test_each_process_gets_the_conversations_of_its_shards() -> None:
    store = Together()
    alone(store)
    low, high = Shards((0, 1), 4), Shards((2, 3), 4)
    found = [moved_in(documents(store), shards)[1] for shards in (low, high)]
    assert found[0].keys() == {DM, *(key for key, guild in ROOMS.items() if low.have(guild))}
    assert found[1].keys() == {key for key, guild in ROOMS.items() if high.have(guild)}
    assert {**found[0], **found[1]} == everything(1)
    assert "inbox.json" not in texts(store)


def test_the_texts_of_a_shard_are_read_by_whoever_has_it_next() -> None:
    store = Together()
    alone(store)
    names, _ = moved_in(documents(store), every(4))
    written(store, names, 5)
    again, found = moved_in(documents(store), Shards((3,), 4))
    assert again == {3: names[3]}
    assert {value["floor"] for value in found.values()} == {"5"}
    assert found.keys() == {key for key, guild in ROOMS.items() if shard_of(guild, 4) == 3}


def test_with_another_number_of_shards_nothing_is_lost_and_nothing_comes_back() -> None:
    store = Together()
    alone(store, 1)
    for floor, count in enumerate((4, 3, 8, 4, 1, 4), start=2):
        found: dict[str, Any] = {}
        for shard in reversed(range(count)):
            names, part = moved_in(documents(store), Shards((shard,), count))
            found |= part
            written(store, names, floor)
        assert found == everything(floor - 1)
        assert len(texts(store)) == count + 1  # each shard's, and how many there are


def test_whoever_begins_again_in_the_middle_of_a_move_finds_the_same() -> None:
    store = Together()
    alone(store, 1)
    written(store, moved_in(documents(store), every(2))[0], 2)
    names, first = moved_in(documents(store), Shards((1,), 3))
    written(store, names, 3)
    _, again = moved_in(documents(store), Shards((1,), 3))
    assert again.keys() == first.keys()
    assert {value["floor"] for value in again.values()} == {"3"}
    _, others = moved_in(documents(store), Shards((0, 2), 3))
    assert {**again, **others}.keys() == everything(0).keys()


def test_a_text_that_another_process_removes_meanwhile_had_nothing_of_ours(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store = Together()
    alone(store, 1)
    names, _ = moved_in(documents(store), every(2))
    low, high, ours = Shards((0, 1), 4), Shards((2, 3), 4), documents(store)
    documents(store).write(session_name(recent(names[0])), b"{}")  # as after everything was written
    listed = type(ours).names

    def names_before_the_other_moves(self: Any) -> list[str]:
        found = list(listed(self))
        monkeypatch.undo()
        moved_in(documents(store), low)
        return found

    monkeypatch.setattr(type(ours), "names", names_before_the_other_moves)
    _, found = moved_in(ours, high)
    assert found.keys() == {key for key, guild in ROOMS.items() if high.have(guild)}


def test_no_older_text_names_a_person_once_their_shard_is_taken() -> None:
    store = Together()
    alone(store)
    moved_in(documents(store), Shards((1,), 2))
    assert DM.encode() in store.dump()
    moved_in(documents(store), Shards((0,), 2))
    moved_in(documents(store), Shards((0,), 3))  # the other shards' processes have not begun yet
    holding = [name for name in texts(store) if DM.encode() in documents(store).read(name)]
    assert holding == ["inbox:2:0.json"]


def test_a_damaged_text_costs_its_conversations_and_no_others() -> None:
    store = Together()
    alone(store)
    names, _ = moved_in(documents(store), every(2))
    documents(store).write(f"{names[1]}.json", b"{ this isn't a JSON")
    _, found = moved_in(documents(store), every(2))
    assert found.keys() == {DM, *(key for key, guild in ROOMS.items() if shard_of(guild, 2) == 0)}


def test_no_import_brings_the_texts_of_shards(tmp_path: Path) -> None:
    store = Together()
    alone(store)
    moved_in(documents(store), every(2))
    documents(store).write("questions-41.json", b'{"asked": 1}')
    target = FilesDisk(tmp_path / "out")
    bring_texts(Archive({}, StoreTexts(store.join().disk)), target, [CURSORS], False, 0)
    assert target.documents(CURSORS).names() == ["questions-41.json"]
