"""What people see and do with `!memory` and `/memory`."""

import re
from typing import Any

import discord
import pytest

from discoclaw.core.item import item_id
from tests.app.conftest import Start
from tests.app.models import Scripted
from tests.contract.cards import said


def size(command: Any) -> int:
    """What Discord counts of a command: names, descriptions and values, at most 8,000 characters."""
    choices = sum(len(choice["name"]) + len(str(choice["value"])) for choice in command.get("choices") or [])
    below = sum(size(option) for option in command.get("options") or [])
    return len(command["name"]) + len(command.get("description") or "") + choices + below


class TestTextCommands:
    async def test_remember_show_forget(self, start: Start) -> None:
        async with start() as world:
            await world.ann.send(world.general, "!memory remember   I am   allergic to nuts ")
            first, hint = world.answer(world.general).splitlines()
            assert first == "Remembered: I am allergic to nuts"
            assert hint.startswith("(used in every channel; `!memory private ")
            await world.ann.send(world.general, "!memory remember i am ALLERGIC to nuts")
            assert world.answer(world.general) == "I already remember that: I am allergic to nuts"
            await world.ann.send(world.general, "!memory")
            assert "- [fact] I am allergic to nuts (id " in world.answer(world.general)
            await world.ann.send(world.general, "!memory forget allergic to nuts")
            assert world.answer(world.general) == "Forgotten: I am allergic to nuts"
            await world.ann.send(world.general, "!memory show")
            assert "allergic" not in world.answer(world.general)
            assert "1 forgotten, still in your history" in world.answer(world.general)
            await world.ann.send(world.general, "!memory remember I am allergic to nuts")
            await world.ann.send(world.general, "!memory show")
            assert "- [fact] I am allergic to nuts" in world.answer(world.general)

    @pytest.mark.parametrize(
        ("said", "answer"),
        [
            ("!memory remember", "Please use it like this: `!memory remember <text>`"),
            ("!memory forget", "Please use it like this: `!memory forget <words or id>`"),
            ("!memory forget nothing like it", "I remember nothing that matches"),
            ("!memory reset", "Did you mean `!memory reset rolling`?"),
            ("!memory zzz", "There is no `!memory zzz`.\n**How to see"),
            ("!memory rember tea", "There is no `!memory rember`. Did you mean `!memory remember`?"),
            ("!memory reset rollin", "Did you mean `!memory reset rolling`?"),
            ("!memory edit", "Please use it like this: `!memory edit <words or id> => <new text>`"),
            ("!memory edit nothing like it", "Please use it like this: `!memory edit "),
            ("!memory edit nothing => something", "I remember nothing that matches"),
            ("!memory help data", "**Your data**: take your memory with you, "),
            (
                "!memory help log",
                "`!memory history log [--oneline] [--limit n] [persona]`\nWhat changed",
            ),
            ("!memory help", "**How to see and change what I remember about you**\n`!memory show` – "),
            ("!MEMORY HELP", "**How to see and change what I remember about you**"),
            ("!memory share nothing", "I remember nothing that matches"),
        ],
    )
    async def test_what_is_not_right_is_answered_with_the_way_out(
        self, start: Start, said: str, answer: str
    ) -> None:
        async with start() as world:
            await world.ann.send(world.general, said)
            assert world.answer(world.general).startswith(answer)
            assert world.env.errors == []

    @pytest.mark.parametrize(
        "form", ["{id} {new}", "durable-{id} => {new}", "{old} => {new}", "{old} → {new}"]
    )
    async def test_an_item_is_edited_by_id_or_text(self, start: Start, form: str) -> None:
        async with start() as world:
            old, new = "My cat is called Tom", "My cat => Tim"
            await world.ann.send(world.general, f"!memory remember {old}")
            short = item_id("fact", old).removeprefix("durable-")
            await world.ann.send(world.general, "!memory edit " + form.format(id=short, old=old, new=new))
            assert world.answer(world.general) == f"Edited: {old} → {new}"
            await world.ann.send(world.general, "!memory show")
            assert f"- [fact] {new} (id {short}" in world.answer(world.general)
            await world.ann.send(world.general, f"!memory edit {short} {new}")
            assert world.answer(world.general) == f"It says that already: {new}"

    async def test_to_remember_one_thing_costs_no_other_and_where_it_must_that_is_said(
        self, start: Start
    ) -> None:
        async with start(max_items=2) as world:
            for words in ("remember I like tea", "edit I like tea => I like coffee", "remember I like tea"):
                await world.ann.send(world.general, f"!memory {words}")
            assert world.answer(world.general) == "Remembered: I like tea"
            await world.ann.send(world.general, "!memory show")
            assert "I like coffee" in world.answer(world.general)
            await world.ann.send(world.general, "!memory remember I like milk")
            assert "2 memories at most, so I forgot the oldest" in world.answer(world.general)

    async def test_secrets_are_left_out_of_an_edit_too(self, start: Start) -> None:
        async with start() as world:
            key = "ghp_" + "a1" * 20
            await world.ann.send(world.general, "!memory remember my key")
            await world.ann.send(world.general, f"!memory edit my key => my key is {key}")
            assert world.answer(world.general).endswith("(I left out what looks like a secret key.)")
            assert key not in world.answer(world.general)

    async def test_memory_that_is_switched_off_says_so(self, start: Start) -> None:
        async with start(durable_enabled=False) as world:
            for words in ("show", "log", "undo", "branches", "erase", "export", "settle", "verify"):
                await world.ann.send(world.general, f"!memory {words}")
                assert world.answer(world.general) == (
                    "My memory is switched off here; whoever runs me can switch it on with "
                    "DISCOCLAW_DURABLE_MEMORY_ENABLED and DISCOCLAW_STORE."
                )

    async def test_switched_off_it_completes_nothing_and_buttons_say_so(self, start: Start) -> None:
        async with start() as world:
            await world.ann.send(world.general, "!memory remember I like tea")
            await world.env.advance_time(60)
            await world.ann.send(world.general, "!memory erase")
            message = world.general.last_message
            await world.restart(durable_enabled=False)
            assert await world.ann.autocomplete(world.general, "memory forget", "memory", "") == []
            result = await world.ann.click(message, label="Erase everything")
            assert result.followups[0].content.startswith("My memory is switched off here;")
            await world.ann.send(world.general, "!memory autoswitch on")  # a choice needs no memory
            assert "by myself" in world.answer(world.general)

    async def test_the_help_for_all_arrives_whole(self, start: Start) -> None:
        async with start() as world:
            await world.ann.send(world.general, "!memory help all")
            told = "\n".join(world.shown(world.general)[1:])
            assert told.startswith("**How to see and change what I remember about you**")
            assert "`!memory persona autoswitch on|off` – " in told
            assert "`!nostr push` – " in told
            await world.ann.send(world.general, "!memory history")
            assert world.answer(world.general).startswith("**History**: ")
            assert "`!memory log`" in world.answer(world.general)

    async def test_times_are_discords_but_spelled_out_in_a_file(self, start: Start) -> None:
        async with start() as world:
            await world.ann.send(world.general, "!memory remember I like tea")
            await world.ann.send(world.general, "!memory show")
            assert re.search(r"updated <t:\d+:R>\)", world.answer(world.general))
            for number in range(60):
                await world.ann.send(world.general, f"!memory remember {number} " + "long words " * 20)
            await world.ann.send(world.general, "!memory show")
            (file,) = world.general.last_message.attachments
            content = (await file.read()).decode()
            assert "<t:" not in content
            assert content.count(f"updated {world.env.now():%a %Y-%m-%d %H:%M} UTC)") == 61

    async def test_a_memory_too_long_is_refused_with_the_limit(self, start: Start) -> None:
        async with start() as world:
            await world.ann.send(world.general, "!memory remember " + "x" * 1500)
            assert "at most 1000 characters" in world.answer(world.general)

    async def test_a_long_list_arrives_whole_as_a_file(self, start: Start) -> None:
        async with start() as world:
            for number in range(60):
                await world.ann.send(world.general, f"!memory remember {number} " + "long words " * 20)
            await world.ann.send(world.general, "!memory show")
            (file,) = world.general.last_message.attachments
            assert file.filename == "memory.md"
            assert all(len(text) <= 2000 for text in world.shown(world.general))

    async def test_other_words_with_an_exclamation_mark_go_to_the_model(self, start: Start) -> None:
        model = Scripted()
        async with start(model) as world:
            await world.ann.send(world.general, "!memoryless is a word")
            assert "!memoryless is a word" in model.prompt

    @pytest.mark.design(234)
    async def test_commands_can_be_switched_off(self, start: Start) -> None:
        model = Scripted()
        async with start(model, commands_enabled=False) as world:
            await world.ann.send(world.general, "!memory show")
            assert "!memory show" in model.prompt

    @pytest.mark.design(233)
    async def test_a_command_waits_for_the_turn_before_it(self, start: Start) -> None:
        model = Scripted("one answer")
        async with start(model) as world:
            await world.ann.send(world.general, "a question")
            await world.ann.send(world.general, "!memory remember tea")
            assert world.shown(world.general)[1::2] == ["one answer", "Remembered: tea"]


class TestSlashCommands:
    async def test_do_the_same_and_only_the_person_sees_it(self, start: Start) -> None:
        async with start() as world:
            result = await world.ann.slash(world.general, "memory remember", text="I like tea")
            assert result.ephemeral
            assert result.response.content == "Remembered: I like tea"
            shown = await world.ann.slash(world.general, "memory show")
            assert "I like tea\n-# fact" in said(shown.response)
            assert world.shown(world.general) == []

    async def test_items_complete_while_one_types(self, start: Start) -> None:
        async with start() as world:
            await world.ann.slash(world.general, "memory remember", text="I like tea")
            await world.ann.slash(world.general, "memory remember", text="My cat is called Tom")
            choices = await world.ann.autocomplete(world.general, "memory forget", "memory", "cat")
            assert [choice["name"] for choice in choices] == ["My cat is called Tom"]
            result = await world.ann.slash(world.general, "memory forget", memory=choices[0]["value"])
            assert result.response.content == "Forgotten: My cat is called Tom"
            assert await world.bob.autocomplete(world.general, "memory forget", "memory", "") == []

    async def test_what_is_personal_and_edited_unseen_stays_unseen(self, start: Start) -> None:
        async with start() as world:
            await world.ann.send(world.general, "!memory remember I like tea")
            edited = await world.ann.slash(
                world.general, "memory edit", memory="I like tea", text="I take pills against anxiety"
            )
            assert "private: I use it in our DMs only" in edited.response.content
            await world.ann.send(world.general, "!memory show")
            assert "pills" not in world.answer(world.general)
            again = await world.ann.slash(
                world.general, "memory edit", memory="I take pills against anxiety", text="I like cocoa"
            )
            assert again.response.content == "Edited: I take pills against anxiety → I like cocoa"

    async def test_editing_completes_and_takes_both_fields(self, start: Start) -> None:
        async with start() as world:
            await world.ann.slash(world.general, "memory remember", text="My cat is called Tom")
            choices = await world.ann.autocomplete(world.general, "memory edit", "memory", "cat")
            result = await world.ann.slash(
                world.general, "memory edit", memory=choices[0]["value"], text="My cat is called Tim"
            )
            assert result.response.content == "Edited: My cat is called Tom → My cat is called Tim"

    async def test_all_of_them_fit_into_what_discord_takes(self, start: Start) -> None:
        async with start() as world:
            names = world.ann.available_commands(world.general)
            children = {name.split()[1] for name in names if name.startswith("memory ")}
            assert len(children) == 19
            assert {"memory persona copy", "memory why", "memory data optout", "search"} <= set(names)
            for command in world.app.client.tree.get_commands():
                assert size(command.to_dict(world.app.client.tree)) <= 8000

    async def test_a_summary_is_reset_by_its_new_name_and_by_its_old_one(self, start: Start) -> None:
        async with start() as world:
            result = await world.ann.slash(world.general, "memory data reset-summary")
            assert result.response.content == "I cleared the summary of this conversation."
            await world.ann.send(world.general, "!memory reset rolling")
            assert world.answer(world.general) == "I cleared the summary of this conversation."

    async def test_are_synced_once_and_again_only_when_they_changed(self, start: Start) -> None:
        async with start() as world:

            def syncs() -> int:
                return sum(
                    1
                    for request in world.env.http_requests
                    if request.method == "PUT" and request.path.endswith("/commands")
                )

            assert syncs() == 1
            await world.restart()
            assert syncs() == 1
            await world.restart(commands_enabled=False)
            assert syncs() == 2


class TestPrivateItems:
    async def test_a_question_which_one_is_meant_does_not_tell_them_in_the_open(self, start: Start) -> None:
        async with start() as world:
            for place in ("Oslo north", "Oslo south"):
                await world.ann.send_dm(f"!memory remember I live in {place}")
            await world.ann.send(world.general, "!memory share I live in Oslo")
            assert "Only 2 private memories match" in world.answer(world.general)
            assert "Oslo north" not in world.answer(world.general)

    async def test_what_is_personal_and_said_unseen_stays_private(self, start: Start) -> None:
        async with start() as world:
            said = "My doctor says I have diabetes"
            result = await world.ann.slash(world.general, "memory remember", text=said)
            assert "(private: I use it in our DMs only" in result.response.content
            await world.ann.send(world.general, "!memory show")
            assert "diabetes" not in world.answer(world.general)

    @pytest.mark.design(318)
    async def test_a_fact_from_a_direct_message_stays_there_until_shared(self, start: Start) -> None:
        async with start() as world:
            ann = world.ann
            await ann.send_dm("!memory remember I live in Oslo")
            await ann.send(world.general, "What else do you remember about me?")
            assert "Oslo" not in world.answer(world.general)
            await ann.send(world.general, "!memory show")
            assert "Oslo" not in world.answer(world.general)
            assert "(1 private memory: use `/memory show`, or ask me in a DM)" in world.answer(world.general)
            await ann.send(world.general, "!memory forget I live in Oslo")
            assert "Only a private memory matches that" in world.answer(world.general)
            assert "Oslo" not in world.answer(world.general)
            shown = await ann.slash(world.general, "memory show")
            assert "I live in Oslo" in said(shown.response)
            await ann.send_dm("What else do you remember about me?")
            assert "Oslo" in world.answer(world.ann_dm)

            result = await ann.slash(world.general, "memory share", memory="I live in Oslo")
            assert "everywhere" in result.response.content
            await ann.send(world.general, "What else do you remember about me?")
            assert "Oslo" in world.answer(world.general)
            await ann.send(world.general, "!memory private I live in Oslo")
            await ann.send(world.general, "What else do you remember about me?")
            assert "Oslo" not in world.answer(world.general)

    async def test_what_is_learned_in_a_hidden_channel_is_not_told_in_an_open_one(self, start: Start) -> None:
        model = Scripted()
        async with start(model) as world:
            staff = world.guild.create_role("staff", permissions=discord.Permissions.all())
            ann = world.guild.add_member(world.env.create_user("anna"), roles=[staff])
            model.facts = ['{"upserts": [{"kind": "project", "text": "User builds the Falcon rocket."}]}']
            await ann.send(world.hidden, "the Falcon rocket goes well")
            await world.settle()
            await ann.send(world.general, "how is the Falcon rocket?")
            assert "builds the Falcon" not in model.prompt
            await ann.send_dm("how is the Falcon rocket?")
            assert "User builds the Falcon rocket." in model.prompt

    @pytest.mark.parametrize(("rule", "told"), [("strict", False), ("balanced", True), ("open", True)])
    @pytest.mark.design(318)
    async def test_preferences_follow_as_the_rule_says(self, start: Start, rule: str, told: bool) -> None:
        model = Scripted()
        async with start(model, dm_privacy=rule) as world:
            model.facts = ['{"upserts": [{"kind": "preference", "text": "User prefers short answers."}]}']
            await world.ann.send_dm("keep it short")
            await world.settle()
            await world.ann.send(world.general, "explain monads")
            assert ("User prefers short answers." in model.prompt) is told
