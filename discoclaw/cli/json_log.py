"""Log lines as JSON: one object a line, for programs that collect logs."""

import json
import logging
import re
from datetime import UTC, datetime
from typing import Any, Final

_KNOWN: Final = frozenset({*vars(logging.makeLogRecord({})), "message", "asctime", "taskName"})
"""The attributes of every record; others were given as `extra`."""
_TRICKY: Final = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""What would move a terminal's cursor, end a line for some programs, turn the direction of what follows, or
can't be written as UTF-8. JSON itself escapes only the control characters of ASCII."""


class JsonFormatter(logging.Formatter):
    """Time (UTC), level, logger, message and process; task, exception and extras where there are any."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as one line."""
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        found: dict[str, Any] = {
            "time": at.replace("+00:00", "Z"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            "pid": record.process,
        }
        if task := getattr(record, "taskName", None):  # known since Python 3.12
            found["task"] = task
        if record.exc_info:
            found["exception"] = self.formatException(record.exc_info)
        if record.stack_info:
            found["stack"] = self.formatStack(record.stack_info)
        found |= {name: value for name, value in vars(record).items() if name not in _KNOWN | found.keys()}
        text = json.dumps(found, ensure_ascii=False, default=str)
        return _TRICKY.sub(lambda one: f"\\u{ord(one[0]):04x}", text)
