"""`discoclaw run --shards`: what a wrong value is answered with."""

from discoclaw.cli import main
from tests.cli.shell import Runner

WRONG = {
    "3-0/8": "3-0 runs backwards; write 0-3",
    "0-3,2/8": "shard 2 is named twice",
    "8/8": "there is no shard 8 of 8; shards are numbered from 0",
    "0/0": "the number of all shards must be from 1 to 100,000",
    "many": "use auto, 0-3/8 (shards 0 to 3 of 8) or 2:4/16 (the third of four parts of 16)",
}


def test_a_wrong_value_is_one_line_that_names_the_option_or_the_variable() -> None:
    for text, why in WRONG.items():
        result = Runner().invoke(main.cli, ["run", "--shards", text], env={"DISCORD_TOKEN": "x"})
        assert result.exit_code == 1
        assert result.stderr == f"discoclaw: --shards {text}: {why}\n"
        result = Runner().invoke(main.cli, ["run"], env={"DISCORD_TOKEN": "x", "DISCOCLAW_SHARDS": text})
        assert result.exit_code == 1
        assert result.stderr == f"discoclaw: DISCOCLAW_SHARDS={text}: {why}\n"
