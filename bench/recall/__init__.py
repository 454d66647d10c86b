"""How well memory is found: made-up people and conversations, plain rankings beside ours, and what it costs.

`python -m bench.recall` prints the tables of quality and time; `python -m bench recall` measures only what
one choice for a prompt costs, as the other figures of `bench` do.
"""

from bench.recall.latency import measure

__all__ = ["measure"]
