"""An admin's own table of prices: it comes before ours, and what is wrong in it is one line."""

from pathlib import Path

import pytest

from discoclaw.core.errors import SettingsError
from discoclaw.core.model import Usage
from discoclaw.core.usage import DOLLAR
from discoclaw.usage.metered import prices


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "prices.toml"


class TestAnAdminsTable:
    def test_comes_before_ours_and_adds_to_it(self, file: Path) -> None:
        file.write_text('["claude-sonnet-5-5"]\ninput = 1\n["glm-5"]\noutput = 0.5\nminute = 0.6\n')
        found = prices(file)
        assert found.of("claude-sonnet-5-5")[0].cost(Usage(1_000_000, 1_000_000)) == DOLLAR
        assert found.of("glm-5.1")[0].cost(Usage(0, 2_000_000, seconds=60)) == DOLLAR * 16 // 10
        assert found.of("claude-haiku-5-5") == prices().of("claude-haiku-5-5")

    def test_wins_over_ours_with_a_shorter_name(self, file: Path) -> None:
        file.write_text('["claude-sonnet"]\ninput = 50\n')
        assert prices(file).of("claude-sonnet-5-5")[0].cost(Usage(1_000_000)) == 50 * DOLLAR
        assert prices(file, free=True).of("claude-sonnet-5-5")[0].cost(Usage(1_000_000)) == 50 * DOLLAR

    def test_may_name_the_provider(self, file: Path) -> None:
        file.write_text('["openai:gpt-5"]\ninput = 3\n["anthropic:claude-sonnet-5-5"]\ninput = 4\n')
        found = prices(file, free_at=["ollama"])
        assert found.of("openai:gpt-5-mini")[0].cost(Usage(1_000_000)) == 3 * DOLLAR
        assert found.of("claude-sonnet-5-5")[0].cost(Usage(1_000_000)) == 4 * DOLLAR
        assert not found.of("openrouter:gpt-5-mini")[1]

    @pytest.mark.parametrize(
        ("text", "fault"),
        [
            ("glm = 5", "“glm” must be a table with prices, such as input = 2"),
            ("[glm]\nprice = 5", "“glm” has no “price”; there are input, output, cache_read, cache_write"),
            ("[glm]\ninput = -1", "input of “glm” must be a number from 0 to 1,000,000, not -1"),
            ("[glm]\ninput = true", "input of “glm” must be a number from 0 to 1,000,000, not True"),
            ("[glm]\ninput = nan", "input of “glm” must be a number from 0 to 1,000,000, not nan"),
            ('[glm]\ninput = "2"', "input of “glm” must be a number from 0 to 1,000,000, not 2"),
            ("[glm", "Expected "),
        ],
    )
    def test_that_is_wrong_is_one_line(self, file: Path, text: str, fault: str) -> None:
        file.write_text(text)
        with pytest.raises(SettingsError) as refused:
            prices(file)
        assert str(refused.value).startswith(f"DISCOCLAW_PRICES={file}: ")
        assert fault in str(refused.value) and "\n" not in str(refused.value)

    def test_that_is_not_there_or_no_text_is_one_line(self, file: Path) -> None:
        with pytest.raises(SettingsError, match=r"\(No such file or directory\); name a TOML file"):
            prices(file)
        file.write_bytes(b"\xff\xfe")
        with pytest.raises(SettingsError, match="DISCOCLAW_PRICES="):
            prices(file)
