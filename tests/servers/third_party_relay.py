"""A relay that others wrote: `nostr-relay` 1.14 from PyPI, as a child process with a database of its own.

    with third_party_relay(tmp_path) as url: ...

It stands for relays out there, which break NIP-01 in ways of their own: it keeps and serves older versions,
ignores deletions by `a`, leaves out events of exactly `until`, refuses with `OK ""` after a growing pause.
It starts in about two seconds, so one does for a whole module.
"""

import contextlib
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

_CONFIG = """\
storage:
  sqlalchemy.url: "sqlite+aiosqlite:///nostr.sqlite3"
  num_concurrent_reqs: 10
  num_concurrent_adds: 2
  validators:
    - nostr_relay.validators.is_not_too_large
    - nostr_relay.validators.is_signed
    - nostr_relay.validators.is_recent
verification: {{nip05_verification: disabled}}
gunicorn: {{bind: "127.0.0.1:{port}", workers: 1, loglevel: warning, graceful_timeout: 1}}
authentication: {{enabled: {auth}, relay_urls: ["ws://127.0.0.1:{port}"], actions: {{save: w, query: r}}}}
max_event_size: 131072
oldest_event: 315360000
"""


@contextlib.contextmanager
def third_party_relay(folder: Path, *, friends: Sequence[str] | None = None) -> Iterator[str]:
    """Start it, give its address, and end it. With `friends` (public keys in hex) only they may use it."""
    pytest.importorskip("nostr_relay", reason="nostr-relay cannot be installed on this Python")
    port = _free_port()
    (folder / "config.yaml").write_text(_CONFIG.format(port=port, auth=str(friends is not None).lower()))
    program = [str(Path(sys.executable).with_name("nostr-relay")), "-c", "config.yaml"]
    # Its server keeps a control socket in the home folder.
    surroundings = {**os.environ, "HOME": str(folder), "PYTHONWARNINGS": "ignore"}
    with (folder / "relay.log").open("wb") as log:
        child = subprocess.Popen(
            [*program, "serve"],
            cwd=folder,
            env=surroundings,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            _wait_until_open(port, child, folder / "relay.log")
            _befriend(folder / "nostr.sqlite3", friends or ())
            yield f"ws://127.0.0.1:{port}"
        finally:
            _end(child)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_until_open(port: int, child: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline and child.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.02)
    raise RuntimeError(f"nostr-relay did not start:\n{log.read_text()[-2000:]}")


def _befriend(database: Path, friends: Sequence[str]) -> None:
    """What its own `role set` does, which takes a second for each."""
    with contextlib.closing(sqlite3.connect(database)) as opened, opened:
        opened.executemany("INSERT INTO auth (pubkey, roles) VALUES (?, 'rw')", [(one,) for one in friends])


def _end(child: subprocess.Popen[bytes]) -> None:
    """Ask it to end. Its worker takes seconds for that, and nobody needs its database any more."""
    child.send_signal(signal.SIGTERM)
    try:
        child.wait(timeout=0.3)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()
