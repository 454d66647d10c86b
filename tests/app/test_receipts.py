"""Receipts: a silent line where something was learned from talk, with a button that takes it back."""

import json
import logging
from functools import partial
from typing import Any

import pytest

from discoclaw.bot.presses import GONE
from discoclaw.core.draft import Draft, Origin
from discoclaw.core.item import Source
from tests.app.conftest import Start, World
from tests.app.models import Scripted
from tests.contract.cards import labels, said


def learned(*texts: str, **more: str) -> str:
    """What an extraction returns."""
    return json.dumps({"upserts": [{"kind": "fact", "text": text, **more} for text in texts]})


async def talk(world: World, model: Scripted, facts: str, *, privately: bool = False) -> Any:
    """Ann says something of which the facts are learned. Returns the last message there."""
    model.facts = [facts]
    if privately:
        await world.ann.send_dm("something about me")
    else:
        await world.ann.send(world.general, "something about me")
    await world.settle()
    return (world.ann_dm if privately else world.general).last_message


class TestTheLine:
    async def test_says_what_was_learned_silently_and_pings_nobody(self, start: Start) -> None:
        model = Scripted()
        async with start(model, receipts=True) as world:
            message = await talk(world, model, learned(f"User likes tea with <@{world.bob.id}>."))
            assert said(message) == f"-# remembered: You like tea with <@{world.bob.id}>."
            assert message.flags.suppress_notifications
            assert message.reference is None
            (sent,) = [
                r for r in world.env.http_requests if r.method == "POST" and "remembered" in str(r.json)
            ]
            assert sent.json["allowed_mentions"] == {"parse": []}

    async def test_of_several_items_three_are_named(self, start: Start) -> None:
        model = Scripted()
        async with start(model, receipts=True) as world:
            message = await talk(world, model, learned(*(f"Fact {number}." for number in range(5))))
            assert said(message).splitlines() == [
                "-# remembered: Fact 0.",
                "-# remembered: Fact 1.",
                "-# remembered: Fact 2.",
                "-# +2 more",
            ]

    async def test_what_is_private_is_not_quoted_in_the_open_but_in_a_dm(self, start: Start) -> None:
        model = Scripted()
        async with start(model, receipts=True) as world:
            secret = learned("User has diabetes.", sensitivity="private")
            assert said(await talk(world, model, secret)) == "-# remembered: something private"
            lives = learned("User lives in Oslo.")
            message = await talk(world, model, lives, privately=True)
            assert said(message) == "-# remembered: You live in Oslo."

    async def test_tools_get_one_too_and_commands_none(self, start: Start) -> None:
        async with start(
            receipts=True, extraction_enabled=False
        ) as world:  # the offline model calls the tool
            await world.ann.send(world.general, "please remember that I like tea")
            await world.settle()
            assert "-# remembered: You like tea." in world.shown(world.general)
            count = len(world.shown(world.general))
            await world.ann.send(world.general, "!memory remember I like cake")
            await world.settle()
            assert len(world.shown(world.general)) == count + 2

    async def test_there_are_none_unless_they_are_switched_on(self, start: Start) -> None:
        model = Scripted()
        async with start(model) as world:
            message = await talk(world, model, learned("User likes tea."))
            assert said(message) == "ok"

    async def test_they_are_no_talk_after_a_restart(self, start: Start) -> None:
        model = Scripted()
        async with start(model, receipts=True) as world:
            await talk(world, model, learned("User likes tea."))
            await world.restart()
            await world.ann.send(world.general, "and now?")
            assert "something about me" in model.prompt
            assert "-# remembered" not in model.prompt

    async def test_a_channel_that_is_gone_is_a_line_in_the_log_and_no_more(
        self, start: Start, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.INFO)
        async with start(receipts=True) as world:
            origin = Origin("inferred", Source("discord", "1", "2"))
            wish = partial(Draft.upsert, kind="fact", text="User likes tea.", origin=origin)
            await world.memory.change(f"user-{world.ann.id}", "learned", wish, by="extraction")
            await world.settle()
            assert "a receipt could not be sent" in caplog.text
            assert "likes tea" in (await world.memory.view(f"user-{world.ann.id}")).active()[0].text

    @pytest.mark.parametrize("erased", [False, True])
    async def test_waits_for_the_connection_and_not_for_somebody_who_was_erased(
        self, start: Start, caplog: pytest.LogCaptureFixture, erased: bool
    ) -> None:
        async with start(receipts=True) as world:
            subject, channel = f"user-{world.ann.id}", world.general
            origin = Origin("inferred", Source("discord", str(channel.id), "2"))
            wish = partial(Draft.upsert, kind="fact", text="User likes tea.", origin=origin)

            async def learn() -> None:
                await world.memory.change(subject, "learned", wish, by="extraction")
                if erased:
                    await world.memory.erase(subject)
                await world.app.settle()
                assert world.shown(channel) == []

            await world.restart(before_login=learn, memory_channel=str(world.dev.id))
            await world.settle()
            assert world.shown(channel) == ([] if erased else ["-# remembered: You like tea."])
        assert [one for one in caplog.records if one.exc_info] == []


class TestUndo:
    async def test_takes_all_of_it_back_after_a_restart_too(self, start: Start) -> None:
        model = Scripted()
        async with start(model, receipts=True) as world:
            message = await talk(world, model, learned("User likes tea.", "User likes cake."))
            await world.restart()
            await world.ann.click(message, label="Undo")
            assert world.answer(world.general) == "-# taken back\n-# It is also gone from 2 recent messages."
            assert labels(world.general.last_message) == []
            view = await world.memory.view(f"user-{world.ann.id}")
            assert view.active() == []

    async def test_is_for_the_person_alone(self, start: Start) -> None:
        model = Scripted()
        async with start(model, receipts=True) as world:
            message = await talk(world, model, learned("User likes tea."))
            result = await world.bob.click(message, label="Undo")
            assert result.ephemeral
            view = await world.memory.view(f"user-{world.ann.id}")
            assert len(view.active()) == 1

    async def test_what_was_undone_by_command_is_done_already(self, start: Start) -> None:
        model = Scripted()
        async with start(model, receipts=True) as world:
            message = await talk(world, model, learned("User likes tea."))
            await world.ann.send(world.general, "!memory undo")
            result = await world.ann.click(message, label="Undo")
            assert [told.content for told in result.followups] == ["That is done already."]

    async def test_what_has_changed_since_stays(self, start: Start) -> None:
        model = Scripted()
        async with start(model, receipts=True) as world:
            message = await talk(world, model, learned("User likes tea."))
            await world.ann.send(world.general, "!memory edit User likes tea. => I love tea")
            result = await world.ann.click(message, label="Undo")
            assert [told.content for told in result.followups] == ["It has changed since, so it stays."]
            view = await world.memory.view(f"user-{world.ann.id}")
            assert [item.text for item in view.active()] == ["I love tea"]

    async def test_goes_to_the_persona_it_was_learned_for(self, start: Start) -> None:
        model = Scripted()
        async with start(model, receipts=True) as world:
            for words in ("create-branch work", "checkout work"):
                await world.ann.send(world.general, f"!memory {words}")
            message = await talk(world, model, learned("User likes tea."))
            await world.ann.send(world.general, "!memory checkout main")
            await world.ann.click(message, label="Undo")
            view = await world.memory.view(f"user-{world.ann.id}", "work")
            assert view.active() == []

    async def test_says_in_words_that_memory_or_persona_are_gone(self, start: Start) -> None:
        model = Scripted()
        async with start(model, receipts=True) as world:
            for words in ("create-branch work", "checkout work"):
                await world.ann.send(world.general, f"!memory {words}")
            first = await talk(world, model, learned("User likes tea."))
            for words in ("checkout main", "delete-branch work"):
                await world.ann.send(world.general, f"!memory {words}")
            await world.env.advance_time(60)
            second = await talk(world, model, learned("User likes cocoa."))
            await world.env.advance_time(60)
            result = await world.ann.click(first, label="Undo")
            assert [told.content for told in result.followups] == [f"{GONE}."]
            await world.ann.send(world.general, "!memory erase --yes")
            result = await world.ann.click(second, label="Undo")
            assert [told.content for told in result.followups] == [f"{GONE}."]
