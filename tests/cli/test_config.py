"""`discoclaw config`: what holds and why, changes by hand and by signature, and what is refused."""

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import Result

from discoclaw.cli import config as commands
from discoclaw.cli.main import _ErrorGroup, cli
from discoclaw.cli.nostr import RelayAccess
from discoclaw.core.errors import RelayUnreachable
from discoclaw.core.live import GLOBAL, Scope, address
from discoclaw.core.policy import FIELDS, Overrides
from discoclaw.memory.live import LiveConfig
from discoclaw.memory.stores import disks
from discoclaw.memory.subjects.store import Memory
from discoclaw.nostr.event import Event, Keys
from discoclaw.nostr.owner import OwnerEvents, PublishResult
from discoclaw.nostr.schemas import Names
from tests.cli.shell import Runner
from tests.memory.kit import Clock, fingerprint

OURS = ("DISCORD_", "DISCOCLAW_", "ANTHROPIC_", "NOSTR_")
OWNER, BOT = Keys.parse("11" * 32), Keys.parse("22" * 32)
NAMES = Names(BOT)
CHANNEL, PERSON = "123456789012345678", "876543210987654321"


class Relays:
    """Relays that keep what they are sent; `failing` ones say no."""

    def __init__(self) -> None:
        self.sent: list[Event] = []
        self.accepting: tuple[str, ...] = ("wss://one",)
        self.failing: dict[str, str] = {}

    async def publish(self, event: Event) -> PublishResult:
        if self.accepting:
            self.sent.append(event)
        return PublishResult(self.accepting, self.failing)


class Shell:
    """Runs `discoclaw config …` on the data folder below `folder`; `relays` are how the bot is reached."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "data" / "memory"
        self.file = self.root / "config.json"
        self.settings = {"DISCOCLAW_DATA_DIR": str(folder / "data"), "COLUMNS": "300"}
        self.relays: Relays | None = None

    def signing(self) -> Relays:
        """From now on the owner's key is set, and there are relays."""
        self.settings |= {"NOSTR_OWNER": OWNER.npub, "NOSTR_OWNER_SECRET_KEY": OWNER.nsec()}
        self.relays = Relays()
        return self.relays

    def run(self, *words: str, **settings: str) -> Result:
        program = typer.Typer(cls=_ErrorGroup)
        access = RelayAccess(BOT.public, NAMES, self.relays.publish) if self.relays is not None else None
        program.add_typer(commands.commands(lambda _: access), name="config")
        unset: dict[str, str | None] = {name: None for name in os.environ if name.startswith(OURS)}
        environment = {**unset, **self.settings, **settings}
        return Runner().invoke(program, ["config", *words], env=environment)

    def says(self, *words: str, **settings: str) -> str:
        result = self.run(*words, **settings)
        assert (result.exit_code, result.stderr) == (0, ""), result.output
        return result.stdout

    def noted(self, *words: str, **settings: str) -> str:
        """What is said on stderr by a command that does what it was asked."""
        result = self.run(*words, **settings)
        assert result.exit_code == 0, result.output
        return result.stderr

    def refuses(self, *words: str, **settings: str) -> str:
        result = self.run(*words, **settings)
        assert (result.exit_code, result.stdout) == (1, ""), result.output
        return result.stderr.removeprefix("discoclaw: ").removesuffix("\n")

    def misused(self, *words: str) -> str:
        """Why a command is wrong usage, in one line."""
        result = self.run(*words)
        assert (result.exit_code, result.stdout) == (2, ""), result.output
        return " ".join(result.stderr.replace("│", " ").split())

    def json(self, *words: str, **settings: str) -> Any:
        return json.loads(self.says("get", *words, "--json", **settings))

    def written(self) -> Any:
        return json.loads(self.file.read_text(encoding="utf-8"))

    def sign(self, overrides: Overrides, scope: Scope = GLOBAL, *, at: int = 1_700_000_000) -> None:
        """The bot has accepted an event of the owner."""
        config = LiveConfig(self.root, clock=Clock())
        config.load()
        assert config.take(address(scope), at, "a" * 64, overrides)
        assert asyncio.run(config.save())


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shell:
    monkeypatch.chdir(tmp_path)
    return Shell(tmp_path)


class TestGet:
    @pytest.mark.design(48)
    def test_with_nothing_set_the_defaults_hold(self, shell: Shell) -> None:
        assert shell.says("get").splitlines() == [
            "respond_mode     mention  the default",
            "context_history  20       the default",
            "model            sonnet   the default",
            "prompt           -        the default",
            "persona          -        the settings (DISCOCLAW_CHANNEL_PERSONAS)",
            "receipts         false    the default",
            "approve          false    the default",
            "archive          -        the settings (DISCOCLAW_AUTO_SAVE)",
            "dm_privacy       balanced the default",
            "listen           -        the settings (DISCORD_CHANNEL_IDS)",
            "actions          -        the settings (DISCOCLAW_ACTIONS)",
            "threads          false    the default",
        ]
        assert not shell.root.exists()

    def test_each_field_says_where_it_comes_from(self, shell: Shell) -> None:
        shell.says("set", f"group:{CHANNEL}", "respond_mode=all")
        shell.sign({"respond_mode": "none"}, Scope("user", PERSON))
        told = shell.says("get", f"group:{CHANNEL}", DISCOCLAW_CONTEXT_HISTORY="12")
        assert told.splitlines()[:2] == [
            f"respond_mode     all      config.json, for group:{CHANNEL}",
            "context_history  12       the settings (DISCOCLAW_CONTEXT_HISTORY)",
        ]
        both = shell.says("get", f"user:{PERSON}", f"group:{CHANNEL}")
        assert both.splitlines()[0] == f"respond_mode     none     signed by the owner, for user:{PERSON}"

    def test_for_programs(self, shell: Shell) -> None:
        shell.says("set", f"group:{CHANNEL}", "context_history=30")
        shell.sign({"respond_mode": "owner"})
        here = shell.json(f"group:{CHANNEL}")
        assert here["scopes"] == [f"group:{CHANNEL}"]
        assert here["respond_mode"] == {"value": "owner", "from": "event", "scope": "global"}
        assert here["context_history"] == {"value": 30, "from": "file", "scope": f"group:{CHANNEL}"}
        assert here["persona"] == {"value": None, "from": "default", "scope": None}
        everything = shell.json()
        assert everything["scopes"] == ["global"]
        assert everything["context_history"] == {"value": 20, "from": "default", "scope": None}
        assert everything["wishes"] == [
            {"scope": "global", "from": "event", "respond_mode": "owner"},
            {"scope": f"group:{CHANNEL}", "from": "file", "context_history": 30},
        ]

    def test_without_a_scope_all_overrides_are_listed(self, shell: Shell) -> None:
        shell.says("set", f"user:{PERSON}", "respond_mode=none", "context_history=3")
        listed = shell.says("get").split("All overrides:\n")[1]
        assert listed.split() == [f"user:{PERSON}", "respond_mode=none,", "context_history=3", "config.json"]

    def test_works_while_the_bot_runs_and_changes_nothing(self, shell: Shell) -> None:
        shell.says("set", "global", "respond_mode=all")
        bot = Memory(shell.root, clock=Clock())
        bot.open()
        try:
            before = fingerprint(shell.root)
            assert "all" in shell.says("get", "global")
            assert fingerprint(shell.root) == before
        finally:
            bot.close()

    def test_files_that_make_no_sense_are_said_and_left(self, shell: Shell) -> None:
        shell.root.mkdir(parents=True)
        for name in ("config.json", "signed.json"):
            (shell.root / name).write_text("{", encoding="utf-8")
        told = shell.noted("get")
        assert [line.partition(" makes no sense")[0] for line in told.splitlines()] == [
            f"note: {shell.root / 'signed.json'}",
            f"note: {shell.root / 'config.json'}",
        ]
        assert sorted(path.name for path in shell.root.iterdir()) == ["config.json", "signed.json"]

    def test_overrides_for_pseudonyms_are_told_apart_only_with_the_bots_key(self, shell: Shell) -> None:
        shell.sign({"respond_mode": "all"}, Scope("group", NAMES.channel(CHANNEL)[:32]))
        assert "without the bot's key" in shell.noted("get", f"group:{CHANNEL}")
        shell.relays = Relays()
        assert shell.json(f"group:{CHANNEL}")["respond_mode"]["value"] == "all"

    def test_two_scopes_of_a_kind_are_one_too_many(self, shell: Shell) -> None:
        assert "at most one scope of a kind" in shell.misused("get", "user:1", "user:2")


class TestSetByHand:
    def test_writes_the_local_file_and_says_so(self, shell: Shell) -> None:
        told = shell.says("set", f"group:{CHANNEL}", "respond_mode=mention", "context_history=30")
        assert told == (
            f"group:{CHANNEL} has respond_mode=mention, context_history=30 in {shell.file}. "
            "A running bot applies it with the next message.\n"
        )
        assert shell.written() == {
            "version": 1,
            f"group:{CHANNEL}": {"respond_mode": "mention", "context_history": 30},
        }

    def test_a_field_that_is_not_named_stays_and_an_empty_one_is_taken_back(self, shell: Shell) -> None:
        shell.says("set", "global", "respond_mode=all", "context_history=30")
        shell.says("set", "global", "respond_mode=silent")
        assert shell.written()["global"] == {"respond_mode": "none", "context_history": 30}
        shell.says("set", "global", "respond_mode=")
        assert shell.written()["global"] == {"context_history": 30}
        assert "has no overrides any more" in shell.says("set", "global", "context_history=")
        assert shell.written() == {"version": 1}

    def test_a_channel_may_be_typed_as_discord_copies_it(self, shell: Shell) -> None:
        shell.says("set", f"group:<#{CHANNEL}>", "RESPOND_MODE=All")
        assert shell.written()[f"group:{CHANNEL}"] == {"respond_mode": "all"}

    @pytest.mark.parametrize("store", ["files", "sqlite", "none"])
    def test_works_in_every_store_while_the_bot_runs(self, shell: Shell, store: str) -> None:
        stores = disks(store, shell.root)  # type: ignore[arg-type]
        bot = Memory(stores, clock=Clock())
        bot.open()
        try:
            config = LiveConfig(stores.used.documents(""), clock=Clock())
            config.load()
            shell.says("set", "global", "respond_mode=all", DISCOCLAW_STORE=store)
            asyncio.run(config.look())
            assert config.explain()["respond_mode"].value == "all"
            assert "all" in shell.says("get", DISCOCLAW_STORE=store)
        finally:
            bot.close()

    def test_every_field_can_be_set_and_is_listed(self, shell: Shell) -> None:
        listed = shell.says("fields")
        words = ["respond_mode=all", "context_history=9", "model=opus", "prompt=Be brief.", "persona=Work"]
        words += ["receipts=on", "approve=yes", "archive=true", "listen=off", "threads=on"]
        shell.says("set", f"group:{CHANNEL}", *words)
        shell.says("set", "global", "dm_privacy=strict")
        written = shell.written()
        assert written["global"] == {"dm_privacy": "strict"}
        assert written[f"group:{CHANNEL}"] == {
            "respond_mode": "all",
            "context_history": 9,
            "model": "opus",
            "prompt": "Be brief.",
            "persona": "work",
            "receipts": True,
            "approve": True,
            "archive": True,
            "listen": False,
            "threads": True,
        }
        assert [line.split()[0] for line in listed.splitlines()[::2]] == list(FIELDS)
        told = shell.says("get", f"group:{CHANNEL}")
        assert f"listen           false    config.json, for group:{CHANNEL}" in told.splitlines()

    def test_a_field_is_not_written_where_it_means_nothing(self, shell: Shell) -> None:
        told = shell.refuses("set", f"group:{CHANNEL}", "dm_privacy=open")
        assert told == f"dm_privacy can't be set for group:{CHANNEL}, only for global"
        assert not shell.file.exists()

    def test_what_the_owner_signed_counts_more_and_that_is_said(self, shell: Shell) -> None:
        shell.sign({"respond_mode": "owner"})
        told = shell.noted("set", "global", "respond_mode=all")
        assert told == (
            "note: respond_mode is still owner there (signed by the owner, for global), "
            "which takes precedence\n"
        )

    def test_what_it_does_not_understand_it_does_not_overwrite(self, shell: Shell) -> None:
        shell.root.mkdir(parents=True)
        shell.file.write_text('{"version":7}', encoding="utf-8")
        assert "version 7 is not known here" in shell.refuses("set", "global", "respond_mode=all")
        assert shell.file.read_text(encoding="utf-8") == '{"version":7}'

    def test_a_slip_of_the_keys_is_told_what_is_allowed(self, shell: Shell) -> None:
        for words, why in (
            (["global", "respnd_mode=all"], "'respnd_mode=all' names no field; did you mean respond_mode?"),
            (
                ["global", "loudness=3"],
                "'loudness=3' names no field (use `discoclaw config fields`)",
            ),
            (["global", "respond_mode"], "'respond_mode' names no field (use"),
            (["global", "respond_mode=mentoin"], "owner, none, not 'mentoin'; did you mean mention?"),
            (["global", "model=two words"], "model must be the name of a model"),
            (["global", "archive=perhaps"], "archive must be true or false, not 'perhaps'"),
            (["global", "context_history=0"], "context_history must be a whole number from 1 to 200"),
            (["global", "context_history=lots"], "context_history must be a whole number from 1 to 200"),
            (["global", "context_history=²"], "context_history must be a whole number from 1 to 200"),
            (["grup:1", "respond_mode=all"], "group:<channel id> or user:<user id>; did you mean group?"),
            (["general", "respond_mode=all"], "unknown scope 'general'"),
            (["global"], "Missing argument"),
        ):
            assert why in shell.misused("set", *words)
        assert not shell.root.exists()


class TestSetBySignature:
    def test_publishes_an_event_that_the_bot_takes(self, shell: Shell, tmp_path: Path) -> None:
        relays = shell.signing()
        told = shell.says("set", f"group:{CHANNEL}", "respond_mode=mention", "context_history=30")
        assert told == (
            f"group:{CHANNEL} has respond_mode=mention, context_history=30, signed by {OWNER.npub}, on "
            "wss://one; the bot gets it from there.\n"
        )
        (event,) = relays.sent
        assert CHANNEL not in event.encode()
        assert not shell.file.exists()
        config = LiveConfig(tmp_path / "bot", clock=lambda: event.created_at * 1000, names=NAMES)
        asyncio.run(OwnerEvents(OWNER.public, BOT, config).handle(event))
        assert config.explain(Scope("group", CHANNEL))["context_history"].value == 30

    def test_keeps_the_fields_that_are_not_named_and_is_always_the_newest(self, shell: Shell) -> None:
        shell.root.mkdir(parents=True)
        relays = shell.signing()
        for words in (["respond_mode=all"], ["context_history=30"], ["respond_mode="]):
            assert "it is stored here too" in shell.says("set", f"group:{CHANNEL}", *words)
        one, two, three = relays.sent
        assert one.created_at < two.created_at < three.created_at
        assert json.loads(BOT.open(two.content, by=OWNER.public)) == {
            "respond_mode": "all",
            "context_history": 30,
        }
        assert json.loads(BOT.open(three.content, by=OWNER.public)) == {"context_history": 30}
        assert shell.json(f"group:{CHANNEL}")["context_history"]["from"] == "event"

    def test_leaves_the_folder_to_a_bot_that_runs(self, shell: Shell) -> None:
        shell.signing()
        bot = Memory(shell.root, clock=Clock())
        bot.open()
        try:
            assert "the running bot gets it from there" in shell.says("set", "global", "respond_mode=all")
            assert not (shell.root / "signed.json").exists()
        finally:
            bot.close()

    def test_a_relay_that_refuses_is_named(self, shell: Shell) -> None:
        shell.signing().failing = {"wss://two": "blocked: not on my list"}
        told = shell.noted("set", "global", "respond_mode=all")
        assert told == "note: wss://two didn't accept it: blocked: not on my list\n"

    def test_where_no_relay_takes_it_nothing_changed(self, shell: Shell) -> None:
        shell.root.mkdir(parents=True)
        relays = shell.signing()
        relays.accepting, relays.failing = (), {"wss://one": "no connection"}
        told = shell.refuses("set", "global", "respond_mode=all")
        assert told == "no relay accepted the change, so nothing changed (wss://one: no connection)"
        assert list(shell.root.iterdir()) == []

    def test_without_relays_the_change_is_local(self, shell: Shell) -> None:
        shell.signing()
        shell.relays = None
        assert "there is no relay to publish to" in shell.noted("set", "global", "respond_mode=all")
        assert shell.written()["global"] == {"respond_mode": "all"}

    def test_an_encrypted_key_wants_its_password(self, shell: Shell) -> None:
        relays = shell.signing()
        shell.settings["NOSTR_OWNER_SECRET_KEY"] = OWNER.encrypted("pass word")
        assert "set NOSTR_OWNER_KEY_PASSWORD too" in shell.refuses("set", "global", "respond_mode=all")
        shell.says("set", "global", "respond_mode=all", NOSTR_OWNER_KEY_PASSWORD="pass word")
        assert len(relays.sent) == 1

    def test_a_key_that_the_bot_does_not_follow_is_refused(self, shell: Shell) -> None:
        relays = shell.signing()
        told = shell.refuses("set", "global", "respond_mode=all", NOSTR_OWNER=BOT.npub)
        assert f"NOSTR_OWNER_SECRET_KEY belongs to {OWNER.npub}" in told
        told = shell.refuses("set", "global", "respond_mode=all", NOSTR_OWNER="")
        assert told == f"NOSTR_OWNER is not set, so the bot would ignore the change; set it to {OWNER.npub}"
        assert relays.sent == []

    def test_no_key_is_ever_shown(self, shell: Shell) -> None:
        shell.signing()
        for changes in (
            {"NOSTR_OWNER_SECRET_KEY": OWNER.nsec()[:-1]},
            {"NOSTR_OWNER": OWNER.nsec()},
            {"NOSTR_OWNER": f" {OWNER.nsec().upper()}"},
            {"NOSTR_OWNER": "me"},
            dict[str, str](),
        ):
            for words in (["set", "global", "respond_mode=all"], ["get"]):
                result = shell.run(*words, **changes)
                shown = f"{result.output}{result.stderr}{result.exception!r}".lower()
                assert OWNER.nsec()[5:40] not in shown
                assert OWNER.secret_hex() not in shown


def test_the_program_has_the_commands() -> None:
    result = Runner().invoke(cli, ["config", "--help"], env={"COLUMNS": "100"})
    assert result.exit_code == 0
    assert "get" in result.stdout and "set" in result.stdout


def test_a_failure_of_the_way_is_one_line(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    relays = shell.signing()

    async def broken(_: Event) -> PublishResult:
        raise RelayUnreachable("wss://one: no connection")

    monkeypatch.setattr(relays, "publish", broken)
    assert shell.refuses("set", "global", "respond_mode=all") == "wss://one: no connection"
