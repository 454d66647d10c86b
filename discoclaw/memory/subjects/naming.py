"""Finds the ledgers that name messages. It reads all of them: 65 MB (1,000 ledgers) take 0.1 s."""

import re

from discoclaw.memory.disk.port import Ledgers

_SOURCE = re.compile(rb"discord:[0-9]{1,20}/([0-9]{1,20})")


def naming(ledgers: Ledgers, message_ids: frozenset[bytes]) -> list[str]:
    """The subjects whose ledgers name one of these messages. Blocking. Raises OSError."""
    found = []
    for subject, _ in ledgers.by_age():
        content = ledgers.log(subject).read()
        if any(one[1] in message_ids for one in _SOURCE.finditer(content)):
            found.append(subject)
    return found
