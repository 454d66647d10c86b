"""Every provider of models, with a server on loopback that speaks its API, and what a sensible model says."""

import re
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from tests.servers import chat_api, messages_api
from tests.servers.chat_api import DIALECTS, ChatServer
from tests.servers.messages_api import MessagesServer

PROVIDERS = ("anthropic", *DIALECTS)
SUMMARY = {"summary": "They talk of indentation.", "themes": [], "decisions": []}


@dataclass
class Provider:
    """A provider, the server that stands for it, and the module that makes this server's answers."""

    name: str
    server: Any
    api: ModuleType

    def settings(self, address: str = "", **more: Any) -> dict[str, Any]:
        """The settings of a bot whose only provider it is."""
        at = address or self.server.base_url
        chosen = {
            "DISCOCLAW_MODEL": f"{self.name}:some-model",
            "DISCOCLAW_SUMMARY_MODEL": f"{self.name}:small-model",
            "DISCOCLAW_DURABLE_MODEL": f"{self.name}:small-model",
        }
        own: dict[str, Any] = {"anthropic": {"base_url": at}, "openai": {"openai_url": at}}
        return {**chosen, **own.get(self.name, {"model_servers": {self.name: at}}), **more}

    def answer(self, request: Any) -> Any:
        """What a sensible model says: to people, and to the loops."""
        asked = str(request.body)
        if "deprecations" in asked and not request.tools:
            line = re.search(r"(m\d+) [^\n]*?I prefer tabs", request.prompt)
            said = {"kind": "preference", "text": "User prefers tabs.", "tags": []}
            learned = [{**said, "source": line[1], "quote": "I prefer tabs"}] if line else []
            return self.api.json_answer({"upserts": learned, "deprecations": []})
        if "decisions" in asked and not request.tools:
            return self.api.json_answer(SUMMARY)
        if "have a cat" in request.prompt and not any(one[0] == "result" for one in request.talk):
            call = ("call12345", "memory_store", {"kind": "fact", "text": "User has a cat."})
            return self.api.tool_use(call)
        return self.api.text("All", " right.")


def served(name: str) -> Provider:
    """A provider by its name. Its server has to be started."""
    if name == "anthropic":
        return Provider(name, MessagesServer(), messages_api)
    return Provider(name, ChatServer(next(one for one in DIALECTS if one == name)), chat_api)
