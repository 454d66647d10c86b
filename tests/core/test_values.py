"""Frozen values that are quick to make."""

from discoclaw.core.message import Author, Said
from discoclaw.core.values import dataclass, field, replace


@dataclass(frozen=True, slots=True)
class Point:
    x: int
    tags: tuple[str, ...] = field(default=())


class TestValues:
    def test_equal_values_are_equal_keys(self) -> None:
        assert {Point(1): "here"}[Point(1)] == "here"
        assert Point(1) != Point(2)

    def test_a_changed_value_is_another_one(self) -> None:
        point = Point(1)
        assert (replace(point, x=2), point) == (Point(2), Point(1))

    def test_what_a_message_becomes_is_made_without_a_call_for_each_field(self) -> None:
        for made in (Point, Author, Said):
            assert made.__setattr__ is object.__setattr__
