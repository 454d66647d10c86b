"""Catching up with what was said while the bot was away."""

from typing import ClassVar

from discoclaw.app.basics import Basics
from discoclaw.app.feature import Feature
from discoclaw.app.talk import Talking
from discoclaw.bot.catch_up import Absence
from discoclaw.bot.client import DiscoClaw
from discoclaw.bot.gaps import Bounds
from discoclaw.bot.late import LateAnswers
from discoclaw.session.catch_up import CatchUp


class CatchingUp(Feature):
    """Reads missed messages after a start, and answers the questions among them."""

    settings: ClassVar = ("catch_up_hours", "catch_up_messages")

    def __init__(self, basics: Basics, client: DiscoClaw, talking: Talking) -> None:
        settings, clock = basics.settings, basics.clock
        bounds = Bounds(settings.catch_up_hours, settings.catch_up_messages)
        client.delivery = talking.delivery
        client.delivery.deliverer = LateAnswers(client)
        client.sessions.hearers.append(client.delivery)  # before what asks a model again
        self.absence = Absence(client, CatchUp(talking.talk, clock=clock), bounds, clock=clock)
        self.services = (self.absence,)
