"""What `discoclaw doctor` finds about vectors, transcription, relays, databases and ledgers."""

import json
import time
from pathlib import Path

import psycopg
import pytest

from discoclaw.core.model import Usage
from discoclaw.core.usage import DOLLAR, Call
from discoclaw.memory.subjects.store import Memory
from discoclaw.store.postgres.disk import PostgresDisk
from discoclaw.usage.log import UsageLog
from tests.checkup.conftest import Desk, Found, disk_of
from tests.memory.kit import ANN, BOB, Clock, remember
from tests.nostr.relay_kit import ME
from tests.servers.embeddings_api import EmbeddingsServer, Shaped
from tests.servers.nostr_relay import LyingRelay
from tests.servers.postgres import Postgres
from tests.servers.scripted import Raw, failure
from tests.servers.transcription_api import TranscriptionServer


class TestEmbeddings:
    async def asked(self, desk: Desk, server: EmbeddingsServer) -> Found:
        settings = {"EMBEDDING_PROVIDER": "ollama", "EMBEDDING_BASE_URL": server.url}
        return await desk.found("--only", "embeddings", **settings)

    async def test_that_work(self, desk: Desk) -> None:
        async with EmbeddingsServer() as server:
            works, meaning = (await self.asked(desk, server)).lines("embeddings", "good")
        assert works.startswith("embeddings: ollama/nomic-embed-text: ") and works.endswith("on this machine")
        assert meaning.startswith("meaning: what has a cosine from 0.")

    async def test_that_refuse_the_key(self, desk: Desk) -> None:
        async with EmbeddingsServer() as server:
            server.script(failure(401))
            line = (await self.asked(desk, server)).only("embeddings", "bad")
        assert line.endswith("answers 401: it does not accept the key; check EMBEDDING_API_KEY")

    async def test_that_tell_nothing_apart(self, desk: Desk) -> None:
        async with EmbeddingsServer(related=()) as server:
            server.default = Shaped(lambda vectors: [[1.0, 0.0] for _ in vectors])
            warnings = (await self.asked(desk, server)).lines("embeddings", "warning")
        (line,) = [one for one in warnings if not one.startswith("speed")]  # of a busy machine
        assert line.startswith("meaning: its vectors don't tell what belongs together")

    async def test_of_an_unknown_provider(self, desk: Desk) -> None:
        found = await desk.found("--only", "embeddings", EMBEDDING_PROVIDER="acme")
        assert "unknown provider; use openai, ollama or local" in found.only("embeddings", "bad")


class TestTranscription:
    @pytest.mark.filterwarnings("ignore:unread_data")  # aiohttp's own reading of a form, in the server
    async def test_of_a_second_of_silence(self, desk: Desk) -> None:
        async with TranscriptionServer() as server:
            server.script(Raw(b'{"text": ""}'), failure(401), failure(415))
            told = {"DISCOCLAW_TRANSCRIBE_URL": server.url}
            good = (await desk.found("--only", "voice", **told)).only("voice", "good")
            bad = (await desk.found("--only", "voice", **told)).only("voice", "bad")
            refused = (await desk.found("--only", "voice", **told)).only("voice", "warning")
            assert [len(one.audio) for one in server.requests] == [8_044] * 3
        assert "the server listened to a moment of silence in" in good
        assert "does not accept the key" in bad and "check DISCOCLAW_TRANSCRIBE_KEY" in bad
        assert "refuses a moment of silence" in refused


class TestRelays:
    async def test_that_can_be_read(self, desk: Desk) -> None:
        async with LyingRelay() as relay:
            told = {"NOSTR_SECRET_KEY": ME.secret_hex(), "NOSTR_RELAYS": relay.url}
            found = await desk.found("--only", "mirror", **told)
            assert relay.requests and relay.sent == []
        key, readable = found.lines("mirror", "good")
        assert key == f"key: the mirror's key is {ME.npub}"
        assert readable.endswith("can be read, and says nothing against writing")
        assert found.exit_code == 0

    async def test_one_that_is_not_there(self, desk: Desk) -> None:
        told = {"NOSTR_SECRET_KEY": ME.secret_hex(), "NOSTR_RELAYS": "ws://127.0.0.1:1"}
        found = await desk.found("--only", "mirror", **told, NOSTR_TIMEOUT_S="0.3", NOSTR_MIN_ACKS="1")
        assert "can't be reached" in found.only("mirror", "warning")
        too_few = "relays: 0 relays can be used, and NOSTR_MIN_ACKS=1 are needed"
        assert found.only("mirror", "bad") == f"{too_few}; add relays, or lower NOSTR_MIN_ACKS"

    async def test_without_a_key(self, desk: Desk) -> None:
        found = await desk.found("--only", "mirror", NOSTR_RELAYS="ws://127.0.0.1:1", NOSTR_TIMEOUT_S="0.2")
        no_key = "key: there is no key for the mirror; run `discoclaw nostr new-key`"
        assert no_key in found.lines("mirror", "bad")
        assert not (desk.data / "nostr").exists()

    async def test_the_embedded_one_runs_with_the_bot(self, desk: Desk) -> None:
        found = await desk.found("--only", "mirror", NOSTR_RELAYS="embedded")
        assert len(found.lines("mirror", "good")) == 2
        assert not desk.data.exists()


class TestDatabases:
    async def asked(self, desk: Desk, url: str) -> Found:
        return await desk.found("--only", "database", "--only", "ledgers", DISCOCLAW_STORE=url)

    async def test_one_that_is_not_there(self, desk: Desk) -> None:
        found = await self.asked(desk, "postgresql://ann:secret-word@127.0.0.1:1/none")
        assert "PostgreSQL 127.0.0.1:1/none: nothing listens there" in found.only("database", "bad")
        assert "secret-word" not in found.result.output

    async def test_an_empty_one_stays_empty(self, desk: Desk, database: str) -> None:
        found = await self.asked(desk, database)
        assert found.exit_code == 0
        assert "tables: there are none yet" in "\n".join(found.lines("database", "good"))
        with psycopg.connect(database) as db:
            assert db.execute("SELECT to_regclass('discoclaw')").fetchone() == (None,)

    async def test_one_with_memories(self, desk: Desk, prepared_database: str) -> None:
        memory = Memory(disk_of(desk.data, prepared_database), clock=Clock())
        memory.open()
        await memory.change(ANN, "said", remember("likes tea"))
        memory.close()
        found = await self.asked(desk, prepared_database)
        assert found.exit_code == 0
        assert "rights: this user may write there" in found.lines("database", "good")
        assert "processes: no process of the bot uses it now" in found.lines("database", "good")
        assert found.only("ledgers", "good") == "ledgers: 1 memory with 1 commit: every hash is right"

    async def test_one_of_a_newer_program(self, desk: Desk, prepared_database: str) -> None:
        with psycopg.connect(prepared_database) as db:
            db.execute("UPDATE discoclaw SET version = 99")
        found = await self.asked(desk, prepared_database)
        assert found.only("database", "bad").startswith("tables: the tables have version 99, newer than this")

    async def test_one_that_only_takes_reads(
        self, desk: Desk, postgres: Postgres, prepared_database: str
    ) -> None:
        postgres.read_only(True)
        try:
            found = await self.asked(desk, prepared_database)
        finally:
            postgres.read_only(False)
        assert found.only("database", "bad").startswith("rights: the database only takes reads")


class TestLedgers:
    async def filled(self, desk: Desk) -> Path:
        memory = Memory(disk_of(desk.data, "files"), clock=Clock())
        memory.open()
        for who in (ANN, BOB):
            await memory.change(who, "said", remember("likes tea"))
        memory.close()
        return desk.data / "memory" / "ledger" / f"{ANN}.jsonl"

    async def test_a_damaged_line(self, desk: Desk) -> None:
        ledger = await self.filled(desk)
        ledger.write_bytes(ledger.read_bytes().replace(b"likes tea", b"hates tea"))
        before = ledger.read_bytes()
        found = await desk.found("--only", "ledgers")
        bad = found.only("ledgers", "bad")
        assert bad.startswith(f"ledgers: {ANN}: {ledger.name}, line 1")
        assert bad.endswith("run `discoclaw memory verify --repair`, which keeps the original")
        assert (found.exit_code, ledger.read_bytes()) == (1, before)

    async def test_a_damaged_database_file(self, desk: Desk) -> None:
        (desk.data / "memory").mkdir(parents=True)
        (desk.data / "memory" / "memory.sqlite").write_bytes(b"no database at all" * 300)
        found = await desk.found("--only", "ledgers", DISCOCLAW_STORE="sqlite")
        assert found.exit_code == 1 and "verify --repair" in found.only("ledgers", "bad")

    @pytest.mark.parametrize("words", [(), ("--json",)])
    async def test_memories_in_a_store_that_is_not_used(self, desk: Desk, words: tuple[str, ...]) -> None:
        await self.filled(desk)
        result = await desk.doctor("--only", "ledgers", *words, DISCOCLAW_STORE="sqlite")
        assert result.exit_code == 0
        assert "2 people have memories in the store 'files', which is not used" in result.stdout
        assert not words or json.loads(result.stdout)["ok"]


async def test_a_checkup_with_a_database_makes_no_file(desk: Desk, database: str) -> None:
    await desk.found("--quick", DISCOCLAW_STORE=database)
    assert list(desk.folder.iterdir()) == []
    PostgresDisk(database).close()


class TestCosts:
    async def asked(self, desk: Desk, **settings: str | None) -> Found:
        return await desk.found("--only", "costs", **settings)

    async def test_a_model_without_a_price(self, desk: Desk) -> None:
        elsewhere = {"ANTHROPIC_BASE_URL": "http://models.example.com", "DISCOCLAW_MODEL": "odd-1"}
        found = await self.asked(desk, **elsewhere)
        assert found.only("costs", "warning").startswith("prices: no price of odd-1 is known, so each call")
        assert found.only("costs", "off").endswith("set DISCOCLAW_BUDGET, for example 5/day")
        table = desk.folder / "prices.toml"
        table.write_text('["odd-1"]\ninput = 1\noutput = 2\n')
        found = await self.asked(desk, **elsewhere, DISCOCLAW_PRICES=str(table))
        assert found.only("costs", "good").startswith("prices: known for odd-1, claude-haiku")

    async def test_a_table_of_prices_that_cannot_be_used(self, desk: Desk) -> None:
        found = await self.asked(desk, DISCOCLAW_PRICES="nowhere.toml")
        assert "DISCOCLAW_PRICES=nowhere.toml: can't be read" in found.only("costs", "bad")

    async def test_a_model_of_ones_own_costs_nothing(self, desk: Desk) -> None:
        good = (await self.asked(desk, DISCOCLAW_BUDGET="person 0.50/day")).lines("costs", "good")
        assert good == [
            "prices: a model on this network costs nothing; its tokens are counted",
            "budget: $0.50 a day for each person",
        ]

    @pytest.mark.parametrize(
        ("budget", "state", "told"),
        [
            ("100/day", "good", "budget: $100.00 a day for everything: $9.00 spent (9 %)"),
            ("10/day", "warning", "spent (90 %); the small model answers; raise DISCOCLAW_BUDGET"),
            ("5/day", "warning", "spent (180 %); memory alone answers until the day is over"),
        ],
    )
    async def test_what_is_spent_of_a_budget(self, desk: Desk, budget: str, state: str, told: str) -> None:
        now = time.time_ns() // 1_000_000
        log = UsageLog(disk_of(desk.data, "files").used)
        log.load(now, None)
        log.begin(now, None)
        log.append([Call("a", now, "answer", "m", Usage(output_tokens=1), 9 * DOLLAR)])
        (line,) = [
            one
            for one in (await self.asked(desk, DISCOCLAW_BUDGET=budget)).lines("costs", state)
            if one.startswith("budget")
        ]
        assert told in line
