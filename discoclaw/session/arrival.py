"""A message with everything that was decided when it arrived. It is resolved once and passed down from there.

No later step asks again who the author is, whether their words may be stored, or which persona a place has.
"""

from collections.abc import Iterator
from typing import Self

from discoclaw.core.consent import Consent, Permission
from discoclaw.core.errors import ErasedMeanwhile, LeaseLost
from discoclaw.core.message import Inbound, Place, Said, with_attachments
from discoclaw.core.policy import PlacePersonas, Policy
from discoclaw.core.processes import ALONE, Processes
from discoclaw.core.subject import BOT, group_subject, user_subject
from discoclaw.core.values import dataclass, replace
from discoclaw.memory.live import LiveConfig
from discoclaw.session.window import Window, Windows
from discoclaw.store.files import session_name
from discoclaw.store.port import CURSORS, GROUPS, LEDGERS, PROFILES, ROLLING


@dataclass(frozen=True, slots=True)
class Arrival:
    """One message of an allowed channel.

    `policy` applies to this message. `permission` says whether it may be stored, and ends when its author
    opts out or is erased. `window` belongs to its conversation. `persona` is the branch that the place
    prescribes, or None if the person may choose.
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
    """The subject whose ledger stores the author's memory."""
    in_dm: bool
    """Whether nobody but the author reads the conversation."""
    replaces: str = ""
    """The first message of an older answer that this answer is to replace."""
    processes: Processes = ALONE

    @classmethod
    def of(
        cls,
        message: Inbound,
        policy: Policy,
        permission: Permission,
        window: Window,
        persona: str | None,
        processes: Processes = ALONE,
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
            processes=processes,
        )

    async def keep(self) -> None:
        """Make sure that the message is still this process's to answer, and may still be shown to a model.

        A process that was stopped in the middle of a turn learns here what others did meanwhile: what is in
        RAM, and in a prompt made from it, is as old as the stop. While the store is in touch, nothing is
        asked. Raises LeaseLost if another process answers, and ErasedMeanwhile if its person was erased.
        """
        if self.processes.in_touch:
            return
        erased = self.permission.erased
        if not await self.processes.claim(self.message.id, texts_of(self.message)) and not self.replaces:
            raise LeaseLost(f"another process answers the message {self.message.id}")
        if self.permission.erased and not erased:
            raise ErasedMeanwhile("its person was erased before a model was asked")

    def as_edited(self) -> Self:
        """This arrival, with the newest text if the message was edited while it waited for its turn."""
        now = next((one for one in self.window.recent() if one.id == self.message.id), None)
        if now is None or not now.edited_at:
            return self
        text = now.text.removesuffix(with_attachments("", self.message.attachments)).rstrip("\n")
        return replace(self, message=replace(self.message, text=text))

    def talk_before(self) -> tuple[Said, ...]:
        """The talk before the message, oldest first; see `Window.before`."""
        return self.window.before(self.message.id, self.replaces)

    def fit(self) -> None:
        """Give the conversation's window its place, and the size that the policy asks for."""
        self.window.place = self.place
        if self.window.capacity != self.policy.capacity:
            self.window.resize(self.policy.capacity)

    def enter(self, said: Said) -> None:
        """Put the message, as a line of the talk, into its conversation's window."""
        self.fit()
        self.window.remember(said, shown=self.policy.context_history)

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
            files=message.files,
        )


class Arrivals:
    """Resolves a message once into everything that is decided when it arrives."""

    def __init__(
        self,
        live: LiveConfig,
        consent: Consent,
        windows: Windows,
        personas: PlacePersonas,
        processes: Processes = ALONE,
    ) -> None:
        self._live = live
        self._processes = processes
        self._consent = consent
        self._windows = windows
        self._personas = personas

    async def claim(self, message: Inbound) -> bool:
        """Whether this process is to handle a message. What others changed of what its turn reads is dropped.

        The one question to the store that a message costs.
        """
        return await self._processes.claim(message.id, texts_of(message))

    async def look(self, message: Inbound) -> None:
        """Drop what others changed of what a message's turn reads, without claiming the message."""
        await self._processes.look(texts_of(message))

    async def of(self, message: Inbound) -> Arrival:
        """The arrival of a message, under the current configuration."""
        await self._live.look()
        return self.under(message, self._live.policy(message.place, message.author.id))

    def window(self, session_key: str) -> Window:
        """The window of a conversation."""
        return self._windows.use(session_key)

    def under(self, message: Inbound, policy: Policy) -> Arrival:
        """The arrival of a message under a policy."""
        return Arrival.of(
            message,
            policy,
            self._consent.ask(message.author.id, message.sent_at),
            self._windows.use(message.session_key),
            self._personas.of(message.place),
            self._processes,
        )


# The names of the texts in the store that a turn reads, by which to ask whether another process changed
# one.

_EVERYBODYS = (
    "config.json",
    "signed.json",
    "tombstones.jsonl",
    "clears.jsonl",
    f"{LEDGERS}/{BOT}.jsonl",
    f"{CURSORS}/hatch-offered.json",
)
"""The texts that every turn reads: the configuration, what was erased or cleared, the bot's personality."""


def texts_of(message: Inbound) -> Iterator[str]:
    """The texts that the turn of a message reads; a process that is alone asks for none of them."""
    yield from texts_about(message.author.id)
    session, group = session_name(message.session_key), message.place.group_id
    yield from (f"{ROLLING}/{session}", f"{CURSORS}/{session}")
    yield from (
        f"{CURSORS}/{session_name(f'{kind}-{message.session_key}')}" for kind in ("summary", "people")
    )
    if group is not None:
        yield from (f"{LEDGERS}/{group_subject(group)}.jsonl", f"{GROUPS}/{group}.json")


def texts_about(user_id: str) -> Iterator[str]:
    """The texts that a command or a press of a person reads."""
    subject = user_subject(user_id)
    cursors = (f"facts-{user_id}", f"asked-{user_id}", f"hatching-{user_id}", f"access-{subject}")
    yield from _EVERYBODYS
    yield from (f"{LEDGERS}/{subject}.jsonl", f"{PROFILES}/{user_id}.json", f"choices/{user_id}.json")
    yield from (f"{CURSORS}/{session_name(name)}" for name in cursors)
