"""`discoclaw init` as a newcomer meets it: at a terminal, with a Discord and a model on loopback."""

import asyncio
import ctypes
import os
import re
import resource
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest_asyncio
from discord import Permissions
from dotenv import dotenv_values

from tests.process.house import KEY, OURS, PATIENCE, START_S, TOKEN, Bot
from tests.process.screen import Screen
from tests.servers.chat_api import ListingServer
from tests.servers.discord_server import DiscordServer
from tests.servers.discord_things import MESSAGE_CONTENT
from tests.servers.messages_api import MessagesServer, failure, raw

MODELS = ("DISCOCLAW_MODEL", "DISCOCLAW_SUMMARY_MODEL", "DISCOCLAW_DURABLE_MODEL")
NOWHERE = "http://127.0.0.1:9"  # the discard port, where nothing listens
OTHER_TOKEN = TOKEN[:-1] + "x"
CLIENT_SECRET = "0123456789abcdefABCDEF0123456789"
OPENAI = "sk-proj-0123456789abcdefghijklmnopqrstuvwxyzABCDEF"
GOOGLE = "AIzaSyA0123456789abcdefghijklmnopqrstuvw"
GROQ = "gsk_0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMN"
LOCAL_KEY = "local-0123456789"

TOKEN_ASKED, TOKEN_KEPT = "   Token (it is not shown): ", "   Token (one is set; Enter keeps it): "
IDS, WHICH, ADDRESS = "   Ids, separated by commas", "   Which", "   Its address"
WHICH_MODEL = "   Which model"
KEY_ASKED, SERVER_KEY = "   Key (it is not shown): ", "   Its key (it is not shown): "
ANYWAY = "Use it all the same? [y/N]: "

OLD = """\
# My bot.

DISCOCLAW_RESPOND_MODE=all  # in my own server
export DISCORD_TOKEN='{token}' # since May
#DISCOCLAW_MODEL=sonnet
DISCORD_ALLOW_USER_IDS="{ann}"

# the model on my desk
ANTHROPIC_BASE_URL={address}
DISCOCLAW_MODEL=qwen3:8b
DISCOCLAW_SUMMARY_MODEL=qwen3:8b
DISCOCLAW_DURABLE_MODEL=qwen3:8b
OF_ANOTHER_PROGRAM="${{HOME}}/x"
"""


class Newcomer:
    """Somebody with an empty folder, beside a Discord and a model's server."""

    def __init__(self, folder: Path, discord: DiscordServer, model: MessagesServer) -> None:
        self.folder = folder / "bot"
        self.folder.mkdir()
        self.discord = discord
        self.model = model
        self.ann = discord.add_user("Ann")
        self.secrets = folder / "secrets"
        self.secrets.mkdir()
        self.screens: list[Screen] = []

    def secret(self, name: str, value: str) -> str:
        """The path of a file with a secret."""
        (self.secrets / name).write_text(f"{value}\n")
        return str(self.secrets / name)

    def environment(self, **changes: str) -> dict[str, str]:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(OURS)}
        return inherited | {"DISCORD_API_BASE": self.discord.rest_base} | changes

    async def begins(self, *flags: str, before: Callable[[], None] = lambda: None, **changes: str) -> Screen:
        return await self.types("init", *flags, before=before, **changes)

    async def types(self, *words: str, before: Callable[[], None] = lambda: None, **changes: str) -> Screen:
        """What a command shows."""
        environment = self.environment(**changes)
        screen = await Screen.start(self.folder, *words, environment=environment, before=before)
        self.screens.append(screen)
        return screen

    @asynccontextmanager
    async def running_bot(self) -> AsyncIterator[None]:
        """The bot, with what was written."""
        before = len(self.discord.received("identify"))
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "discoclaw", "run"),
            cwd=self.folder,
            env=self.environment(DISCORD_GATEWAY=self.discord.gateway_url),
            stdin=DEVNULL,
            stdout=PIPE,
            stderr=PIPE,
        )
        bot = Bot(process)
        try:
            await self.discord.wait_for_gateway("identify", count=before + 1, timeout=START_S)
            yield
        finally:
            bot.terminate()
            await bot.ended()

    async def starts_the_bot(self) -> None:
        """What comes next: it connects with what was written, and answers whoever may talk to it."""
        async with self.running_bot():
            asked = await self.discord.say(self.ann, self.discord.dm(self.ann), "hello")
            await self.discord.wait_for_message(asked.channel, "ok", timeout=PATIENCE)

    @property
    def file(self) -> Path:
        return self.folder / ".env"

    @property
    def written(self) -> dict[str, str | None]:
        return dotenv_values(self.file)

    async def leaves(self, screen: Screen) -> int:
        code = await screen.ended()
        self.check_secrets(screen.text)
        return code

    def check_secrets(self, shown: str) -> None:
        """No secret was shown, and no file was left but `.env`, which is its owner's alone."""
        secrets = (TOKEN, OTHER_TOKEN, CLIENT_SECRET, KEY, OPENAI, GOOGLE, GROQ, LOCAL_KEY)
        assert [secret for secret in secrets if secret in shown] == []
        assert {path.name for path in self.folder.iterdir()} <= {".env"}
        assert not self.file.exists() or self.file.stat().st_mode & 0o777 == 0o600


@pytest_asyncio.fixture
async def newcomer(tmp_path: Path) -> AsyncIterator[Newcomer]:
    async with DiscordServer(token=TOKEN) as discord, MessagesServer() as model:
        model.models = ("qwen3:8b", "llama3.2:3b")
        somebody = Newcomer(tmp_path, discord, model)
        yield somebody
        for screen in somebody.screens:
            await screen.close()
        assert [f"{call.method} {call.path}" for call in discord.unknown] == []


async def answered(screen: Screen, question: str, answer: str) -> None:
    """Wait for a question with all that stands behind it, and type an answer."""
    await screen.shows(question)
    await screen.shows(": ")
    screen.type(answer)


async def refused(screen: Screen, question: str, wrong: dict[str, str]) -> None:
    """Each answer is wrong, and its line says why; then the question comes again."""
    for answer, reason in wrong.items():
        await screen.shows(question if question.endswith(": ") else f"{question} [")
        if not question.endswith(": "):
            await screen.shows("]: ")
        screen.type(answer)
        await screen.shows("   ! ")
        line = await screen.shows("\n")
        assert reason in line


async def test_a_newcomer_answers_three_questions_and_the_bot_can_start(newcomer: Newcomer) -> None:
    screen = await newcomer.begins()
    await screen.shows(TOKEN_ASKED)
    screen.type(TOKEN)
    await screen.shows("Discord knows it: the bot is Disco.")
    owner = newcomer.discord.owner
    await screen.shows(f"The application belongs to Owner ({owner.id}).")
    await answered(screen, f"{IDS} [{owner.id}]", f"{owner.id}, {newcomer.ann.id}")
    await screen.shows(f"They may talk to it: Owner ({owner.id}), Ann ({newcomer.ann.id}).")
    await answered(screen, f"{WHICH} [1]", "4")
    await answered(screen, f"{ADDRESS} [http://127.0.0.1:11434]", newcomer.model.base_url)
    await screen.shows("   2  llama3.2:3b\n")
    await answered(screen, f"{WHICH_MODEL} [1]", "2")
    await screen.shows("llama3.2:3b answers, in ")
    assert await newcomer.leaves(screen) == 0

    assert newcomer.written == {
        "DISCOCLAW_DATA_DIR": str(newcomer.file.absolute().parent / "data"),
        "DISCORD_TOKEN": TOKEN,
        "DISCORD_ALLOW_USER_IDS": f"{owner.id},{newcomer.ann.id}",
        "DISCOCLAW_OWNER_IDS": str(owner.id),
        "ANTHROPIC_BASE_URL": newcomer.model.base_url,
        **dict.fromkeys(
            ("DISCOCLAW_MODEL", "DISCOCLAW_SUMMARY_MODEL", "DISCOCLAW_DURABLE_MODEL"), "llama3.2:3b"
        ),
    }
    (link,) = re.findall(r"https://discord\.com/oauth2/authorize\?\S+", screen.text)
    asked = parse_qs(urlsplit(link).query)
    assert asked["client_id"] == [str(newcomer.discord.application_id)]
    assert asked["scope"] == ["bot applications.commands"]
    wanted = {name for name, on in Permissions(int(asked["permissions"][0])) if on}
    assert wanted == {
        "read_messages",  # discord.py's old name of “view channels”
        "send_messages",
        "create_public_threads",
        "send_messages_in_threads",
        "attach_files",
        "read_message_history",
    }
    program = f"{Path(sys.executable).name} -m discoclaw"
    assert f"2. Check everything: {program} doctor" in screen.text
    assert screen.text.rstrip().endswith(f"3. Start the bot: {program} run")
    assert [request.prompt for request in newcomer.model.requests] == ["Say hello."]
    await newcomer.starts_the_bot()


async def test_what_is_not_the_bots_token_is_named_and_asked_for_again(newcomer: Newcomer) -> None:
    screen = await newcomer.begins()
    wrong = {
        "": "DISCORD_TOKEN is empty",
        f'"{TOKEN}"': "has quotation marks around it; leave them out",
        f"Bot {TOKEN}": "begins with “Bot”; leave that word out",
        TOKEN.replace(".", " . "): "has spaces or line breaks in it; copy the token once more",
        CLIENT_SECRET: "is the application's client secret, from the page OAuth2; the token is in",
        KEY: "is a key of Anthropic's; the token is in",
        OPENAI: "is a key of OpenAI; the token is in the developer portal, under Bot (Reset Token)",
        "0" * 64: "is the application's public key",
        str(newcomer.discord.application_id): "is an id",
        OTHER_TOKEN: "Discord does not accept this token; copy it again",
    }
    await refused(screen, TOKEN_ASKED, wrong)
    await screen.shows(TOKEN_ASKED)
    screen.type(f"  {TOKEN} ")
    await screen.shows(f"{IDS} [")
    screen.interrupt()
    assert await newcomer.leaves(screen) == 130
    assert not newcomer.file.exists()


async def test_an_intent_that_is_off_is_waited_for(newcomer: Newcomer) -> None:
    newcomer.discord.describe_application(flags=0)
    screen = await newcomer.begins("--token-file", newcomer.secret("token", TOKEN))
    page = f"https://discord.com/developers/applications/{newcomer.discord.application_id}/bot"
    for _ in range(2):
        await screen.shows(
            f"! the message content intent is off, so the bot can't connect; switch it on at {page}"
        )
        await screen.shows("Is it on now? [Y/n]: ")
        screen.type("")
    await screen.shows("Is it on now? [Y/n]: ")
    newcomer.discord.describe_application(flags=MESSAGE_CONTENT)
    screen.type("y")
    await screen.shows(f"{IDS} [")
    screen.end_input()
    assert await newcomer.leaves(screen) == 130


async def test_people_are_looked_up_by_their_ids(newcomer: Newcomer) -> None:
    screen = await newcomer.begins("--token-file", newcomer.secret("token", TOKEN))
    wrong = {
        "ann": "DISCORD_ALLOW_USER_IDS: 'ann' is not a Discord id; use numbers, separated by commas",
        str(newcomer.discord.guild_id): "is nobody's id; copy a person's, not a server's or channel's",
        f"{newcomer.ann.id} {newcomer.discord.bot.id}": "is the bot Disco, and bots get no answer",
        ",": "the bot would answer nobody; name at least one person by their id",
        TOKEN[:-1] + "y": "DISCORD_ALLOW_USER_IDS: a text of 59 characters is not a Discord id",
        CLIENT_SECRET[:-1] + "y": "DISCORD_ALLOW_USER_IDS: a text of 32 characters is not a Discord id",
    }
    await refused(screen, IDS, wrong)
    await answered(screen, IDS, str(newcomer.ann.id))
    await screen.shows(f"They may talk to it: Ann ({newcomer.ann.id}).")
    await screen.shows(
        "The bot has no owner for /hatch and settings; to name one, run init again with --owner ID."
    )
    await screen.shows(f"{WHICH} [1]: ")
    screen.interrupt()
    assert await newcomer.leaves(screen) == 130


async def test_a_key_of_anybody_elses_is_named_and_one_that_can_not_be_checked_is_taken_on_request(
    newcomer: Newcomer,
) -> None:
    token = newcomer.secret("token", TOKEN)
    screen = await newcomer.begins("--token-file", token, HTTPS_PROXY=NOWHERE, https_proxy=NOWHERE)
    await answered(screen, IDS, "")
    await answered(screen, WHICH, "1")
    wrong = {
        "": "ANTHROPIC_API_KEY is empty; paste a key",
        OPENAI: "is a key of OpenAI, and Anthropic is asked; use a key of Anthropic's (sk-ant-…)",
        GOOGLE: "is a key of Google",
        GROQ: "is a key of Groq",
        TOKEN: "is the token of a Discord bot",
        f"'{KEY}'": "has quotation marks around it",
    }
    await refused(screen, KEY_ASKED, wrong)
    for answer in ("n", "y"):
        await screen.shows(KEY_ASKED)
        screen.type(KEY)
        await screen.shows("! https://api.anthropic.com can't be reached")
        await screen.shows(ANYWAY)
        screen.type(answer)
    assert await newcomer.leaves(screen) == 0
    assert newcomer.written["ANTHROPIC_API_KEY"] == KEY
    assert newcomer.written.keys() == {
        "DISCORD_TOKEN",
        "DISCOCLAW_DATA_DIR",
        "DISCORD_ALLOW_USER_IDS",
        "DISCOCLAW_OWNER_IDS",
        "ANTHROPIC_API_KEY",
    }


async def test_a_server_that_is_no_models_server_is_named(newcomer: Newcomer) -> None:
    model = newcomer.model
    screen = await newcomer.begins("--token-file", newcomer.secret("token", TOKEN))
    await answered(screen, IDS, "")
    await answered(screen, WHICH, "4")
    await refused(
        screen, ADDRESS, {"my computer": "ANTHROPIC_BASE_URL=…: is not an address; it must look like"}
    )
    await answered(screen, ADDRESS, NOWHERE)
    await screen.shows(f"! {NOWHERE} cannot be reached")
    await screen.shows("is the server running there?")
    await answered(screen, ANYWAY.removesuffix(": "), "n")
    model.models = raw(b"<!doctype html><title>Router</title>", content_type="text/html")
    await refused(screen, ADDRESS, {model.base_url: "answers with a web page and not as a model's server"})
    model.models = ()
    await refused(
        screen, ADDRESS, {f"{model.base_url}/v1": "has no models yet; fetch one there, for Ollama with"}
    )
    assert "   Left out /v1: the bot appends what it needs.\n" in screen.text
    model.models = ("qwen3:8b",)
    model.script(failure(404, "not_found_error"))
    await refused(screen, ADDRESS, {"": "has this model, but answers neither POST /v1/messages nor"})
    model.key = LOCAL_KEY
    await refused(screen, ADDRESS, {"": "wants a key, or another one (answers 401)"})
    await answered(screen, ADDRESS, "")
    await screen.shows(SERVER_KEY)
    screen.type(LOCAL_KEY)
    await screen.shows("qwen3:8b answers, in ")
    assert await newcomer.leaves(screen) == 0
    assert newcomer.written["ANTHROPIC_BASE_URL"] == model.base_url
    assert newcomer.written["ANTHROPIC_API_KEY"] == LOCAL_KEY


async def test_servers_on_this_machine_are_found_and_offered(newcomer: Newcomer) -> None:
    names = {"qwen3:8b": 1, "llama3.2:3b": 2, "nomic-embed-text": 3}
    async with ListingServer("ollama", names) as ollama, ListingServer("vllm") as router:
        router.key = "somebody else's"
        servers = f"ollama={ollama.base_url},vllm={router.base_url},lmstudio={NOWHERE}/v1"
        screen = await newcomer.begins(
            "--token-file", newcomer.secret("token", TOKEN), DISCOCLAW_MODEL_SERVERS=servers
        )
        await answered(screen, IDS, "")
        await screen.shows("   4  a server at another address, such as Ollama")
        await screen.shows(f"   5  Ollama, found at {ollama.url}\n")
        await answered(screen, f"{WHICH} [1]", f"Ollama, found at {ollama.url}")
        await screen.shows("   It has 2 models:\n")
        await screen.shows("   1  llama3.2:3b\n")
        await answered(screen, f"{WHICH_MODEL} [1]", "qwen3:8b")
        await screen.shows("   qwen3:8b answers, in ")
        await screen.shows("It learns and sums up too, so that the server has to load only one model.")
        assert await newcomer.leaves(screen) == 0
        assert f"vLLM, found at {router.url}" in screen.text and "LM Studio, found" not in screen.text
        assert newcomer.written["DISCOCLAW_MODEL_PROVIDER"] == "ollama"
        assert [newcomer.written[name] for name in MODELS] == ["qwen3:8b"] * 3
        assert {one.body["model"] for one in ollama.requests} == {"qwen3:8b"}


class TestAgain:
    async def test_enter_keeps_what_is_set_and_changes_no_other_line(self, newcomer: Newcomer) -> None:
        with_password = newcomer.model.base_url.replace("//", f"//ann:{LOCAL_KEY}@")  # which is not shown
        old = OLD.format(token=TOKEN, ann=newcomer.ann.id, address=with_password)
        newcomer.file.write_text(old)
        newcomer.file.chmod(0o644)
        screen = await newcomer.begins()
        await screen.shows(TOKEN_KEPT)
        screen.type("")
        await answered(screen, f"{IDS} [{newcomer.ann.id}]", "")
        await answered(screen, f"{WHICH} [4]", "")
        await answered(screen, f"{ADDRESS} [{newcomer.model.base_url}]", "")
        await answered(screen, f"{WHICH_MODEL} [1]", "")
        await screen.shows("Start the bot")
        assert await newcomer.leaves(screen) == 0
        assert newcomer.file.read_text() == old

    async def test_only_what_was_answered_otherwise_changes(self, newcomer: Newcomer) -> None:
        old = OLD.format(token=OTHER_TOKEN, ann="1", address=newcomer.model.base_url)
        newcomer.file.write_text(old)
        screen = await newcomer.begins()
        await screen.shows(TOKEN_KEPT)
        screen.type("")
        await screen.shows("! DISCORD_TOKEN=…: Discord does not accept this token")
        await screen.shows(TOKEN_KEPT)
        screen.type(TOKEN)
        await answered(screen, f"{IDS} [1]", str(newcomer.ann.id))
        await answered(screen, WHICH, "4")
        await answered(screen, ADDRESS, "")
        await answered(screen, WHICH_MODEL, "1")
        assert await newcomer.leaves(screen) == 0
        new = OLD.format(token=TOKEN, ann=newcomer.ann.id, address=newcomer.model.base_url)
        unquoted = new.replace(f"'{TOKEN}'", TOKEN).replace(f'"{newcomer.ann.id}"', str(newcomer.ann.id))
        assert newcomer.file.read_text() == unquoted


class TestLeaving:
    async def test_while_discord_is_asked_changes_nothing(self, newcomer: Newcomer) -> None:
        newcomer.file.write_text("# mine\n")
        newcomer.discord.fail_next("GET", "/users/@me", 503, times=10)
        screen = await newcomer.begins()
        await screen.shows(TOKEN_ASKED)
        screen.type(TOKEN)
        await newcomer.discord.wait_for_request("GET", "/users/@me", timeout=60)
        screen.interrupt()
        await screen.shows("Nothing was changed.")
        code = await screen.ended()
        assert (code, newcomer.file.read_text()) == (130, "# mine\n")
        assert TOKEN not in screen.text and "Traceback" not in screen.text

    async def test_while_a_secret_is_asked_for_gives_the_terminal_back(self, newcomer: Newcomer) -> None:
        screen = await newcomer.begins()
        await screen.shows(TOKEN_ASKED)
        assert not screen.echoes
        screen.interrupt()
        await screen.shows("Nothing was changed.")
        assert screen.echoes
        assert await newcomer.leaves(screen) == 130
        assert not newcomer.file.exists()


class TestWithoutDiscord:
    async def test_it_writes_on_request_what_it_could_not_check(self, newcomer: Newcomer) -> None:
        screen = await newcomer.begins(DISCORD_API_BASE=NOWHERE)
        await screen.shows(TOKEN_ASKED)
        screen.type(TOKEN)
        await screen.shows("! no connection to Discord")
        await screen.shows(ANYWAY)
        screen.type("y")
        await answered(screen, IDS, str(newcomer.ann.id))
        await answered(screen, WHICH, "4")
        await answered(screen, ADDRESS, NOWHERE)
        await screen.shows(ANYWAY)
        screen.type("y")
        await answered(screen, "   The name of the model there", "  ")
        await answered(screen, "   The name of the model there", "qwen3:8b")
        await screen.shows("1. Invite the bot; `discoclaw init` prints the link once Discord can be asked.")
        assert await newcomer.leaves(screen) == 0
        assert newcomer.written["DISCORD_TOKEN"] == TOKEN
        assert newcomer.written["ANTHROPIC_BASE_URL"] == NOWHERE
        assert newcomer.written["DISCOCLAW_MODEL"] == "qwen3:8b"


class TestTheDisk:
    async def test_that_is_full_is_named_and_nothing_is_left(self, newcomer: Newcomer) -> None:
        newcomer.file.write_text("# mine\n")
        newcomer.file.chmod(0o600)
        screen = await newcomer.begins(
            *("--token-file", newcomer.secret("token", TOKEN), "--no-check"),
            *("--allow-users", "1", "--base-url", NOWHERE, "--model", "m"),
            before=no_room,
        )
        await screen.shows("discoclaw: can't write .env: File too large; nothing was changed")
        assert await newcomer.leaves(screen) == 1
        assert newcomer.file.read_text() == "# mine\n"

    async def test_that_may_not_be_written_is_named_before_anything_is_asked(
        self, newcomer: Newcomer
    ) -> None:
        newcomer.folder.chmod(0o555)
        screen = await newcomer.begins(before=without_rights)
        await screen.shows("discoclaw: can't write .env: you may not write in the folder ")
        newcomer.folder.chmod(0o755)
        assert await newcomer.leaves(screen) == 1
        assert "Token" not in screen.text


def no_room() -> None:
    """Let no file grow, as on a full disk."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))


def without_rights() -> None:
    """Let the rights of a folder apply to root too: its new process can't override them."""
    drop, override = 24, 1  # PR_CAPBSET_DROP and CAP_DAC_OVERRIDE; for others than root this does nothing
    ctypes.CDLL(None).prctl(drop, override, 0, 0, 0)


PAIR = "   They may be"
CODE = re.compile(r"[A-Z2-7]{4}(?:-[A-Z2-7]{4}){3}")


class TestPairing:
    async def test_names_who_wrote_to_the_bot_as_its_owner(self, newcomer: Newcomer) -> None:
        discord, ann = newcomer.discord, newcomer.ann
        eve = discord.add_user(f"Ann (@ann, {ann.id})\x1b[2K")  # who looks alike
        screen = await newcomer.begins(DISCORD_GATEWAY=discord.gateway_url)
        await screen.shows(TOKEN_ASKED)
        screen.type(TOKEN)
        await screen.shows(f"{IDS} [")
        await screen.shows(": ")
        screen.type("pair")
        await screen.shows("Write to the bot now: a direct message, or a mention.")
        await discord.wait_for_gateway("identify", timeout=PATIENCE)
        await discord.say(ann, discord.add_channel("lobby"), "hello everybody")  # not to the bot
        asked = await discord.say(eve, discord.dm(eve), "let me in")
        told = await discord.wait_for_message(asked.channel, "Whoever runs me", timeout=PATIENCE)
        code = CODE.findall(told.content)[0]
        await screen.shows(f"{code} is @")
        line = await screen.shows("\n")
        assert "\x1b" not in line
        assert f" ({eve.id}), on The Club, who goes by “Ann (@ann, {ann.id})" in line
        await screen.shows(f"{PAIR} [3]: ")
        screen.type("")  # who only presses Enter lets nobody in
        await screen.shows("! the bot would answer nobody")
        await screen.shows(f"{IDS} [")
        await screen.shows(": ")
        screen.type("pair")
        await screen.shows("Write to the bot now")
        await discord.wait_for_gateway("identify", count=2, timeout=PATIENCE)
        asked = await discord.say(ann, discord.dm(ann), "hello")
        told = await discord.wait_for_message(asked.channel, "Whoever runs me", timeout=PATIENCE)
        await screen.shows(CODE.findall(told.content)[0])
        await screen.shows(f"{PAIR} [3]: ")
        screen.type("owner")
        await screen.shows(f"They may talk to it: Ann ({ann.id}).")
        await screen.shows(f"Who owns it, with /hatch and all settings: {ann.id}.")
        await answered(screen, f"{WHICH} [1]", "4")
        await answered(screen, f"{ADDRESS} [", newcomer.model.base_url)
        await answered(screen, f"{WHICH_MODEL} [1]", "1")
        assert await newcomer.leaves(screen) == 0
        assert newcomer.written["DISCORD_ALLOW_USER_IDS"] == str(ann.id)
        assert newcomer.written["DISCOCLAW_OWNER_IDS"] == str(ann.id)
        assert str(eve.id) not in newcomer.file.read_text()
        await newcomer.starts_the_bot()

    async def test_of_a_first_bot_takes_few_keys(self, newcomer: Newcomer) -> None:
        """Beside what is pasted: the word `pair`, a number for the right, and one for the model."""
        discord = newcomer.discord
        screen = await newcomer.begins(DISCORD_GATEWAY=discord.gateway_url)
        answers = {
            TOKEN_ASKED: TOKEN,
            f"{IDS} [{discord.owner.id}]: ": "pair",
            f"{PAIR} [3]: ": "1",
            f"{WHICH} [1]: ": "4",
            f"{ADDRESS} [http://127.0.0.1:11434]: ": newcomer.model.base_url,
            f"{WHICH_MODEL} [1]: ": "",
        }
        for question, keys in answers.items():
            if question.startswith(PAIR):
                await discord.wait_for_gateway("identify", timeout=PATIENCE)
                await discord.say(newcomer.ann, discord.dm(newcomer.ann), "hello")
            await screen.shows(question)
            screen.type(keys)
        assert await newcomer.leaves(screen) == 0
        assert screen.text.count("]: ") + screen.text.count("shown): ") == len(answers) == 6
        pasted = (TOKEN, newcomer.model.base_url)
        keys = sum(len(one) for one in answers.values() if one not in pasted) + len(answers)
        assert keys == len("pair") + 2 + 6

    async def test_with_a_running_bot_that_answers_nobody_needs_its_code(self, newcomer: Newcomer) -> None:
        discord, ann = newcomer.discord, newcomer.ann
        newcomer.file.write_text(
            f"DISCORD_TOKEN={TOKEN}\nANTHROPIC_BASE_URL={newcomer.model.base_url}\nDISCOCLAW_MODEL=m\n"
            f"DISCOCLAW_DATA_DIR={newcomer.secrets / 'data'}\n"
        )
        async with newcomer.running_bot():
            for text in ("hello", "are you there?"):
                asked = await discord.say(ann, discord.dm(ann), text)
            told = await discord.wait_for_message(asked.channel, "Whoever runs me", timeout=PATIENCE)
            bob = discord.add_user("Bob")
            asked = await discord.say(bob, discord.dm(bob), "hello")
            await discord.wait_for_message(asked.channel, "Whoever runs me", timeout=PATIENCE)
            assert len(discord.bot_messages(discord.dm(ann))) == 1
            assert newcomer.model.requests == []
            code = CODE.findall(told.content)[0]
            wrong = await newcomer.types("pair", code[:-1] + ("A" if code[-1] != "A" else "B"))
            await wrong.shows("discoclaw: this code isn't from this bot, or it is too old")
            assert await wrong.ended() == 1
            screen = await newcomer.types("pair", code)
            await screen.shows(f"{code} is @")
            await answered(screen, f"{PAIR} [3]", "allow")
            await screen.shows("Wrote .env. Start the bot again, so that it knows.")
            assert await screen.ended() == 0
        assert newcomer.written["DISCORD_ALLOW_USER_IDS"] == str(ann.id)
        assert "DISCOCLAW_OWNER_IDS" not in newcomer.written
        await newcomer.starts_the_bot()
