"""Runs one extraction case: what was remembered, the talk, what was forgotten, and then one extraction."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from discoclaw.core.draft import Draft, Origin
from discoclaw.core.item import Facets, Source
from discoclaw.core.message import Said
from discoclaw.core.model import USUAL_READS
from discoclaw.core.ports import Model
from discoclaw.core.subject import user_subject
from discoclaw.core.times import snowflake_at
from discoclaw.core.view import View
from discoclaw.evals.case import BOT, Before, Case, PlaceName, moment
from discoclaw.evals.meter import Call, Metered
from discoclaw.evals.scene import Scene, extracting

FILLER_MS = 20_000
"""The longest between two lines of small talk."""
LATER_MS = 600_000
"""How long after the last line the extraction begins."""

SmallTalk = Sequence[Sequence[tuple[str, str]]]


def fitting(filler: SmallTalk, place: PlaceName) -> SmallTalk:
    """The small talk that can be heard in a place: in a DM there are only two who speak."""
    two = {"A", BOT}
    return [one for one in filler if place != "dm" or all(by in two for by, _ in one)]


@dataclass(frozen=True, slots=True)
class Outcome:
    """The memory before and after. `items` are the ids of the case's items, `lines` its lines by message id.

    `done`: the extraction has seen all of the person's lines.
    """

    before: View
    after: View
    items: Sequence[str]
    lines: Mapping[str, int]
    calls: Sequence[Call]
    done: bool


async def run(case: Case, model: Model, filler: SmallTalk, reads: int = USUAL_READS) -> Outcome:
    """Run a case. Returns what became of the memory; `reads` is how many tokens the model reads at once."""
    metered = Metered(model)
    async with extracting(
        metered, place=case.place, who=case.who, names=case.names, zone=case.tz, reads=reads
    ) as scene:
        memory, subject = scene.storage.memory, user_subject(scene.user_id)
        items = await _remember(scene, case)
        talk = _lines(scene, case, filler)
        forgotten = sorted(
            (moment(one.forgotten, case.tz), item)
            for one, item in zip(case.items, items, strict=True)
            if one.forgotten is not None
        )
        for said, _ in talk:
            while forgotten and forgotten[0][0] <= said.sent_at:
                await _forget(scene, *forgotten.pop(0))
            scene.hear(said)
        for at, item in forgotten:
            await _forget(scene, at, item)
        before = await memory.view(subject)
        scene.clock.at(talk[-1][0].sent_at + LATER_MS)
        scene.loops.force(scene.user_id)
        await scene.loops.settle()
        own = [said for said, _ in talk if said.author_id == scene.user_id]
        seen = await scene.storage.cursors.get(f"facts-{scene.user_id}")
        return Outcome(
            before,
            await memory.view(subject),
            items,
            {said.id: number for said, number in talk if number is not None},
            metered.calls,
            done=not metered.calls or seen.get(scene.session_key) == own[-1].id,
        )


def _lines(scene: Scene, case: Case, filler: SmallTalk) -> list[tuple[Said, int | None]]:
    """The messages in order, each with the number of the case's line; None for small talk."""
    times, said = case.times(), list[tuple[str, str, int, int | None]]()
    for number, line in enumerate(case.talk):
        said.append((line.by, line.text, times[number], number))
        last = number == len(case.talk) - 1
        share = case.filler * (number + 1) // len(case.talk) - case.filler * number // len(case.talk)
        room = FILLER_MS * (share + 1) if last else times[number + 1] - times[number]
        step = min(FILLER_MS, room // (share + 1))
        talk = [one for exchange in fitting(filler, case.place) for one in exchange]
        for place in range(share):
            by, text = talk[(number * 37 + place) % len(talk)]
            said.append((by, text, times[number] + step * (place + 1), None))
    return [(scene.said(by, text, at, place), number) for place, (by, text, at, number) in enumerate(said)]


async def _remember(scene: Scene, case: Case) -> list[str]:
    """Remember what the case says was known before. Returns the items' ids, in the case's order."""
    ids = [""] * len(case.items)
    for number, one in sorted(enumerate(case.items), key=lambda pair: moment(pair[1].at, case.tz)):
        at = moment(one.at, case.tz)
        scene.clock.at(at)
        ids[number] = await _known(scene, one, at, number)
    return ids


async def _known(scene: Scene, one: Before, at: int, number: int) -> str:
    source = Source("discord", scene.place.channel_id, str(snowflake_at(at - 1) + 1 + number))
    origin = Origin(one.author, source, said_at=at, evidence=one.text)

    def learn(draft: Draft) -> str:
        facets = Facets(key=one.key)
        item, _ = draft.upsert(one.kind, one.text, origin, marked=one.sensitivity, facets=facets)
        return item.id

    by = "command" if one.author == "stated" else "extraction"
    return await scene.storage.memory.change(user_subject(scene.user_id), "a case's item", learn, by=by)


async def _forget(scene: Scene, at: int, item_id: str) -> None:
    """Forget an item as its person would: it leaves what waits for the loops, too."""
    scene.clock.at(at)
    subject, memory = user_subject(scene.user_id), scene.storage.memory
    stated = Origin("stated", said_at=at)
    await memory.change(
        subject, "forgotten", lambda draft: draft.deprecate(draft.items[item_id], stated), by="command"
    )
    for taken in (await memory.view(subject)).purges(subject):
        scene.loops.tracks.purge(taken)
