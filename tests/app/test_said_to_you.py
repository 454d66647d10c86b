"""What Discord shows people of their memory is said to them, once, and says what changed."""

import re

from discoclaw.core.draft import Draft, Origin
from discoclaw.core.item import Source
from tests.app.conftest import Start, World
from tests.app.models import Scripted
from tests.app.of_receipts import learned, talk
from tests.contract.cards import said


async def shown(world: World, command: str, **options: object) -> str:
    return said((await world.ann.slash(world.general, command, **options)).response)


async def texts(world: World) -> list[str]:
    view = await world.memory.view(f"user-{world.ann.id}")
    return sorted(item.text for item in view.active())


class TestAMemory:
    async def test_is_said_to_its_person_everywhere_and_stored_as_it_was(self, start: Start) -> None:
        model = Scripted()
        async with start(model) as world:
            await talk(world, model, learned("User works as a nurse."))
            for command in ("memory show", "memory history log", "memory history view", "memory preview"):
                answer = await shown(world, command)
                assert "ou work as a nurse" in answer and "User works" not in answer, command
            why = await shown(world, "memory why", memory="nurse")
            assert "You work as a nurse." in why and "User works" not in why
            (choice,) = await world.ann.autocomplete(world.general, "memory forget", "memory", "you work")
            assert choice["name"] == "You work as a nurse."
            assert await texts(world) == ["User works as a nurse."]
            assert "User works as a nurse." in world.durable(world.ann).read_text()
            await world.ann.send(world.general, "what is my job, nurse?")
            await world.settle()
            assert "User works as a nurse." in model.prompt

    async def test_in_another_language_has_the_persons_name(self, start: Start) -> None:
        model = Scripted()
        async with start(model, receipts=True) as world:
            name = world.ann.name
            receipt = await talk(world, model, learned("User arbeitet bei Bosch."))
            assert said(receipt) == f"-# remembered: <@{world.ann.id}> arbeitet bei Bosch."
            assert f"{name} arbeitet bei Bosch." in await shown(world, "memory show")
            assert await texts(world) == ["User arbeitet bei Bosch."]

    async def test_is_shown_to_others_with_its_persons_name(self, start: Start) -> None:
        model = Scripted()
        async with start(model) as world:
            await world.restart(memory_channel=str(world.dev.id))
            await talk(world, model, learned("User works as a nurse."))
            await world.settle()
            about = "\n".join(world.shown(world.dev))
            assert re.search(r"- \[fact\] \w+ works as a nurse\.", about)
            assert "User works" not in about and "You work" not in about


class TestTheHistory:
    async def test_says_what_changed_and_not_why_it_was_written(self, start: Start) -> None:
        model = Scripted()
        async with start(model) as world:
            await talk(world, model, learned("User works as a nurse."))
            number = (await world.memory.view(f"user-{world.ann.id}")).active()[0].id
            await world.ann.send(world.general, f"!memory edit {number} => User works as a doctor.")
            log = await shown(world, "memory history log", oneline=True)
            assert "Corrected: you work as a doctor" in log
            assert "nurse" not in log and "learned from talk" not in log
            drawn = await shown(world, "memory history graph", form="timeline")
            assert "corrected: you work as a doctor" in drawn and "learned from talk" not in drawn

    async def test_says_that_something_was_forgotten_and_not_what(self, start: Start) -> None:
        model = Scripted()
        async with start(model) as world:
            await talk(world, model, learned("User likes tea.", "User keeps a hamster."))
            for item in (await world.memory.view(f"user-{world.ann.id}")).active():
                await world.ann.send(world.general, f"!memory forget {item.id}")
            log = await shown(world, "memory history log", oneline=True)
            assert "Forgot 1 memory" in log and "Learned 2 memories" in log
            drawn = await shown(world, "memory history graph", form="mermaid")
            assert not re.search("hamster|tea", log + drawn)

    async def test_keeps_private_words_out_of_a_drawing_that_others_see(self, start: Start) -> None:
        model = Scripted()
        async with start(model) as world:
            await talk(world, model, learned("User has diabetes.", sensitivity="private"), privately=True)
            await world.ann.send(world.general, "!memory graph timeline")
            assert "learned: (private)" in world.answer(world.general)
            await world.ann.send_dm("!memory graph timeline")
            assert "learned: you have diabetes" in world.answer(world.ann_dm)


class TestAReceipt:
    async def test_in_a_channel_quotes_nothing_that_was_said_elsewhere(self, start: Start) -> None:
        async with start(receipts=True) as world:
            said_in = ((world.ann_dm, 1, "User prefers tabs."), (world.general, 2, "User likes tea."))

            def learn(draft: Draft) -> None:
                for channel, message, text in said_in:
                    origin = Origin("inferred", Source("discord", str(channel.id), str(message)))
                    draft.upsert("preference", text, origin)

            await world.memory.change(f"user-{world.ann.id}", "learned", learn, by="extraction")
            await world.settle()
            assert said(world.general.last_message).splitlines() == [
                "-# remembered: something private",
                "-# remembered: You like tea.",
            ]
