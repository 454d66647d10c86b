"""Cards: what slash commands, receipts and questions look like, and what a press on them does."""

import json
import logging
import random
from typing import Any

import discord
import pytest

from tests.contract.brain import is_talk
from tests.contract.cards import button, buttons, every_page, labels, parts, said
from tests.contract.commands import card, refused, told, typed
from tests.contract.world import Start, World
from tests.servers.messages_api import Behaviour, Received

QUIET = {"summary_enabled": False, "extraction_enabled": False}
FACTS = [f"User likes tea number {number}." for number in range(1, 13)]
READ = [f"You like tea number {number}." for number in range(1, 13)]
NOT_YOURS = "These buttons are for somebody else."
CONTAINER, SECTION, TEXT = 17, 9, 10
TABS = "I use tabs"


async def remember(world: World, *texts: str) -> None:
    for text in texts:
        await card(world, "memory remember", text=text)


async def opened(world: World, text: str) -> Any:
    """The card of one memory, with what can be done to it."""
    shown = await card(world)
    while text not in said(shown):
        await world.ann.click(shown, custom_id=button(shown, "▶"))
    row = said(shown).split(text)[0].count("\n-# fact")
    await world.ann.click(shown, custom_id=button(shown, "⋯", row))
    return shown


async def receipt(world: World) -> Any:
    """Ann says something that is learned; the line that says so."""
    world.brain.learns("User likes tea.", about="about tea")
    await world.says(world.ann, world.general, "something about tea")
    return world.general.last_message


async def contradicted(world: World) -> Any:
    """Ann stated that she uses tabs, and her talk says spaces; the question in her DM."""
    await typed(world, f"remember {TABS}")
    await world.env.advance_time(60)  # talk counts against a command only when it is younger
    world.brain.learns({"id": TABS, "kind": "fact", "text": "User uses spaces."}, about="I use spaces")
    await world.says(world.ann, world.general, "I use spaces")
    return world.ann_dm.last_message


def now(world: World, message: Any) -> Any:
    """A message as it is by now."""
    return next(one for one in [*world.general.history(), *world.ann_dm.history()] if one.id == message.id)


async def plainly(world: World, channel: Any, text: str, label: str, custom_id: str) -> Any:
    """A message as the bot sent it before it had cards."""
    bot = world.env.bot
    there = bot.get_channel(channel.id) or await bot.fetch_channel(channel.id)
    view = discord.ui.View()
    view.add_item(discord.ui.Button(label=label, custom_id=custom_id))
    view.stop()
    await there.send(text, view=view)
    return channel.last_message


def posted(world: World, channel: Any) -> list[dict[str, Any]]:
    """What the bot has sent to a channel, what was refused included."""
    path = f"/channels/{channel.id}/messages"
    return [one.json for one in world.env.http_requests if one.method == "POST" and one.path.endswith(path)]


def refusing(world: World, channel: Any, **fault: Any) -> None:
    """Have Discord refuse what the bot sends to a channel once something was learned."""

    path = f"/channels/{channel.id}/messages"
    left = [{"method": "POST", "path": path, "status": 400, "code": 0, "message": "No.", "times": 1, **fault}]

    def learning(request: Received) -> Behaviour:
        if not is_talk(request) and left:
            world.env.backend.faults.append(left.pop())
        return world.brain(request)

    world.server.default = learning


class TestWhatIsRemembered:
    async def test_is_five_memories_a_page_and_what_is_so_now_also_after_a_restart(
        self, start: Start
    ) -> None:
        async with start(**QUIET) as world:
            await remember(world, *FACTS)
            shown = await card(world)
            assert shown.ephemeral and shown.content == ""
            assert "### What I remember about you\n-# 12 memories" in said(shown)
            assert said(shown).count("You like tea number") == 5
            assert "-# fact · <t:" in said(shown) and "from your command" in said(shown)
            assert "(id " not in said(shown)
            forward = button(shown, "▶")
            everything = await every_page(world.ann, shown)
            assert all(fact in everything for fact in READ)
            assert "Summary of this conversation" in said(shown)
            assert [label for label, _ in buttons(shown)][-1] == "◀"
            in_dm = (await world.ann.user.slash("memory show")).response
            await world.ann.user.click(in_dm, custom_id=button(in_dm, "▶"))
            assert in_dm.ephemeral and any(fact in said(in_dm) for fact in READ)
            await world.restart()
            for fact in FACTS[:9]:
                await typed(world, f"forget {fact}")
            await world.ann.click(shown, custom_id=forward)
            assert "3 memories" in said(shown) and "▶" not in dict(buttons(shown))

    async def test_shows_any_text_whole_and_marks_as_they_were_typed(self, start: Start) -> None:
        chance = random.Random(7)
        marks = "*_`|\\#>-1.[]()😀 aé"
        wild = ["# **_`|[" * 125, "> quote", "12. list", "-# small", "a # b - c 1. d", "😀" * 450]
        wild += ["".join(chance.choices(marks, k=chance.randrange(300, 800))) + str(one) for one in range(10)]
        async with start(**QUIET) as world:
            await remember(world, *wild)
            kept = world.memories(world.ann)
            assert len(kept) == len(wild)
            everything = await every_page(
                world.ann, await card(world)
            )  # which simcord checks as Discord does
            titles = (f"-# {len(wild)} memories", "### What I remember about you")
            lines = [line for line in everything.splitlines() if line not in titles]
            readable = "".join("".join(lines).replace("\\", "").split())
            for text in kept:
                assert "".join(text.replace("\\", "").split()) in readable
            assert "\n\\# \\*\\*\\_\\`\\|\\[# " in everything

    async def test_a_memory_is_opened_and_forgotten_made_private_or_explained(self, start: Start) -> None:
        async with start(**QUIET) as world:
            await remember(world, *FACTS)
            shown = await opened(world, READ[2])
            assert said(shown).startswith(f"{READ[2]}\n-# fact · ")
            assert [label for label, _ in buttons(shown)] == [
                "Edit",
                "Use in our DMs only",
                "Why",
                "Forget",
                "Back",
            ]
            await world.ann.click(shown, label="Why")
            assert "you told me directly" in said(shown)
            await world.ann.click(shown, label="Back")
            second = await opened(world, READ[2])
            await world.ann.click(shown, label="Forget")
            assert said(shown).startswith(f"Forgotten: {READ[2]}\n### What I remember")
            assert "11 memories · 1 forgotten" in said(shown) and FACTS[2] not in world.memories(world.ann)
            for label in ("Forget", "Use in our DMs only", "Edit"):
                assert refused(await world.ann.click(second, label=label)) == (
                    "That memory was forgotten since I asked."
                )
            await world.ann.click(shown, label="Undo")
            assert said(shown).startswith("-# taken back\n### What I remember")
            assert sorted(world.memories(world.ann)) == sorted(FACTS)
            back = await opened(world, READ[4])
            await world.ann.click(back, label="Back")
            assert READ[4] in said(back) and "2 of 3" in str(back.components)
            private = await opened(world, READ[0])
            await world.ann.click(private, label="Use in our DMs only")
            assert "🔒 private · fact" in await every_page(world.ann, private)
            private = await opened(world, READ[0])
            await world.ann.click(private, label="Use everywhere")
            assert "🔒" not in await every_page(world.ann, private)

    async def test_a_memory_is_edited_in_a_form_that_outlives_a_restart(self, start: Start) -> None:
        async with start(**QUIET) as world:
            await remember(world, "I like tea")
            shown, other = await opened(world, "I like tea"), await opened(world, "I like tea")
            form, stale = [await world.ann.click(one, label="Edit") for one in (shown, other)]
            field = form.modal["components"][0]["component"]
            assert (field["custom_id"], field["value"]) == ("text", "I like tea")
            await world.restart()
            await world.ann.submit_modal(form, {"text": "I like coffee"})
            assert said(shown).startswith("Edited: I like tea → I like coffee\n### What I remember")
            assert world.memories(world.ann) == ["I like coffee"]
            late = await world.ann.submit_modal(stale, {"text": "I like cake"})
            assert refused(late).startswith("That memory has changed since I asked")
            await world.ann.click(shown, label="Undo")
            assert world.memories(world.ann) == ["I like tea"]
            shown = await opened(world, "I like tea")
            form = await world.ann.click(shown, label="Edit")
            long = await world.ann.submit_modal(form, {"text": "# **_`|" * 571})
            assert refused(long).startswith("A memory can have at most 1000 characters, and")
            form = await world.ann.click(shown, label="Edit")
            await card(world, "memory data optout")
            out = await world.ann.submit_modal(form, {"text": "I like cake"})
            assert refused(out).startswith("You have opted out of memory")
            assert "**You have opted out**" in said(await card(world))
            assert "cake" not in str(world.items(world.ann))

    async def test_is_for_its_person_alone_and_a_press_that_came_too_late_is_told_in_a_dm(
        self, start: Start
    ) -> None:
        async with start(**QUIET) as world:
            await remember(world, "I like tea")
            shown = await opened(world, "I like tea")
            world.env.backend.messages[world.general.id][shown.id].flags = 1 << 15  # as if others saw it
            for label, _ in buttons(shown):
                assert refused(await world.bob.click(shown, label=label)) == NOT_YOURS
            assert world.memories(world.ann) == ["I like tea"]
            shown = await opened(world, "I like tea")
            world.env.inject_error("POST", "/interactions/*/*/callback", status=404, code=10062)
            await world.ann.click(shown, label="Edit")
            assert "too late" in world.answer(world.ann_dm)

    async def test_belongs_to_the_persona_in_which_it_was_shown(self, start: Start) -> None:
        async with start(**QUIET) as world:
            await remember(world, "I like tea")
            await card(world, "memory persona create", name="coding", description="my code")
            personas = await card(world, "memory persona list")
            assert "**main**\n-# 1 memory · current" in said(personas)
            await world.restart()
            await world.ann.click(personas, custom_id=button(personas, "Switch"))
            assert "Your persona is now **coding**." in said(personas)
            assert "**coding**\n“my code”\n-# 1 memory · current" in said(personas)
            of_coding = await card(world)
            menu = button(of_coding, "⋯")
            await card(world, "memory persona switch", name="main")
            personas = await card(world, "memory persona list")
            await card(world, "memory persona delete", name="coding")
            assert "no persona" in refused(
                await world.ann.click(personas, custom_id=button(personas, "Switch"))
            )
            assert "persona" in refused(await world.ann.click(of_coding, custom_id=menu))
            assert "I like tea" in said(of_coding)
            rules = world.data / "memory" / "config.json"
            rules.write_text(f'{{"group:{world.general.id}": {{"persona": "work"}}}}')
            await typed(world, "remember I like milk", world.bob)
            here = await card(world, person=world.bob)
            assert "-# 1 memory · persona work" in said(here)
            await world.bob.click(here, label="⋯")
            await world.bob.click(here, label="Forget")
            assert said(here).startswith("Forgotten: I like milk")
            await world.bob.click(here, label="Undo")
            assert "I like milk\n-# fact" in said(here)
            assert world.memories(world.bob) == []  # which shows the persona that Bob chose himself

    async def test_a_search_turns_its_pages_with_a_question_of_any_length(self, start: Start) -> None:
        async with start(auto_save="all", respond_mode="mention", **QUIET) as world:
            for number in range(8):
                await world.ann.send(world.general, f"zebra number {number}")
            await world.settle()
            shown = await card(world, "search", query="zebra " + "*_`[|\\" * 60)
            assert said(shown).count("[open it]") == 5
            await world.restart()
            assert (await every_page(world.ann, shown)).count("`zebra number") == 8


class TestAReceipt:
    async def test_is_small_silent_print_that_is_taken_back_with_a_press(self, start: Start) -> None:
        async with start(receipts=True, summary_enabled=False) as world:
            message = await receipt(world)
            assert message.flags.components_v2 and message.flags.suppress_notifications
            kinds = [one["type"] for one in parts(message)]
            assert kinds.count(SECTION) == 1 and CONTAINER not in kinds
            assert (said(message), labels(message)) == ("-# remembered: You like tea.", ["Undo"])
            await world.says(world.ann, world.general, "that is not quite right", reply_to=message)
            assert "remembered: You like tea." in world.prompt  # a card that somebody replies to is quoted
            await world.restart()
            await world.says(world.ann, world.general, "and now?")
            assert "something about tea" in world.prompt
            assert "remembered:" not in world.prompt.partition("Recent conversation:")[2]
            assert "]: \n" not in world.prompt
            await world.ann.click(message, label="Undo")
            message = now(world, message)
            assert said(message).startswith("-# taken back")
            assert {one["type"] for one in parts(message)} == {TEXT}
            assert world.memories(world.ann) == []

    async def test_that_came_too_late_says_so_and_leaves_nothing_to_press(self, start: Start) -> None:
        async with start(receipts=True, summary_enabled=False) as world:
            message = await receipt(world)
            await typed(world, "undo")
            assert refused(await world.ann.click(message, label="Undo")) == "That is done already."
            left = now(world, message)
            assert (said(left), labels(left)) == ("-# remembered: You like tea.", [])

    async def test_that_was_deleted_is_undone_all_the_same(self, start: Start) -> None:
        async with start(receipts=True, summary_enabled=False) as world:
            message = await receipt(world)
            world.env.inject_error("PATCH", "/webhooks/*/messages/@original", status=404, code=10008)
            result = await world.ann.click(message, label="Undo")
            assert result.followups[-1].content.startswith("-# taken back")
            assert world.memories(world.ann) == []


class TestAQuestion:
    async def test_has_a_frame_with_both_sides_and_is_settled_once(self, start: Start) -> None:
        async with start(summary_enabled=False) as world:
            message = await contradicted(world)
            assert parts(message)[0]["type"] == CONTAINER
            assert labels(message) == ["Keep the old", "Use the new", "Keep both"]
            listed = await card(world, "memory settle")
            assert "## Which is right?\n-# 1 question" in said(listed)
            assert labels(listed) == ["Keep the old", "Use the new", "Keep both"]
            await world.restart()
            before = said(message)
            await world.ann.click(listed, label="Keep both")
            await world.settle()
            assert "There is nothing to settle." in said(listed)
            message = world.ann_dm.last_message
            assert said(message) == f"{before}\n-# settled meanwhile" and labels(message) == []
            assert parts(message)[0]["type"] == CONTAINER
            assert sorted(world.memories(world.ann)) == [TABS, "User uses spaces."]
            await world.says(world.ann, world.ann_dm, "and here?")
            assert "Which is right" not in world.prompt

    async def test_is_answered_in_the_dm_where_it_stays_in_its_frame(self, start: Start) -> None:
        async with start(summary_enabled=False) as world:
            message = await contradicted(world)
            listed = await card(world, "memory settle")
            await world.ann.user.click(message, label="Keep the old")
            assert said(now(world, message)).startswith("-# Settled")
            assert parts(now(world, message))[0]["type"] == CONTAINER
            assert refused(await world.ann.click(listed, label="Use the new")) == "That is done already."
            assert world.memories(world.ann) == [TABS]

    @pytest.mark.parametrize("deleted", [False, True])
    async def test_says_nothing_that_was_taken_back_and_makes_room_for_the_next(
        self, start: Start, deleted: bool
    ) -> None:
        async with start(summary_enabled=False) as world:
            message = await contradicted(world)
            if deleted:
                await message.delete()
            await typed(world, f"forget {TABS}")
            await world.settle()
            if not deleted:
                message = world.ann_dm.last_message
                assert (
                    said(message) == "-# a question about something that you took back\n-# settled meanwhile"
                )
                assert labels(message) == []
            cursor = world.data / "memory" / "cursors" / f"questions-{world.ann.id}.json"
            assert cursor.read_text().strip() == "{}"


class TestAMessageFromBeforeThereWereCards:
    async def test_takes_back_what_was_learned(self, start: Start) -> None:
        async with start(summary_enabled=False) as world:
            await receipt(world)
            stored = (world.data / "memory" / "ledger" / f"user-{world.ann.id}.jsonl").read_text()
            head = json.loads(stored.splitlines()[-1])["id"]
            custom_id = f"undo:{world.ann.id}:{head}:main"
            old = await plainly(world, world.general, "-# remembered: You like tea.", "Undo", custom_id)
            await world.restart()
            assert refused(await world.bob.click(old, label="Undo")) == NOT_YOURS
            await world.ann.click(old, label="Undo")
            old = now(world, old)
            assert old.content.startswith("-# taken back\n")
            assert (labels(old), old.flags.components_v2) == ([], False)
            assert world.memories(world.ann) == []

    @pytest.mark.parametrize("how", ["pressed", "elsewhere", "taken back"])
    async def test_settles_a_question_and_is_closed_with_it(self, start: Start, how: str) -> None:
        async with start(summary_enabled=False) as world:
            message = await contradicted(world)
            text = f"-# a question about what I remember about you\nYou told me “{TABS}”. Which is right?"
            old = await plainly(world, world.ann_dm, text, "Keep the old", button(message, "Keep the old"))
            cursor = world.data / "memory" / "cursors" / f"questions-{world.ann.id}.json"
            cursor.write_text(cursor.read_text().replace(str(message.id), str(old.id)))
            await world.restart()
            if how == "pressed":
                await world.ann.user.click(old, label="Keep the old")
                assert now(world, old).content.startswith(f"-# Settled: I keep “{TABS}”.")
                assert world.memories(world.ann) == [TABS]
                return
            if how == "elsewhere":
                await world.ann.click(await card(world, "memory settle"), label="Keep the old")
            else:
                await typed(world, f"forget {TABS}")
                text = "-# a question about something that you took back"
            await world.settle()
            closed = now(world, old)
            assert (closed.content, labels(closed)) == (f"{text}\n-# settled meanwhile", [])


class TestWhereDiscordTakesNoCard:
    async def test_a_list_is_said_as_a_text_once(self, start: Start) -> None:
        async with start(**QUIET) as world:
            await remember(world, "I like tea")
            world.env.inject_error("POST", "/webhooks/*", status=400, code=50035)
            answer = told(await world.ann.slash(world.general, "memory show"))
            assert answer.count("- [fact] I like tea (id ") == 1
            assert answer.count("Discord didn't take this as a card") == 1

    async def test_a_receipt_is_a_text_with_its_button(self, start: Start) -> None:
        async with start(receipts=True, summary_enabled=False) as world:
            refusing(world, world.general, code=50035)
            message = await receipt(world)
            assert (message.content, labels(message)) == ("-# remembered: You like tea.", ["Undo"])
            assert message.flags.suppress_notifications
            assert posted(world, world.general)[-1]["allowed_mentions"] == {"parse": []}
            await world.ann.click(message, label="Undo")
            assert now(world, message).content.startswith("-# taken back")
            assert world.memories(world.ann) == []

    async def test_a_question_is_a_text_with_its_buttons_and_no_talk(self, start: Start) -> None:
        async with start(summary_enabled=False) as world:
            refusing(world, world.ann_dm, code=50035)
            question = await contradicted(world)
            first, title, *_ = question.content.splitlines()
            assert "Discord didn't take this as a card" in first and title.startswith("**Which is right?**")
            assert f"You told me “{TABS}”" in question.content
            assert labels(question) == ["Keep the old", "Use the new", "Keep both"]
            await world.restart()
            await world.says(world.ann, world.ann_dm, "hello")
            assert "Which is right" not in world.prompt
            await world.ann.user.click(question, label="Use the new")
            assert now(world, question).content.startswith("-# Settled: from now on I use")

    async def test_what_waits_for_a_yes_is_asked_in_a_text(self, start: Start) -> None:
        async with start(asks_first=True, summary_enabled=False) as world:
            refusing(world, world.general)
            world.brain.learns("User likes tea.", "User likes milk.", about="tea with milk")
            await world.says(world.ann, world.general, "tea with milk")
            message = world.general.last_message
            asked = "-# may I remember: You like tea.\n-# may I remember: You like milk."
            assert (message.content, labels(message)) == (asked, ["Yes", "No", "Choose"])
            await world.ann.click(message, label="No")
            assert "may I remember" not in said(now(world, message))
            assert world.memories(world.ann) == []

    async def test_a_channel_that_takes_nothing_is_asked_once(
        self, start: Start, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.INFO)
        async with start(receipts=True, summary_enabled=False) as world:
            refusing(world, world.general, status=403, code=50013, times=None)
            await receipt(world)
            assert len([one for one in posted(world, world.general) if "remembered" in str(one)]) == 1
            assert "a receipt could not be sent" in caplog.text
