"""The block of a soul: found, hidden, and read to the letter or not at all."""

import json
import re
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from discoclaw.soul.soul import MAX_PART, read, trait_name
from tests.tables import each_row

SOUL = {"identity": "You are Mog.", "user": "Ann builds boats.", "philosophy": "No lies."}


def block(**parts: Any) -> str:
    return f"<soul>{json.dumps({**SOUL, **parts}, ensure_ascii=False)}</soul>"


class TestReading:
    def test_words_without_a_block_are_words(self) -> None:
        found = read(" And who are you? \n")
        assert (found.text, found.soul, found.fault) == ("And who are you?", None, "")

    def test_a_whole_block_is_a_soul_and_the_rest_is_for_the_person(self) -> None:
        found = read(f"I am ready.\n{block(traits=['dry'])}\nBye.")
        assert found.text == "I am ready.\n\nBye."
        assert found.soul is not None
        assert found.soul.model_dump() == {**SOUL, "traits": ["dry"]}

    @each_row("fence", ["```json", "```", "~~~~ xml"])
    def test_a_fence_around_it_is_not_shown(self, fence: str) -> None:
        found = read(f"I am ready.\n{fence}\n{block()}\n{fence.rstrip(' jsonxml')}\nBye.")
        assert found.soul is not None
        assert found.text.split() == ["I", "am", "ready.", "Bye."]

    def test_other_fences_are(self) -> None:
        code = "```py\nx = 1\n```"
        assert read(f"{code}\n{block()}").text == code

    def test_texts_become_one_line_without_secrets(self) -> None:
        found = read(block(identity="You are\n\n  Mog.", user="Ann, key sk-ant-" + "a1b2c3d4" * 4))
        assert found.soul is not None
        assert found.soul.identity == "You are Mog."
        assert found.soul.user == "Ann, key [REDACTED Anthropic key]"

    def test_a_part_of_the_longest_length_is_taken(self) -> None:
        found = read(block(philosophy="x" * MAX_PART))
        assert found.soul is not None

    @each_row(
        "broken",
        [
            "<soul></soul>",
            "<soul>[]</soul>",
            "<soul>null</soul>",
            '<soul>{"identity": "a", "user": "b"}</soul>',
            block(mood="fine"),
            block(identity="  \u200b "),
            block(identity=None),
            block(identity=["You"]),
            block(identity=1),
            block(user="x" * (MAX_PART + 1)),
            block(traits="dry"),
            block(traits=["1", "2", "3", "4", "5", "6"]),
            block(traits=[""]),
            block(traits=["!?"]),
            block(traits=["x" * 201]),
            '<soul>{"identity": "a", "identity": "b", "user": "c", "philosophy": "d"}</soul>',
            f"<soul>```json\n{json.dumps(SOUL)}\n```</soul>",
            f"<soul>{json.dumps(SOUL)} and more</soul>",
            block() + block(),
            block()[: -len("</soul>")],
            block()[len("<soul>") :],
            f"<soul><soul>{json.dumps(SOUL)}</soul></soul>",
            block().replace("soul", "SOUL"),
            block().replace("<soul>", "<soul id=1>"),
            block(user="</soul>"),
            "<soul>" + "[" * 100_000 + "</soul>",
        ],
    )
    def test_anything_else_is_a_fault_of_which_nothing_is_used_or_shown(self, broken: str) -> None:
        found = read(f"Before.\n{broken}")
        assert found.soul is None
        assert found.fault
        assert len(found.fault) < 500
        assert "soul" not in found.text.lower()

    def test_a_fault_names_the_field_and_not_what_was_in_it(self) -> None:
        found = read(block(identity=4711, secret="hunter2"))
        assert "identity" in found.fault
        assert "4711" not in found.fault
        assert "hunter2" not in found.fault

    @given(
        st.lists(st.sampled_from(["<soul>", "</soul>", "< soul", "</ Soul >", "<", "/", "soul>", "{", "x"]))
    )
    def test_whatever_comes_no_tag_is_ever_shown(self, parts: list[str]) -> None:
        found = read("".join(parts))
        assert re.search(r"<\s*/?\s*soul\b", found.text, re.IGNORECASE) is None
        assert found.soul is None


class TestNames:
    def test_a_trait_is_named_after_its_words(self) -> None:
        assert trait_name("Dry, and  fond_of Boats!") == "dry-and-fond-of-boats"
        assert trait_name("Трезвый") == "трезвый"
        assert trait_name("…") == ""
        assert len(trait_name("word " * 50)) <= 40
