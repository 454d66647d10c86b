"""What people are told when they take something back: from where it was removed, and where it still is."""

import re
from functools import partial
from pathlib import Path

from discoclaw.core.draft import Draft, Origin
from discoclaw.core.item import item_id
from tests.app.conftest import Start, World
from tests.contract.cards import said

ZSH = item_id("tool", "User uses zsh.")
LATER = Origin("inferred", said_at=4_000_000_000_000)
ALSO = "It is also gone from the summary of this conversation (it is written again) and "


def short(answer: str) -> str:
    found = re.search(r"\(id ([0-9a-f]{8})", answer)
    assert found is not None
    return found[1]


async def talk(world: World) -> None:
    """Ann says something in the open that is learned and summed up."""
    await world.ann.send(world.general, "I use zsh")
    await world.ann.send(world.general, "Which tea is good?")
    await world.settle()


class TestForgetting:
    async def test_the_answer_says_from_where_it_was_removed(self, start: Start) -> None:
        async with start(summary_every=1) as world:
            await talk(world)
            await world.ann.send(world.general, "!memory forget User uses zsh.")
            first, second = world.answer(world.general).split("\n")
            assert first == "Forgotten: You use zsh."
            assert second.startswith(ALSO) and second.endswith(" recent messages.")

    async def test_what_rested_on_nothing_needs_no_line(self, start: Start) -> None:
        async with start(summary_every=1) as world:
            await world.ann.send(world.general, "!memory remember I use zsh")
            await world.ann.send(world.general, "!memory forget I use zsh")
            assert world.answer(world.general) == "Forgotten: I use zsh"

    async def test_a_channel_is_named_where_only_its_person_reads_it(self, start: Start) -> None:
        async with start(summary_every=1) as world:
            await talk(world)
            result = await world.ann.slash(world.dev, "memory forget", memory="User uses zsh.")
            mention = f"<#{world.general.id}>"
            assert (
                f"It is also gone from the summary of {mention} (it is written again)"
                in result.response.content
            )

    async def test_a_channel_is_only_counted_in_the_open(self, start: Start) -> None:
        async with start(summary_every=1) as world:
            await talk(world)
            await world.ann.send(world.dev, "!memory forget User uses zsh.")
            assert "It is also gone from the summary of a conversation (it is" in world.answer(world.dev)

    async def test_another_persona_that_still_knows_it_is_named(self, start: Start) -> None:
        async with start() as world:
            await world.ann.send(world.general, "!memory remember I use zsh")
            await world.ann.send(world.general, "!memory persona create work")
            await world.ann.send(world.general, "!memory forget I use zsh")
            forgotten, elsewhere = world.answer(world.general).split("\n")
            assert forgotten == "Forgotten: I use zsh"
            assert elsewhere.startswith(
                "The persona `work` still remembers what you took back. To forget it there: `!memory"
            )
            switch, forget = re.findall(r"`(![^`]+)`", elsewhere)
            await world.ann.send(world.general, switch)
            await world.ann.send(world.general, forget)
            assert world.answer(world.general) == "Forgotten: I use zsh"

    async def test_what_the_disk_refuses_is_told_and_removed_later(self, start: Start) -> None:
        async with start(summary_every=1) as world:
            await talk(world)
            folder: Path = world.folder / "data" / "memory" / "rolling"
            aside = folder.rename(folder.with_name("aside"))
            folder.write_text("not a folder")
            await world.ann.send(world.general, "!memory forget User uses zsh.")
            assert "Some of it couldn't be removed yet. I keep trying." in world.answer(world.general)
            await world.ann.send(world.general, "!memory show")
            assert "zsh" not in world.answer(world.general)
            folder.unlink()
            aside.rename(folder)


class TestOtherChanges:
    async def test_undoing_a_forgetting_brings_it_back_but_not_its_summary(self, start: Start) -> None:
        async with start(summary_every=1) as world:
            await talk(world)
            await world.ann.send(world.general, "!memory forget User uses zsh.")
            await world.settle()
            await world.ann.send(world.general, "!memory undo")
            answer = world.answer(world.general)
            assert "Summaries and recent messages stay without it." in answer
            await world.ann.send(world.general, "!memory show")
            shown, _, summary = world.answer(world.general).partition("**Summary of")
            assert "You use zsh" in shown and "zsh" not in summary

    async def test_an_edit_takes_back_what_it_said_before(self, start: Start) -> None:
        async with start(summary_every=1) as world:
            await talk(world)
            await world.ann.send(world.general, "!memory edit User uses zsh. => I use fish")
            assert f"\n{ALSO}" in world.answer(world.general)

    async def test_making_something_private_takes_it_from_the_open(self, start: Start) -> None:
        async with start(summary_every=1) as world:
            await talk(world)
            await world.ann.send(world.general, "!memory private User uses zsh.")
            assert f"\n{ALSO}" in world.answer(world.general)

    async def test_a_button_tells_it_too(self, start: Start) -> None:
        async with start(summary_every=1) as world:
            await talk(world)
            against = partial(Draft.upsert, kind="fact", text="User uses fish.", origin=LATER, given_id=ZSH)
            await world.ann.send(world.general, "!memory edit User uses zsh. => User uses zsh daily.")
            await world.ann.send(world.general, "Is zsh older than bash?")
            await world.settle()
            await world.memory.change(f"user-{world.ann.id}", "learned from talk", against)
            await world.settle()
            question = world.ann_dm.last_message
            await world.ann.user.click(question, label="Use the new")
            message = next(one for one in world.ann_dm.history() if one.id == question.id)
            assert "Settled: from now on I use “You use fish.”." in said(message)
            assert "\n-# It is also gone from the summary of a conversation" in said(message)

    async def test_who_opts_out_reads_what_of_theirs_went(self, start: Start) -> None:
        async with start(summary_every=1) as world:
            await talk(world)
            await world.ann.send(world.general, "!memory optout")
            assert "What you said is also gone from the summary of this conv" in world.answer(world.general)
