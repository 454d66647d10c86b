"""docs/dev/designs.md says what the tests exercise, and nothing else."""

from tests.designs.table import TESTS, designs, document, marked


def test_every_marker_names_a_statement() -> None:
    known = [one.number for design in designs() for one in design.statements]
    assert known == list(range(1, len(known) + 1)), "no statement is missing, and none is there twice"
    assert set(marked()) - set(known) == set()


def test_every_statement_has_a_test() -> None:
    used = marked()
    assert {design.name: design.missing(used) for design in designs()} == {one.name: [] for one in designs()}


def test_the_document_is_up_to_date() -> None:
    page = TESTS.parent / "docs/dev/designs.md"
    assert page.read_text(encoding="utf-8") == document(), "run `make docs`"
