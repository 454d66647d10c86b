"""Files that people attach, and messages that they link to: fetched and read when a message is answered."""

from typing import ClassVar

from discoclaw.app.basics import Basics
from discoclaw.app.disk import OnDisk
from discoclaw.app.feature import Feature
from discoclaw.app.models import Models
from discoclaw.bot.client import DiscoClaw
from discoclaw.bot.files.download import Download
from discoclaw.bot.files.linked import Links
from discoclaw.session.files.attaching import Attachments, Bounds
from discoclaw.session.files.reading import Limits, Reader
from discoclaw.session.files.shelf import Shelf
from discoclaw.session.refill import Refill


class Files(Feature):
    """`reader` reads attached files, `shelf` keeps them for a while, `linked` reads linked messages."""

    settings: ClassVar = (
        "files_enabled",
        "file_max_mb",
        "file_max_chars",
        "files_per_message",
        "files_kept_mb",
        "older_files",
    )

    def __init__(self, basics: Basics, disk: OnDisk, models: Models, client: DiscoClaw) -> None:
        settings = basics.settings
        limits = Limits(settings.file_max_mb * 1_000_000, settings.file_max_chars)
        self.reader = Reader(Download(client, settings.discord_api), limits, basics.redactor)
        self.shelf = Shelf(self.reader, clock=basics.clock, most=settings.files_kept_mb * 1_000_000)
        self.linked = Links(client)
        self.services = (self.shelf,)
        self.joins = (self.shelf,)
        self._consent = disk.storage.consent
        self._bounds = Bounds(
            settings.files_per_message if settings.files_enabled else 0,
            settings.older_files,
            models.reads,
        )

    def attachments(self, refill: Refill) -> Attachments:
        """The files of turns."""
        return Attachments(self.shelf, self.linked, self._consent, self._bounds, refill.usable)
