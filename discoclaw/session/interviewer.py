"""The model's part in an interview: it gets the transcript, shortened to fit its context, nothing else."""

import asyncio
from collections.abc import Callable
from contextlib import aclosing

from discoclaw.core.errors import ModelError
from discoclaw.core.message import Me
from discoclaw.core.model import Finished, ModelRequest, TextDelta
from discoclaw.core.ports import Model
from discoclaw.core.subject import user_subject
from discoclaw.session.compact import Transcript
from discoclaw.session.prepare import AnswerRules
from discoclaw.soul import interview as interviews
from discoclaw.soul.interview import Interview


class Interviewer:
    """The model that asks the questions. `me` is the bot.

    `rules` bound its answers and the transcript, which loses its middle when it gets too long; then it calls
    `compacted(subject)`.
    """

    def __init__(
        self,
        model: Model,
        *,
        me: Callable[[], Me],
        rules: AnswerRules,
        compacted: Callable[[str], None] = lambda subject: None,
    ) -> None:
        self.me = me
        self._model = model
        self._rules = rules
        self._compacted = compacted

    async def ask(self, asked: Interview, model: str = "") -> str:
        """The next answer of the model with this name, complete. Raises ModelError."""
        request = ModelRequest(
            interviews.system(asked, self.me().name),
            interviews.turns(asked),
            max_tokens=self._rules.answer(model),
            model=model,
        )
        transcript = Transcript(request, self._rules.reads(model))
        if transcript.compact():
            asyncio.get_running_loop().call_soon(self._compacted, user_subject(asked.human))
        text: list[str] = []
        finished: Finished | None = None
        async with aclosing(self._model.stream(transcript.request(may_call=False))) as events:
            async for event in events:
                if isinstance(event, TextDelta):
                    text = [event.text] if event.instead else [*text, event.text]
                else:
                    finished = event
        if finished is None:
            raise ModelError("the model's stream ended without an end")
        return "".join(text)
