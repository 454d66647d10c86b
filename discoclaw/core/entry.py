"""An entry is one message of a conversation, as the archive keeps it. A value; knows nothing of databases."""

from dataclasses import dataclass

from discoclaw.core.consent import Consent


@dataclass(frozen=True, slots=True)
class Entry:
    """One archived message.

    `id` and the other ids are Discord's; `group_id` is the channel (a thread's parent; a private thread is
    its own, since its parent's people can not read it), None in a DM;
    `guild_id` the server, None in a DM. `name` is who said it, as it was shown then; `sent_at` is in ms.
    `by_us`: the bot said it, and then `to_id` is the person it answered.
    """

    id: str
    session_key: str
    channel_id: str
    group_id: str | None
    guild_id: str | None
    author_id: str
    name: str
    text: str
    sent_at: int
    by_us: bool = False
    to_id: str = ""

    def allowed(self, consent: Consent) -> bool:
        """Whether it may be kept, and shown: whoever said it, or was answered, is known and agrees."""
        person = self.to_id if self.by_us else self.author_id
        return bool(person) and consent.may_keep(person, self.sent_at)
