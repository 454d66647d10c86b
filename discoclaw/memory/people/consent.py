"""The one `Consent` that every part asks who may be remembered: people's choices and erasings combined.

It listens to choices and erasings, so that permissions in use end at once. Independent of the parts that ask.
"""

from collections.abc import Collection

from discoclaw.core.consent import Consent
from discoclaw.core.personal import Erasure, PersonalData
from discoclaw.core.subject import user_of, user_subject
from discoclaw.memory.changes import Listener
from discoclaw.memory.erasing import tombstones
from discoclaw.memory.people.choices import Choices
from discoclaw.memory.subjects.store import Memory


class KnownConsent(Consent, PersonalData, Listener):
    """Everybody's consent, from `choices` and the erasings of `memory`. It has to be joined to `memory`."""

    name = "permissions in use"

    def __init__(self, choices: Choices, memory: Memory) -> None:
        super().__init__(choices.refused_until, lambda user_id: memory.erased_at(user_subject(user_id)))

    def chosen(self, user_id: str) -> None:
        self.changed(user_id)

    async def renewed(self, names: Collection[str]) -> None:
        """End the permissions in use of those whom another process erased."""
        if tombstones.FILE in names:
            self.all_changed()

    def forget(self, erasure: Erasure) -> None:
        if (user_id := user_of(erasure.subject)) is not None:
            self.changed(user_id)
