"""The conversations: from a message that arrives to the turn that answers it, through a queue."""

from typing import ClassVar

from discoclaw.app.answering import Answering
from discoclaw.app.basics import Basics
from discoclaw.app.disk import OnDisk
from discoclaw.app.feature import Feature
from discoclaw.app.hearing import Hearing
from discoclaw.app.learning import Learning
from discoclaw.app.models import Models
from discoclaw.app.part import Part
from discoclaw.core.ports import Threads
from discoclaw.session.arrival import Arrivals
from discoclaw.session.branching import Branching
from discoclaw.session.desk import Desk
from discoclaw.session.talk import Talk
from discoclaw.session.turn import Turns


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
        turns = Turns(
            hatchery=hearing.hatchery,
            refill=hearing.refill,
            preparation=answering.preparation,
            branching=self.branching,
            conversation=answering.conversation,
            record=answering.record,
            loops=loops,
            asking=answering.asking,
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
        )

        async def close() -> None:
            await desk.close(settings.shutdown_grace_s)
            await self.talk.refusals.close()

        self.services = (self.branching, Part(settling=desk.settle, closing=close))
        self.joins = (self.talk.chosen,)
