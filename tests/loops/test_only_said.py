"""Whatever is said and whatever a model answers: only a person's own words are learned, and none leak.

Own words, others' and invented ones are of three vocabularies here, so that each word tells whose it is.
"""

import asyncio
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from discoclaw.core.message import Said
from discoclaw.core.patch import Deprecation, Patch, Upsert
from discoclaw.loops.facts import FactsLoop, FactsRules
from discoclaw.loops.heard import Backlog, Heard
from tests.citing import items_of, own_of, talk_of
from tests.core.builders import FEW
from tests.session.scene import ANN, BOB, DM, GENERAL, ME, NOW, House, Place, Recorder, house, inbound, said

OWN = ["apple", "birch", "cedar", "daisy", "elm", "fern"]
OTHERS = ["raven", "swan", "tern", "wren", "robin", "heron"]
INVENTED = ["quartz", "opal", "jade"]
AROUND = [
    *("> {}", ">>> {}", "```\n{}\n```", "```\n{}", "~~~\n{}\n~~~", "a ```{}``` b", "`{}`", "(forwarded: {})"),
    *("(attached: {})", '"{}"', "“{}”", "„{}“", "«{}»", "'{}'", "「{}」", "> “{}", '5" and "{}"'),
    "[Memory context]\n- x: {}\n[/Memory context]",
]


def words(vocabulary: list[str], least: int) -> st.SearchStrategy[str]:
    return st.lists(st.sampled_from(vocabulary), min_size=least, max_size=6).map(" ".join)


MINE = words(OWN, 1)
THEIRS = st.builds(lambda around, text: around.format(text), st.sampled_from(AROUND), words(OTHERS, 3))
MESSAGE = st.lists(st.one_of(MINE, THEIRS), min_size=1, max_size=4)
TALK = st.lists(st.tuples(st.sampled_from(["ann", "ann", "bob", "bot"]), MESSAGE), min_size=1, max_size=5)
QUOTE = st.one_of(MINE, words(OTHERS, 1), words(OWN + OTHERS, 2), words(OWN + INVENTED, 2), st.just(""))
SHORT = st.one_of(st.integers(1, 7).map("m{}".format), st.sampled_from(["i1", "m0", "m99"]))
CLAIMS = st.lists(st.tuples(SHORT, QUOTE), max_size=20)


def own_runs(message: list[str]) -> list[list[str]]:
    """The words of a message that are its author's own, in runs that nothing interrupts."""
    runs: list[list[str]] = [[]]
    for part in message:
        if set(part.split()) <= set(OWN):
            runs[-1] += part.split()
        else:
            runs.append([])
    return runs


def holds(run: list[str], quote: list[str]) -> bool:
    return bool(quote) and any(run[at : at + len(quote)] == quote for at in range(len(run)))


def learning(home: House, answer: Patch) -> FactsLoop:
    """The extraction, with the model's first answer. What is said in a DM stays private."""
    home.model.patches.append(answer)
    rules = FactsRules(dm_privacy=lambda: "strict")
    return FactsLoop(home.model, home.memory, home.cursors, rules=rules, me=lambda: ME, clock=home.clock)


def waiting(*lines: Said, place: Place = GENERAL) -> Backlog:
    backlog = Backlog()
    for one in lines:
        backlog.hear(Heard(one, place, place.session_key(ANN.id)))
    return backlog


class TestNothingInvented:
    @FEW
    @given(TALK, CLAIMS)
    @example([("ann", ["apple birch cedar"])], [("m1", "apple birch cedar")])
    @example([("ann", ['5" and "raven swan tern"', "elm"])], [("m1", "raven swan tern")])
    @example(
        [("ann", ["```\nraven swan tern", "(forwarded: x\n```\nraven swan tern)"])],
        [("m1", "raven swan tern")],
    )
    def test_is_learned_whatever_the_talk_and_the_quotes(self, talk, claims) -> None:
        asyncio.run(self._check(talk, claims))

    async def _check(self, talk: list[tuple[str, list[str]]], claims: list[tuple[str, str]]) -> None:
        who = {"ann": ANN, "bob": BOB, "bot": ME}
        lines = [said(n, who[name], "\n".join(parts)) for n, (name, parts) in enumerate(talk, 1)]
        own = {
            one.id: own_runs(parts) for one, (name, parts) in zip(lines, talk, strict=True) if name == "ann"
        }
        if not own:
            return
        proposals = [
            Upsert(kind="fact", text=f"User has thing {number}.", source=source, quote=quote or "?")
            for number, (source, quote) in enumerate(claims)
        ]
        with tempfile.TemporaryDirectory() as folder:
            home = house(Path(folder))
            facts = learning(home, Patch(upserts=proposals))
            backlog = waiting(*(one for one in lines if one.id in own))
            await facts.run(ANN.id, backlog, {GENERAL.session_key(ANN.id): lines})
            shown = {short: f"{n}" for n, (short, *_) in enumerate(talk_of(home.model.extractions[0]), 1)}
            learned = (await home.memory.view("user-1")).active()
            for item in learned:
                source, quote = claims[int(item.text.removeprefix("User has thing ").rstrip("."))]
                said_in = item.source.message_id
                assert shown[source] == said_in in own
                assert any(holds(run, quote.split()) for run in own[said_in])
            sound = [
                (source, quote)
                for source, quote in claims
                if len(quote.split()) >= 3
                and any(
                    run == quote.split() and len(own[shown[source]]) == 1
                    for run in own.get(shown.get(source, ""), [])
                )
            ]
            assert len(learned) >= min(5, len(sound))


SECRETS = st.lists(
    st.tuples(
        st.sampled_from(["fact", "preference", "tool", "project"]),
        words(OTHERS, 4),
        st.sampled_from(["normal", "private", "confidential", "Secret!"]),
    ),
    min_size=1,
    max_size=4,
)


class TestNothingPrivate:
    @FEW
    @given(SECRETS, st.booleans())
    def test_is_in_any_prompt_of_open_talk(self, secrets, in_dm: bool) -> None:
        asyncio.run(self._check(secrets, DM if in_dm else GENERAL))

    async def _check(self, secrets: list[tuple[Any, str, str]], place: Place) -> None:
        proposals = [
            {"kind": kind, "text": f"User likes {text} {number}", "sensitivity": level, "tags": text.split()}
            for number, (kind, text, level) in enumerate(secrets)
        ]
        about = {"source": "m1", "quote": "apple birch cedar"}
        with tempfile.TemporaryDirectory() as folder:
            home = house(Path(folder))
            facts = learning(home, Patch.model_validate({"upserts": [one | about for one in proposals]}))
            await facts.run(ANN.id, waiting(said(1, ANN, about["quote"]), place=place), {})
            items = (await home.memory.view("user-1")).active()
            assert items
            hidden = [
                f"{text} {number}"
                for number, (_, text, level) in enumerate(secrets)
                if place.private or level != "normal"
            ]

            def guessed(prompt: str) -> Patch:
                """A model that names what it was not shown."""
                about = {"source": next(reversed(own_of(prompt))), "quote": "daisy elm fern"}
                named = [f"User likes {text}" for text in hidden]
                upserts = [Upsert(kind="fact", text="User likes daisies.", links=named, **about)]
                gone = [Deprecation(matchText=text, reason=text, **about) for text in named]
                return Patch(upserts=upserts, deprecations=gone)

            home.model.patches.append(guessed)
            home.clock.forward(60_000)
            await facts.run(ANN.id, waiting(said(60_000, ANN, "daisy elm fern")), {})
            home.answer(inbound(60_001, "what do I like? raven swan tern", sent_at=NOW + 60_001), Recorder())
            await home.settle()
            after = (await home.memory.view("user-1")).active()
            assert [one for one in after if one.id in {item.id for item in items}] == items
            (daisies,) = (one for one in after if "daisies" in one.text)
            secret = {item.id for item in items if item.facets.sensitivity != "normal"}
            assert not daisies.facets.links & secret
            for item in items:
                assert (item.id in secret) == any(item.text.endswith(text) for text in hidden)
            open_prompts = [home.model.extractions[-1], home.model.user_turn()]
            for text in hidden:
                assert not any(text in prompt for prompt in open_prompts)
            assert all("durable-" not in prompt for prompt in open_prompts)
            assert len(items_of(open_prompts[0])) == len(items) - len(secret)
