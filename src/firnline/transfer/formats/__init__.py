"""Conversations in other programs' formats: pure readers, one module each, and writers.

A reader takes a stream and gives conversations, with ids that are the same in every file, and notes
on whatever it did not take. `detect_format` finds the format by what is in a file.
"""

from __future__ import annotations

from firnline.transfer.formats.detect import HTML, OWN, READERS, detect_format

__all__ = ["HTML", "OWN", "READERS", "detect_format"]
