"""Whether a person is asked before something is remembered, and their answers to what waits for them."""

from discoclaw.bot.answers import Answer, Carded
from discoclaw.bot.commands.call import Call
from discoclaw.bot.proposals import card, page
from discoclaw.bot.texts import pending as texts
from discoclaw.core.view import View


async def approve(call: Call, state: str | None) -> str:
    choices = call.context.choices
    if state is not None:
        await choices.choose(call.user_id, asks_first=state == "on")
    waiting = len((await _here(call))[1].pending)
    if state is None:
        return texts.state(choices.asks_first(call.user_id, call.place), waiting)
    return texts.on(waiting) if state == "on" else texts.off(waiting)


async def pending(call: Call) -> Answer:
    branch, view = await _here(call)
    days = call.client.settings.pending_days
    text = [page(call.user_id, view, branch, in_private=call.in_private, days=days)]
    if not call.in_private:
        return text
    return Carded(card(call.user_id, view, branch, days=days, page=call.page), text)


async def _here(call: Call) -> tuple[str, View]:
    """The persona that counts here, and its view; a place's own persona begins with what is known."""
    branches = await call.memory.branches(call.subject)
    here = call.persona_here
    branch = here if here is not None and here in branches.all else branches.current
    return branch, await call.memory.view(call.subject, branch)
