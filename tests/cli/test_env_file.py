"""`.env` as `discoclaw init` changes it: what was asked for, and nothing else."""

import io
import os
from pathlib import Path

import pytest
from dotenv import dotenv_values
from hypothesis import given
from hypothesis import strategies as st

from discoclaw.cli import env_file
from discoclaw.core.errors import Refused, SettingsError
from discoclaw.settings import Settings

VALUES = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=40)
AWKWARD = st.lists(st.sampled_from(["\\", '"', "'", "$", "${", "{", "}", "#", " ", "\n", "\r\n", "=", "x"]))
NAMES = ("DISCORD_TOKEN", "ANTHROPIC_API_KEY", "DISCOCLAW_MODEL")
LINES = st.sampled_from(
    [
        "",
        "# a comment",
        "#DISCOCLAW_MODEL=sonnet",
        "# DISCORD_TOKEN = nothing",
        "DISCORD_TOKEN=old",
        "export ANTHROPIC_API_KEY='old key' # from the console",
        "discord_token = old",
        "DISCOCLAW_MODEL=",
        "OTHER=one # two",
        'OTHER="${OTHER}, two\nlines # not a comment"',
        "not a setting at all",
    ]
)


def read_back(text: str) -> dict[str, str | None]:
    return dotenv_values(stream=io.StringIO(text, newline=""))


class TestValues:
    @given(st.dictionaries(st.sampled_from(NAMES), VALUES | AWKWARD.map("".join)))
    def test_are_read_back_as_they_were_whatever_is_in_them(self, values: dict[str, str]) -> None:
        text = env_file.changed(env_file.HEADER, values)
        assert read_back(text) == {name: value for name, value in values.items() if value}

    @given(st.lists(LINES, max_size=8), VALUES | AWKWARD.map("".join), st.sampled_from(["\n", "\r\n"]))
    def test_take_the_place_of_older_ones_and_nothing_else_changes(
        self, lines: list[str], value: str, newline: str
    ) -> None:
        before = newline.join(lines)
        after = env_file.changed(before, {"DISCOCLAW_MODEL": value})
        expected = read_back(before)
        if value or "DISCOCLAW_MODEL" in expected:
            expected["DISCOCLAW_MODEL"] = value
        assert read_back(after) == expected
        untouched = [line for line in before.splitlines() if not line.startswith("DISCOCLAW_MODEL=")]
        rest = iter(after.splitlines())
        assert all(line in rest for line in untouched), "a line is gone, or in another place"
        assert env_file.changed(after, {"DISCOCLAW_MODEL": value}) == after

    def test_stand_behind_the_comment_that_shows_their_default(self) -> None:
        text = "# The model.\n#DISCOCLAW_MODEL=sonnet\n# The key.\nANTHROPIC_API_KEY=\n"
        assert env_file.changed(text, {"DISCOCLAW_MODEL": "haiku", "ANTHROPIC_API_KEY": "k"}) == (
            "# The model.\n#DISCOCLAW_MODEL=sonnet\nDISCOCLAW_MODEL=haiku\n# The key.\nANTHROPIC_API_KEY=k\n"
        )

    def test_keep_what_stands_around_them(self) -> None:
        text = "\ufeff\n\nexport DISCORD_TOKEN='a # b'  # of the bot\r\nOTHER=1"
        assert env_file.changed(text, {"DISCORD_TOKEN": "new one", "ANTHROPIC_API_KEY": "k"}) == (
            '\ufeff\n\nexport DISCORD_TOKEN="new one"  # of the bot\r\nOTHER=1\r\nANTHROPIC_API_KEY=k\r\n'
        )

    def test_are_not_written_where_a_line_before_them_would_swallow_them(self) -> None:
        text = 'OTHER=1\nBROKEN="no end\n'
        with pytest.raises(SettingsError, match=r"line 2 of \.env .* a quotation mark is not closed"):
            env_file.changed(text, {"DISCOCLAW_MODEL": "my model"})
        assert env_file.changed(text, {"DISCOCLAW_MODEL": "haiku"}) == f"{text}DISCOCLAW_MODEL=haiku\n"

    def test_are_those_that_the_settings_have(self, tmp_path: Path) -> None:
        example = (Path(__file__).parents[2] / ".env.example").read_text(encoding="utf-8")
        env_file.write(tmp_path / ".env", env_file.changed(example, {"DISCOCLAW_MODEL": 'a "${HOME}" \\'}))
        assert Settings(_env_file=tmp_path / ".env").model == 'a "${HOME}" \\'


class TestTheFile:
    def test_is_for_its_owner_alone_whatever_it_was_before(self, tmp_path: Path) -> None:
        path = tmp_path / ".env"
        path.write_text("OTHER=1\n")
        path.chmod(0o644)
        env_file.write(path, "OTHER=2\n")
        assert (path.read_text(), path.stat().st_mode & 0o777) == ("OTHER=2\n", 0o600)
        assert os.listdir(tmp_path) == [".env"]

    def test_that_is_a_link_stays_one(self, tmp_path: Path) -> None:
        real, path = tmp_path / "elsewhere" / "bot.env", tmp_path / ".env"
        real.parent.mkdir()
        real.write_text("OTHER=1\n")
        path.symlink_to(real)
        env_file.write(path, "OTHER=2\n")
        assert (path.is_symlink(), real.read_text()) == (True, "OTHER=2\n")

    @pytest.mark.skipif(os.name == "nt" or os.geteuid() != 0, reason="Only root can give files away")
    def test_stays_with_its_owner_when_root_writes_it(self, tmp_path: Path) -> None:
        tmp_path.chmod(0o755)
        os.chown(tmp_path, 65_534, 65_534)
        env_file.write(tmp_path / ".env", "OTHER=1\n")
        assert (tmp_path / ".env").stat().st_uid == 65_534

    def test_that_is_a_folder_is_named(self, tmp_path: Path) -> None:
        (tmp_path / ".env").mkdir()
        with pytest.raises(SettingsError, match=r"can't read .*: Is a directory"):
            env_file.read(tmp_path / ".env")
        with pytest.raises(Refused, match="is not a regular file, which is never replaced"):
            env_file.write(tmp_path / ".env", "OTHER=1\n")
        assert os.listdir(tmp_path) == [".env"]

    def test_that_is_no_text_is_named(self, tmp_path: Path) -> None:
        (tmp_path / ".env").write_bytes(b"OTHER=\xff\n")
        with pytest.raises(SettingsError, match=r"is not UTF-8 text .* save it as UTF-8"):
            env_file.read(tmp_path / ".env")
