"""People ask in their own words for help and for what commands do: no model is asked, and buttons do it."""

from typing import Any

import pytest

from discoclaw.core.errors import ModelOverloaded
from tests.app.conftest import Start, World
from tests.app.models import Scripted
from tests.contract.cards import buttons, labels, said

CAT, NUTS = "User's cat is called Ada.", "User is allergic to nuts."

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


async def texts(world: World, person: Any) -> set[str]:
    return {item.text for item in (await world.memory.view(f"user-{person.id}")).active()}


async def remember(world: World, *some: str) -> None:
    for text in some:
        await world.ann.send(world.general, f"!memory remember {text}")


def mention(world: World) -> str:
    return f"<@{world.env.bot.user.id}>"


class TestARequest:
    @pytest.mark.parametrize("way", ["mention", "unasked"])
    @pytest.mark.parametrize("answer", ANSWERED)
    async def test_is_answered_before_any_model_is_asked(self, start: Start, answer: str, way: str) -> None:
        model = Scripted()
        mode = "mention" if way == "mention" else "all"
        async with start(model, extraction_enabled=False, respond_mode=mode) as world:
            await remember(world, CAT, NUTS)
            before = f"{mention(world)} " if way == "mention" else ""
            for sentence in sentences(ANSWERED[answer]):
                await world.ann.send(world.general, before + sentence)
                assert answer in world.answer(world.general), sentence
            assert model.requests == []

    async def test_in_a_direct_message_shows_and_asks_right_there(self, start: Start) -> None:
        model = Scripted()
        async with start(model, extraction_enabled=False) as world:
            await world.ann.send_dm(f"!memory remember {CAT}")
            answers = {"Ada": SHOWS, "**Erase everything I remember about you?**": ERASES}
            for answer, kind in [*answers.items(), (WHAT_I_AM, WHAT_I_AM), (STOPS, STOPS)]:
                for sentence in sentences(ANSWERED[kind])[:3]:
                    await world.ann.send_dm(sentence)
                    assert answer in world.answer(world.ann_dm), sentence
            assert model.requests == []

    async def test_is_nothing_that_only_looks_like_one(self, start: Start) -> None:
        model = Scripted(then="Fine.")
        async with start(model, extraction_enabled=False) as world:
            await world.ann.send_dm(f"!memory remember {CAT}")
            for count, sentence in enumerate(sentences(TALK), 1):
                await world.ann.send_dm(sentence)
                assert world.answer(world.ann_dm) == "Fine.", sentence
                assert len(model.requests) == count
            assert await texts(world, world.ann) == {CAT}

    async def test_is_left_to_others_where_nobody_asked_the_bot(self, start: Start) -> None:
        model = Scripted()
        async with start(model, respond_mode="mention") as world:
            for sentence in ("help", "stop remembering me", "!show", "forget my cat"):
                await world.ann.send(world.general, sentence)
                assert world.answer(world.general) == sentence
            assert model.requests == []

    async def test_is_answered_while_the_model_is_down(self, start: Start) -> None:
        async with start(Scripted(then=ModelOverloaded("down"))) as world:
            await world.ann.send_dm("what can you do?")
            assert WHAT_I_AM in world.answer(world.ann_dm)

    async def test_with_a_file_or_to_somebody_elses_words_is_talk(self, start: Start) -> None:
        model = Scripted(then="Fine.")
        async with start(model, extraction_enabled=False) as world:
            other = await world.bob.send(world.general, "I am new here")
            await world.ann.send(world.general, f"{mention(world)} who are you?", reply_to=other)
            assert world.answer(world.general) == "Fine."
            await world.ann.send(world.general, "help", attachments=[("help.txt", b"some text")])
            assert world.answer(world.general) == "Fine."

    async def test_belongs_to_the_interview_while_there_is_one(self, start: Start) -> None:
        model = Scripted(then="And what do you build?")
        async with start(model, owners=frozenset()) as world:
            await world.restart(owners=frozenset({str(world.ann.id)}))
            await world.ann.send_dm("!hatch start")
            await world.ann.send_dm("who are you?")
            assert world.answer(world.ann_dm) == "And what do you build?"

    async def test_is_answered_without_promises_where_nothing_is_remembered(self, start: Start) -> None:
        async with start(durable_enabled=False) as world:
            await world.ann.send_dm("what can you do?")
            assert "My memory is switched off" in world.answer(world.ann_dm)
            assert labels(world.ann_dm.last_message) == ["All commands"]

    async def test_is_read_from_no_history_as_talk(self, start: Start) -> None:
        model = Scripted()
        async with start(model, extraction_enabled=False, respond_mode="mention") as world:
            await world.ann.send(world.general, f"{mention(world)} how do I opt out?")
            await world.restart()
            await world.ann.send(world.general, f"{mention(world)} good morning")
            assert "opt out" not in model.prompt and STOPS not in model.prompt


class TestAButton:
    async def press(self, world: World, message: Any, label: str) -> Any:
        """What a press shows to its person alone."""
        before = len(world.general.history())
        pressed = await world.ann.click(message, label=label)
        assert len(world.general.history()) == before
        assert pressed.ephemeral
        return pressed.response

    async def test_shows_what_is_remembered_to_its_person_alone_after_a_restart_too(
        self, start: Start
    ) -> None:
        async with start() as world:
            await world.ann.send_dm(f"!memory remember {NUTS}")
            await world.ann.send(world.general, "what do you know about me?")
            asked = world.general.last_message
            assert "nuts" not in said(asked)
            await world.restart()
            shown = await self.press(world, asked, "What you remember")
            assert "\nYou are allergic to nuts.\n" in said(shown)
            refused = await world.bob.click(asked, label="What you remember")
            assert refused.response.content == "These buttons are for somebody else."

    async def test_erases_everything_after_one_more_press(self, start: Start) -> None:
        async with start() as world:
            await remember(world, CAT)
            await world.ann.send(world.general, "how do I delete everything you know about me?")
            question = await self.press(world, world.general.last_message, "Delete everything…")
            assert await texts(world, world.ann) == {CAT}
            await world.ann.click(question, label="Erase everything")
            assert await texts(world, world.ann) == set()

    async def test_stops_the_remembering_and_starts_it_again(self, start: Start) -> None:
        async with start() as world:
            choices = world.app.storage.people.choices
            await world.ann.send(world.general, "help")
            question = await self.press(world, world.general.last_message, "Stop remembering me…")
            assert STOPS in said(question) and not choices.opted_out(str(world.ann.id))
            await world.ann.click(question, label="Stop remembering me")
            assert choices.opted_out(str(world.ann.id))
            await world.ann.send(world.general, "help")
            question = await self.press(world, world.general.last_message, "Stop remembering me…")
            await world.ann.click(question, label="Remember me again")
            assert not choices.opted_out(str(world.ann.id))

    async def test_gives_the_command_that_was_mistyped_with_its_words(self, start: Start) -> None:
        async with start() as world:
            await remember(world, CAT, NUTS)
            await world.ann.send(world.general, "!memroy forgt my cat")
            shown = await self.press(world, world.general.last_message, "!memory forget my cat")
            assert said(shown) == FORGETS
            await world.ann.click(shown, label="Forget")
            assert await texts(world, world.ann) == {NUTS}

    async def test_is_left_out_for_a_command_that_is_too_long_for_one(self, start: Start) -> None:
        async with start() as world:
            await world.ann.send(world.general, f"!memory rember {'I like tea, ' * 9}")
            assert world.answer(world.general).endswith("Did you mean `!memory remember`?")
            assert [label for label, _ in buttons(world.general.last_message)] == ["All commands"]

    async def test_lists_all_commands(self, start: Start) -> None:
        async with start() as world:
            await world.ann.send(world.general, "help")
            shown = await self.press(world, world.general.last_message, "All commands")
            assert "`!memory forget <words or id>`" in said(shown)
