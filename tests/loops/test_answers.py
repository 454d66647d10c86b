"""Answers of an extraction that are wrong or half wrong, as models give them: what is learned from each.

They are recorded; see `answers`. Each comes over the real SDK from a server of the Messages API.
"""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from discoclaw.core.bot_memory import BOT, is_bot_key
from discoclaw.loops.facts import FactsLoop, FactsRules
from discoclaw.loops.heard import SPOILED, Backlog, Heard
from discoclaw.loops.traits import Traits
from discoclaw.memory.disk.cursors import Cursors
from discoclaw.memory.subjects.store import Memory
from discoclaw.models.anthropic.provider import AnthropicProvider
from tests.loops.answers import KNOWN, SEEN, TALK, as_shown, cases, know, spelled_out
from tests.servers.messages_api import MessagesServer, Received, text
from tests.session.scene import ANN, GENERAL, ME, Clock

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server() -> AsyncIterator[MessagesServer]:
    async with MessagesServer() as running:
        yield running


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def provider(server: MessagesServer) -> AsyncIterator[AnthropicProvider]:
    opened = AnthropicProvider(base_url=server.base_url, connect_timeout_s=1)
    yield opened
    await opened.close()


@pytest.mark.parametrize("case", cases(), ids=lambda case: case["name"])
async def test_only_what_is_sound_is_learned(
    tmp_path: Path, server: MessagesServer, provider: AnthropicProvider, case: dict[str, Any]
) -> None:
    memory = Memory(tmp_path, clock=Clock())
    await memory.change(f"user-{ANN.id}", "a test", know)
    raw = spelled_out(case["raw"])

    def answer(asked: Received) -> Any:
        said = as_shown(raw, asked.prompt)
        pieces = [said[at : at + 50_000] for at in range(0, len(said), 50_000)]
        return text(*pieces, stop_reason=case.get("stop", "end_turn"))

    server.default = answer
    backlog = Backlog()
    for one in TALK[SEEN:]:
        if one.author_id == ANN.id:
            backlog.hear(Heard(one, GENERAL, GENERAL.session_key(ANN.id)))
    loop = FactsLoop(
        provider.model("haiku", total_timeout_s=10),
        memory,
        Cursors(tmp_path / "cursors"),
        rules=FactsRules(),
        me=lambda: ME,
        clock=Clock(),
        traits=Traits(memory, owners=[ANN.id] if case.get("owner") else []),
    )
    waiting = dict(backlog.waiting)
    context = {GENERAL.session_key(ANN.id): TALK}
    try:
        await loop.run(ANN.id, backlog, context)
    except SPOILED:
        assert case.get("waits") and backlog.waiting == waiting
    else:
        assert not case.get("waits") and not backlog.waiting
    items = {item.text: item for item in (await memory.view(f"user-{ANN.id}")).active()}
    assert sorted(items.keys() - KNOWN) == sorted(case.get("learned", []))
    assert sorted(KNOWN - items.keys()) == sorted(case.get("gone", []))
    assert not any(item.facets.category == "core" or is_bot_key(item.facets.key) for item in items.values())
    assert not (await memory.view(BOT)).items
