"""The archive of talk. It also runs where archiving is off, to remove what was stored before."""

from typing import ClassVar

from discoclaw.app.basics import Basics
from discoclaw.app.disk import OnDisk
from discoclaw.app.feature import Feature
from discoclaw.core.autosave import AutoSave
from discoclaw.session.archive_rules import Rules
from discoclaw.session.archiving import Archiving


class Archived(Feature):
    """Archives what is said where an admin turned that on; `archiving` stores and searches it."""

    settings: ClassVar = ("auto_save", "hygiene_max_age_s")

    def __init__(self, basics: Basics, disk: OnDisk) -> None:
        settings, storage = basics.settings, disk.storage
        saved = storage.places if storage.memory.disk.remembers else AutoSave()
        rules = Rules(saved, settings.hygiene_max_age_s * 1000, storage.consent)
        self.archiving = Archiving(storage.conversations.archive, rules, clock=basics.clock)
        self.services = (self.archiving,)
        self.joins = (self.archiving,)
