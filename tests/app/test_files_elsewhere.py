"""Files of answers that come another way: by a button, in a thread, by a command; and what two have sent."""

from tests.app.erasing import erase
from tests.app.test_files_in_answers import Begin, begin
from tests.attaching import RED, files, picture, shown
from tests.servers import messages_api as api

__all__ = ["begin"]  # a fixture


class TestAPicture:
    async def test_is_seen_by_an_answer_that_is_asked_for_again(self, begin: Begin) -> None:
        async with begin() as asking:
            await asking.send("look", ("cat.png", picture()))
            await asking.send("and now?", ("dog.png", picture(colour="blue")))
            await asking.world.ann.click(asking.world.general.history()[1], label="Again")
        assert len(asking.server.requests) == 3
        assert shown(asking.last) == [RED]

    async def test_is_seen_by_the_rest_of_an_answer(self, begin: Begin) -> None:
        async with begin() as asking:
            asking.server.script(api.text("It is", stop_reason="max_tokens"), api.text("a cat"))
            await asking.send("look", ("cat.png", picture()))
            await asking.world.ann.click(asking.world.general.last_message, label="Go on")
        assert len(asking.server.requests) == 2
        assert shown(asking.last) == [RED]

    async def test_goes_along_into_the_thread_of_its_answer(self, begin: Begin) -> None:
        async with begin(threads=True) as asking:
            await asking.send("look", ("cat.png", picture()))
            await asking.world.settle()
            assert shown(asking.server.requests[0]) == [RED]
            (thread,) = asking.world.general.threads
            await asking.world.ann.send(thread, "which colour?")
            assert shown(asking.last) == [RED]
            await asking.restart(threads=True)
            await asking.world.ann.send(thread, "which colour, again?")
            assert shown(asking.last) == [RED]

    async def test_of_a_question_by_command_is_for_nobody_else(self, begin: Begin) -> None:
        async with begin() as asking:
            ann, bob, general = asking.world.ann, asking.world.bob, asking.world.general
            await ann.slash(general, "ask", text="what is it?", file=("cat.png", picture()))
            await ann.slash(general, "ask", text="which colour?")
            assert [shown(one) for one in asking.server.requests] == [[RED], [RED]]
            await bob.slash(general, "ask", text="and mine?")
            await ann.send(general, "and here?")
            assert [shown(one) for one in asking.server.requests[2:]] == [[], []]

    async def test_that_two_have_sent_stays_with_the_one_who_was_not_erased(self, begin: Begin) -> None:
        async with begin() as asking:
            await asking.send("mine", ("name-of-ann.png", picture()))
            bobs = await asking.send("mine too", ("bob.png", picture()), by=asking.world.bob)
            await erase(asking.world, asking.world.ann)
            await asking.send("which?", by=asking.world.bob, reply_to=bobs)
        assert shown(asking.last) == [RED]
        assert files(asking.last) == ["- Picture 1: “bob.png”, with the replied-to message"]

    async def test_of_somebody_who_wants_no_memory_is_not_read_for_others(self, begin: Begin) -> None:
        async with begin() as asking:
            hers = await asking.send("mine", ("cat.png", picture()))
            await asking.world.ann.slash(asking.world.general, "memory data optout")
            await asking.send("what is there?", by=asking.world.bob, reply_to=hers)
        assert (shown(asking.last), files(asking.last)) == ([], [])


class TestTheSmallPrintBelowAnAnswer:
    async def test_is_not_among_what_the_bot_has_said(self, begin: Begin) -> None:
        """Read from Discord, it was the bot's own words, which a model repeats."""
        async with begin() as asking:
            await asking.send("look", ("cat.png", b"\x89PNG\r\n\x1a\n broken"))
            answer = asking.world.general.last_message
            assert "-# “cat.png” can't be opened" in answer.content
            await asking.restart()
            await asking.send("and now?")
            assert "can't be opened" not in asking.last.prompt and "ok" in asking.last.prompt
            await asking.send("this?", by=asking.world.bob, reply_to=answer)
            assert "can't be opened" not in asking.last.prompt
