"""The offline model tidies: what it takes for the same, the opposite and over, and what it suggests."""

from discoclaw.core import titles
from discoclaw.core.patch import Consolidation, Contradiction, Duplicate, Suggestion
from discoclaw.models.offline.model import OfflineModel
from tests.tables import each_row

INFERRED, STATED = "inferred", "stated"


def line(number: int, text: str, author: str = INFERRED) -> str:
    """An item as the prompts list it."""
    return f"- durable-0000000{number} [fact] ({author}, since 2026-01-01, updated 2026-01-02) {text}"


async def tidied(*texts: str, stated: int | None = None) -> Consolidation:
    """The answer about items, the newest first and numbered from 1; one of them may be stated."""
    lines = [line(n, text, STATED if n == stated else INFERRED) for n, text in enumerate(texts, start=1)]
    prompt = f"{titles.TODAY}\n2026-02-02{titles.SEPARATOR}" + "\n".join([titles.TO_TIDY, *lines])
    return await OfflineModel().structured(purpose="tidying", system="", prompt=prompt, shape=Consolidation)


def named(*numbers: int) -> list[str]:
    return [f"durable-0000000{number}" for number in numbers]


class TestTidying:
    async def test_texts_that_differ_in_case_and_punctuation_are_the_same(self) -> None:
        found = await tidied("User prefers tabs", "User likes tea.", "user prefers  TABS!")
        assert found == Consolidation(duplicates=[Duplicate(keep=named(3)[0], drop=named(1))])

    async def test_what_was_stated_is_kept_else_the_oldest(self) -> None:
        assert (await tidied("a b", "A b.", "a, b", stated=2)).duplicates == [
            Duplicate(keep=named(2)[0], drop=named(1, 3))
        ]

    @each_row(
        ("one", "other"),
        [
            ("User writes C.", "User writes C++."),
            ("User writes C.", "User writes C#."),
            ("User likes tea.", "User likes teas."),
            ("!!!", "..."),
        ],
    )
    async def test_what_only_looks_alike_is_not(self, one: str, other: str) -> None:
        assert await tidied(one, other) == Consolidation()

    @each_row(
        ("newer", "older"),
        [
            ("User hates tea.", "User likes tea."),
            ("User loves tea.", "User does not like tea."),
            ("User prefers tabs over spaces.", "User prefers spaces over tabs."),
            ("User no longer uses vim.", "User uses vim."),
            ("User uses vim.", "User no longer uses vim."),
        ],
    )
    async def test_plain_opposites_contradict_each_other(self, newer: str, older: str) -> None:
        why = "they say the opposite of each other"
        assert await tidied("User has a cat.", newer, older) == Consolidation(
            contradictions=[Contradiction(older=named(3)[0], newer=named(2)[0], reason=why)]
        )

    async def test_each_item_is_named_once(self) -> None:
        found = await tidied("User hates tea.", "User likes tea.", "User loves tea.", "User likes tea")
        assert [(entry.keep, entry.drop) for entry in found.duplicates] == [(named(4)[0], named(2))]
        assert [(entry.older, entry.newer) for entry in found.contradictions] == [(named(3)[0], named(1)[0])]

    async def test_what_was_until_a_day_that_is_past_is_over(self) -> None:
        found = await tidied(
            "User is away until 2026-02-01.", "User is busy till 2026-02-02.", "Until 2026-1-1"
        )
        assert [(entry.id, entry.reason) for entry in found.outdated] == [
            (named(1)[0], "it was until 2026-02-01")
        ]

    @each_row("prompt", ["", "words", f"{titles.TO_TIDY}\nnone", f"{titles.TO_TIDY}\n- x [fact] y"])
    async def test_of_nothing_there_is_nothing_to_say(self, prompt: str) -> None:
        answer = await OfflineModel().structured(
            purpose="tidying", system="", prompt=prompt, shape=Consolidation
        )
        assert answer == Consolidation()


async def suggested(held: str, against: str) -> str:
    prompt = titles.SEPARATOR.join((f"{titles.REMEMBERED}\n{held}", f"{titles.AGAINST}\n{against}"))
    return (
        await OfflineModel().structured(purpose="suggestion", system="", prompt=prompt, shape=Suggestion)
    ).how


class TestSuggestion:
    async def test_what_was_stated_outweighs_what_was_inferred(self) -> None:
        held = line(1, "User likes tea.", STATED)
        assert await suggested(held, "- User hates tea.") == "keep_old"
        assert await suggested(held, line(2, "User hates tea.")) == "keep_old"

    async def test_else_the_newer_holds(self) -> None:
        assert await suggested(line(1, "User likes tea."), line(2, "User hates tea.", STATED)) == "use_new"
        assert await suggested(line(1, "x", STATED), line(2, "y", STATED)) == "use_new"
        assert await suggested(line(1, "x"), "- it no longer holds") == "use_new"
