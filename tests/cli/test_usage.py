"""`discoclaw usage`: what models were used for, while the bot runs, on all stores."""

import csv
import io
import json
import os
from collections.abc import Iterable
from pathlib import Path

import pytest
from PIL import Image
from typer.testing import Result

from discoclaw.cli.common import now_ms
from discoclaw.cli.main import cli
from discoclaw.core.model import Usage
from discoclaw.core.profile import Group, Profile
from discoclaw.core.times import iso_ms
from discoclaw.core.usage import Call, Hold, Payer, Record
from discoclaw.memory.stores import disks
from discoclaw.memory.subjects.store import Memory
from discoclaw.store.port import GROUPS, PROFILES
from discoclaw.usage.log import UsageLog
from tests.cli.shell import OURS, Runner, Shell
from tests.core.calls import DAY, call

ANN, BOB = Payer("1001", "77", "5"), Payer("1002")


def run(shell: Shell, *words: str, **settings: str) -> Result:
    unset: dict[str, str | None] = {name: None for name in os.environ if name.startswith(OURS)}
    environment = {**unset, **shell.settings, "COLUMNS": "120", **settings}
    return Runner().invoke(cli, ["usage", *words], env=environment)


def shown(shell: Shell, *words: str, **settings: str) -> str:
    result = run(shell, *words, **settings)
    assert (result.exit_code, result.stderr) == (0, ""), result.output
    return result.stdout


def written(shell: Shell, records: Iterable[Record], store: str = "files") -> None:
    """Have records in the log, as a bot on this store writes them."""
    with disks(store, shell.memory_folder) as stores:
        stores.open()
        usage = UsageLog(stores.used)
        usage.begin(now_ms(), None)
        usage.append(records)


def some() -> list[Record]:
    """Ann asked twice and was learned from, Bob asked a local model; one call is under way."""
    now = now_ms()
    return [
        call(now - 1000, 3_400_000_000, payer=ANN, tokens=(1000, 300)),
        call(now - 40 * DAY, 10**9, payer=ANN),
        call(now - 2000, 1_200_000, payer=ANN, purpose="extraction", model="haiku", tokens=(500, 20)),
        call(now - 3000, 0, payer=BOB, model="local", tokens=(70_000, 0)),
        Hold("under-way", now, 10**9, ANN),
    ]


@pytest.fixture(params=["files", "sqlite", "postgresql"])
def store(request: pytest.FixtureRequest) -> str:
    if request.param == "postgresql":
        return str(request.getfixturevalue("prepared_database"))
    return str(request.param)


def test_every_store_says_what_was_used_while_the_bot_has_it(empty: Shell, store: str) -> None:
    stores = disks(store, empty.memory_folder)
    memory = Memory(stores, clock=now_ms)
    memory.open()
    try:
        usage = UsageLog(stores.used)
        usage.begin(now_ms(), None)
        usage.append(some())
        found = json.loads(shown(empty, "--json", DISCOCLAW_STORE=store))
    finally:
        memory.close()
    total = found["total"]
    assert (total["calls"], total["nanodollars"]) == (3, 3_401_200_000)
    assert (total["inputTokens"], total["outputTokens"]) == (71_500, 320)
    people = [(one["key"], one["calls"], one["nanodollars"]) for one in found["by"]["person"]]
    assert people == [("1001", 2, 3_401_200_000), ("1002", 1, 0)]
    assert [one["key"] for one in found["by"]["purpose"]] == ["answer", "extraction"]
    assert len(found["by"]["day"]) == 30
    for kind, groups in found["by"].items():
        for number in total:
            assert sum(one[number] for one in groups) == total[number], kind


def test_people_read_the_dearest_first_with_names_that_are_known(empty: Shell) -> None:
    written(empty, some())
    with disks("files", empty.memory_folder) as stores:
        ann = Profile((("Ann", 1),), 1).to_json()
        stores.used.documents(PROFILES).write("1001.json", json.dumps(ann).encode())
        stores.used.documents(GROUPS).write("77.json", json.dumps(Group("Cats and dogs").to_json()).encode())
    printed = shown(empty)
    assert "$3.40, 3 calls · 71.5k tokens in, 320 out." in printed
    rows = [[cell.strip() for cell in one.split("│")[1:-1]] for one in printed.splitlines() if "│" in one]
    assert ["answers", "$3.40", "2", "71,000", "0", "300"] in rows
    assert ["learning", "$0.0012", "1", "500", "0", "20"] in rows
    assert ["1001", "Ann", "$3.40", "2", "1,500", "0", "320"] in rows
    assert ["1002", "", "free", "1", "70,000", "0", "0"] in rows
    assert ["77", "Cats and dogs", "$3.40", "2", "1,500", "0", "320"] in rows
    people = shown(empty, "--by", "person", "--since", "60d")
    assert "$4.40, 4 calls" in people
    assert "answers" not in people


def test_a_brief_table_says_how_to_see_the_rest(empty: Shell) -> None:
    written(empty, [call(now_ms() - n, n, payer=Payer(str(n))) for n in range(1, 9)])
    assert "and 3 more; --by person shows all" in shown(empty)
    assert len([one for one in shown(empty, "--by", "person").splitlines() if "│" in one]) == 8


def test_days_without_a_call_are_there(empty: Shell) -> None:
    written(empty, some())
    printed = shown(empty, "--by", "day", "--since", "3d")
    rows = [[cell.strip() for cell in one.split("│")[1:-1]] for one in printed.splitlines() if "│" in one]
    assert [one[0] for one in rows] == [iso_ms(now_ms() - n * DAY)[:10] for n in (2, 1, 0)]
    assert rows[0][1:] == ["", "0", "0", "0", "0"]
    first = iso_ms(now_ms() - 40 * DAY)[:10]
    assert json.loads(shown(empty, "--since", first, "--json"))["total"]["calls"] == 4


def test_days_are_those_of_the_bots_time_zone(empty: Shell) -> None:
    written(empty, some())
    found = json.loads(shown(empty, "--json", DISCOCLAW_TIMEZONE="Pacific/Kiritimati"))  # 14 hours ahead
    assert found["last"] == iso_ms(now_ms() + 14 * DAY // 24)[:10]
    assert (found["since"][10:], found["zone"]) == ("T10:00:00.000Z", "Pacific/Kiritimati")


@pytest.mark.parametrize("cut", [b'{"id": "a", "at": 17', b"\x00\xff\x00", b'{"id": 7}'], ids=range(3))
def test_damaged_lines_are_skipped_and_counted(empty: Shell, cut: bytes) -> None:
    written(empty, some())
    (log,) = (empty.memory_folder / "usage").iterdir()
    log.write_bytes(b"[]\n" + log.read_bytes() + cut)
    result = run(empty)
    assert result.exit_code == 0
    assert result.stderr == "note: 2 lines of the usage log could not be read\n"
    assert "$3.40, 3 calls" in result.stdout
    found = json.loads(run(empty, "--json").stdout)
    assert (found["damagedLines"], found["total"]["calls"]) == (2, 3)


def test_estimates_and_guesses_are_named(empty: Shell) -> None:
    now = now_ms()
    written(
        empty,
        [
            Call("a", now, "answer", "new", Usage(10, 10), 5_000, counted=False, priced=False),
            Call("b", now, "transcription", "whisper", Usage(seconds=75), 6_000),
        ],
    )
    printed = shown(empty)
    assert "The tokens of 1 call are an estimate" in printed
    assert "The price of 1 call is a guess" in printed
    assert "0:01:15 of speech" in printed


def test_nothing_used_is_said_and_makes_no_folder(empty: Shell) -> None:
    for store in ("files", "sqlite", "none"):
        assert ": no calls." in shown(empty, DISCOCLAW_STORE=store)
        assert not (empty.folder / "data").exists()


def test_the_days_can_be_drawn(empty: Shell, tmp_path: Path) -> None:
    written(empty, some())
    path = tmp_path / "usage.png"
    assert f"Drew {path}." in shown(empty, "--picture", str(path))
    assert Image.open(io.BytesIO(path.read_bytes())).format == "PNG"
    inside = run(empty, "--picture", str(empty.memory_folder / "usage" / "a.png"))
    assert (inside.exit_code, "choose another place" in inside.stderr) == (1, True)


def test_a_time_that_is_none_is_refused_with_the_way_out(empty: Shell) -> None:
    for since in ("yesterday", "0d", "-3d", "7", "2026-02-30", "9999-01-01", "99999999d", ""):
        result = run(empty, f"--since={since}")
        assert result.exit_code == 2
        assert "--since" in result.stderr
        assert "write for example 7d" in result.stderr.replace("\n", " ") or "is after today" in result.stderr


def test_a_database_that_is_gone_is_one_line(empty: Shell) -> None:
    result = run(empty, DISCOCLAW_STORE="postgresql://nobody@127.0.0.1:1/none")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "nothing listens there" in result.stderr
    assert result.stderr.count("\n") == 1


class TestAPersonsOwn:
    def test_is_a_table_for_spreadsheets(self, empty: Shell, tmp_path: Path) -> None:
        odd = [call(now_ms() - n, 7, payer=BOB, model=name) for n, name in enumerate(("=A()", "-1+A()"))]
        written(empty, [*some(), *odd])
        path = tmp_path / "ann.csv"
        words = ("export", "1001", "--format", "usage")
        assert empty.says(*words, "-o", str(path)) == f"Exported 3 calls to {path}.\n"
        rows = list(csv.DictReader(path.read_text().splitlines()))
        assert [one["dollars"] for one in rows] == ["3.400000000", "1.000000000", "0.001200000"]
        assert sum(int(one["output_tokens"]) for one in rows) == 300 + 200 + 20
        assert {(one["channel"], one["server"]) for one in rows} == {("77", "5")}
        to_stdout = empty.says("export", "user-1002", "--format", "usage", "-o", "-")
        assert "1002" not in to_stdout and "1001" not in to_stdout
        models = [one["model"] for one in csv.DictReader(to_stdout.splitlines())]
        assert models == ["local", "_A_", "_-1+A_"]

    def test_that_is_not_there_is_refused(self, empty: Shell) -> None:
        assert "`discoclaw usage --by person`" in empty.refuses("export", "1009", "--format", "usage")

    def test_is_nobodys_any_more_after_an_erasing(self, shell: Shell) -> None:
        mine = call(now_ms() - DAY, 5, payer=Payer("123", "77"), tokens=(17, 0))
        written(shell, [*some(), mine])
        shell.says("erase", "123", "--yes")
        found = json.loads(shown(shell, "--json"))
        assert [(one["key"], one["inputTokens"]) for one in found["by"]["person"]][-1] == ("1002", 70_000)
        assert (None, 17) in [(one["key"], one["inputTokens"]) for one in found["by"]["person"]]
        assert '"123"' not in next((shell.memory_folder / "usage").iterdir()).read_text()


class TestAWholeStore:
    def test_takes_its_usage_along_and_once(self, shell: Shell, tmp_path: Path) -> None:
        written(shell, some())
        shell.says("export", "--all", "-o", str(tmp_path / "all"))
        there, sqlite = Shell(tmp_path / "there"), {"DISCOCLAW_STORE": "sqlite"}
        for _ in range(2):
            there.says("import", str(tmp_path / "all"), **sqlite)
            found = json.loads(shown(there, "--json", "--since", "60d", **sqlite))
            assert found == json.loads(shown(shell, "--json", "--since", "60d"))

    def test_keeps_what_was_spent_by_somebody_erased_without_a_name(
        self, shell: Shell, tmp_path: Path
    ) -> None:
        written(shell, [*some(), call(now_ms() - DAY, 5, payer=Payer("123", "77"))])
        shell.says("export", "--all", "-o", str(tmp_path / "all"))
        there = Shell(tmp_path / "there")
        there.says("import", str(tmp_path / "all"), "--as", "123")
        there.says("erase", "123", "--yes")
        there.says("import", str(tmp_path / "all"))
        found = json.loads(shown(there, "--json", "--since", "60d"))
        assert found["total"]["calls"] == 5
        assert [one["key"] for one in found["by"]["person"]] == ["1001", None, "1002"]
