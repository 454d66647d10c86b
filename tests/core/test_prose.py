"""Which answers count as a summary although they are not the JSON that was asked for."""

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discoclaw.core.errors import ModelBadOutput
from discoclaw.core.patch import LONGEST, Consolidation, Patch, Suggestion, Summary
from discoclaw.models.structured import checked
from tests.tables import each_row

TALK = "Ann and Bob plan a trip to Bern. Ann books the train; the hotel is still open."
GIVEN = {"summary": TALK, "themes": ["travel"], "decisions": ["They go by train."]}


class TestASummary:
    @each_row(
        "answer",
        [
            TALK,
            f"\n  {TALK}\n",
            f"Summary: {TALK}",
            f"**Summary:** {TALK}",
            f"## Updated summary:\n\n{TALK}",
            f"Here is the new summary of the conversation:\n\n{TALK}",
            f"Sure! Here's a short summary:\n{TALK}",
            f"```\n{TALK}\n```",
            f"<think>They talk about {{travel}}.</think>\n{TALK}",
            f"<think>\n</think>\n\n```text\n{TALK}\n```",
        ],
    )
    def test_in_prose_is_one_without_what_surrounds_it(self, answer: str) -> None:
        assert checked(answer, Summary) == Summary(summary=TALK)

    @each_row(
        "answer",
        [
            "- Ann: books the train\n- Bob: looks for a hotel\n- open: when they travel",
            "安和鲍勃计划去伯尔尼旅行。安负责订火车票，酒店还没有定下来，他们明天再谈。",
            "Анна и Боб едут в Берн; билеты покупает Анна.",
            "There was no agreement about the hotel, but Ann books the train.",
        ],
    )
    def test_may_have_any_form_and_language(self, answer: str) -> None:
        assert checked(answer, Summary).summary == answer.strip()

    @each_row(
        "dress",
        ["```json\n{}\n```", "Here it is: {} Enjoy!", "{{not it}} {}", "<think>{{}}</think>{}", "{}{{}}"],
    )
    def test_in_json_is_found_whatever_stands_around_it(self, dress: str) -> None:
        assert checked(dress.format(json.dumps(GIVEN)), Summary) == Summary(**GIVEN)

    @each_row("more", [{"themes": None}, {"decisions": "by train"}, {"language": "en"}, {"themes": [1]}])
    def test_in_json_of_another_shape_counts_but_changes_nothing_else(self, more: dict[str, object]) -> None:
        assert checked(json.dumps({**GIVEN, **more}), Summary) == Summary(summary=TALK)


class TestNoSummary:
    @each_row(
        "answer",
        [
            "",
            "   \n",
            "ok",
            "None.",
            "null",
            "Summary:",
            "I'm sorry, but I can't summarise this conversation for you.",
            "Sorry, I cannot help with that request today.",
            "I cannot help with summarising private conversations.",
            "I can’t assist with that, because it is against my rules.",
            "As an AI language model, I do not keep any conversations.",
            "There are no new messages that could be summarised here.",
            "Please provide the messages that you want me to summarise.",
            "Es tut mir leid, aber dabei kann ich dir nicht helfen.",
            "Ich kann dir dabei leider nicht helfen, es sind private Nachrichten.",
            "Error: the model is loading, try again in some seconds.",
            '{"summary": "Ann and Bob plan a trip to Be',
            '"summary": "Ann and Bob plan a trip to Bern."',
            '[{"role": "assistant", "content": "Ann and Bob plan a trip"}]',
            "<html><body>Please sign in to go on with the model</body></html>",
            "<think>Ann and Bob plan a trip to Bern, so I will write",
            "!!! ??? ... --- === 12345 67890 !!! ??? a b c d e f g h i j k l m n o p q r s t u v",
            "word " * LONGEST,
            '{"summary": ""}',
            '{"summary": 7}',
            "{" * 100_000,
        ],
    )
    def test_is_an_apology_a_wreck_or_nothing_at_all(self, answer: str) -> None:
        try:
            assert checked(answer, Summary).summary == ""
        except ModelBadOutput:
            return
        assert answer == '{"summary": ""}'  # the shape itself allows that: nothing is stored then

    @given(st.text())
    def test_of_any_text_is_an_error_or_a_summary_that_is_not_empty(self, answer: str) -> None:
        with contextlib.suppress(ModelBadOutput):
            assert checked(answer, Summary).summary.strip()


class TestEverythingElse:
    @pytest.mark.design(220)
    @each_row("shape", [Patch, Consolidation, Suggestion])
    @each_row("answer", [TALK, "They like {} most.", '{"upserts": ["{"upserts": []}"]}'])
    def test_stays_strict(self, shape: type[Patch], answer: str) -> None:
        with pytest.raises(ModelBadOutput):
            checked(answer, shape)
