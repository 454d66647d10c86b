"""The conversations: from a message that arrives to the turn that answers it, through a queue."""

from typing import ClassVar, Final

from discoclaw.app.answering import Answering
from discoclaw.app.basics import Basics
from discoclaw.app.disk import OnDisk
from discoclaw.app.feature import Feature
from discoclaw.app.hearing import Hearing
from discoclaw.app.learning import Learning
from discoclaw.app.models import Models
from discoclaw.app.part import Part
from discoclaw.core.health import Finding
from discoclaw.core.ports import Threads
from discoclaw.session.arrival import Arrivals
from discoclaw.session.branching import Branching
from discoclaw.session.delivery import Delivery
from discoclaw.session.desk import Desk
from discoclaw.session.talk import Talk
from discoclaw.session.turn import Turns

BUSY_S: Final = 120.0
"""A message that has been waiting for longer is a warning: more is asked than can be answered."""


class Talking(Feature):
    """The turns, and the queue in which messages wait. `talk` is the entry point for the chat's adapter."""

    settings: ClassVar = ("concurrent_turns", "waiting_messages", "shutdown_grace_s")

    def __init__(
        self,
        basics: Basics,
        disk: OnDisk,
        models: Models,
        learning: Learning,
        hearing: Hearing,
        answering: Answering,
        threads: Threads,
    ) -> None:
        settings, storage, loops = basics.settings, disk.storage, learning.loops
        arrivals = Arrivals(storage.live, storage.consent, hearing.windows, storage.places, storage.processes)
        self.branching = Branching(arrivals, loops, models.summary, threads, basics.redactor)
        self.delivery = Delivery(
            storage.undelivered,
            hearing.inboxes,
            arrivals,
            storage.conversations.answers,
            storage.consent,
            clock=basics.clock,
        )
        turns = Turns(
            stops=hearing.stops,
            hatchery=hearing.hatchery,
            refill=hearing.refill,
            preparation=answering.preparation,
            branching=self.branching,
            conversation=answering.conversation,
            record=answering.record,
            loops=loops,
            asking=answering.asking,
            delivery=self.delivery,
        )
        desk = Desk(waiting_limit=settings.waiting_messages, running_limit=settings.concurrent_turns or 16)
        self.talk = Talk(
            arrivals,
            hearing.listener,
            hearing.inboxes,
            turns,
            desk,
            hatchery=hearing.hatchery,
            refill=hearing.refill,
            loops=loops,
            answers=storage.conversations.answers,
        )

        async def close() -> None:
            await desk.close(settings.shutdown_grace_s)
            await self.talk.refusals.close()

        self.services = (self.branching, self.delivery, Part(settling=desk.settle, closing=close))
        self.health = (lambda: [_queue(desk)],)
        self.joins = (self.talk.chosen,)


def _queue(desk: Desk) -> Finding:
    """How long messages wait. Whether an answer hangs, `jobs` says."""
    if not (waiting := desk.waiting):
        return Finding("the queue", "good", "no message waits")
    text = f"{waiting} messages wait, the first for {desk.oldest_s:.0f} s"
    if desk.oldest_s > BUSY_S:
        return Finding("the queue", "warning", text, "use a faster model, or let fewer people ask")
    return Finding("the queue", "good", text)
