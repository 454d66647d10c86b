"""`discoclaw run` that cannot run: one line says why, exit code 1; with no allowlist nobody is answered."""

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from discoclaw.core.errors import ModelUnreachable
from tests.process.house import TOKEN, Bot, House

pytestmark = pytest.mark.asyncio(loop_scope="module")

FORKED = True
NOWHERE = "http://127.0.0.1:9"  # the discard port, where nothing listens
CLOSED = {"DISCORD_ALLOW_USER_IDS": "", "DISCOCLAW_RESPONDMODE": "all"}

REFUSED: dict[str, dict[str, str | None]] = {
    "bad values": {
        "DISCORD_ALLOW_USER_IDS": "12, ann",
        "DISCOCLAW_RESPOND_MODE": "loud",
        "DISCOCLAW_CONTEXT_HISTORY": "0",
        "DISCORD_GATEWAY": "http://example.org",
    },
    "no token": {"DISCORD_TOKEN": None},
    "no key": {"ANTHROPIC_API_KEY": None, "ANTHROPIC_BASE_URL": None},
    "wrong token": {"DISCORD_TOKEN": "MTk4.wrong.token"},
    "missing intents": {},
    "nobody there": {"DISCORD_API_BASE": NOWHERE},
    "bad folder": {"DISCOCLAW_DATA_DIR": "a-file"},
    "second bot": {"DISCOCLAW_DATA_DIR": "data"},
}
"""Why a start fails, and what is told to have it so; each on a folder of its own unless told otherwise."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def refused(house: House) -> AsyncIterator[dict[str, Bot]]:
    """All the starts that fail, ended."""
    first = await house.running(**CLOSED)
    house.discord.gateway.disallowed_intents = 1 << 15
    (house.folder / "a-file").write_text("in the way")
    bots = {}
    for number, (why, changes) in enumerate(REFUSED.items()):
        quiet = {"DISCOCLAW_DATA_DIR": f"data-{number}", "DISCOCLAW_LOG_LEVEL": "ERROR"}
        bots[why] = await house.start(**{**quiet, **changes})
    await asyncio.gather(*(bot.ended(60) for bot in bots.values()))
    house.discord.gateway.disallowed_intents = 0
    assert first.runs
    yield bots


def reason(bot: Bot) -> str:
    """The one line that a bot printed before it ended with 1."""
    lines = bot.stderr.splitlines()
    assert len(lines) == 1, f"{len(lines)} lines, the last of them {lines[-1]!r}"
    assert bot.process.returncode == 1
    assert lines[0].startswith("discoclaw: ")
    assert bot.stdout == ""
    return lines[0]


class TestSettings:
    async def test_each_bad_value_is_a_line_with_the_name_the_value_and_what_is_allowed(
        self, refused: dict[str, Bot]
    ) -> None:
        bot = refused["bad values"]
        lines = sorted(bot.stderr.splitlines())
        assert [line.partition("=")[0] for line in lines] == [
            "discoclaw: DISCOCLAW_CONTEXT_HISTORY",
            "discoclaw: DISCOCLAW_RESPOND_MODE",
            "discoclaw: DISCORD_ALLOW_USER_IDS",
            "discoclaw: DISCORD_GATEWAY",
        ]
        assert "loud" in lines[1] and "'mention'" in lines[1]
        assert "'ann'" in lines[2]
        assert "ws://" in lines[3]
        assert bot.process.returncode == 1

    async def test_a_missing_token_is_named(self, refused: dict[str, Bot]) -> None:
        assert "DISCORD_TOKEN is not set" in reason(refused["no token"])

    async def test_a_missing_key_is_named(self, refused: dict[str, Bot]) -> None:
        assert "ANTHROPIC_API_KEY is not set" in reason(refused["no key"])


class TestDiscordRefuses:
    async def test_a_wrong_token(self, refused: dict[str, Bot]) -> None:
        line = reason(refused["wrong token"])
        assert "DISCORD_TOKEN" in line
        assert "wrong.token" not in line

    async def test_an_intent_that_is_switched_off_is_named_with_where_to_switch_it_on(
        self, refused: dict[str, Bot]
    ) -> None:
        line = reason(refused["missing intents"])
        assert "message content" in line.lower()
        assert "discord.com/developers" in line

    async def test_nobody_there(self, refused: dict[str, Bot]) -> None:
        line = reason(refused["nobody there"])
        assert "Discord" in line
        assert NOWHERE.removeprefix("http://") in line


class TestTheFolder:
    async def test_a_second_bot_on_the_same_folder_refuses_and_names_it(
        self, refused: dict[str, Bot]
    ) -> None:
        line = reason(refused["second bot"])
        assert "data/memory is in use" in line
        assert "DISCOCLAW_DATA_DIR" in line

    async def test_a_folder_that_can_not_be_made_is_named(self, refused: dict[str, Bot]) -> None:
        assert "a-file" in reason(refused["bad folder"])


class TestClosedDoors:
    @pytest.mark.design(251)
    async def test_without_an_allowlist_the_log_warns_and_nobody_is_answered(self, house: House) -> None:
        bot = await house.running(**CLOSED)
        gate, private = house.discord.add_channel("gate"), house.discord.dm(house.ann)
        await house.ask(house.ann, gate, "let me in")
        await house.discord.say(house.ann, gate, "!memory show")
        await house.discord.say(house.ann, private, "hello?")
        warning = await bot.logged("allowlist is empty")
        assert " WARNING " in warning
        assert "DISCORD_ALLOW_USER_IDS" in warning
        assert house.texts(gate) == house.texts(private) == []
        assert house.model.requests == []

    async def test_a_name_that_is_no_setting_is_a_warning(self, house: House) -> None:
        bot = await house.running(**CLOSED)
        assert "did you mean DISCOCLAW_RESPOND_MODE?" in await bot.logged("DISCOCLAW_RESPONDMODE")


class TestNoModel:
    async def test_a_model_that_is_not_there_is_told(self, house: House) -> None:
        bot = await house.running(ANTHROPIC_BASE_URL=NOWHERE)
        void = house.discord.add_channel("void")
        await house.ask(house.ann, void, "anybody?")
        await house.answered(void, ModelUnreachable.user_message)
        assert bot.runs

    async def test_no_life_has_printed_the_token(self, house: House) -> None:
        await house.running(ANTHROPIC_BASE_URL=NOWHERE)
        assert TOKEN not in house.printed()
        assert "wrong.token" not in house.printed()
