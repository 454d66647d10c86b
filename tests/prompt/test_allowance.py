"""When an answer has called tools for long enough; the rest is seen from outside."""

from discoclaw.session.conversation import Allowance


class Clock:
    """The seconds that it is set to."""

    now = 50.0

    def __call__(self) -> float:
        return self.now


def test_after_five_minutes_it_may_call_no_more() -> None:
    clock = Clock()
    allowance = Allowance(4096, clock)
    clock.now += 299
    assert allowance.ask(1)
    clock.now += 1
    assert not allowance.ask(1)
