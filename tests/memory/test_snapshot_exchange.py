"""Snapshots: a plain list of what holds, for other programs and back, whole or not at all."""

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discoclaw.core.draft import Draft, Origin
from discoclaw.core.errors import Refused
from discoclaw.core.item import Facets, Item, Source
from discoclaw.core.view import View
from discoclaw.memory.cursors import Cursors
from discoclaw.memory.exchange.export import export_snapshot
from discoclaw.memory.exchange.load import Items, load_bytes
from discoclaw.memory.exchange.take import Report, records_for
from discoclaw.memory.people import last_used as access
from discoclaw.memory.people.last_used import LastUsed
from discoclaw.memory.subjects.store import Memory
from tests.cli.shell import Shell
from tests.examples import MANY
from tests.memory.kit import ANN, BOB, NOW, Clock
from tests.tables import naming

STATED = Origin("stated")
TALK = Source("discord", "7", "8")
SECOND = NOW // 1000
PLAIN = {"id", "key", "content", "category", "timestamp", "session_id", "links", "sensitivity"}
KEPT = (
    "1 kept private and out of channels, because the file doesn't say where that was said "
    "(in Discord, people share theirs with `!memory share imported`)"
)


class Home:
    """A memory over the files of a folder."""

    def __init__(self, folder: Path) -> None:
        self.clock = Clock()
        self.cursors = Cursors(folder / "memory" / "cursors")
        self.memory = Memory(folder / "memory", clock=self.clock, cursors=self.cursors)

    async def put(self, text: str, kind: str = "fact", *, to: str = ANN, **given: Any) -> Item:
        origin = given.pop("origin", STATED)
        marked = given.pop("marked", "normal")

        def wish(draft: Draft) -> Item:
            return draft.upsert(kind, text, origin, facets=Facets(**given), marked=marked)[0]

        return await self.memory.change(to, "a test", wish)

    async def snapshot(self, of: str = ANN, **accessed: int) -> tuple[list[dict[str, Any]], int]:
        entries: list[dict[str, Any]] = json.loads(export_snapshot(await self.memory.history(of), accessed))
        return entries, len(entries)

    async def take(self, value: object, to: str = ANN, origin: Origin = STATED) -> Report:
        loaded = load_bytes("snapshot.json", json.dumps(value).encode())
        return await self.memory.act(
            to, lambda h, now, most: records_for(loaded, h, now_ms=now, max_items=most, origin=origin)
        )

    async def view(self, of: str = ANN) -> View:
        return await self.memory.view(of)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def entry(content: str = "likes tea", **given: Any) -> dict[str, Any]:
    return {"key": "drink", "content": content, "category": "knowledge", "timestamp": SECOND, **given}


def loaded(value: object) -> Items:
    found = load_bytes("snapshot.json", json.dumps(value).encode()).content()
    assert isinstance(found, Items)
    return found


class TestOut:
    async def test_an_entry_is_what_others_know_one_as(self, home: Home) -> None:
        one = await home.put("likes tea", key="drink")
        entries, number = await home.snapshot()
        assert number == 1
        assert entries == [
            {
                "id": one.id,
                "key": "drink",
                "content": "likes tea",
                "category": "knowledge",
                "timestamp": SECOND,
                "session_id": "",
                "links": [],
                "sensitivity": "normal",
            }
        ]

    @pytest.mark.design(178)
    async def test_the_last_access_is_there_only_where_there_was_one(self, home: Home) -> None:
        one, other = await home.put("likes tea"), await home.put("has a cat")
        entries, _ = await home.snapshot(**{one.id: NOW + 5000, other.id: 0})
        assert [found.get("last_accessed") for found in entries] == [SECOND + 5, None]
        assert set(entries[1]) == PLAIN

    async def test_links_are_keys_and_an_item_without_one_goes_by_its_id(self, home: Home) -> None:
        one, other = await home.put("likes tea", key="drink"), await home.put("has a cup")
        await home.memory.change(ANN, "link", lambda draft: draft.link(one, other, STATED))
        entries, _ = await home.snapshot()
        assert [(found["key"], found["links"]) for found in entries] == [
            ("drink", [other.id]),
            (other.id, ["drink"]),
        ]

    async def test_what_holds_no_longer_is_left_out(self, home: Home) -> None:
        gone = await home.put("likes tea")
        await home.memory.change(ANN, "a test", lambda draft: draft.deprecate(gone, STATED))
        assert await home.snapshot() == ([], 0)

    @pytest.mark.design(178)
    async def test_the_command_knows_when_items_were_used(self, tmp_path: Path) -> None:
        shell = Shell(tmp_path)
        clock = Clock()
        cursors = Cursors(shell.memory_folder / "cursors")
        memory = Memory(shell.memory_folder, clock=clock, cursors=cursors)
        used = LastUsed(memory, cursors, clock=clock)
        memory.join(used)
        await memory.change(ANN, "a test", lambda draft: draft.upsert("fact", "likes tea", STATED))
        clock.forward(minutes=1)
        (item,) = (await memory.view(ANN)).items.values()
        used.touch(ANN, [item.id])
        await used.flush()
        assert access.kept(cursors.documents, ANN) == {item.id: NOW + 60_000}
        said = await asyncio.to_thread(shell.says, "export", "123", "--format", "snapshot", "--output", "-")
        found = json.loads(said)
        assert [one["last_accessed"] for one in found] == [SECOND + 60]


class TestThereAndBack:
    async def test_everything_that_holds_comes_back(self, home: Home) -> None:
        cup = await home.put("has a red cup", key="cup", category="core")
        tea = await home.put("likes tea", "preference", origin=Origin("inferred", TALK, said_at=NOW + 1))
        await home.put("flies on Friday", category="conversation", marked="private")
        await home.memory.change(ANN, "link", lambda draft: draft.link(cup, tea, STATED))
        before = (await home.view()).items
        report = await home.take((await home.snapshot())[0], to=BOB)
        after = (await home.view(BOB)).items
        assert (report.items, report.known, report.rejected) == (3, 0, ())
        assert after.keys() == before.keys()

        def known(item: Item) -> tuple[object, ...]:
            facets = item.facets
            return (
                *(item.kind, item.text, item.source, item.updated_at // 1000, item.status),
                *(facets.key, facets.category, facets.links, facets.sensitivity),
            )

        assert [known(item) for item in after.values()] == [known(item) for item in before.values()]


class TestWhatIsHeldStays:
    @pytest.mark.parametrize(
        "given",
        [
            {"key": "drink", "content": "likes coffee"},
            {"key": "other", "content": "likes coffee", "id": "held"},
            {"key": "other", "content": "LIKES  tea"},
        ],
    )
    async def test_by_key_by_id_and_by_words_and_nobody_is_asked(
        self, home: Home, given: dict[str, str]
    ) -> None:
        held = await home.put("likes tea", key="drink")
        if given.get("id"):
            given = {**given, "id": held.id}
        report = await home.take([entry(**given), entry("has a cat", key="pet")])
        assert (report.items, report.known, report.conflicts) == (1, 1, 0)
        view = await home.view()
        assert [item.text for item in view.items.values()] == ["likes tea", "has a cat"]
        assert view.conflicts == ()

    async def test_a_key_that_is_there_twice_counts_once(self, home: Home) -> None:
        report = await home.take([entry("likes tea"), entry("likes coffee")])
        assert report.items == 1
        assert [item.text for item in (await home.view()).items.values()] == ["likes tea"]


class TestIn:
    def test_nobody_stated_what_a_snapshot_says(self) -> None:
        (item,) = loaded([entry()]).items
        assert item.facets.author == "inferred"

    async def test_what_was_learned_who_knows_where_may_have_been_private(self, home: Home) -> None:
        far = entry("plays chess", key="a", session_id="telegram:5")
        told = entry("plays go", key="b", sensitivity="normal")
        report = await home.take([far, entry("plays bridge", key="c"), told])
        levels = {item.text: item.facets.sensitivity for item in (await home.view()).active()}
        assert levels == {"plays chess": "private", "plays bridge": "private", "plays go": "normal"}
        assert report.private == 2

    @pytest.mark.parametrize("time", [SECOND, NOW, float(SECOND)])
    def test_times_are_seconds_and_milliseconds_are_understood(self, time: float) -> None:
        (item,) = loaded([entry(timestamp=time)]).items
        assert item.updated_at // 1000 == SECOND

    def test_an_unknown_category_is_knowledge(self) -> None:
        for category in ("", "Knowledge", "who knows", None):
            with naming(category):
                (item,) = loaded([entry(category=category)]).items
                assert item.facets.category == "knowledge"

    def test_links_by_key_lead_to_the_items(self) -> None:
        one, other = loaded([entry(id="a", links=["pet"]), entry("has a cat", key="pet", id="b")]).items
        assert (one.facets.links, other.facets.links) == ({"b"}, frozenset())

    def test_a_secret_is_taken_out(self) -> None:
        found = loaded([entry("my key is sk-ant-api03-" + "a" * 40)])
        assert (found.redacted, "sk-ant" in found.items[0].text) == (1, False)


class TestMalformed:
    async def test_one_bad_shape_and_nothing_is_imported(self, home: Home) -> None:
        for bad in (
            "text",
            7,
            None,
            [],
            {},
            {"content": 7},
            {"key": "x"},
            entry(key=7),
            entry(id=["a"]),
            entry(timestamp="yesterday"),
            entry(timestamp=True),
            entry(last_accessed={}),
            entry(links="a"),
            entry(links=[1]),
            entry(session_id=5),
        ):
            with naming(bad):
                with pytest.raises(Refused, match=r"^snapshot\.json, entry 2 .*nothing is imported"):
                    await home.take([entry(), bad, entry("has a cat", key="pet")])
                assert (await home.view()).items == {}

    def test_no_json_is_none(self) -> None:
        for content in (b"", b"[", b"[{]", b"nonsense", b"\xff", b"[NaN]", b"[" * 5000):
            with naming(content), pytest.raises(Refused, match=r"^snapshot\.json"):
                load_bytes("snapshot.json", content)

    async def test_what_no_item_can_be_made_of_is_named_and_the_rest_comes(self, home: Home) -> None:
        report = await home.take([entry("x" * 1001, key="long"), entry("", key="empty"), entry()])
        assert report.items == 1
        assert [one.partition(":")[0] for one in report.rejected] == [
            "snapshot.json, entry 1",
            "snapshot.json, entry 2",
        ]

    @MANY
    @given(
        st.recursive(
            st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=5),
            lambda inner: (
                st.lists(inner, max_size=3)
                | st.dictionaries(
                    st.sampled_from(
                        ["entries", "content", "key", "id", "links", "timestamp", "category", "session_id"]
                    ),
                    inner,
                    max_size=5,
                )
            ),
            max_leaves=15,
        )
    )
    def test_whatever_it_is_it_is_read_or_refused(self, value: object) -> None:
        try:
            found = load_bytes("snapshot.json", json.dumps(value).encode()).content()
        except Refused:
            return
        assert isinstance(found, Items)
        items: Sequence[Item] = found.items
        assert all(item.text and item.id for item in items)


class TestAtTheCommandLine:
    def test_out_and_in(self, tmp_path: Path) -> None:
        shell = Shell(tmp_path)
        path = tmp_path / "snapshot.json"
        path.write_text(json.dumps([entry(), entry("has a cat", key="pet")]), encoding="utf-8")
        assert "2 memories imported" in shell.says("import", str(path), "--as", "123")
        assert "2 already known" in shell.says("import", str(path), "--as", "123")
        out = tmp_path / "out.json"
        said = shell.says("export", "123", "--format", "snapshot", "--output", str(out))
        assert said == f"Exported 2 memories of {ANN} to {out}.\n"
        assert sorted(one["key"] for one in json.loads(out.read_bytes())) == ["drink", "pet"]

    @pytest.mark.design(102, 103)
    def test_what_is_known_stays_vectors_stay_out_and_nonsense_brings_nothing(self, tmp_path: Path) -> None:
        shell = Shell(tmp_path)
        path = tmp_path / "snapshot.json"

        def taken(content: str) -> tuple[str, list[tuple[str, str]]]:
            path.write_text(content, encoding="utf-8")
            result = shell.run("import", str(path), "--as", "123")
            found = shell.run("export", "123", "--format", "snapshot", "--output", "-")
            entries = json.loads(found.stdout) if found.exit_code == 0 else []
            assert all(set(one) == PLAIN for one in entries)
            return result.output, sorted((one["key"], one["content"]) for one in entries)

        tea, cat, coffee = ("drink", "likes tea"), ("pet", "has a cat"), entry("likes coffee")
        first = {"entries": [entry(embedding=[0.1, 0.2])], "embeddings": {"drink": [0.1, 0.2]}}
        said, held = taken(json.dumps(first))
        assert (said, held) == (f"user-123: 1 memory imported; {KEPT}.\n", [tea])
        said, held = taken(json.dumps([coffee, entry("has a cat", key="pet")]))
        assert (said, held) == (f"user-123: 1 memory imported; {KEPT}; 1 already known.\n", [tea, cat])
        for nonsense in ("", "[{", '[{"key": "dog", "content": "has a dog"}, 7]', '{"entries": 5}', "null"):
            said, held = taken(nonsense)
            assert said.startswith("discoclaw: ")
            assert held == [tea, cat]

    @pytest.mark.design(189)
    def test_a_list_and_an_object_are_read_and_vectors_are_never_written(self, tmp_path: Path) -> None:
        shell, path = Shell(tmp_path), tmp_path / "snapshot.json"
        with_vectors = {"entries": [entry("has a cat", key="pet")], "embeddings": {"pet": [0.1, 0.2]}}
        for form in ([entry()], with_vectors):
            path.write_text(json.dumps(form), encoding="utf-8")
            assert "1 memory imported" in shell.says("import", str(path), "--as", "123")
        out = shell.says("export", "123", "--format", "snapshot", "--output", "-")
        assert sorted(one["content"] for one in json.loads(out)) == ["has a cat", "likes tea"]
        assert "embedding" not in out

    def test_it_needs_to_know_whose_it_is(self, tmp_path: Path) -> None:
        path = tmp_path / "snapshot.json"
        path.write_text(json.dumps([entry()]), encoding="utf-8")
        assert "name the person with --as" in Shell(tmp_path).refuses("import", str(path))
