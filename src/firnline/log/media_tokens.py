"""The tokens of an attachment by its model's rule. Pure; nothing is decoded, and nothing raises.

What cannot be known, because the data is elsewhere or its header is damaged, is estimated on the
high side; `limits` has the assumptions.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

from firnline.log import limits
from firnline.log.attachment import Attachment, EncodedBytes
from firnline.log.audio_length import audio_seconds
from firnline.log.image_size import image_size
from firnline.log.media_rules import MediaRule
from firnline.log.pdf_pages import is_pdf, read_pdf

_RATES: Final = {"audio": 4_000, "video": 62_500}
"""Bytes of a second in an unknown format: low, so that the length is on the high side."""
_VIDEO_RATE_MIN: Final = 12_500
_PCM_RATE: Final = 48_000
"""Bytes of a second of OpenAI's ``pcm16``, which has no header."""
_NOTE_TOKENS: Final = 10
"""A provider that takes no sound gets a note in its place."""
_CHARS_PER_TOKEN: Final = 3
_BYTES_PER_TOKEN: Final = 4
_TEXT_TYPES: Final = ("application/json", "application/xml", "application/x-yaml")


class Measured(NamedTuple):
    """What an attachment costs: tokens by a rule, and texts that are counted as text."""

    tokens: int
    texts: tuple[str, ...] = ()


def measure(attachment: Attachment, rule: MediaRule) -> Measured:
    """The cost of an attachment."""
    medium, data, texts = attachment.medium, attachment.data, attachment.texts
    if medium == "image":
        size = image_size(data) if data else None
        return Measured(rule.image_tokens(size, attachment.detail), texts)
    if medium == "audio":
        return Measured(_recording_tokens(attachment, rule.audio), texts)
    if medium == "video":
        return Measured(_recording_tokens(attachment, rule.video), texts)
    if data is not None:
        return _measure_file(attachment, data, rule)
    is_text = attachment.media_type.startswith("text/")
    pages = 0 if is_text and texts else limits.REFERENCE_PAGES
    return Measured(pages * _page_tokens(rule, limits.PAGE_TOKENS), texts)


def _recording_tokens(attachment: Attachment, rate: float) -> int:
    return max(math.ceil(_seconds(attachment) * rate), _NOTE_TOKENS)


def _seconds(attachment: Attachment) -> float:
    data = attachment.data
    if data is None:
        video = attachment.medium == "video"
        return limits.REFERENCE_VIDEO_SECONDS if video else limits.REFERENCE_SECONDS
    if attachment.media_type == "pcm16":
        return data.size / _PCM_RATE
    known = audio_seconds(data)
    if known is None:
        return data.size / _RATES[attachment.medium]
    if attachment.medium == "video":
        return min(known, data.size / _VIDEO_RATE_MIN)
    return known


def _measure_file(attachment: Attachment, data: EncodedBytes, rule: MediaRule) -> Measured:
    media_type, texts = attachment.media_type, attachment.texts
    if media_type == "application/pdf" or is_pdf(data):
        return Measured(_pdf_tokens(data, rule), texts)
    if media_type.startswith("text/") or media_type in _TEXT_TYPES:
        return Measured(0, (*texts, data.read(0, data.size).decode(errors="replace")))
    if (size := image_size(data)) is not None:
        return Measured(rule.image_tokens(size, attachment.detail), texts)
    return Measured(min(data.size // _BYTES_PER_TOKEN + 1, limits.FILE_TOKENS_MAX), texts)


def _pdf_tokens(data: EncodedBytes, rule: MediaRule) -> int:
    """The pictures of its pages, and their text: a third of its characters, but not too many."""
    pages, chars = read_pdf(data) if is_pdf(data) else (None, None)
    if pages is None:
        pages = min(data.size // limits.PAGE_BYTES + 1, limits.PAGES_GUESSED_MAX)
    text = limits.PAGE_TOKENS
    if chars is not None:
        text = min(chars // (_CHARS_PER_TOKEN * pages) + 1, limits.PAGE_TOKENS_MAX)
    return pages * _page_tokens(rule, text)


def _page_tokens(rule: MediaRule, text: int) -> int:
    return rule.page + (text if rule.page_text else 0)
