"""What is there at the start is passed over by the garbage collector, and everything else is not."""

import gc
import weakref

from discoclaw.app.heap import freeze_heap


class Ring:
    """An object that only the collector can free."""

    def __init__(self) -> None:
        self.itself = self


def test_only_what_comes_later_is_collected() -> None:
    lasting = Ring()
    before = weakref.ref(lasting)
    try:
        freeze_heap()
        assert gc.get_freeze_count() > 0
        del lasting
        after = weakref.ref(Ring())
        gc.collect()
        assert before() is not None
        assert after() is None
    finally:
        gc.unfreeze()
        gc.collect()
    assert before() is None
