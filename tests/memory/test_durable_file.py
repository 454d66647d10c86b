"""`durable/<user-id>.json`: its bytes are a contract, it can be lost, and anything may stand in it."""

import json
import random
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discoclaw.core.errors import NewerSchema
from discoclaw.core.item import KINDS, MANUAL, Item, Source
from discoclaw.core.view import EMPTY, View
from discoclaw.memory.subjects.durable_file import DurableFile, Renderer, Unreadable, parse, render
from discoclaw.memory.subjects.store import Memory
from tests.memory.kit import (
    ANN,
    NOW,
    STAMP,
    Clock,
    asides,
    commits_of,
    durable_of,
    heard,
    ledger_of,
    remember,
    texts,
)
from tests.tables import naming

Restart = Callable[[], Memory]

GOLDEN = """\
{
  "version": 1,
  "updatedAt": 1770136235000,
  "items": [
    {
      "id": "durable-2ed36192",
      "kind": "fact",
      "text": "I prefer TypeScript",
      "tags": [],
      "status": "active",
      "source": {
        "type": "manual"
      },
      "createdAt": 1770136175000,
      "updatedAt": 1770136175000
    },
    {
      "id": "durable-c1f2b7db",
      "kind": "project",
      "text": "Köln 🎻",
      "tags": [
        "music"
      ],
      "status": "deprecated",
      "source": {
        "type": "discord",
        "channelId": "7",
        "messageId": "8"
      },
      "createdAt": 1770136175001,
      "updatedAt": 1770136235000
    }
  ]
}
"""

JSON: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-1, 2**62)
    | st.floats(allow_nan=False)
    | st.text(st.characters(), max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=4,
)
ENTRY = st.fixed_dictionaries(
    {
        "kind": st.sampled_from(["fact", "Tool ", "opinion", 7]),
        "text": st.sampled_from(["a", "b ", "", None]),
    },
    optional={
        name: JSON | st.sampled_from(["active", "deprecated", "durable-1", {"type": "discord"}, ["x"]])
        for name in ("id", "tags", "source", "createdAt", "updatedAt", "hitCount")
    },
)
HOSTILE_FILE = st.builds(
    lambda version, updated, items: json.dumps(
        {"version": version, "updatedAt": updated, "items": items}
    ).encode(),
    st.sampled_from([1, 2]) | JSON,
    st.just(NOW) | JSON,
    st.lists(ENTRY, max_size=4) | JSON,
)


TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)
ITEMS = st.builds(
    Item,
    id=st.uuids().map(str),
    kind=st.sampled_from(KINDS),
    text=TEXT,
    tags=st.lists(TEXT, max_size=3).map(tuple),
    status=st.sampled_from(["active", "deprecated"]),
    source=st.just(MANUAL) | st.builds(Source, st.just("discord"), st.just("1"), st.just("2")),
    created_at=st.integers(0, NOW),
    updated_at=st.integers(0, NOW),
)


def file(*items: Any, version: Any = 1) -> bytes:
    return json.dumps({"version": version, "updatedAt": NOW, "items": items}).encode()


class TestItsBytesAreAContract:
    async def test_names_order_indent_letters_and_last_newline(self, memory: Memory, clock: Clock) -> None:
        await memory.change(ANN, "why", remember("I prefer TypeScript"))
        await memory.change(
            ANN, "why", lambda draft: draft.upsert("project", "Köln 🎻", heard(), tags=["music"])
        )
        clock.forward(minutes=1)
        held = list((await memory.view(ANN)).active())[1]
        await memory.change(ANN, "why", lambda draft: draft.deprecate(held, heard()))
        assert durable_of(memory).read_text(encoding="utf-8") == GOLDEN

    @given(st.lists(ITEMS, max_size=6), st.randoms(use_true_random=False))
    def test_they_are_what_json_writes_with_an_indent_of_two(
        self, items: list[Item], chance: random.Random
    ) -> None:
        renderer = Renderer()
        for _ in range(4):
            view = View({one.id: one for one in items}, updated_at=NOW)
            whole = {"version": 1, "updatedAt": NOW, "items": [one.to_json() for one in view.items.values()]}
            expected = (json.dumps(whole, indent=2, ensure_ascii=False) + "\n").encode()
            assert render(view) == renderer.render(view) == expected
            if items:
                place = chance.randrange(len(items))
                changed = replace(items[place], status="deprecated")
                after = chance.choice([[], [changed], [changed, replace(changed, id="durable-new")]])
                items = [*items[:place], *after, *items[place + 1 :]]

    async def test_what_is_written_reads_back_the_same(self, memory: Memory) -> None:
        await memory.change(ANN, "why", remember("likes tea"))
        view = await memory.view(ANN)
        back = parse(render(view), now_ms=0)
        assert [item.to_json() for item in back.items] == [item.to_json() for item in view.items.values()]
        assert (back.version, back.updated_at, back.rejected) == (1, view.updated_at, ())


class TestItCanBeLost:
    @pytest.fixture
    async def content(self, memory: Memory) -> bytes:
        for text in ("likes tea", "spielt Geige 🎻", "works at Acme"):
            await memory.change(ANN, "why", remember(text))
        return durable_of(memory).read_bytes()

    async def test_a_deleted_folder_comes_back_byte_for_byte_and_nothing_is_forgotten(
        self, memory: Memory, content: bytes, restart: Restart
    ) -> None:
        for later in (restart(), memory):
            shutil.rmtree(memory.durable_folder)
            await later.view(ANN)
            assert durable_of(memory).read_bytes() == content
        durable_of(memory).unlink()
        await memory.change(ANN, "why", remember("likes coffee"))
        assert len(await texts(memory)) == len(commits_of(memory)) == 4

    async def test_each_corrupt_one_is_kept_aside_and_rebuilt(self, memory: Memory, content: bytes) -> None:
        broken = (content[:100], b"", b"\xff\xfe\xfd")
        for one in broken:
            durable_of(memory).write_bytes(one)
            assert len(await texts(memory)) == 3
            assert durable_of(memory).read_bytes() == content
        kept = asides(durable_of(memory), "corrupt")
        assert f"123.json.corrupt-{STAMP}" in {aside.name for aside in kept}
        assert {aside.read_bytes() for aside in kept} == set(broken)

    async def test_a_corrupt_one_without_a_ledger_is_kept_aside_and_empty(self, memory: Memory) -> None:
        durable_of(memory).parent.mkdir()
        durable_of(memory).write_bytes(b"{ oops")
        assert await memory.view(ANN) == EMPTY
        assert not durable_of(memory).exists()
        assert not ledger_of(memory).exists()
        assert [aside.read_bytes() for aside in asides(durable_of(memory), "corrupt")] == [b"{ oops"]

    async def test_an_old_picture_a_crash_left_is_renewed_and_no_edit(
        self, memory: Memory, content: bytes, restart: Restart
    ) -> None:
        first = next(iter((await memory.view(ANN)).items.values()))
        await memory.change(ANN, "why", lambda draft: draft.remove(first, heard()))
        await memory.change(ANN, "why", remember("likes coffee"))
        durable_of(memory).write_bytes(content)
        later = restart()
        assert await texts(later) == ["spielt Geige 🎻", "works at Acme", "likes coffee"]
        assert len(commits_of(memory)) == 5
        assert durable_of(memory).read_bytes() == render(await later.view(ANN))


class TestANewerVersionIsNeverOverwritten:
    NEWER = file({"kind": "fact", "text": "from the future"}, version=3)

    async def test_though_commits_go_on_until_it_is_gone(self, memory: Memory, restart: Restart) -> None:
        await memory.change(ANN, "why", remember("likes tea"))
        durable_of(memory).write_bytes(self.NEWER)
        await memory.change(ANN, "why", remember("likes coffee"))
        assert await texts(memory) == await texts(restart()) == ["likes tea", "likes coffee"]
        assert durable_of(memory).read_bytes() == self.NEWER
        assert len(list(memory.durable_folder.iterdir())) == 1
        durable_of(memory).unlink()
        await memory.change(ANN, "why", remember("likes mate"))
        assert durable_of(memory).read_bytes() == render(await memory.view(ANN))

    async def test_nor_on_the_first_read(self, memory: Memory) -> None:
        memory.durable_folder.mkdir()
        durable_of(memory).write_bytes(self.NEWER)
        assert await memory.view(ANN) == EMPTY
        assert durable_of(memory).read_bytes() == self.NEWER

    async def test_one_we_know_in_its_place_is_used_again(self, memory: Memory) -> None:
        await memory.change(ANN, "why", remember("likes tea"))
        content = durable_of(memory).read_bytes()
        durable_of(memory).write_bytes(self.NEWER)
        await memory.view(ANN)
        durable_of(memory).write_bytes(content.replace(b"likes tea", b"likes mate"))
        assert await texts(memory) == ["likes mate"]
        assert durable_of(memory).read_bytes() == render(await memory.view(ANN))


class TestAnythingMayStandInIt:
    def test_what_is_no_durable_file_is_said_to_be_none(self) -> None:
        for content, reason in (
            (b"", "not JSON"),
            (b"\x00\xff", "not JSON"),
            (b"[" * 100_000, "not JSON"),
            (b"9" * 10_000, "not JSON"),
            (b"[]", '"items"'),
            (b'{"version": 1}', '"items"'),
            (b'{"version": 1, "items": {}}', '"items"'),
            (b'{"items": []}', '"version"'),
            (b'{"version": true, "items": []}', '"version"'),
            (b'{"version": "1", "items": []}', '"version"'),
        ):
            with naming(content, reason), pytest.raises(Unreadable, match=reason):
                parse(content, now_ms=NOW)

    def test_a_version_we_do_not_know_is_newer(self) -> None:
        for version in (0, 3, -1, 10**30):
            with naming(version), pytest.raises(NewerSchema, match=str(version)):
                parse(file(version=version), now_ms=NOW)

    def test_a_mark_some_editors_put_first_is_no_fault(self) -> None:
        assert parse(b"\xef\xbb\xbf" + file(), now_ms=NOW) == DurableFile(1, NOW, ())

    def test_a_source_that_names_no_message_is_manual(self) -> None:
        for source in ("manual", None, [], 7, {}, {"type": None}):
            with naming(source):
                parsed = parse(file({"kind": "fact", "text": "likes tea", "source": source}), now_ms=NOW)
                assert [str(item.source) for item in parsed.items] == ["manual"]

    @given(content=HOSTILE_FILE | st.binary(max_size=30))
    def test_reading_it_gives_items_or_one_of_two_errors(self, content: bytes) -> None:
        try:
            parsed = parse(content, now_ms=NOW)
        except (Unreadable, NewerSchema):
            return
        assert all(item.text for item in parsed.items)

    @given(content=HOSTILE_FILE)
    async def test_it_never_stops_a_reply_and_is_never_lost(
        self, tmp_path_factory: pytest.TempPathFactory, content: bytes
    ) -> None:
        await self.check_survives(tmp_path_factory.mktemp("hostile"), content)

    @pytest.mark.parametrize("field", ["id", "source"])
    async def test_half_an_emoji_in_a_field_does_no_harm(self, tmp_path: Path, field: str) -> None:
        half = "\ud83d"
        value = {"type": "discord", "channelId": half, "messageId": half} if field == "source" else half
        await self.check_survives(tmp_path, file({"kind": "fact", "text": "likes tea", field: value}))

    async def check_survives(self, root: Path, content: bytes) -> None:
        """Reading and changing work, and every later start agrees."""
        memory = Memory(root, clock=Clock())
        memory.durable_folder.mkdir()
        durable_of(memory).write_bytes(content)
        await memory.view(ANN)
        await memory.change(ANN, "why", remember("a new thing"))
        assert "a new thing" in await texts(memory)
        assert await Memory(root, clock=Clock()).view(ANN) == await memory.view(ANN)
