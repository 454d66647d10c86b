"""The process that opens one file: from standard input to standard output.

It answers with a line of JSON, behind which bytes follow. It knows no settings and no secrets.
"""

import contextlib
import faulthandler
import json
import os
import sys
import time

from discoclaw.session.files.refused import Refusal

PATIENCE = 3
"""How many times as long as its share of a processor the process may take in all."""
MEMORY = 2**30
"""Bytes. The largest picture that is decoded takes about half of it."""


def main(kind: str, seconds: int) -> None:
    """Open a file: as "picture", "PDF", "office", "notebook", or "text" of unknown encoding."""
    # Take no more than a share of the machine, as far as the system lets itself be told.
    # Whoever started this may be gone, and Windows has no other bound. The traceback goes nowhere.
    faulthandler.dump_traceback_later(PATIENCE * seconds + 1, exit=True)
    with contextlib.suppress(ImportError, AttributeError, ValueError, OSError):
        os.nice(5)  # replies go first
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a crash leaves no picture on the disk
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    data = sys.stdin.buffer.read()
    content = b""
    answer: dict[str, object]
    try:
        if kind == "PDF":
            from discoclaw.session.files.documents import opened_pdf

            pages, content = opened_pdf(data)
            answer = {"pages": pages}
        elif kind == "picture":
            from discoclaw.session.files.pictures import made_anew

            parts, note = made_anew(data)
            answer = {
                "parts": [(one.type, one.width, one.height, len(one.data)) for one in parts],
                "note": note,
            }
            content = b"".join(one.data for one in parts)
        else:
            text, note = _text(kind, data)
            answer, content = {"note": note}, text.encode("utf-8", "surrogatepass")
    except Refusal as refusal:
        answer = {"why": str(refusal)}
    answer["seconds"] = time.process_time()
    sys.stdout.buffer.write(json.dumps(answer).encode() + b"\n" + content)


def _text(kind: str, data: bytes) -> tuple[str, str]:
    """The text of a file, and what to tell its sender. Raises Refusal, and what broken files raise."""
    from discoclaw.session.files.documents import notebook_text, office_text
    from discoclaw.session.files.kinds import detected

    if kind == "office":
        return office_text(data)
    if kind == "notebook":
        return notebook_text(data)
    if (found := detected(data)) is None:
        from discoclaw.session.files.kinds import why_not

        raise Refusal(why_not(data))
    return found
