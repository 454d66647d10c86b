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


class TestTheRulesAboutMemory:
    """They stand in `base/core.md`, below `## Memory`, where an admin can change them."""

    @pytest.mark.parametrize(
        ("own", "rules"),
        [
            ("We sail.\n\n## Memory\n- Forget tea.\n", ""),  # changed by the admin
            ("We sail.\n\n## Memory\n", ""),  # an admin who wants none
            ("We sail.\n### Memory\n## Memory of the house\nold", "## Memory"),  # older than the section
            ("", "## Memory"),
        ],
    )
    async def test_are_those_of_the_file_or_else_those_of_the_program(
        self, tmp_path: Path, own: str, rules: str
    ) -> None:
        file = tmp_path / "discord" / "base" / "core.md"
        file.parent.mkdir(parents=True)
        file.write_text(own)
        place = Place("dm", "1", None, "direct message", private=True)
        texts, _ = await content.Content(tmp_path).of(place)
        assert texts[: bool(own)] == ((own.strip(),) if own else ())
        added = "".join(texts[bool(own) :])
        assert added.startswith(rules) and bool(added) == bool(rules)
        assert "House style" not in added and ('"Durable memory" is a dated selection' in added) == bool(
            rules
        )
