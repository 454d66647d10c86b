"""A slash command that Discord still offers, but that the bot no longer has, or has changed."""

import discord
import pytest
from discord import app_commands

from tests.contract.world import Start


@pytest.mark.parametrize("now", ["gone", "changed", "failing"])
async def test_is_answered_and_is_no_crash_and_another_failure_is_logged(
    start: Start, now: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with start() as world:

        @app_commands.command(name="search", description="Search")
        async def changed(interaction: discord.Interaction, place: str) -> None:
            raise AssertionError("it must not be run")

        @app_commands.command(name="search", description="Search")
        async def failing(interaction: discord.Interaction, query: str) -> None:
            raise RuntimeError("it fell over")

        if now == "gone":
            world.app.client.tree.remove_command("search")
        else:
            world.app.client.tree.add_command(changed if now == "changed" else failing, override=True)
        used = await world.ann.slash(world.general, "search", query="tea")
        if now == "failing":
            assert used.response is None and "it fell over" in caplog.text and len(world.env.errors) == 1
        else:
            assert used.response.ephemeral and "command has changed" in used.response.content
            assert not [record for record in caplog.records if record.levelname == "ERROR"]
            assert world.env.errors == []
