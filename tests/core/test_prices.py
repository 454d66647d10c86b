"""What requests cost: golden values, and what is taken for a model without a price."""

from hypothesis import given
from hypothesis import strategies as st

from discoclaw.core.model import Usage
from discoclaw.core.usage import DOLLAR, FREE, Price, Prices, dollars
from discoclaw.usage.metered import prices
from tests.tables import each_row

COUNTS = st.integers(0, 300_000)


class TestOurTable:
    @each_row(
        ("model", "usage", "cents"),
        [
            ("claude-sonnet-5-5", Usage(1_000_000, 100_000), 300),
            ("claude-sonnet-4-6-20260217", Usage(1_000_000), 300),
            ("claude-opus-5-5", Usage(0, 0, 1_000_000, 1_000_000, 10), 530),
            ("claude-haiku-5-5", Usage(100_000, 100_000), 6),
            ("claude-haiku-5-5", Usage(100_001, 100_000), 30.00005),
            ("whisper-1", Usage(seconds=600), 6),
            ("text-embedding-3-small", Usage(1_000_000), 2),
        ],
    )
    def test_says_what_a_request_costs(self, model: str, usage: Usage, cents: float) -> None:
        price, known = prices().of(model)
        assert (price.cost(usage), known) == (round(cents * DOLLAR / 100), True)

    def test_takes_an_unknown_model_for_the_dearest(self) -> None:
        assert prices().of("gpt-9") == (prices().of("claude-fable-5-1")[0], False)

    def test_costs_nothing_for_models_of_ones_own_unless_they_have_a_price(self) -> None:
        cheap = Price(input=1)
        own = Prices({"llama": cheap, "claude": Price(output=9)}, frozenset({"llama"}), free=True)
        assert own.of("llama3.3") == (cheap, True)
        assert own.of("claude-sonnet-5-5") == (FREE, True)

    def test_are_an_admins_before_ours_however_short_the_name_is(self) -> None:
        dear = Price(output=99)
        own = Prices(
            {"claude-sonnet": dear, "claude-sonnet-5-5": Price(output=1)}, frozenset({"claude-sonnet"})
        )
        assert own.of("claude-sonnet-5-5-20261101") == (dear, True)

    def test_know_whose_model_it_is(self) -> None:
        bare, whole = Price(input=1), Price(input=2)
        own = Prices(
            {"qwen": bare, "vllm:qwen3": whole},
            frozenset({"qwen", "vllm:qwen3"}),
            free_at=frozenset({"vllm"}),
        )
        assert own.of("vllm:qwen3-8b") == (whole, True)
        assert own.of("vllm:qwen2") == own.of("openai:qwen3-8b") == (bare, True)
        assert own.of("vllm:llama") == (FREE, True)
        assert own.of("openai:gpt-9") == (whole, False)

    def test_of_a_local_provider_are_nothing_beside_a_paid_one_of_the_same_name(self) -> None:
        found = Prices(prices().table, free_at=frozenset({"ollama"}))
        assert found.costs_nothing("ollama:claude-haiku-5-5")
        assert not found.costs_nothing("claude-haiku-5-5")


class TestWhatIsPutAside:
    @given(COUNTS, COUNTS, COUNTS, COUNTS, st.sampled_from(sorted(prices().table)))
    def test_covers_whatever_of_the_prompt_a_cache_takes(
        self, fresh: int, read: int, written: int, output: int, model: str
    ) -> None:
        price, _ = prices().of(model)
        usage = Usage(fresh, output, read, written)
        assert price.cost(usage) <= price.most(usage.prompt_tokens, output)


class TestAnAmount:
    @each_row(
        ("nano", "text"),
        [(0, "$0.00"), (4_020_000_000, "$4.02"), (1_500_000, "$0.0015"), (1_234 * DOLLAR, "$1,234.00")],
    )
    def test_is_read_in_dollars(self, nano: int, text: str) -> None:
        assert dollars(nano) == text
