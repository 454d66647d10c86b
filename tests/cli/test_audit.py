"""`discoclaw audit privacy --relays`: what anybody can read of our events; and how the command answers."""

import json
import os
from typing import Any

import pytest
from typer.testing import Result

from discoclaw.cli.main import cli
from discoclaw.nostr.event import Keys
from tests.cli.shell import Runner, Shell
from tests.cli.test_nostr import KEYS, NOBODY, Beside

OURS = ("DISCORD_", "DISCOCLAW_", "ANTHROPIC_", "NOSTR_")


def run(shell: Shell, *words: str, relay: str = "") -> Result:
    unset: dict[str, str | None] = {name: None for name in os.environ if name.startswith(OURS)}
    nostr = {"NOSTR_RELAYS": relay, "NOSTR_SECRET_KEY": KEYS.nsec(), "NOSTR_TIMEOUT_S": "2"} if relay else {}
    return Runner().invoke(cli, ["audit", *words], env={**unset, **shell.settings, **nostr})


def published(keys: Keys, text: str, d: str = "test") -> dict[str, Any]:
    return keys.sign(30078, text, [["d", d]], 1_770_000_000).to_json()


class TestRelays:
    def test_what_is_in_the_clear_is_named(self, shell: Shell) -> None:
        for branch in ("main", "coding"):
            shell.says("forget", "123", "works at Acme", "--branch", branch)
        with Beside() as beside:
            secret = KEYS.seal("Ann works at Acme")
            beside.relay.put(published(KEYS, secret))
            beside.relay.put(published(Keys.generate(), "Acme is hiring"))
            clean = run(shell, "privacy", "--relays", relay=beside.relay.url)
            assert (clean.exit_code, clean.stdout) == (0, "Nothing is readable that shouldn't be.\n")
            beside.relay.put(published(KEYS, "Ann works at Acme", "open"))
            told = run(shell, "privacy", "--relays", "--json", relay=beside.relay.url)
            assert told.exit_code == 1
            ((one),) = json.loads(told.stdout)
            assert (one["part"], one["subject"], one["why"]) == ("relays", "user-123", "taken back")
            assert one["place"].startswith(f"{beside.relay.url}: open (")

    def test_a_relay_that_can_not_be_asked_is_no_good_news(self, shell: Shell) -> None:
        told = run(shell, "privacy", "--relays", relay=NOBODY)
        assert told.exit_code == 1
        assert f"note: {NOBODY} can't be asked" in told.stderr

    def test_without_relays_the_setting_is_named(self, shell: Shell) -> None:
        told = run(shell, "privacy", "--relays")
        assert told.exit_code == 1 and "NOSTR_RELAYS" in told.stderr


class TestTheCommand:
    def test_changes_nothing(self, shell: Shell) -> None:
        before = {path: path.read_bytes() for path in shell.folder.rglob("*") if path.is_file()}
        assert run(shell, "privacy").exit_code == 0
        assert {path: path.read_bytes() for path in shell.folder.rglob("*") if path.is_file()} == before

    def test_works_where_nothing_is_yet(self, empty: Shell) -> None:
        assert run(empty, "privacy", "--json").stdout == "[]\n"

    @pytest.mark.parametrize("words", [["nonsense"], ["privacy", "--nonsense"]])
    def test_wrong_usage_has_exit_code_2(self, empty: Shell, words: list[str]) -> None:
        assert run(empty, *words).exit_code == 2
