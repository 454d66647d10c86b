"""Personas: separate memories of one person, and how changes get from one to another.

In the history a persona is a branch. A channel may have a persona of its own; what is said there goes to it,
whichever persona is the current one.
"""

from discoclaw.bot.answers import Answer, Carded
from discoclaw.bot.cards import personas as cards
from discoclaw.bot.cards.card import Turn
from discoclaw.bot.commands.call import Call
from discoclaw.bot.texts import personas as texts
from discoclaw.bot.texts.history import brought
from discoclaw.bot.texts.markup import words
from discoclaw.core.history import MAIN, Branches
from discoclaw.core.privacy import sensitivity
from discoclaw.memory.subjects import verbs

ONLY_IN_DMS = "\n(I show and use its description in our DMs only. Its name is shown everywhere.)"


async def overview(call: Call) -> Answer:
    branches = await call.memory.branches(call.subject)
    counts = {name: len((await call.memory.view(call.subject, name)).active()) for name in branches.all}
    text = texts.personas(branches, counts, in_private=call.in_private) + _here(call)
    if not call.in_private:
        return text
    turn = Turn(call.user_id, "persona list")
    return Carded(cards.overview(branches, counts, turn, always=call.persona_here, page=call.page), text)


async def switch(call: Call, name: str) -> str:
    before = await call.memory.branches(call.subject)
    after = await verbs.switch(call.memory, call.subject, name, said_at=call.asked_at, **call.metadata)
    if after.current == before.current:
        return f"`{after.current}` is your persona already.{_here(call)}"
    return f"Your persona is now `{after.current}`, everywhere.{_about(call, after)}{_here(call)}"


async def create(call: Call, name: str, description: str | None) -> str:
    before = await call.memory.branches(call.subject)
    here = call.persona_here
    about = call.client.redactor.clean(description or "")
    secret = bool(about) and _is_private(call, about)
    after = await verbs.create_branch(
        call.memory,
        call.subject,
        name,
        about,
        start=here if here is None or here in before.all else MAIN,
        **call.metadata,
        **({"private": True} if secret else {}),
    )
    (made,) = after.all.keys() - before.all.keys()
    return (
        f"Created the persona `{made}`. It knows what `{here or before.current}` knows now. "
        f"To switch to it, use `!memory persona switch {made}`.{ONLY_IN_DMS if secret else ''}"
    )


async def delete(call: Call, name: str) -> str:
    gone = (await call.memory.branches(call.subject)).named(name).name
    await verbs.delete_branch(call.memory, call.subject, gone, **call.metadata)
    return (
        f"Deleted the persona `{gone}`. Its changes stay in your history; "
        "`!memory persona copy <change>` brings one back."
    )


async def merge(call: Call, name: str) -> str:
    into = call.persona(await call.memory.branches(call.subject))
    done = await verbs.merge(call.memory, call.subject, name, call.origin(), branch=into, **call.metadata)
    return brought(done, in_private=call.in_private)


async def copy(call: Call, change: str) -> str:
    onto = call.persona(await call.memory.branches(call.subject))
    done = await verbs.cherry_pick(
        call.memory, call.subject, change, call.origin(), branch=onto, **call.metadata
    )
    return brought(done, in_private=call.in_private)


async def autoswitch(call: Call, state: str) -> str:
    await call.context.choices.choose(call.user_id, auto_switch=state == "on")
    if state == "on":
        return "From now on I switch your persona by myself when we talk about what another one is for."
    return "From now on I ask before I switch your persona."


def _here(call: Call) -> str:
    """The answer where the place decides about the persona."""
    here = call.persona_here
    return f"\nThis channel always uses the persona `{here}`." if here is not None else ""


def _is_private(call: Call, about: str) -> bool:
    """Whether a description is for our DMs only, by the rule that holds for what is remembered."""
    return (
        sensitivity(
            "fact",
            about,
            inferred=False,
            learned_privately=call.place.private,
            marked=call.marked(about),
            rule=call.context.dm_privacy,
        )
        != "normal"
    )


def _about(call: Call, branches: Branches) -> str:
    now = branches.all[branches.current]
    visible = now.persona and (call.in_private or not now.private)
    return f" It is about: {words(now.persona)}" if visible else ""
