"""Which memories say how to answer whatever the topic, and which are about a topic of their own."""

from discoclaw.core.visible import says_harm, says_how
from discoclaw.core.words import gist_of
from tests.tables import each_row


class TestSaysHow:
    @each_row(
        "text",
        [
            "User wants short answers.",
            "Answer briefly",
            "Never use emojis",
            "User likes to be addressed informally.",
            "User wants to be called Sam.",
            "User's pronouns are she/her.",
            "User wants answers in bullet points.",
            "User wants answers that start with the result.",
            "User prefers metric units.",
            "wants answers in English even if asked in German",
            "User wants a friendly tone with dry humor.",
            "User möchte kurze Antworten.",
            "Nutzer will geduzt werden.",
            "L'utilisateur veut des réponses courtes.",
            "Préfère qu'on le tutoie",
            "El usuario quiere respuestas breves.",
            "Пользователь хочет короткие ответы.",
            "ユーザーは敬語を望む。",
        ],
    )
    def test_length_tone_form_and_language(self, text: str) -> None:
        assert says_how(gist_of(text))

    @each_row(
        "text",
        [
            "User prefers metric units when cooking.",
            "In Python code wants type hints",
            "User wants pytest in examples.",
            "User wants short stories.",
            "Nutzer will in Geschichten kurze Sätze.",
            "User wants long options in shell scripts.",
            "User wants sources named in news summaries.",
            "L'utilisateur aime la grammaire expliquée par des tableaux.",
            "User hates coriander.",
            "User prefers tabs over spaces",
            "ユーザーは弁当に野菜を多く入れたい。",
            "Пользователь не читает рассказы о войне.",
        ],
    )
    def test_not_what_is_about_a_topic(self, text: str) -> None:
        assert not says_how(gist_of(text))

    @each_row(
        "text",
        ["Użytkownik chce krótkich odpowiedzi i nie lubi emotikonów.", "المستخدم يريد إجابات قصيرة", "🦀"],
    )
    def test_what_no_list_can_tell_counts_as_if_it_did(self, text: str) -> None:
        assert says_how(gist_of(text))


class TestSaysHarm:
    @each_row("text", ["Is allergic to nuts", "Nussallergie", "Аллергия на орехи", "卵アレルギー"])
    def test_of_allergies_and_the_like(self, text: str) -> None:
        assert says_harm(gist_of(text))

    def test_not_of_tastes(self) -> None:
        assert not says_harm(gist_of("User hates coriander."))
        assert not says_harm(gist_of("🦀"))
