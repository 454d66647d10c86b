"""People ask in their own words for help and for what commands do: no model is asked, and buttons do it."""

from typing import Any

import pytest

from tests.contract.cards import buttons, labels, said
from tests.contract.commands import typed
from tests.contract.world import Start, World
from tests.servers.messages_api import failure

CAT, NUTS = "User's cat is called Ada.", "User is allergic to nuts."
QUIET: dict[str, Any] = {"extraction_enabled": False, "summary_enabled": False}

WHAT_I_AM = "I'm a bot you can talk to"
SHOWS = "This button shows what I remember about you."
ERASES = "I can delete everything I know about you"
STOPS = "Should I stop remembering you?"
STARTS = "Should I remember you again"
FORGETS = "Forget “Your cat is called Ada.”?"

ANSWERED = {
    WHAT_I_AM: """
        help | !help | /help | HELP! | help please | commands | what can you do? | What can you do for me?
        how do you work? | how do I use this bot? | who are you? | what are you? | who r u
        Hilfe | was kannst du? | Was kannst du alles? | Wer bist du? | Wie benutze ich dich?
        Que peux-tu faire ? | Qu’est-ce que tu sais faire ? | qui es-tu ? | aide
        ¿Qué puedes hacer? | ¿Quién eres? | ayuda | o que você pode fazer? | quem é você?
        cosa puoi fare? | Chi sei? | wat kun je? | wie ben je? | vad kan du göra? | kim jesteś?
        Neler yapabilirsin? | kamu bisa apa? | bạn là ai? | Что ты умеешь? | кто ты?
        τι μπορείς να κάνεις; | ماذا تستطيع أن تفعل؟ | आप क्या कर सकते हैं? | あなたは誰ですか？ | 你能做什么？
        """,
    SHOWS: """
        what do you remember about me? | What do you know about me | tell me what you know about me
        what have you learned about me so far? | show me everything you know about me
        Was weißt du über mich? | Que sais-tu de moi ? | ¿Qué sabes de mí? | o que você sabe sobre mim?
        cosa sai di me? | wat weet je over mij? | co o mnie wiesz? | что ты знаешь обо мне?
        """,
    ERASES: """
        how do I delete everything you know about me? | delete all my data | please erase everything about me
        forget me | forget everything you know about me | Wie lösche ich alles, was du über mich weißt?
        lösche meine Daten
        comment effacer tout ce que tu sais sur moi ? | ¿Cómo borro todo lo que sabes de mí?
        cancella tutti i miei dati | verwijder al mijn gegevens | удали все мои данные
        """,
    STOPS: """
        stop remembering me | Please stop remembering things about me! | don't remember anything about me
        I don't want you to remember me | how do I opt out? | stop saving what I say
        Hör auf, dir Sachen über mich zu merken | Merk dir nichts über mich | arrête de me mémoriser
        deja de guardar cosas sobre mí | smetti di ricordarti di me | не запоминай ничего обо мне
        """,
    STARTS: "remember me again | opt me back in | merk dir wieder was über mich",
    FORGETS: """
        forget my cat | Please forget my cat. | can you forget my cat? | forget that I have a cat called Ada
        vergiss meine cat | oublie mon cat | olvida mi cat
        """,
    "Did you mean `!memory show`?": "!memroy show | /memory show | /memory shwo | !show | !memory shwo",
    "Did you mean `!memory forget my cat`?": "!memroy forget my cat | /memory forgt my cat | /forget my cat",
    "Did you mean `!memory data optout`?": "/memory data optout",
    "Did you mean `!memory help`?": "/memory help | !memroy help",
}
TALK = """
    forget about the meeting, let's go out | can you help me cook? | who are you talking about?
    forget about my exam, let's go out | forget my worries for a moment | forget my last question | forget it
    forget my cat and tell me a joke | forget what I said | I forget my cat all the time
    don't forget my cat | help my cat is sick | I need help with python | help me write a letter
    what can you do about spam? | what do you know about cats? | what do you know about me and Bob?
    what else do you know about me? | do you remember me? | who are you voting for? | what are you doing?
    delete the last line | how do I delete my account on GitHub? | how do I delete everything on my disk?
    stop it | stop remembering the milk | I don't remember anything | don't remember what I said
    stop talking about me | how do you work with pandas? | show me a picture
    how does it work? | And how does this work? | how do I use this?
    Wie funktioniert das? | Comment ça marche ? | como se usa?
    > help | > what do you know about me? | help "me with my car"
    "how do I delete all my data?" | > forget my cat
    vergiss meine letzte Frage | olvida mi pregunta | oublie ma dernière réponse
    !important | /shrug | !play jazz
    was weißt du über Katzen? | kannst du mir helfen? | vergiss nicht meine Tasche | vergiss es
    que sais-tu de Paris ? | ¿qué sabes de Madrid? | aide-moi à écrire | remember me to your mother
    """


def sentences(table: str) -> list[str]:
    return [one.strip() for line in table.strip().splitlines() for one in line.split("|")]


class TestARequest:
    @pytest.mark.parametrize("mode", ["mention", "all"])
    async def test_is_answered_before_any_model_is_asked(self, start: Start, mode: str) -> None:
        async with start(respond_mode=mode, **QUIET) as world:
            await world.remember(world.ann, CAT, NUTS)
            before = f"{world.mention} " if mode == "mention" else ""
            for answer, table in ANSWERED.items():
                for sentence in sentences(table)[: 1 if mode == "mention" else None]:
                    await world.ann.send(world.general, before + sentence)
                    assert answer in world.answer(world.general), sentence
            assert world.server.requests == []
            if mode == "mention":
                for sentence in ("help", "stop remembering me", "!show", "forget my cat"):
                    await world.ann.send(world.general, sentence)
                    assert world.answer(world.general) == sentence  # nobody asked the bot
                await world.restart()
                await world.says(world.ann, world.general, f"{world.mention} good morning")
                assert "opt out" not in world.prompt and STOPS not in world.prompt

    async def test_in_a_direct_message_is_shown_and_asked_right_there(self, start: Start) -> None:
        async with start(**QUIET) as world:
            await typed(world, f"remember {CAT}", privately=True)
            answers = {"Ada": SHOWS, "**Erase everything I remember about you?**": ERASES}
            world.brain.usual = failure(529, "overloaded_error", "down")
            for answer, kind in [*answers.items(), (WHAT_I_AM, WHAT_I_AM), (STOPS, STOPS)]:
                for sentence in sentences(ANSWERED[kind])[:2]:
                    await world.ann.send_dm(sentence)
                    assert answer in world.answer(world.ann_dm), sentence
            assert world.server.requests == []
            await world.restart(durable_enabled=False)
            await world.ann.send_dm("what can you do?")
            assert "My memory is switched off" in world.answer(world.ann_dm)
            assert labels(world.ann_dm.last_message) == ["All commands"]

    async def test_is_nothing_that_only_looks_like_one(self, start: Start) -> None:
        async with start(**QUIET) as world:
            world.brain.usual = "Fine."
            await typed(world, f"remember {CAT}", privately=True)
            for count, sentence in enumerate(sentences(TALK), 1):
                await world.ann.send_dm(sentence)
                assert world.answer(world.ann_dm) == "Fine.", sentence
                assert len(world.turns()) == count
            assert world.memories(world.ann) == [CAT]
            other = await world.bob.send(world.dev, "I am new here")
            await world.ann.send(world.dev, f"{world.mention} who are you?", reply_to=other)
            assert world.answer(world.dev) == "Fine."
            await world.ann.send(world.dev, "help", attachments=[("help.txt", b"some text")])
            assert world.answer(world.dev) == "Fine."
            await world.restart(owners=frozenset({str(world.ann.id)}))
            world.brain.usual = "And what do you build?"
            await world.ann.send_dm("!hatch start")
            await world.ann.send_dm("who are you?")  # which belongs to the interview
            assert world.answer(world.ann_dm) == "And what do you build?"


class TestAButton:
    async def press(self, world: World, label: str, message: Any = None) -> Any:
        """What a press in #general shows to its person alone."""
        before = len(world.general.history())
        pressed = await world.ann.click(message or world.general.last_message, label=label)
        assert len(world.general.history()) == before and pressed.ephemeral
        return pressed.response

    async def test_shows_what_is_remembered_to_its_person_alone_after_a_restart_too(
        self, start: Start
    ) -> None:
        async with start(**QUIET) as world:
            await typed(world, f"remember {NUTS}", privately=True)
            await world.ann.send(world.general, "what do you know about me?")
            asked = world.general.last_message
            assert "nuts" not in said(asked)
            await world.restart()
            shown = await self.press(world, "What you remember", asked)
            assert "\nYou are allergic to nuts.\n" in said(shown)
            refused = await world.bob.click(asked, label="What you remember")
            assert refused.response.content == "These buttons are for somebody else."
            await world.ann.send(world.general, "help")
            everything = await self.press(world, "All commands")
            assert "`!memory forget <words or id>`" in said(everything)

    async def test_erases_and_stops_the_remembering_after_one_more_press(self, start: Start) -> None:
        async with start(summary_enabled=False) as world:
            world.brain.learns("User likes tea.", about="I like tea")
            await world.ann.send(world.general, "help")
            question = await self.press(world, "Stop remembering me…")
            assert STOPS in said(question)
            await world.ann.click(question, label="Stop remembering me")
            await world.says(world.ann, world.general, "I like tea")
            assert world.memories(world.ann) == []
            await world.ann.send(world.general, "help")
            question = await self.press(world, "Stop remembering me…")
            await world.ann.click(question, label="Remember me again")
            await world.env.advance_time(1)  # what was said before stays unread
            await world.says(world.ann, world.general, "I like tea")
            assert world.memories(world.ann) == ["User likes tea."]
            await world.ann.send(world.general, "how do I delete everything you know about me?")
            question = await self.press(world, "Delete everything…")
            assert world.memories(world.ann) == ["User likes tea."]
            await world.ann.click(question, label="Erase everything")
            assert world.files_with("likes tea") == []

    async def test_gives_the_command_that_was_mistyped_with_its_words(self, start: Start) -> None:
        async with start(**QUIET) as world:
            await world.remember(world.ann, CAT, NUTS)
            await world.ann.send(world.general, "!memroy forgt my cat")
            shown = await self.press(world, "!memory forget my cat")
            assert said(shown) == FORGETS
            await world.ann.click(shown, label="Forget")
            assert world.memories(world.ann) == [NUTS]
            long = await typed(world, f"rember {'I like tea, ' * 9}")
            assert long.endswith("Did you mean `!memory remember`?")
            assert [label for label, _ in buttons(world.general.last_message)] == ["All commands"]
