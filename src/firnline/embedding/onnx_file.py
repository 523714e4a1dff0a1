"""Files of ONNX, as far as needed here: reads the weights in one, and writes a network as one.

Such a file is a protobuf message: fields with a number, and a length or an integer. Pure; needs
numpy.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]
Value: TypeAlias = bytes | int
Attribute: TypeAlias = int | float | Array | Sequence[int]

IR_VERSION: Final = 8
OPSET: Final = 17
CONTRIB: Final = "com.microsoft"
"""The domain of onnxruntime's own operators."""

_TYPES: Final[Mapping[str, int]] = {
    "float32": 1,
    "uint8": 2,
    "int8": 3,
    "int32": 6,
    "int64": 7,
    "bool": 9,
}
_INTEGER, _BYTES, _FOUR, _EIGHT = 0, 2, 5, 1


# -- reading ----------------------------------------------------------------------------------


def weights(file: bytes) -> dict[str, Array]:
    """The arrays that a file holds, by name."""
    arrays: dict[str, Array] = {}
    names = {number: name for name, number in _TYPES.items()}
    graph = next(value for number, value in _fields(file) if number == 7)  # noqa: PLR2004
    for number, value in _fields(graph):
        if number != 5:  # noqa: PLR2004 - an initializer
            continue
        tensor: dict[int, Value] = {}
        shape = list[int]()
        for part, content in _fields(value):
            if part == 1:
                shape += [content] if isinstance(content, int) else _integers(content)
            tensor[part] = content
        raw, kind, name = tensor.get(9), tensor[2], tensor[8]
        if isinstance(raw, bytes) and isinstance(kind, int) and isinstance(name, bytes):
            arrays[name.decode()] = np.frombuffer(raw, names[kind]).reshape(shape)
    return arrays


def _fields(message: Value) -> Iterator[tuple[int, Value]]:
    """The numbers and values of a message's fields."""
    if isinstance(message, int):
        return
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        kind = key & 7
        if kind == _INTEGER:
            value, at = _varint(message, at)
            yield key >> 3, value
            continue
        size = {_FOUR: 4, _EIGHT: 8}.get(kind)
        if size is None:
            size, at = _varint(message, at)
        yield key >> 3, message[at : at + size]
        at += size


def _integers(packed: bytes) -> Iterator[int]:
    at = 0
    while at < len(packed):
        value, at = _varint(packed, at)
        yield value


def _varint(message: bytes, at: int) -> tuple[int, int]:
    """An integer in groups of seven bits, and where it ends."""
    value = shift = 0
    while True:
        byte = message[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:  # noqa: PLR2004
            return value, at


# -- writing ----------------------------------------------------------------------------------


class Network:
    """A network that is written step by step; the name of a step stands for its output."""

    def __init__(self) -> None:
        self._nodes: list[bytes] = []
        self._arrays: dict[str, bytes] = {}

    def array(self, content: Any, name: str = "") -> str:
        """Weights; those with a name are written once."""
        name = name or f"array_{len(self._arrays)}"
        if name not in self._arrays:
            self._arrays[name] = _tensor(name, np.asarray(content))
        return name

    def step(self, operator: str, *inputs: str, domain: str = "", **attributes: Attribute) -> str:
        """An operator with one output."""
        return self.steps(operator, *inputs, outputs=1, domain=domain, **attributes)[0]

    def steps(
        self, operator: str, *inputs: str, outputs: int, domain: str = "", **attributes: Attribute
    ) -> list[str]:
        """An operator with several outputs."""
        names = [f"step_{len(self._nodes)}_{number}" for number in range(outputs)]
        parts = [_field(1, name) for name in inputs] + [_field(2, name) for name in names]
        parts += [_field(4, operator), _field(7, domain)]
        parts += [_field(5, _attribute(name, value)) for name, value in attributes.items()]
        self._nodes.append(_field(1, b"".join(parts)))
        return names

    def file(self, inputs: Mapping[str, str], output: str, kind: str) -> bytes:
        """The file; inputs and the output have the types that numpy gives these names."""
        graph = [
            *self._nodes,
            _field(2, "network"),
            *(_field(5, tensor) for tensor in self._arrays.values()),
            *(_field(11, _described(*one)) for one in inputs.items()),
            _field(12, _described(output, kind)),
        ]
        versions = (_field(1, domain) + _number(2, n) for domain, n in (("", OPSET), (CONTRIB, 1)))
        parts = [_number(1, IR_VERSION), _field(7, b"".join(graph))]
        return b"".join([*parts, *(_field(8, one) for one in versions)])


def _tensor(name: str, content: Array) -> bytes:
    shape = b"".join(_number(1, size) for size in content.shape)
    kind = _number(2, _TYPES[content.dtype.name])
    return shape + kind + _field(8, name) + _field(9, content.tobytes())


def _described(name: str, kind: str) -> bytes:
    return _field(1, name) + _field(2, _field(1, _number(1, _TYPES[kind])))


def _attribute(name: str, value: Attribute) -> bytes:
    """A named attribute: its value is in the field of its kind."""
    if isinstance(value, int):
        content = _number(3, value) + _number(20, 2)
    elif isinstance(value, float):
        content = _varints(2 << 3 | _FOUR) + np.float32(value).tobytes() + _number(20, 1)
    elif isinstance(value, np.ndarray):
        content = _field(5, _tensor("", value)) + _number(20, 4)
    else:
        content = b"".join(_number(8, one) for one in value) + _number(20, 7)
    return _field(1, name) + content


def _field(number: int, content: bytes | str) -> bytes:
    encoded = content.encode() if isinstance(content, str) else content
    return _varints(number << 3 | _BYTES, len(encoded)) + encoded


def _number(number: int, value: int) -> bytes:
    return _varints(number << 3 | _INTEGER, value & (1 << 64) - 1)


def _varints(*values: int) -> bytes:
    """Integers in groups of seven bits, the lowest first."""
    encoded = bytearray()
    for value in values:
        left = value
        while left >= 0x80:  # noqa: PLR2004
            encoded.append(left & 0x7F | 0x80)
            left >>= 7
        encoded.append(left)
    return bytes(encoded)
