"""When an answer has called enough tools."""

from discoclaw.core.model import AssistantTurn, ToolCall, ToolResult, ToolTurn
from discoclaw.session.allowance import Allowance


class Clock:
    def __init__(self) -> None:
        self.now = 50.0

    def __call__(self) -> float:
        return self.now


def look(what: str, found: str, text: str = "") -> tuple[AssistantTurn, ToolTurn]:
    call = ToolCall("1", "look", {"at": what})
    return AssistantTurn(text, (call,)), ToolTurn((ToolResult("1", found),))


class TestWhatEndsIt:
    def test_tokens(self) -> None:
        allowance = Allowance(4096, Clock())
        for number in range(5):
            assert allowance.may_call()
            allowance.add(249_999, *look(f"{number}", "nothing"))
        assert not allowance.may_call()

    def test_time(self) -> None:
        clock = Clock()
        allowance = Allowance(4096, clock)
        clock.now += 299
        assert allowance.may_call()
        clock.now += 1
        assert not allowance.may_call()

    def test_rounds(self) -> None:
        allowance = Allowance(4096, Clock())
        for number in range(60):
            assert allowance.may_call()
            allowance.add(1, *look(f"{number}", "nothing"))
        assert not allowance.may_call()

    def test_as_much_text_as_an_answer_has(self) -> None:
        allowance = Allowance(130, Clock())
        allowance.add(1, *look("1", "nothing", "so " * 99))
        assert allowance.may_call()
        allowance.add(1, *look("2", "nothing", "so"))
        assert not allowance.may_call()


class TestRepeatedCalls:
    def test_one_call_and_one_result_over_and_over(self) -> None:
        allowance = Allowance(4096, Clock())
        for _ in range(4):
            assert allowance.may_call()
            allowance.add(1, *look("tea", "nothing"))
        assert not allowance.may_call()

    def test_two_in_turn(self) -> None:
        allowance = Allowance(4096, Clock())
        for what in ("tea", "cake", "tea", "cake", "tea"):
            assert allowance.may_call()
            allowance.add(1, *look(what, "nothing"))
        assert not allowance.may_call()

    def test_a_call_whose_result_changes_is_no_loop(self) -> None:
        allowance = Allowance(4096, Clock())
        for number in range(20):
            allowance.add(1, *look("the list", f"{number} items"))
        assert allowance.may_call()
