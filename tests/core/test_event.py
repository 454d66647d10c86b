"""Events and commits: golden ids, tampering, and lines that are not what they should be."""

import contextlib
import copy
import hashlib
import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discoclaw.core.errors import LedgerDamaged, NewerSchema, Refused
from discoclaw.core.event import Commit, Event, decode_line, encode_line
from discoclaw.core.view import fold
from tests.tables import each_row

WHEN = "2026-02-03T16:29:35.000Z"


def event(**given_fields: Any) -> Event:
    fields = {
        "event_type": "add",
        "subject": "user",
        "predicate": "prefers",
        "object": "Python",
        "timestamp": WHEN,
    }
    return Event(**{**fields, **given_fields})


def commit(*events: Event, **given_fields: Any) -> Commit:
    fields = {"branch": "main", "message": "why", "parent_id": None, "timestamp": WHEN}
    return Commit(events=events, **{**fields, **given_fields})


FULL = commit(
    event(
        scope="work/technical",
        confidence=0.75,
        source="discord:1/2",
        evidence="“I like Pythön 🐍”",
        sensitivity="private",
        parent_id="0123456789abcdef",
        ext={
            "item": {
                "id": "durable-4b684150",
                "kind": "fact",
                "text": "Pythön 🐍",
                "tags": ["py", "snake"],
                "status": "active",
                "source": {"type": "discord", "channelId": "1", "messageId": "2"},
                "createdAt": 5,
                "updatedAt": 6,
            },
            "facets": {"author": "stated", "links": ["durable-00000001"]},
            "conflict": {"text": "Rust", "reason": "said later"},
        },
    ),
    event(event_type="observe", object="tea"),
    parent_id="fedcba9876543210",
    metadata={"merge_parent": "0011223344556677", "counts": {"added": 1, "list": [1, 2]}},
)


def sha(value: object) -> str:
    """The documented hash, written down a second time."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


def sealed_event(fields: dict[str, Any]) -> dict[str, Any]:
    """An event's record with the right id and hash whatever its fields are: what a hostile replica sends."""
    body = {
        "event_type": "add",
        "subject": "user",
        "predicate": "p",
        "object": "o",
        "scope": None,
        "timestamp": WHEN,
        "confidence": 1.0,
        "source": "manual",
        "evidence": "",
        "sensitivity": "normal",
        "parent_id": None,
        "ext": {},
        **fields,
    }
    names = ["event_type", "subject", "predicate", "object", "scope", "timestamp"]
    hashed = {name: body[name] for name in names} | ({"ext": body["ext"]} if body["ext"] else {})
    body["id"] = sha(hashed)[:16]
    return body | {"hash": sha(body)}


def sealed_line(fields: dict[str, Any], events: list[dict[str, Any]]) -> bytes:
    """A commit's line with the right id and hash whatever its fields are."""
    body = {"branch": "main", "message": "", "parent_id": None, "timestamp": WHEN, "metadata": {}, **fields}
    hashed = {
        "branch": body["branch"],
        "events": sorted(one["id"] for one in events),
        "parent_id": body["parent_id"],
        "timestamp": body["timestamp"],
    }
    identity = sha(hashed)[:16]
    seal = hashed | {
        "events": [one["hash"] for one in events],
        "id": identity,
        "message": body["message"],
        "metadata": body["metadata"],
    }
    record = body | {"type": "commit", "id": identity, "events": events, "hash": sha(seal)}
    return json.dumps(record, ensure_ascii=False).encode() + b"\n"


class TestIdsArePublished:
    @pytest.mark.design(268)
    def test_every_golden_event_id_is_what_we_derive(self, ledger_vectors: dict[str, Any]) -> None:
        for case in ledger_vectors["events"]:
            fields = {name: value for name, value in case.items() if name != "id"}
            assert Event(**fields).id == case["id"]

    @pytest.mark.design(268)
    def test_every_golden_commit_id_is_what_we_derive(self, ledger_vectors: dict[str, Any]) -> None:
        events = {}
        for case in ledger_vectors["events"]:
            held = Event(**{name: value for name, value in case.items() if name != "id"})
            events[held.id] = held
        for case in ledger_vectors["commits"]:
            fields = {**case, "events": tuple(events[one] for one in case["events"]), "message": "any"}
            del fields["id"]
            assert Commit(**fields).id == case["id"]

    @each_row(
        "other",
        [
            {"confidence": 0.5},
            {"source": "discord:1/2"},
            {"evidence": "quote"},
            {"sensitivity": "private"},
            {"parent_id": "0123456789abcdef"},
            {"ext": {}},
        ],
    )
    def test_what_is_not_part_of_the_statement_is_not_part_of_the_id(self, other: dict[str, Any]) -> None:
        assert event(**other).id == event().id

    @each_row(
        "other",
        [
            {"event_type": "observe"},
            {"subject": "bot"},
            {"predicate": "likes"},
            {"object": "Rust"},
            {"scope": None},
            {"timestamp": "2026-02-03T16:29:35.001Z"},
            {"ext": {"item": {"id": "durable-00000001"}}},
        ],
    )
    def test_what_is_part_of_the_statement_makes_another_id(self, other: dict[str, Any]) -> None:
        assert event(**other).id != event().id

    def test_message_and_metadata_are_in_the_hash_but_not_in_the_id_of_a_commit(self) -> None:
        one, other = commit(event()), commit(event(), message="another", metadata={"a": 1})
        assert one.id == other.id
        assert one.hash != other.hash

    def test_the_documented_algorithm_reproduces_id_and_hash(self) -> None:
        records = [one.to_json() for one in FULL.events]
        again = [sealed_event({k: v for k, v in one.items() if k not in ("id", "hash")}) for one in records]
        assert again == records


class TestAnEventRefusesWhatItIsNot:
    @each_row("event_type", ["", "ADD", "delete", None, 5, ["add"]])
    def test_a_wrong_type_is_refused_and_the_right_ones_are_named(self, event_type: Any) -> None:
        with pytest.raises(Refused, match="add, modify, forget, observe"):
            event(event_type=event_type)

    @each_row("sensitivity", ["", "secret", "PRIVATE", None])
    def test_a_wrong_sensitivity_is_refused(self, sensitivity: Any) -> None:
        with pytest.raises(Refused, match="sensitivity"):
            event(sensitivity=sensitivity)

    @each_row("confidence", [-0.01, 1.01, float("nan"), float("inf"), -1])
    def test_a_confidence_outside_zero_to_one_is_refused(self, confidence: float) -> None:
        with pytest.raises(Refused, match="between 0 and 1"):
            event(confidence=confidence)

    @each_row(
        ("field", "value"),
        [
            *(("event_type", value) for value in ("add", "modify", "forget", "observe")),
            *(("sensitivity", value) for value in ("normal", "private", "confidential")),
            *(("confidence", value) for value in (0, 0.0, 0.5, 1, 1.0)),
            *(
                ("scope", value)
                for value in ("permanent", "session", "temporary", "work/technical", "", None)
            ),
        ],
    )
    def test_every_documented_value_is_taken_and_any_label_is_a_scope(self, field: str, value: Any) -> None:
        assert getattr(event(**{field: value}), field) == value


class TestALineComesBackAsItWasWritten:
    def test_a_full_commit_in_one_line_of_readable_utf8(self) -> None:
        line = encode_line(FULL)
        assert (line.count(b"\n"), line[-1:]) == (1, b"\n")
        assert "Pythön 🐍" in line.decode("utf-8")
        again = decode_line(line)
        assert again == FULL
        assert encode_line(again) == line

    @given(
        st.lists(
            st.builds(
                event,
                object=st.text(max_size=20),
                subject=st.text(max_size=5),
                scope=st.none() | st.text(max_size=5),
                confidence=st.floats(0, 1),
                evidence=st.text(max_size=10),
                ext=st.just({}) | st.builds(lambda text: {"item": {"text": text}}, st.text(max_size=9)),
            ),
            max_size=4,
        ),
        st.text(max_size=10),
        st.dictionaries(st.text(max_size=5), st.none() | st.integers() | st.text(max_size=5), max_size=3),
    )
    def test_any_commit(self, events: list[Event], message: str, metadata: dict[str, Any]) -> None:
        written = commit(*events, message=message, metadata=metadata)
        line = encode_line(written)
        assert line.count(b"\n") == 1
        assert decode_line(line) == written


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every value inside a JSON value."""
    if path:
        yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in inner:
        yield from places(child, (*path, key))


def holder(record: Any, path: tuple[Any, ...]) -> Any:
    for key in path[:-1]:
        record = record[key]
    return record


RECORD: dict[str, Any] = json.loads(encode_line(FULL))
PLACES = list(places(RECORD))


def changed(value: Any) -> Any:
    """Something else of the same type."""
    match value:
        case str():
            return value[:-1] + ("0" if value[-1:] != "0" else "1")
        case bool() | None:
            return "x"
        case int() | float():
            return value / 2 + 0.125
        case list():
            return [*value, "x"]
        case _:
            return {**value, "extra": 1}


def accepts(record: Any) -> bool:
    """Whether a record is taken as a commit; any refusal but the documented ones fails the test."""
    try:
        decode_line(json.dumps(record).encode())
    except (LedgerDamaged, NewerSchema):
        return False
    return True


class TestTamperingIsFound:
    def test_the_untouched_record_is_taken(self) -> None:
        assert decode_line(json.dumps(RECORD).encode()) == FULL
        assert len(PLACES) > 60

    @each_row("path", PLACES)
    def test_a_changed_value(self, path: tuple[Any, ...]) -> None:
        record = copy.deepcopy(RECORD)
        inside = holder(record, path)
        inside[path[-1]] = changed(inside[path[-1]])
        assert not accepts(record)

    @each_row("path", PLACES)
    def test_a_value_that_was_taken_out_or_has_another_type(self, path: tuple[Any, ...]) -> None:
        record = copy.deepcopy(RECORD)
        before = holder(record, path)[path[-1]]
        for other in (None, 5, "", [], {}, True, [before]):
            if other != before:
                holder(record, path)[path[-1]] = other
                assert not accepts(record), f"{other!r} was accepted"
        del holder(record, path)[path[-1]]
        assert not accepts(record)

    @each_row("path", [("x",), ("events", 0, "x")])
    def test_a_field_that_was_put_in(self, path: tuple[Any, ...]) -> None:
        record = copy.deepcopy(RECORD)
        holder(record, path)[path[-1]] = "smuggled"
        assert not accepts(record)

    def test_events_in_another_order(self) -> None:
        record = copy.deepcopy(RECORD)
        record["events"].reverse()
        assert not accepts(record)

    def test_an_event_of_another_commit(self) -> None:
        record = copy.deepcopy(RECORD)
        record["events"][1] = event(object="coffee").to_json()
        assert not accepts(record)

    def test_the_reason_names_the_record(self) -> None:
        record = copy.deepcopy(RECORD)
        record["message"] = "a lie"
        with pytest.raises(LedgerDamaged, match=FULL.id):
            decode_line(json.dumps(record).encode())


MALFORMED = [
    b"",
    b"\n",
    b"{",
    b"null",
    b"5",
    b'"commit"',
    b"[]",
    b"{}",
    b'{"type": "commit"}',
    b'{"type": "commit", "events": 5}',
    b'{"type": "commit", "events": ["a"]}',
    b'{"type": "commit", "events": [null]}',
    b'{"type": "commit", "events": {"a": 1}}',
    b"\xff\xfe\x00",
    b"\x00\x00\x00\x00",
    b"[" * 100_000,
    b'{"a":' * 5_000,
    b"9" * 10_000,
    b"NaN",
    encode_line(FULL)[:-20],
    encode_line(FULL)[1:],
    encode_line(FULL) * 2,
    encode_line(FULL).replace(b"Pyth", b"\xff"),
]


class TestAMalformedLineIsDamage:
    @each_row("line", MALFORMED)
    def test_what_is_no_commit(self, line: bytes) -> None:
        with pytest.raises(LedgerDamaged, match=r"\w"):
            decode_line(line)

    @each_row("kind", ["head", "branch", "commit2", ""])
    def test_a_kind_of_line_from_the_future_is_named_as_such(self, kind: str) -> None:
        with pytest.raises(NewerSchema, match="does not know"):
            decode_line(json.dumps({**RECORD, "type": kind}).encode())

    @given(st.binary(max_size=60))
    def test_random_bytes(self, line: bytes) -> None:
        with pytest.raises((LedgerDamaged, NewerSchema)):
            decode_line(line)

    @given(st.data())
    def test_a_good_line_with_a_few_bytes_changed(self, data: st.DataObject) -> None:
        line = bytearray(encode_line(FULL))
        begin = data.draw(st.integers(0, len(line) - 2))
        line[begin : begin + data.draw(st.integers(0, 4))] = data.draw(st.binary(max_size=4))
        with contextlib.suppress(LedgerDamaged, NewerSchema):
            assert decode_line(bytes(line)) == FULL

    def test_a_line_or_an_event_nested_as_deep_as_the_parser_can_go(self) -> None:
        bare, full, empty = encode_line(commit(event())), encode_line(FULL), sealed_line({}, [])
        for depth in range(900, 1010):
            nested = b'{"deep": ' + b"[" * depth + b"]" * depth
            for deep in (
                bare.replace(b'"ext": {}, ', b'"ext": ' + nested + b"}, "),
                full.replace(b'"metadata": {', b'"metadata": ' + nested + b","),
                empty.replace(b'"metadata": {', b'"metadata": ' + nested),
            ):
                with pytest.raises(LedgerDamaged):
                    decode_line(deep)


ODD = st.none() | st.booleans() | st.integers(-2, 2) | st.floats() | st.sampled_from(["", "x"]) | st.lists(
    st.integers() | st.lists(st.integers()), max_size=2
) | st.dictionaries(st.sampled_from(["id", "text", "author"]), st.integers(), max_size=2)  # fmt: skip
ITEM = st.fixed_dictionaries(
    {},
    optional={
        "id": ODD | st.just("durable-1"),
        "text": ODD | st.just("x" * 1001),
        "kind": ODD | st.just("fact"),
        "tags": ODD,
        "status": ODD | st.just("active"),
        "source": ODD,
        "createdAt": ODD,
        "updatedAt": ODD,
    },
)
FACETS = st.fixed_dictionaries({}, optional={"author": ODD, "links": ODD, "key": ODD, "category": ODD})
CONFLICT = st.fixed_dictionaries({}, optional={"text": ODD, "reason": ODD})


class TestWhatVerifiesCanBeUsed:
    """Right hashes do not make a record right: whoever writes it can hash it."""

    def use(self, line: bytes) -> None:
        """Take a line, or refuse it as damaged; what is taken can be folded and written again."""
        try:
            taken = decode_line(line)
        except (LedgerDamaged, NewerSchema):
            return
        view = fold([taken])
        json.dumps([held.to_json() for held in view.items.values()])
        assert {held.status for held in view.items.values()} <= {"active", "deprecated"}
        assert {held.facets.author for held in view.items.values()} <= {"stated", "inferred"}
        hash(tuple(view.items.values()))
        assert encode_line(decode_line(encode_line(taken))) == encode_line(taken)

    def test_records_sealed_here_are_taken_like_our_own(self) -> None:
        assert decode_line(sealed_line({}, [sealed_event({})])).events[0].object == "o"

    @each_row("name", ["branch", "message", "metadata", "timestamp", "parent_id"])
    def test_a_commit_with_a_field_of_the_wrong_type_is_damage(self, name: str) -> None:
        right = {"metadata": dict, "parent_id": (str, type(None))}.get(name, str)
        for value in (5, [], None, True, {}, "2026-02-03"):
            if not isinstance(value, right):
                with pytest.raises(LedgerDamaged):
                    decode_line(sealed_line({name: value}, [sealed_event({})]))

    @each_row(
        "name", ["subject", "predicate", "object", "scope", "source", "evidence", "parent_id", "timestamp"]
    )
    def test_an_event_with_a_field_of_the_wrong_type_is_damage(self, name: str) -> None:
        for value in (5, [], True, {}):
            with pytest.raises(LedgerDamaged):
                decode_line(sealed_line({}, [sealed_event({name: value})]))

    @each_row(
        "facets",
        [
            {"links": 5},
            {"links": [[]]},
            {"links": "ab"},
            {"author": "god"},
            {"author": []},
            {"key": []},
            {"category": {}},
        ],
    )
    def test_an_event_with_facets_that_are_none_is_damage(self, facets: dict[str, Any]) -> None:
        record = sealed_event({"ext": {"item": {"id": "durable-1", "text": "x"}, "facets": facets}})
        with pytest.raises(LedgerDamaged):
            decode_line(sealed_line({}, [record]))

    @each_row("text", ["two\nlines", "x" * 1001, "\ufeff", "\x00"])
    def test_an_event_whose_item_has_no_text_of_an_item(self, text: str) -> None:
        record = sealed_event({"ext": {"item": {"id": "durable-1", "text": text}}})
        try:
            view = fold([decode_line(sealed_line({}, [record]))])
        except LedgerDamaged:
            return
        (held,) = view.items.values()
        assert len(held.text.splitlines()) == 1
        assert 0 < len(held.text) <= 1000

    @given(
        st.fixed_dictionaries(
            {
                "ext": st.fixed_dictionaries(
                    {}, optional={"item": ITEM, "facets": FACETS, "conflict": CONFLICT}
                )
                | ODD
            },
            optional={
                "event_type": st.sampled_from(["add", "modify", "forget", "observe", "x"]),
                "subject": ODD,
                "object": ODD | st.just("x" * 1001),
                "scope": ODD,
                "confidence": ODD,
                "parent_id": ODD,
                "timestamp": ODD | st.sampled_from(["0001-01-01", "9999-12-31T23:59:59-23:59"]),
            },
        )
    )
    def test_any_record_is_damage_or_of_use(self, fields: dict[str, Any]) -> None:
        if isinstance(fields["ext"], dict):
            fields["ext"].setdefault("item", {"id": "durable-1"})
        self.use(sealed_line({}, [sealed_event({}), sealed_event(fields)]))
