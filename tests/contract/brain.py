"""What the scripted model answers, by what a request is about.

Knows the format of prompts, and nothing about the program.

    brain.says("Rust is a language.", about="rust")     the answer to a message that holds "rust"
    brain.learns("User has a cat.", about="my cat")     what extraction makes of a message that holds "my cat"
    brain.writes("summary", "They talked about tea.")   what any other background request is answered

Talk and background work ask side by side, so answers are kept by what a request asks for, not in one queue.
"""

import re
from collections import defaultdict, deque
from collections.abc import Callable
from typing import Any

from tests.servers.messages_api import Behaviour, Received, json_answer, text, tool_use

MESSAGE = "User message:"
LINE = re.compile(r"^(m\d+) (?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) [-\d]{10} [:\d]{5} (»?)\[(.*?)\]: (.*)$")
"""A line of the talk in a background request: short name, whether it may be learned from, speaker, text."""
ITEM = re.compile(r"^(i\d+) \[\w+\] (.*)$", re.M)
"""A memory in a background request: short name, text."""
SHORT = re.compile(r"[im]\d+")
Said = str | Behaviour | Callable[[Received], str | Behaviour]


class Brain:
    """Answers each request of the bot; the `default` of a `MessagesServer`."""

    def __init__(self) -> None:
        self.usual: Said = "ok"
        """The answer to every message for which nothing else was scripted."""
        self._said: list[tuple[str, deque[Said]]] = []
        self._learned: list[tuple[str, dict[str, Any]]] = []
        self._written: dict[str, deque[Any]] = defaultdict(deque)

    def says(self, *answers: Said, about: str = "") -> None:
        """The answers to messages that hold `about`, in turn; also what follows a call of a tool."""
        self._said.append((about, deque(answers)))

    def calls(self, name: str, given: dict[str, Any], *then: Said, about: str = "") -> None:
        """The model calls a tool for a message that holds `about`, and then answers."""
        number = sum(len(queue) for _, queue in self._said)
        self.says(tool_use((f"toolu_{len(self._said)}_{number}", name, given)), *then, about=about)

    def learns(self, *texts: str | dict[str, Any], about: str = "", kind: str = "fact", **patch: Any) -> None:
        """What extraction makes of a person's message that holds `about`, each time it sees one.

        A proposal that names no line rests on the newest line that holds `about`, and quotes it. `patch` is
        the rest of the answer, such as `deprecations`, whose `id` may be a part of a memory's text.
        """
        upserts = [{"kind": kind, "text": one, "tags": []} if isinstance(one, str) else one for one in texts]
        self._learned.append((about, {"upserts": upserts, "deprecations": [], **patch}))

    def writes(self, field: str, *values: Any) -> None:
        """What a background request whose answer has `field` is given, in turn; the last one stays.

        A dict is the whole answer, a `Behaviour` a fault; anything else is the value of the field. A function
        is asked with the request.
        """
        self._written[field].extend(values)

    def __call__(self, request: Received) -> Behaviour:
        if request.schema is None:
            return self._talk(request)
        fields = request.schema["properties"]
        for field, queue in self._written.items():
            if field in fields and queue:
                value = queue.popleft() if len(queue) > 1 else queue[0]
                value = value(request) if callable(value) else value
                if isinstance(value, Behaviour):
                    return value
                return json_answer(
                    cited(value, request.prompt) if isinstance(value, dict) else {field: value}
                )
        if "upserts" in fields:
            return json_answer(self._extracted(request.prompt))
        if "summary" in fields:
            return json_answer({"summary": "They talked."})
        return json_answer({})

    def _talk(self, request: Received) -> Behaviour:
        asked = message_of(request)
        queue = next((queue for about, queue in self._said if queue and about in asked), None)
        said = queue.popleft() if queue else self.usual
        if callable(said):
            said = said(request)
        return text(said) if isinstance(said, str) else said

    def _extracted(self, prompt: str) -> dict[str, Any]:
        own = own_lines(prompt)
        for about, patch in self._learned:
            if lines := [short for short, line in own.items() if about in line]:
                return cited(patch, prompt, lines[-1])
        return {"upserts": [], "deprecations": []}


def is_talk(request: Received) -> bool:
    """Whether a request is a turn of a talk, and not one of the background loops'."""
    return request.schema is None


def message_of(request: Received) -> str:
    """What the person said, out of the prompt of a turn, whatever tools were called since."""
    content = request.body["messages"][0]["content"]
    whole = content if isinstance(content, str) else "".join(one.get("text", "") for one in content)
    return whole.rpartition(MESSAGE)[2]


def own_lines(prompt: str) -> dict[str, str]:
    """The lines of a background request that may be learned from, by short name."""
    found: dict[str, str] = {}
    current: str | None = None
    for line in prompt.partition("\nTalk:\n")[2].splitlines():
        if match := LINE.match(line):
            current = match[1] if match[2] else None
            if current is not None:
                found[current] = match[4]
        elif current is not None and line.startswith("  "):
            found[current] += f"\n{line[2:]}"
    return found


def cited(answer: dict[str, Any], prompt: str, source: str = "") -> dict[str, Any]:
    """An answer in which every proposal cites: `source` or the last line, and its first line's words."""
    own = own_lines(prompt)
    items = dict(ITEM.findall(prompt.partition("\n\n---\nTalk:")[0]))

    def one(proposal: Any) -> Any:
        if not isinstance(proposal, dict):
            return proposal
        line = proposal.get("source") or source or next(reversed(own), "")
        if not SHORT.fullmatch(line):
            line = next((short for short, words in own.items() if line in words), line)
        made = {"source": line, "quote": proposal.get("quote") or own.get(line, "").split("\n")[0]}
        wanted = proposal.get("id")
        if isinstance(wanted, str) and not SHORT.fullmatch(wanted):
            made["id"] = next((short for short, words in items.items() if wanted in words), wanted)
        return {**proposal, **made}

    lists = {name: answer[name] for name in ("upserts", "deprecations", "traits") if name in answer}
    return {**answer, **{name: [one(proposal) for proposal in given] for name, given in lists.items()}}


def sum_up(request: Received) -> str:
    """A summary that says all that it reads: for `writes("summary", sum_up)`."""
    _, before, talk, *_ = request.prompt.split("\n\n---\n")
    old = before.partition("\n")[2]
    lines = [match.groups()[2:] for line in talk.splitlines() if (match := LINE.match(line))]
    return "\n".join([*([] if old == "none" else [old]), *(f"{who}: {words}" for who, words in lines)])


LIKES = re.compile(r"\bI like (\w+)")


def likes(request: Received) -> dict[str, Any]:
    """Learns "User likes …" from each message that says so: for `writes("upserts", likes)`."""
    said = [
        (short, what) for short, line in own_lines(request.prompt).items() for what in LIKES.findall(line)
    ]
    return {
        "upserts": [
            {"kind": "preference", "text": f"User likes {what}.", "source": short, "quote": f"I like {what}"}
            for short, what in said
        ]
    }
