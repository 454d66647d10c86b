"""What stays between a person and the bot, and where an item may be shown."""

from itertools import product

from discoclaw.core.draft import Draft
from discoclaw.core.item import KINDS, Facets, Kind, Sensitivity
from discoclaw.core.privacy import may_show, sensitivity
from discoclaw.core.view import EMPTY
from tests.core.builders import NOW, inferred, item
from tests.tables import each_row

FOLLOW: tuple[Kind, ...] = ("preference", "tool", "workflow")
STAY: tuple[Kind, ...] = ("fact", "person", "project", "constraint")


def judged(kind: Kind, text: str = "short answers", *, dm: bool = True, **given: str | bool) -> Sensitivity:
    fields = {"marked": "normal", "rule": "balanced", "inferred": True, **given}
    return sensitivity(kind, text, learned_privately=dm, **fields)  # type: ignore[arg-type]


class TestWhatWasLearnedInPublic:
    @each_row("rule", ["strict", "balanced", "open"])
    @each_row("kind", KINDS)
    def test_is_normal_whatever_the_rule(self, kind: Kind, rule: str) -> None:
        assert judged(kind, "lives in Oslo and works at Acme", dm=False, rule=rule) == "normal"

    @each_row(("rule", "level"), [("strict", "private"), ("balanced", "private"), ("open", "normal")])
    @each_row("kind", KINDS)
    def test_is_private_if_it_is_personal_unless_only_marks_count(
        self, kind: Kind, rule: str, level: str
    ) -> None:
        assert judged(kind, "his doctor says so", dm=False, rule=rule) == level

    @each_row("kind", KINDS)
    def test_is_normal_if_the_person_states_it(self, kind: Kind) -> None:
        assert judged(kind, "his doctor says so", dm=False, inferred=False) == "normal"


class TestWhatWasLearnedInADm:
    @each_row("kind", FOLLOW)
    def test_how_a_person_works_follows_them(self, kind: Kind) -> None:
        assert judged(kind) == "normal"

    @each_row("kind", STAY)
    def test_who_they_are_and_what_they_do_is_private(self, kind: Kind) -> None:
        assert judged(kind) == "private"

    @each_row(
        "text",
        [
            "prefers appointments with the doctor at noon",
            "avoids peanuts because of an allergy",
            "wants to keep the salary out of talks",
            "likes to call the wife first",
            "prefers to be seen as gay",
            "wants mail to the new address",
            "Uses a DIABETES app",
        ],
    )
    def test_health_money_relations_identity_and_whereabouts_are_private_whatever_the_kind(
        self, text: str
    ) -> None:
        assert {judged(kind, text) for kind in KINDS} == {"private"}

    def test_strict_makes_everything_private_and_open_nothing(self) -> None:
        assert {judged(kind, rule="strict") for kind in KINDS} == {"private"}
        assert {judged(kind, "his doctor says so", rule="open") for kind in KINDS} == {"normal"}


class TestAMarkIsNeverLowered:
    @each_row(("dm", "rule"), list(product([True, False], ["strict", "balanced", "open"])))
    @each_row("marked", ["private", "confidential"])
    def test_by_any_rule_anywhere(self, dm: bool, rule: str, marked: str) -> None:
        assert {judged(kind, dm=dm, rule=rule, marked=marked) for kind in KINDS} == {marked}


class TestWhereAnItemMayBeShown:
    @each_row(
        ("held", "in_dm", "elsewhere"),
        [("normal", True, True), ("private", True, False), ("confidential", False, False)],
    )
    def test_private_in_dms_only_and_confidential_nowhere(
        self, held: str, in_dm: bool, elsewhere: bool
    ) -> None:
        one = item("likes tea", sensitivity=held)
        assert may_show(one, in_dm=True) is in_dm
        assert may_show(one, in_dm=False) is elsewhere


class TestWhatIsShownBesideTheText:
    @each_row(
        ("tags", "key"),
        [(["therapie"], None), (["depression", "psychiatrist"], None), ([], "chemotherapy:status")],
    )
    def test_a_tag_or_a_key_can_give_away_what_it_is_about(self, tags: list[str], key: str | None) -> None:
        draft = Draft(EMPTY, now_ms=NOW)
        draft.upsert("fact", "User has a date at 9.", inferred(), tags=tags, facets=Facets(key=key))
        (item,) = draft.items.values()
        assert item.facets.sensitivity == "private"

    def test_a_key_for_where_somebody_lives_does_not(self) -> None:
        draft = Draft(EMPTY, now_ms=NOW)
        draft.upsert("fact", "User lives in Lisbon.", inferred(), tags=["home"], facets=Facets(key="home"))
        (item,) = draft.items.values()
        assert item.facets.sensitivity == "normal"
