"""A memory is read by its person as "You …", and with a name by others and where that is not certain."""

from hypothesis import given
from hypothesis import strategies as st

from discoclaw.core.yours import named, read_by, yours
from tests.tables import each_row

SAID_TO_YOU = {
    "User works as a nurse.": "You work as a nurse.",
    "User's sister Mia studies in Graz.": "Your sister Mia studies in Graz.",
    "User is a nurse and has two children.": "You are a nurse and have two children.",
    "User was born in 1990.": "You were born in 1990.",
    "User does not like mushrooms.": "You do not like mushrooms.",
    "User doesn’t like mushrooms but loves truffles.": "You don't like mushrooms but love truffles.",
    "User always eats breakfast.": "You always eat breakfast.",
    "User no longer drinks coffee.": "You no longer drink coffee.",
    "User goes to the gym and studies law.": "You go to the gym and study law.",
    "User teaches maths, watches films and tries sushi.": "You teach maths, watch films and try sushi.",
    "User has cats and dogs.": "You have cats and dogs.",
    "User can't install software.": "You can't install software.",
    "User moved to Graz.": "You moved to Graz.",
    "User lives in Porto. User works as a nurse.": "You live in Porto. You work as a nurse.",
    "Berlin is where User lives.": "Berlin is where you live.",
    "Mia (User's sister) visits User.": "Mia (your sister) visits you.",
    "User and Ben share a flat.": "You and Ben share a flat.",
    "User works at User Friendly Ltd.": "You work at User Friendly Ltd.",
    'User says "User works here" often.': 'You say "User works here" often.',
    "User likes `User.name` and User-Agent.": "You like `User.name` and User-Agent.",
}
WITH_A_NAME = {
    "User arbeitet bei Bosch.": "Ann arbeitet bei Bosch.",
    "User hat am 2026-11-20 einen Zahnarzttermin.": "Ann hat am 2026-11-20 einen Zahnarzttermin.",
    "User will Arzt werden.": "Ann will Arzt werden.",
    "User es profesor.": "Ann es profesor.",
    "User habite à Lyon.": "Ann habite à Lyon.",
    "User lives in Porto with his wife.": "Ann lives in Porto with his wife.",
    "User has a sister who lives in Graz and works at Bosch.": (
        "Ann has a sister who lives in Graz and works at Bosch."
    ),
    "User codes in Rust and frobnicates old code.": "Ann codes in Rust and frobnicates old code.",
    "User likes films and drinks.": "Ann likes films and drinks.",
    "User wants you to be brief.": "Ann wants you to be brief.",
    "User's a nurse.": "Ann's a nurse.",
}
AS_IT_IS = (
    "I work as a nurse.",
    "The User guide is read by Ann.",
    "User Friendly Ltd is where Ann works.",
    "User stories are written in Jira.",
    "User settings are stored in Postgres.",
    "superuser and Users and User_1 and /User/x and User@home",
    '"User works here"',
    "`User works`",
    "",
)


@each_row(("text", "read"), SAID_TO_YOU.items())
def test_what_is_certain_is_said_to_its_person(text: str, read: str) -> None:
    assert yours(text) == read


@each_row(("text", "read"), WITH_A_NAME.items())
def test_what_is_not_certain_or_not_english_says_the_name(text: str, read: str) -> None:
    with read_by("Ann"):
        assert yours(text) == read
    assert yours(text) == text


@each_row("text", AS_IT_IS)
def test_names_quotations_and_code_stay_as_they_are(text: str) -> None:
    with read_by("Ann"):
        assert yours(text) == named(text, "Ann") == text


@each_row("text", SAID_TO_YOU)
def test_for_others_only_the_person_gets_a_name(text: str) -> None:
    told = named(text, "Zoe")
    assert "You" not in told.split() and "Zoe" in told
    assert told.replace("Zoe", "User") == text


PARTS = [
    *"(),.;!?'’\"“”` \n–",
    "User",
    "User's",
    "You",
    "works",
    "has",
    "and",
    "who",
    "his",
    "Ben",
    "is",
    "ly",
]


@given(st.lists(st.sampled_from(PARTS), max_size=14).map(" ".join) | st.text(max_size=60))
def test_any_text_is_read_without_a_fault_and_loses_no_line_or_quotation(text: str) -> None:
    told = yours(text)
    assert told.count("\n") == text.count("\n") and told.count("“") == text.count("“")
    assert named(text, "User") == text
    if "User" not in text:
        assert told == text
