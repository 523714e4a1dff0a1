"""Conversations in other programs' formats: pure readers, one module each, and writers.

A reader takes a stream and returns conversations, with ids that are the same in every file, and
notes about what it skipped. `detect_format` detects the format by the content of a file.
"""

from __future__ import annotations

from firnline.transfer.formats.detect import HTML, OWN, READERS, detect_format

__all__ = ["HTML", "OWN", "READERS", "detect_format"]
