"""Settings in the environment: each is documented, has its promised default, and a wrong one is named."""

import importlib
import json
import re
import shutil
import time
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from discoclaw import settings
from discoclaw.cli.main import cli
from discoclaw.settings import Settings
from tests.contract.cards import every_page
from tests.contract.commands import card
from tests.contract.world import Start
from tests.servers.messages_api import tool_use

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / ".env.example"
QUIET: dict[str, Any] = {"extraction_enabled": False, "summary_enabled": False}
DEFAULTS = {
    "DISCOCLAW_RESPOND_MODE": "mention",
    "DISCOCLAW_CONTEXT_HISTORY": 20,
    "DISCOCLAW_RECALL_LIMIT": 5,
    "DISCOCLAW_HYGIENE_MAX_AGE": 604_800,
    "DISCOCLAW_RESPONSE_CACHE": False,
    "DISCOCLAW_CACHE_TTL": 3600,
    "DISCOCLAW_CACHE_MAX_ENTRIES": 100,
    "DISCOCLAW_ENRICH_DEPTH": 1,
    "MEMORY_RECENCY_HALF_LIFE": 0,
    "DISCOCLAW_KNOWLEDGE_MAX_IDLE_DAYS": 30,
    "DISCOCLAW_KNOWLEDGE_SURVIVAL_CHANCE": 0.05,
    "EMBEDDING_TEXT_WEIGHT": 0.4,
    "EMBEDDING_VECTOR_WEIGHT": 0.6,
    "DISCOCLAW_SUMMARY_ENABLED": True,
    "DISCOCLAW_SUMMARY_MODEL": "haiku",
    "DISCOCLAW_SUMMARY_MAX_CHARS": 2000,
    "DISCOCLAW_SUMMARY_EVERY_N_TURNS": 5,
    "DISCOCLAW_DURABLE_MEMORY_ENABLED": True,
    "DISCOCLAW_DURABLE_EXTRACTION_ENABLED": True,
    "DISCOCLAW_DURABLE_MODEL": "haiku",
    "DISCOCLAW_DURABLE_EVERY_N_TURNS": 10,
    "DISCOCLAW_DURABLE_INJECT_MAX_CHARS": 2000,
    "DISCOCLAW_DURABLE_MAX_ITEMS": 200,
    "DISCOCLAW_MEMORY_CHANNEL_ID": None,
    "DISCOCLAW_MEMORY_COMMANDS_ENABLED": True,
}
WRONG = [
    ("DISCOCLAW_RESPOND_MODE", "loud", "must be 'all', 'mention', 'owner' or 'none'"),
    ("DISCOCLAW_CONTEXT_HISTORY", "0", "must be a whole number from 1 to 200"),
    ("DISCOCLAW_CONTEXT_HISTORY", "201", "must be a whole number from 1 to 200"),
    ("DISCOCLAW_MAX_TOKENS", "many", "must be a whole number from 64 to 32,000"),
    ("NOSTR_TIMEOUT_S", "0", "must be a number above 0, up to 600"),
    ("DISCOCLAW_KNOWLEDGE_SURVIVAL_CHANCE", "2", "must be a number from 0 to 1"),
    ("NOSTR_RELAYS", "embedded, wss://x", "can't be combined with other relays"),
    ("NOSTR_RELAYS", "http://x", "'http://x' is not a relay; use wss://…, ws://… or 'embedded'"),
    ("DISCOCLAW_SUMMARY_ENABLED", "maybe", "must be true or false"),
    ("DISCORD_ALLOW_USER_IDS", "12, ann", "'ann' is not a Discord id"),
    ("DISCOCLAW_MEMORY_CHANNEL_ID", "#general", "is not a Discord id"),
    ("DISCOCLAW_MEMORY_CHANNEL_ID", "12 34", "must be a single Discord id"),
    ("ANTHROPIC_BASE_URL", "localhost:11434", "http:// or https://"),
    ("DISCORD_GATEWAY", "http://x", "ws:// or wss://"),
    ("DISCOCLAW_DM_PRIVACY", "secret", "'strict', 'balanced' or 'open'"),
    ("DISCOCLAW_PAGE", "0.0.0.0:8765", "must be an address that other machines can't reach"),
    ("DISCOCLAW_PAGE", "[::]:8765", "use an SSH tunnel or a reverse proxy"),
    ("DISCOCLAW_PAGE", "192.168.1.7:8765", "because nothing is encrypted there"),
    ("DISCOCLAW_PAGE", "bot.example.org:8765", "must be an address that other machines can't reach"),
    ("DISCOCLAW_PAGE", "127.0.0.1", "must be an address and a port, for example 127.0.0.1:9464"),
    ("DISCOCLAW_LOG_LEVEL", "loud", "'DEBUG', 'INFO', 'WARNING' or 'ERROR'"),
]


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A folder without `.env`, and an environment without settings."""
    monkeypatch.chdir(tmp_path)
    for name in settings.names():
        monkeypatch.delenv(name, raising=False)
    return tmp_path


class TestTheDocuments:
    def test_list_every_setting_once_with_what_it_means_and_its_default(self, tmp_path: Path) -> None:
        lines = EXAMPLE.read_text(encoding="utf-8").splitlines()
        named = [(index, line.lstrip("#").split("=")[0]) for index, line in enumerate(lines) if "=" in line]
        assert sorted(name for _, name in named) == sorted(settings.names())
        assert all(lines[index - 1].startswith("# ") for index, _ in named)
        shown = re.sub(r"^#(?=[A-Z])", "", EXAMPLE.read_text(encoding="utf-8"), flags=re.M)
        (tmp_path / "example").write_text(shown, encoding="utf-8")
        assert Settings(_env_file=tmp_path / "example") == Settings(_env_file=None)

    @pytest.mark.parametrize(
        ("writes", "pages"),
        [
            ("discoclaw.settings_reference", ["docs/admins/settings.md", ".env.example"]),
            ("discoclaw.cli.reference", ["docs/members/commands.md", "docs/admins/command-line.md"]),
        ],
    )
    def test_are_as_make_docs_writes_them(self, tmp_path: Path, writes: str, pages: list[str]) -> None:
        copies = [shutil.copy(ROOT / page, tmp_path / Path(page).name) for page in pages]
        importlib.import_module(writes).main(*map(Path, copies))
        for page, copy in zip(pages, copies, strict=True):
            assert Path(copy).read_text(encoding="utf-8") == (ROOT / page).read_text(encoding="utf-8"), page


class TestTheEnvironment:
    @pytest.mark.design(157, 158, 159, 160, 161, 162, 163, 165, 166, 167, 172, 180)
    def test_has_the_promised_defaults_which_can_be_typed_as_they_are(
        self, bare: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for variable, value in DEFAULTS.items():
            found = getattr(Settings(_env_file=None), settings.names()[variable])
            assert (found, isinstance(found, bool)) == (value, isinstance(value, bool)), variable
            typed = int(value) if isinstance(value, bool) else value
            monkeypatch.setenv(variable, "" if typed is None else str(typed))
        assert settings.load() == Settings(_env_file=None)
        for name in settings.names():
            monkeypatch.setenv(name, "")  # which is unset
        for name in ("MODEL", "BASE_URL", "OWNERS", "API_KEY", "LOG_LEVEL", "DATA_DIR", "TOKEN", "model"):
            monkeypatch.setenv(name, "http://elsewhere")  # which is not ours
        (bare / ".env").write_text("MODEL=other\nTOKEN=other\n")
        assert settings.load() == Settings(_env_file=None)

    def test_with_a_wrong_value_stops_the_start_with_one_line_that_says_what_is_allowed(
        self, bare: Path
    ) -> None:
        for name, value, says in WRONG:
            done = CliRunner().invoke(cli, ["run"], env={name: value})
            (line,) = done.output.splitlines()
            assert done.exit_code != 0 and f"{name}={value}: " in line and says in line, done.output
        secret = CliRunner().invoke(cli, ["run"], env={"DISCOCLAW_PAGE_TOKEN": "guess-me"}).output
        assert "DISCOCLAW_PAGE_TOKEN=…: must have at least 16 characters" in secret
        assert "guess-me" not in secret

    def test_is_read_as_people_write_it_and_typos_are_pointed_out(
        self, bare: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for typed, address in {
            "localhost:1": "127.0.0.1:1",
            "127.1.2.3:80": "127.1.2.3:80",
            "[::1]:8765": "[::1]:8765",
            " ": "None",
        }.items():
            monkeypatch.setenv("DISCOCLAW_PAGE", typed)
            assert str(settings.load().page) == address
        monkeypatch.setenv("DISCORD_ALLOW_USER_IDS", "1, 2 3,,4")
        monkeypatch.setenv("DISCORD_TOKEN", "a-very-secret-token")
        assert settings.load().allow_users == {"1", "2", "3", "4"}
        assert "a-very-secret-token" not in repr(settings.load())
        typo = "is not a setting of DiscoClaw, so it is ignored; did you mean"
        (bare / ".env").write_text("DISCOCLAW_MODLE=haiku\n")
        assert settings.unknown() == [f"DISCOCLAW_MODLE {typo} DISCOCLAW_MODEL?"]
        assert settings.unknown({"DISCOCLAW_RESPONSE_MODE": "all", "HOME": "/"}) == [
            f"DISCOCLAW_RESPONSE_MODE {typo} DISCOCLAW_RESPOND_MODE?"
        ]


class TestWhatSingleSettingsDo:
    @pytest.mark.design(154, 155)
    @pytest.mark.parametrize("elsewhere", [False, True])
    async def test_memories_and_summaries_are_json_files_in_the_promised_folders(
        self, start: Start, tmp_path: Path, elsewhere: bool
    ) -> None:
        folder = tmp_path / ("elsewhere" if elsewhere else "data/memory")
        given = {"durable_dir": folder / "durable", "summary_dir": folder / "rolling"}
        async with start(**(given if elsewhere else {}), extraction_enabled=False) as world:
            await world.remember(world.ann, "I like tea")
            (item,) = json.loads((folder / "durable" / f"{world.ann.id}.json").read_bytes())["items"]
            assert item["text"] == "I like tea"
            for _ in range(2):
                await world.says(world.ann, world.general, "hello")
            (summary,) = (folder / "rolling").glob("*.json")
            assert json.loads(summary.read_bytes())["summary"] == "They talked."

    @pytest.mark.design(162)
    @pytest.mark.parametrize(("changes", "linked"), [({}, True), ({"enrich_depth": 0}, False)])
    async def test_links_between_memories_are_followed_one_step(
        self, start: Start, changes: dict[str, Any], linked: bool
    ) -> None:
        chain: list[dict[str, Any]] = [
            {"text": "Moe works in Oslo.", "key": "town"},
            {"text": "Moe is a vet.", "key": "vet", "links": ["town"]},
            {"text": "User has a cat called Miso.", "key": "pet", "links": ["vet"]},
        ]
        async with start(**changes, **QUIET) as world:
            calls = [tool_use((f"toolu_{n}", "memory_store", one)) for n, one in enumerate(chain)]
            world.brain.says(*calls, "Done.", about="please")
            await world.says(world.ann, world.dev, "please")
            await world.says(world.ann, world.general, "how is my cat?")
            assert "User has a cat called Miso." in world.prompt
            assert ("Moe is a vet." in world.prompt) is linked
            assert "Moe works in Oslo." not in world.prompt

    @pytest.mark.design(156)
    async def test_all_messages_of_one_second_are_archived_where_an_admin_wants_it(
        self, start: Start
    ) -> None:
        async with start(auto_save="all", **QUIET) as world:
            world.brain.says(*(f"zebra answer {number}" for number in range(4)))
            begun = world.env.now()
            for number in range(4):
                await world.ann.send(world.general, f"zebra question {number}")
            assert (world.env.now() - begun).total_seconds() <= 1
            await world.settle()
            found = await every_page(world.ann, await card(world, "search", query="zebra"))
            texts = [f"zebra {what} {number}" for what in ("question", "answer") for number in range(4)]
            assert found.count("[open it]") == 8 and all(found.count(text) == 1 for text in texts)

    @pytest.mark.design(165, 175)
    async def test_the_factor_of_recency_halves_with_each_half_life(self, start: Start) -> None:
        async with start(**QUIET) as world:
            await world.remember(world.ann, "I have a red boat")
            age = time.time() - world.items(world.ann)[0]["updatedAt"] / 1000
            await world.stop()
            for times, factor in ((1, 0.5), (2, 0.25), (3, 0.125), (0, None)):
                half_life = str(round(age / times)) if times else "0"
                given = {"MEMORY_RECENCY_HALF_LIFE": half_life}
                result = world.cli("recall", str(world.ann.id), "my boat?", "--json", **given)
                (row,) = json.loads(result.stdout)
                found = row["parts"].get("recency")
                assert found == (None if factor is None else pytest.approx(factor, abs=1e-3))
