"""One message as the archive keeps it. A value; knows nothing about databases."""

from dataclasses import dataclass

from discoclaw.core.consent import Consent


@dataclass(frozen=True, slots=True)
class Entry:
    """One archived message. All ids are Discord snowflakes as text.

    `group_id` is the channel that decides who may read it: a thread's parent, but a private thread itself,
    since people of the parent channel cannot read it. It and `guild_id` (the server) are None in a DM.
    `name` is the author's display name at the time; `sent_at` is in ms since 1970. `by_us` marks the bot's
    own messages; `to_id` is then the person it answered.
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
        """Whether it may be kept and shown: its author (or the person it answers) is known, and agrees."""
        person = self.to_id if self.by_us else self.author_id
        return bool(person) and consent.may_keep(person, self.sent_at)
