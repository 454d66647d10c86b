"""What a small model proposes: an answer of another shape is refused, a flawed proposal is left out."""

import json
from typing import Any

import pytest
from pydantic import ValidationError

from discoclaw.core.errors import ModelBadOutput
from discoclaw.core.item import KINDS
from discoclaw.core.patch import Deprecation, Patch, Summary, Upsert
from discoclaw.models.structured import checked
from tests.tables import each_row

WHOLE: dict[str, Any] = {
    "upserts": [
        {
            "id": "i1",
            "kind": "fact",
            "text": "likes tea",
            "tags": ["drink"],
            "source": "m2",
            "quote": "I like tea",
            "sensitivity": "private",
        }
    ],
    "deprecations": [
        {"id": "i2", "reason": "moved", "source": "m3", "quote": "I have moved"},
        {"matchText": "lives in Oslo", "source": "m3", "quote": "I have moved"},
    ],
}


def upsert(**fields: Any) -> dict[str, Any]:
    return {"upserts": [{"kind": "fact", "text": "x", "source": "m1", "quote": "x y z", **fields}]}


class TestTheShape:
    def test_everything_that_is_documented_is_taken(self) -> None:
        patch = Patch.model_validate_json(json.dumps(WHOLE))
        assert patch.upserts[0] == Upsert(
            id="i1",
            kind="fact",
            text="likes tea",
            tags=["drink"],
            source="m2",
            quote="I like tea",
            sensitivity="private",
        )
        assert patch.deprecations == [
            Deprecation(id="i2", reason="moved", source="m3", quote="I have moved"),
            Deprecation(matchText="lives in Oslo", source="m3", quote="I have moved"),
        ]

    @each_row("text", ["{}", '{"upserts": []}', '{"upserts": [], "deprecations": []}'])
    def test_nothing_to_do_is_an_answer(self, text: str) -> None:
        assert Patch.model_validate_json(text) == Patch()

    @each_row("kind", KINDS)
    def test_a_kind_may_be_written_in_any_case(self, kind: str) -> None:
        assert Patch.model_validate(upsert(kind=f" {kind.title()} ")).upserts[0].kind == kind

    @each_row(
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

    @each_row("value", [{"extra": 1}, {"upserts": {}}, {"upserts": "x"}, {"memories": []}])
    def test_an_object_that_is_something_else_is_refused(self, value: dict[str, Any]) -> None:
        with pytest.raises(ValidationError):
            Patch.model_validate_json(json.dumps(value))
        with pytest.raises(ValidationError):
            Patch.model_validate(value)

    @each_row(
        "value",
        [
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
            upsert(source=None),
            upsert(source={"type": "discord", "channelId": "1", "messageId": "2"}),
            upsert(quote=None),
            upsert(quote=7),
            upsert(key=7),
            upsert(links="a"),
            upsert(links=[7]),
            upsert(category="forever"),
        ],
    )
    def test_a_flawed_proposal_costs_itself_and_no_other(self, value: dict[str, Any]) -> None:
        sound = WHOLE["upserts"][0]
        flawed: list[str] = []
        text = json.dumps({"upserts": [*value["upserts"], sound, *value["upserts"]]})
        patch = Patch.model_validate_json(text, strict=True, context=flawed)
        assert patch.upserts == [Upsert.model_validate(sound)]
        assert [fault.split(":")[0] for fault in flawed] == ["upserts 0", "upserts 2"]

    @each_row(
        "value",
        [
            {"id": 5},
            {"id": "i1", "source": "m1"},
            {"id": "i1", "quote": "x y z"},
            "durable-4b684150",
            None,
            7,
            [],
        ],
    )
    def test_so_does_a_flawed_deprecation(self, value: object) -> None:
        sound = WHOLE["deprecations"]
        patch = Patch.model_validate_json(json.dumps({"deprecations": [value, *sound]}), strict=True)
        assert patch.deprecations == [Deprecation.model_validate(one) for one in sound]

    def test_the_faults_name_fields_and_never_values(self) -> None:
        flawed: list[str] = []
        with pytest.raises(ValidationError):
            Patch.model_validate(upsert(kind="hates Ben", tags=[1]), context=flawed)
        assert flawed == ["upserts 0: kind literal_error, tags.0 string_type"]

    def test_an_answer_without_a_sound_proposal_is_refused(self) -> None:
        with pytest.raises(ModelBadOutput, match=r"upserts 0: quote missing; upserts 1: quote missing"):
            checked(json.dumps({"upserts": [{"kind": "fact", "text": "x", "source": "m1"}] * 2}), Patch)

    def test_flawed_traits_alone_are_no_reason_to_refuse_it(self) -> None:
        assert checked('{"upserts": [], "traits": ["be nice"]}', Patch) == Patch()

    @each_row("name", ["tags", "links"])
    def test_none_for_a_list_is_an_empty_one(self, name: str) -> None:
        assert getattr(Patch.model_validate(upsert(**{name: None})).upserts[0], name) == []

    def test_fields_that_nobody_asked_for_change_nothing(self) -> None:
        patch = Patch.model_validate({**upsert(author="stated", confidence=1), "notes": "done"})
        assert patch == Patch.model_validate(upsert())

    @each_row(
        ("said", "meant"),
        [
            ("Private", "private"),
            ("confidential", "private"),
            ("high", "private"),
            (" NORMAL ", "normal"),
            (None, "normal"),
        ],
    )
    def test_any_other_word_for_a_secret_is_taken_for_private(self, said: str | None, meant: str) -> None:
        assert Patch.model_validate(upsert(sensitivity=said)).upserts[0].sensitivity == meant

    def test_a_patch_can_not_be_changed_after_it_was_checked(self) -> None:
        with pytest.raises(ValidationError, match="frozen"):
            Patch().upserts = []  # type: ignore[misc]

    @each_row("value", ["{}", '{"summary": 5}', '{"summary": "x", "note": 1}', '{"summary": null}'])
    def test_a_summary_is_one_text_and_nothing_else(self, value: str) -> None:
        assert Summary.model_validate_json('{"summary": "x"}').summary == "x"
        with pytest.raises(ValidationError):
            Summary.model_validate_json(value)
