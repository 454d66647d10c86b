"""What the bot learns from talk: when, from whose words, for which persona, and what it asks about."""

import asyncio
import json
from typing import Any

import discord
import pytest

from tests.contract.brain import own_lines
from tests.contract.embedding import near, ready, sent
from tests.contract.published import arrives
from tests.contract.tools import commits
from tests.contract.world import Start, World
from tests.servers.embeddings_api import EmbeddingsServer
from tests.servers.messages_api import failure, json_answer

QUIET = {"summary_enabled": False}
NOTHING = {"upserts": [], "deprecations": []}
WEEK_S = 7 * 86_400
PASTED = "[Memory context]\n- pet: User has a red dog. [links: vet]\n[/Memory context]\n\n"


def learned_from(world: World) -> list[str]:
    """What each extraction was shown, oldest first."""
    return [request.prompt for request in world.background("upserts")]


class TestWhen:
    @pytest.mark.design(140, 164, 217, 218, 255)
    async def test_is_every_ten_messages_of_a_person_wherever_they_talk(self, start: Start) -> None:
        async with start(durable_every=10, summary_every=5, context_history=100) as world:
            for number in range(9):
                await world.says(world.ann, (world.general, world.dev)[number % 2], f"turn {number}")
                await world.says(world.bob, world.general, f"other {number}")
            assert learned_from(world) == []
            world.brain.writes("upserts", failure(401, "authentication_error"), NOTHING)
            await world.says(world.ann, world.dev, "turn 9")
            assert len(learned_from(world)) == 1
            assert all(f"turn {number}" in learned_from(world)[0] for number in range(10))
            assert world.items(world.ann) == []
            await world.says(world.ann, world.dev, "turn 10")  # the failed run began a new count
            assert len(learned_from(world)) == 1
            await world.restart()  # eleven turns of Ann's are in no extraction, and nine of Bob's
            await world.settle()
            assert len(learned_from(world)) == 2
            assert all(f"turn {number}" in learned_from(world)[1] for number in range(11))
            await world.says(world.bob, world.general, "other 9")
            assert len(learned_from(world)) == 3
            assert all(f"other {number}" in learned_from(world)[2] for number in range(10))

    @pytest.mark.design(141)
    async def test_is_also_before_words_leave_the_window(self, start: Start) -> None:
        async with start(durable_every=1000, context_history=4, **QUIET) as world:
            for number in range(2):
                await world.says(world.ann, world.general, f"message {number}")
            assert learned_from(world) == []
            await world.says(world.ann, world.general, "message 2")
            (prompt,) = learned_from(world)
            assert "message 0" in prompt

    async def test_is_after_a_restart_too_though_others_talk_on(self, start: Start) -> None:
        every = {"durable_every": 4, "summary_every": 4, "respond_mode": "mention", "catch_up_hours": 0}
        async with start(**every) as world:
            for number in range(3):
                await world.says(world.ann, world.general, f"{world.mention} I keep goat number {number}.")
            await world.restart()
            for number in range(60):
                await world.bob.send(world.general, f"chatter {number}")
            await world.says(world.ann, world.general, f"{world.mention} And a cow.")
            for field in ("summary", "upserts"):
                shown = "".join(request.prompt for request in world.background(field))
                assert all(f"goat number {number}" in shown for number in range(3)), field

    @pytest.mark.design(233)
    async def test_loses_no_command_that_is_typed_meanwhile(self, start: Start) -> None:
        async with start(**QUIET) as world:
            hold = asyncio.Event()
            boats = {"kind": "fact", "text": "User likes boats", "source": "m1", "quote": "I like boats"}
            world.brain.writes("upserts", json_answer({**NOTHING, "upserts": [boats]}, hold=hold), NOTHING)
            world.env.settle_timeout = 0.1
            with pytest.raises(Exception, match="did not settle"):
                await world.ann.send(world.general, "I like boats")
            await arrives(lambda: learned_from(world))
            with pytest.raises(Exception, match="did not settle"):
                await world.ann.send(world.dev, "!memory remember I like tea")
            await arrives(lambda: world.memories(world.ann) == ["I like tea"])
            hold.set()
            world.env.settle_timeout = 20
            await world.settle()
            assert set(world.memories(world.ann)) == {"I like tea", "User likes boats"}


class TestFromWhat:
    @pytest.mark.design(132, 142)
    async def test_is_both_sides_without_pasted_memory(self, start: Start) -> None:
        async with start(**QUIET) as world:
            world.brain.says("It is green.")
            await world.says(world.ann, world.general, f"{PASTED}What colour is tea?")
            (request,) = world.background("upserts")
            read = str(request.body["messages"])
            assert "What colour is tea?" in read and "It is green." in read
            assert "red dog" not in read and "[Memory context]" not in read
            assert "temperature" not in request.body
            assert "red dog" not in json.dumps(commits(world))

    async def test_is_only_ones_own_words_that_were_really_said(self, start: Start) -> None:
        async with start(respond_mode="mention", **QUIET) as world:
            told = await world.bob.send(world.general, "Ann hates all cats")
            cases: list[tuple[str, dict[str, str]]] = [
                ("yes, one", {"source": "Ann hates all cats"}),
                ("yes, two", {"quote": "I hate all cats"}),
                ("> I hate all cats\nthat is nonsense, three", {"quote": "I hate all cats"}),
                ("look, four\n```\nI hate all cats\n```", {"quote": "I hate all cats"}),
            ]
            for number, (words, proposal) in enumerate(cases):
                text = f"User hates cats, {number}."
                world.brain.learns({"kind": "fact", "text": text, **proposal}, about=words[-8:])
                await world.says(world.ann, world.general, f"{words} {world.mention}")
            world.brain.learns(
                {"kind": "fact", "text": "User hates cats.", "quote": "Ann hates all"}, about="forw"
            )
            await world.ann.forward(told, world.general)
            await world.says(world.ann, world.general, f"{world.mention} forwarded")
            assert len(learned_from(world)) == 5 and world.memories(world.ann) == []
            world.brain.learns("User sails.", about="I sail")
            await world.says(world.ann, world.general, f"{world.mention} I sail")
            assert world.memories(world.ann) == ["User sails."]
            assert world.memories(world.bob) == []

    async def test_is_nothing_of_guests_deleted_messages_and_people_who_opted_out(self, start: Start) -> None:
        async with start(durable_every=2, respond_mode="mention", **QUIET) as world:
            regret = await world.ann.send(world.general, f"{world.mention} a regret")
            await world.settle()
            await world.ann.delete(regret)
            await world.bob.send(world.general, f"{world.mention} I have a dog")
            await world.says(world.bob, world.general, "!memory optout")
            await world.env.advance_time(2)
            await world.says(world.bob, world.general, f"{world.mention} and a bird")
            for words in ("a fact", "and another", "and a third"):
                await world.says(world.ann, world.general, f"{world.mention} {words}")
            shown = "".join(learned_from(world))
            assert "a fact" in shown and "and another" in shown
            assert [one for one in ("a regret", "a dog", "a bird") if one in shown] == []
            await world.says(world.bob, world.general, "!memory optin")
            await world.env.advance_time(2)
            for words in ("I have a horse", "and a cow"):
                await world.says(world.bob, world.general, f"{world.mention} {words}")
            shown = "".join(learned_from(world))
            assert "a horse" in shown and "a dog" not in shown and "a bird" not in shown
            friends = world.guild.create_role("friends")  # a guest who may talk later
            allowed = frozenset({str(friends.id)})
            await world.restart(allow_roles=allowed, allow_users=frozenset({str(world.ann.id)}))
            await world.says(world.ann, world.general, f"{world.mention} hello")
            before = len(world.turns())
            await world.says(world.bob, world.general, f"{world.mention} I live in Bern")
            assert len(world.turns()) == before
            member = await world.env.bot.guilds[0].fetch_member(world.bob.id)
            await member.edit(roles=[discord.Object(friends.id)])
            await world.settle()
            for words in ("I sail, too", "and I row"):
                await world.says(world.bob, world.general, f"{world.mention} {words}")
            own = "".join(own_lines(learned_from(world)[-1]).values())
            assert "I sail, too" in own and "Bern" not in own

    async def test_is_apart_in_private_and_in_the_open_and_for_each_persona(self, start: Start) -> None:
        sorry = "I am sorry about your therapy."
        async with start(durable_every=3, personas="dev=coding", **QUIET) as world:
            world.brain.says(sorry, about="Good morning")
            world.brain.says("Noted.", about="vim")
            world.brain.learns({"kind": "fact", "text": "User had a hard night."}, about="Good morning")
            world.brain.learns("User uses vim.", about="I use vim")
            world.brain.learns("User writes Go.", about="I write Go")
            for words in ("I write Go.", "and more", "and more"):
                await world.says(world.ann, world.dev, words)
            await world.says(world.ann, world.general, "My name is Ann.")
            await world.says(world.ann, world.ann_dm, "Good morning.")
            await world.says(world.ann, world.general, "I use vim.")
            _, in_the_open, in_the_dm = learned_from(world)
            assert "I use vim." in in_the_open and "Noted." in in_the_open
            assert sorry not in in_the_open and "Good morning." not in in_the_open
            assert "Good morning." in in_the_dm and sorry in in_the_dm and "Noted." not in in_the_dm
            assert "writes Go" not in in_the_open
            shown = await world.says(world.ann, world.dev, "!memory show")
            assert "You write Go." in shown and "vim" not in shown
            shown = await world.says(world.ann, world.general, "!memory show")
            assert "You use vim." in shown and "Go" not in shown
            assert "hard night" not in shown  # what is learned in a DM is private
            assert "hard night" in await world.says(world.ann, world.ann_dm, "!memory show")

    async def test_is_beside_what_was_said_to_the_same_persona_and_nothing_said_to_one_that_is_gone(
        self, start: Start
    ) -> None:
        async with start(durable_every=2, respond_mode="mention", **QUIET) as world:

            async def typed(words: str) -> None:
                await world.env.advance_time(1)
                await world.says(world.ann, world.general, f"!memory {words}")
                await world.env.advance_time(1)

            await typed("create-branch coding")
            await world.says(world.ann, world.general, f"{world.mention} I am sad")
            await world.bob.send(world.general, "oh no")
            await typed("checkout coding")
            await world.bob.send(world.general, "which editor?")
            await world.says(world.ann, world.general, f"{world.mention} I use vim")
            sad, vim = sorted(learned_from(world), key=lambda prompt: "I use vim" in prompt)
            assert ("I am sad" in sad, "oh no" in sad, "editor" in sad, "vim" in sad) == (
                True,
                True,
                False,
                False,
            )
            assert ("which editor?" in vim, "sad" in vim, "oh no" in vim) == (True, False, False)
            await world.says(world.ann, world.general, f"{world.mention} Good morning.")
            before = len(learned_from(world))
            await typed("checkout main")
            await typed("delete-branch coding")
            for words in ("My name is Ann.", "Indeed."):
                await world.says(world.ann, world.general, f"{world.mention} {words}")
            shown = "".join(learned_from(world)[before:])
            assert "My name is Ann." in shown and "Good morning." not in shown  # a persona that is gone


class TestWhatItBecomes:
    @pytest.mark.design(280, 289, 338)
    async def test_is_checked_against_what_is_known_and_a_stated_thing_is_asked_about(
        self, start: Start
    ) -> None:
        async with start() as world:
            await world.remember(world.ann, "I use tabs")
            await world.env.advance_time(60)
            spaces = {"kind": "fact", "text": "User uses spaces.", "id": "I use tabs"}
            world.brain.learns("User has a cat.", spaces, about="keyboard")
            await world.says(world.ann, world.general, "my cat sits on the keyboard, so I use spaces")
            added, observed = commits(world)[-1]["events"]
            assert (added["event_type"], added["object"], added["scope"]) == (
                "add",
                "User has a cat.",
                "permanent",
            )
            assert (observed["event_type"], observed["object"]) == ("observe", "I use tabs")
            assert observed["ext"]["conflict"]["text"] == "User uses spaces."
            for one in (added, observed):
                assert one["source"].rpartition("/")[0] == f"discord:{world.general.id}"
            question = world.answer(world.ann_dm)
            assert "Which is right?" in question and "\nYou told me “I use tabs”\n" in question
            assert "\nLater talk suggests “You use spaces.”\n" in question
            assert set(world.memories(world.ann)) == {"I use tabs", "User has a cat."}

    @pytest.mark.design(143)
    async def test_has_keys_categories_and_links_both_ways_and_no_model_makes_anything_core(
        self, start: Start
    ) -> None:
        vet = {"kind": "fact", "text": "User has a vet called Moe.", "key": "vet:name", "category": "core"}
        pet = {
            "kind": "fact",
            "text": "User has a cat called Miso.",
            "key": "pet:name",
            "links": ["vet:name"],
        }
        async with start(**QUIET) as world:
            world.brain.learns(vet, pet, about="Moe, the vet")
            newer = {"kind": "fact", "text": "User has a cat called Tom.", "key": "Pet:name "}
            world.brain.learns(newer, about="Tom is my cat")
            await world.says(world.ann, world.general, "My cat Miso sees Moe, the vet.")
            await world.says(world.ann, world.general, "Now Tom is my cat")
            words = ("memory", "export", str(world.ann.id), "--format", "snapshot", "--output", "-")
            found = {one["key"]: one for one in json.loads(world.cli(*words).stdout)}
            assert set(found) == {"vet:name", "pet:name"}
            assert (found["pet:name"]["links"], found["vet:name"]["links"]) == (["vet:name"], ["pet:name"])
            assert found["pet:name"]["content"] == "User has a cat called Tom."
            assert found["vet:name"]["category"] == "knowledge"

    async def test_takes_the_place_of_what_was_learned_weeks_before_among_very_many(
        self, start: Start
    ) -> None:
        async with start(max_items=2000, **QUIET) as world:
            world.brain.learns("User lives in Linz.", about="I live in Linz")
            moved = {"kind": "fact", "text": "User lives in Graz.", "id": "lives in Linz"}
            world.brain.learns(moved, about="We left Linz")
            await world.says(world.ann, world.general, "I live in Linz by the way")
            kept = json.loads(world.durable(world.ann).read_bytes())
            kept["items"] += [
                {**kept["items"][0], "id": f"durable-{number:08x}", "text": f"Shelf {number} holds books."}
                for number in range(1000)
            ]
            world.durable(world.ann).write_text(json.dumps(kept), encoding="utf-8")
            await world.env.advance_time(WEEK_S)
            await world.says(world.ann, world.general, "We left Linz, all books of a shelf are in Graz now!")
            shown = learned_from(world)[-1]
            assert "User lives in Linz." in shown and shown.count("Shelf ") < 400
            assert [text for text in world.memories(world.ann) if "lives" in text] == ["User lives in Graz."]

    async def test_finds_what_it_replaces_by_meaning_and_sends_nowhere_what_it_may_not(
        self, start: Start
    ) -> None:
        linz = f"User lives in Linz, beside {', '.join(f'house{number}' for number in range(20))}."
        moved = "Everything is packed, next week we move to Graz"
        given = {"extraction_enabled": True, "max_items": 2000}
        async with (
            EmbeddingsServer(same={"move": "lives", "graz": "linz"}) as server,
            start(**near(server, **given)) as world,
        ):
            world.brain.learns(linz, about="by the way")
            world.brain.learns("User sees a therapist in Linz.", about="in private", sensitivity="private")
            await world.says(world.ann, world.general, "I live in Linz by the way")
            await world.says(world.ann, world.ann_dm, "and this in private")
            kept = json.loads(world.durable(world.ann).read_bytes())
            kept["items"] += [
                {**kept["items"][0], "id": f"durable-{number:08x}", "text": f"Shelf {number} {'books ' * 12}"}
                for number in range(400)
            ]
            world.durable(world.ann).write_text(json.dumps(kept), encoding="utf-8")
            await world.env.advance_time(WEEK_S)
            await world.says(world.ann, world.general, "hello")
            await ready(world)
            graz = {"kind": "fact", "text": "User lives in Graz.", "id": linz, "quote": moved}
            world.brain.learns(graz, about="packed")
            await world.says(world.ann, world.general, f"> I hate cats\n{moved}")
            assert linz in learned_from(world)[-1] and "therapist" not in learned_from(world)[-1]
            assert [one for one in world.memories(world.ann) if "lives" in one] == ["User lives in Graz."]
            assert not any("cats" in one and "packed" not in one for one in sent(server))
            await world.restart(embedding_url=f"{server.elsewhere}/v1")
            await ready(world)
            before = len(sent(server))
            await world.says(world.ann, world.ann_dm, f"{moved}, quietly")
            assert not any("quietly" in one for one in sent(server)[before:])
            assert "quietly" in learned_from(world)[-1] and "therapist" in learned_from(world)[-1]
            await world.says(world.ann, world.general, "!memory optout")
            await world.env.advance_time(2)
            await world.says(world.ann, world.general, f"{moved}, openly")
            assert not any("openly" in one for one in sent(server))

    async def test_shows_no_private_memory_to_open_talk_and_links_it_with_none(self, start: Start) -> None:
        boat: dict[str, Any] = {"kind": "fact", "text": "User has a boat.", "links": ["debt"]}
        async with start(**QUIET) as world:
            debt = {"kind": "fact", "text": "User is in debt for a boat.", "key": "debt"}
            world.brain.learns(debt, about="owe money")
            world.brain.learns(boat, about="my boat")
            await world.says(world.ann, world.ann_dm, "I owe money for it")
            await world.says(world.ann, world.general, "my boat is red")
            assert "in debt" not in learned_from(world)[-1]
            assert not any("link" in event["ext"] for event in commits(world)[-1]["events"])
            await world.says(world.ann, world.ann_dm, "my boat is for sale")
            assert "in debt" in learned_from(world)[-1]
