"""Quantized vectors are small, and their error is bounded."""

import math
from array import array

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from firnline.embedding.quantize import (
    dots,
    join_tokens,
    pack,
    products,
    signs,
    split_tokens,
    unpack,
)
from firnline.errors import InputError

NUMBERS = st.floats(-(2.0**60), 2.0**60, width=32)
VECTORS = st.lists(NUMBERS, min_size=1, max_size=64)
PAIRS = st.integers(1, 64).flatmap(
    lambda n: st.tuples(*[st.lists(NUMBERS, min_size=n, max_size=n)] * 2)
)


def scale_of(code):
    return float(np.frombuffer(code[:4], "<f4")[0])


@given(VECTORS)
def test_each_number_is_off_by_half_the_scale_at_most(vector):
    code = pack(vector)
    assert len(code) == 4 + len(vector)
    bound = max(scale_of(code) * 0.5001, 1e-35)
    assert all(abs(a - b) <= bound for a, b in zip(vector, unpack(code), strict=True))


@given(PAIRS)
def test_a_dot_product_is_off_by_a_known_bound(pair):
    vector, other = pair
    code = pack(other)
    length = math.hypot(*vector)
    exact = math.fsum(a * b for a, b in zip(vector, other, strict=True))
    bound = length * max(scale_of(code), 1e-35) * math.sqrt(len(vector)) * 0.51
    assert abs(dots(vector, [code])[0] - exact) <= bound + 1e-30


def test_a_unit_vector_is_kept_to_two_digits():
    drawn = np.random.default_rng(1).normal(size=(200, 384))
    unit = drawn / np.linalg.norm(drawn, axis=1, keepdims=True)
    codes = [pack(row) for row in unit]
    for row in unit[:20]:
        found = np.array(dots(row, codes, np))
        assert np.abs(found - unit @ row).max() < 0.004
        assert found == pytest.approx(dots(list(row), codes), abs=1e-5)


@given(VECTORS)
def test_packing_again_changes_nothing(vector):
    code = pack(vector)
    assert pack(unpack(code))[4:] == code[4:]


@given(VECTORS)
def test_every_type_of_vector_gives_the_same_result(vector):
    assert pack(vector) == pack(array("f", vector)) == pack(np.array(vector, np.float32))
    assert signs(vector) == signs(np.array(vector, np.float32))


@given(VECTORS)
def test_signs_are_as_numpy_packs_them(vector):
    assert signs(vector) == np.packbits(np.array(vector) >= 0).tobytes()


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, 1e300])
def test_what_is_not_finite_is_rejected(bad):
    with pytest.raises(InputError, match="finite"):
        pack([1.0, bad])


def test_nothing_is_not_much():
    assert pack([]) == bytes(4)
    assert pack([0.0, 0.0]) == bytes(6)
    assert signs([]) == b""
    assert dots([], []) == dots([], [], np) == []


def test_flags_of_the_multiplication_are_no_warnings():
    """It raises them for good numbers, too, now and then; here for one that is none."""
    rows = np.zeros((2, 2), np.int8)
    found = products(rows, np.array([np.inf, 1], np.float32), np)
    assert np.isnan(found).all()


# -- with codes of tokens -----------------------------------------------------------------------


@given(VECTORS, st.binary(max_size=700))
def test_a_vector_and_codes_of_tokens_come_back_from_one_value(vector, tokens):
    code = pack(vector)
    joined = join_tokens(code, tokens)
    assert split_tokens(joined) == (code, tokens)
    assert len(joined) == len(code) + (len(tokens) + 2 if tokens else 0)
    assert split_tokens(code) == (code, b""), "as it was stored before there were codes"


@given(st.binary(max_size=60))
def test_any_bytes_can_be_split(body):
    code, tokens = split_tokens(body)
    assert len(code) + len(tokens) <= len(body)
