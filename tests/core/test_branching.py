"""The names of threads: of words that people and models wrote, and as Discord takes them."""

from hypothesis import given
from hypothesis import strategies as st

from discoclaw.core.text import utf16_length
from discoclaw.session.delivery import FIRST_MAX, TITLE_MAX, first_name, tidy_title
from tests.tables import each_row


@each_row(
    ("question", "name"),
    [
        ("How long do eggs keep?", "How long do eggs keep?"),
        ("**bold** claim, @Ben?", "bold claim, ?"),
        ("see https://example.org/a?b=c please", "see please"),
        ("# Title\n- one\n- two", "Title one two"),
        ("", "Question by Ann"),
        ("Is ||the butler|| the murderer?", "Is … the murderer?"),
        ("\u3164\u2800", "Question by Ann"),
        ("https://example.org", "Question by Ann"),
        ("word " * 40, "word word word word word word word word word word word…"),
    ],
)
def test_a_thread_is_first_named_after_its_question(question: str, name: str) -> None:
    assert first_name(question, "Ann") == name


def test_a_long_word_is_cut_where_it_has_to_be() -> None:
    assert first_name("x" * 200, "Ann") == "x" * (FIRST_MAX - 1) + "…"


@each_row(
    ("made", "title"),
    [
        ("Bread by hand", "Bread by hand"),
        ("“Bread by hand.”", "Bread by hand"),
        ("  **Bread**\n by hand ", "Bread by hand"),
        ("@everyone", ""),
    ],
)
def test_a_models_title_is_plain_text(made: str, title: str) -> None:
    assert tidy_title(made) == title


@given(st.text(max_size=300))
def test_discord_takes_every_name(text: str) -> None:
    assert 1 <= utf16_length(first_name(text, "Ann")) <= FIRST_MAX
    assert utf16_length(tidy_title(text)) <= TITLE_MAX
    assert "\n" not in first_name(text, "Ann") + tidy_title(text)
