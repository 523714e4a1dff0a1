"""Where rows are in a database file, byte by byte (https://sqlite.org/fileformat2.html)."""

from typing import NamedTuple

import apsw

LEAF = 0x0D
HEADER = 8


class Cell(NamedTuple):
    """A row of a table: its rowid, and where its bytes are in the file.

    `unused` is the one byte of it that means nothing: the type of the column that is the rowid.
    """

    table: str
    rowid: int
    start: int
    end: int
    unused: int


def leaf_pages(path, table):
    """(offset, size) of each leaf page of a table; the database must be closed otherwise."""
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        rows = connection.execute(
            "SELECT pgoffset, pgsize FROM dbstat WHERE name = ? AND pagetype = 'leaf'", (table,)
        )
        return list(rows)
    finally:
        connection.close()


def cells(path, table):
    """Every row of a table that fits into its page."""
    data = path.read_bytes()
    return [
        cell
        for offset, size in leaf_pages(path, table)
        for cell in _cells_of_page(table, data[offset : offset + size], offset)
    ]


def _cells_of_page(table, page, offset):
    assert page[0] == LEAF, "not a leaf, or the first page of the file"
    count = int.from_bytes(page[3:5], "big")
    for i in range(count):
        start = int.from_bytes(page[HEADER + 2 * i : HEADER + 2 * i + 2], "big")
        payload, at = _varint(page, start)
        rowid, at = _varint(page, at)
        assert at + payload <= len(page), "this row goes on in other pages"
        assert page[at] < 0x80, "a row with that many columns is not one of ours"
        yield Cell(table, rowid, offset + start, offset + at + payload, offset + at + 1)


def _varint(page, at):
    value = 0
    for i in range(8):
        byte = page[at + i]
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, at + i + 1
    return value << 8 | page[at + 8], at + 9
