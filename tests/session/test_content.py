"""Where context files come from: a folder of one's own, or those that come with the program."""

from pathlib import Path

import pytest
from hatchling.builders.wheel import WheelBuilder

from discoclaw.session import content

ROOT = Path(__file__).parents[2]


def test_the_checkouts_files_are_in_the_wheel() -> None:
    packed = {Path(one.distribution_path) for one in WheelBuilder(str(ROOT)).recurse_included_files()}
    files = {
        Path("discoclaw") / one.relative_to(ROOT) for one in (ROOT / "content").rglob("*") if one.is_file()
    }
    assert len(files) >= 3 and files <= packed


class TestTheFolder:
    def test_is_that_of_the_settings_once_somebody_made_it(self, tmp_path: Path) -> None:
        own = tmp_path / "content"
        own.mkdir()
        assert content.chosen(own) == own

    def test_is_the_packages_until_then(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(content, "PACKAGED", tmp_path / "packaged")
        assert content.chosen(tmp_path / "content") == tmp_path / "packaged"
