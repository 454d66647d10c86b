"""Lets scripted models cite as a real one would: by the short name of a line, and words copied from it.

Written from the prompt's format, and not from the code that writes it. A scripted proposal that names no
line rests on the last one of the person's; a `source` that is no short name is a part of the line that is
meant. An `id` that is no short name is a part of an item's line.
"""

import re
from typing import Any

from discoclaw.core.own_words import own_words
from discoclaw.core.patch import Patch

LINE = re.compile(r"^(m\d+) (?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) [-\d]{10} [:\d]{5} (»?)\[(.*?)\]: (.*)$")
ITEM = re.compile(r"^(i\d+) \[\w+\] (.*)$", re.M)
SHORT = re.compile(r"[im]\d+")


def talk_of(prompt: str) -> list[tuple[str, bool, str, str]]:
    """The lines of the talk: short name, whether it may be learned from, speaker, text."""
    found: list[tuple[str, bool, str, str]] = []
    for line in prompt.partition("\nTalk:\n")[2].splitlines():
        if match := LINE.match(line):
            found.append((match[1], bool(match[2]), match[3], match[4]))
        elif found and line.startswith("  "):
            found[-1] = (*found[-1][:3], f"{found[-1][3]}\n{line[2:]}")
    return found


def own_of(prompt: str) -> dict[str, str]:
    """The texts of the lines that may be learned from, by short name."""
    return {short: text for short, own, _, text in talk_of(prompt) if own}


def items_of(prompt: str) -> dict[str, str]:
    """The items that are known already: what stands behind each one's kind, by short name."""
    return dict(ITEM.findall(prompt.partition("\n\n---\nTalk:")[0]))


def cited(answer: dict[str, Any], prompt: str) -> dict[str, Any]:
    """An answer in which every proposal cites."""
    lists = {name: answer[name] for name in ("upserts", "deprecations", "traits") if name in answer}
    cites = {name: [_cited(one, prompt) for one in given] for name, given in lists.items()}
    return {**answer, **cites}


def cited_patch(patch: Patch, prompt: str) -> Patch:
    return Patch.model_validate(cited(patch.model_dump(mode="json"), prompt))


def _cited(proposal: Any, prompt: str) -> Any:
    if not isinstance(proposal, dict):
        return proposal
    own = own_of(prompt)
    source = proposal.get("source") or next(reversed(own), "")
    if not SHORT.fullmatch(source):
        source = next((short for short, text in own.items() if source in text), source)
    passages = own_words(own.get(source, ""))
    made = {"source": source, "quote": proposal.get("quote") or (passages[0] if passages else "")}
    wanted = proposal.get("id")
    if isinstance(wanted, str) and not SHORT.fullmatch(wanted):
        made["id"] = next((short for short, text in items_of(prompt).items() if wanted in text), wanted)
    return {**proposal, **made}
