"""A memory is named by some of its words: the bot asks which one is meant, with a button or a menu."""

from typing import Any

import pytest

from tests.contract.cards import buttons, every_page, options, said
from tests.contract.world import Start, World

COFFEE, COFFEE_READ = "User takes coffee black.", "You take coffee black."
MACHINES, MACHINES_READ = "User sells coffee machines to hotels.", "You sell coffee machines to hotels."
MILK = "User takes coffee with milk."
NUTS = "User is allergic to nuts."
OSLO, OSLO_READ = "User lives in Oslo with two cats.", "You live in Oslo with two cats."
ASKED = f"Forget “{COFFEE_READ}”?"
NOT_YOURS = "These buttons are for somebody else."


async def says(world: World, text: str) -> str:
    """Ann types a command in #general; returns its answer."""
    return await world.says(world.ann, world.general, f"!memory {text}")


async def asked(world: World, text: str) -> Any:
    """The question that follows Ann's command."""
    await says(world, text)
    return world.general.last_message


async def press(world: World, label: str, message: Any = None) -> str:
    """Ann presses a button of a message, or of the newest one; returns what that message says by then."""
    pressed = message or world.general.last_message
    await world.ann.click(pressed, label=label)
    await world.settle()
    return said(next(one for one in world.general.history() if one.id == pressed.id))


def labels(message: Any) -> list[str]:
    return [label for label, _ in buttons(message)]


def number(world: World, text: str) -> str:
    """The short id of a memory about Ann."""
    return next(str(one["id"]) for one in world.items(world.ann) if one["text"] == text.strip())[8:]


def kept(world: World) -> set[str]:
    return set(world.memories(world.ann))


class TestOneMatch:
    async def test_is_forgotten_after_a_press_and_not_before(self, start: Start) -> None:
        async with start() as world:
            await world.remember(world.ann, NUTS)
            for clue in ("my COFFEE", "cofee", "Café"):
                text = COFFEE if clue != "Café" else "User takes cafe black."
                await world.remember(world.ann, text)
                assert (
                    await says(world, f"forget {clue}")
                    == f"Forget “{text.replace('User takes', 'You take')}”?"
                )
                assert labels(world.general.last_message) == ["Forget", "Keep"]
                assert kept(world) == {text, NUTS}
                assert (await press(world, "Forget")).startswith("Forgotten: You take ")
                assert buttons(world.general.last_message) == []
                assert kept(world) == {NUTS}
            await says(world, "undo")
            assert len(kept(world)) == 2

    async def test_needs_no_press_if_it_is_named_by_its_id_or_its_text(self, start: Start) -> None:
        async with start() as world:
            for exact in ("the id", "the short id", "takes coffee black"):
                await world.remember(world.ann, COFFEE)
                short = number(world, COFFEE)
                named = {"the id": f"durable-{short}", "the short id": short}.get(exact, exact)
                assert await says(world, f"forget {named}") == f"Forgotten: {COFFEE_READ}"
            await world.remember(world.ann, "I like tea", "I like tea hot")
            assert await says(world, "forget i like tea") == "Forgotten: I like tea"

    async def test_is_kept_by_the_other_button_and_nobody_else_may_press(self, start: Start) -> None:
        async with start() as world:
            await world.remember(world.ann, COFFEE)
            question = await asked(world, "forget coffee")
            refused = await world.bob.click(question, label="Forget")
            assert refused.ephemeral and refused.response.content == NOT_YOURS
            assert await press(world, "Keep") == "I changed nothing."
            assert buttons(world.general.last_message) == []
            question = await asked(world, "forget coffee")
            await world.restart(allow_roles=frozenset(), allow_users=frozenset({str(world.bob.id)}))
            refused = await world.ann.click(question, label="Forget")
            assert refused.followups[0].content.startswith("You aren't on my allowlist")
            assert kept(world) == {COFFEE}

    async def test_is_forgotten_for_the_persona_that_was_asked_about(self, start: Start) -> None:
        async with start() as world:
            await world.remember(world.ann, COFFEE)
            question = await asked(world, "forget coffee")
            await says(world, "persona create work")
            await says(world, "persona switch work")
            forgotten, elsewhere = (await press(world, "Forget", question)).split("\n")
            assert forgotten == f"Forgotten: {COFFEE_READ}"
            assert elsewhere.startswith("-# The persona `work` still remembers what you took back.")
            assert kept(world) == {COFFEE}
            question = await asked(world, "forget coffee")
            await says(world, "persona switch main")
            assert kept(world) == set()
            await says(world, "persona delete work")
            result = await world.ann.click(question, label="Forget")
            assert "its persona was deleted" in result.followups[0].content

    async def test_is_left_if_it_changed_since_the_question(self, start: Start) -> None:
        async with start() as world:
            await world.remember(world.ann, COFFEE)
            first, second = await asked(world, "forget coffee"), await asked(world, "forget coffee")
            await world.ann.click(first, label="Forget")
            result = await world.ann.click(second, label="Forget")
            assert [one.content for one in result.followups] == ["That memory was forgotten since I asked."]
            assert result.followups[0].ephemeral and buttons(world.general.last_message) == []
            await world.remember(world.ann, COFFEE, MACHINES)
            both = await asked(world, "forget coffee")
            one = await asked(world, "forget black")
            await says(world, f"edit {COFFEE} => {MILK}")
            result = await world.ann.click(one, label="Forget")
            assert result.followups[0].content == (
                "That memory has changed since I asked, so I left it as it is; "
                "it says now “You take coffee with milk.”."
            )
            result = await world.ann.select(both, [options(both)[f"2. {COFFEE_READ}"]])
            assert result.followups[0].content.startswith("That memory has changed since I asked")
            assert kept(world) == {MILK, MACHINES}
            both = await asked(world, "forget coffee")
            await says(world, f"edit {MACHINES} => User sells coffee.")
            await world.ann.click(both, label="Forget: 1, 2")
            assert kept(world) == {"User sells coffee."}

    async def test_in_a_slash_command_only_the_person_sees_question_and_result(self, start: Start) -> None:
        async with start() as world:
            await world.remember(world.ann, COFFEE)
            before = world.shown(world.general)
            result = await world.ann.slash(world.general, "memory forget", memory="coffee")
            assert result.ephemeral and result.response.content == ASKED
            await world.restart()
            await world.ann.click(result.response, label="Forget")
            assert result.response.content == f"Forgotten: {COFFEE_READ}"
            assert buttons(result.response) == [] and world.shown(world.general) == before
            await world.remember(world.ann, COFFEE, NUTS)
            choices = await world.ann.autocomplete(world.general, "memory forget", "memory", "black cof")
            assert [choice["name"] for choice in choices] == [COFFEE_READ]

    async def test_is_marked_or_explained_the_same_way(self, start: Start) -> None:
        async with start() as world:
            await world.remember(world.ann, COFFEE)
            assert await says(world, "private coffee") == f"Use “{COFFEE_READ}” in our DMs only?"
            assert (await press(world, "Use in DMs only")).startswith(
                "From now on I use that memory in our DMs only"
            )
            share = await world.says(world.ann, world.ann_dm, "!memory share coffee")
            assert share == f"Use “{COFFEE_READ}” everywhere?"
            await world.ann.user.click(world.ann_dm.last_message, label="Use everywhere")
            assert world.answer(world.ann_dm).startswith("From now on I use that memory everywhere")
            assert COFFEE_READ in await says(world, "why coffee")  # which changes nothing, so it asks nothing
            assert buttons(world.general.last_message) == []
            await world.remember(world.ann, MACHINES)
            await says(world, "private coffee")
            told = await press(world, "Use in DMs only: 1, 2")
            assert told.startswith("From now on I use these 2 memories in our DMs only")
            assert "2 private memories" in await says(world, "show")

    async def test_the_question_and_its_result_are_no_talk(self, start: Start) -> None:
        async with start() as world:
            await world.remember(world.ann, COFFEE)
            await says(world, "forget coffee")
            await press(world, "Forget")
            for _ in range(2):
                await world.says(world.ann, world.general, "hello")
                assert "Forget" not in world.prompt and "Forgotten" not in world.prompt
                await world.restart()
            history = await world.says(world.ann, world.ann_dm, "!memory history log")
            assert "button" in history


class TestAnEdit:
    NEW = "User takes coffee with *two* spoons_of `sugar` and a \\ <@1>."

    @pytest.mark.parametrize("slash", [False, True])
    async def test_shows_both_texts_and_takes_the_new_one_after_a_restart(
        self, start: Start, slash: bool
    ) -> None:
        async with start() as world:
            await world.remember(world.ann, COFFEE)
            if slash:
                result = await world.ann.slash(world.general, "memory edit", memory="coffee", text="\u200b")
                assert result.response.content == "There is no text to remember."
                result = await world.ann.slash(world.general, "memory edit", memory="cofee", text=self.NEW)
            question = result.response if slash else await asked(world, f"edit coffee => {self.NEW}")
            assert question.content.startswith(
                f"Change “{COFFEE_READ}” to this?\n> User takes coffee with \\*two"
            )
            await world.restart()
            await world.ann.click(question, label="Change")
            assert kept(world) == {self.NEW}
            done = result.response if slash else world.general.last_message
            assert done.content.startswith("Edited: You take coffee black. → ") and buttons(done) == []

    async def test_of_several_changes_the_one_that_is_chosen(self, start: Start) -> None:
        async with start() as world:
            await world.remember(world.ann, COFFEE, MACHINES)
            question = await asked(world, "edit coffee => User drinks tea.")
            assert said(question).startswith(
                "That matches 2 memories. Which one should say this?\n> User drinks tea."
            )
            await world.ann.select(question, [options(question)[COFFEE_READ]])
            assert kept(world) == {"User drinks tea.", MACHINES}
            told = await says(world, f"edit machines => {'*' * 995}")  # too long for a question
            assert f"`!memory edit {number(world, MACHINES)} <new text>`" in told
            question = await asked(world, "edit machines => User sells tea.")
            await says(world, "optout")
            result = await world.ann.click(question, label="Change")
            assert result.followups[0].content.startswith("You have opted out of memory")
            assert kept(world) == {"User drinks tea.", MACHINES}


class TestSeveralMatches:
    @pytest.mark.parametrize("slash", [False, True])
    async def test_the_one_that_is_chosen_is_forgotten_after_a_restart_too(
        self, start: Start, slash: bool
    ) -> None:
        async with start() as world:
            await world.remember(world.ann, COFFEE, MACHINES, NUTS)
            if slash:
                result = await world.ann.slash(world.general, "memory forget", memory="coffee")
            question = result.response if slash else await asked(world, "forget coffee")
            head = "For “coffee” I found 2 memories. Which should I forget?"
            typed = "" if slash else "\n-# You can also type `!memory forget 1 2`."
            assert question.content == f"{head}\n✅ 1. {MACHINES_READ}\n✅ 2. {COFFEE_READ}{typed}"
            assert set(options(question)) == {f"1. {MACHINES_READ}", f"2. {COFFEE_READ}"}
            if not slash:
                refused = await world.bob.select(question, [options(question)[f"2. {COFFEE_READ}"]])
                assert refused.response.content == NOT_YOURS
                assert await press(world, "None of these") == "I changed nothing."
                question = await asked(world, "forget coffee")
            await world.restart()
            await world.ann.select(question, [options(question)[f"1. {MACHINES_READ}"]])
            done = result.response if slash else world.general.last_message
            assert (done.content, buttons(done)) == (f"Forgotten: {MACHINES_READ}", [])
            assert kept(world) == {COFFEE, NUTS}

    async def test_of_many_ten_are_on_a_page_and_turning_it_forgets_nothing(self, start: Start) -> None:
        async with start() as world:
            for each in range(23):
                await world.remember(world.ann, f"User knows recipe {each}: " + "tea " * 40)
                await world.env.advance_time(1)
            found = await says(world, "forget everything about recipes")
            assert found.startswith("For “everything about recipes” I found 23 memories.")
            assert "✅ 10. You know recipe 13: tea" in found and "Page 1 of 3." in found
            assert all(len(label) <= 100 for label in options(world.general.last_message))
            await press(world, "▶")
            await press(world, "▶")
            page = world.general.last_message
            assert next(iter(options(page))).startswith("21. You know recipe 2: tea")
            assert labels(page) == ["Forget: 21, 22, 23", "None of these", "◀"]
            assert all(len(custom_id) <= 100 for _, custom_id in buttons(page))
            assert len(kept(world)) == 23
            await world.restart()
            told = await press(world, "Forget: 21, 22, 23", page)
            assert told.startswith(
                "Forgotten: 3 memories; `!memory undo` brings them back.\n- You know recipe 2:"
            )
            assert len(kept(world)) == 20
            await says(world, "undo")
            assert len(kept(world)) == 23

    async def test_numbers_name_those_of_the_list_that_was_shown_last(self, start: Start) -> None:
        async with start() as world:
            for typed in ("1 3", "3, 1", "1 and 3"):
                await world.remember(
                    world.ann, *(f"I like tea with {one}" for one in ("milk", "lemon", "rum"))
                )
                listed = [label[3:] for label in options(await asked(world, "forget tea"))]
                assert (await says(world, f"forget {typed}")).startswith("Forgotten: 2 memories")
                assert kept(world) == {listed[1]}
            told = await world.says(world.bob, world.general, "!memory forget 1")
            assert told.startswith("I remember nothing that matches “1”")


class TestNoMatch:
    async def test_the_nearest_is_a_question(self, start: Start) -> None:
        async with start() as world:
            await world.remember(world.ann, COFFEE, NUTS)
            for typed in ("cofee", "coffe with milk", "espresso coffee"):
                assert await says(world, f"forget {typed}") == ASKED
                assert labels(world.general.last_message) == ["Forget", "Keep"]
            near = await says(world, "why coffee black zebra giraffe llama")
            assert near == f"I know nothing like that. Did you mean “{COFFEE_READ}”?"
            assert COFFEE_READ in await press(world, "Yes")
            assert buttons(world.general.last_message) == []
            assert await says(world, "forget the zebra") == (
                "I remember nothing that matches “the zebra”. `!memory show` lists everything."
            )
            assert buttons(world.general.last_message) == []

    async def test_an_explanation_longer_than_a_message_comes_whole(self, start: Start) -> None:
        async with start() as world:
            story = "User tells a story about coffee: " + "and then " * 100
            await world.remember(world.ann, story)
            short = number(world, story)
            await says(world, f"edit {short} {story} And so on.")
            question = await asked(world, "why coffee story tells giraffe zebra llama")
            await press(world, "Yes")
            told = [said(one) for one in world.general.history() if one.id >= question.id]
            assert len(told) > 1 and "And so on." in "".join(told)
            for version in range(11):
                await says(world, f"edit {short} {story} Version {version}.")
            await world.says(world.ann, world.ann_dm, "!memory why coffee story tells giraffe zebra llama")
            pressed = await world.ann.user.click(world.ann_dm.last_message, label="Yes")
            pages = await every_page(world.ann.user, pressed.response)
            assert pages.count("“You tell a story about coffee") == 13


class TestPrivateMemories:
    async def test_are_not_named_in_the_open_and_it_is_said_where_they_are(self, start: Start) -> None:
        async with start() as world:
            await world.says(world.ann, world.ann_dm, f"!memory remember {OSLO}")
            for verb in ("forget", "share", "private", "why", "edit"):
                new = " => User lives in Bergen." if verb == "edit" else ""
                assert await says(world, f"{verb} cats{new}") == (
                    f"Only a private memory matches that. Use `/memory {verb}`, or ask me in a DM."
                )
                assert buttons(world.general.last_message) == []
            short = number(world, OSLO)
            assert (await says(world, f"forget {short}")).startswith("Only a private memory matches that.")
            assert (await says(world, "forget Osloo")).startswith("I remember nothing that matches “Osloo”")
            await world.remember(world.ann, "User feeds the cats of a neighbour.", "User draws cats.")
            question = await asked(world, "forget cats")
            hint = "(1 private memory matches too: use `/memory forget`, or ask me in a DM)"
            assert hint in said(question)
            assert not any("Oslo" in label for label in options(question))
            assert (await says(world, f"share {short}")).startswith("From now on I use that memory")

    async def test_are_asked_about_where_only_the_person_reads(self, start: Start) -> None:
        async with start() as world:
            await world.says(world.ann, world.ann_dm, f"!memory remember {OSLO}")
            result = await world.ann.slash(world.general, "memory forget", memory="cats")
            assert result.response.content == f"Forget “{OSLO_READ}”?"
            assert await world.says(world.ann, world.ann_dm, "!memory forget cats") == result.response.content
            await world.ann.click(result.response, label="Forget")
            assert result.response.content == f"Forgotten: {OSLO_READ}"
            await world.remember(world.ann, COFFEE)
            question = await asked(world, "forget coffee")
            await world.says(world.ann, world.ann_dm, f"!memory private {COFFEE}")
            result = await world.ann.click(question, label="Forget")
            assert result.followups[0].content == (
                "That memory is private now; use `/memory forget`, or ask me in a DM."
            )
            assert kept(world) == {COFFEE}


async def test_no_memory_pings_or_breaks_out_of_its_quotes(start: Start) -> None:
    async with start() as world:
        evil = "” **bold** @everyone <@&1> ||x|| `code` and the word zebra"
        await world.remember(world.ann, evil)
        assert await says(world, "forget zebra") == (
            'Forget “" \\*\\*bold\\*\\* @everyone <@&1> \\|\\|x\\|\\| \\`code\\` and the word zebra”?'
        )
        assert not world.general.last_message.mention_everyone
