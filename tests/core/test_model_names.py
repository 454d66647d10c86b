"""Names of models that may begin with their provider: only a known one before the first colon counts."""

from discoclaw.core.model import joined, split
from tests.tables import each_row


@each_row(
    ("name", "parts"),
    [
        ("sonnet", ("", "sonnet")),
        ("qwen3:8b", ("", "qwen3:8b")),
        ("ollama:qwen3:8b", ("ollama", "qwen3:8b")),
        ("OpenAI: gpt-5-mini", ("openai", "gpt-5-mini")),
        ("openrouter:vendor/model:free", ("openrouter", "vendor/model:free")),
        ("hf.co/openai:q4", ("", "hf.co/openai:q4")),
        ("ollama:", ("", "ollama:")),
        ("ollama", ("", "ollama")),
        ("", ("", "")),
    ],
)
def test_a_name_has_a_provider_only_before_its_first_colon(name: str, parts: tuple[str, str]) -> None:
    assert split(name) == parts


def test_anthropics_models_go_by_their_bare_names_and_all_others_by_whole_ones() -> None:
    assert joined("anthropic", "claude-haiku-5-5") == joined("", "claude-haiku-5-5") == "claude-haiku-5-5"
    assert split(joined("vllm", "Qwen/Qwen3-8B")) == ("vllm", "Qwen/Qwen3-8B")
