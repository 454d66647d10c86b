"""The talk: who is heard, who is answered, and what happens when too much comes at once."""

import asyncio
from pathlib import Path

import pytest

from discoclaw.core.errors import ChatUnavailable
from discoclaw.core.message import Author
from discoclaw.core.policy import Policy
from discoclaw.prompt.assemble import Budget
from discoclaw.session.refill import HISTORY_PAUSE_MS
from discoclaw.session.talk import BUSY
from tests.loops.builders import count_of
from tests.prompt.reader import talk
from tests.session.scene import (
    ANN,
    BOB,
    DM,
    GENERAL,
    GUEST,
    ME,
    OWNER,
    THREAD,
    House,
    Past,
    Recorder,
    ScriptedModel,
    house,
    inbound,
    said,
    until,
)

KEY = GENERAL.session_key(ANN.id)
MENTION = Policy("mention")


async def turn(home: House, number: int, text: str = "Hello", *, author=ANN, place=GENERAL) -> Recorder:
    """A message that is heard and answered."""
    message = inbound(number, text, author, place)
    reply = Recorder(id=str(number + 1))
    home.hear(message, Policy("all"))
    home.answer(message, reply)
    await home.desk.settle()
    return reply


async def wanted(home: House, number: int, policy: Policy = MENTION, **given) -> bool:
    message = inbound(number, "Go on", **{"mentions_us": False, **given})
    home.hear(message, policy)
    return await home.talk.wants_answer(home.arrival(message, policy))


class TestHearing:
    @pytest.mark.parametrize("mode", ["all", "mention", "owner", "none"])
    async def test_every_message_enters_the_window_whatever_the_mode(self, tmp_path: Path, mode) -> None:
        home = house(tmp_path)
        for number, author in enumerate((ANN, OWNER, GUEST), start=1):
            home.hear(inbound(number, f"words {number}", author, mentions_us=False), Policy(mode))
        lines = home.windows.use(KEY).recent()
        assert [(one.text, one.is_owner, one.guest) for one in lines] == [
            ("words 1", False, False),
            ("words 2", True, False),
            ("words 3", False, True),
        ]

    async def test_attachments_are_noted(self, tmp_path: Path) -> None:
        home = house(tmp_path)
        home.hear(inbound(1, "Look", attachments=("cat.png",)), MENTION)
        assert home.windows.use(KEY).recent()[0].text == "Look\n(attached: cat.png)"

    async def test_the_policy_sets_the_windows_size_both_ways(self, tmp_path: Path) -> None:
        home = house(tmp_path)
        sizes = []
        for number in range(1, 31):
            capacity = 5 if number <= 10 else 12 if number <= 25 else 3
            home.hear(inbound(number, "words"), Policy("all", capacity))
            sizes.append(len(home.windows.use(KEY).recent()))
        assert (sizes[9], sizes[10], sizes[24], sizes[25]) == (5, 6, 12, 3)

    async def test_heard_but_unanswered_messages_are_in_the_next_prompt(self, tmp_path: Path) -> None:
        home = house(tmp_path)
        home.hear(inbound(1, "Not for the bot", BOB, mentions_us=False), MENTION)
        await turn(home, 2)
        assert talk(home.model.user_turn()) == ["[Bob]: Not for the bot"]

    async def test_an_edit_and_a_deletion_are_followed(self, tmp_path: Path) -> None:
        home = house(tmp_path)
        for number in (1, 2, 3):
            home.hear(inbound(number, f"words {number}", BOB), MENTION)
        home.talk.listener.amend(said(1, text="better words"), KEY)
        home.talk.listener.forget({"2"}, KEY)
        await turn(home, 4)
        assert talk(home.model.user_turn()) == [
            "[Bob]: better words",
            "[Bob]: words 3",
        ]

    async def test_what_was_deleted_on_its_way_is_not_heard(self, tmp_path: Path) -> None:
        """Somebody's filter deletes a message while it is still looked up who wrote it."""
        home = house(tmp_path)
        home.talk.listener.forget({"1"}, KEY)
        home.hear(inbound(1, "a regret", BOB), MENTION)
        await turn(home, 2)
        assert count_of([home.model.user_turn()], "a regret") == 0

    async def test_loops_do_not_see_what_was_deleted(self, tmp_path: Path) -> None:
        home = house(tmp_path, summary_every=1, facts_every=1)
        home.hear(inbound(1, "a regret"), MENTION)
        home.talk.listener.forget({"1"}, KEY)
        await turn(home, 2)
        await home.loops.settle()
        assert count_of([asked.prompt for asked in home.model.asked], "a regret") == 0

    async def test_loops_see_an_edited_message_as_it_is_now(self, tmp_path: Path) -> None:
        """Who edits their address away does not want it remembered."""
        home = house(tmp_path, summary_every=1, facts_every=1)
        home.hear(inbound(1, "I live at the old mill"), MENTION)
        home.talk.listener.amend(said(1, text="I live somewhere"), KEY)
        await turn(home, 2)
        await home.loops.settle()
        prompts = [asked.prompt for asked in home.model.asked]
        assert len(prompts) == 2
        assert count_of(prompts, "old mill") == 0
        assert count_of(prompts, "I live somewhere") == 2


class TestWhoIsAnswered:
    @pytest.mark.parametrize(
        ("mode", "plain", "mention", "owner"),
        [
            ("all", True, True, True),
            ("mention", False, True, False),
            ("owner", False, False, True),
            ("none", False, False, False),
        ],
    )
    async def test_it_goes_by_the_mode(
        self, tmp_path: Path, mode, plain: bool, mention: bool, owner: bool
    ) -> None:
        home = house(tmp_path)
        policy = Policy(mode)
        assert await wanted(home, 1, policy) is plain
        assert await wanted(home, 2, policy, mentions_us=True) is mention
        assert await wanted(home, 3, policy, author=OWNER) is owner

    async def test_a_thread_we_have_no_part_in_needs_a_mention(self, tmp_path: Path) -> None:
        home = house(tmp_path, history=Past([said(1, BOB), said(2, ANN)]))
        assert not await wanted(home, 10, place=THREAD)

    async def test_after_our_part_a_thread_goes_on_without_one(self, tmp_path: Path) -> None:
        home = house(tmp_path)
        await turn(home, 10, place=THREAD)
        assert await wanted(home, 20, place=THREAD, author=BOB)

    async def test_also_when_our_part_is_far_behind(self, tmp_path: Path) -> None:
        home = house(tmp_path, capacity=5)
        await turn(home, 10, place=THREAD)
        for number in range(20, 60):
            home.hear(inbound(number, "words", BOB, THREAD), Policy("mention", 5))
        assert await wanted(home, 100, Policy("mention", 5), place=THREAD)

    async def test_a_channel_does_not(self, tmp_path: Path) -> None:
        home = house(tmp_path)
        await turn(home, 10)
        assert not await wanted(home, 20)

    async def test_after_a_restart_its_history_shows_our_part(self, tmp_path: Path) -> None:
        home = house(tmp_path, history=Past([said(1, BOB), said(2, ME), said(3, BOB)]))
        assert await wanted(home, 10, place=THREAD)

    async def test_or_its_summary_does(self, tmp_path: Path) -> None:
        home = house(tmp_path, summary_every=1)
        await turn(home, 10, place=THREAD)
        await home.loops.settle()
        again = house(tmp_path, history=Past([said(number, BOB) for number in range(20, 50)]))
        assert await wanted(again, 100, place=THREAD)

    async def test_two_messages_right_after_a_restart_are_both_answered(self, tmp_path: Path) -> None:
        home = house(tmp_path, history=Past([said(1, ME)]))
        home.history.gate = asyncio.Event()
        both = asyncio.gather(wanted(home, 10, place=THREAD), wanted(home, 11, place=THREAD))
        await until(lambda: bool(home.history.asked))
        await asyncio.sleep(0.01)
        home.history.gate.set()
        assert await both == [True, True]
        assert len(home.history.asked) == 1

    async def test_a_history_that_fails_once_does_not_silence_us(self, tmp_path: Path) -> None:
        home = house(tmp_path, history=Past([said(1, ME)], fails=[ChatUnavailable("503")]))
        await wanted(home, 10, place=THREAD)
        home.clock.forward(HISTORY_PAUSE_MS)
        assert await wanted(home, 11, place=THREAD)


class TestFillingTheWindow:
    async def test_once_from_the_chats_history(self, tmp_path: Path) -> None:
        home = house(tmp_path, history=Past([said(1, BOB, "Before"), said(2, ME, "Indeed")]))
        await turn(home, 10)
        assert talk(home.model.user_turn()) == [
            "[Bob]: Before",
            "[DiscoClaw]: Indeed",
        ]
        await turn(home, 20)
        assert home.history.asked == [("10", "10")]

    async def test_behind_what_was_heard_live(self, tmp_path: Path) -> None:
        home = house(tmp_path, history=Past([said(1, BOB, "First"), said(8, BOB, "Second")]))
        home.hear(inbound(8, "Second", BOB, mentions_us=False), MENTION)
        home.hear(inbound(9, "Third", BOB, mentions_us=False), MENTION)
        await turn(home, 10)
        lines = talk(home.model.user_turn())
        assert lines == ["[Bob]: First", "[Bob]: Second", "[Bob]: Third"]

    async def test_what_no_longer_fits_into_the_prompt_is_in_the_summary(self, tmp_path: Path) -> None:
        """The window is bounded in characters too; what leaves it has been summarised."""
        home = house(tmp_path, budget=Budget(history=3000))
        for number in range(10, 60, 10):
            await turn(home, number, f"<{number}> " + "x" * 1400)
            await home.loops.settle()
        await turn(home, 100, "What was first?")
        recent = "\n".join(talk(home.model.user_turn()))
        gone = [number for number in range(10, 60, 10) if f"<{number}>" not in recent]
        assert gone
        assert all(count_of(home.model.summarised, f"<{number}>") == 1 for number in gone)


class TestTooMuchAtOnce:
    async def test_a_full_queue_is_said_once_until_it_has_room_again(self, tmp_path: Path) -> None:
        home = house(tmp_path, waiting_limit=1)
        home.model.gate = asyncio.Event()
        replies = [Recorder() for _ in range(4)]
        for number, reply in enumerate(replies):
            home.answer(inbound(100 + number, "Hello"), reply)
            await until(lambda: len(home.model.requests) == 1)
        await until(lambda: replies[2].failed == [BUSY])
        home.model.gate.set()
        await home.desk.settle()
        assert [reply.failed for reply in replies] == [[], [], [BUSY], []]
        assert replies[1].text == "All right."

    async def test_everybody_is_told_and_those_of_the_same_moment_together(self, tmp_path: Path) -> None:
        home = house(tmp_path, waiting_limit=1)
        home.model.gate = asyncio.Event()
        for number in range(2):
            home.answer(inbound(100 + number, "Hello"), Recorder())
            await until(lambda: len(home.model.requests) == 1)
        people = [Author(str(number), f"Person {number}") for number in range(300, 305)]
        replies = {person.name: Recorder() for person in people}
        for number, person in enumerate(people):
            home.answer(inbound(200 + number, "Hello", person), replies[person.name])
        await until(lambda: any(reply.failed for reply in replies.values()))
        late = Recorder()
        home.answer(inbound(300, "Hello", Author("400", "Lee")), late)
        assert late.failed == []  # a little later, with others that may come
        await home.talk.refusals.close()  # at the end nobody is left untold
        home.model.gate.set()
        await home.desk.settle()
        said = [reply for reply in replies.values() if reply.failed]
        told = {name for name, reply in replies.items() if reply.failed}
        assert told | {name for reply in said for name in reply.named} == set(replies)
        assert (len(said), late.failed) == (1, [BUSY])

    async def test_another_conversation_is_not_held_up(self, tmp_path: Path) -> None:
        home = house(tmp_path, waiting_limit=1)
        home.model.gate = asyncio.Event()
        for number in range(3):
            home.answer(inbound(100 + number, "Hello"), Recorder())
        elsewhere = Recorder()
        home.answer(inbound(200, "Hello", place=DM), elsewhere)
        home.model.gate.set()
        await home.desk.settle()
        assert elsewhere.text == "All right."

    @pytest.mark.parametrize("error", [ChatUnavailable("503")])
    async def test_when_that_can_not_be_said_it_is_logged(
        self, tmp_path: Path, error: Exception, caplog: pytest.LogCaptureFixture
    ) -> None:
        home = house(tmp_path)
        await home.desk.close()
        home.answer(inbound(100, "Hello"), Recorder(refuses={"fail": error}))
        await until(lambda: "a refusal could not be said" in caplog.text)

    async def test_answers_come_in_the_order_of_the_messages(self, tmp_path: Path) -> None:
        home = house(tmp_path, ScriptedModel(["One.", "Two.", "Three."]))
        replies = [Recorder(id=str(500 + number)) for number in range(3)]
        for number, reply in enumerate(replies):
            home.answer(inbound(100 + number, "Hello"), reply)
        await home.desk.settle()
        assert [reply.text for reply in replies] == ["One.", "Two.", "Three."]

    async def test_a_command_waits_its_turn_in_the_same_queue(self, tmp_path: Path) -> None:
        home = house(tmp_path)
        order: list[str] = []
        home.model.answers.append(lambda request: order.append("answer") or "Hi.")

        async def command() -> None:
            order.append("command")

        home.answer(inbound(100, "Hello"), Recorder())
        assert home.talk.run(KEY, command, command, "1")
        await home.desk.settle()
        assert order == ["answer", "command"]
