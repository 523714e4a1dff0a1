"""MiniLM's network, computed in 8 bits: twice as fast as in 32. Pure; needs numpy.

The published weights are numbers of 8 bits, with a scale for each column. What they are multiplied
with is brought to 8 bits, too, with a scale for each token. So the vectors of a text depend on that
text alone, never on the others of its batch. Processors that cannot add products of 8 bits without
overflow compute in 32; `bytes_overflow` is for finding out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from firnline.embedding.onnx_file import CONTRIB, Network, weights
from firnline.embedding.quantize import STEPS

LAYERS: Final = 6
HEADS: Final = 12
WIDTH: Final = 384

_EPSILON: Final = 1e-12
_ALL_STEPS: Final = 255
_MIDDLE: Final = 128
_LEAST_SCALE: Final = 1e-12
_GELU_LEAST: Final = 0.17
"""No output of GELU is further below zero."""
_EMBEDDINGS: Final = "inner.embeddings."
_FLOAT: Final = 1


class _Bytes(NamedTuple):
    """Rows in 8 bits: the numbers, the scale of each row, and the number that stands for zero."""

    numbers: str
    scales: str
    zero: str


def minilm(file: bytes, bits: int) -> bytes:
    """The network with the published weights, computed in 8 or 32 bits.

    It takes ``ids`` and ``mask``, both int32, and returns the vectors of all pieces.
    """
    return _MiniLM(weights(file), bits).write()


def bytes_product() -> tuple[bytes, dict[str, NDArray[Any]], int]:
    """A network, an input, and every number of the output if products of 8 bits are exact.

    Older x86 processors add them in pairs, in 16 bits, and cut off what is larger.
    """
    network = Network()
    most = network.array(np.full((WIDTH, WIDTH), STEPS, np.int8))
    product = network.step("MatMulInteger", "left", most)
    left = np.full((WIDTH, WIDTH), _ALL_STEPS, np.uint8)
    file = network.file({"left": "uint8"}, product, "int32")
    return file, {"left": left}, WIDTH * STEPS * _ALL_STEPS


class _MiniLM:
    """Writes the network."""

    def __init__(self, known: Mapping[str, NDArray[Any]], bits: int) -> None:
        self._known, self._network = known, Network()
        self._multiply = self._in_bytes if bits == 8 else self._in_floats  # noqa: PLR2004
        # The exporter numbered the matrices in the order in which they are used.
        names = [name[:-2] for name in known if name.startswith("val_") and name.endswith("_q")]
        self._matrices = sorted(names, key=lambda name: int(name.removeprefix("val_")))

    def write(self) -> bytes:
        step, array = self._network.step, self._network.array
        shape = step("Shape", "ids")
        self._rows = array([-1, WIDTH])
        self._batch = step("Concat", shape, array([WIDTH]), axis=0)
        self._wide_batch = step("Concat", shape, array([3 * WIDTH]), axis=0)
        rows = self._embedded(shape)
        for layer in range(LAYERS):
            rows = self._after(layer, rows)
        vectors = step("Reshape", rows, self._batch)
        return self._network.file({"ids": "int32", "mask": "int32"}, vectors, "float32")

    def _embedded(self, shape: str) -> str:
        """The pieces, each as a row: what is known of it and of its position."""
        step, array = self._network.step, self._network.array
        of_pieces, of_positions, kinds = (
            self._known[f"{_EMBEDDINGS}{name}_embeddings.weight{end}"]
            for name, end in (("word", "_q"), ("position", "_q"), ("token_type", ""))
        )
        scales = self._known[f"{_EMBEDDINGS}word_embeddings.weight_scale"]
        numbers = step("Cast", step("Gather", array(of_pieces), "ids"), to=_FLOAT)
        pieces = step("Mul", numbers, step("Gather", array(scales), "ids"))
        scales = self._known[f"{_EMBEDDINGS}position_embeddings.weight_scale"]
        all_positions = (of_positions * scales + kinds[0]).astype(np.float32)
        zero, one, two = (array([number]) for number in range(3))
        length = step("Slice", shape, one, two)
        positions = step("Slice", array(all_positions), zero, length, zero)
        placed = step("Reshape", step("Add", pieces, positions), self._rows)
        return self._normal(placed, f"{_EMBEDDINGS}LayerNorm")

    def _after(self, layer: int, rows: str) -> str:
        """What a layer makes of the rows: attention, then two linear steps, each added to them."""
        step, path = self._network.step, f"inner.encoder.layer.{layer}."
        *asked, out, wider, narrower = self._matrices[6 * layer : 6 * layer + 6]
        names = [f"{path}attention.self.{name}" for name in ("query", "key", "value")]
        whole = step("Add", *self._multiply(rows, asked, names))
        third = self._network.array([WIDTH] * 3, "thirds")
        whole = step("Reshape", whole, self._wide_batch)
        parts = self._network.steps("Split", whole, third, outputs=3, axis=2)
        attended = step("MultiHeadAttention", *parts, "", "mask", domain=CONTRIB, num_heads=HEADS)
        attended = step("Reshape", attended, self._rows)
        product = self._multiply(attended, [out], [f"{path}attention.output.dense"])
        rows = self._sum(rows, product, f"{path}attention.output.LayerNorm")
        product = self._multiply(rows, [wider], [f"{path}intermediate.dense"])
        wide = step("FastGelu", *product, domain=CONTRIB)
        product = self._multiply(wide, [narrower], [f"{path}output.dense"], _GELU_LEAST)
        return self._sum(rows, product, f"{path}output.LayerNorm")

    def _sum(self, rows: str, product: tuple[str, str], name: str) -> str:
        # As one step, with onnxruntime's SkipLayerNormalization, this takes eight times as long.
        whole = self._network.step("Add", self._network.step("Add", *product), rows)
        return self._normal(whole, name)

    def _normal(self, rows: str, name: str) -> str:
        scale, shift = (self._network.array(self._known[f"{name}.{n}"]) for n in ("weight", "bias"))
        return self._network.step(
            "LayerNormalization", rows, scale, shift, axis=-1, epsilon=_EPSILON
        )

    # -- products -----------------------------------------------------------------------------

    def _weights(
        self, matrices: Sequence[str], names: Sequence[str]
    ) -> tuple[NDArray[np.int8], NDArray[np.float32], NDArray[np.float32]]:
        """Matrices next to each other: their numbers, their scales, and what is added."""
        parts = (
            [self._known[f"{matrix}_q"] for matrix in matrices],
            [self._known[f"{matrix}_scale"] for matrix in matrices],
            [self._known[f"{name}.bias"] for name in names],
        )
        numbers, scales, bias = (np.concatenate(part, axis=-1) for part in parts)
        return numbers, scales.reshape(-1), bias

    def _in_floats(
        self, rows: str, matrices: Sequence[str], names: Sequence[str], _: float = 0.0
    ) -> tuple[str, str]:
        """The product of rows and matrices, and what is to be added."""
        numbers, scales, bias = self._weights(matrices, names)
        matrix = self._network.array(numbers * scales)
        return self._network.step("MatMul", rows, matrix), self._network.array(bias)

    def _in_bytes(
        self, rows: str, matrices: Sequence[str], names: Sequence[str], below: float = 0.0
    ) -> tuple[str, str]:
        """The same in 8 bits; no number of the rows is further `below` zero, if that is known."""
        step, array = self._network.step, self._network.array
        numbers, scales, bias = self._weights(matrices, names)
        packed = self._pack_above(rows, below) if below else self._pack(rows)
        inputs = [packed.numbers, array(numbers), array(np.float32(1), "unit"), array(scales)]
        product = step("MatMulIntegerToFloat", *inputs, packed.zero, domain=CONTRIB)
        moved = below * (numbers * scales).sum(axis=0)
        return step("Mul", product, packed.scales), array((bias - moved).astype(np.float32))

    def _pack(self, rows: str) -> _Bytes:
        """Rows in 127 steps on both sides of zero."""
        return self._quantize(rows, self._network.step("Abs", rows), STEPS, _MIDDLE)

    def _pack_above(self, rows: str, below: float) -> _Bytes:
        """Rows in 255 steps above their least number."""
        above = self._network.step("Add", rows, self._network.array(np.float32(below), "below"))
        return self._quantize(above, above, _ALL_STEPS, 0)

    def _quantize(self, rows: str, sizes: str, steps: int, zero: int) -> _Bytes:
        step, array = self._network.step, self._network.array
        largest = step("ReduceMax", sizes, axes=[-1], keepdims=1)
        scales = step("Mul", largest, array(np.float32(1 / steps), f"step_{steps}"))
        scales = step("Max", scales, array(np.float32(_LEAST_SCALE), "least_scale"))
        flat = step("Reshape", scales, array([-1], "flat"))
        value = np.array([zero], np.uint8)
        zeros = step("ConstantOfShape", step("Shape", flat), value=value)
        numbers = step("QuantizeLinear", rows, flat, zeros, axis=0)
        return _Bytes(numbers, scales, array(np.uint8(zero), f"zero_{zero}"))
