"""Which items a newer one replaces, and which only look like it."""

import random

from hypothesis import given
from hypothesis import strategies as st

from discoclaw.core.item import Item, Source
from discoclaw.core.replaced import alike, ends, newest_first
from discoclaw.core.words import Gist, gist_of
from tests.core.builders import DAY, NOW, item
from tests.tables import each_row


def gist(one: Item) -> Gist:
    return gist_of(one.text)


def series(*texts: str, kind: str = "fact", **facets: object) -> list[Item]:
    """Items learned a month after each other, the oldest first."""
    return [item(text, kind, updated_at=NOW + 30 * n * DAY, **facets) for n, text in enumerate(texts)]  # type: ignore[arg-type]


def ended(*items: Item) -> dict[str, int]:
    return ends(items, gist)


class TestWhatEnded:
    @each_row(
        ("before", "after"),
        [
            ("User lives in Linz.", "User lives in Graz."),
            ("User lives in Linz.", "User now lives in Graz."),
            ("Mia lives in Linz.", "Mia lives in Graz."),
            ("User works at Siemens.", "User works at Bosch."),
            ("User's phone number is 0151 555 210.", "User's phone number is 0157 555 903."),
            ("The name of User's home wifi is Mezzanine.", "The name of User's home wifi is Teapot418."),
            ("The cello lesson costs 35 euros.", "The cello lesson costs 39 euros."),
            ("The thesis is due on 1 March 2026.", "The thesis is due on 18 May 2026."),
            ("User's favourite tea is oolong.", "User's favourite tea is sencha."),
            ("The deadline of the thesis was moved to May.", "The deadline of the thesis was moved to June."),
            ("User is 34 years old.", "User is 35 years old."),
            ("User drives a VW bus.", "User drives a Kia now."),
            ("Die Telefonnummer des Nutzers ist 030 17.", "Die Telefonnummer des Nutzers ist 040 88."),
            ("L'utilisateur habite à Pau.", "L'utilisateur habite à Rennes."),
            ("El coche del usuario es un Seat Ibiza.", "El coche del usuario es un Opel Corsa."),
        ],
    )
    def test_is_what_there_is_one_of_at_a_time(self, before: str, after: str) -> None:
        older, newer = series(before, after)
        assert ended(newer, older) == {older.id: newer.updated_at}

    @each_row(
        ("before", "after"),
        [
            ("User has a cat called Tom.", "User has a cat called Miso."),
            ("User's cat lives in Linz.", "User's cat lives in Graz."),
            ("User's sister lives in Linz.", "User's sister lives in Graz."),
            ("User's sister lives in Graz.", "User lives in Linz."),
            ("User is allergic to latex.", "User is now allergic to pollen."),
            ("User plays the harp.", "User plays the tuba."),
            ("User speaks fluent Catalan.", "User speaks fluent Dutch."),
            ("User has Tidewater Tours as a client.", "User has Brightside Dental as a client."),
            ("User works two days a week at the archive.", "User works two days a week at the pool."),
            ("User worked at Siemens.", "User worked at Bosch."),
            ("User lives in Linz on weekdays.", "User lives in Graz on weekends."),
            ("User lives in Linz.", "User lives in Linz with two cats."),
            ("User's budget for food is 200.", "User's budget for rent is 800."),
            ("User's boss is Maria.", "User's boss is strict."),
            ("User likes tea.", "User likes coffee."),
            ("User likes rock.", "User likes jazz now."),
            ("User likes live music.", "User likes live theatre."),
            ("User plans to read Dune.", "User plans to read Emma."),
            ("User has an account on GitHub.", "User has an account on GitLab."),
            ("User wrote an email to Mia.", "User wrote an email to Tom."),
            ("User has a favourite mug.", "User has a favourite pen."),
            ("User needs wifi on trains.", "User needs wifi on planes."),
            ("User's Hebrew is fluent.", "User's Dutch is fluent."),
            ("User is tall.", "User is 34."),
            ("User's boss is strict.", "User's boss is friendly to interns."),
            ("User's landlord is rude.", "User's landlord is slow to answer."),
            ("User's car is red.", "User's car is electric."),
            ("User's rent is high.", "User's rent is due monthly."),
            ("User's dentist is Dr. Huber.", "User's dentist is in Linz."),
            ("User's birthday is in May.", "User's birthday is on a Sunday."),
            ("User lives in a small flat.", "User lives in the countryside."),
            ("User works at Bosch.", "User works on Fridays."),
            ("User works for Bosch.", "User works in Linz."),
            ("User works with Python.", "User works with Kubernetes."),
            ("User works in Vienna.", "User works in Marketing."),
            ("User takes metformin.", "User now takes insulin."),
            ("User runs in the park.", "User now runs with a group."),
        ],
    )
    def test_is_nothing_that_can_be_true_together(self, before: str, after: str) -> None:
        assert ended(*series(before, after)) == {}

    def test_each_of_several_ended_with_the_next(self) -> None:
        one, two, three = series("User lives in Linz.", "User lives in Graz.", "User lives in Oslo.")
        assert ended(two, three, one) == {one.id: two.updated_at, two.id: three.updated_at}

    def test_what_was_inferred_ends_nothing_that_the_person_stated(self) -> None:
        linz = item("User lives in Linz.", author="stated", key="home")
        graz = item("User lives in Graz.", author="inferred", key="home", updated_at=NOW + DAY)
        assert ended(linz, graz) == {}
        moved = item("User lives in Graz.", author="stated", updated_at=NOW + DAY)
        assert ended(linz, moved) == {linz.id: moved.updated_at}

    def test_a_key_says_that_there_is_one(self) -> None:
        one, two = series("Employer: Siemens.", "User joined Bosch.", key="employer")
        assert ended(one, two) == {one.id: two.updated_at}

    def test_what_was_said_at_once_or_is_of_another_kind_is_true_together(self) -> None:
        said = Source("discord", "1", "2")
        for one, two in (
            (
                item("User lives in Linz.", source=said),
                item("User lives in Graz.", updated_at=NOW + DAY, source=said),
            ),
            (item("User lives in Linz."), item("User lives in Graz.")),
            (item("User lives in Linz."), item("User lives in Graz.", "person", updated_at=NOW + DAY)),
        ):
            assert ended(one, two) == {}


class TestNewestFirst:
    def test_those_that_are_alike_change_places(self) -> None:
        linz, graz = series("User lives in Linz.", "User lives in Graz.")
        tea = item("User drinks tea.")
        assert newest_first([linz, tea, graz], alike([linz, tea, graz], gist)) == [graz, tea, linz]

    def test_also_where_both_may_be_true(self) -> None:
        tom, miso = series("User has a cat called Tom.", "User has a cat called Miso.")
        assert newest_first([tom, miso], alike([tom, miso], gist)) == [miso, tom]


WORDS = ["lives in", "works", "Linz", "Graz", "now", "cat", "number", "is", "5", "🦀", "東京"]
ITEMS = st.lists(
    st.builds(
        item,
        st.lists(st.sampled_from(WORDS), min_size=1, max_size=5).map(" ".join),
        updated_at=st.integers(NOW, NOW + 3),
        key=st.sampled_from([None, None, "home"]),
    ),
    max_size=12,
    unique_by=lambda one: one.id,
)


class TestAlways:
    @given(ITEMS, st.randoms(use_true_random=False))
    def test_the_order_of_the_items_makes_no_difference(
        self, items: list[Item], chance: random.Random
    ) -> None:
        shuffled = list(items)
        chance.shuffle(shuffled)
        assert alike(shuffled, gist) == alike(items, gist)
        assert ended(*shuffled) == ended(*items)

    @given(ITEMS)
    def test_only_something_newer_ends_an_item(self, items: list[Item]) -> None:
        by_id = {one.id: one for one in items}
        assert all(by_id[one].updated_at < at for one, at in ended(*items).items())
        newest = min(items, key=lambda one: (-one.updated_at, one.id), default=None)
        assert newest is None or newest.id not in ended(*items)

    @given(ITEMS)
    def test_nothing_is_lost_or_doubled(self, items: list[Item]) -> None:
        ordered = newest_first(items, alike(items, gist))
        assert sorted(one.id for one in ordered) == sorted(one.id for one in items)
