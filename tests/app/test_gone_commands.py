"""A slash command that Discord still offers, but that the bot no longer has, or has changed."""

from collections.abc import Callable

import discord
import pytest
from discord import app_commands

from discoclaw.bot.commands.outdated import OUTDATED
from tests.app.conftest import Start, World


def changed(world: World) -> None:
    """Give `/search` a parameter that Discord doesn't know of yet."""

    @app_commands.command(name="search", description="Search")
    async def search(interaction: discord.Interaction, place: str) -> None:
        raise AssertionError("it must not be run")

    world.app.client.tree.add_command(search, override=True)


def gone(world: World) -> None:
    world.app.client.tree.remove_command("search")


@pytest.mark.parametrize("now", [gone, changed])
async def test_an_outdated_command_is_answered_and_is_no_crash(
    start: Start, now: Callable[[World], None], caplog: pytest.LogCaptureFixture
) -> None:
    async with start() as world:
        now(world)
        used = await world.ann.slash(world.general, "search", query="tea")
        assert used.response is not None and used.response.ephemeral
        assert used.response.content == OUTDATED
        assert not [record for record in caplog.records if record.levelname == "ERROR"]
        assert world.env.errors == []


async def test_another_failure_of_a_command_is_logged(start: Start, caplog: pytest.LogCaptureFixture) -> None:
    async with start() as world:

        @app_commands.command(name="search", description="Search")
        async def search(interaction: discord.Interaction, query: str) -> None:
            raise RuntimeError("it fell over")

        world.app.client.tree.add_command(search, override=True)
        used = await world.ann.slash(world.general, "search", query="tea")
        assert used.response is None
        assert "it fell over" in caplog.text
        assert len(world.env.errors) == 1
