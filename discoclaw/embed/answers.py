"""What providers answer, as vectors: JSON from outside is checked here, number by number. Pure.

OpenAI   {"data": [{"index": 0, "embedding": [0.1, …]}, …]}, in any order
         https://platform.openai.com/docs/api-reference/embeddings/create
Ollama   {"embeddings": [[0.1, …], …]}, in the order of the texts
         https://github.com/ollama/ollama/blob/main/docs/api.md#generate-embeddings
"""

import json
import math
from array import array
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from discoclaw.core.errors import EmbeddingRefused

MOST_DIMS = 8192
"""No model of today has longer vectors."""

Vector: TypeAlias = "array[float]"
Reader = Callable[[Any], Sequence[object]]
"""Finds the raw vectors in an answer, in the order of the texts. May raise any of `_WRONG`."""

_WRONG = (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError)


def read(body: bytes, count: int, find: Reader, *, dims: int | None = None) -> list[Vector]:
    """The `count` vectors of an answer. Raises EmbeddingRefused, which says what is wrong with it.

    `dims` is their length where it is known; else they only have to be of one length.
    """
    try:
        found = find(json.loads(body, parse_constant=_no_number))
        vectors = [_vector(one) for one in found]
    except _WRONG as error:
        raise EmbeddingRefused(f"the answer holds no vectors ({type(error).__name__})") from None
    if len(vectors) != count:
        raise EmbeddingRefused(f"the answer has {len(vectors)} vectors for {count} texts")
    lengths = {len(vector) for vector in vectors} | ({dims} if dims is not None else set())
    if len(lengths) > 1:
        raise EmbeddingRefused(f"the vectors have {_either(lengths)} numbers, where one length is expected")
    return vectors


def of_openai(answer: Any) -> Sequence[object]:
    """The vectors of OpenAI's form, put in order by their `index`; without any, as they come."""
    data = answer["data"]
    order = [one.get("index", place) for place, one in enumerate(data)]
    if sorted(order) != list(range(len(data))):
        raise ValueError("the indexes are no order")
    vectors: list[object] = [None] * len(data)
    for place, one in zip(order, data, strict=True):
        vectors[place] = one["embedding"]
    return vectors


def of_ollama(answer: Any) -> Sequence[object]:
    """The vectors of Ollama's form."""
    vectors = answer["embeddings"]
    if not isinstance(vectors, list):
        raise TypeError("the vectors are no list")
    return vectors


def _vector(value: object) -> Vector:
    if not isinstance(value, list) or not 0 < len(value) <= MOST_DIMS:
        raise ValueError("a vector is a list of numbers")
    vector = array("f", value)  # raises TypeError at anything that is no number
    if not all(map(math.isfinite, vector)):
        raise ValueError("a vector has only finite numbers")
    return vector


def _no_number(name: str) -> float:
    raise ValueError(f"{name} is no number")


def _either(lengths: set[int]) -> str:
    return " or ".join(map(str, sorted(lengths)))
