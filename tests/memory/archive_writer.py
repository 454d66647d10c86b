"""A process that writes to an archive: `python -m tests.memory.archive_writer URL NUMBER FLAG MOST`.

It says "ready", then writes messages of Ann and Bob, in batches, and edits and deletes some; `MOST` batches.
From the moment on at which the file FLAG is there, Ann may not be archived.
"""

import random
import sys
from collections.abc import Iterator
from pathlib import Path

from discoclaw.core.consent import ALWAYS, NEVER, Consent
from discoclaw.search.archive import Amend, Change, Drop, Put
from discoclaw.session.archiving import words_of
from tests.memory.archives import archive_at
from tests.memory.test_archive import ANN, BOB, CANARY, said


def main(url: str, number: int, flag: Path, most: int) -> None:
    consent = Consent(lambda user: ALWAYS if user == ANN and flag.exists() else NEVER)
    archive = archive_at(url)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    for batch in _batches(number, most):
        archive.write(batch, words=words_of, consent=consent)
    archive.close()


def _batches(number: int, most: int) -> Iterator[list[Change]]:
    dice = random.Random(number)
    for batch in range(most):
        first = number * 1_000_000 + batch * 10 + 1
        changes: list[Change] = [Put(said(first, f"kept tea {first} of process{number}", BOB))]
        changes += [Put(said(first + one, f"{CANARY} {first} tea coffee")) for one in range(1, 5)]
        changes.append(Put(said(first + 5, "deleted soon", BOB)))
        changes.append(Amend(str(first - 10 + dice.randint(1, 4)), ANN, f"again {CANARY}"))
        changes.append(Drop(str(first + 5)))
        yield changes


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]), int(sys.argv[4]))
