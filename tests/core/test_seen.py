"""What was last seen of a model: a failure counts until it answers, or until it is old news."""

from discoclaw.core.errors import ModelUnreachable
from discoclaw.core.health import NEWS_MS, Seen


def test_a_failure_that_nobody_has_tried_again_for_long_is_a_warning() -> None:
    now = 1_000_000
    seen = Seen(lambda: now)
    seen.failed("answer", ModelUnreachable("at 10.0.0.7"))
    found = seen.finding("the model", "answer", "wait")
    told = "it failed 0 s ago: no connection to the model, or its stream broke off"
    assert (found.state, found.text) == ("bad", told)
    now += NEWS_MS
    assert seen.finding("the model", "answer", "wait").state == "warning"
    seen.answered("answer")
    assert seen.finding("the model", "answer", "wait").state == "good"
