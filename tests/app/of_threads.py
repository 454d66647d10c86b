"""Answers in a thread of their own, in channels that are set so: seen in Discord, and by the model."""

import asyncio
from typing import Any

import discord

from discoclaw.core.errors import ModelUnreachable
from discoclaw.core.ports import Shape
from tests.app.conftest import World
from tests.app.models import Scripted

QUESTION = "How do I knead a sourdough without a machine?"


class Namer(Scripted):
    """Names threads `title`, and holds that back while `wait` is not set."""

    def __init__(self, *words: Any, title: str = "Kneading sourdough by hand", **more: Any) -> None:
        super().__init__(*words, **more)
        self.title = title
        self.named: list[str] = []
        self.asked_for_name = asyncio.Event()
        self.wait = asyncio.Event()
        self.wait.set()

    async def structured(self, *, purpose: Any, prompt: str, shape: type[Shape], **more: Any) -> Shape:
        if purpose != "title":
            return await super().structured(purpose=purpose, prompt=prompt, shape=shape, **more)
        self.named.append(prompt)
        self.asked_for_name.set()
        await self.wait.wait()
        if not self.title:
            raise ModelUnreachable("no")
        return shape.model_validate({"title": self.title})


def shown(channel: Any) -> list[str]:
    """What was said in a channel, without Discord's own lines."""
    talk = (discord.MessageType.default, discord.MessageType.reply)
    return [str(message.content) for message in channel.history() if message.type in talk]


def thread_of(world: World, channel: Any) -> Any:
    (thread,) = channel.threads
    return thread
