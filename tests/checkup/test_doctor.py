"""`discoclaw doctor` as people type it: what it prints, that it changes nothing, and hides secrets."""

import asyncio
import json
import os
import pty
import socket
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from discoclaw.checkup.everything import NAMES
from discoclaw.checkup.on_discord import commands_here
from discoclaw.cli.main import cli
from discoclaw.memory.subjects.store import Memory
from discoclaw.show.words import count
from tests.checkup.conftest import Desk, disk_of
from tests.cli.shell import REPOSITORY
from tests.memory.kit import ANN, BOB, Clock, remember
from tests.process.house import KEY, TOKEN
from tests.servers.messages_api import failure, text
from tests.servers.transcription_api import TranscriptionServer, stall

PASSWORD = "correct-horse-battery"


async def remembered(desk: Desk, store: str = "files") -> None:
    """A folder in which somebody is remembered."""
    memory = Memory(disk_of(desk.data, store), clock=Clock())
    memory.open()
    await memory.change(ANN, "said", remember("likes tea"))
    await memory.change(BOB, "said", remember("likes coffee"))
    memory.close()


def bytes_of(folder: Path) -> dict[str, bytes | None]:
    return {
        str(one.relative_to(folder)): one.read_bytes() if one.is_file() else None
        for one in sorted(folder.rglob("*"))
    }


async def test_a_bot_that_is_well(desk: Desk) -> None:
    result = await desk.doctor()
    assert (result.exit_code, result.stderr) == (0, "")
    *lines, summary, asked = result.stdout.splitlines()
    states = Counter(line.split()[0] for line in lines)
    assert summary == (
        f"Checked {len(lines)} things: {states['good']} good, {states['off']} off, "
        f"{states['unknown']} unknown, "
        f"{count(states['warning'], 'warning')}, 0 bad."
    )
    assert states["good"] > 15 and set(states) == {"good", "off", "warning"}
    off = [line.split(": ")[1] for line in lines if line.startswith("off ")]
    assert off == ["embeddings", "transcription", "mirror", "PostgreSQL", "the bot"]
    assert "good    Discord: token: Discord knows the bot as Disco" in result.stdout
    assert "good    Model: tools: told to remember something, the model called memory_store" in result.stdout
    assert "good    Model: pictures: the model sees pictures" in result.stdout
    assert "good    Learning: learning: 5 of 5 built-in talks" in result.stdout
    assert asked == f"Asked the model {len(desk.model.requests)} times, about 165 tokens."
    assert desk.discord.unknown == []


async def test_programs_get_the_same_as_json(desk: Desk) -> None:
    found = await desk.found("--quick")
    assert (found.exit_code, found.json["ok"]) == (0, True)
    assert set(found.json) == {"ok", "findings", "asked"}
    assert all(set(one) == {"topic", "name", "state", "text", "wayOut"} for one in found.json["findings"])
    topics = list(dict.fromkeys(one["topic"] for one in found.json["findings"]))
    assert topics == [name for name in NAMES if name != "learning"]
    usage = {"requests": len(desk.model.requests), "inputTokens": 60, "outputTokens": 30}
    assert found.json["asked"] == usage


async def test_only_what_is_named_is_looked_at(desk: Desk) -> None:
    found = await desk.found("--only", "folder", "--only", "discord")
    assert {one["topic"] for one in found.json["findings"]} == {"folder", "discord"}
    assert desk.model.requests == []
    result = await desk.doctor("--only", "weather")
    assert result.exit_code == 1
    assert "--only weather: there is no such check; there are program, settings, folder" in result.stderr


async def test_something_bad_makes_the_exit_code_1(desk: Desk) -> None:
    found = await desk.found("--quick", DISCORD_TOKEN=None)
    assert (found.exit_code, found.json["ok"]) == (1, False)
    assert found.only("discord", "bad").startswith("token: DISCORD_TOKEN is not set; run `discoclaw init`")


async def test_wrong_settings_are_told_line_by_line_and_the_rest_is_left_out(desk: Desk) -> None:
    (desk.folder / ".env").write_text("DISCOCLAW_LOG_LEVL=INFO\n")
    (desk.folder / ".env").chmod(0o644)
    wrong = {"DISCOCLAW_RECALL_LIMIT": "many", "DISCOCLAW_STORE": f"postgres:{PASSWORD}@/"}
    found = await desk.found(**wrong)
    assert found.exit_code == 1
    bad = found.lines("settings", "bad")
    assert "DISCOCLAW_RECALL_LIMIT: DISCOCLAW_RECALL_LIMIT=many: must be a whole number" in bad[0]
    assert "DISCOCLAW_STORE=…: must be" in bad[1]
    warnings = found.lines("settings", "warning")
    assert warnings == [
        ".env: other users of this machine can read it (mode 0644), and it has secrets; run: chmod 600 .env",
        "DISCOCLAW_LOG_LEVL: DISCOCLAW_LOG_LEVL is not a setting of DiscoClaw, so it is ignored; "
        "did you mean DISCOCLAW_LOG_LEVEL?",
    ]
    assert {one["topic"] for one in found.json["findings"]} == {"program", "settings"}
    assert PASSWORD not in found.result.output


@pytest.mark.parametrize("store", ["files", "sqlite"])
async def test_nothing_is_changed_and_nothing_is_sent(desk: Desk, store: str) -> None:
    await remembered(desk, store)
    before = bytes_of(desk.folder)
    found = await desk.found(DISCOCLAW_STORE=store)
    assert found.only("ledgers", "good") == "ledgers: 2 memories with 2 commits: every hash is right"
    assert bytes_of(desk.folder) == before
    assert {call.method for call in desk.discord.requests} == {"GET"}
    assert desk.discord.unknown == []


async def test_no_output_has_a_secret_in_it(desk: Desk) -> None:
    """Every server says again what it was sent."""
    desk.model.default = lambda _: failure(401, "authentication_error", f"{KEY} and {PASSWORD} are wrong")
    desk.discord.fail_next("GET", "/users/@me", 403, json={"message": f"{TOKEN} may not"}, times=9)
    settings = {
        "DISCOCLAW_STORE": f"postgresql://ann:{PASSWORD}@127.0.0.1:1/none",
        "EMBEDDING_PROVIDER": "ollama",
        "EMBEDDING_BASE_URL": f"http://ann:{PASSWORD}@127.0.0.1:1",
        "DISCOCLAW_TRANSCRIBE_URL": f"http://ann:{PASSWORD}@127.0.0.1:1",
        "DISCOCLAW_TRANSCRIBE_KEY": KEY[::-1],
        "NOSTR_RELAYS": f"ws://ann:{PASSWORD}@127.0.0.1:1",
        "NOSTR_SECRET_KEY": "0" * 63 + "7",
        "NOSTR_TIMEOUT_S": "0.3",
    }
    for words in ((), ("--json",)):
        result = await desk.doctor(*words, **settings)
        assert result.exit_code == 1
        assert "refuses the key" in result.output and "[secret] may not" in result.output
        assert "it has a name or password in it, and there is a key too" in result.output
        for secret in (TOKEN, KEY, KEY[::-1], PASSWORD, settings["NOSTR_SECRET_KEY"]):
            assert secret not in result.output


@pytest.mark.long
async def test_while_the_bot_runs_that_is_good_news(desk: Desk) -> None:
    told = {"DISCORD_GATEWAY": desk.discord.gateway_url, "DISCOCLAW_METRICS": f"127.0.0.1:{free_port()}"}
    kept = {name: value for name, value in os.environ.items() if name in ("PATH", "HOME")}
    bot = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "discoclaw", "run"),
        cwd=desk.folder,
        env=kept | desk.settings | told | {"PYTHONPATH": str(REPOSITORY)},
        stderr=subprocess.DEVNULL,
    )
    try:
        await desk.discord.wait_for_gateway("identify", timeout=60)
        commands = f"/applications/{desk.discord.application_id}/commands"
        await desk.discord.wait_for_request("PUT", commands, timeout=60)
        found = await desk.found("--quick", **told)
        assert found.lines("model", "bad") == []
        assert f"lock: the bot has it: process {bot.pid} since" in "\n".join(found.lines("folder", "good"))
        assert f"slash commands: Discord has all {len(commands_here())}" in found.lines("discord", "good")
        assert "the store" in "\n".join(found.lines("bot")) and len(found.lines("bot")) > 3
        bot.kill()
        await bot.wait()
        found = await desk.found("--only", "folder", "--only", "bot", **told)
        (stale,) = [one for one in found.lines("folder", "warning") if one.startswith("lock: ")]
        assert f"the record names process {bot.pid}" in stale and "has ended without giving it back" in stale
        assert "nothing listens at 127.0.0.1" in found.only("bot", "unknown")
    finally:
        if bot.returncode is None:
            bot.kill()
            await bot.wait()


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


async def test_a_terminal_shows_groups_with_marks_and_colours(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {**desk.settings, "DISCORD_TOKEN": "x y", "COLUMNS": "200"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("TERM", "xterm-256color")
    ours, theirs = pty.openpty()
    reading = asyncio.create_task(asyncio.to_thread(_read_all, ours))
    with os.fdopen(theirs, "w", encoding="utf-8") as terminal:
        monkeypatch.setattr(sys, "stdout", terminal)
        with pytest.raises(SystemExit) as ended:
            await asyncio.to_thread(cli, ["doctor", "--only", "folder", "--only", "discord"])
        monkeypatch.undo()
    assert ended.value.code == 1
    printed = await reading
    assert "\x1b[1mDiscord\x1b[0m" in printed
    assert "\x1b[31m✗\x1b[0m token: DISCORD_TOKEN=…: has spaces or line breaks in it" in printed
    assert "\x1b[31m→ \x1b[0mcopy the token once more" in printed
    assert "\x1b[32m✓\x1b[0m space:" in printed


def _read_all(handle: int) -> str:
    read = b""
    try:
        while more := os.read(handle, 65_536):
            read += more
    except OSError:
        pass  # the other end is closed
    os.close(handle)
    return read.decode()


async def test_a_service_that_hangs_costs_the_others_nothing(desk: Desk) -> None:
    """The transcription server accepts a connection and says nothing."""
    async with TranscriptionServer() as silent:
        silent.default = stall()
        found = await desk.found(
            "--quick", DISCOCLAW_TRANSCRIBE_URL=silent.url, DISCOCLAW_TRANSCRIBE_TIMEOUT_S="0.2"
        )
    assert "did not answer within 0.2 s" in found.only("voice", "bad")
    assert found.lines("model", "good") and found.lines("discord", "good")


async def test_the_costs_of_a_talkative_model_are_said(desk: Desk) -> None:
    desk.brain.talk = lambda _: text("Hello.", usage={"input_tokens": 3000, "output_tokens": 51})
    result = await desk.doctor("--quick", "--only", "model")
    assert result.stdout.splitlines()[-1] == "Asked the model 6 times, about 3,100 tokens."
    assert json.loads((await desk.doctor("--only", "program", "--json")).stdout)["asked"]["requests"] == 0
