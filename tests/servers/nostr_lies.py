"""Everything that a loopback relay can do wrong, each a switch of its own."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tests.servers.nostr_rules import Event, Json


@dataclass
class Lies:
    """What is wrong with it; as it stands, nothing."""

    # what it keeps
    keeps_old: bool = False
    """Every version of a replaceable event is kept and served, as nostr-relay does."""
    keeps_ties: bool = False
    """Of two versions of one second both are kept."""
    ignores_deletions: bool = False
    revives_deleted: bool = False
    """What was deleted can be sent again."""
    loses_events: bool = False
    """Says OK, and keeps nothing."""

    # what it serves
    ignores_filters: bool = False
    leaves_out_until: bool = False
    """Events of exactly `until` are not served, as by nostr-relay."""
    ignores_limit: bool = False
    most_rows: int | None = None
    order: str = "newest"
    """newest | oldest | shuffled; oldest and shuffled hold before the rows are cut off."""
    copies: int = 1
    forges_ids: bool = False
    forges_signatures: bool = False
    adds: Sequence[Event] = ()
    """Served with every answer, whoever asked for whatever."""
    pretends_empty: bool = False
    no_eose: bool = False
    closes: str | None = None
    """Every REQ is answered by CLOSED with this reason."""
    closes_times: int | None = None
    """So often only."""
    delay_s: float = 0.0
    cuts_after_rows: int | None = None
    """After so many rows of an answer the connection breaks off within a frame."""
    cuts_times: int | None = None
    """So often only."""

    # how it takes events
    refuses: str | None = None
    """Every event is refused with this reason."""
    refuses_if: Callable[[Event], str | None] | None = None
    unnamed: bool = False
    """Refusals come with an empty id, and one after the other."""
    notices_instead: bool = False
    """Refusals come as a NOTICE, without any OK."""
    silent: bool = False
    """Events are kept and never answered."""
    limit_events: int | None = None
    """So many events of one connection are taken; "rate-limited: slow down" to the others."""
    most_content: int | None = None
    """Characters of an event's content; longer ones are invalid."""

    # who may
    auth: str | None = None
    """None, or what is only for those who proved who they are: "read", "write" or "both"."""
    auth_late: bool = False
    """The challenge comes only with the first refusal, not at once."""
    auth_after_answer: bool = False
    """It comes only after the first answer, which a stranger got."""
    auth_never_asks: bool = False
    auth_says: str = "auth-required: we only know friends"
    """How a stranger is refused."""
    auth_silent: bool = False
    """A stranger is served nothing, without a word."""
    auth_without_ok: bool = False
    auth_refused: bool = False

    # what else it sends
    greets: Sequence[str | bytes] = ()
    """Sent as they are when somebody connects; bytes as a binary message."""
    garbage: Sequence[str] = ()
    """Sent as they are before each answer."""
    notices: int = 0
    """With each answer."""
    no_pong: bool = False
    reads_nothing: bool = False
    information: Json | None = None
    """Its NIP-11 document."""
    information_raw: bytes | None = None
