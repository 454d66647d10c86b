"""What the offline model understands of requests to do something in the chat, in English.

It reads one sentence at the beginning of a message, and calls the tool that fits it. Whether that is done is
decided elsewhere. Knows nothing about prompts.
"""

import re
from typing import Any

_I = re.IGNORECASE | re.DOTALL
_PLEASE = r"(?:please,? |can you |could you )*"
_OR = re.compile(r",? or |, ", re.IGNORECASE)
_EVENT = re.compile(
    _PLEASE + r"(?:schedule|plan|make|create) an event (?:on )?(?P<day>\d{4}-\d\d-\d\d),? (?:at )?"
    r"(?P<time>\d\d:\d\d): (?P<text>.+)",
    _I,
)
_SIMPLE: tuple[tuple[str, re.Pattern[str]], ...] = (
    (
        "thread",
        re.compile(_PLEASE + r"(?:open|start|make|create) a thread (?:about|called) (?P<text>.+)", _I),
    ),
    ("reaction", re.compile(_PLEASE + r"react (?:to this |to that )?with (?P<text>\S+)", _I)),
    ("pin", re.compile(_PLEASE + r"pin (?:this|that|it)\b", _I)),
    ("message", re.compile(_PLEASE + r"(?:post|write|say) in #(?P<channel>[\w-]+): (?P<text>.+)", _I)),
    ("mention", re.compile(_PLEASE + r"ping the role (?P<role>[\w-]+): (?P<text>.+)", _I)),
)
_POLL = re.compile(
    _PLEASE + r"(?:make|create|start) a poll(?: about (?P<about>[^:]+))?: (?P<text>.+)", re.IGNORECASE
)


def asked_for(message: str, offset: str) -> tuple[str, dict[str, Any]] | None:
    """The tool and the input that a message asks for, or None. `offset` is the person's: "+01:00"."""
    said = message.strip()
    wanted = {"quote": said.splitlines()[0][:300]} if said else {}
    if found := _POLL.match(said):
        options = [one.strip(" ?.!").strip() for one in _OR.split(found["text"])]
        question = found["about"] or found["text"].strip()
        text = question[:1].upper() + question[1:]
        return "discord_poll", {**wanted, "text": text, "options": [one for one in options if one]}
    if found := _EVENT.match(said):
        start = f"{found['day']}T{found['time']}{offset}"
        return "discord_event", {**wanted, "text": found["text"].strip(" .!"), "start": start}
    for kind, pattern in _SIMPLE:
        if found := pattern.match(said):
            given = {name: part.strip() for name, part in found.groupdict().items()}
            return f"discord_{kind}", {**wanted, **given}
    return None
