"""What somebody means by a few words: what is ticked in a list, what only came near, and what is neither."""

import string

from hypothesis import given
from hypothesis import strategies as st

from discoclaw.core.item import MANUAL, Facets, Item, new_item
from discoclaw.recall.named_items import Found, find
from tests.counting import counted
from tests.tables import each_row


def item(text: str, *tags: str, key: str | None = None) -> Item:
    return new_item("fact", text, tags=tags, source=MANUAL, now_ms=1, facets=Facets(key=key))


EVERY = [
    item("User takes coffee black."),
    item("User likes tea", "beverage"),
    item("User leads a team"),
    item("Works at Acme Corporation in Berlin"),
    item("User drives a blue Tesla."),
    item("User's old flat was in Elm Street."),
    item("The landlord of the old flat kept the deposit."),
    item("User eats no meat."),
    item("User eats meat on Sundays."),
    item("User's phone is +49 170 1234567"),
    item("User's mail is ann@x.org"),
    item("User's boss has the mail joann@x.org"),
    item("report_v2 is due"),
    item("The report on frogs is long"),
    item("User's card ends in 4411"),
    item("The key lies under pot A."),
    item("The bike stands by pot B."),
    item("The alarm code is four eight one seven."),
    item("User sees a dentist on 3 May."),
    item("User sees Rome on 12 May"),
    item("User's dog is called Otto."),
    item("User's neighbour's dog is called Nigella."),
    item("ユーザーは猫を飼っている。"),
    item("Der Nutzer singt im Kirchenchor."),
    item("Użytkownik mieszka w Gdyni.", "adres"),
]


def texts(found: Found) -> tuple[set[str], set[str]]:
    return {one.text for one in found.meant}, {one.text for one in found.near}


@each_row(
    ("typed", "meant"),
    [
        ("BLACK coffee", ["User takes coffee black."]),
        ("cofee", ["User takes coffee black."]),
        ("espresso coffee", ["User takes coffee black."]),
        ("taking coffee", ["User takes coffee black."]),
        ("tea", ["User likes tea"]),
        ("te", ["User likes tea", "User leads a team", "User drives a blue Tesla."]),
        ("beverages", ["User likes tea", "User takes coffee black."]),
        ("acme munich", ["Works at Acme Corporation in Berlin"]),
        ("my car", ["User drives a blue Tesla."]),
        ("everything about my old flat", [EVERY[5].text, EVERY[6].text]),
        ("all I told you about the old flat", [EVERY[5].text, EVERY[6].text]),
        ("that I don't eat meat", ["User eats no meat."]),
        ("that I eat meat", ["User eats meat on Sundays."]),
        ("0170 / 12-345 67", ["User's phone is +49 170 1234567"]),
        ("Ann at X dot org", ["User's mail is ann@x.org"]),
        ("report_v2", ["report_v2 is due"]),
        ("report", ["The report on frogs is long"]),
        ("the card ending 4411", ["User's card ends in 4411"]),
        ("pot B", ["The bike stands by pot B."]),
        ("4817", ["The alarm code is four eight one seven."]),
        ("the 3rd of May", ["User sees a dentist on 3 May."]),
        ("my dog", ["User's dog is called Otto."]),
        ("alles über den Chor", ["Der Nutzer singt im Kirchenchor."]),
        ("猫のこと", ["ユーザーは猫を飼っている。"]),
        ("the flat, but not the deposit", ["User's old flat was in Elm Street."]),
    ],
)
def test_what_is_meant_is_ticked(typed: str, meant: list[str]) -> None:
    assert texts(find(EVERY, typed))[0] == set(meant)


@each_row(
    ("typed", "near", "never"),
    [
        ("an**@x.org", "User's mail is ann@x.org", "User's boss has the mail joann@x.org"),
        ("report_v3", "report_v2 is due", "User likes tea"),
        ("that I eat meat", "User eats no meat.", "User likes tea"),
    ],
)
def test_what_only_may_be_meant_is_offered_without_a_tick(typed: str, near: str, never: str) -> None:
    meant, others = texts(find(EVERY, typed))
    assert near not in meant and never not in meant | others
    assert near in others or near in meant


@each_row("typed", ["zebra", "the blue car of my aunt Zoe in Ulm", "", " \n", "user"])
def test_where_nothing_comes_near_nothing_is_offered(typed: str) -> None:
    assert texts(find([one for one in EVERY if "blue" not in one.text], typed)) == (set(), set())


@each_row(
    "typed",
    [EVERY[0].id, EVERY[0].id.removeprefix("durable-"), "user takes COFFEE black.", "takes coffee black"],
)
def test_an_id_or_most_of_a_text_is_certain(typed: str) -> None:
    assert find(EVERY, typed).certain == EVERY[0]


def test_a_part_of_a_name_with_signs_is_never_certain() -> None:
    plan = item("notes/plan.old")
    assert find([plan], "notes/plan").certain is None
    assert find([plan], "notes/plan.old").certain == plan


def test_everything_without_a_topic_is_every_memory() -> None:
    found = find(EVERY, "everything you know about me")
    assert found.whole and len(found.meant) == len(EVERY)


@given(
    st.text(string.digits, min_size=7, max_size=16),
    st.lists(st.sampled_from(["", " ", "-", "/", "."]), min_size=16, max_size=16),
)
def test_a_number_is_found_with_any_separators(number: str, signs: list[str]) -> None:
    spelled = "".join(f"{digit}{sign}" for digit, sign in zip(number, signs, strict=False)).strip(" -/.")
    there, longer = item(f"The number is {number}, I think"), item(f"The other is 7{number}8")
    assert find([there, longer], spelled).meant == (there,)
    assert find([item(f"It is {spelled}."), longer], number).meant[0].text.startswith("It is")


def steps(typed: str, number: int) -> int:
    """How many lines of ours run while what is meant is looked for among so many items."""
    items = [item(f"User has gadget{at} in room {at % 7} of hall {at % 5}.") for at in range(number)]
    find(items, typed)  # what is cached for good
    with counted() as counts:
        find(items, typed)
    return counts.steps.total()


@each_row("typed", ["everything about the halls", "gadget7 in room 3", "a zebra", "hall-7/room"])
def test_ten_times_the_memories_cost_no_more_than_about_ten_times_as_much(typed: str) -> None:
    assert steps(typed, 100) <= 12 * steps(typed, 10)
