"""The one table: a command of Discord and of the terminal is one row, with one function or a reason."""

from typing import Any

from discoclaw.bot.commands.table import CATALOGUE, OWN
from discoclaw.cli.main import whole
from discoclaw.commands.table import COMMANDS, MENUS
from tests.contract.commands import typed
from tests.contract.world import Start


def test_a_command_is_in_both_places_or_says_why_it_is_not() -> None:
    both = {one.path for one in COMMANDS if one.discord and one.terminal is not None}
    alone = {one.path for one in (*COMMANDS, *MENUS) if one.alone}
    assert both.isdisjoint(alone)
    assert both | alone == {one.path for one in (*COMMANDS, *MENUS)}


def test_what_both_have_is_one_function_but_for_importing() -> None:
    """A person's file says what they state; an admin's is a history of whoever it is about."""
    both = [one for one in COMMANDS if one.discord and one.terminal is not None]
    assert [one.path for one in both if not one.shared] == ["memory data import"]


def test_each_command_of_discord_has_one_function() -> None:
    shared = {one.path for one in COMMANDS if one.shared}
    assert shared.isdisjoint(OWN)
    assert {one.path for one in (*CATALOGUE.commands, *CATALOGUE.menus)} == shared | OWN.keys()


def test_each_verb_of_the_terminal_is_a_row() -> None:
    group: Any = whole("memory")
    assert sorted(group.commands) == sorted(one.terminal.name for one in COMMANDS if one.terminal is not None)


async def test_one_function_answers_both_with_what_each_may_see(start: Start) -> None:
    async with start(summary_enabled=False, extraction_enabled=False) as world:
        await typed(world, "remember I like tea")
        await typed(world, "remember I see a therapist", privately=True)
        in_the_open = await typed(world, "view")
        assert "tea" in in_the_open and "therapist" not in in_the_open
        ann = str(world.ann.id)
        told = world.cli("memory", "view", ann).stdout
        assert "[fact] I like tea" in told and "[fact, private] I see a therapist" in told
        undone = await typed(world, "undo", privately=True)
        assert undone.startswith("Done: took back: 1 change")
        assert world.memories(world.ann) == ["I like tea"]
