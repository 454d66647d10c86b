"""What a small model proposes has one exact shape; anything else is refused as a whole."""

import json
from typing import Any

import pytest
from pydantic import ValidationError

from discoclaw.core.item import KINDS
from discoclaw.core.patch import Deprecation, Patch, SourceRef, Summary, Upsert

WHOLE: dict[str, Any] = {
    "upserts": [
        {
            "id": "durable-4b684150",
            "kind": "fact",
            "text": "likes tea",
            "tags": ["drink"],
            "source": {"type": "discord", "channelId": "1", "messageId": "2"},
            "sensitivity": "private",
        }
    ],
    "deprecations": [{"id": "durable-1ea36112", "reason": "moved"}, {"matchText": "lives in Oslo"}],
}


def upsert(**fields: Any) -> dict[str, Any]:
    return {"upserts": [{"kind": "fact", "text": "x", **fields}]}


class TestTheShape:
    def test_everything_that_is_documented_is_taken(self) -> None:
        patch = Patch.model_validate_json(json.dumps(WHOLE))
        assert patch.upserts[0] == Upsert(
            id="durable-4b684150",
            kind="fact",
            text="likes tea",
            tags=["drink"],
            source=SourceRef(channelId="1", messageId="2"),
            sensitivity="private",
        )
        assert patch.deprecations == [
            Deprecation(id="durable-1ea36112", reason="moved"),
            Deprecation(matchText="lives in Oslo"),
        ]

    @pytest.mark.parametrize("text", ["{}", '{"upserts": []}', '{"upserts": [], "deprecations": []}'])
    def test_nothing_to_do_is_an_answer(self, text: str) -> None:
        assert Patch.model_validate_json(text) == Patch()

    @pytest.mark.parametrize("kind", KINDS)
    def test_a_kind_may_be_written_in_any_case(self, kind: str) -> None:
        assert Patch.model_validate(upsert(kind=f" {kind.title()} ")).upserts[0].kind == kind

    @pytest.mark.parametrize(
        "text",
        [
            "Sure! Here is the JSON you asked for.",
            "```json\n{}\n```",
            '{"upserts": []} I hope this helps.',
            "{'upserts': []}",
            "[]",
            "null",
            '"{}"',
            "",
            '{"upserts": [',
        ],
    )
    def test_prose_fences_and_other_json_are_refused(self, text: str) -> None:
        with pytest.raises(ValidationError):
            Patch.model_validate_json(text)

    @pytest.mark.parametrize(
        "value",
        [
            {"extra": 1},
            {"upserts": {}},
            {"upserts": None},
            {"upserts": ["likes tea"]},
            {"upserts": [{"kind": "fact"}]},
            {"upserts": [{"text": "x"}]},
            upsert(kind="note"),
            upsert(kind=None),
            upsert(text=5),
            upsert(text=None),
            upsert(text=["x"]),
            upsert(id=5),
            upsert(tags="drink"),
            upsert(tags=[1]),
            upsert(tags=None),
            upsert(source="manual"),
            upsert(source={"type": "discord", "channelId": 1, "messageId": 2}),
            upsert(source={"type": "summary"}),
            upsert(source={"type": "discord", "guildId": "1"}),
            upsert(sensitivity="confidential"),
            upsert(sensitivity="public"),
            upsert(author="stated"),
            upsert(confidence=1),
            {"deprecations": [{"id": "x", "because": "y"}]},
            {"deprecations": [{"id": 5}]},
            {"deprecations": ["durable-4b684150"]},
        ],
        ids=str,
    )
    def test_an_unknown_field_or_a_wrong_type_is_refused(self, value: dict[str, Any]) -> None:
        with pytest.raises(ValidationError):
            Patch.model_validate_json(json.dumps(value))
        with pytest.raises(ValidationError):
            Patch.model_validate(value)

    def test_one_wrong_upsert_refuses_the_patch_as_a_whole(self) -> None:
        with pytest.raises(ValidationError):
            Patch.model_validate({"upserts": [*WHOLE["upserts"], {"kind": "note", "text": "x"}]})

    def test_a_patch_can_not_be_changed_after_it_was_checked(self) -> None:
        with pytest.raises(ValidationError, match="frozen"):
            Patch().upserts = []  # type: ignore[misc]

    @pytest.mark.parametrize(
        "value", ["{}", '{"summary": 5}', '{"summary": "x", "note": 1}', '{"summary": null}']
    )
    def test_a_summary_is_one_text_and_nothing_else(self, value: str) -> None:
        assert Summary.model_validate_json('{"summary": "x"}').summary == "x"
        with pytest.raises(ValidationError):
            Summary.model_validate_json(value)
