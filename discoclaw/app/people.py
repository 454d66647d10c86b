"""What is stored about people and channels beside their ledgers, written in the background."""

from typing import ClassVar

from discoclaw.app.disk import OnDisk
from discoclaw.app.feature import Feature
from discoclaw.app.part import Part


class People(Feature):
    """Profiles, groups, the log of tool calls, and the configuration that owners change at run time."""

    settings: ClassVar = ("owners", "respond_mode", "context_history", "threads")

    def __init__(self, disk: OnDisk) -> None:
        storage, people = disk.storage, disk.storage.people
        self.services = (Part(closing=storage.live.close), people.profiles, people.groups, people.tool_log)
