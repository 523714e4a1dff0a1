"""Rows of a store: a value of another type than it had is damage, never an error of Python's."""

import pytest

from firnline.errors import StoreCorrupt
from firnline.log.entry import Key, genesis
from firnline.store.rows import ConversationRow, mark_of

KEY = Key("default", "trip")


@pytest.mark.parametrize("place", range(8))
@pytest.mark.parametrize("value", [None, b"", b"x", "x", 1.5])
def test_a_value_of_another_type_is_damage(place, value):
    row = [1, 2, 17, "hash", genesis(KEY), 5, 0, mark_of(2, 17, "hash", 5, 0)]
    assert ConversationRow.of(KEY, row).next_seq == 2
    if place in (0, 3) or (place, value) == (7, None):
        return  # not in the mark, still a text, or written before there were marks
    row[place] = value
    with pytest.raises(StoreCorrupt):
        ConversationRow.of(KEY, row)
