"""PostgreSQL's errors as ours: one sentence that names the thing, the reason and the way out.

A failed connection has no SQLSTATE, so its reason is found in the server's words. No text shows the password.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

from discoclaw.core.errors import LeaseLost

LOST = "ZL001"
"""The SQLSTATE that the function `fence` raises."""
REPEATED = frozenset({"40001", "40P01"})
"""SQLSTATEs after which the same transaction may succeed: it lost against another one."""

_STATES = {
    "22021": "a name holds a character that a database cannot store",
    "25006": "the database only takes reads; use the primary server (target_session_attrs=read-write), "
    "or see its default_transaction_read_only",
    "25P03": "the transaction took too long, so the server ended it",
    "42501": "a right is missing; let this user own the database (ALTER DATABASE … OWNER TO …)",
    "42P07": "it has a table of another program; create a database for DiscoClaw alone",
    "53100": "the disk of the database server is full; free some space there",
    "53200": "the database server is out of memory",
    "53300": "the database server has no connection left; raise its max_connections",
    "55P03": "another process holds what is to be written, and doesn't let go",
    "57014": "the database server took too long",
    "57P01": "the database server is being shut down",
    "57P02": "the database server is restarting after a crash",
    "57P03": "the database server is starting or stopping",
    "58030": "the disk of the database server fails",
    "XX001": "a table of the database is damaged; restore a backup",
    "XX002": "an index of the database is damaged; rebuild it (REINDEX DATABASE)",
}
_WORDS = (
    ("password authentication failed", "the password or the user is wrong; see DISCOCLAW_STORE"),
    ("no password supplied", "it wants a password; put one into DISCOCLAW_STORE (user:password@host)"),
    ("no encryption", "it accepts no connection without encryption; add ?sslmode=require to DISCOCLAW_STORE"),
    ("SSL off", "it accepts no connection without encryption; add ?sslmode=require to DISCOCLAW_STORE"),
    ("does not support SSL", "it offers no encryption, which sslmode asks for; enable ssl on the server"),
    ("no pg_hba.conf entry", "it accepts no connection from here; add a line to its pg_hba.conf"),
    ("certificate", "its certificate is not accepted; see sslmode and sslrootcert"),
    ("too many clients", _STATES["53300"]),
    ("remaining connection slots", _STATES["53300"]),
    ("too many connections", _STATES["53300"]),
    ("is starting up", _STATES["57P03"]),
    ("is shutting down", _STATES["57P03"]),
    ("in recovery mode", _STATES["57P02"]),
    ("not yet accepting", _STATES["57P03"]),
    ("translate host name", "its host name is unknown; see DISCOCLAW_STORE"),
    ("resolve host", "its host name is unknown; see DISCOCLAW_STORE"),
    ("Connection refused", "nothing listens there; start the database server, or see DISCOCLAW_STORE"),
    ("closed the connection unexpectedly", "it closes new connections; see whether the database server runs"),
    ("timeout", "it doesn't answer"),
    ("timed out", "it doesn't answer"),
)
_MISSING = re.compile(r'(database|role) "([^"]*)" does not exist')


class Silent(psycopg.OperationalError):
    """The server said nothing for too long."""


class Full(OSError):
    """The server takes no more connections."""


class Unsure(OSError):
    """The connection broke off while the transaction was being committed: it may be written or not."""


def is_lost(error: BaseException) -> bool:
    """Whether an error means that the connection is gone, rather than that the server said no."""
    if not isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
        return False
    return error.sqlstate is None or error.sqlstate[:3] in ("57P", "25P") or error.sqlstate[:2] == "08"


@contextmanager
def as_ours(where: str) -> Iterator[None]:
    """Convert psycopg's errors to OSErrors that say what to do. `where` names the database."""
    try:
        yield
    except psycopg.Error as error:
        if error.sqlstate == LOST:
            why = "another process may do this work by now"
            raise LeaseLost(f"nothing was written: {why} ({_said(error)})") from None
        reason = explained(error)
        kind = Full if reason.startswith(_STATES["53300"]) else OSError
        raise kind(f"{where}: {reason}") from None
    except UnicodeEncodeError as error:  # a name with a lone surrogate
        raise OSError(f"{where}: {_STATES['22021']} ({error})") from None


def explained(error: psycopg.Error) -> str:
    """The reason and the way out, or the server's own words."""
    said = _said(error)
    if (found := _MISSING.search(said)) is not None:
        kind, name = found.groups()
        if kind == "role":
            return f"there is no user {name!r}; create it (CREATE ROLE … LOGIN), or see DISCOCLAW_STORE"
        return f"there is no database {name!r}; create it (CREATE DATABASE …), or see DISCOCLAW_STORE"
    if (reason := _STATES.get(error.sqlstate or "")) is not None:
        return f"{reason} ({said})"
    if "No space left" in said or "File too large" in said:
        return f"{_STATES['53100']} ({said})"
    if error.sqlstate is None:
        for words, reason in _WORDS:
            if words in said:
                return f"{reason} ({said})"
    return said


def _said(error: psycopg.Error) -> str:
    """The first line of what the server said."""
    said = error.diag.message_primary or str(error)
    return (said.strip().splitlines() or [type(error).__name__])[0]
