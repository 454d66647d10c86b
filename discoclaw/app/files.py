"""Files that people attach, and messages that they link to: fetched and read when a message is answered."""

from typing import ClassVar

from discoclaw.app.basics import Basics
from discoclaw.app.feature import Feature
from discoclaw.bot.client import DiscoClaw
from discoclaw.bot.files.download import Download
from discoclaw.bot.files.linked import Links
from discoclaw.session.files.reading import Limits, Reader


class Files(Feature):
    """`reader` reads attached files, `linked` linked messages."""

    settings: ClassVar = ("files_enabled", "file_max_mb", "file_max_chars", "files_per_message")

    def __init__(self, basics: Basics, client: DiscoClaw) -> None:
        settings = basics.settings
        limits = Limits(
            settings.files_enabled,
            settings.file_max_mb * 1_000_000,
            settings.file_max_chars,
            settings.files_per_message,
        )
        self.reader = Reader(Download(client, settings.discord_api), limits, basics.redactor)
        self.linked = Links(client)
