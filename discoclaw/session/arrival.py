"""A message and everything that was decided when it arrived. It is resolved once and flows down from there.

Nothing below asks again who the author is, whether their words may be kept, or which persona a place has.
"""

from dataclasses import dataclass
from typing import Self

from discoclaw.core.consent import Permission
from discoclaw.core.message import Inbound, Place, Said, with_attachments
from discoclaw.core.policy import Policy
from discoclaw.session.window import Window


@dataclass(frozen=True, slots=True)
class Arrival:
    """One message of an allowed channel.

    `policy` is what holds for it; `permission` says whether it may be kept, and ends when its author opts out
    or is erased. `window` is its conversation's. `persona` is the branch that the place prescribes; None
    leaves it to the person.
    """

    message: Inbound
    policy: Policy
    permission: Permission
    window: Window
    persona: str | None
    # Read at every step, so they are fields and not properties.
    place: Place
    session_key: str
    subject: str
    """Whose ledger the author's memory is in."""
    in_dm: bool
    """Whether only the author reads along."""

    @classmethod
    def of(
        cls, message: Inbound, policy: Policy, permission: Permission, window: Window, persona: str | None
    ) -> Self:
        """The arrival of a message."""
        place = message.place
        return cls(
            message,
            policy,
            permission,
            window,
            persona,
            place,
            message.session_key,
            permission.subject,
            place.kind == "dm",
        )

    def said(self) -> Said:
        """The message as a line of the talk."""
        message, author = self.message, self.message.author
        return Said(
            id=message.id,
            author_id=author.id,
            name=author.name,
            text=with_attachments(message.text, message.attachments),
            sent_at=message.sent_at,
            is_owner=author.is_owner,
            guest=not author.allowed,
        )
