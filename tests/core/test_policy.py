"""When the bot answers, how much it hears, and whom it hears at all."""

from itertools import product
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from discoclaw.core.message import Place
from discoclaw.core.policy import (
    CONTEXT_HISTORY_BOUNDS,
    DEFAULT,
    RESPOND_MODES,
    Allowlist,
    Personas,
    Policy,
    resolve,
    should_respond,
)
from tests.tables import each_row

LAYERS = st.lists(
    st.fixed_dictionaries(
        {},
        optional={
            "respond_mode": st.sampled_from(RESPOND_MODES),
            "context_history": st.integers(*CONTEXT_HISTORY_BOUNDS),
        },
    ),
    max_size=5,
)


class TestLayersAreResolvedFieldByField:
    def test_without_layers_the_defaults_hold(self) -> None:
        assert resolve([]) == DEFAULT == Policy("mention", 20)

    @given(LAYERS)
    def test_the_first_layer_that_sets_a_field_wins_it(self, layers: list[Any]) -> None:
        modes = [layer["respond_mode"] for layer in layers if "respond_mode" in layer]
        counts = [layer["context_history"] for layer in layers if "context_history" in layer]
        assert resolve(layers) == Policy(
            [*modes, DEFAULT.respond_mode][0], [*counts, DEFAULT.context_history][0]
        )

    @given(LAYERS, LAYERS)
    def test_layers_can_be_resolved_in_two_steps(self, upper: list[Any], lower: list[Any]) -> None:
        assert resolve(upper, resolve(lower)) == resolve([*upper, *lower])

    @each_row("count", [-1, 0, 201, 10**9])
    def test_no_layer_makes_the_window_larger_or_smaller_than_it_may_be(self, count: int) -> None:
        least, most = CONTEXT_HISTORY_BOUNDS
        assert least <= resolve([{"context_history": count}]).context_history <= most


class TestWhetherAMessageIsAnswered:
    @each_row(("mentions_us", "is_owner", "in_our_thread"), list(product([False, True], repeat=3)))
    def test_each_mode_in_every_situation(
        self, mentions_us: bool, is_owner: bool, in_our_thread: bool
    ) -> None:
        answers = {
            mode: should_respond(
                mode, mentions_us=mentions_us, is_owner=is_owner, in_our_thread=in_our_thread
            )
            for mode in RESPOND_MODES
        }
        assert answers == {
            "all": True,
            "mention": mentions_us or in_our_thread,
            "owner": is_owner,
            "none": False,
        }


class TestTheAllowlistFailsClosed:
    @each_row(
        ("allowed", "user", "roles", "let_in"),
        [
            (Allowlist(channels=frozenset({"7"})), "1", [], False),  # nobody is on it
            (Allowlist(channels=frozenset({"7"})), "", ["9"], False),
            (Allowlist(users=frozenset({"1"})), "1", [], True),
            (Allowlist(users=frozenset({"1"})), "2", ["1"], False),
            (Allowlist(users=frozenset({"1"})), "11", [], False),
            (Allowlist(roles=frozenset({"9"})), "2", ["8", "9"], True),  # one role is enough
            (Allowlist(roles=frozenset({"9"})), "2", ["8"], False),
            (Allowlist(roles=frozenset({"9"})), "9", [], False),
        ],
    )
    def test_a_person_or_a_role_on_the_list_is_let_in_and_nobody_else(
        self, allowed: Allowlist, user: str, roles: list[str], let_in: bool
    ) -> None:
        assert allowed.person(user, roles) == let_in
        assert allowed.closed == (not allowed.users and not allowed.roles)

    def test_a_thread_goes_by_its_parent_or_by_itself_and_a_dm_by_its_person(self) -> None:
        allowed = Allowlist(channels=frozenset({"7", "71"}))
        assert allowed.channel("7", "70")
        assert allowed.channel("8", "71")
        assert not allowed.channel("8", "80")
        assert not allowed.channel("8", "8")
        assert allowed.channel(None, "99")
        assert Allowlist().channel("7", "7"), "no channels means every channel"


class TestASessionIsOneConversation:
    @each_row(
        ("place", "key"),
        [
            (Place("dm", "5", None, "dm", private=True), "discord:dm:42"),
            (Place("channel", "5", "5", "general", private=False), "discord:channel:5"),
            (Place("thread", "6", "5", "a thread", private=False), "discord:thread:6"),
        ],
    )
    def test_a_dm_by_its_person_a_thread_and_a_channel_by_themselves(self, place: Place, key: str) -> None:
        assert place.session_key("42") == key


class TestThePersonaOfAPlace:
    PERSONAS = Personas({"dm": "diary", "dev": "coding"})

    def test_goes_by_the_channel_and_a_thread_by_its_channel(self) -> None:
        thread = Place("thread", "9", "8", "bugs", private=False, group_name="Dev")
        assert self.PERSONAS.of(thread) == "coding"

    def test_a_dm_has_its_own_and_no_channel_gets_it_by_its_name(self) -> None:
        assert self.PERSONAS.of(Place("dm", "9", None, "dm", private=True)) == "diary"
        channel = Place("channel", "9", "9", "dm", private=False, group_name="dm")
        assert self.PERSONAS.of(channel) is None
