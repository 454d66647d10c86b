"""One turn: what the model is shown, what the person gets, and that memory never stands in between."""

import asyncio
import os
from pathlib import Path

import pytest

from discoclaw.core.draft import Origin
from discoclaw.core.errors import (
    ChatForbidden,
    ChatGone,
    ChatUnavailable,
    ErasedMeanwhile,
    ModelBadOutput,
    ModelBadRequest,
    ModelCut,
    ModelEmpty,
    ModelError,
    ModelKeyRejected,
    ModelNotFound,
    ModelOverloaded,
    ModelRateLimited,
    ModelRefused,
    ModelSpent,
    ModelTimeout,
    ModelTooLong,
    ModelUnreachable,
)
from discoclaw.core.message import Place
from discoclaw.core.model import AssistantTurn, Finished, TextDelta
from discoclaw.memory.off import NoMemory, NoSummaries
from discoclaw.session.conversation import CUT_ANSWER, MOST_REPEATED, MOST_ROUNDS
from discoclaw.session.refill import HISTORY_PAUSE_MS
from discoclaw.session.turn import EMPTY_ANSWER, STOPPED
from tests.prompt.reader import TURN_TITLES, sections, talk
from tests.session.scene import (
    ANN,
    BOB,
    DEV,
    DM,
    GENERAL,
    HIDDEN,
    House,
    Past,
    Recorder,
    ScriptedModel,
    calls,
    house,
    inbound,
    said,
    says,
    until,
)

DURABLE, ROLLING, RECENT = TURN_TITLES[2:5]
KEY = GENERAL.session_key(ANN.id)


async def ask(
    home: House, text: str = "Hello", number: int = 1000, *, author=ANN, place: Place = GENERAL, **given
) -> Recorder:
    """One message, all the way through."""
    reply = Recorder(id=str(number + 1))
    home.answer(inbound(number, text, author, place, **given), reply)
    await home.desk.settle()
    return reply


def prompt(home: House, number: int = -1) -> dict[str, list[str]]:
    return sections(home.model.user_turn(number), TURN_TITLES)


class TestAnAnswer:
    async def test_is_streamed_and_finished(self, tmp_path: Path) -> None:
        home = house(tmp_path, ScriptedModel(["Hello, Ann."]))
        reply = await ask(home)
        assert reply.pushed == ["Hello", ", Ann."]
        assert (reply.finished, reply.failed) == (True, [])

    async def test_becomes_part_of_the_talk(self, tmp_path: Path) -> None:
        home = house(tmp_path, ScriptedModel(["Hello, Ann."]), summary_every=2)
        await ask(home)
        (line,) = home.windows.use(KEY).recent()
        assert (line.id, line.text, line.by_us) == ("1001", "Hello, Ann.", True)
        await ask(home, "And now?", 1010)
        await home.loops.settle()
        assert talk(home.model.user_turn()) == ["[DiscoClaw]: Hello, Ann."]
        assert "[DiscoClaw]: Hello, Ann." in home.model.summarised[0]

    async def test_is_followed_by_the_loops(self, tmp_path: Path) -> None:
        home = house(tmp_path, summary_every=1, facts_every=1)
        home.loops.hear(said(1000), GENERAL, KEY, window=20)
        await ask(home)
        await home.loops.settle()
        assert (len(home.model.summarised), len(home.model.extractions)) == (1, 1)

    async def test_does_not_wait_for_them(self, tmp_path: Path) -> None:
        home = house(tmp_path, summary_every=1)
        await ask(home)
        await home.loops.settle()
        home.model.gate = asyncio.Event()
        home.model.answers.append("Second.")
        running = asyncio.create_task(ask(home, "More", 1010))
        await until(lambda: len(home.model.requests) == 2)
        home.model.gate.set()
        home.model.gate = None
        assert (await running).text == "Second."
        await home.loops.settle()

    @pytest.mark.parametrize("events", [says(""), says("  \n"), [Finished(AssistantTurn(""), "end")]])
    async def test_that_is_empty_is_said(self, tmp_path: Path, events: list) -> None:
        home = house(tmp_path, ScriptedModel([events]), summary_every=1)
        reply = await ask(home)
        assert reply.failed == [EMPTY_ANSWER]
        assert home.windows.use(KEY).recent() == ()

    async def test_that_was_cut_says_so_to_the_person_only(self, tmp_path: Path) -> None:
        home = house(tmp_path, ScriptedModel([says("A long story", stop="length")]))
        reply = await ask(home)
        assert reply.text == "A long story" + CUT_ANSWER
        assert home.windows.use(KEY).recent()[0].text == "A long story"


class TestWhatTheModelIsShown:
    async def test_the_message_itself_is_not_in_the_recent_conversation(self, tmp_path: Path) -> None:
        home = house(tmp_path)
        window = home.windows.use(KEY)
        for line in (said(998, BOB, "Before"), said(1000, ANN, "Hello")):
            window.remember(line)
        await ask(home)
        assert talk(home.model.user_turn()) == ["[Bob]: Before"]
        assert prompt(home)["User message:"] == ["Hello"]

    async def test_the_summary_of_this_conversation_only(self, tmp_path: Path) -> None:
        home = house(tmp_path)
        for place, text in ((GENERAL, "Of tabs."), (DEV, "Of spaces.")):
            await home.rolling.put(place.session_key(ANN.id), text, generation=0)
        await ask(home)
        assert prompt(home)[ROLLING] == ["Of tabs."]

    async def test_what_one_learns_of_a_person_here_is_known_there_and_of_nobody_else(
        self, tmp_path: Path
    ) -> None:
        wanted = calls(("memory_store", {"text": "User prefers tabs.", "kind": "preference"}))
        home = house(tmp_path, ScriptedModel([wanted, "Noted."]))
        await ask(home, "Remember that I prefer tabs")
        for number, place in enumerate((GENERAL, DEV, DM, HIDDEN)):
            await ask(home, "Format this", 2000 + number, place=place)
            assert "User prefers tabs." in "".join(prompt(home)[DURABLE])
            await ask(home, "Format this", 3000 + number, author=BOB, place=place)
            assert "tabs" not in home.model.user_turn()
            assert DURABLE not in prompt(home)

    async def test_it_is_known_after_a_restart(self, tmp_path: Path) -> None:
        home = house(tmp_path)
        await home.remember(ANN, "User prefers tabs.", "preference")
        again = house(tmp_path)
        await ask(again)
        assert "User prefers tabs." in "".join(prompt(again)[DURABLE])

    @pytest.mark.parametrize(("place", "there"), [(DM, True), (GENERAL, False), (HIDDEN, False)])
    async def test_private_items_in_direct_messages_only(
        self, tmp_path: Path, place: Place, there: bool
    ) -> None:
        home = house(tmp_path)
        await home.remember(ANN, "User has a cat called Tom.", origin=Origin("stated", private=True))
        await home.remember(ANN, "User likes strict diets.", "preference", marked="private")
        await ask(home, "What is my cat called?", place=place)
        text = home.model.user_turn()
        assert ("Tom" in text) is there
        assert ("diets" in text) is there

    @pytest.mark.parametrize("place", [DM, GENERAL])
    async def test_confidential_and_forgotten_items_nowhere(self, tmp_path: Path, place: Place) -> None:
        home = house(tmp_path)
        await home.remember(ANN, "User likes cats.", "preference", marked="confidential")
        gone = await home.remember(ANN, "User likes dogs.", "preference")
        await home.memory.change("user-1", "a test", lambda draft: draft.deprecate(gone, Origin("stated")))
        await ask(home, "What do I like, cats or dogs?", place=place)
        assert DURABLE not in prompt(home)

    async def test_content_files_of_everywhere_and_of_the_place(self, tmp_path: Path) -> None:
        base, channels = tmp_path / "content/discord/base", tmp_path / "content/discord/channels"
        base.mkdir(parents=True)
        channels.mkdir()
        (base / "2.md").write_text("second\n", encoding="utf-8")
        (base / "1.md").write_text("first\n", encoding="utf-8")
        (channels / "general.md").write_text("of general", encoding="utf-8")
        (channels / "dm.md").write_text("of direct messages", encoding="utf-8")
        home = house(tmp_path)
        await ask(home)
        first, second = (block.text for block in home.model.requests[-1].system)
        assert "\n\nfirst\n\nsecond\n\n## Memory" in first
        assert second == "You are in the channel #general.\n\nof general"
        await ask(home, place=DM)
        assert home.model.requests[-1].system[0].text == first
        assert home.model.requests[-1].system[1].text.endswith("\n\nof direct messages")

    async def test_an_edited_content_file_counts_at_once(self, tmp_path: Path) -> None:
        base = tmp_path / "content/discord/base"
        base.mkdir(parents=True)
        (base / "1.md").write_text("old", encoding="utf-8")
        home = house(tmp_path)
        await ask(home)
        (base / "1.md").write_text("new", encoding="utf-8")
        os.utime(base / "1.md", ns=(1, 1))
        await ask(home)
        assert home.model.requests[-1].system[0].text.partition("\n\n## Memory")[0].endswith("\n\nnew")

    async def test_a_channels_name_can_not_choose_a_file_elsewhere(self, tmp_path: Path) -> None:
        (tmp_path / "content/discord/channels").mkdir(parents=True)
        (tmp_path / "content/secret.md").write_text("secret", encoding="utf-8")
        home = house(tmp_path)
        for name in ("../../secret", "/../../secret", "..", str(tmp_path / "content/secret")):
            place = Place("channel", "10", "10", name, private=False, group_name=name)
            await ask(home, place=place)
            assert len(home.model.requests[-1].system[1].text.split("\n\n")) == 1


class TestMemoryThatFails:
    """Whatever is wrong with memory, the person is answered."""

    async def test_a_ledger_that_can_not_be_read(self, tmp_path: Path) -> None:
        home = house(tmp_path)
        (home.memory.ledger_folder / "user-1.jsonl").mkdir(parents=True)
        reply = await ask(home)
        assert (reply.text, reply.failed) == ("All right.", [])

    async def test_a_damaged_ledger(self, tmp_path: Path) -> None:
        home = house(tmp_path)
        await home.remember(ANN, "User has a cat.")
        file = home.memory.ledger_folder / "user-1.jsonl"
        file.write_bytes(b"\xff\xfe nonsense\n" + file.read_bytes())
        assert (await ask(house(tmp_path))).text == "All right."

    async def test_a_durable_file_of_nonsense(self, tmp_path: Path) -> None:
        home = house(tmp_path)
        await home.remember(ANN, "User likes cats.", "preference")
        (home.memory.durable_folder / "1.json").write_bytes(b"\x00\xff{{{")
        again = house(tmp_path)
        assert (await ask(again)).text == "All right."
        assert "User likes cats." in "".join(prompt(again)[DURABLE])

    @pytest.mark.parametrize("content", [None, b"\xff\x00", b"[]", b'{"summary": 7}'])
    async def test_a_summary_that_can_not_be_read(self, tmp_path: Path, content: bytes | None) -> None:
        home = house(tmp_path)
        file = home.rolling.folder / f"{KEY}.json"
        file.parent.mkdir(parents=True)
        if content is None:
            file.mkdir()
        else:
            file.write_bytes(content)
        reply = await ask(home)
        assert (reply.text, reply.failed) == ("All right.", [])
        assert ROLLING not in prompt(home)

    async def test_a_summary_with_half_a_character(self, tmp_path: Path) -> None:
        home = house(tmp_path)
        file = home.rolling.folder / f"{KEY}.json"
        file.parent.mkdir(parents=True)
        file.write_text(r'{"summary": "half \ud83d", "updatedAt": 1}', encoding="utf-8")
        reply = await ask(home)
        assert (reply.text, reply.failed) == ("All right.", [])
        assert "half" in home.model.user_turn().encode("utf-8").decode("utf-8")

    async def test_an_author_whose_id_can_name_no_file(self, tmp_path: Path) -> None:
        home = house(tmp_path)
        odd = type(ANN)("../1", "Odd")
        assert (await ask(home, author=odd)).text == "All right."

    async def test_context_files_that_can_not_be_read(self, tmp_path: Path) -> None:
        base = tmp_path / "content/discord/base"
        base.mkdir(parents=True)
        (base / "1.md").write_bytes(b"\xff\xfe\x00 binary")
        (base / "2.md").mkdir()
        (base / "3.md").write_text("good", encoding="utf-8")
        (base / "4.md").symlink_to(tmp_path / "nowhere")
        home = house(tmp_path)
        assert (await ask(home)).text == "All right."
        assert home.model.requests[-1].system[0].text.partition("\n\n## Memory")[0].endswith("\n\ngood")

    async def test_a_context_folder_that_is_a_file(self, tmp_path: Path) -> None:
        (tmp_path / "content").write_text("not a folder")
        assert (await ask(house(tmp_path))).text == "All right."

    @pytest.mark.parametrize("name", ["x" * 5000, "nul\x00nul", "half \ud83d", "", ".", "..", "a/b"])
    async def test_a_channel_whose_name_can_name_no_file(self, tmp_path: Path, name: str) -> None:
        place = Place("channel", "10", "10", "odd", private=False, group_name=name)
        reply = await ask(house(tmp_path), place=place)
        assert (reply.text, reply.failed) == ("All right.", [])

    async def test_memory_switched_off(self, tmp_path: Path) -> None:
        home = house(tmp_path, use_memory=NoMemory(), use_rolling=NoSummaries())
        assert (await ask(home)).text == "All right."
        assert tuple(prompt(home)) == ("Sender:", "Current time:", "User message:")


ERRORS = [
    ModelOverloaded,
    ModelRateLimited,
    ModelKeyRejected,
    ModelNotFound,
    ModelRefused,
    ModelTooLong,
    ModelTimeout,
    ModelUnreachable,
    ModelBadRequest,
    ModelSpent,
    ModelCut,
    ModelEmpty,
    ModelBadOutput,
    ErasedMeanwhile,
    ModelError,
]


class TestAModelThatFails:
    def test_every_error_of_a_model_is_in_this_list(self) -> None:
        assert set(ERRORS) == {ModelError, *ModelError.__subclasses__()}

    @pytest.mark.parametrize("error", ERRORS)
    async def test_the_person_is_told_its_text(self, tmp_path: Path, error: type[ModelError]) -> None:
        home = house(tmp_path, ScriptedModel([error("details for the log")]), summary_every=1)
        reply = await ask(home)
        assert reply.failed == [error.user_message]
        assert "details" not in "".join(reply.failed)
        assert home.model.summarised == []

    async def test_what_was_said_before_it_broke_off_stays(self, tmp_path: Path) -> None:
        broken = [TextDelta("Half an ans"), ModelUnreachable("gone")]
        home = house(tmp_path, ScriptedModel([broken]))
        reply = await ask(home)
        assert reply.text == "Half an ans"
        assert reply.failed == [ModelUnreachable.user_message]
        assert [said.text for said in home.windows.use(KEY).recent() if said.by_us] == ["Half an ans"]

    async def test_a_stream_without_an_end_is_said(self, tmp_path: Path) -> None:
        reply = await ask(house(tmp_path, ScriptedModel([[TextDelta("Half")]])))
        assert reply.failed == [ModelError.user_message]

    async def test_an_unexpected_fault_is_said_and_logged(
        self, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        home = house(tmp_path, ScriptedModel([ZeroDivisionError("a fault nobody thought of"), "Well."]))
        reply = await ask(home)
        assert reply.failed == [ModelError.user_message]
        assert "a fault nobody thought of" in caplog.text
        assert (await ask(home)).text == "Well."

    async def test_the_next_message_is_answered(self, tmp_path: Path) -> None:
        home = house(tmp_path, ScriptedModel([ModelTimeout("slow"), "Well."]))
        await ask(home)
        assert (await ask(home)).text == "Well."


class TestAChatThatFails:
    @pytest.mark.parametrize("act", ["push", "finish"])
    @pytest.mark.parametrize("error", [ChatForbidden("403"), ChatGone("404"), ChatUnavailable("503")])
    async def test_it_is_logged_and_the_answer_is_no_part_of_the_talk(
        self, tmp_path: Path, act: str, error: Exception, caplog: pytest.LogCaptureFixture
    ) -> None:
        home = house(tmp_path)
        reply = Recorder(refuses={act: error})
        home.answer(inbound(1000, "Hello"), reply)
        await home.desk.settle()
        assert "could not be delivered" in caplog.text
        assert home.windows.use(KEY).recent() == ()

    async def test_when_not_even_the_failure_can_be_said_it_is_logged(
        self, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        home = house(tmp_path, ScriptedModel([ModelTimeout("slow")]))
        home.answer(inbound(1000, "Hello"), Recorder(refuses={"fail": ChatUnavailable("503")}))
        await home.desk.settle()
        assert "not even the failure could be said" in caplog.text
        assert "Traceback" not in caplog.text

    async def test_a_history_that_can_not_be_read_is_no_reason_to_be_silent(self, tmp_path: Path) -> None:
        home = house(tmp_path, history=Past(fails=[ChatUnavailable("503")]))
        assert (await ask(home)).text == "All right."

    async def test_and_is_asked_for_again(self, tmp_path: Path) -> None:
        home = house(tmp_path, history=Past([said(990, BOB, "Before")], fails=[ChatUnavailable("503")]))
        await ask(home)
        home.clock.forward(HISTORY_PAUSE_MS)
        await ask(home, "Again", 1010)
        assert "[Bob]: Before" in prompt(home)[RECENT]


class TestBeingStopped:
    async def test_the_person_is_told(self, tmp_path: Path) -> None:
        home = house(tmp_path)
        home.model.gate = asyncio.Event()
        replies = [Recorder(), Recorder()]
        for number, reply in enumerate(replies, start=1000):
            home.answer(inbound(number, "Hello"), reply)
        await until(lambda: len(home.model.requests) == 1)
        await home.desk.close(grace_s=0.01)
        assert [reply.failed for reply in replies] == [[STOPPED], [STOPPED]]


class TestTools:
    async def test_text_before_and_after_a_tool_are_two_paragraphs(self, tmp_path: Path) -> None:
        wanted = calls(("memory_search", {"query": "cat"}), text="Let me look.")
        home = house(tmp_path, ScriptedModel([wanted, "Nothing."]))
        reply = await ask(home)
        assert reply.text == "Let me look.\n\nNothing."
        assert home.windows.use(KEY).recent()[0].text == "Let me look.\n\nNothing."

    async def test_the_models_own_turn_goes_back_to_it(self, tmp_path: Path) -> None:
        wanted = calls(("memory_search", {"query": "cat"}))
        home = house(tmp_path, ScriptedModel([wanted, "Nothing."]))
        await ask(home)
        first, second = home.model.requests
        assert second.system == first.system
        assert second.turns[0] == first.turns[0]
        assert second.turns[1] is wanted[-1].turn
        assert second.turns[2].results[0].call_id == "call_0"

    async def test_rounds_are_bounded_and_in_the_last_no_tool_may_be_called(self, tmp_path: Path) -> None:
        home = house(tmp_path)
        looks = [calls(("memory_search", {"query": f"cat {n}"})) for n in range(MOST_ROUNDS)]
        home.model.answers.extend([*looks, "Enough."])
        reply = await ask(home)
        assert [request.may_call for request in home.model.requests] == [True] * MOST_ROUNDS + [False]
        # Turns that hold calls need the tools to be named all the same.
        assert all(request.tools for request in home.model.requests)
        assert reply.text == "Enough."

    async def test_a_model_that_repeats_a_call_is_stopped_long_before(self, tmp_path: Path) -> None:
        home = house(tmp_path)
        search = calls(("memory_search", {"query": "cat"}))
        home.model.answers.extend([*[search] * (1 + MOST_REPEATED), "Enough."])
        reply = await ask(home)
        assert [request.may_call for request in home.model.requests] == [True] * 4 + [False]
        assert reply.text == "Enough."

    async def test_a_model_that_talks_and_calls_without_end_is_stopped(self, tmp_path: Path) -> None:
        home = house(tmp_path)
        for n in range(20):
            home.model.answers.append(calls(("memory_search", {"query": f"cat {n}"}), text="la " * 1000))
        reply = await ask(home)
        # An answer has 4,096 tokens; a round has written 1,300.
        assert [request.may_call for request in home.model.requests] == [True] * 4 + [False]
        assert reply.text.count("la") == 5000 and reply.failed == []

    async def test_a_model_that_never_stops_calling_is_stopped(self, tmp_path: Path) -> None:
        home = house(tmp_path)
        store = [calls(("memory_store", {"text": f"User has {n} cats."})) for n in range(99)]
        home.model.answers.extend(store)
        reply = await ask(home)
        assert reply.failed == [EMPTY_ANSWER]
        # What is called where no tools are offered is not done either.
        assert len(await home.texts(ANN)) == MOST_ROUNDS

    async def test_a_model_that_fails_after_a_tool_is_said(self, tmp_path: Path) -> None:
        wanted = calls(("memory_store", {"text": "User naps."}))
        home = house(tmp_path, ScriptedModel([wanted, ModelTimeout("slow")]))
        assert (await ask(home)).failed == [ModelTimeout.user_message]
        assert await home.texts(ANN) == ["User naps."]


class TestTwoAtOnce:
    async def test_two_people_in_one_channel_and_one_in_two_lose_nothing(self, tmp_path: Path) -> None:
        def answers(request):
            if len(request.turns) > 1:
                return "Done."
            return calls(("memory_store", {"text": request.turns[0].text.rsplit("message:\n", 1)[1]}))

        home = house(tmp_path)
        home.model.answers.extend([answers] * 12)
        asked = [(author, place) for author in (ANN, BOB) for place in (GENERAL, DEV, DM)]
        for number, (author, place) in enumerate(asked, start=1000):
            home.answer(inbound(number, f"User has thing {number}.", author, place), Recorder())
        await home.desk.settle()
        assert len(await home.texts(ANN)) == 3
        assert len(await home.texts(BOB)) == 3
