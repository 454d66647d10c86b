"""Where context files come from: a folder of one's own, or those that come with the program."""

from pathlib import Path

import pytest

from discoclaw.core.message import Place
from discoclaw.session import content


class TestTheFolder:
    async def test_is_the_packages_until_somebody_makes_one(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        packaged, own = tmp_path / "packaged", tmp_path / "content"
        for folder, text in ((packaged, "theirs"), (own, "ours")):
            (folder / "discord" / "base").mkdir(parents=True)
            (folder / "discord" / "base" / "rules.md").write_text(text, encoding="utf-8")
        away = own.rename(tmp_path / "away")
        monkeypatch.setattr(content, "PACKAGED", packaged)
        texts, place = content.Content(own), Place("dm", "1", None, "direct message", private=True)
        assert await texts.of(place) == (("theirs",), ())
        assert texts.in_ram(place) is not None
        away.rename(own)
        assert texts.in_ram(place) is None
        assert await texts.of(place) == (("ours",), ())
