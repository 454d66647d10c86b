"""A message becomes a query once: what it asks for, with what it replies to and the talk before it."""

from itertools import chain

from discoclaw.core.words import terms
from discoclaw.recall.document import LONGEST, LONGEST_REQUEST, MOST_TERMS, in_context, parse
from tests.tables import each_row

TALK = "we talked of my zebra"


class TestTheTalkBefore:
    @each_row("message", ["", "and why?", "why not?", "oh!", "tea?"])
    def test_is_read_where_the_message_says_next_to_nothing(self, message: str) -> None:
        assert "zebra" in parse(message, recent=TALK).terms
        assert in_context(message, TALK).endswith(TALK)

    def test_is_left_out_where_the_message_says_something(self) -> None:
        message = "is green tea healthy?"
        assert parse(message, recent=TALK) == parse(message)
        assert in_context(message, TALK) == message

    def test_is_left_out_where_the_message_replies_to_something(self) -> None:
        asked = parse("and why?", replied_to="green tea is healthy", recent=TALK)
        assert asked.terms == ("green", "tea", *terms("healthy"))


class TestWhatIsAskedFor:
    def test_each_term_once_and_dates_apart(self) -> None:
        asked = parse("tea, Tea and coffee on 8 May 2023?")
        assert asked.terms == ("tea", "coffe")
        assert {"d:2023-05-08", "d:2023"} <= asked.dates
        assert set(asked.wanted) == {*asked.terms, *asked.dates}

    def test_a_term_of_another_language_is_looked_for_in_english_too(self) -> None:
        asked = parse("¿cuándo estuvo ella en Las Vegas con cameras?")
        assert set(chain(*asked.forms.values())) <= set(asked.wanted)
        assert asked.forms

    def test_names_are_known_by_their_capitals(self) -> None:
        assert parse("does Marta like the Alps?").names == (
            frozenset(terms("Marta")),
            frozenset(terms("Alps")),
        )
        assert parse("Mag die Frau mit dem Hund der Marta den Tee?").names == ()

    def test_of_a_long_text_the_beginning_and_the_end_are_read(self) -> None:
        asked = parse("zebra " + "the " * LONGEST + " giraffe")
        assert {"zebra", "giraff"} <= set(asked.terms)

    def test_so_many_terms_and_no_more(self) -> None:
        assert len(parse(" ".join(f"word{n}" for n in range(200))).terms) == MOST_TERMS

    def test_who_says_much_does_not_ask_for_everything(self) -> None:
        asked = "What do you remember about me?"
        assert parse(asked).everything
        assert not parse(asked + " please" * LONGEST_REQUEST).everything
