"""Personas: separate memories of one person, and how changes get from one to another.

In the history a persona is a branch. A channel may have a persona of its own; what is said there goes to it,
whichever persona is the current one.
"""

from discoclaw.bot.commands.call import Call
from discoclaw.bot.commands.history import brought
from discoclaw.core.history import MAIN, Branches
from discoclaw.core.privacy import sensitivity
from discoclaw.memory.subjects import verbs
from discoclaw.show.answer import Answer, Button, Row, Turn
from discoclaw.show.markup import name, said, words
from discoclaw.show.words import PRIVATE, count

ONLY_IN_DMS = "\n(I show and use its description in our DMs only. Its name is shown everywhere.)"
ALWAYS = "This channel always uses the persona {name}."


async def overview(call: Call) -> Answer:
    branches = await call.memory.branches(call.subject)
    counts = {one: len((await call.memory.view(call.subject, one)).active()) for one in branches.all}
    rows = []
    for one, branch in branches.all.items():
        shown = PRIVATE if branch.private and not call.in_private else said(branch.persona)
        number, about = count(counts[one], "memory"), shown if branch.persona else ""
        current = one == branches.current
        rows.append(
            Row(
                f"**{name(one)}**" + (f"\n{about}" if about else ""),
                f"{number} · current" if current else number,
                None if current else Button(f"be:{call.user_id}:{{page}}:{one}", "Switch"),
                line=f"- **{name(one)}**{' (current)' if current else ''}: {number}{about and f' – {about}'}",
            )
        )
    return Answer(
        "Your personas",
        rows,
        foot=[ALWAYS.format(name=name(call.persona_here))] if call.persona_here is not None else [],
        turn=Turn(call.user_id, "persona list"),
        page=call.page,
    )


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
    return f"\n{ALWAYS.format(name=f'`{here}`')}" if here is not None else ""


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
