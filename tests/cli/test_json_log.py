"""Log lines as JSON: one object a line, whatever is logged."""

import json
import logging
import sys
from typing import Any

from discoclaw.cli.running import JsonFormatter


def logged(*args: object, **how: Any) -> dict[str, Any]:
    """What becomes of a record."""
    record = logging.LogRecord("discoclaw.test", logging.WARNING, __file__, 1, args[0], args[1:], **how)
    line = JsonFormatter().format(record)
    assert "\n" not in line
    found: dict[str, Any] = json.loads(line)
    return found


def test_a_line_has_time_level_logger_message_and_process() -> None:
    found = logged("%s is “%s”", "it", "good\nor bad", exc_info=None)
    assert set(found) == {"time", "level", "logger", "message", "pid"}
    assert (found["level"], found["logger"], found["message"]) == (
        "WARNING",
        "discoclaw.test",
        "it is “good\nor bad”",
    )
    assert found["time"][-5] == "." and found["time"].endswith("Z")


def test_nothing_in_it_can_act_on_a_terminal_and_all_of_it_comes_back() -> None:
    said = "für\x1b[2J\x9b2J\x85\u2028\u202egnp.exe \ud83d"
    record = logging.makeLogRecord({"msg": said})
    line = JsonFormatter().format(record)
    assert "für" in line and json.loads(line)["message"] == said
    assert line.isprintable() and line.splitlines() == [line] and line.encode("utf-8")


def test_an_exception_is_in_it_and_on_the_same_line() -> None:
    try:
        raise ValueError("no")
    except ValueError:
        found = logged("it failed", exc_info=sys.exc_info())
    assert found["exception"].startswith("Traceback")
    assert found["exception"].endswith("ValueError: no")


def test_what_a_library_adds_is_kept_but_replaces_nothing() -> None:
    record = logging.makeLogRecord({"msg": "hello", "shard": 3, "where": {"a"}, "level": "mine", "pid": 0})
    found = json.loads(JsonFormatter().format(record))
    assert (found["shard"], found["where"]) == (3, "{'a'}")
    assert (found["level"], found["pid"]) == (record.levelname, record.process)
