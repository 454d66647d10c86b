"""How often `forget` ticks what a person means, by kind of request, beside the memories that have all words.

The cases are small made-up worlds (`forgetting.json`), written by somebody who had not read the program: what
is remembered, what is typed, what has to be ticked and what must not be. A third (`unseen`) was not looked at
while the rules were made, so its figure is the honest one.
With a model: the bot's own tools are asked by a script that knows what is meant, but names only what a search
has shown it. What is ticked then, in the list that the person gets, is what counts.
"""

import json
import re
from collections import defaultdict
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

from bench.discord_payloads import connect
from bench.figure import Figure
from bench.sessions import POLICY, Listener, NoPast
from bench.world import STATED, EchoModel, fresh_folder, message, settings_in
from discoclaw.app import build, now_ms
from discoclaw.core.draft import Draft
from discoclaw.core.item import KINDS, MANUAL, Facets, Item, new_item
from discoclaw.core.model import (
    AssistantTurn,
    Finished,
    ModelRequest,
    StreamEvent,
    TextDelta,
    ToolCall,
    ToolTurn,
)
from discoclaw.core.ports import AnyOffer, ChoiceOffer
from discoclaw.core.subject import user_subject
from discoclaw.core.words import terms
from discoclaw.recall.named_items import find, has_all

CASES = Path(__file__).parent / "forgetting.json"
GOAL = 75.0
"""Percent of the cases that nobody looked at, without a model."""
GOAL_WITH_MODEL = 95.0


async def measure() -> list[Figure]:
    """The shares, in percent of the cases of each kind."""
    right: dict[str, list[tuple[bool, bool]]] = defaultdict(list)
    cases = json.loads(CASES.read_text("utf-8"))
    for case in cases:
        pair = _right(case)
        right[case["kind"]].append(pair)
        right["unseen" if case["unseen"] else "seen"].append(pair)
    asked = [case for case in cases if case["gone"]]
    with_model = 100 * sum(await _proposed(asked)) / len(asked)
    name, target = "forget ticks what is meant: a model proposes", f"at least {GOAL_WITH_MODEL:.0f}"
    alone = 100 * sum(_right(case)[0] for case in asked) / len(asked)
    beside = Figure(name, with_model, alone, "%", "no model", target, with_model >= GOAL_WITH_MODEL)
    return [*(_figure(name, pairs) for name, pairs in right.items()), beside]


def _right(case: dict[str, Any]) -> tuple[bool, bool]:
    """Whether we, and the memories with all words, hit what is meant and nothing that must stay."""
    items = [_item(one, at) for at, one in enumerate(case["memories"])]
    found = find(items, case["request"])
    ours = {one.id for one in (found.meant if found.certain is None else [found.certain])}
    plain = {one.id for one in items if has_all(one, case["request"])} if terms(case["request"]) else set()
    gone, kept = ({items[at].id for at in case[part]} for part in ("gone", "kept"))
    return gone <= ours and not ours & kept, gone <= plain and not plain & kept


def _item(memory: dict[str, Any], at: int) -> Item:
    kind = memory.get("kind", "fact")
    facets = Facets(key=memory.get("key"))
    return new_item(
        kind if kind in KINDS else "fact",
        memory["text"],
        tags=memory.get("tags", ()),
        source=MANUAL,
        now_ms=at + 1,
        facets=facets,
    )


def _figure(name: str, pairs: list[tuple[bool, bool]]) -> Figure:
    ours, plain = (100 * sum(some) / len(pairs) for some in zip(*pairs, strict=True))
    target, met = (f"at least {GOAL:.0f}", ours >= GOAL) if name == "unseen" else ("", None)
    return Figure(f"forget ticks what is meant: {name}", ours, plain, "%", "all words", target, met)


# ---------------------------------------------------------------------- with a model


class Scripted(EchoModel):
    """Searches with the person's words, then for what is newest, and names what it saw of what is `meant`."""

    def __init__(self) -> None:
        super().__init__()
        self.request, self.meant = "", [""]

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        results = [one.text for turn in request.turns if isinstance(turn, ToolTurn) for one in turn.results]
        seen = dict(re.findall(r"^- \[\w+\] (.*?) \([^()]*\) \[(\w+)\]", "\n".join(results), re.M))
        named = [seen[text] for text in self.meant if text in seen]
        call: tuple[str, dict[str, object]] | None = None
        if not results:
            call = "memory_search", {"query": self.request}
        elif len(results) == 1 and len(named) < len(self.meant):
            call = "memory_search", {"query": "what there is", "limit": 50}
        elif named and not results[-1].startswith("The person is shown"):
            call = "memory_forget", {"about": "; ".join(named)}
        if call is None:
            yield TextDelta("Choose.")
            yield Finished(AssistantTurn("Choose."), "end")
        else:
            yield Finished(AssistantTurn("", (ToolCall(f"call_{len(results)}", *call),)), "tools")


class Offered(Listener):
    """Keeps what was offered."""

    offer_made: ChoiceOffer | None = None

    async def offer(self, offer: AnyOffer) -> None:
        self.offer_made = offer if isinstance(offer, ChoiceOffer) else None


async def _proposed(cases: list[dict[str, Any]]) -> list[bool]:
    """Whether each case ends right, for a person of its own."""
    model, found = Scripted(), list[bool]()
    with fresh_folder() as folder:
        settings = settings_in(folder, extraction_enabled=False)
        app = build(settings, model=model, small_model=model, history=NoPast())
        async with app:
            await connect(app.client, lambda text: None)
            assert app.storage.memory is not None
            for number, case in enumerate(cases):
                said = message(number, 0, f"Please do forget: {case['request']}", sent_at=now_ms())
                subject = user_subject(said.author.id)
                items = {one.id: one for one in map(_item, case["memories"], range(len(case["memories"])))}

                def remember(draft: Draft, items: dict[str, Item] = items) -> None:
                    for one in items.values():
                        draft.upsert(one.kind, one.text, STATED, tags=one.tags, facets=one.facets)

                await app.storage.memory.change(subject, "remember", remember)
                model.request = case["request"]
                model.meant = [case["memories"][at]["text"] for at in case["gone"]]
                reply = Offered([], number)
                assert await app.talk.turns.claim(said)
                app.talk.answer(app.talk.turns.under(said, POLICY), lambda shown, reply=reply: reply)
                await app.talk.desk.settle()
                about = reply.offer_made.about if reply.offer_made is not None else ""
                view = await app.storage.memory.view(subject)
                listed = find(view.active(), about) if about else None
                ticked = {one.text for one in listed.meant} if listed is not None else set()
                if listed is not None and listed.certain is not None:
                    ticked = {listed.certain.text}
                kept = {case["memories"][at]["text"] for at in case["kept"]}
                found.append(set(model.meant) <= ticked and not ticked & kept)
    return found
