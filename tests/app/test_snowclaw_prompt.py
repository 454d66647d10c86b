"""Snowclaw's window and context: what the model is shown of a channel, in which order, and what gives way."""

import json
from pathlib import Path

import pytest
from pydantic import SecretStr

from discoclaw.core.model import ModelRequest, UserTurn
from tests.app.conftest import Start, World
from tests.app.models import Scripted
from tests.app.test_groups import NOTES, Agreeing, file
from tests.app.test_live_config import lines
from tests.app.test_nostr import BOT
from tests.memory.leftovers import traces

REDACTION = json.loads((Path(__file__).parents[1] / "vectors" / "nostr.json").read_text())["redaction"]
BOATS = ("Nautilus", "Pequod", "Argo", "Beagle", "Fram", "Endeavour", "Titanic", "Bounty")
RECENT, MESSAGE = "Recent conversation:\n", "User message:\n"


def me(world: World) -> str:
    return f"<@{world.env.bot.user.id}>"


def whole(request: ModelRequest) -> str:
    """Everything a model is shown, in its order."""
    turn = request.turns[0]
    assert isinstance(turn, UserTurn)
    return "\n".join([*(block.text for block in request.system), turn.text])


def dated(shown: str) -> list[str]:
    """The recent conversation with the lines that name its days."""
    return shown.partition(RECENT)[2].partition("\n---\n")[0].splitlines()


class TestTheWindow:
    @pytest.mark.design(23, 24, 26, 48, 333)
    async def test_has_the_last_twenty_messages_answered_or_not(self, start: Start) -> None:
        model = Scripted()
        async with start(model, respond_mode="owner") as world:
            await world.restart(owners=frozenset({str(world.ann.id)}))
            for number in range(25):
                await world.bob.send(world.general, f"message {number}")
            assert model.requests == []
            await world.ann.send(world.general, f"{me(world)} well?")
            assert lines(model) == [f"message {number}" for number in range(6, 25)]

    @pytest.mark.design(25, 29, 42)
    async def test_knows_who_said_what_and_follows_edits_and_deletions(self, start: Start) -> None:
        model = Scripted()
        async with start(model, respond_mode="mention", nostr_key=SecretStr(BOT.nsec())) as world:
            await world.restart(owners=frozenset({str(world.bob.id)}))
            namesake = world.guild.add_member(world.env.create_user("ann2", global_name="ann"))
            await world.ann.send(world.general, "I am the first")
            await namesake.send(world.general, "and I the second (owner)")
            gone = await world.bob.send(world.general, "forget this")
            edited = await world.bob.send(world.general, "meet at nin")
            await world.bob.delete(gone)
            await world.bob.edit(edited, "meet at nine")
            for vector in REDACTION:
                await world.bob.send(world.general, vector["text"])
            await world.ann.send(world.general, f"{me(world)} well?")
            talk = dated(model.prompt)[1:]
            first, second, third, *rest = (line.partition("]: ") for line in talk)
            assert (first[2], second[2], third[2]) == (
                "I am the first",
                "and I the second (owner)",
                "meet at nine",
            )
            assert first[0] != second[0] and "(owner" not in first[0] + second[0]
            assert third[0] == "[bob (owner)"
            for vector, (_, _, text) in zip(REDACTION, rest, strict=True):
                assert text == vector.get("redacted", text)
                assert vector.get("must_not_contain", "never said") not in text

    @pytest.mark.design(27, 55, 68)
    async def test_is_on_no_disk_and_filled_again_from_the_channel(self, start: Start) -> None:
        model = Scripted()
        async with start(model, respond_mode="mention") as world:
            await world.bob.send(world.general, "the canary is called Tweety")
            await world.settle()
            assert traces(world.folder / "data", "Tweety") == []
            await world.restart()
            assert traces(world.folder / "data", "Tweety") == []
            await world.ann.send(world.general, f"{me(world)} who?")
            assert lines(model) == ["the canary is called Tweety"]


class TestTheContext:
    @pytest.mark.design(22, 30, 31, 32, 33, 34, 35, 41, 331, 341)
    async def test_is_identity_place_sender_talk_and_message_in_this_order(self, start: Start) -> None:
        model = Agreeing(themes=["tea"], decisions=["We drink tea."])
        async with start(model) as world:
            await world.restart(owners=frozenset({str(world.bob.id)}))
            boats = world.guild.create_text_channel("boats", topic="All about boats")
            await world.ann.send(boats, "!memory remember I prefer green tea")
            for text in ("shall we drink tea?", "tea it is"):
                await world.bob.send(boats, text)
                await world.settle()
            await world.ann.send(boats, "which tea do I prefer?")
            shown = whole(model.requests[-1])
            marks = [
                "You are TestBot",
                f"Your owner is bob (id {world.bob.id}).",
                "How to answer:",
                "You are in the channel #boats.",
                f"{NOTES}\nTopic: All about boats\nThemes: tea\nDecisions, newest first:\n- ",
                ": We drink tea.",
                f"- name: ann (id {world.ann.id})\n- owner: no",
                "I prefer green tea",
                "[bob (owner)]: shall we drink tea?",
                "[bob (owner)]: tea it is",
                f"{MESSAGE}which tea do I prefer?",
            ]
            places = [shown.index(mark) for mark in marks]
            assert places == sorted(places)
            assert shown.endswith(marks[-1])
            await world.bob.send(world.dev, "what did we decide about tea?")
            shown = whole(model.requests[-1])
            assert "- owner: yes" in shown
            assert [one for one in ("We drink tea.", "All about boats", "shall we") if one in shown] == []

    @pytest.mark.design(36, 37, 38, 39, 40)
    async def test_gives_way_talk_first_then_the_channel_then_the_sender(self, start: Start) -> None:
        themes = [f"theme {number} {'x' * 40}" for number in range(8)]
        model = Agreeing(themes=themes, decisions=[f"We decided {'y' * 60} {n}." for n in range(5)])
        message = f"compare the {', '.join(BOATS)}: {'z' * 1700}"
        async with start(model, history_budget=100_000) as world:
            for boat in BOATS:
                await world.ann.send(world.general, f"!memory remember my boat {boat} is {'w' * 60}")
            for number in range(8):
                await world.ann.send(world.general, f"said {number} {'v' * 200}")
                await world.settle()
            assert len(file(world, "groups", world.general)["themes"]) == 5

            async def asked(budget: int) -> tuple[str, list[str], str, list[str]]:
                await world.restart(prompt_budget=budget)
                await world.ann.send(world.general, message)
                shown = whole(model.requests[-1])
                system = model.requests[-1].system[0].text
                assert f"- name: ann (id {world.ann.id})\n- owner: no" in shown
                assert shown.endswith(MESSAGE + message)
                notes = model.place()
                talk = dated(shown)
                durable = [line for line in shown.splitlines() if line.startswith("- [fact] my boat ")]
                assert len(shown) - 2 <= budget  # `whole` joins three parts
                return system, talk, notes, durable

            system, talk, notes, durable = await asked(48_000)
            full = len(whole(model.requests[-1]))
            assert len(talk) > 8 and len(notes) > 300 and len(durable) == 8
            less = await asked(full - 500)
            assert (less[0], less[2], less[3]) == (system, notes, durable)
            assert len(less[1]) > 0 and less[1][-1].startswith("[TestBot")
            assert less[1][1] != talk[1]
            bare = full - sum(len(line) + 1 for line in talk)
            tight = await asked(bare - 100)
            assert (tight[0], tight[1], tight[3]) == (system, [], durable)
            assert len(tight[2]) < len(notes)
            tightest = await asked(max(4000, bare - len(notes) - 300))
            assert (tightest[0], tightest[1]) == (system, [])
            assert len(tightest[2]) < 30 and len(tightest[3]) < 8
