"""Which messages are plain requests that need no model, in every language: whole tables of them."""

from discoclaw.bot.words import request_of

REQUESTS = {
    "help": """
        help | !help | /help | HELP! | help please | commands | what can you do? | What can you do for me?
        how do you work? | how do I use this bot? | who are you? | what are you? | who r u
        Hilfe | was kannst du? | Was kannst du alles? | Wer bist du? | Wie benutze ich dich?
        Que peux-tu faire ? | Qu’est-ce que tu sais faire ? | qui es-tu ? | aide
        ¿Qué puedes hacer? | ¿Quién eres? | ayuda | o que você pode fazer? | quem é você?
        cosa puoi fare? | Chi sei? | wat kun je? | wie ben je? | vad kan du göra? | kim jesteś?
        Neler yapabilirsin? | kamu bisa apa? | bạn là ai? | Что ты умеешь? | кто ты?
        τι μπορείς να κάνεις; | ماذا تستطيع أن تفعل؟ | आप क्या कर सकते हैं? | あなたは誰ですか？ | 你能做什么？
        """,
    "show": """
        what do you remember about me? | What do you know about me | tell me what you know about me
        what have you learned about me so far? | show me everything you know about me
        Was weißt du über mich? | Que sais-tu de moi ? | ¿Qué sabes de mí? | o que você sabe sobre mim?
        cosa sai di me? | wat weet je over mij? | co o mnie wiesz? | что ты знаешь обо мне?
        """,
    "erase": """
        how do I delete everything you know about me? | delete all my data | please erase everything about me
        forget me | forget everything you know about me | Wie lösche ich alles, was du über mich weißt?
        lösche meine Daten
        comment effacer tout ce que tu sais sur moi ? | ¿Cómo borro todo lo que sabes de mí?
        cancella tutti i miei dati | verwijder al mijn gegevens | удали все мои данные
        """,
    "optout": """
        stop remembering me | Please stop remembering things about me! | don't remember anything about me
        I don't want you to remember me | how do I opt out? | stop saving what I say
        Hör auf, dir Sachen über mich zu merken | Merk dir nichts über mich | arrête de me mémoriser
        deja de guardar cosas sobre mí | smetti di ricordarti di me | не запоминай ничего обо мне
        """,
    "optin": "remember me again | opt me back in | merk dir wieder was über mich",
    "forget": """
        forget my cat | Please forget my cat. | can you forget my cat? | forget that I have a cat called Ada
        vergiss meine cat | oublie mon cat | olvida mi cat
        """,
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


def test_a_few_plain_words_are_a_request() -> None:
    asked = {one: kind for kind, table in REQUESTS.items() for one in sentences(table)}
    found = {one: request_of(one) for one in asked}
    assert {one: request and request.kind for one, request in found.items()} == asked


def test_what_only_looks_like_one_is_talk() -> None:
    assert [one for one in sentences(TALK) if request_of(one) is not None] == []
