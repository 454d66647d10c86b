"""`memory get`, `set` and `list`: the records of people and of channels, and notes in them."""

import asyncio
import hashlib
import json
from typing import Any

import pytest

from discoclaw.memory.stores import Store, disks
from discoclaw.memory.subjects.store import Memory
from discoclaw.nostr.event import Keys
from discoclaw.store.port import GROUPS, PROFILES
from tests.cli.shell import Shell
from tests.memory.kit import ANN, Clock, fingerprint, remember

PROFILE = {
    "display_names": [["Ann", 1770000000], ["Annie", 1770100000]],
    "first_seen": 1770000000,
    "notes": ["what the ledger said once"],
    "preferences": {},
    "x_more": "kept",
}
CARL = {"display_names": [["Carl", 1770000000]], "first_seen": 1770000000, "notes": [], "preferences": {}}
GROUP = {
    "purpose": "All about boats",
    "members": [["123", "Ann"], ["456", "Bob"]],
    "themes": [],
    "decisions": [],
}


def keep_records(shell: Shell, store: Store = "files") -> None:
    """Records of Ann, of Carl of whom nothing else is known, and of a channel."""
    disk = disks(store, shell.memory_folder).used
    for folder, name, value in ((PROFILES, "123", PROFILE), (PROFILES, "789", CARL), (GROUPS, "7", GROUP)):
        disk.documents(folder).write(f"{name}.json", json.dumps(value).encode())
    disk.close()


@pytest.fixture
def known(shell: Shell) -> Shell:
    keep_records(shell)
    return shell


def record(shell: Shell, folder: str, name: str) -> Any:
    return json.loads((shell.memory_folder / folder / f"{name}.json").read_bytes())


class TestGet:
    @pytest.mark.design(6, 59)
    def test_a_person_is_names_notes_preferences_and_who_owns_us(self, known: Shell) -> None:
        found = json.loads(known.says("get", "123", "--json", DISCOCLAW_OWNER_IDS="123"))
        assert found.pop("last_change").startswith("2026-02-03T")
        assert found == {
            "subject": ANN,
            "display_names": PROFILE["display_names"],
            "first_seen": 1770000000,
            "notes": ["User works at Acme."],
            "preferences": {"user-prefers-tabs-8-wide": "User prefers tabs, 8 wide."},
            "x_more": "kept",
            "is_owner": True,
            "opted_out": False,
            "branch": "main",
            "items": 2,
        }
        assert known.json("get", "456")["is_owner"] is False

    def test_for_people_it_is_lines(self, known: Shell) -> None:
        told = known.says("get", "<@123>").splitlines()
        assert told[:4] == [
            ANN,
            "display names",
            "  - Ann (2026-02-02 02:40)",
            "  - Annie (2026-02-03 06:26)",
        ]
        assert "  - User works at Acme." in told
        assert "is owner     no" in told
        assert "last change  2026-02-03 16:38" in told, "a local time, and no ISO"

    @pytest.mark.design(60)
    def test_a_channel_is_purpose_members_themes_and_decisions(self, known: Shell) -> None:
        known.says("set", "group:7", "--theme", "Boats")
        known.says("set", "group:7", "--decision", "We sail on Fridays.")
        found = known.json("get", "group:7")
        assert found == known.json("get", "group-7") == known.json("get", "<#7>")
        assert (found["subject"], found["purpose"]) == ("group-7", "All about boats")
        assert (found["members"], found["themes"]) == (GROUP["members"], ["Boats"])
        assert [text for text, _ in found["decisions"]] == ["We sail on Fridays."]
        told = known.says("get", "group:7")
        assert "purpose      All about boats" in told and "  - Ann (123)" in told

    def test_without_a_file_it_is_what_the_ledger_says(self, shell: Shell) -> None:
        assert shell.json("get", "456")["notes"] == ["User has a cat."]

    def test_somebody_unknown_is_told_as_ever_and_looking_changes_nothing(self, known: Shell) -> None:
        (known.memory_folder / "profiles" / "456.json").write_text("{")
        before = fingerprint(known.folder)
        assert known.refuses("get", "9").startswith("there is no memory of user-9; ")
        result = known.run("get", "456")
        assert "is not a record" in result.stderr and "User has a cat." in result.stdout
        assert fingerprint(known.folder) == before

    def test_what_has_no_record_is_refused(self, known: Shell) -> None:
        assert "is neither a person nor a channel" in known.refuses("get", "bot")
        assert "cannot name a memory" in known.refuses("get", "group:../x")


class TestSet:
    @pytest.mark.design(13)
    def test_a_note_is_an_item_stated_by_hand_and_stands_in_the_record(self, known: Shell) -> None:
        told = known.says("set", "123", "--note", "Prefers to be  called Annie.")
        assert told.startswith("user-123 now has the note ")
        assert told.endswith("“Prefers to be called Annie.”.\n")
        assert "Prefers to be called Annie." in known.json("get", "123")["notes"]
        saved = record(known, "profiles", "123")
        assert saved["notes"] == ["User works at Acme.", "Prefers to be called Annie."]
        assert saved["x_more"] == "kept"
        (item,) = [one for one in known.json("show", "123")["items"] if "Annie" in one["text"]]
        assert (item["author"], item["source"]) == ("stated", {"type": "manual"})
        ledger = (known.memory_folder / "ledger" / "user-123.jsonl").read_text()
        (noted,) = [one for one in ledger.splitlines() if "Annie" in one]
        assert '"category": "core"' in noted  # so it is in every prompt
        assert known.json("log", "123", "--limit", "1")[0]["metadata"]["by"] == "cli"
        assert "already had the note" in known.says("set", "123", "--note", "Prefers to be called Annie.")
        known.says("undo", "123")
        assert "Prefers to be called Annie." not in known.json("get", "123")["notes"]

    def test_a_channels_themes_and_decisions_stand_in_its_file(self, known: Shell) -> None:
        known.says("set", "group:7", "--theme", "Boats")
        saved = record(known, "groups", "7")
        assert (saved["themes"], saved["members"]) == (["Boats"], GROUP["members"])

    def test_of_whom_there_is_only_a_record_notes_can_be_made(self, known: Shell) -> None:
        known.says("set", "789", "--note", "Sings.")
        assert record(known, "profiles", "789")["notes"] == ["Sings."]

    def test_what_makes_no_sense_is_refused_and_nothing_changes(self, known: Shell) -> None:
        before = fingerprint(known.memory_folder / "ledger")
        for words, told in (
            (["124", "--note", "x"], "did you mean user-123?"),
            (["group:8", "--theme", "x"], "there is no memory of group-8"),
            (["group:7", "--note", "x"], "use --theme or --decision"),
            (["123", "--decision", "x"], "user-123 has no decisions; use --note"),
            (["bot", "--note", "x"], "it has no record"),
            (["123", "--note", "x" * 1001], "at most 1000 characters"),
        ):
            assert told in known.refuses("set", *words)
        assert fingerprint(known.memory_folder / "ledger") == before

    def test_one_thing_is_said_at_a_time(self, known: Shell) -> None:
        for words in (["123"], ["123", "--note", ""], ["123", "--note", "a", "--theme", "b"]):
            assert known.run("set", *words).exit_code == 2

    def test_while_the_bot_runs_it_is_refused(self, known: Shell) -> None:
        bot = Memory(known.memory_folder, clock=Clock())
        bot.open()
        try:
            assert " is in use by " in known.refuses("set", "123", "--note", "x")
        finally:
            bot.close()

    def test_a_secret_is_left_out_ours_without_a_trace(self, known: Shell) -> None:
        keys = Keys.parse(hashlib.sha256(b"a key of ours").hexdigest())
        result = known.run("set", "123", "--note", f"Knows {keys.nsec()}", NOSTR_SECRET_KEY=keys.secret_hex())
        assert "“Knows [REDACTED key]”" in result.stdout
        assert result.stderr == "note: left out what looks like a secret key\n"


class TestList:
    @pytest.mark.design(61)
    def test_it_names_everybody_and_every_channel(self, known: Shell) -> None:
        known.says("set", "group:7", "--theme", "Boats")
        rows = {row["subject"]: row for row in known.json("list")}
        assert list(rows) == ["group-7", "user-123", "user-456", "user-789"]
        assert (rows["group-7"]["active"], rows["user-789"]["commits"]) == (1, 0)
        assert "user-789" in known.says("list")

    @pytest.mark.design(299, 300)
    def test_a_verb_about_one_person_lists_everybody_if_none_is_named(self, known: Shell) -> None:
        known.says("set", "group:7", "--theme", "Boats")
        *table, then = known.says("log").splitlines()
        rows = [[cell.strip() for cell in row.split("│")[1:-1]] for row in table if row.startswith("│")]
        assert rows[0][:-1] == ["group-7", "", "main", "1", "0", "1"]
        assert rows[1:] == [
            ["user-123", "Annie", "main", "2", "0", "8", "2026-02-03 16:38"],
            ["user-456", "", "main", "1", "0", "1", "2026-02-03 16:39"],
            ["user-789", "Carl", "main", "0", "0", "0", ""],
        ]
        assert then == "Say whose, for example: discoclaw memory log group-7"
        for verb in ("log", "branches", "show", "view", "stats"):
            assert known.json(verb) == known.json("list"), verb
        assert [row["name"] for row in known.json("log")] == ["", "Annie", "", "Carl"]
        for verb in ("branches", "show", "view", "stats", "graph"):
            assert known.says(verb).splitlines() == [*table, then.replace(" log ", f" {verb} ")]

    def test_a_graph_of_nobody_is_not_written_to_a_file(self, known: Shell) -> None:
        result = known.run("graph", "--output", str(known.folder / "graph.mmd"))
        assert result.exit_code == 2 and "name the one person" in result.stderr
        assert not (known.folder / "graph.mmd").exists()

    def test_a_verb_about_nobody_says_that_there_is_nobody(self, empty: Shell) -> None:
        assert empty.says("log") == f"Nothing is remembered in {empty.memory_folder}.\n"
        assert list(empty.folder.iterdir()) == []

    def test_the_other_verbs_know_channels_too(self, known: Shell) -> None:
        known.says("set", "group:7", "--theme", "Boats")
        assert "Boats" in known.says("show", "group:7")
        assert "noted by hand" in known.says("log", "group-7")


def test_all_of_it_works_on_the_database(empty: Shell) -> None:
    sqlite = {"DISCOCLAW_STORE": "sqlite"}

    async def live() -> None:
        memory = Memory(disks("sqlite", empty.memory_folder), clock=Clock())
        memory.open()
        await memory.change(ANN, "why", remember("User has a boat."))
        memory.close()

    asyncio.run(live())
    keep_records(empty, "sqlite")
    empty.says("set", "123", "--note", "Sings.", **sqlite)
    empty.says("set", "group:7", "--decision", "We sail.", **sqlite)
    found = json.loads(empty.says("get", "123", "--json", **sqlite))
    assert (found["notes"], found["display_names"]) == (
        ["User has a boat.", "Sings."],
        PROFILE["display_names"],
    )
    disk = disks("sqlite", empty.memory_folder).used
    assert b"We sail." in disk.documents(GROUPS).read("7.json")
    disk.close()
    told = empty.says("list", **sqlite)
    assert all(name in told for name in ("group-7", "user-123", "user-789"))
