"""How an admin names the shards of a process, and where Discord sends events."""

import pytest

from discoclaw.core.errors import SettingsError
from discoclaw.core.shards import AUTO, Shards, every, shard_of, wanted
from discoclaw.settings import load
from tests.tables import each_row


@each_row(
    ("text", "ids", "count"),
    [
        ("0-3/8", (0, 1, 2, 3), 8),
        ("0-3of8", (0, 1, 2, 3), 8),
        (" 4 - 5 OF 8 ", (4, 5), 8),
        ("7/8", (7,), 8),
        ("6,0-1/8", (0, 1, 6), 8),
        ("0/1", (0,), 1),
        ("2:4/16", (8, 9, 10, 11), 16),
        ("0:3of8", (0, 1), 8),
        ("1:3of8", (2, 3, 4), 8),
        ("2:3of8", (5, 6, 7), 8),
    ],
)
def test_shards_are_named_by_number_or_as_one_of_several_parts(
    text: str, ids: tuple[int, ...], count: int
) -> None:
    assert wanted(text) == Shards(ids, count)


def test_auto_leaves_the_number_to_discord() -> None:
    assert wanted("Auto") == AUTO


@each_row(
    ("text", "why"),
    [
        ("0-3", "use auto, 0-3/8"),
        ("", "use auto, 0-3/8"),
        ("0-3/", "use auto, 0-3/8"),
        ("0-3/eight", "use auto, 0-3/8"),
        ("0/0", "from 1 to 100,000"),
        ("0/99999999999", "from 1 to 100,000"),
        ("8/8", "no shard 8 of 8; shards are numbered from 0"),
        ("3-0/8", "3-0 runs backwards; write 0-3"),
        ("0-3,2-5/8", "shard 2 is named twice"),
        ("0-x/8", "'0-x' is not a shard"),
        ("0,,1/8", "'' is not a shard"),
        ("-1/8", "'-1' is not a shard"),
        ("٣/8", "'٣' is not a shard"),
        ("4:4/16", "no part 4 of 4; parts are numbered from 0"),
        ("0:0/16", "no part 0 of 0"),
        ("0:9/8", "8 shards cannot be 9 parts"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        wanted(text)
    assert why in str(caught.value) and "\n" not in str(caught.value)


@each_row("text", ["0-3/8", "7/8", "0-1,4,6-7/8", "0/1"])
def test_shards_are_shown_as_they_are_written(text: str) -> None:
    assert str(wanted(text)) == text


@each_row(("parts", "count"), [(1, 1), (3, 8), (4, 16), (7, 100), (8, 8)])
def test_the_parts_are_all_shards_and_each_once(parts: int, count: int) -> None:
    found = [wanted(f"{number}:{parts}/{count}") for number in range(parts)]
    assert [one for shards in found if isinstance(shards, Shards) for one in shards.ids] == list(range(count))


def test_a_server_has_one_shard_and_direct_messages_the_first() -> None:
    guild = str((1234 << 22) + 99)
    assert shard_of(guild, 8) == 1234 % 8 and shard_of(None, 8) == 0 and shard_of(guild, 1) == 0
    assert [one for one in range(8) if every(8).only(one).have(guild)] == [1234 % 8]
    assert every(8).all and not Shards((0,), 8).all


def test_a_wrong_setting_names_the_variable_and_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DISCOCLAW_SHARDS", "3-0/8")
    with pytest.raises(SettingsError, match=r"^DISCOCLAW_SHARDS=3-0/8: 3-0 runs backwards; write 0-3$"):
        load()
    assert load(shards="0/1").shards == Shards((0,), 1)
    monkeypatch.setenv("DISCOCLAW_SHARDS", "  ")
    assert load().shards is None
