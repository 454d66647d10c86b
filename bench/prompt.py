"""How long what a model reads is in three typical turns, an extraction and a summary.

The bot is the whole one, with 40 memories, a summary, notes about the channel and a full window; only Discord
and the model are simulated. Tokens are estimated as the bot does it (`session/compact`), since each model's
tokenizer counts differently. Beside each figure stands how much of it comes first and is the same in the next
turn, so that a provider's cache can hold it.
"""

import json
import random
from collections.abc import AsyncGenerator

from bench.discord_payloads import connect, message_payload
from bench.figure import Figure
from bench.world import OWNER, EchoModel, fill, fresh_folder, sentence, settings_in
from discoclaw.app import build
from discoclaw.core.model import ModelRequest, Purpose, StreamEvent, UserTurn
from discoclaw.core.ports import Shape
from discoclaw.core.subject import user_subject
from discoclaw.loops.facts import BRIEF
from discoclaw.session.compact import estimate

TURNS = {
    "thanks": "thanks, that helped a lot!",
    "a question": "which editor and which keyboard did I want to try?",
    "a request": "please remember that I like short answers with an example",
}
TALK = 24
"""How many messages come before, so that the window is full and the summary is there."""


class Reader(EchoModel):
    """Keeps what it was asked, and sums talk up as a model would."""

    def __init__(self) -> None:
        super().__init__()
        self.requests: list[ModelRequest] = []
        self.loops: dict[str, tuple[str, str]] = {}

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        self.requests.append(request)
        async for event in super().stream(request):
            yield event

    async def structured(
        self, *, purpose: Purpose, system: str, prompt: str, shape: type[Shape], max_tokens: int = 2048
    ) -> Shape:
        self.loops[purpose] = (system, prompt)
        dice = random.Random(11)
        answers = {
            "summary": ". ".join(sentence(dice, 12) for _ in range(8)),
            "themes": [sentence(dice, 2) for _ in range(3)],
            "decisions": [f"We decided {sentence(dice, 6)}." for _ in range(3)],
        }
        return shape.model_validate({k: v for k, v in answers.items() if k in shape.model_fields})


async def measure() -> list[Figure]:
    """Tokens and characters of each turn."""
    model, dice = Reader(), random.Random(7)
    with fresh_folder() as folder:
        settings = settings_in(folder, allow_users=frozenset({str(OWNER)}), shutdown_grace_s=1.0)
        app = build(settings, model=model, small_model=model)
        async with app:
            await connect(app.client, lambda text: None)
            assert app.storage.memory is not None
            subject = user_subject(str(OWNER))
            await app.storage.memory.change(subject, "fill", lambda draft: fill(draft, 40, dice))
            for number, text in enumerate([sentence(dice, 12) for _ in range(TALK)] + [*TURNS.values()]):
                app.client._connection.parse_message_create(message_payload(number, text))
                await app.settle()
    found = dict(zip(TURNS, model.requests[-len(TURNS) :], strict=True))
    figures = [
        Figure(f"{name}: what the model reads", size(all_of(one)), size(first_of(one)), unit, "cacheable")
        for name, one in found.items()
        for unit, size in (("tokens", _tokens), ("chars", _chars))
    ]
    figures += [
        Figure(f"{name}: what the model reads", size([*texts]), size([texts[0]]), unit, "rules")
        for name, texts in model.loops.items()
        for unit, size in (("tokens", _tokens), ("chars", _chars))
    ]
    small = [BRIEF, *model.loops["extraction"][1:]]
    return [*figures, Figure("extraction, small", _tokens(small), _tokens(small[:1]), "tokens", "rules")]


def first_of(request: ModelRequest) -> list[str]:
    """What comes first in a request, and is the same in the next turn: tools and system prompt."""
    tools = [json.dumps([one.name, one.description, one.schema]) for one in request.tools]
    return [*tools, *(block.text for block in request.system)]


def all_of(request: ModelRequest) -> list[str]:
    """Everything in a turn's first request."""
    return [*first_of(request), *(turn.text for turn in request.turns if isinstance(turn, UserTurn))]


def _tokens(texts: list[str]) -> float:
    return sum(map(estimate, texts))


def _chars(texts: list[str]) -> float:
    return float(sum(map(len, texts)))
