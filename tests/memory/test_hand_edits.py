"""A person may edit the durable file at any moment: the edit becomes a commit and survives."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from discoclaw.core.draft import Draft
from discoclaw.core.privacy import DmPrivacy
from discoclaw.core.view import View
from discoclaw.memory.subjects.durable_file import render
from discoclaw.memory.subjects.store import Memory
from tests.memory.kit import (
    ANN,
    STAMP,
    Clock,
    asides,
    commits_of,
    durable_of,
    edit,
    heard,
    listening,
    remember,
    set_first,
    texts,
)

Restart = Callable[[], Memory]
After = Callable[[Callable[[Any], None]], Awaitable[View]]


@pytest.fixture(autouse=True)
async def known(memory: Memory, clock: Clock) -> View:
    """One thing a model inferred, one the person said; a while ago."""
    await memory.change(ANN, "why", remember("likes tea", origin=heard()))
    await memory.change(ANN, "why", remember("works at Acme", "project"))
    view = await memory.view(ANN)
    clock.forward(minutes=5)
    return view


@pytest.fixture(params=["while it runs", "while it is stopped"])
def after(request: pytest.FixtureRequest, memory: Memory, restart: Restart) -> After:
    """What is remembered after an edit of the file, and forever after."""

    async def view(change: Callable[[Any], None]) -> View:
        edit(durable_of(memory), change)
        running = memory if request.param == "while it runs" else restart()
        adopted = await running.view(ANN)
        assert await running.view(ANN) is adopted
        assert await restart().view(ANN) == adopted
        assert durable_of(memory).read_bytes() == render(adopted)
        return adopted

    return view


class TestAnEditIsAdoptedOnceAndForGood:
    async def test_a_changed_text(self, after: After, known: View, clock: Clock) -> None:
        before = next(iter(known.items.values()))
        view = await after(set_first(text="likes green  tea"))
        item = view.items[before.id]
        assert (item.text, item.created_at, item.updated_at) == (
            "likes green tea",
            before.created_at,
            clock.now,
        )

    async def test_a_deleted_item_and_then_all_of_them(self, after: After, known: View) -> None:
        view = await after(lambda file: file["items"].pop(1))
        assert list(view.items) == list(known.items)[:1]
        assert [item.facets.author for item in view.items.values()] == ["inferred"], "it wasn't touched"
        assert (await after(lambda file: file["items"].clear())).items == {}

    async def test_a_new_item_of_only_a_kind_and_a_text(self, after: After, clock: Clock) -> None:
        view = await after(lambda file: file["items"].append({"kind": "tool", "text": "Uses VS Code"}))
        added = view.items["durable-44da0ead"]
        assert added.active
        assert (str(added.source), added.created_at, added.updated_at) == ("manual", clock.now, clock.now)

    async def test_a_changed_status(self, after: After, known: View) -> None:
        view = await after(set_first(status="deprecated"))
        assert [item.text for item in view.active()] == ["works at Acme"]
        assert list(view.items) == list(known.items)

    async def test_all_at_once(self, after: After) -> None:
        def change(file: Any) -> None:
            file["items"][0]["text"] = "likes mate"
            file["items"][1] = {"kind": "person", "text": "has a sister"}

        view = await after(change)
        assert [item.text for item in view.active()] == ["likes mate", "has a sister"]

    async def test_white_space_and_the_order_of_keys_are_no_edit(self, after: After, known: View) -> None:
        assert await after(lambda file: file.update(items=file.pop("items"))) == known


class TestItsCommitSaysWhoSpoke:
    async def test_by_hand_is_manual_and_stated_and_told_once(self, memory: Memory) -> None:
        told = listening(memory).subjects
        edit(durable_of(memory), set_first(text="likes mate"))
        for _ in range(3):
            item = next(iter((await memory.view(ANN)).items.values()))
        commit = commits_of(memory)[-1]
        assert (commit.message, commit.metadata) == ("edited by hand", {"by": "file"})
        assert [(event.event_type, event.source) for event in commit.events] == [("modify", "manual")]
        assert item.facets.author == "stated"
        assert told == [ANN]

    async def test_a_model_does_not_override_it(self, memory: Memory) -> None:
        edit(durable_of(memory), set_first(text="likes mate"))
        item = next(iter((await memory.view(ANN)).items.values()))
        await memory.change(
            ANN, "why", lambda draft: draft.upsert("fact", "likes tea", heard(), given_id=item.id)
        )
        assert (await texts(memory))[0] == "likes mate"

    async def test_what_was_private_stays_private(self, memory: Memory) -> None:
        def wish(draft: Draft) -> str:
            return draft.upsert("fact", "is ill", heard(private=True), marked="private")[0].id

        secret = await memory.change(ANN, "why", wish)
        edit(durable_of(memory), lambda file: file["items"][2].update(text="is ill again"))
        item = (await memory.view(ANN)).items[secret]
        assert (item.text, item.facets.sensitivity) == ("is ill again", "private")


class TestAnEditMeetsACommit:
    async def test_saved_in_its_very_moment(self, memory: Memory, restart: Restart) -> None:
        def wish(draft: Draft) -> None:
            edit(durable_of(memory), set_first(text="likes mate"))
            remember("likes hiking")(draft)

        await memory.change(ANN, "why", wish)
        expected = ["likes mate", "works at Acme", "likes hiking"]
        assert await texts(memory) == await texts(restart()) == expected
        assert durable_of(memory).read_bytes() == render(await memory.view(ANN))

    async def test_an_item_deleted_in_that_moment_goes_and_the_new_one_stays(self, memory: Memory) -> None:
        def wish(draft: Draft) -> None:
            edit(durable_of(memory), lambda file: file["items"].pop(0))
            remember("likes hiking")(draft)

        await memory.change(ANN, "why", wish)
        assert await texts(memory) == ["works at Acme", "likes hiking"]

    async def test_corrupted_in_that_moment_it_is_kept_and_the_commit_stands(self, memory: Memory) -> None:
        def wish(draft: Draft) -> None:
            durable_of(memory).write_bytes(b"{ oops")
            remember("likes hiking")(draft)

        await memory.change(ANN, "why", wish)
        assert await texts(memory) == ["likes tea", "works at Acme", "likes hiking"]
        assert [path.read_bytes() for path in asides(durable_of(memory), "corrupt")] == [b"{ oops"]


class TestAMistakeInOneItem:
    MISTAKES = (
        {"text": ""},
        {"text": "x" * 1001},
        {"kind": "opinion"},
        {"status": "gone"},
    )

    async def test_the_good_ones_are_adopted_and_the_file_is_kept(self, memory: Memory) -> None:
        def change(file: Any) -> None:
            file["items"][0]["text"] = "likes mate"
            file["items"] += [{"text": "no kind"}, {"kind": "tool", "text": "uses vim"}, "a line"]

        edit(durable_of(memory), change)
        content = durable_of(memory).read_bytes()
        assert await texts(memory) == ["likes mate", "works at Acme", "uses vim"]
        (aside,) = asides(durable_of(memory), "rejected")
        assert aside.name.endswith(STAMP.replace("162935", "163435"))
        assert aside.read_bytes() == content

    @pytest.mark.parametrize(
        "mistake", MISTAKES, ids=["no text", "too long", "no such kind", "no such status"]
    )
    async def test_a_mistake_forgets_nothing(self, memory: Memory, mistake: dict[str, str]) -> None:
        edit(durable_of(memory), set_first(**mistake))
        assert await texts(memory) == ["likes tea", "works at Acme"]
        assert len(asides(durable_of(memory), "rejected")) == 1

    async def test_it_is_kept_aside_once(self, memory: Memory, restart: Restart) -> None:
        edit(durable_of(memory), lambda file: file["items"].append({"text": "no kind"}))
        for later in (memory, memory, restart(), restart()):
            await later.view(ANN)
        assert len(asides(durable_of(memory), "rejected")) == 1


async def test_what_is_saved_while_an_edit_is_adopted_is_adopted_next(
    memory: Memory, root: Path, clock: Clock
) -> None:
    """Whoever reads an edit may not write over the one that an editor saved in the meantime."""
    path, saved = durable_of(memory), list[str]()

    def save_again() -> DmPrivacy:
        if not saved:
            saved.append("works at Ajax")
            edit(path, lambda file: file["items"][1].update(text="works at Ajax"))
        return "balanced"

    edit(path, set_first(text="likes green tea"))
    running = Memory(root, clock=clock, dm_privacy=save_again)
    await running.view(ANN)
    assert await texts(running) == ["likes green tea", "works at Ajax"]


async def test_nobody_sees_meanwhile_what_an_edit_replaced(memory: Memory, root: Path, clock: Clock) -> None:
    seen: list[View | None] = []

    def look() -> DmPrivacy:
        seen.append(running.view_in_ram(ANN))
        return "balanced"

    edit(durable_of(memory), set_first(text="likes green tea"))
    running = Memory(root, clock=clock, dm_privacy=look)
    assert (await texts(running))[0] == "likes green tea"
    assert seen == [None]
