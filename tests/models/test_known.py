"""Aliases of models."""

from typing import get_args

from anthropic.types import Model

from discoclaw.models.anthropic import ALIASES, resolve
from tests.tables import each_row

CURRENT = get_args(get_args(Model)[0])


class TestAliases:
    @each_row("alias", ALIASES)
    def test_each_stands_for_a_model_the_sdk_knows(self, alias: str) -> None:
        assert resolve(alias) in CURRENT

    def test_their_case_does_not_matter(self) -> None:
        assert resolve(" Haiku ") == resolve("fast") == "claude-haiku-5-5"

    @each_row("name", ["llama3.2:3b", "claude-opus-4-8", "hf.co/Some/Model-GGUF:Q4", ""])
    def test_any_other_name_is_left_alone(self, name: str) -> None:
        assert resolve(name) == name
