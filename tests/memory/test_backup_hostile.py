"""Files that aren't backup, no longer one, or one that wants to do harm: all are refused before any write."""

import bz2
import gzip
import io
import json
import lzma
import tarfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discoclaw.core.errors import DiscoClawError, NewerSchema, Refused
from discoclaw.core.event import encode_line
from discoclaw.memory.exchange.backup import read, read_file
from discoclaw.memory.exchange.files import MOST_ALWAYS, MOST_HEADER
from discoclaw.memory.exchange.load import load_bytes
from tests.cli.shell import Shell
from tests.memory.backups import NAME, entry, head, listing, packed
from tests.memory.kit import chain
from tests.tables import naming

LINES = b"".join(map(encode_line, chain("User likes tea", "User likes coffee")))
GOOD = entry(NAME, LINES)
SOUND = packed([head(), GOOD, listing(GOOD)])


def refused(content: bytes) -> str:
    """Why a file is refused, with every member that would have been written until then."""
    with pytest.raises(Refused) as refusal:
        read(io.BytesIO(content), "a.tar.gz")
    return str(refusal.value)


def test_a_sound_file_says_what_is_in_it() -> None:
    contents = read(io.BytesIO(SOUND), "a.tar.gz")
    assert (contents.ledgers, contents.commits, contents.damaged) == (1, 2, ())
    assert [one.name for one in contents.members] == [NAME]


def test_a_version_of_the_data_that_no_program_made() -> None:
    for data in (-1, True, "1", None):
        with naming(data):
            assert "doesn't say which version it has" in refused(
                packed([head(data=data), GOOD, listing(GOOD)])
            )


def test_choices_that_nobody_can_read() -> None:
    for text in (b"", b"{", b"[]", b"{}", b'{"version": 1, "people": {"1": {"opted_out": 3}}}'):
        with naming(text):
            chosen = entry("memory/choices.json", text)
            assert "says who opted out, makes no sense" in refused(
                packed([head(), GOOD, chosen, listing(GOOD, chosen)])
            )


def test_a_ledger_that_was_damaged_before_is_named() -> None:
    bad = entry(NAME, LINES.replace(b"tea", b"gin"))
    assert read(io.BytesIO(packed([head(), bad, listing(bad)])), "a").damaged == ("user-1",)


def test_a_name_that_is_none_of_ours() -> None:
    for name in (
        *(
            "../../etc/passwd",
            "/etc/passwd",
            "memory/../../x.json",
            "memory/ledger/../../x",
            "memory/ledger/a/b",
        ),
        *(
            "memory/.lock",
            "memory/.holder",
            "memory/ledger/.x.jsonl",
            "memory/version.json",
            "memory/memory.sqlite",
        ),
        *(
            "memory/ledger/a\nb",
            "memory/ledger/a\\b",
            "content/x.md",
            ".env",
            "nostr/key2",
            "memory/ledger",
            "x",
        ),
        *(
            "memory/ledger/" + "a" * 300,
            "memory/Other/x.json",
            "memory/outbox/x.json",
            "memory/choices/1.json",
            "nostr/relay/data.mdb",
            "C:/x",
            "memory//x.json",
        ),
    ):
        with naming(name):
            strange = entry(name, b"x")
            assert "has no name of ours" in refused(packed([head(), strange, listing(strange)]))


def test_an_entry_that_is_no_regular_file() -> None:
    for kind in (
        *(
            tarfile.SYMTYPE,
            tarfile.LNKTYPE,
            tarfile.DIRTYPE,
            tarfile.CHRTYPE,
            tarfile.BLKTYPE,
            tarfile.FIFOTYPE,
        ),
        *(tarfile.CONTTYPE, b"Z"),
    ):
        with naming(kind):
            link = entry(NAME, b"", type=kind, linkname="/etc/passwd")
            assert "isn't a regular file" in refused(packed([head(), link, listing(link)]))


@pytest.mark.parametrize(
    "says",
    [
        {"GNU.sparse.map": "no,numbers", "GNU.sparse.size": "1"},
        {"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.realsize": "none"},
    ],
)
def test_a_header_that_lies_about_a_sparse_file(says: dict[str, str]) -> None:
    info = tarfile.TarInfo("backup.json")
    info.pax_headers = says
    assert "it is damaged" in refused(packed([(info, b"{}")]))


def test_a_name_that_is_there_twice() -> None:
    assert f"{NAME} is in it twice" in refused(packed([head(), GOOD, GOOD, listing(GOOD)]))
    assert "names a file twice" in refused(packed([head(), GOOD, listing(GOOD, GOOD)]))


def test_what_does_not_add_up() -> None:
    for entries, reason in (
        ([], "isn't a backup"),
        ([GOOD, listing(GOOD)], "isn't a backup"),
        ([head(format="another"), GOOD, listing(GOOD)], "isn't a backup"),
        ([entry("backup.json", b"{"), GOOD, listing(GOOD)], "makes no sense"),
        ([entry("backup.json", b"[" * 100_000), GOOD, listing(GOOD)], "makes no sense"),
        ([head(version="1"), GOOD, listing(GOOD)], "which version"),
        ([head(at="yesterday"), GOOD, listing(GOOD)], "when it was made"),
        ([head(), GOOD], "list of contents is missing"),
        ([head(), GOOD, listing()], "doesn't name"),
        ([head(), listing(GOOD)], "not what was written"),
        ([head(), entry(NAME, LINES + b"x"), listing(GOOD)], "not what was written"),
        ([head(), GOOD, entry("members.json", b'[{"name": ["x"]}]')], "makes no sense"),
        ([head(), GOOD, entry("members.json", b'{"a": 1}')], "makes no sense"),
        ([head(), GOOD, listing(GOOD), GOOD], "goes on behind"),
    ):
        with naming(entries, reason):
            assert reason in refused(packed(entries))


def test_bytes_behind_the_end() -> None:
    assert "goes on behind its end" in refused(packed([head(), GOOD, listing(GOOD)], behind=b"more"))


def test_a_file_that_unpacks_to_far_too_much() -> None:
    bomb = entry("memory/archive.sqlite", bytes(MOST_ALWAYS + 1))
    assert "300 times its size" in refused(packed([head(), bomb, listing(bomb)]))


def test_a_header_that_never_ends() -> None:
    long = entry("x" * (MOST_HEADER + 1), b"")
    assert "a header in it is too long" in refused(packed([head(), long]))


@pytest.mark.parametrize(("field", "number"), [("version", 2), ("data", 99)])
def test_a_newer_one_is_refused_with_both_versions_before_anything_else_is_looked_at(
    field: str, number: int
) -> None:
    content = packed([head(**{field: number, "program": "9.9"}), entry("something/new", b"")])
    with pytest.raises(NewerSchema) as refusal:
        read(io.BytesIO(content), "a.tar.gz")
    told = str(refusal.value)
    assert "DiscoClaw 9.9" in told and f"version {number}" in told and "up to version 1" in told
    assert "upgrade the program" in told and "\n" not in told


def test_what_is_no_archive() -> None:
    for content in (b"", b"no gzip at all", b"\x1f\x8b", SOUND[:5], bytes(1000)):
        with naming(content):
            assert refused(content)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(DiscoClawError, match="No such file"):
        read_file(tmp_path / "none.tar.gz")


@given(st.integers(0, len(SOUND) - 1))
def test_a_file_that_was_cut_anywhere(end: int) -> None:
    assert "a.tar.gz can't be used" in refused(SOUND[:end])


@given(st.integers(10, len(SOUND) - 1), st.integers(1, 255))
def test_a_file_in_which_any_byte_was_changed(at: int, by: int) -> None:
    damaged = bytearray(SOUND)
    damaged[at] ^= by
    try:
        contents = read(io.BytesIO(bytes(damaged)), "a.tar.gz")
    except Refused:
        return
    assert json.dumps([one.sha256 for one in contents.members])
    assert contents == read(io.BytesIO(SOUND), "a.tar.gz")  # a byte that says nothing


def test_what_is_no_gzip_file_is_told_as_what_it_is(tmp_path: Path) -> None:
    shell, unpacked = Shell(tmp_path), gzip.decompress(SOUND)
    for content, kind in (
        (unpacked, "a tar file that isn't packed with gzip"),
        (bz2.compress(unpacked), "packed with bzip2"),
        (lzma.compress(unpacked), "packed with xz"),
        (b"SQLite format 3\0" + bytes(100), "a database of SQLite"),
        (b"", "empty"),
        (b"<html>", "not packed with gzip"),
    ):
        file = tmp_path / "a.tar.gz"
        file.write_bytes(content)
        assert f"a.tar.gz can't be used: it is {kind}; nothing was changed" in shell.refuses(
            "import", str(file)
        )
        if kind not in ("empty", "not packed with gzip"):
            with pytest.raises(Refused, match=rf"a\.json is {kind}, and can't be imported here"):
                load_bytes("a.json", content)
    (tmp_path / "a.tar.gz").write_text('{"format": "discoclaw-memory", "version": 1, "memories": []}')
    assert shell.says("import", str(tmp_path / "a.tar.gz"), "--as", "5") == "user-5: nothing new.\n"
