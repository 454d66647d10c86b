"""The consent that everybody asks hears of choices and erasings, and permissions in use end at once."""

from pathlib import Path

import pytest

from discoclaw.core.consent import ALWAYS, NEVER
from discoclaw.core.purge import Derived, Phase, Purge
from discoclaw.core.subject import user_subject
from discoclaw.memory.erasing.tombstones import FILE, Tombstones
from discoclaw.memory.people.choices import Choices, KnownConsent
from discoclaw.memory.subjects.store import Memory
from tests.counting import Counts, counted, grown
from tests.memory.kit import ANN, NOW

ID = ANN.removeprefix("user-")


@pytest.fixture
def choices(memory: Memory, root: Path) -> Choices:
    choices = Choices(root, memory.changes)
    choices.load()
    return choices


@pytest.fixture
def consent(memory: Memory, choices: Choices) -> KnownConsent:
    consent = KnownConsent(choices, memory.tombstones)
    memory.join(consent)
    return consent


async def test_a_permission_in_use_ends_with_a_choice(choices: Choices, consent: KnownConsent) -> None:
    permission, other = consent.ask(ID, NOW), consent.ask("456", NOW)
    assert permission.holds
    await choices.choose(ID, opted_out=True)
    assert (permission.holds, permission.opted_out, other.holds) == (False, True, True)
    assert consent.cutoff(ID) == ALWAYS
    await choices.choose(ID, opted_out=False, since=NOW + 5)
    assert (permission.holds, permission.opted_out) == (False, False)
    assert consent.may_keep(ID, NOW + 6)


async def test_and_with_an_erasing_before_any_other_part_hears_of_it(
    memory: Memory, consent: KnownConsent
) -> None:
    permission, seen = consent.ask(ID, NOW), list[bool]()

    class Late(Derived):
        name = "a part that was registered later"

        def purge(self, purge: Purge, phase: Phase) -> None:
            if phase == "ram":
                seen.append(permission.erased)

    memory.join(Late())
    at = (await memory.erase(ANN)).at
    assert seen == [True]
    assert not permission.holds
    assert consent.erased_at(ID) == at
    assert consent.may_keep(ID, at + 1)
    assert consent.erased_at("456") == NEVER


async def test_another_processs_erasing_ends_permissions_at_the_cost_of_one_person(
    memory: Memory, consent: KnownConsent, root: Path
) -> None:
    elsewhere = Tombstones(root)
    elsewhere.load()
    kept, counts = [consent.ask(str(number), NOW) for number in range(100)], list[Counts]()

    async def erased(user_id: str) -> None:
        elsewhere.add(user_subject(user_id), NOW)
        memory.tombstones.catch_up()
        await consent.renewed({FILE})

    await erased("0")
    for first, last in ((100, 200), (200, 2_000)):
        kept += [consent.ask(str(number), NOW) for number in range(first, last)]
        with counted() as count:
            await erased(str(last - 1))
        counts.append(count)
    assert [one.user_id for one in kept if one.erased] == ["0", "199", "1999"]
    assert grown(*counts, most_steps=20) == {}
