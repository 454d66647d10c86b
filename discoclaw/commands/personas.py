"""A person's personas: separate memories of theirs, the branches of their history."""

from dataclasses import asdict

from discoclaw.commands.caller import Caller
from discoclaw.core.errors import Refused
from discoclaw.core.history import MAIN
from discoclaw.memory.subjects import verbs
from discoclaw.show import text as shown
from discoclaw.show.answer import Answer, Button, Row, Turn
from discoclaw.show.markup import NOTE, said, words
from discoclaw.show.markup import name as shown_name
from discoclaw.show.words import PRIVATE, count

ONLY_IN_DMS = "\n(I show and use its description in our DMs only. Its name is shown everywhere.)"
ALWAYS = "This channel always uses the persona {name}."


async def overview(caller: Caller) -> Answer:
    branches = await caller.branches()
    counts = {one: len((await caller.view(one)).active()) for one in branches.all}
    rows = []
    for one, branch in branches.all.items():
        told = PRIVATE if branch.private and not caller.in_private else said(branch.persona)
        number, about = count(counts[one], "memory"), told if branch.persona else ""
        current, title = one == branches.current, f"**{shown_name(one)}**"
        rows.append(
            Row(
                title + (f"\n{about}" if about else ""),
                f"{number} · current" if current else number,
                None if current else Button(f"be:{caller.user_id}:{{page}}:{one}", "Switch"),
                line=f"- {title}{' (current)' if current else ''}: {number}{about and f' – {about}'}",
            )
        )
    here = caller.persona_here
    known = [
        asdict(branch)
        | {"private": branch.private, "current": one == branches.current, "active": counts[one]}
        for one, branch in branches.all.items()
    ]
    return Answer(
        "Your personas",
        rows,
        foot=[ALWAYS.format(name=shown_name(here))] if here is not None else [],
        turn=Turn(caller.user_id, "persona list"),
        page=caller.page,
        typed=shown.branches(branches, counts),
        data={"current": branches.current, "branches": known},
    )


async def switch(caller: Caller, name: str) -> str:
    before = await caller.branches()
    at = {"said_at": caller.asked_at} if caller.asked_at else {}
    after = await verbs.switch(caller.memory, caller.subject, name, **at, **caller.metadata)
    now, same = after.all[after.current], after.current == before.current
    if caller.terminal:
        return f"{caller.subject} is {'already' if same else 'now'} on {now.name}."
    if caller.confirmed:
        if same:
            raise Refused(f"{now.name!r} is your persona already")
        return f"{NOTE}Your persona is now **{shown_name(now.name)}**."
    here = caller.persona_here
    place = f"\n{ALWAYS.format(name=f'`{here}`')}" if here is not None else ""
    if same:
        return f"`{now.name}` is your persona already.{place}"
    visible = now.persona and (caller.in_private or not now.private)
    about = f" It is about: {words(now.persona)}" if visible else ""
    return f"Your persona is now `{now.name}`, everywhere.{about}{place}"


async def create(caller: Caller, name: str, description: str | None) -> str:
    before = await caller.branches()
    here = caller.persona_here
    about, _ = caller.clean(description or "")
    secret = bool(about) and caller.hides(about)
    after = await verbs.create_branch(
        caller.memory,
        caller.subject,
        name,
        about,
        start=here if here is None or here in before.all else MAIN,
        **caller.metadata,
        **({"private": True} if secret else {}),
    )
    (made,) = after.all.keys() - before.all.keys()
    if caller.terminal:
        switch = f"`discoclaw memory checkout {caller.subject} {made}`"
        return f"Created the branch {made}. Switch to it with {switch}."
    return (
        f"Created the persona `{made}`. It knows what `{here or before.current}` knows now. "
        f"To switch to it, use `!memory persona switch {made}`.{ONLY_IN_DMS if secret else ''}"
    )


async def delete(caller: Caller, name: str) -> str:
    gone = (await caller.branches()).named(name)
    await verbs.delete_branch(caller.memory, caller.subject, gone.name, **caller.metadata)
    if caller.terminal:
        return f"Deleted {gone.name}{f', which was at {gone.head}' if gone.head is not None else ''}."
    return (
        f"Deleted the persona `{gone.name}`. Its changes stay in your history; "
        "`!memory persona copy <change>` brings one back."
    )
