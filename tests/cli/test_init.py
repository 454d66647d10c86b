"""`discoclaw init` for scripts: flags and the environment give the answers; one line says what is wrong."""

import asyncio
import os
import re
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest
import pytest_asyncio
from dotenv import dotenv_values
from typer.testing import Result

from discoclaw.cli.main import cli
from tests.cli.shell import OURS, Runner
from tests.process.house import KEY, TOKEN
from tests.servers.chat_api import ListingServer
from tests.servers.discord_server import DiscordServer
from tests.servers.messages_api import MessagesServer, raw

NOWHERE = "http://127.0.0.1:9"  # the discard port, where nothing listens
OTHER_TOKEN = TOKEN[:-1] + "x"
LOCAL_KEY = "local-0123456789"
OPENROUTER = "sk-or-v1-0123456789abcdefghijklmnopqrstuvwxyz"
MODELS = ("DISCOCLAW_MODEL", "DISCOCLAW_SUMMARY_MODEL", "DISCOCLAW_DURABLE_MODEL")


class Script:
    """Runs `discoclaw init` in a folder, beside a Discord and a model's server."""

    def __init__(self, folder: Path, discord: DiscordServer, model: MessagesServer) -> None:
        self.file = folder / ".env"
        self.discord = discord
        self.model = model
        self.ann = discord.add_user("Ann")

    async def run(self, *flags: str, typed: str = "", **environment: str) -> Result:
        """Run it in a thread, since the servers run here. No secret is shown."""
        unset: dict[str, str | None] = {name: None for name in os.environ if name.startswith(OURS)}
        told = {**unset, "DISCORD_API_BASE": self.discord.rest_base, **environment}
        work = partial(Runner().invoke, cli, ["init", *flags], input=typed, env=told)
        result = await asyncio.to_thread(work)
        assert not any(secret in result.output for secret in (TOKEN, OTHER_TOKEN, KEY, LOCAL_KEY, OPENROUTER))
        return result

    async def does(self, *flags: str, typed: str = "", **environment: str) -> str:
        """What it prints when all is right."""
        result = await self.run(*flags, typed=typed, **environment)
        assert (result.exit_code, result.stderr) == (0, ""), result.output
        assert self.file.stat().st_mode & 0o777 == 0o600
        return result.stdout

    async def refuses(self, *flags: str, typed: str = "", **environment: str) -> str:
        """The one line that says why not; then nothing has changed."""
        before = self.file.read_bytes() if self.file.is_file() else None
        result = await self.run(*flags, typed=typed, **environment)
        assert result.exit_code == 1, result.output
        assert (self.file.read_bytes() if self.file.is_file() else None) == before
        (line,) = result.stderr.splitlines()
        return line.removeprefix("discoclaw: ")

    @property
    def written(self) -> dict[str, str | None]:
        return dotenv_values(self.file)


@pytest_asyncio.fixture
async def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Script]:
    monkeypatch.chdir(tmp_path)
    async with DiscordServer(token=TOKEN) as discord, MessagesServer() as model:
        model.models = ("qwen3:8b", "llama3.2:3b")
        yield Script(tmp_path, discord, model)


class TestAnswers:
    async def test_are_given_by_flags_and_the_token_on_stdin(self, script: Script) -> None:
        out = await script.does(
            *("--token-file", "-", "--allow-users", f"{script.ann.id}", "--owner", f"{script.ann.id}"),
            *("--base-url", f"{script.model.base_url}/v1/", "--model", "llama3.2:3b"),
            typed=f"{TOKEN}\n",
        )
        assert "https://discord.com/oauth2/authorize?" in out
        assert "Developer Mode" not in out
        assert script.written == {
            "DISCOCLAW_DATA_DIR": str(script.file.absolute().parent / "data"),
            "DISCORD_TOKEN": TOKEN,
            "DISCORD_ALLOW_USER_IDS": str(script.ann.id),
            "DISCOCLAW_OWNER_IDS": str(script.ann.id),
            "ANTHROPIC_BASE_URL": script.model.base_url,
            **dict.fromkeys(MODELS, "llama3.2:3b"),
        }

    async def test_may_be_the_applications_owner_and_what_the_environment_has(self, script: Script) -> None:
        script.model.models, script.model.key = ("only",), LOCAL_KEY
        environment = {"DISCORD_TOKEN": TOKEN, "ANTHROPIC_API_KEY": LOCAL_KEY}
        await script.does("--yes", **environment, ANTHROPIC_BASE_URL=script.model.base_url)
        assert script.written["DISCORD_ALLOW_USER_IDS"] == str(script.discord.owner.id)
        assert script.written["DISCOCLAW_OWNER_IDS"] == str(script.discord.owner.id)
        assert script.written["ANTHROPIC_API_KEY"] == LOCAL_KEY
        assert script.written["DISCOCLAW_MODEL"] == "only"

    async def test_may_be_a_team(self, script: Script) -> None:
        bea = script.discord.add_user("Bea")
        script.discord.describe_application(flags=1 << 19, team=[script.ann, bea])
        await script.does("--yes", DISCORD_TOKEN=TOKEN, DISCOCLAW_MODEL_PROVIDER="offline")
        assert script.written["DISCOCLAW_OWNER_IDS"] == f"{script.ann.id},{bea.id}"

    async def test_of_a_server_without_a_list_of_models_are_checked_by_asking_it(
        self, script: Script
    ) -> None:
        script.model.models = raw(b"not here", status=404)
        told = {"DISCORD_TOKEN": TOKEN, "ANTHROPIC_BASE_URL": script.model.base_url}
        await script.does("--yes", "--model", "mine", **told)
        assert script.written["DISCOCLAW_MODEL"] == "mine"
        assert len(script.model.requests) == 1

    async def test_are_not_checked_when_nobody_should_be_asked(self, script: Script) -> None:
        out = await script.does(
            *("--no-check", "--allow-users", "1", "--base-url", "localhost:11434", "--model", "m"),
            DISCORD_TOKEN=TOKEN,
        )
        assert "prints the link once Discord can be asked" in out
        assert script.written["ANTHROPIC_BASE_URL"] == "http://localhost:11434"
        assert (script.discord.requests, script.model.requests) == ([], [])


class TestOtherModels:
    async def test_of_a_vendor_get_a_small_one_of_the_same_family_for_the_background(
        self, script: Script
    ) -> None:
        names = {"a/gpt-4-mini": 1, "a/gpt-6": 5, "a/gpt-6-mini": 4, "a/gpt-6-mini-tts": 6, "b/embedding": 7}
        async with ListingServer("openai", names) as vendor:
            vendor.key = OPENROUTER
            out = await script.does(
                *(
                    "--model",
                    "openrouter:a/gpt-6",
                    "--api-key-file",
                    "-",
                    "--allow-users",
                    f"{script.ann.id}",
                ),
                typed=f"{OPENROUTER}\n",
                DISCORD_TOKEN=TOKEN,
                DISCOCLAW_MODEL_SERVERS=f"openrouter={vendor.base_url}",
            )
        assert "a/gpt-6 answers, in " in out
        assert (
            "a/gpt-6-mini learns and sums up in the background: it is small, so that this costs less." in out
        )
        assert script.written["DISCOCLAW_MODEL_PROVIDER"] == "openrouter"
        assert script.written["OPENROUTER_API_KEY"] == OPENROUTER
        assert [script.written[name] for name in MODELS] == ["a/gpt-6", "a/gpt-6-mini", "a/gpt-6-mini"]
        assert "ANTHROPIC_API_KEY" not in script.written

    async def test_of_openai_need_a_key_of_openais(self, script: Script) -> None:
        flags = ("--model", "openai:gpt-6", "--api-key-file", "-", "--allow-users", f"{script.ann.id}")
        why = await script.refuses(*flags, typed=OPENROUTER, DISCORD_TOKEN=TOKEN)
        assert why.startswith("OPENAI_API_KEY=…: is a key of OpenRouter, and OpenAI is asked; use a key of")

    async def test_of_a_server_on_this_machine_need_no_key(self, script: Script) -> None:
        async with ListingServer("ollama", {"qwen3:8b": 1, "nomic-embed-text": 2}) as ollama:
            servers = f"ollama={ollama.base_url}"
            told = {"DISCORD_TOKEN": TOKEN, "DISCOCLAW_MODEL_SERVERS": servers}
            await script.does("--yes", "--model", "ollama:qwen3:8b", **told)
            why = await script.refuses("--yes", "--model", "ollama:llama9", **told)
        assert script.written["DISCOCLAW_MODEL_PROVIDER"] == "ollama"
        assert [script.written[name] for name in MODELS] == ["qwen3:8b"] * 3
        assert why.endswith("has no model 'llama9'; it has qwen3:8b (name one with --model)")

    async def test_are_found_in_a_list_as_long_as_a_gateways(self, script: Script) -> None:
        listed = {"qwen3:8b": 1} | {f"vendor/{number:0200}": 1 for number in range(6_000)}
        async with ListingServer("ollama", listed) as ollama:
            servers = f"ollama={ollama.base_url}"
            told = {"DISCORD_TOKEN": TOKEN, "DISCOCLAW_MODEL_SERVERS": servers}
            await script.does("--yes", "--model", "ollama:qwen3:8b", **told)
        assert script.written["DISCOCLAW_MODEL"] == "qwen3:8b"

    async def test_with_a_provider_are_asked_for_at_the_address_that_is_named_too(
        self, script: Script
    ) -> None:
        async with ListingServer("vllm", {"Qwen/Qwen3-8B": 1}) as vllm:
            vllm.key = LOCAL_KEY
            await script.does(
                *("--base-url", vllm.url, "--model", "vllm:Qwen/Qwen3-8B"),
                *("--api-key-file", "-", "--allow-users", f"{script.ann.id}"),
                typed=LOCAL_KEY,
                DISCORD_TOKEN=TOKEN,
            )
        assert script.written["OPENAI_BASE_URL"] == vllm.base_url
        assert script.written["DISCOCLAW_MODEL"] == "Qwen/Qwen3-8B"

    async def test_of_a_server_that_speaks_only_openais_api_are_asked_that_way(self, script: Script) -> None:
        async with ListingServer("vllm", {"Qwen/Qwen3-8B": 1}) as vllm:
            vllm.key = LOCAL_KEY
            await script.does(
                *("--base-url", vllm.url, "--api-key-file", "-", "--allow-users", f"{script.ann.id}"),
                typed=LOCAL_KEY,
                DISCORD_TOKEN=TOKEN,
            )
        assert script.written["DISCOCLAW_MODEL_PROVIDER"] == "openai"
        assert script.written["OPENAI_BASE_URL"] == vllm.base_url
        assert script.written["OPENAI_API_KEY"] == LOCAL_KEY
        assert script.written["DISCOCLAW_MODEL"] == "Qwen/Qwen3-8B"
        assert "ANTHROPIC_BASE_URL" not in script.written

    async def test_lose_their_names_when_anthropic_answers_again(self, script: Script) -> None:
        script.file.write_text("DISCOCLAW_MODEL_PROVIDER=ollama\nDISCOCLAW_MODEL=qwen3:8b\n")
        key = {"DISCORD_TOKEN": TOKEN, "ANTHROPIC_API_KEY": KEY}
        flags = ("--no-check", "--allow-users", "1", "--api-key-file", "-")
        await script.does(*flags, typed=KEY, **key)
        assert script.written["ANTHROPIC_API_KEY"] == KEY
        assert not any(script.written.get(name) for name in ("DISCOCLAW_MODEL_PROVIDER", *MODELS))


class TestWhatIsWrong:
    async def test_is_one_line_and_nothing_is_written(self, script: Script) -> None:
        given = {"DISCORD_TOKEN": TOKEN, "ANTHROPIC_BASE_URL": script.model.base_url}
        wrong: list[tuple[tuple[str, ...], dict[str, str], str]] = [
            (("--allow-users", "1"), {}, "DISCORD_ALLOW_USER_IDS: 1 is nobody's id"),
            (("--allow-users", "ann"), {}, "DISCORD_ALLOW_USER_IDS: 'ann' is not a Discord id"),
            (("--owner", "ann"), {}, "DISCOCLAW_OWNER_IDS: 'ann' is not a Discord id"),
            (
                ("--model", "gpt"),
                {},
                "has no model 'gpt'; it has qwen3:8b, llama3.2:3b (name one with --model)",
            ),
            ((), {}, "has several models; it has qwen3:8b, llama3.2:3b (name one with --model)"),
            (
                ("--base-url", "sk-proj-1"),
                {},
                "ANTHROPIC_BASE_URL=…: is a key or a token; an address looks like",
            ),
            (
                ("--no-check", "--allow-users", "1"),
                {},
                "DISCOCLAW_MODEL is not set; name a model of that server with --model",
            ),
            (("--no-check",), {}, "what is missing: --allow-users"),
            ((), {"DISCORD_TOKEN": OTHER_TOKEN}, "Discord does not accept this token"),
            ((), {"DISCORD_API_BASE": NOWHERE}, "; --no-check writes it without asking"),
            (("--base-url", NOWHERE), {}, "; --no-check writes it without asking"),
            (("--token-file", "-", "--api-key-file", "-"), {}, "only one of --token-file and --api-key-file"),
            (("--token-file", "nowhere.txt"), {}, "--token-file nowhere.txt: No such file or directory"),
            (("--api-key-file", "-"), {}, "--api-key-file -: it is empty"),
        ]
        for flags, changes, says in wrong:
            assert says in await script.refuses("--yes", *flags, **{**given, **changes})

    async def test_is_that_the_intent_is_off(self, script: Script) -> None:
        script.discord.describe_application(flags=0)
        line = await script.refuses("--yes", DISCORD_TOKEN=TOKEN, ANTHROPIC_API_KEY=KEY)
        assert line.startswith("the message content intent is off, so the bot can't connect; switch it on")

    async def test_is_that_flags_are_missing(self, script: Script) -> None:
        assert await script.refuses() == (
            "there is no terminal to ask in; what is missing: "
            "--token-file (or DISCORD_TOKEN in the environment); "
            "--allow-users (or --yes for the application's owner); "
            "--api-key-file (or ANTHROPIC_API_KEY), or --base-url with --model"
        )
        line = await script.refuses("--yes", "--token-file", "-", typed=TOKEN)
        assert line.partition("missing: ")[2].startswith("--api-key-file")

    async def test_is_the_file(self, script: Script) -> None:
        flags = ("--no-check", "--allow-users", "1", "--base-url", NOWHERE, "--model", "my model")
        open_quote = "line 1 of .env isn't a setting: a quotation mark is not closed; mend it first"
        for content, says in ((b"OTHER=\xff\n", "is not UTF-8 text"), (b'OTHER="no end\n', open_quote)):
            script.file.write_bytes(content)
            assert says in await script.refuses(*flags, DISCORD_TOKEN=TOKEN)


class TestTheFile:
    async def test_loses_the_other_servers_models_when_anthropic_answers(self, script: Script) -> None:
        await script.does(
            *("--no-check", "--allow-users", "1", "--base-url", NOWHERE, "--model", "m"), DISCORD_TOKEN=TOKEN
        )
        await script.does("--no-check", "--api-key-file", "-", typed=KEY)
        kept = {name: value for name, value in script.written.items() if value}
        assert kept.pop("DISCOCLAW_DATA_DIR") == str(script.file.absolute().parent / "data")
        assert kept == {"DISCORD_TOKEN": TOKEN, "DISCORD_ALLOW_USER_IDS": "1", "ANTHROPIC_API_KEY": KEY}

    async def test_loses_the_key_when_another_server_answers_that_would_get_it(self, script: Script) -> None:
        script.file.write_text(f"DISCOCLAW_MODEL_PROVIDER=offline\nANTHROPIC_API_KEY={KEY}\n")
        flags = ("--no-check", "--allow-users", "1", "--base-url", NOWHERE, "--model", "m")
        await script.does(*flags, DISCORD_TOKEN=TOKEN)
        assert script.written["ANTHROPIC_API_KEY"] == ""
        assert script.written["DISCOCLAW_MODEL_PROVIDER"] == ""

    async def test_keeps_small_models_that_somebody_chose_for_the_same_server(self, script: Script) -> None:
        lines = {"ANTHROPIC_BASE_URL": NOWHERE, **dict.fromkeys(MODELS, "big"), MODELS[2]: "small"}
        script.file.write_text("".join(f"{name}={value}\n" for name, value in lines.items()))
        flags = ("--no-check", "--allow-users", "1", "--model", "bigger")
        await script.does(*flags, DISCORD_TOKEN=TOKEN)
        assert [script.written[name] for name in MODELS] == ["bigger", "bigger", "small"]
        await script.does(*flags, "--base-url", "http://127.0.0.1:10", DISCORD_TOKEN=TOKEN)
        assert [script.written[name] for name in MODELS] == ["bigger", "bigger", "bigger"]

    async def test_keeps_the_key_of_one_server_from_another(self, script: Script) -> None:
        script.file.write_text(f"ANTHROPIC_BASE_URL={NOWHERE}\nANTHROPIC_API_KEY={LOCAL_KEY}\n")
        flags = ("--yes", "--base-url", script.model.base_url, "--model", "qwen3:8b")
        await script.does(*flags, DISCORD_TOKEN=TOKEN)
        (request,) = script.model.requests
        assert LOCAL_KEY not in str(request.headers)
        assert script.written["ANTHROPIC_API_KEY"] == ""
        script.model.key = LOCAL_KEY
        line = await script.refuses(*flags, DISCORD_TOKEN=TOKEN)
        assert line.endswith("wants a key, or another one (answers 401); give it with --api-key-file")

    async def test_keeps_roles_and_a_bot_without_a_model(self, script: Script) -> None:
        before = f"DISCORD_TOKEN={TOKEN}\nDISCORD_ALLOW_ROLE_IDS=5\nDISCOCLAW_MODEL_PROVIDER=offline\n"
        script.file.write_text(before)
        out = await script.does("--no-check")
        assert script.file.read_text() == before
        assert "no owner for /hatch" in out

    async def test_is_not_used_as_long_as_something_else_wins_or_is_wrong(self, script: Script) -> None:
        script.file.write_text("DISCOCLAW_MAX_TOKENS=many\n")
        token = script.file.with_name("token")
        token.write_text(TOKEN)
        result = await script.run(
            *(
                "--no-check",
                "--token-file",
                "token",
                "--allow-users",
                "1",
                "--base-url",
                NOWHERE,
                "--model",
                "m",
            ),
            DISCORD_TOKEN=OTHER_TOKEN,
        )
        assert result.exit_code == 0
        assert result.stderr.splitlines() == [
            "note: DISCORD_TOKEN is set in the environment too, which wins over .env; unset it there",
            "note: DISCOCLAW_MAX_TOKENS=many: must be a whole number from 64 to 32,000",
        ]


async def test_a_secret_is_never_an_argument(script: Script) -> None:
    helped = re.sub(r"\x1b\[[0-9;]*m", "", (await script.run("--help", COLUMNS="120")).stdout)
    assert set(re.findall(r"--(?:token|api-key)[a-z-]*", helped)) == {"--token-file", "--api-key-file"}
