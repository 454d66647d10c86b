"""Responses of embedding providers, read into vectors. Every number is checked: this JSON comes from outside.

Pure: no connection. Formats:

OpenAI   {"data": [{"index": 0, "embedding": [0.1, …]}, …]}, in any order
         https://platform.openai.com/docs/api-reference/embeddings/create
Ollama   {"embeddings": [[0.1, …], …]}, in the order of the texts
         https://github.com/ollama/ollama/blob/main/docs/api.md#generate-embeddings
"""

import json
import math
from array import array
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from discoclaw.core.errors import EmbeddingRefused

MAX_DIMS = 8192
"""Longest accepted vector. No current model has longer ones (OpenAI: 3072)."""
MOST_TOKENS = 10_000_000
"""A response that counts more tokens is wrong about that."""

Vector: TypeAlias = "array[float]"
Reader = Callable[[Any], Sequence[object]]
"""Finds the raw vectors in a response, in the order of the texts. May raise any of `_MALFORMED`."""

_MALFORMED = (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError)


def read(body: bytes, count: int, find: Reader, *, dims: int | None = None) -> tuple[list[Vector], int]:
    """The `count` vectors of a response, and the tokens that the server counted; 0 if it doesn't say.

    Raises EmbeddingRefused, which says what is wrong with it. `dims` is the expected length. None accepts
    any length, as long as all vectors have the same.
    """
    try:
        answer = json.loads(body, parse_constant=_no_number)
        vectors = [_vector(one) for one in find(answer)]
    except _MALFORMED as error:
        raise EmbeddingRefused(f"the response holds no vectors ({type(error).__name__})") from None
    if len(vectors) != count:
        raise EmbeddingRefused(f"the response has {len(vectors)} vectors for {count} texts")
    lengths = {len(vector) for vector in vectors} | ({dims} if dims is not None else set())
    if len(lengths) > 1:
        raise EmbeddingRefused(f"the vectors have {_either(lengths)} numbers instead of one common length")
    return vectors, _tokens(answer)


def of_openai(answer: Any) -> Sequence[object]:
    """The vectors of an OpenAI response, sorted by `index`. Compatible servers may leave `index` out."""
    data = answer["data"]
    order = [one.get("index", place) for place, one in enumerate(data)]
    if sorted(order) != list(range(len(data))):
        raise ValueError("the indexes are not 0 to n-1")
    vectors: list[object] = [None] * len(data)
    for place, one in zip(order, data, strict=True):
        vectors[place] = one["embedding"]
    return vectors


def of_ollama(answer: Any) -> Sequence[object]:
    """The vectors of an Ollama response."""
    vectors = answer["embeddings"]
    if not isinstance(vectors, list):
        raise TypeError("embeddings is not a list")
    return vectors


def _tokens(answer: Mapping[str, Any]) -> int:
    """The tokens that the server counted: OpenAI's form has them under `usage`, Ollama's has its own name."""
    usage = answer.get("usage")
    counted = usage.get("prompt_tokens") if isinstance(usage, Mapping) else answer.get("prompt_eval_count")
    return counted if isinstance(counted, int) and 0 < counted < MOST_TOKENS else 0


def _vector(value: object) -> Vector:
    if not isinstance(value, list) or not 0 < len(value) <= MAX_DIMS:
        raise ValueError("a vector has to be a list of numbers")
    vector = array("f", value)  # raises TypeError for anything but a number
    if not all(map(math.isfinite, vector)):
        raise ValueError("a vector has to be finite")
    return vector


def _no_number(name: str) -> float:
    """Reject NaN and Infinity, which Python's parser accepts by default although JSON has neither."""
    raise ValueError(f"{name} is not a number")


def _either(lengths: set[int]) -> str:
    return " or ".join(map(str, sorted(lengths)))
