"""Prices of calls of models. Pure; knows nothing about where prices come from.

A table has a price for each model, by the beginning of its name, so that a dated snapshot costs what its
model costs. A row may name the provider too (`openai:gpt-5`), or go for every provider's model of that name.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from discoclaw.core.model import Usage, split


@dataclass(frozen=True, slots=True)
class Price:
    """Prices in nanodollars: of a token of each kind, of a search, of a second of sound.

    Prompts of more than `long_from` tokens cost `long_times` as much, input and output alike.
    """

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    search: int = 0
    second: int = 0
    long_from: int = 0
    long_times: int = 1

    def cost(self, usage: Usage) -> int:
        """The cost of a request, in nanodollars."""
        tokens = (
            usage.input_tokens * self.input
            + usage.output_tokens * self.output
            + usage.cache_read_tokens * self.cache_read
            + usage.cache_write_tokens * self.cache_write
        )
        times = self.long_times if self.long_from and usage.prompt_tokens > self.long_from else 1
        return tokens * times + usage.searches * self.search + usage.seconds * self.second

    def most(self, prompt: int, output: int) -> int:
        """The most that a request of so many tokens costs: all of its prompt may be written to a cache."""
        dear = self.cache_write > self.input
        return self.cost(Usage(0 if dear else prompt, output, cache_write_tokens=prompt if dear else 0))


FREE: Final = Price()


@dataclass(frozen=True, slots=True)
class Prices:
    """The prices of models. `free`: whoever runs the models runs them here, so they cost nothing.

    `free_at` are the providers of whose models that holds, for names that begin with one. `own` are the names
    in `table` whose prices an admin gave. They win over that, as some local servers pass calls on to a
    provider that costs money, and over the other names.
    """

    table: Mapping[str, Price]
    own: frozenset[str] = frozenset()
    free: bool = False
    free_at: frozenset[str] = frozenset()

    def costs_nothing(self, model: str) -> bool:
        """Whether a model runs here, and no admin gave a price for it."""
        return self.of(model) == (FREE, True)

    def of(self, model: str) -> tuple[Price, bool]:
        """A model's price, and whether it is known. An unknown one is taken to cost the most of all."""
        provider, plain = split(model)
        free = provider in self.free_at if provider else self.free
        for names in (self.own, () if free else self.table):  # an admin's row wins, however short
            fitting = [name for name in names if model.startswith(name) or plain.startswith(name)]
            if fitting:
                return self.table[max(fitting, key=len)], True
        return (FREE, True) if free else (self.dearest, False)

    @property
    def dearest(self) -> Price:
        """The price of a model that has none here: too much is safer for a budget than nothing."""
        return max(self.table.values(), key=lambda one: (one.output, one.input), default=FREE)
