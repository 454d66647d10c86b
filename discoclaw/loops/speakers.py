"""Who speaks in a conversation's summary: whose words it has, and the name that each has in it.

A name is the same person in every batch, also after a restart: the cursor `people-<session>` has the user ids
(`people`) and the names by id (`names`). When somebody changes their name, their lines in the summary get the
new one, and the next talk says "Samira (was Sam)". A DM needs no such record. An erasing removes the cursor
with the summary.
"""

from collections.abc import Callable, Mapping, Sequence

from discoclaw.core.consent import Consent
from discoclaw.core.errors import MemoryFault
from discoclaw.core.message import Me, Said
from discoclaw.core.subject import person_of
from discoclaw.memory.disk.cursors import Cursors
from discoclaw.memory.erasing.cursor_files import names_of, people_of
from discoclaw.prompt.recent import display_names, same_name


class Speakers:
    """The people in summaries. `consent` knows when people had their memory erased."""

    def __init__(self, cursors: Cursors, consent: Consent, me: Callable[[], Me]) -> None:
        self._cursors = cursors
        self._consent = consent
        self._me = me

    async def people(self, session_key: str) -> set[str]:
        """The user ids of the people whose words are in a conversation's summary."""
        return people_of(await self._cursors.get(_people(session_key)))

    async def names(
        self, session_key: str, said: Sequence[Said], *, goes_on: bool
    ) -> tuple[dict[str, str], dict[str, str]]:
        """A name for everybody in the summary and in these messages, by id, and for the bot.

        Before it, the names that people have in the summary, if there is one already (`goes_on`).
        """
        known = names_of(await self._cursors.get(_people(session_key))) if goes_on else {}
        return known, display_names(said, self._me(), known)

    async def note(
        self, session_key: str, people: Mapping[str, int], names: Mapping[str, str], *, goes_on: bool
    ) -> bool:
        """Record whose words the next summary has, with the time of their last erasing as its run began.

        `names` were read before the model was asked: of others, only names that are still recorded stay.
        Returns False if one of them was erased since. Raises MemoryFault when the disk fails.
        """
        if person_of(session_key) is not None:
            return True
        name, erased = _people(session_key), False

        def change(known: Mapping[str, object]) -> Mapping[str, object] | None:
            nonlocal erased
            erased = any(self._consent.erased_at(user_id) != at for user_id, at in people.items())
            everybody = sorted(people.keys() | (people_of(known) if goes_on else set()))
            here = {one for one in people if not self._consent.opted_out(one)}
            named = here | (names_of(known).keys() if goes_on else set())
            called = {user_id: names[user_id] for user_id in everybody if user_id in named & names.keys()}
            return None if erased else {"session": session_key, "people": everybody, "names": called}

        known = await self._cursors.get(name)
        if goes_on and all(names_of(known).get(one) == names.get(one) for one in people):
            return True  # the erasing finds the session, and bars summaries begun before it
        if await self._cursors.update(name, change) or erased:
            return not erased
        self._cursors.forget(name)
        raise MemoryFault(f"whose words are in the summary of {session_key} could not be noted")


def shown_names(names: Mapping[str, str], known: Mapping[str, str]) -> dict[str, str]:
    """The names as a summary's prompt has them, which says once of whoever has changed theirs."""
    was = {one: name for one, name in known.items() if one in names and not same_name(names[one], name)}
    return {one: f"{name} (was {was[one]})" if one in was else name for one, name in names.items()}


def _people(session_key: str) -> str:
    return f"people-{session_key}"
