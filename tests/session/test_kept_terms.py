"""The terms of large memories that are kept for the next start: what is read again, and what has to go."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from discoclaw.core.draft import Draft, Origin
from discoclaw.core.item import Facets
from discoclaw.core.visible import VisibleItems
from discoclaw.memory.subjects.store import Memory
from discoclaw.recall.document import Document, of_item
from discoclaw.session import kept_terms
from discoclaw.session.kept_terms import SPOT_CHECK, KeptTerms
from tests.purging import from_disk, from_ram
from tests.session.scene import Clock

ANN = "user-1"
MANY = 50
SOME = MANY + 20


@pytest.fixture(autouse=True)
def many_are_few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_terms, "MANY", MANY)


class Library:
    """Ann's memory over the files of a folder, as after a start."""

    def __init__(self, folder: Path) -> None:
        self.memory = Memory(folder / "memory", clock=Clock(), max_items=100_000)
        self.memory.open()
        self.terms = KeptTerms(folder / "cache", self.memory)
        self.memory.join(self.terms)
        self.file = folder / "cache" / "views" / f"{ANN}.terms"

    async def learn(self, *texts: str) -> None:
        def wish(draft: Draft) -> None:
            for number, text in enumerate(texts):
                facets = Facets(key=f"key_{number}") if number % 7 == 0 else Facets()
                draft.upsert("fact", text, Origin("stated"), tags=["tag"][: number % 2], facets=facets)

        await self.memory.change(ANN, "a test", wish)

    async def items(self) -> VisibleItems:
        return (await self.memory.view(ANN)).visible(in_dm=True)

    async def ask(self) -> int:
        """Take in all items as a question does; how many the file didn't know."""
        items = await self.items()
        save = await self.terms.load(ANN, items)
        new = [item for item in items if self.terms.documents.known(item) is None]
        assert [self.terms.documents.of(item) for item in items] == [of_item(item) for item in items]
        if save:
            self.terms.save(ANN, None)
        await self.terms.settle()
        return len(new)


@pytest.fixture
def libraries(tmp_path: Path) -> Iterator[list[Library]]:
    opened: list[Library] = []
    yield opened
    for one in opened:
        one.memory.close()


@pytest.fixture
def start(libraries: list[Library], tmp_path: Path):  # type: ignore[no-untyped-def]
    """`start()` is a start over the same folder; the one before has ended then."""

    def begin() -> Library:
        if libraries:
            libraries[-1].memory.close()
        libraries.append(Library(tmp_path))
        return libraries[-1]

    return begin


def some(count: int) -> list[str]:
    return [f"Met Frau Number{n} in Łódź on 3 May {1900 + n % 100}, likes tea 茶." for n in range(count)]


class TestAStart:
    async def test_reads_nothing_again_that_is_as_it_was(self, start) -> None:  # type: ignore[no-untyped-def]
        before = start()
        await before.learn(*some(SOME))
        assert await before.ask() == SOME
        again = start()
        assert await again.ask() == 0
        await again.learn("Has a zebra.")
        assert await start().ask() == 1

    async def test_of_a_small_memory_keeps_nothing(self, start) -> None:  # type: ignore[no-untyped-def]
        library = start()
        await library.learn(*some(MANY - 1))
        await library.ask()
        assert not library.file.exists()

    async def test_reads_all_again_when_the_file_is_damaged(self, start) -> None:  # type: ignore[no-untyped-def]
        before = start()
        await before.learn(*some(SOME))
        await before.ask()
        whole = before.file.read_bytes()
        for damaged in (whole[:-9], b"x" + whole, b"", whole[::-1]):
            before.file.write_bytes(damaged)
            assert await start().ask() == SOME
            assert await start().ask() == 0

    async def test_reads_all_again_when_terms_are_made_in_another_way(
        self,
        start,  # type: ignore[no-untyped-def]
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        before = start()
        await before.learn(*some(SOME))
        made = 0

        def other(item: object) -> Document:
            nonlocal made
            made += 1
            return Document("x", {}, 1, frozenset(), frozenset(), 0)

        await before.ask()
        monkeypatch.setattr("discoclaw.session.kept_terms.of_item", other)
        again = start()
        assert await again.terms.load(ANN, await again.items())
        assert 1 <= made <= SPOT_CHECK

    async def test_removes_unread_what_earlier_versions_kept(self, start, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
        old = tmp_path / "cache" / "items" / f"{ANN}.items.0.sqlite"
        old.parent.mkdir(parents=True)
        old.write_text("Has a zebra.")
        await start().terms.start()
        assert not old.parent.exists()


class TestWhatHasToGo:
    async def test_leaves_the_file_at_once_and_the_rest_stays(self, start) -> None:  # type: ignore[no-untyped-def]
        library = start()
        await library.learn("Has a zebra.", *some(SOME))
        await library.ask()
        assert b"zebra" in library.file.read_bytes()
        (gone,) = (item for item in await library.items() if "zebra" in item.text)
        await library.memory.change(ANN, "a test", lambda draft: draft.deprecate(gone, Origin("stated")))
        (purge,) = (await library.memory.view(ANN)).purges(ANN)
        from_ram(library.terms, purge)
        assert library.terms.documents.known(gone) is None
        await from_disk(library.terms, purge)
        assert b"zebra" not in library.file.read_bytes()
        assert await start().ask() == 0

    async def test_is_erased_with_its_person_with_what_earlier_versions_kept(
        self,
        start,  # type: ignore[no-untyped-def]
        tmp_path: Path,
    ) -> None:
        library = start()
        await library.learn("Has a zebra.", *some(SOME))
        await library.ask()
        old = tmp_path / "cache" / "items"
        old.mkdir()
        (old / f"{ANN}.items.0.sqlite").write_text("Has a zebra.")
        items = await library.items()
        assert (await library.memory.erase(ANN)).left == ()
        await library.terms.load(ANN, items)  # a turn that began before
        for item in items:
            library.terms.documents.of(item)
        library.terms.save(ANN, None)
        await library.terms.settle()
        assert not library.file.exists()
        assert not old.exists()

    async def test_is_named_to_an_audit(self, start) -> None:  # type: ignore[no-untyped-def]
        library = start()
        await library.learn("Has a zebra.", *some(SOME))
        await library.ask()
        texts = [one.text for one in library.terms.audit() if one.owner == ANN]
        assert len(texts) == SOME + 1
        assert any("Has a zebra." in text for text in texts)
