"""A memory is named by some of its words: the bot asks which one is meant, with a button or a menu."""

from typing import Any

import pytest

from discoclaw.bot.buttons import menu_view, one_view
from discoclaw.core.item import MANUAL, Facets, item_id, new_item
from tests.app.conftest import Start, World
from tests.app.models import Scripted
from tests.contract.cards import every_page

COFFEE, COFFEE_READ = "User takes coffee black.", "You take coffee black."
ASKED = f"Forget “{COFFEE_READ}”?"
NUTS = "User is allergic to nuts."


async def says(world: World, text: str) -> str:
    await world.ann.send(world.general, f"!memory {text}")
    return world.answer(world.general)


async def remember(world: World, *texts: str) -> None:
    for text in texts:
        await says(world, f"remember {text}")


async def texts(world: World) -> set[str]:
    """What is remembered about Ann."""
    return {item.text for item in (await world.memory.view(f"user-{world.ann.id}")).active()}


def labels(message: Any) -> list[str]:
    return [one.label for row in message.components for one in row.children if hasattr(one, "label")]


def options(message: Any) -> dict[str, str]:
    """What a menu offers: its labels, with the values they stand for."""
    row = message.components[0]
    menu = row["components"][0] if isinstance(row, dict) else row.children[0].to_dict()
    return {one["label"]: one["value"] for one in menu["options"]}


def now(world: World, message: Any) -> Any:
    """A message of the channel as it is by now."""
    return next(one for one in world.general.history() if one.id == message.id)


class TestOneMatch:
    @pytest.mark.parametrize("clue", ["coffee", "black coffee", "my COFFEE", "coff", "taking coffee", "Café"])
    async def test_is_forgotten_after_a_press_and_not_before(self, start: Start, clue: str) -> None:
        async with start() as world:
            await remember(world, COFFEE if clue != "Café" else "User takes cafe black.", NUTS)
            asked = await says(world, f"forget {clue}")
            assert asked.startswith("Forget “You take ")
            question = world.general.last_message
            assert labels(question) == ["Forget", "Keep"]
            assert len(await texts(world)) == 2
            await world.ann.click(question, label="Forget")
            assert world.answer(world.general).startswith("Forgotten: You take ")
            assert world.general.last_message.components == []
            assert await texts(world) == {NUTS}

    @pytest.mark.parametrize(
        "exact", [item_id("fact", COFFEE), item_id("fact", COFFEE)[8:], COFFEE, "takes coffee black"]
    )
    async def test_needs_no_press_if_it_is_named_by_its_id_or_most_of_its_text(
        self, start: Start, exact: str
    ) -> None:
        async with start() as world:
            await remember(world, COFFEE)
            assert await says(world, f"forget {exact}") == f"Forgotten: {COFFEE_READ}"

    async def test_an_exact_text_is_acted_on_although_a_longer_one_begins_with_it(self, start: Start) -> None:
        async with start() as world:
            await remember(world, "I like tea", "I like tea hot")
            assert await says(world, "forget i like tea") == "Forgotten: I like tea"

    async def test_is_kept_by_the_other_button(self, start: Start) -> None:
        async with start() as world:
            await remember(world, COFFEE)
            await says(world, "forget coffee")
            await world.ann.click(world.general.last_message, label="Keep")
            assert world.answer(world.general) == "I changed nothing."
            assert world.general.last_message.components == []
            assert await texts(world) == {COFFEE}

    async def test_nobody_else_may_press(self, start: Start) -> None:
        async with start() as world:
            await remember(world, COFFEE)
            await says(world, "forget coffee")
            result = await world.bob.click(world.general.last_message, label="Forget")
            assert result.ephemeral
            assert result.response.content == "These buttons are for somebody else."
            assert world.answer(world.general) == ASKED
            assert await texts(world) == {COFFEE}

    async def test_the_button_works_after_a_restart(self, start: Start) -> None:
        async with start() as world:
            await remember(world, COFFEE)
            await says(world, "forget coffee")
            await world.restart()
            await world.ann.click(world.general.last_message, label="Forget")
            assert world.answer(world.general) == f"Forgotten: {COFFEE_READ}"

    async def test_it_acts_on_the_persona_that_was_asked_about(self, start: Start) -> None:
        async with start() as world:
            await remember(world, COFFEE)
            await says(world, "forget coffee")
            question = world.general.last_message
            await says(world, "persona create work")
            await says(world, "persona switch work")
            await world.ann.click(question, label="Forget")
            told, elsewhere = now(world, question).content.split("\n")
            assert told == f"Forgotten: {COFFEE_READ}"
            assert elsewhere.startswith("-# The persona `work` still remembers what you took back.")
            assert await texts(world) == {COFFEE}
            assert not (await world.memory.view(f"user-{world.ann.id}", "main")).active()

    async def test_of_a_persona_that_was_deleted_nothing_is_forgotten(self, start: Start) -> None:
        async with start() as world:
            await says(world, "persona create work")
            await says(world, "persona switch work")
            await remember(world, COFFEE)
            await says(world, "forget coffee")
            question = world.general.last_message
            await says(world, "persona switch main")
            await says(world, "persona delete work")
            result = await world.ann.click(question, label="Forget")
            assert "its persona was deleted" in result.followups[0].content

    async def test_what_was_forgotten_meanwhile_is_said(self, start: Start) -> None:
        async with start() as world:
            await remember(world, COFFEE)
            for _ in range(2):
                await says(world, "forget coffee")
            *_, first, _, second = world.general.history()
            await world.ann.click(first, label="Forget")
            result = await world.ann.click(second, label="Forget")
            assert [told.content for told in result.followups] == ["That memory was forgotten since I asked."]
            assert result.followups[0].ephemeral
            assert world.general.last_message.components == []

    async def test_what_says_something_else_meanwhile_is_left_as_it_is(self, start: Start) -> None:
        async with start() as world:
            await remember(world, COFFEE)
            await says(world, "forget coffee")
            question = world.general.last_message
            await says(world, f"edit {COFFEE} => User takes coffee with milk.")
            result = await world.ann.click(question, label="Forget")
            assert result.followups[0].content == (
                "That memory has changed since I asked, so I left it as it is; "
                "it says now “You take coffee with milk.”."
            )
            assert await texts(world) == {"User takes coffee with milk."}

    async def test_who_may_no_longer_talk_to_us_presses_in_vain(self, start: Start) -> None:
        async with start() as world:
            await remember(world, COFFEE)
            await says(world, "forget coffee")
            await world.restart(allow_roles=frozenset(), allow_users=frozenset({str(world.bob.id)}))
            result = await world.ann.click(world.general.last_message, label="Forget")
            assert result.followups[0].content.startswith("You aren't on my allowlist")
            assert await texts(world) == {COFFEE}

    async def test_in_a_slash_command_only_the_person_sees_the_question_and_the_result(
        self, start: Start
    ) -> None:
        async with start() as world:
            await remember(world, COFFEE)
            before = world.shown(world.general)
            result = await world.ann.slash(world.general, "memory forget", memory="coffee")
            assert result.ephemeral
            assert result.response.content == ASKED
            await world.restart()
            await world.ann.click(result.response, label="Forget")
            assert result.response.content == f"Forgotten: {COFFEE_READ}"
            assert result.response.components == []
            assert world.shown(world.general) == before

    async def test_is_marked_by_its_command(self, start: Start) -> None:
        async with start() as world:
            await remember(world, COFFEE)
            assert await says(world, "private coffee") == f"Use “{COFFEE_READ}” in our DMs only?"
            await world.ann.click(world.general.last_message, label="Use in DMs only")
            assert world.answer(world.general).startswith("From now on I use that memory in our DMs only")
            await world.ann.send_dm("!memory share coffee")
            assert world.answer(world.ann_dm) == f"Use “{COFFEE_READ}” everywhere?"
            await world.ann.user.click(world.ann_dm.last_message, label="Use everywhere")
            assert world.answer(world.ann_dm).startswith("From now on I use that memory everywhere")

    async def test_is_explained_at_once_since_that_changes_nothing(self, start: Start) -> None:
        async with start() as world:
            await remember(world, COFFEE)
            assert COFFEE_READ in await says(world, "why coffee")
            assert world.general.last_message.components == []

    async def test_the_log_says_that_a_button_did_it(self, start: Start) -> None:
        async with start() as world:
            await remember(world, COFFEE)
            await says(world, "forget coffee")
            await world.ann.click(world.general.last_message, label="Forget")
            history = await world.memory.history(f"user-{world.ann.id}")
            newest = list(history.commits.values())[-1]
            question = world.general.last_message
            assert newest.metadata["by"] == "button"
            assert newest.metadata["at"] == f"{world.general.id}/{question.id}"

    async def test_the_question_and_its_result_are_no_talk(self, start: Start) -> None:
        async with start() as world:
            await remember(world, COFFEE)
            await says(world, "forget coffee")
            await world.ann.click(world.general.last_message, label="Forget")
            model = Scripted()
            await world.restart(model)
            await world.ann.send(world.general, "hello")
            assert "Forgotten" not in model.prompt

    async def test_what_a_press_forgets_leaves_the_summary_too(self, start: Start) -> None:
        async with start(summary_every=1) as world:
            await world.ann.send(world.general, "I drink my coffee black")
            await world.settle()
            summaries = (world.folder / "data" / "memory" / "rolling").glob
            assert any("coffee" in one.read_text() for one in summaries("*.json"))
            await remember(world, "User drinks coffee black.")
            await says(world, "forget coffee")
            question = world.general.last_message
            result = await world.ann.click(question, label="Forget")
            assert result.followups == []
            await world.settle()
            assert not any("coffee" in one.read_text() for one in summaries("*.json"))


class TestAnEdit:
    NEW = "User takes coffee with *two* spoons_of `sugar` and a \\ <@1>."

    @pytest.mark.parametrize("slash", [False, True])
    async def test_shows_both_texts_and_takes_the_new_one_after_a_restart(
        self, start: Start, slash: bool
    ) -> None:
        async with start() as world:
            await remember(world, COFFEE)
            if slash:
                result = await world.ann.slash(world.general, "memory edit", memory="coffee", text=self.NEW)
            else:
                await says(world, f"edit coffee => {self.NEW}")
            question = result.response if slash else world.general.last_message
            assert question.content.startswith(
                f"Change “{COFFEE_READ}” to this?\n> User takes coffee with \\*two"
            )
            await world.restart()
            await world.ann.click(question, label="Change")
            assert await texts(world) == {self.NEW}
            question = result.response if slash else world.general.last_message
            assert question.content.startswith("Edited: You take coffee black. → ")
            assert question.components == []

    async def test_of_several_changes_the_one_that_is_chosen(self, start: Start) -> None:
        async with start() as world:
            await remember(world, COFFEE, "User sells coffee machines to hotels.")
            asked = await says(world, "edit coffee => User drinks tea.")
            assert asked == "That matches 2 memories. Which one should say this?\n> User drinks tea."
            question = world.general.last_message
            await world.ann.select(question, [options(question)[COFFEE_READ]])
            assert await texts(world) == {"User drinks tea.", "User sells coffee machines to hotels."}

    async def test_that_is_too_long_for_a_question_names_the_ids(self, start: Start) -> None:
        async with start() as world:
            await remember(world, COFFEE)
            asked = await says(world, f"edit coffee => {'*' * 995}")
            number = item_id("fact", COFFEE).removeprefix("durable-")
            assert f"`!memory edit {number} <new text>`" in asked
            assert await texts(world) == {COFFEE}

    async def test_of_who_opted_out_since_changes_nothing(self, start: Start) -> None:
        async with start() as world:
            await remember(world, COFFEE)
            await says(world, "edit coffee => User drinks tea.")
            question = world.general.last_message
            await says(world, "optout")
            result = await world.ann.click(question, label="Change")
            assert result.followups[0].content.startswith("You have opted out of memory")
            assert await texts(world) == {COFFEE}

    async def test_without_a_text_is_refused_before_anything_is_asked(self, start: Start) -> None:
        async with start() as world:
            await remember(world, COFFEE)
            result = await world.ann.slash(world.general, "memory edit", memory="coffee", text="\u200b")
            assert result.response.content == "There is no text to remember."


class TestSeveralMatches:
    MACHINES = "User sells coffee machines to hotels."
    MACHINES_READ = "You sell coffee machines to hotels."

    @pytest.mark.parametrize("slash", [False, True])
    async def test_the_one_that_is_chosen_is_forgotten_after_a_restart_too(
        self, start: Start, slash: bool
    ) -> None:
        async with start() as world:
            await remember(world, COFFEE, self.MACHINES, NUTS)
            if slash:
                result = await world.ann.slash(world.general, "memory forget", memory="coffee")
            else:
                await says(world, "forget coffee")
            question = result.response if slash else world.general.last_message
            head = "For “coffee” I found 2 memories. Which should I forget?"
            typed = "" if slash else "\n-# You can also type `!memory forget 1 2`."
            assert question.content == f"{head}\n✅ 1. {self.MACHINES_READ}\n✅ 2. {COFFEE_READ}{typed}"
            assert set(options(question)) == {f"1. {self.MACHINES_READ}", f"2. {COFFEE_READ}"}
            await world.restart()
            await world.ann.select(question, [options(question)[f"1. {self.MACHINES_READ}"]])
            question = result.response if slash else world.general.last_message
            assert question.content == f"Forgotten: {self.MACHINES_READ}"
            assert question.components == []
            assert await texts(world) == {COFFEE, NUTS}

    async def test_none_of_them_may_be_meant(self, start: Start) -> None:
        async with start() as world:
            await remember(world, COFFEE, self.MACHINES)
            await says(world, "forget coffee")
            await world.ann.click(world.general.last_message, label="None of these")
            assert world.answer(world.general) == "I changed nothing."
            assert await texts(world) == {COFFEE, self.MACHINES}

    async def test_nobody_else_may_choose(self, start: Start) -> None:
        async with start() as world:
            await remember(world, COFFEE, self.MACHINES)
            await says(world, "forget coffee")
            question = world.general.last_message
            result = await world.bob.select(question, [options(question)[f"2. {COFFEE_READ}"]])
            assert result.response.content == "These buttons are for somebody else."
            assert await texts(world) == {COFFEE, self.MACHINES}

    async def test_one_of_them_that_has_changed_since_is_left_as_it_is(self, start: Start) -> None:
        async with start() as world:
            await remember(world, COFFEE, self.MACHINES)
            await says(world, "forget coffee")
            question = world.general.last_message
            await says(world, f"edit {COFFEE} => User takes coffee with milk.")
            result = await world.ann.select(question, [options(question)[f"2. {COFFEE_READ}"]])
            assert result.followups[0].content.startswith("That memory has changed since I asked")

    async def test_of_many_ten_are_on_a_page_and_a_page_that_is_turned_forgets_nothing(
        self, start: Start
    ) -> None:
        async with start() as world:
            for number in range(23):
                await remember(world, f"User knows recipe {number}: " + "tea " * 40)
                await world.env.advance_time(1)
            asked = await says(world, "forget everything about recipes")
            assert asked.startswith("For “everything about recipes” I found 23 memories.")
            assert "✅ 10. You know recipe 13: tea" in asked and "Page 1 of 3." in asked
            assert all(len(label) <= 100 for label in options(world.general.last_message))
            await world.ann.click(world.general.last_message, label="▶")
            await world.ann.click(world.general.last_message, label="▶")
            page = world.general.last_message
            assert next(iter(options(page))).startswith("21. You know recipe 2: tea")
            assert labels(page) == ["Forget: 21, 22, 23", "None of these", "◀"]
            assert len(await texts(world)) == 23
            await world.restart()
            await world.ann.click(page, label="Forget: 21, 22, 23")
            told = world.answer(world.general)
            assert told.startswith(
                "Forgotten: 3 memories; `!memory undo` brings them back.\n- You know recipe 2:"
            )
            assert len(await texts(world)) == 20
            await says(world, "undo")
            assert len(await texts(world)) == 23

    async def test_one_press_forgets_what_is_ticked_and_keeps_what_only_came_near(self, start: Start) -> None:
        async with start() as world:
            flat = ["User's old flat was in Elm Street.", "The landlord of the old flat kept the deposit."]
            old, near = "Your old flat was in Elm Street.", "User's flat is in Oak Street."
            await remember(world, *flat, near, NUTS)
            await says(world, "forget everything about my old flat")
            question = world.general.last_message
            assert f"✅ 1. {flat[1]}" in question.content and f"✅ 2. {old}" in question.content
            assert "3. Your flat is in Oak Street." in question.content
            assert NUTS not in question.content
            await world.ann.select(
                question, [options(question)[f"{n}. {t}"] for n, t in ((1, flat[1]), (2, old))]
            )
            assert await texts(world) == {near, NUTS}

    @pytest.mark.parametrize("typed", ["1 3", "3, 1", "1 and 3"])
    async def test_numbers_name_those_of_the_list_that_was_shown_last(self, start: Start, typed: str) -> None:
        async with start() as world:
            await remember(world, "I like tea with milk", "I like tea with lemon", "I like tea with rum")
            await says(world, "forget tea")
            told = await says(world, f"forget {typed}")
            assert told.startswith("Forgotten: 2 memories")
            assert await texts(world) == {"I like tea with lemon"}
            await world.bob.send(world.general, "!memory forget 1")
            assert world.answer(world.general).startswith("I remember nothing that matches “1”")

    async def test_what_has_changed_since_is_left_and_the_others_go(self, start: Start) -> None:
        async with start() as world:
            await remember(world, COFFEE, self.MACHINES)
            await says(world, "forget coffee")
            question = world.general.last_message
            await says(world, f"edit {COFFEE} => User takes coffee with milk.")
            await world.ann.click(question, label="Forget: 1, 2")
            assert await texts(world) == {"User takes coffee with milk."}

    async def test_several_are_marked_at_once(self, start: Start) -> None:
        async with start() as world:
            await remember(world, COFFEE, self.MACHINES)
            await says(world, "private coffee")
            await world.ann.click(world.general.last_message, label="Use in DMs only: 1, 2")
            assert world.answer(world.general).startswith(
                "From now on I use these 2 memories in our DMs only"
            )
            view = await world.memory.view(f"user-{world.ann.id}")
            assert {item.facets.sensitivity for item in view.active()} == {"private"}

    async def test_whole_words_go_before_parts_of_words(self, start: Start) -> None:
        async with start() as world:
            await remember(world, "User likes tea with lemon.", "User leads a team of nine people.")
            assert await says(world, "forget tea") == "Forget “You like tea with lemon.”?"


class TestNoMatch:
    @pytest.mark.parametrize("typed", ["cofee", "coffe with milk", "espresso coffee"])
    async def test_the_nearest_is_a_question(self, start: Start, typed: str) -> None:
        async with start() as world:
            await remember(world, COFFEE, NUTS)
            assert await says(world, f"forget {typed}") == ASKED
            assert labels(world.general.last_message) == ["Forget", "Keep"]
            await world.ann.click(world.general.last_message, label="Forget")
            assert world.answer(world.general) == f"Forgotten: {COFFEE_READ}"

    async def test_the_nearest_is_asked_about_before_it_is_explained(self, start: Start) -> None:
        async with start() as world:
            await remember(world, COFFEE)
            asked = await says(world, "why coffee black zebra giraffe llama")
            assert asked == f"I know nothing like that. Did you mean “{COFFEE_READ}”?"
            await world.ann.click(world.general.last_message, label="Yes")
            assert COFFEE_READ in world.answer(world.general)
            assert world.general.last_message.components == []

    async def test_an_explanation_longer_than_a_message_comes_whole(self, start: Start) -> None:
        async with start() as world:
            story = "User tells a story about coffee: " + "and then " * 100
            await remember(world, story)
            await says(world, f"edit {item_id('fact', story)[8:]} {story} And so on.")
            await says(world, "why coffee story tells giraffe zebra llama")
            question = world.general.last_message
            await world.ann.click(question, label="Yes")
            told = [str(one.content) for one in world.general.history() if one.id >= question.id]
            assert len(told) > 1
            assert "And so on." in "".join(told)
            assert now(world, question).components == []

    async def test_a_long_explanation_has_pages(self, start: Start) -> None:
        async with start() as world:
            story = "User tells a story about coffee: " + "and then " * 100
            await remember(world, story)
            for version in range(12):
                await says(world, f"edit {item_id('fact', story)[8:]} {story} Version {version}.")
            await world.ann.send_dm("!memory why coffee story tells giraffe zebra llama")
            pressed = await world.ann.user.click(world.ann_dm.last_message, label="Yes")
            told = await every_page(world.ann.user, pressed.response)
            assert told.count("“You tell a story about coffee") == 13

    async def test_the_nearest_is_changed_to_what_the_question_says(self, start: Start) -> None:
        async with start() as world:
            await remember(world, COFFEE)
            assert await says(world, "edit cofee => You drink tea.") == (
                f"Change “{COFFEE_READ}” to this?\n> You drink tea."
            )
            await world.ann.click(world.general.last_message, label="Change")
            assert world.answer(world.general) == f"Edited: {COFFEE_READ} → You drink tea."

    async def test_if_nothing_is_near_the_way_out_is_said(self, start: Start) -> None:
        async with start() as world:
            await remember(world, COFFEE)
            assert await says(world, "forget the zebra") == (
                "I remember nothing that matches “the zebra”. `!memory show` lists everything."
            )
            assert world.general.last_message.components == []


class TestPrivateMemories:
    OSLO, OSLO_READ = "User lives in Oslo with two cats.", "You live in Oslo with two cats."

    @pytest.mark.parametrize("verb", ["forget", "share", "private", "why", "edit"])
    async def test_are_not_named_in_the_open_and_it_is_said_where_they_are(
        self, start: Start, verb: str
    ) -> None:
        async with start() as world:
            await world.ann.send_dm(f"!memory remember {self.OSLO}")
            new = " => User lives in Bergen." if verb == "edit" else ""
            answer = await says(world, f"{verb} cats{new}")
            assert answer == f"Only a private memory matches that. Use `/memory {verb}`, or ask me in a DM."
            assert world.general.last_message.components == []

    async def test_named_by_their_id_are_not_told_in_the_open_either(self, start: Start) -> None:
        async with start() as world:
            await world.ann.send_dm(f"!memory remember {self.OSLO}")
            number = item_id("fact", self.OSLO).removeprefix("durable-")
            assert (await says(world, f"forget {number}")).startswith("Only a private memory matches that.")
            assert (await says(world, f"share {number}")).startswith("From now on I use that memory")

    async def test_are_never_the_nearest_in_the_open(self, start: Start) -> None:
        async with start() as world:
            await world.ann.send_dm(f"!memory remember {self.OSLO}")
            assert (await says(world, "forget Osloo")).startswith("I remember nothing that matches “Osloo”")

    async def test_are_counted_beside_what_may_be_shown(self, start: Start) -> None:
        async with start() as world:
            await world.ann.send_dm(f"!memory remember {self.OSLO}")
            await remember(world, "User feeds the cats of a neighbour.", "User draws cats for a magazine.")
            asked = await says(world, "forget cats")
            assert "(1 private memory matches too: use `/memory forget`, or ask me in a DM)" in asked
            shown = set(options(world.general.last_message))
            assert shown == {"2. You feed the cats of a neighbour.", "1. You draw cats for a magazine."}

    async def test_are_asked_about_where_only_the_person_reads(self, start: Start) -> None:
        async with start() as world:
            await world.ann.send_dm(f"!memory remember {self.OSLO}")
            result = await world.ann.slash(world.general, "memory forget", memory="cats")
            assert result.response.content == f"Forget “{self.OSLO_READ}”?"
            await world.ann.send_dm("!memory forget cats")
            assert world.answer(world.ann_dm) == f"Forget “{self.OSLO_READ}”?"
            await world.ann.click(result.response, label="Forget")
            assert result.response.content == f"Forgotten: {self.OSLO_READ}"

    async def test_what_became_private_since_is_not_acted_on_in_the_open(self, start: Start) -> None:
        async with start() as world:
            await remember(world, COFFEE)
            await says(world, "forget coffee")
            question = world.general.last_message
            await world.ann.send_dm(f"!memory private {COFFEE}")
            result = await world.ann.click(question, label="Forget")
            assert result.followups[0].content == (
                "That memory is private now; use `/memory forget`, or ask me in a DM."
            )
            assert await texts(world) == {COFFEE}


class TestQuoting:
    async def test_no_text_pings_or_breaks_out_of_its_quotes(self, start: Start) -> None:
        async with start() as world:
            evil = "” **bold** @everyone <@&1> ||x|| `code` and the word zebra"
            await remember(world, evil)
            asked = await says(world, "forget zebra")
            assert (
                asked
                == 'Forget “" \\*\\*bold\\*\\* @everyone <@&1> \\|\\|x\\|\\| \\`code\\` and the word zebra”?'
            )
            assert not world.general.last_message.mention_everyone

    async def test_what_buttons_and_menus_know_fits_into_discords_limits(self) -> None:
        item = new_item("preference", "words " * 160, source=MANUAL, now_ms=1, facets=Facets())
        for verb in ("forget", "edit", "private", "share", "why"):
            for view in (
                one_view("9" * 20, verb, item, "x" * 32),
                menu_view("9" * 20, verb, [item], "x" * 32),
            ):
                assert all(len(str(getattr(one, "custom_id", ""))) <= 100 for one in view.children)


class TestCompletion:
    async def test_finds_the_words_in_any_order(self, start: Start) -> None:
        async with start() as world:
            await remember(world, COFFEE, NUTS)
            choices = await world.ann.autocomplete(world.general, "memory forget", "memory", "black cof")
            assert [choice["name"] for choice in choices] == [COFFEE_READ]
