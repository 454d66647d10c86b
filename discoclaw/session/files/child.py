"""The process that opens one picture or PDF file: from standard input to standard output.

It answers with a line of JSON, behind which a picture's bytes follow. It knows no settings and no secrets.
"""

import contextlib
import faulthandler
import json
import os
import sys

from discoclaw.session.files.refused import Refusal

PATIENCE = 3
"""How many times as long as its share of a processor the process may take in all."""
MEMORY = 2**30
"""Bytes. The largest picture that is decoded takes about half of it."""


def main(kind: str, seconds: int) -> None:
    """Open a file of a kind: "PDF", or Pillow's name of a kind of pictures."""
    _bound(seconds)
    data = sys.stdin.buffer.read()
    content = b""
    answer: dict[str, object]
    try:
        if kind == "PDF":
            from discoclaw.session.files.pdf import pages_of

            answer = {"pages": pages_of(data)}
        else:
            from discoclaw.session.files.pictures import made_anew

            made = made_anew(data, kind)
            answer, content = {"type": made.type, "width": made.width, "height": made.height}, made.data
    except Refusal as refusal:
        answer = {"why": str(refusal)}
    sys.stdout.buffer.write(json.dumps(answer).encode() + b"\n" + content)


def _bound(seconds: int) -> None:
    """Take no more than a share of the machine, as far as the system lets itself be told."""
    # Whoever started this may be gone, and Windows has no other bound. The traceback goes nowhere.
    faulthandler.dump_traceback_later(PATIENCE * seconds + 1, exit=True)
    with contextlib.suppress(ImportError, AttributeError, ValueError, OSError):
        os.nice(5)  # replies go first
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a crash leaves no picture on the disk
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
