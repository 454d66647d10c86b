"""Step 4 of a turn: the model streams into the reply and calls tools until it has answered, within limits."""

import asyncio
import json
from collections.abc import Callable
from contextlib import aclosing

from discoclaw.core.budgets import Less
from discoclaw.core.draft import Origin
from discoclaw.core.errors import ModelCut, ModelError
from discoclaw.core.item import Source
from discoclaw.core.model import (
    AssistantTurn,
    Finished,
    ModelRequest,
    TextDelta,
    ToolCall,
    ToolResult,
    ToolTurn,
    Unseen,
    UserTurn,
)
from discoclaw.core.ports import AnyOffer, Model, Reply
from discoclaw.core.privacy import may_show
from discoclaw.core.redact import PLAIN, Redactor
from discoclaw.core.values import dataclass, field, replace
from discoclaw.memory.people.tool_log import ToolLog
from discoclaw.session.actions import Acting, Actions
from discoclaw.session.archiving import HEADING, Archiving, section, visible_at
from discoclaw.session.compact import AnswerRules, Transcript, estimate
from discoclaw.session.meaning import Asker, Question
from discoclaw.session.prepare import Prepared
from discoclaw.session.toolbox import Speaker, TalkSearch, Toolbox, ToolContext, ToolParts, no_talk
from discoclaw.session.turn import Stoppable, Turn

LOOKING = "*looking in my memory…*"
WORKING = "*working on it…*"
"""Shown while tools run, since the person would otherwise see nothing of them."""
LOOKS = ("memory_search", "memory_recall", "memory_history")
NO_TOOLS = "there are no tools here; answer without"
WITHHELD = "(confidential)"
TAKEN_BACK = "(taken back)"
CUT_ANSWER = "\n\n*(My answer reached its length limit here. Say “go on” for the rest.)*"


@dataclass(frozen=True, slots=True)
class Answered:
    """The model's answer, the persona switches its tools proposed, and what it was not shown.

    `cut`: it would have gone on. `less`: why it isn't from the usual model, or not all of it. `failure`: what
    the model failed with after it had said this.
    """

    text: str
    offers: tuple[AnyOffer, ...] = ()
    cut: bool = False
    unseen: tuple[Unseen, ...] = ()
    less: Less | None = None
    failure: ModelError | None = None


@dataclass(slots=True)
class _Said:
    """The result of a model so far, as `Answered` has it, and the context of its tools, if it called one."""

    text: list[str] = field(default_factory=list)
    unseen: list[Unseen] = field(default_factory=list)
    less: Less | None = None
    context: ToolContext | None = None


@dataclass(slots=True, eq=False)
class Conversation:
    """Talks with `model`."""

    model: Model
    toolbox: Toolbox
    tools: ToolParts
    archive: Archiving
    tool_log: ToolLog
    actions: Actions
    rules: AnswerRules = AnswerRules()
    redactor: Redactor = PLAIN

    async def answer(self, turn: Turn, ready: Prepared, reply: Reply, ends: Stoppable) -> Answered:
        """Stream the answer into the reply, running tools as the model asks. Raises ChatError.

        Raises ModelError if the model fails before it has said anything.

        The tools work on the persona that the prompt was made for, and stay the same to the end of the turn.
        If the author wants no memory, there are none of it, but what they ask for is done in the chat. If the
        turn is stopped, this is what was said until then; a tool that works goes on by itself.
        """
        said, cut = _Said(), False
        failure: ModelError | None = None
        try:
            async with ends.part():
                cut = await self._talk(turn, ready, reply, said)
        except ModelError as error:
            if not "".join(said.text).strip():
                raise
            failure = error
        offers = () if ends.stopped or said.context is None else tuple(said.context.offers)
        text = "".join(said.text)
        return Answered(text, offers, cut or ends.stopped, tuple(said.unseen), said.less, failure)

    async def _talk(self, turn: Turn, ready: Prepared, reply: Reply, said: _Said) -> bool:
        """Let the model answer, and note in `said` what comes of it. Returns whether it was cut off."""
        prompt, text = ready.prompt, said.text
        remembers = turn.permission.holds and self.rules.remembers
        model, reads = turn.policy.model, self.rules.reads(turn.policy.model)
        acting = self.actions.of(turn)
        offered = (*(self.toolbox.offered(reads) if remembers else ()), *self.actions.offered(turn))
        request = ModelRequest(
            prompt.system,
            (UserTurn(prompt.user, media=ready.attached.media),),
            offered,
            self.rules.answer(model),
            # Without one the answer is neither taken from a cache nor put into it.
            subject=turn.subject if remembers and not turn.replaces else None,
            model=model,
            writing=not self.toolbox.tools,
        )
        transcript = Transcript(request, reads)
        loop = asyncio.get_running_loop()
        allowance = Allowance(request.max_tokens, loop.time)
        refused = False
        while True:
            if transcript.compact() and offered:
                loop.call_soon(self.rules.compacted, turn.subject)
            # When enough was called, tools are no longer allowed, so that the model has to say something.
            may_call = bool(offered) and (allowance.unused or allowance.ask(transcript.tokens))
            before = len(text)
            await turn.keep()
            finished = await self._stream(transcript.request(may_call=may_call), reply, text)
            transcript.leave_out(finished.unseen)
            said.unseen += finished.unseen
            said.less = finished.less or said.less
            if finished.stop == "length":
                if not "".join(text).strip():  # it used up all its tokens thinking
                    raise ModelCut("the answer was cut off before its first word")
                await reply.push(CUT_ANSWER)
            if finished.stop != "tools" or not finished.turn.calls:
                break
            if not may_call and (text or refused):
                break
            if not offered:  # a server that was told of no tools takes no calls and results either
                transcript.ask(NO_TOOLS)
                refused = True
                continue
            if text and not text[-1].endswith("\n"):
                text.append("\n\n")  # the texts before and after a tool call are two paragraphs
                await reply.push("\n\n")
            if may_call:
                calls = finished.turn.calls
                context = said.context = said.context or self._context(turn, ready)
                if not "".join(text[before:]).strip():
                    looks = all(call.name in LOOKS for call in calls)
                    await reply.doing(LOOKING if looks else WORKING)
                # A call runs to its end, and is recorded, even if nobody waits for it any more.
                made = (asyncio.create_task(self._call(context, acting, call, turn)) for call in calls)
                results = ToolTurn(tuple([await asyncio.shield(one) for one in made]))
            else:  # some local models call tools although they may not
                told = (ToolResult(call.id, NO_TOOLS, failed=True) for call in finished.turn.calls)
                results, refused = ToolTurn(tuple(told)), True
            if allowance.unused:  # counted late, because most answers call no tool
                allowance.ask(transcript.tokens)
            allowance.add(finished.turn, results)
            transcript.add(finished, results)
        return finished.stop == "length"

    async def _call(self, context: ToolContext, acting: Acting, call: ToolCall, turn: Turn) -> ToolResult:
        """Run a tool call, and record it if the message may be stored.

        Model output may be stored, so secrets are taken out of it first. Only the person's own information is
        recorded. An answer may also show what others said in a channel; that part stays out, since an erasing
        of those people would not find it here. An answer that may show something meant only for the person's
        direct messages is marked private. Confidential text is not recorded. Nor is an answer with what the
        person took back: it may be the answer to that very request.
        """
        call = replace(call, input=self.redactor.value(call.input))
        result = await (acting.call(call) if acting.takes(call) else self.toolbox.call(context, call))
        if not turn.permission.holds:
            return result
        content, subject = result.text.partition(f"\n\n{HEADING}")[0], turn.subject
        branches = self.tools.memory.branches_in_ram(subject)
        names = branches.all if branches is not None else ()
        views = [view for one in names if (view := self.tools.memory.view_in_ram(subject, one)) is not None]
        items = (item for view in views for item in view.items.values())
        shown = [item for item in items if item.text in content and not may_show(item, in_dm=False)]
        taken_back = (one for view in views for one in view.purges(subject))
        if not all(may_show(item, in_dm=True) for item in shown):
            content = WITHHELD
        elif any(one.words.hold(content) for one in taken_back if not (one.open_only and turn.place.private)):
            content = TAKEN_BACK
        self.tool_log.note(
            subject,
            tool=call.name,
            ok=not result.failed,
            content=content,
            channel=turn.place.channel_id,
            session=turn.session_key,
            private=turn.place.private or branches is None or bool(shown),
            said_at=turn.message.sent_at,
        )
        return result

    async def _stream(self, request: ModelRequest, reply: Reply, text: list[str]) -> Finished:
        finished: Finished | None = None
        before = len(text)
        async with aclosing(self.model.stream(request)) as events:
            async for event in events:
                if isinstance(event, TextDelta):
                    if event.instead:
                        del text[before:]
                        await reply.retract("".join(text))
                    text += [event.text] if event.text else []
                    await reply.push(event.text)
                else:
                    finished = event
        if finished is None:
            raise ModelError("the model's stream ended without an end")
        return finished

    def _context(self, turn: Turn, ready: Prepared) -> ToolContext:
        """The context that the tools of this turn work with."""
        place, message = turn.place, turn.message
        origin = Origin(
            "inferred",
            Source("discord", place.channel_id, message.id),
            said_at=message.sent_at,
            private=place.private,
            evidence="asked for during a talk",
            dm_privacy=turn.policy.dm_privacy,
            asked=True,
            needs_yes=self.tools.choices.asks_first(message.author.id, place),
        )
        branch = ready.gathered.items.branch
        there = "" if place.kind == "dm" else place.channel_id
        speaker = Speaker(turn.permission, turn.in_dm, origin, turn.persona, branch, message.text, there)
        names = self.tools.search.names_in(turn)
        talk = self._talk_search(turn)
        return ToolContext(self.tools, speaker, ready.selection.short_ids(), talk, names)

    def _talk_search(self, turn: Turn) -> TalkSearch:
        """The search that the model may use for earlier talk in this place."""
        archive, place, message = self.archive, turn.place, turn.message
        if not archive.on(place):
            return no_talk

        async def search(query: str, limit: int, question: Question | None) -> str:
            seen = {message.id, *(said.id for said in turn.window.recent())}
            visible = visible_at(place, message.author.id)
            by = Asker(message.author.id, place.private, question)
            found = await archive.search(query, visible, limit=limit, without=seen, by=by)
            return section(found, place)

        return search


# ---------------------------------------------------------------------- how many tools

MOST_TOKENS = 1_000_000
"""Tokens of all requests of one answer: what eight requests of a full context (128,000) take."""
MOST_SECONDS = 300.0
"""How long an answer may go on calling tools."""
MOST_ROUNDS = 60
MOST_REPEATED = 3
"""Rounds in which every call and its result were the same as earlier ones: a model that loops."""


class Allowance:
    """Spending of one answer on tools, and its limits. `now` returns seconds from any starting point.

    `answer_tokens`: the length of an answer. A model that has written so much between its calls is done.
    """

    def __init__(self, answer_tokens: int, now: Callable[[], float]) -> None:
        self._text_left = float(answer_tokens)
        self._tokens_left = float(MOST_TOKENS)
        self._rounds_left = MOST_ROUNDS
        self._repeats_left = MOST_REPEATED
        self._now = now
        self._until = now() + MOST_SECONDS
        self._seen: set[tuple[str, str, str]] = set()

    @property
    def unused(self) -> bool:
        """Whether no tool was called yet."""
        return self._rounds_left == MOST_ROUNDS

    def ask(self, tokens: float) -> bool:
        """Count a request of so many tokens. Returns whether it may still call tools."""
        self._tokens_left -= tokens
        left = (self._tokens_left, self._text_left, self._rounds_left, self._repeats_left)
        return min(left) > 0 and self._now() < self._until

    def add(self, turn: AssistantTurn, results: ToolTurn) -> None:
        """Count a round: what the model wrote, its calls, and what they brought."""
        self._rounds_left -= 1
        self._text_left -= estimate(turn.text)
        made = {
            (call.name, json.dumps(call.input, sort_keys=True, default=str), result.text)
            for call, result in zip(turn.calls, results.results, strict=True)
        }
        if made <= self._seen:
            self._repeats_left -= 1
        self._seen |= made
