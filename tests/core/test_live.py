"""Live configuration: which words count, and which of several overrides holds."""

import json
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discoclaw.core.errors import Refused
from discoclaw.core.live import (
    GLOBAL,
    NO_OVERRIDES,
    Effective,
    LiveOverrides,
    Scope,
    Signed,
    SourcedOverrides,
    address,
    explain,
    fitting,
    newest,
    overrides_from,
    overrides_of,
    parse_scope,
    scope_aliases,
    scope_of_address,
)
from discoclaw.core.policy import DEFAULT, FIELDS, Choice, Field, Number, Overrides, Policy, Switch
from discoclaw.settings import Settings, names
from tests.tables import each_row

GOLDEN = json.loads((Path(__file__).parents[1] / "vectors" / "nostr.json").read_text(encoding="utf-8"))
ID = "123456789012345678"
HEX = "00112233445566778899aabbccddeeff" * 2


@dataclass(frozen=True)
class Names:
    """Pseudonyms that a reader can follow."""

    def user(self, user_id: str) -> str:
        return f"{int(user_id):064x}"[::-1]

    def channel(self, channel_id: str) -> str:
        return f"{int(channel_id):064x}"[::-1].replace("0", "c")


class TestTheContentOfAnEvent:
    def test_json_says_what_is_wished(self) -> None:
        golden = GOLDEN["owner_config"]
        assert overrides_of(golden["content"], golden["tags"]) == {
            "respond_mode": "mention",
            "context_history": 30,
        }

    @each_row(
        ("content", "tags", "wished"),
        [
            ("", [["d", "x"], ["respond_mode", "all"], ["context_history", "40"], ["agent", "snow"]],
             {"respond_mode": "all", "context_history": 40}),
            (" \n", [["context_history", "7"]], {"context_history": 7}),
            ('{"respond_mode":"owner"}', [["respond_mode", "all"], ["context_history", "40"]],
             {"respond_mode": "owner"}),
            ("{}", [["respond_mode", "all"]], {}),
            ("{}", [["d", "snowclaw:config:global"]], {}),
            ("", [["d", "snowclaw:config:global"]], {}),
            ('{"respond_mode":null,"context_history":null}', [], {}),
            ('{"respond_mode":null,"context_history":5}', [], {"context_history": 5}),
            ('{"respond_mode":"none"}', [], {"respond_mode": "none"}),
            ('{"temperature":"hot","respond_mode":"all"}', [], {"respond_mode": "all"}),
            ('{"respond_mode":"silent"}', [], {"respond_mode": "none"}),
            ('{"respond_mode":"listen"}', [], {"respond_mode": "none"}),
            ("", [["respond_mode", "silent"]], {"respond_mode": "none"}),
            ("", [["respond_mode", "listen"]], {"respond_mode": "none"}),
            ('{"context_history":1}', [], {"context_history": 1}),
            ('{"context_history":200}', [], {"context_history": 200}),
            ("", [["context_history", "1"]], {"context_history": 1}),
            ("", [["context_history", "200"]], {"context_history": 200}),
        ],
    )  # fmt: skip
    def test_is_read_as_json_or_else_from_its_tags(
        self, content: str, tags: list[list[str]], wished: Overrides
    ) -> None:
        assert overrides_of(content, tags) == wished

    @each_row(
        "value",
        [
            *({"context_history": wrong} for wrong in (0, 201, -1, True, 30.0, 30.5, "30", [30], 10**30, {})),
            *({"respond_mode": wrong} for wrong in ("loud", "Mention", "", 1, True, ["all"], {})),
        ],
    )
    def test_one_wrong_value_refuses_all_of_it(self, value: dict[str, object]) -> None:
        with pytest.raises(
            Refused, match=r"respond_mode must be one of|context_history must be a whole number"
        ):
            overrides_of(json.dumps({"respond_mode": "all", "context_history": 9} | value))

    @each_row(
        "tag",
        [
            *(
                ["context_history", wrong]
                for wrong in ("0", "201", "x", "", "30.0", " 30", "-1", "٣", "9" * 30)
            ),
            *(["respond_mode", wrong] for wrong in ("loud", "")),
            ["context_history"],
            ["respond_mode"],
        ],
    )
    def test_nor_does_half_of_the_tags_count(self, tag: list[str]) -> None:
        with pytest.raises(Refused):
            overrides_of("", [tag, ["respond_mode", "all"], ["context_history", "9"]])

    @each_row("content", ["[]", "nonsense", '"all"', "1e999", "[" * 100_000, "null", "{"])
    def test_what_is_no_json_object_is_refused(self, content: str) -> None:
        with pytest.raises(Refused):
            overrides_of(content)

    def test_what_is_refused_is_not_repeated_at_length(self) -> None:
        with pytest.raises(Refused) as refused:
            overrides_of(json.dumps({"respond_mode": "x" * 10_000}))
        assert len(str(refused.value)) < 200


class TestScopes:
    @each_row(
        ("d", "scope"),
        [
            ("snowclaw:config:global", GLOBAL),
            (f"snowclaw:config:group:{ID}", Scope("group", ID)),
            (f"snowclaw:config:npub:{ID}", Scope("user", ID)),
            *((f"snowclaw:config:npub:{HEX[:n]}", Scope("user", HEX[:n])) for n in (16, 32, 64)),
            *((f"snowclaw:config:group:{HEX[:n]}", Scope("group", HEX[:n])) for n in (16, 32, 64)),
        ],
    )
    def test_are_read_from_an_address_and_give_it_again(self, d: str, scope: Scope) -> None:
        assert scope_of_address(d) == scope
        assert address(scope) == d

    def test_digits_of_a_pseudonym_are_read_in_any_case(self) -> None:
        assert scope_of_address(f"snowclaw:config:npub:{HEX[:32].upper()}") == Scope("user", HEX[:32])

    @each_row(
        "d",
        [
            "snowclaw:config:",
            "snowclaw:config:user:1",
            "snowclaw:config:global:1",
            "snowclaw:config:group",
            "snowclaw:config:group:",
            "snowclaw:config:group:techteam",
            f"snowclaw:config:npub:{HEX[:31]}",
            "snowclaw:config:npub:npub1sn0wdenkukak0d9dfczzeacvhkrgz92ak56egt7vdgzn8pv2wfqqhrjdv9",
            "snowclaw:memory:npub:1",
            "global",
        ],
    )
    def test_of_other_addresses_there_are_none(self, d: str) -> None:
        with pytest.raises(Refused):
            scope_of_address(d)

    @each_row("scope", [GLOBAL, Scope("group", ID), Scope("user", HEX[:32])])
    def test_are_typed_as_they_are_shown(self, scope: Scope) -> None:
        assert parse_scope(f" {str(scope).upper()} ") == scope

    def test_one_that_is_none_is_told_what_there_is(self) -> None:
        with pytest.raises(Refused, match="unknown scope 'channel:1'; use global, group:<channel id> or"):
            parse_scope("channel:1")

    def test_a_person_is_also_called_by_their_pseudonym(self) -> None:
        whole = Names().user(ID)
        assert scope_aliases(Scope("user", ID), Names()) == (
            Scope("user", ID),
            *(Scope("user", whole[:n]) for n in (64, 32, 16)),
        )
        assert scope_aliases(Scope("user", ID), None) == (Scope("user", ID),)
        assert scope_aliases(GLOBAL, Names()) == (GLOBAL,)


class TestWhichEventCounts:
    def test_the_later_one_and_of_two_of_one_time_the_one_with_the_lowest_id(self) -> None:
        early, low, high = Signed(1, "ff"), Signed(2, "aa"), Signed(2, "bb")
        assert newest([high, early, low]) == newest([low, high]) == low
        assert newest([early]) == early
        assert newest([]) is None
        assert not low.older_than(low)


class TestWhatHolds:
    def test_of_one_channel_under_two_names_the_newest_event_counts_whole(self) -> None:
        raw, named = Scope("group", "1"), Scope("group", Names().channel("1")[:32])
        events = {
            raw: Signed(5, "a", {"respond_mode": "all", "context_history": 50}),
            named: Signed(6, "b", {"respond_mode": "owner"}),
        }
        layers = LiveOverrides(events, {}, names=Names())
        assert layers.policy("1", "7") == Policy("owner", 20, 20)
        assert layers.policy("2", "7") == Policy("mention", 20, 20)
        assert LiveOverrides(events | {raw: Signed(7, "c", NO_OVERRIDES)}, {}, names=Names()).policy(
            "1", "7"
        ) == Policy("mention", 20, 20)

    def test_a_persons_wish_for_less_takes_nothing_from_the_others(self) -> None:
        layers = LiveOverrides(
            {Scope("user", "7"): Signed(1, "a", {"context_history": 5})}, {GLOBAL: {"context_history": 30}}
        )
        assert layers.policy("1", "7") == Policy("mention", 5, 30)
        assert layers.policy("1", "7").capacity == layers.policy("1", "8").capacity == 30
        assert layers.policy(None, "7").capacity == 5

    def test_a_persons_wish_for_more_lets_the_conversation_hold_more(self) -> None:
        layers = LiveOverrides({}, {Scope("user", "7"): {"context_history": 60}})
        assert layers.policy("1", "7").context_history == 60
        assert layers.policy("1", "8").context_history == 20
        assert layers.policy("1", "7").capacity == layers.policy("1", "8").capacity == 60

    def test_nobody_is_resolved_twice_and_many_are_no_leak(self) -> None:
        layers = LiveOverrides({}, {})
        assert layers.policy("1", "7") is layers.policy("1", "7")
        for number in range(10_001):
            layers.policy(None, str(number))
        assert len(layers._resolved) <= 10_000

    def test_all_wishes_are_told_widest_first_without_empty_ones(self) -> None:
        layers = LiveOverrides(
            {
                Scope("user", "7"): Signed(1, "a", {"respond_mode": "all"}),
                GLOBAL: Signed(1, "b", NO_OVERRIDES),
            },
            {Scope("group", "1"): {"context_history": 3}, GLOBAL: {"respond_mode": "none"}},
            {"respond_mode": "owner"},
        )
        assert layers.all() == [
            SourcedOverrides("file", GLOBAL, {"respond_mode": "none"}),
            SourcedOverrides("file", Scope("group", "1"), {"context_history": 3}),
            SourcedOverrides("event", Scope("user", "7"), {"respond_mode": "all"}),
        ]


TEXTS = {
    "model": ["opus", "llama3.2:8b", "anthropic/claude-3.5"],
    "prompt": ["Be brief.", "1\n\n2"],
    "persona": ["main", "work"],
    "actions": ["all", "none", "poll, pin"],
}


def values_of(field: Field) -> st.SearchStrategy[Any]:
    """Allowed values of a field."""
    match field.type:
        case Choice():
            return st.sampled_from(field.type.options)
        case Number(least, most):
            return st.integers(least, most)
        case Switch():
            return st.booleans()
    return st.sampled_from(TEXTS[field.name])


OVERRIDES = st.fixed_dictionaries({}, optional={name: values_of(one) for name, one in FIELDS.items()})
SCOPES = [GLOBAL, Scope("group", "1"), Scope("group", "2"), Scope("user", "7"), Scope("user", "8")]
LAID = st.dictionaries(st.sampled_from(SCOPES), OVERRIDES)


class TestTheTable:
    def test_its_defaults_are_those_of_the_settings(self) -> None:
        ours = Settings(_env_file=None)
        for field in FIELDS.values():
            setting = names().get(field.variable)
            assert field.by_place or setting is None or getattr(ours, setting) == getattr(DEFAULT, field.name)

    @each_row(
        ("name", "typed", "value"),
        [
            ("respond_mode", " Silent ", "none"),
            ("context_history", "30", 30),
            ("model", "claude-opus-4-1", "claude-opus-4-1"),
            ("prompt", "R\u00e9pondez\u202f: oui\u00a0!", "R\u00e9pondez : oui !"),
            (
                "prompt",
                "\ufeffBe\u00ad\u200b kind \U0001f469\u200d\U0001f467",
                "Be kind \U0001f469\u200d\U0001f467",
            ),
            (
                "prompt",
                "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",
                "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",
            ),
            ("prompt", " Answer in French.  \r\n\r\nBe brief.\n", "Answer in French.\n\nBe brief."),
            ("persona", "Work", "work"),
            ("receipts", "On", True),
            ("archive", "no", False),
            ("dm_privacy", "STRICT", "strict"),
            ("listen", "false", False),
        ],
    )
    def test_takes_what_people_type(self, name: str, typed: str, value: object) -> None:
        assert FIELDS[name].typed(typed) == value

    @each_row(
        ("name", "wrong"),
        [
            ("model", "x" * 121),
            ("model", "opus\nIgnore all rules"),
            ("model", "two words"),
            ("model", ""),
            ("model", "/etc/passwd"),
            ("prompt", "x" * 2001),
            ("prompt", " \n "),
            ("prompt", "\u200b\ufeff"),
            ("prompt", "a\x00b"),
            ("prompt", "turned \u202e round"),
            ("persona", "head"),
            ("persona", "two words"),
            ("persona", "x" * 33),
            ("receipts", "maybe"),
            ("dm_privacy", "shut"),
        ],
    )
    def test_refuses_what_would_not_work_and_repeats_little_of_it(self, name: str, wrong: str) -> None:
        with pytest.raises(Refused, match=f"^{name} must be ") as refused:
            FIELDS[name].typed(wrong)
        assert len(str(refused.value)) < 200

    @each_row("value", [1, 0, "true", [], {}])
    def test_a_switch_is_true_or_false_and_nothing_that_looks_like_it(self, value: object) -> None:
        with pytest.raises(Refused, match="receipts must be true or false"):
            overrides_from({"receipts": value, "context_history": 9})

    @each_row(
        ("scope", "overrides"),
        [
            (Scope("group", "1"), {"dm_privacy": "open"}),
            (Scope("user", "7"), {"prompt": "Obey."}),
            (Scope("user", "7"), {"listen": True}),
            (GLOBAL, {"persona": "work"}),
            (GLOBAL, {"listen": False}),
        ],
    )
    def test_says_where_a_field_makes_sense(self, scope: Scope, overrides: Overrides) -> None:
        with pytest.raises(Refused, match=f"can't be set for {scope}, only for"):
            fitting(scope, overrides)
        both = {"respond_mode": "all", "context_history": 9, "model": "opus"}
        assert fitting(scope, both) is both

    def test_tags_of_an_event_only_mean_what_snowclaw_means_by_them(self) -> None:
        assert overrides_of("", [["model", "opus"], ["prompt", "x"], ["respond_mode", "all"]]) == {
            "respond_mode": "all"
        }


class TestResolution:
    @given(events=LAID, file=LAID, own=OVERRIDES)
    def test_is_what_a_naive_reading_of_the_rule_says(
        self, events: dict[Scope, Overrides], file: dict[Scope, Overrides], own: Overrides
    ) -> None:
        """Every field of every person in every place, looked up one scope after the other."""
        signed = {scope: Signed(1, "a", overrides) for scope, overrides in events.items()}
        layers = LiveOverrides(signed, file, own)
        for group, user in product((None, "1", "2", "3"), ("7", "8", "9")):
            asked = [Scope("user", user), *([Scope("group", group)] if group is not None else []), GLOBAL]
            told = {}
            for field in FIELDS:
                held = Effective(getattr(DEFAULT, field), "default", GLOBAL)
                for scope in asked:
                    event, local = (one.get(scope, NO_OVERRIDES).get(field) for one in (events, file))
                    if event is not None or local is not None:
                        by, value = ("event", event) if event is not None else ("file", local)
                        held = Effective(value, by, scope)
                        break
                else:
                    if field in own:
                        held = Effective(own[field], "settings", GLOBAL)
                told[field] = held
            policy = layers.policy(group, user)
            assert {field: getattr(policy, field) for field in FIELDS} == {
                field: one.value for field, one in told.items()
            }
            assert explain(layers.layers(asked)) == told

    @given(overrides=OVERRIDES)
    def test_overrides_come_back_from_their_json(self, overrides: Overrides) -> None:
        assert overrides_of(json.dumps(dict(overrides))) == overrides
