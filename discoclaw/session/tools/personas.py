"""The tool for a person's personas: list them, create one, propose a switch."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from discoclaw.core.errors import Refused
from discoclaw.core.history import MAIN
from discoclaw.core.ports import Offer
from discoclaw.core.privacy import sensitivity
from discoclaw.memory.subjects import verbs
from discoclaw.session.tools.base import Name, Tool, ToolContext, ToolInput
from discoclaw.show import text as shown


class Branch(ToolInput):
    """List the person's personas (separate memories), create one, or propose a switch, which the person
    decides by a button unless they allowed it."""

    action: Literal["list", "create", "switch"]
    name: Name | None = Field(default=None, description='One word: "coding".')
    description: Annotated[str, Field(max_length=500)] = Field(
        default="", description="What a new one is for."
    )

    @model_validator(mode="after")
    def _has_a_name(self) -> Self:
        if self.action != "list" and self.name is None:
            raise ValueError(f"{self.action} needs a name")
        return self


async def branch(context: ToolContext, wanted: Branch) -> str:
    speaker = context.speaker
    branches = await context.memory.branches(speaker.subject)
    if wanted.action == "list":
        counts = {
            name: len((await context.memory.view(speaker.subject, name)).active()) for name in branches.all
        }
        return shown.branches(branches, counts, in_private=speaker.in_dm)
    name = wanted.name or ""
    if wanted.action == "create":
        start = context.branch if context.branch is None or context.branch in branches.all else MAIN
        origin = speaker.origin
        secret = sensitivity(
            "fact",
            wanted.description,
            inferred=True,
            learned_privately=origin.private,
            marked="normal",
            rule=origin.dm_privacy,
        )
        made = await verbs.create_branch(
            context.memory,
            speaker.subject,
            name,
            wanted.description,
            start=start,
            **context.why("memory_branch"),
            **({"private": True} if secret != "normal" and wanted.description else {}),
        )
        new = (made.all.keys() - branches.all.keys()).pop()
        return f"Created {new}. The current persona is still {speaker.branch or made.current}."
    to = branches.named(name).name
    if speaker.branch is not None:
        raise Refused(f"this place always uses the persona {speaker.branch!r}; elsewhere they can switch")
    if to == branches.current:
        return f"{to} is the current persona already."
    if context.choices.auto_switch(speaker.user_id):
        said_at = speaker.origin.said_at
        await verbs.switch(
            context.memory, speaker.subject, to, said_at=said_at, **context.why("memory_branch")
        )
        context.branch = to
        return f"Switched to {to}; what you were given belongs to {branches.current}."
    context.offers = [Offer(speaker.user_id, to)]
    return f"Proposed. The person gets a button to switch to {to}; nothing has changed yet."


TOOLS = (Tool("memory_branch", Branch, branch, more=True),)
