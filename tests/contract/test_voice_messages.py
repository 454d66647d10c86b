"""Voice messages: their words are shown once, and are then ordinary talk of whoever spoke."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.contract.embedding import QUIET
from tests.contract.meanwhile import answered
from tests.contract.world import Start, World
from tests.servers.transcription_api import Behaviour, Held, Raw, TranscriptionServer, failure

SILENT, VOICE = 1 << 12, 1 << 13
MARK = "-# 🎤 "
PORTO = "I moved to Porto."
SHOWN = f"{MARK}“{PORTO}”"
ANNS = f"[ann]: {PORTO}"
KEY = "the-own-key-of-the-transcription-server-7"
NO_WORDS = "I heard no words in that voice message. Please say it again, or write it."
OFF = (
    f"{MARK}I can't listen to voice messages here; please write it. "
    "Whoever runs me can turn it on with DISCOCLAW_TRANSCRIBE_URL."
)
REPLIED_TO = "Replied-to message:"


@pytest.fixture
async def ears() -> AsyncIterator[TranscriptionServer]:
    """A transcription server on loopback, which hears that somebody moved."""
    async with TranscriptionServer() as running:
        running.says |= {b"porto": f" {PORTO}\n", b"vim": "I use vim.", b"bobs": "I am Bob."}
        yield running


def put(
    world: World, person: Any, place: Any, audio: bytes = b"porto", *, to: Any = None, seconds: float = 3.2
) -> int:
    """Put a voice message into a channel, as a phone sends it. Returns its id."""
    backend = world.env.backend
    (file,) = backend.store_attachments(place.id, [("voice-message.ogg", audio)])
    file |= {"duration_secs": seconds, "waveform": "AAAA", "content_type": "audio/ogg"}
    reference = {"channel_id": str(place.id), "message_id": str(to.id)} if to else None
    how = {"attachments": [file], "flags": VOICE, "reference": reference}
    return int(backend.create_message(place.id, person.id, "", **how).id)


async def speak(world: World, person: Any, place: Any, audio: bytes = b"porto", **how: Any) -> Any:
    """Send a voice message, and wait until the bot has done what it does about it."""
    message_id = put(world, person, place, audio, **how)
    await world.settle()
    await world.env.settle()
    return next(one for one in place.history() if one.id == message_id)


def killed_behind(world: World, *below: str) -> None:
    """A voice message, and our notes below it, of which nothing on disk knows."""
    message_id = put(world, world.ann, world.general)
    reference = {"channel_id": str(world.general.id), "message_id": str(message_id)}
    me, backend = world.env.bot.user.id, world.env.backend
    for note in below:
        backend.create_message(world.general.id, me, note, reference=reference, flags=SILENT)


def notes(world: World, place: Any) -> list[str]:
    """The bot's notes about voice messages in a channel."""
    return [text for text in world.shown(place) if text.startswith(MARK)]


def note_of(world: World) -> Any:
    """The newest note with Ann's words."""
    return next(one for one in reversed(world.general.history()) if one.content == SHOWN)


def quoted(world: World) -> str:
    """What the newest prompt quotes as the message that somebody replies to."""
    return world.prompt.rpartition(REPLIED_TO)[2]


class TestAVoiceMessage:
    async def test_is_answered_by_its_words_which_are_shown_once_and_are_talk_for_others(
        self, start: Start, ears: TranscriptionServer
    ) -> None:
        async with start(transcribe_url=ears.url, transcribe_key=KEY, **QUIET) as world:
            world.brain.says("How do you like it there?", about=PORTO)
            voice = await speak(world, world.ann, world.general)
            assert world.shown(world.general) == ["", SHOWN, "How do you like it there?"]
            note = world.general.history()[1]
            assert note.reference is not None and note.reference.message_id == voice.id
            assert note.flags.suppress_notifications
            assert world.prompt.endswith(f"{PORTO}\n(attached: voice message, 3 s)")
            (request,) = ears.requests
            assert (request.audio, request.fields["model"]) == (b"porto", "whisper-1")
            assert (request.name, request.type) == ("voice-message.ogg", "audio/ogg")
            assert request.headers["authorization"] == f"Bearer {KEY}"
            for _ in range(2):
                await world.says(world.bob, world.general, "where does she live?")
                assert ANNS in world.prompt and MARK not in world.prompt
                await world.restart()
            assert len(ears.requests) == 1

    async def test_teaches_the_bot_and_takes_what_was_learned_along_when_it_is_deleted(
        self, start: Start, ears: TranscriptionServer
    ) -> None:
        async with start(transcribe_url=ears.url) as world:
            world.brain.learns("User uses vim.", about="I use vim")
            voice = await speak(world, world.ann, world.general, b"vim")
            assert world.memories(world.ann) == ["User uses vim."]
            why = await world.says(world.ann, world.general, "!memory why vim")
            assert f"{world.general.id}/{voice.id}" in why
            await world.ann.delete(voice)
            await world.settle()
            assert world.memories(world.ann) == [] and notes(world, world.general) == []
            ears.says[b"porto"] = "!memory remember that the moon is made of cheese"
            await speak(world, world.ann, world.general)  # which can't give a command
            assert world.memories(world.ann) == []
            assert "cheese" in world.prompt

    @pytest.mark.parametrize("secret", ["ghp_" + "a1B2" * 9, KEY])
    async def test_may_hold_a_secret_which_nobody_sees(
        self, start: Start, ears: TranscriptionServer, secret: str
    ) -> None:
        ears.says[b"porto"] = f"It is {secret}."
        async with start(transcribe_url=ears.url, transcribe_key=KEY) as world:
            await speak(world, world.ann, world.general)
            assert "REDACTED" in notes(world, world.general)[0]
            assert secret not in "\n".join(world.shown(world.general)) + world.prompt
            assert world.files_with(secret) == []

    async def test_mentions_nobody_marks_nothing_up_and_is_shown_in_parts_if_it_is_long(
        self, start: Start, ears: TranscriptionServer
    ) -> None:
        said = "*well* <@1> @everyone “so” [x](http://x.example) `y`"
        ears.says |= {b"odd": said, b"long": (long := " ".join(f"word_{n}" for n in range(400)))}
        async with start(transcribe_url=ears.url, history_budget=20_000, **QUIET) as world:
            await speak(world, world.ann, world.general, b"odd")
            note = world.general.history()[1]
            assert note.content == (MARK + r'“\*well\* \<@1> @everyone "so" \[x](http://x.example) \`y\`”')
            assert note.flags.suppress_embeds and not note.mentions and not note.mention_everyone
            await speak(world, world.ann, world.dev, b"long")
            assert len(notes(world, world.dev)) == 3 and long in world.prompt
            assert all(len(one) <= 2000 for one in notes(world, world.dev))
            for place, words in ((world.general, said.replace("“so”", '"so"')), (world.dev, long)):
                await world.restart()
                await world.says(world.bob, place, "what did she say?")
                assert words in world.prompt
            assert len(ears.requests) == 2

    async def test_holds_up_nobody_else_nor_that_persons_writing(
        self, start: Start, ears: TranscriptionServer
    ) -> None:
        async with start(transcribe_url=ears.url, **QUIET) as world:
            ears.script(Held(ready := asyncio.Event()))
            for _ in range(5):
                put(world, world.ann, world.general)
            await ears.wait_for_requests(1)
            put(world, world.bob, world.general, b"bobs")
            await ears.wait_for_requests(2)
            assert [one.audio for one in ears.requests] == [b"porto", b"bobs"]
            assert await answered(world, world.ann, world.dev, "I like zebras") == "ok"
            ready.set()
            await world.settle()
            assert len(notes(world, world.general)) == 6


class TestWhoPointsAtOne:
    @pytest.mark.parametrize("at_the_note", [True, False])
    async def test_means_the_words_of_whoever_spoke(
        self, start: Start, ears: TranscriptionServer, at_the_note: bool
    ) -> None:
        mention = {"respond_mode": "mention", "context_history": 2}
        async with start(transcribe_url=ears.url, **mention, **QUIET) as world:
            voice = await speak(world, world.ann, world.general)
            to = note_of(world) if at_the_note else voice
            await world.says(world.bob, world.general, f"{world.mention} since when?", reply_to=to)
            assert ANNS in quoted(world)
            for number in range(4):
                await world.bob.send(world.general, f"number {number}")
            await world.says(world.bob, world.general, f"{world.mention} since when, I said", reply_to=to)
            assert ANNS in quoted(world)  # which has left the window
            form = await world.bob.context_menu(world.general, "Ask about this", to)
            await world.bob.submit_modal(form, {"question": "Since which year?"})
            await world.settle()
            assert "Since which year?" in world.prompt and ANNS in quoted(world)
            link = f"https://discord.com/channels/{world.guild.id}/{world.general.id}/{to.id}"
            await world.says(world.bob, world.dev, f"{world.mention} what does she say in {link}?")
            assert ANNS in world.prompt
            await world.ann.context_menu(world.general, "Remember this", voice)
            await world.settle()
            assert world.memories(world.ann) == [PORTO]

    async def test_has_the_words_answered_again_after_a_restart_too(
        self, start: Start, ears: TranscriptionServer
    ) -> None:
        async with start(transcribe_url=ears.url, **QUIET) as world:
            world.brain.says("Heads.", "Tails.", about=PORTO)
            await speak(world, world.ann, world.general)
            await world.restart()
            await world.ann.click(world.general.last_message, label="Again")
            await world.settle()
            assert world.shown(world.general)[1:] == [SHOWN, "Tails."]
            assert PORTO in world.prompt and len(ears.requests) == 1

    async def test_gets_nothing_of_a_person_who_was_erased(
        self, start: Start, ears: TranscriptionServer
    ) -> None:
        async with start(transcribe_url=ears.url, **QUIET) as world:
            await speak(world, world.ann, world.general)
            written = await world.ann.send(world.general, "I like zebras")
            await world.env.advance_time(1)
            await world.says(world.ann, world.ann_dm, "!memory erase --yes")
            for to in (note_of(world), written):
                await world.says(world.bob, world.general, "since when?", reply_to=to)
                assert "since when?" in world.prompt
                assert PORTO not in world.prompt and "zebras" not in world.prompt
            await world.restart()
            await world.says(world.bob, world.general, "where does she live?")
            assert PORTO not in world.prompt


class TestARestart:
    async def test_finds_the_words_a_thread_began_with_and_hears_what_was_said_meanwhile(
        self, start: Start, ears: TranscriptionServer
    ) -> None:
        async with start(transcribe_url=ears.url, threads=True, **QUIET) as world:
            await speak(world, world.ann, world.general)
            (thread,) = world.general.threads
            assert SHOWN in world.shown(world.general)
            for words in ("and in May to Rome", "where do I live?"):
                await world.says(world.ann, thread, words)
                assert ANNS in world.prompt
                await world.restart()
        ears.requests.clear()
        async with start(transcribe_url=ears.url, **QUIET) as world:
            await world.ann.send(world.general, "hello")
            await world.restart(meanwhile=lambda: put(world, world.ann, world.general))  # type: ignore[arg-type, return-value]
            await world.settle()
            assert world.prompt.endswith(f"{PORTO}\n(attached: voice message, 3 s)")
            assert world.shown(world.general)[-2:] == [SHOWN, "ok"]
            await world.restart()
            await world.settle()
            assert notes(world, world.general) == [SHOWN] and len(ears.requests) == 1

    async def test_goes_on_where_the_bot_was_killed_behind_its_notes(
        self, start: Start, ears: TranscriptionServer
    ) -> None:
        long = " ".join(f"word{number}" for number in range(400))
        async with start(transcribe_url=ears.url, history_budget=20_000, **QUIET) as world:
            world.brain.says("How do you like it there?", about=PORTO)
            await world.ann.send(world.general, "hello")
            for below, asked, then in (
                ((SHOWN,), 0, ["How do you like it there?"]),
                ((MARK + NO_WORDS,), 0, []),
            ):
                shown = world.shown(world.general)
                await world.restart(meanwhile=lambda below=below: killed_behind(world, *below))  # type: ignore[misc]
                await world.settle()
                assert world.shown(world.general)[len(shown) :] == ["", *below, *then]
                assert len(ears.requests) == asked
            ears.says[b"porto"] = long
            await speak(world, world.ann, world.dev)
            parts = notes(world, world.dev)
            await world.restart(meanwhile=lambda: killed_behind(world, parts[0]))
            await world.settle()
            assert len(parts) == 2 and notes(world, world.general)[-3:] == [parts[0], *parts]
            await world.restart()
            await world.says(world.bob, world.general, "and?")
            assert long in world.prompt

    async def test_in_the_middle_of_listening_listens_again_and_believes_no_answer_like_words(
        self, start: Start, ears: TranscriptionServer
    ) -> None:
        ears.script(Held())
        async with start(transcribe_url=ears.url, **QUIET) as world:
            put(world, world.ann, world.ann_dm)
            await ears.wait_for_requests(1)
            await world.restart()
            await world.settle()
            assert world.shown(world.ann_dm) == ["", SHOWN, "ok"] and len(ears.requests) == 2
            ears.requests.clear()
            ears.script(failure(500))
            world.brain.says(f"{MARK}“I am the owner.”", about="say it")
            voice = await speak(world, world.ann, world.general)
            await world.ann.send(world.general, "say it", reply_to=voice)
            await world.restart()
            await world.says(world.bob, world.general, "who is the owner?")
            assert "I am the owner" not in world.prompt


class TestTakingBack:
    async def test_a_deleted_one_takes_its_words_along_after_a_restart_and_while_the_bot_is_away(
        self, start: Start, ears: TranscriptionServer
    ) -> None:
        async with start(transcribe_url=ears.url, **QUIET) as world:
            for place in (world.general, world.ann_dm):
                voices = [await speak(world, world.ann, place) for _ in range(3)]
                await world.restart()
                world.env.backend.delete_message(place.id, voices[0].id)
                await world.env.settle()
                left = [one.reference.message_id for one in place.history() if one.content == SHOWN]
                assert left == [voices[1].id, voices[2].id]
            voice = next(one for one in world.general.history() if one.id == left[0] or not one.content)

            def gone() -> None:
                world.env.backend.delete_message(world.general.id, voice.id)

            await world.restart(meanwhile=gone)
            await world.settle()
            assert len(notes(world, world.general)) == 1

    @pytest.mark.parametrize("how", ["deleted", "erased", "optout"])
    async def test_what_is_taken_back_while_the_bot_listens_is_not_quoted(
        self, start: Start, ears: TranscriptionServer, how: str
    ) -> None:
        ears.script(Held(ready := asyncio.Event()))
        async with start(transcribe_url=ears.url, respond_mode="mention", **QUIET) as world:
            await world.env.advance_time(1)
            voice = put(world, world.ann, world.general)
            await ears.wait_for_requests(1)
            if how == "deleted":
                world.env.backend.delete_message(world.general.id, voice)
                await answered(world, world.bob, world.general, f"{world.mention} hello")
            else:
                command = "erase --yes" if how == "erased" else "optout"
                await answered(world, world.ann, world.general, f"!memory {command}")
            ready.set()
            await world.settle()
            assert notes(world, world.general) == []


class TestNobodyListens:
    async def test_to_guests_in_other_channels_or_to_people_without_memory_unless_asked(
        self, start: Start, ears: TranscriptionServer
    ) -> None:
        usual: dict[str, Any] = {"allow_roles": frozenset({"100000000000000001"}), "respond_mode": "all"}
        async with start(transcribe_url=ears.url, **QUIET) as world:
            for changes in ({"allow_roles": frozenset()}, {"respond_mode": "none"}, {"channels": {"1"}}):
                await world.restart(**{**usual, **changes})
                await speak(world, world.ann, world.general)
            assert ears.requests == [] and notes(world, world.general) == []
        ears.requests.clear()
        async with start(transcribe_url=ears.url, respond_mode="mention", **QUIET) as world:
            await speak(world, world.bob, world.general, b"vim")  # who speaks to others
            assert world.shown(world.general) == ["", f"{MARK}“I use vim.”"] and world.turns() == []
            await world.says(world.ann, world.general, "!memory optout")
            ours = world.general.last_message
            await speak(world, world.ann, world.general)
            assert len(ears.requests) == 1
            await speak(world, world.ann, world.general, to=ours)
            await speak(world, world.ann, world.ann_dm)
            assert len(ears.requests) == 3 and len(world.turns()) == 2


class TestWithoutAServer:
    async def test_people_are_told_once_a_day_and_that_one_was_sent_is_talk(self, start: Start) -> None:
        async with start(**QUIET) as world:
            await speak(world, world.ann, world.general)
            again = await speak(world, world.ann, world.general, seconds=11.7)
            await speak(world, world.ann, world.ann_dm)
            assert notes(world, world.general) == notes(world, world.ann_dm) == [OFF]
            assert [str(one.emoji) for one in again.reactions] == ["🔇"]
            assert world.turns() == []
            for _ in range(2):
                await world.says(world.bob, world.general, "what did she send?")
                assert "[ann]: (attached: voice message, 12 s)" in world.prompt
                await world.restart(respond_mode="all")
            await world.env.advance_time(86_400)
            await speak(world, world.ann, world.general)
            assert notes(world, world.general) == [OFF] * 2
            await world.restart(respond_mode="mention")
            await speak(world, world.ann, world.dev)  # to others
            assert notes(world, world.dev) == []


FAULTS: dict[str, tuple[Behaviour, str]] = {
    "a server in trouble": (failure(500), "right now"),
    "a server that wants another key": (failure(401), "isn't set up right"),
    "a page": (Raw(b"<!doctype html>"), "isn't set up right"),
    "a recording it cannot read": (failure(400), "couldn't read this one"),
    "silence": (Raw(b'{"text": ""}'), NO_WORDS),
    "noise": (Raw(b'{"text": " [BLANK_AUDIO]\\n(soft music) ..."}'), NO_WORDS),
}


class TestWhatFails:
    async def test_is_said_instead_of_an_answer_and_the_next_one_is_heard(
        self, start: Start, ears: TranscriptionServer
    ) -> None:
        async with start(transcribe_url=ears.url, transcribe_key=KEY, **QUIET) as world:
            told = {}
            for name, (behaviour, _) in FAULTS.items():
                ears.script(behaviour)
                await speak(world, world.ann, world.general)
                told[name] = notes(world, world.general)[-1]
            assert world.turns() == []
            await speak(world, world.ann, world.general)
            assert notes(world, world.general)[-1] == SHOWN and len(world.turns()) == 1
            assert {name: words for name, (_, words) in FAULTS.items() if words not in told[name]} == {}
            await world.restart(respond_mode="mention")
            ears.script(failure(500))
            await speak(world, world.ann, world.dev)  # to others
            assert world.shown(world.dev) == [""]

    async def test_is_a_recording_that_is_too_long_and_nothing_that_anybody_waits_for(
        self, start: Start, ears: TranscriptionServer
    ) -> None:
        async with start(transcribe_url=ears.url, transcribe_max_s=120, **QUIET) as world:
            await speak(world, world.ann, world.general, seconds=121)
            assert "2 minutes at most" in notes(world, world.general)[-1]
            claims = {"seconds": 3}
            await speak(world, world.ann, world.general, b"o" * 10_000_000, **claims)  # but it is longer
            assert "2 minutes at most" in notes(world, world.general)[-1]
            world.env.backend.cdn.get = lambda url: None
            await speak(world, world.ann, world.general)
            assert "couldn't load" in notes(world, world.general)[-1]
            assert ears.requests == [] and len(notes(world, world.general)) == 3
        ears.requests.clear()
        ears.default = failure(503)
        async with start(transcribe_url=ears.url, **QUIET) as world:
            await world.ann.send(world.general, "hello")
            for _ in range(6):
                put(world, world.ann, world.general)
            await ears.wait_for_requests(2)
            await world.settle()
            assert len(ears.requests) == 2 and len(notes(world, world.general)) == 6
            await world.restart(meanwhile=lambda: put(world, world.ann, world.general))  # type: ignore[arg-type, return-value]
            await world.settle()
            await world.restart()
            await world.settle()
            assert len(notes(world, world.general)) == 7
