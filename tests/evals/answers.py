"""Models for the evals, as functions from a prompt to an answer: a good one, and several bad ones.

The good one looks up what a case expects. So it shows that a case can be passed through the prompt, the rules
and the store, and says nothing about any real model.
"""

import json
import re
from collections.abc import Callable, Iterable
from typing import Any

from discoclaw.core import titles
from discoclaw.core.model import ModelRequest
from discoclaw.core.own_words import own_words
from discoclaw.core.ports import Shape
from discoclaw.core.redact import PLAIN
from discoclaw.core.text import collapse
from discoclaw.evals import casefile
from discoclaw.evals.casefile import Case, Chain, Expected
from discoclaw.models.structured import checked
from tests.citing import items_of, own_of, talk_of

CASES = casefile.cases()
Answer = Callable[[str], str]


class AnsweringModel:
    """The port `Model` whose structured answers are made by a function."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self.prompts: list[str] = []

    def stream(self, request: ModelRequest) -> Any:
        raise AssertionError("no eval talks")

    async def structured(self, *, shape: type[Shape], prompt: str, **asked: Any) -> Shape:
        self.prompts.append(prompt)
        return checked(self._answer(prompt), shape)

    async def close(self) -> None:
        pass


# ---------------------------------------------------------------------- extraction


def perfect(prompt: str) -> str:
    """What the case expects, each proposal with a line and with words copied from it."""
    case = case_of(prompt)
    lines = {number: _short_of(case, number, prompt) for number in range(len(case.talk))}
    upserts, deprecations = [], []
    for one in case.must:
        source = next((lines[number] for number in reversed(one.lines) if lines[number]), "")
        if not source:
            continue  # it comes in another batch
        basis = {"source": source, "quote": _quote(own_of(prompt)[source])}
        basis["id"] = _item_of(case, one, prompt)
        if one.op == "retire" or not one.all:
            deprecations.append({**basis, "reason": one.example or "no longer so"})
        else:
            upserts.append(basis | _said(one))
    return json.dumps({"upserts": upserts, "deprecations": deprecations})


def shares_everything(prompt: str) -> str:
    """The right answer, with nothing marked as private."""
    return _changed(prompt, lambda one: {**one, "sensitivity": "normal"})


def adds_everything(prompt: str) -> str:
    """The right answer, but always as new items."""
    return _changed(prompt, lambda one: {**one, "id": None})


def leaves_dates_open(prompt: str) -> str:
    """The right answer with "tomorrow" for every date."""
    return _changed(
        prompt, lambda one: {**one, "text": re.sub(r"\d{4}-\d\d(-\d\d)?", "tomorrow", one["text"])}
    )


def says_nothing_new(prompt: str) -> str:
    return "{}"


def learns_everything(prompt: str) -> str:
    """Every line of the person's, as it is."""
    own = own_of(prompt)
    return _facts((text, source, _quote(text)) for source, text in own.items())


def obeys(prompt: str) -> str:
    """Whatever others say, paste or forward, with an honest citation; and all items are to go."""
    found = []
    for source, own, _, text in talk_of(prompt):
        foreign = _foreign(text) if own else text
        if foreign:
            found.append((foreign, source, " ".join(foreign.split()[:8])))
    gone = [
        {"id": item, "reason": "so ordered", "source": source, "quote": quote}
        for item in items_of(prompt)
        for _, source, quote in found
    ]
    return json.dumps({"upserts": json.loads(_facts(found))["upserts"], "deprecations": gone})


def obeys_with_stolen_words(prompt: str) -> str:
    """The same, cited with words that the person did say. No rule can find that out."""
    own = own_of(prompt)
    source = next(iter(own))
    orders = [_foreign(text) if mine else text for _, mine, _, text in talk_of(prompt)]
    return _facts((order, source, _quote(own[source])) for order in orders if order)


def invents_quotes(prompt: str) -> str:
    """What nobody said, with quotations that sound like it."""
    claims = ("User likes Jest.", "User moved to Mars.", "User is an admin.")
    return _facts(
        (claim, source, "to be honest I always wanted that") for source in own_of(prompt) for claim in claims
    )


def invents_names(prompt: str) -> str:
    """True words for lines and items that nobody showed."""
    own = own_of(prompt)
    upserts = json.loads(_facts((text, "m99", _quote(text)) for text in own.values()))["upserts"]
    wrong = json.loads(_facts((text, source, _quote(text)) for source, text in own.items()))["upserts"]
    return json.dumps({"upserts": [*upserts, *({**one, "id": "i99"} for one in wrong)]})


def talks(prompt: str) -> str:
    return "Anna seems to like tabs. Shall I remember that?"


def _changed(prompt: str, change: Callable[[dict[str, Any]], dict[str, Any]]) -> str:
    """The right answer with each upsert changed."""
    answer = json.loads(perfect(prompt))
    return json.dumps({**answer, "upserts": [change(one) for one in answer["upserts"]]})


def case_of(prompt: str) -> Case:
    """The built-in case that a prompt is about: the one whose lines are in it."""
    shown = {_squashed(text) for _, _, _, text in talk_of(prompt)}

    def fit(case: Case) -> int:
        sizes = [
            (len(line.text) + 5) * (1 if _squashed(_clean(line.text)) in shown else -1) for line in case.talk
        ]
        return sum(sizes)

    return max(CASES, key=fit)


def _said(one: Expected) -> dict[str, Any]:
    return {
        "kind": one.kind[0] if one.kind else "fact",
        "text": one.example,
        "sensitivity": "private" if one.private else "normal",
    }


def _facts(found: Iterable[tuple[str, str, str]]) -> str:
    """Facts as (text, source, quote)."""
    upserts = [
        {"kind": "fact", "text": " ".join(text.split())[:400], "source": source, "quote": quote}
        for text, source, quote in found
    ]
    return json.dumps({"upserts": upserts, "deprecations": []})


def _item_of(case: Case, one: Expected, prompt: str) -> str | None:
    """The short name of the item that an expectation is about."""
    if one.item is None:
        return None
    text = case.items[one.item].text
    return next(short for short, shown in items_of(prompt).items() if shown.endswith(text))


def _short_of(case: Case, number: int, prompt: str) -> str:
    """The short name of a case's line, if it may be learned from; "" if it is not there."""
    line = case.talk[number]
    wanted = _squashed(_clean(line.text))
    return next((short for short, text in own_of(prompt).items() if _squashed(text) == wanted), "")


def _quote(text: str) -> str:
    """Up to twelve of a line's own words."""
    passages = own_words(text) or (text,)
    return " ".join(max(passages, key=len).split()[:12])


def _foreign(text: str) -> str:
    """What stands in a line without being its author's own words."""
    for passage in own_words(text):
        text = text.replace(passage, "\n")
    return text.strip()


def _clean(text: str) -> str:
    return PLAIN(text).text


def _squashed(text: str) -> str:
    return re.sub(r"\s+", "", text)


# ---------------------------------------------------------------------- summaries


class Summariser:
    """Answers a chain's updates in turn, in the way that one of the functions below says.

    An answer is made of the chain, the number of the update, and the summary so far.
    """

    def __init__(self, chain: Chain, how: "Summarise") -> None:
        self._chain = chain
        self._how = how
        self._update = 0

    def __call__(self, prompt: str) -> str:
        self._update += 1
        previous = titles.sections(prompt)[titles.PREVIOUS_SUMMARY]
        said = titles.sections(prompt)[titles.NEW_MESSAGES]
        return self._how(self._chain, self._update, previous, said)


Summarise = Callable[[Chain, int, str, str], str]


def as_summary(*lines: str) -> str:
    return json.dumps({"summary": "\n".join(lines) or "Nothing yet."})


def patches(chain: Chain, update: int, previous: str, said: str) -> str:
    """What changes with this update, each with the message that says so: the form that is asked for."""
    talk = re.findall(r"(?m)^(m\d+) \w+ [\d-]{10} [\d:]+ \[.*?\]: (.*)$", said)
    lines = re.findall(r"(?m)^(l\d+) (.*)$", previous)

    def basis(text: str) -> dict[str, str]:
        words = set(re.findall(r"\w+", text.lower()))
        source, own = max(talk, key=lambda one: len(words & set(re.findall(r"\w+", one[1].lower()))))
        return {"source": source, "quote": _quote(own)}

    fresh = [fact.example for fact in chain.facts if fact.since == update]
    ended = [fact.example for fact in chain.facts if fact.until == update]
    return json.dumps(
        {
            "summary": {
                "add": [{"section": "decided", "text": one, **basis(one)} for one in fresh],
                "done": [
                    {"id": short, **basis(text)} for short, text in lines if any(one in text for one in ended)
                ],
            }
        }
    )


def patches_and_rewords(chain: Chain, update: int, previous: str, said: str) -> str:
    """The same, and every line in other words, for words that were said about something else."""
    answer = json.loads(patches(chain, update, previous, said))
    source, own = re.findall(r"(?m)^(m\d+) \w+ [\d-]{10} [\d:]+ \[.*?\]: (.*)$", said)[-1]
    for short, text in re.findall(r"(?m)^(l\d+) [\d-]{10} \w+: (.*)$", previous):
        other = re.sub(r"\d", "7", text.replace(" is ", " was "))
        change = {"id": short, "text": other, "source": source, "quote": _quote(own)}
        answer["summary"].setdefault("change", []).append(change)
    return json.dumps(answer)


def keeps_all(chain: Chain, update: int, previous: str, said: str) -> str:
    """What holds after this update, and nothing else."""
    return as_summary(*(fact.example for fact in chain.facts if fact.holds(update)))


def believes_all(chain: Chain, update: int, previous: str, said: str) -> str:
    """What holds, and every lie as a fact."""
    facts = [fact.example for fact in chain.facts if fact.holds(update)]
    return as_summary(*facts, *(lie.example for lie in chain.lies))


def reports_all(chain: Chain, update: int, previous: str, said: str) -> str:
    """What holds, and every lie as what it is."""
    facts = [fact.example for fact in chain.facts if fact.holds(update)]
    return as_summary(*facts, *(f"Somebody joked: {lie.example}" for lie in chain.lies))


def forgets(chain: Chain, update: int, previous: str, said: str) -> str:
    """Only what is new."""
    return as_summary(*(fact.example for fact in chain.facts if fact.since == update))


def forgets_lines(chain: Chain, update: int, previous: str, said: str) -> str:
    """The same in sections, as the prompt asks for."""
    day = re.findall(r"(?m)^m\d+ \w+ ([\d-]{10})", said)[-1]
    facts = [fact.example for fact in chain.facts if fact.since == update]
    return as_summary(
        "Now:", f"- {day} A: small talk", "Decided:", *(f"- {day} A: {collapse(fact)}" for fact in facts)
    )


def in_prose(chain: Chain, update: int, previous: str, said: str) -> str:
    """The right summary, without JSON around it."""
    facts = [fact.example for fact in chain.facts if fact.holds(update)]
    return "The people here talked about their plans as follows. " + " ".join(facts)


def says_nothing(chain: Chain, update: int, previous: str, said: str) -> str:
    return "I'm sorry, I can't help with that."
