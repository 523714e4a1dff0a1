"""What providers charge for images, pages and recordings: their published rules, as data. Pure.

A rule belongs to a family of models. The names that are longer come first: ``gpt-4o-mini`` before
``gpt-4o``. For a model of no known family the rule is on the high side.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache
from typing import Final, NamedTuple, Protocol

from firnline.log.regex import regex

_WORD: Final = regex(r"[a-z0-9]")
_LOW_EDGE: Final = 512
"""In low detail a model gets the image in 512 by 512 pixels."""


class ImageRule(Protocol):
    """The tokens of an image of `width` times `height` pixels."""

    def tokens(self, width: int, height: int, detail: str) -> int:
        """The tokens in this detail: ``low``, ``high``, ``original``, ``auto`` or nothing."""
        ...


class ImageTiles(NamedTuple):
    """OpenAI's tiles of 512 pixels, after scaling to 2,048 and to 768 on the shorter side."""

    base: int
    tile: int

    def tokens(self, width: int, height: int, detail: str) -> int:
        """See `ImageRule`."""
        if detail == "low":
            return self.base
        width, height = _fit(width, height, 2_048)
        short = min(width, height)
        if short > 768:  # noqa: PLR2004
            width, height = width * 768 // short, height * 768 // short
        return self.base + self.tile * _cells(width, height, 512)


class ImagePatches(NamedTuple):
    """Patches of some pixels; larger images are scaled down until they have `most`."""

    size: int
    most: int
    edge: int
    multiplier: float = 1.0
    base: int = 0
    original: tuple[int, int] | None = None
    """`most` and `edge` for the detail ``original``."""
    original_is_usual: bool = False
    whole: bool = False
    """Whether it is scaled to whole patches, as OpenAI's rule says; else `most` is charged."""

    def tokens(self, width: int, height: int, detail: str) -> int:
        """See `ImageRule`."""
        most, edge = self.most, self.edge
        if self.original and (
            detail == "original" or (self.original_is_usual and detail not in ("low", "high"))
        ):
            most, edge = self.original
        if detail == "low" and self.whole:
            edge = _LOW_EDGE
        width, height = _fit(width, height, edge)
        patches = _cells(width, height, self.size)
        if patches > most:
            patches = self._shrunk(width, height, most) if self.whole else most
        return self.base + math.ceil(patches * self.multiplier)

    def _shrunk(self, width: int, height: int, most: int) -> int:
        factor = math.sqrt(self.size**2 * most / (width * height))
        across, down = width * factor / self.size, height * factor / self.size
        factor *= min(max(math.floor(n), 1) / n for n in (across, down))
        fitted = max(int(width * factor), 1), max(int(height * factor), 1)
        return min(_cells(*fitted, self.size), most)


class ImageCrops(NamedTuple):
    """Google's crops, whose side is two thirds of the shorter side, but 256 to 768 pixels."""

    crop: int

    def tokens(self, width: int, height: int, detail: str) -> int:  # noqa: ARG002 - see ImageRule
        """See `ImageRule`."""
        width, height = _fit(width, height, 3_072)
        if max(width, height) <= 384:  # noqa: PLR2004
            return self.crop
        side = min(max(min(width, height) * 2 // 3, 256), 768)
        return self.crop * _cells(width, height, side)


class ImageFixed(NamedTuple):
    """The same for every image."""

    usual: int
    low: int

    def tokens(self, width: int, height: int, detail: str) -> int:  # noqa: ARG002 - see ImageRule
        """See `ImageRule`."""
        return self.low if detail == "low" else self.usual


class MediaRule(NamedTuple):
    """What a family of models is charged for what is not text."""

    image: ImageRule
    page: int
    """The picture of a page of a PDF."""
    page_text: bool = True
    """Whether a page's text is charged, too."""
    audio: float = 32
    """A second of sound."""
    video: float = 300
    """A second of video with its sound."""

    def image_tokens(self, size: tuple[int, int] | None, detail: str) -> int:
        """The tokens of an image; of one of unknown size, those of a large one."""
        sizes = _LARGE if size is None else (size,)
        return max(self.image.tokens(*each, detail) for each in sizes)


_LARGE: Final = ((2_048, 768), (2_048, 2_048))


def _fit(width: int, height: int, edge: int) -> tuple[int, int]:
    """The size, scaled down so that no side is longer than `edge`."""
    long = max(width, height)
    if long <= edge:
        return width, height
    return max(width * edge // long, 1), max(height * edge // long, 1)


def _cells(width: int, height: int, size: int) -> int:
    return -(-width // size) * -(-height // size)


# OpenAI: developers.openai.com/api/docs/guides/images-vision ("Calculating costs") and
# .../file-inputs (a page is in low detail before gpt-5.6); audio from .../realtime-costs.
def _tiles(base: int, tile: int) -> MediaRule:
    return MediaRule(ImageTiles(base, tile), page=base, audio=10)


def _patches(multiplier: float) -> MediaRule:
    rule = ImagePatches(32, 1_536, 2_048, multiplier, whole=True)
    return MediaRule(rule, page=math.ceil(256 * multiplier), audio=10)


def _large_patches(most: int, *, usual: bool, page: int) -> MediaRule:
    # No multiplier is published; the endpoint reports 1.2.
    rule = ImagePatches(32, 2_500, 2_048, 1.2, 0, (most, 6_000), usual, whole=True)
    return MediaRule(rule, page, audio=10)


# Anthropic: platform.claude.com/docs/en/build-with-claude/vision (patches of 28 pixels; until
# Claude 4.6, and in Haiku 4.5, up to 1,568) and .../pdf-support. It takes no sound.
def _claude(most: int, edge: int) -> MediaRule:
    return MediaRule(ImagePatches(28, most, edge), page=1_568)


# Google: ai.google.dev/gemini-api/docs/tokens, .../image-understanding (crops) and
# .../media-resolution (Gemini 3). Text of a PDF is free.
_GEMINI_2: Final = MediaRule(ImageCrops(258), page=258, page_text=False)
_GEMINI_3: Final = MediaRule(ImageFixed(1_120, 280), page=560, page_text=False)
# xAI: docs.x.ai (image understanding): 256 for each tile of 448 pixels and one more, at most 1,792.
_GROK: Final = MediaRule(ImagePatches(448, 6, 1 << 30, 256, 256), page=1_792)

USUAL_RULE: Final = _tiles(85, 170)
"""For an encoding without a model: that of gpt-4o."""
UNKNOWN_RULE: Final = _claude(4_784, 2_576)
"""For other models: more than most of them charge."""

MEDIA_RULES: Final[Mapping[str, MediaRule]] = {
    "gpt": _large_patches(20_000, usual=True, page=2_340),
    "gpt-3": USUAL_RULE,
    "gpt-4": USUAL_RULE,
    "chatgpt-4o": USUAL_RULE,
    "gpt-4o-mini": _tiles(2_833, 5_667),
    "gpt-4.1-mini": _patches(1.62),
    "gpt-4.1-nano": _patches(2.46),
    "gpt-5": _tiles(70, 140),
    "gpt-5-mini": _patches(1.62),
    "gpt-5-nano": _patches(2.46),
    "gpt-5-codex-mini": _patches(1.62),
    "gpt-5.1-codex-mini": _patches(1.62),
    "gpt-5.2": _patches(1.2),
    "gpt-5.3": _patches(1.2),
    "gpt-5.4": _large_patches(10_000, usual=False, page=308),
    "gpt-5.4-mini": _patches(1.62),
    "gpt-5.4-nano": _patches(2.46),
    "gpt-5.5": _large_patches(10_000, usual=True, page=308),
    "gpt-5.6": _large_patches(10_000, usual=True, page=2_340),
    "o1": _tiles(75, 150),
    "o3": _tiles(75, 150),
    "o4": _patches(1.72),
    "computer-use": _tiles(65, 129),
    "claude": UNKNOWN_RULE,
    "claude-2": _claude(1_568, 1_568),
    "claude-3": _claude(1_568, 1_568),
    "claude-opus-4": _claude(1_568, 1_568),
    "claude-opus-4-7": UNKNOWN_RULE,
    "claude-opus-4.7": UNKNOWN_RULE,
    "claude-opus-4-8": UNKNOWN_RULE,
    "claude-opus-4.8": UNKNOWN_RULE,
    "claude-sonnet-4": _claude(1_568, 1_568),
    "claude-haiku-4": _claude(1_568, 1_568),
    "gemini": _GEMINI_3,
    "gemini-1": _GEMINI_2,
    "gemini-2": _GEMINI_2,
    "grok": _GROK,
}
"""The rules by the name of a family, which a model's name contains; the longest match is used."""


@lru_cache(maxsize=256)
def find_media_rule(model: str) -> MediaRule:
    """The rule for the model `model`; `UNKNOWN_RULE` if its family is not known."""
    name = model.lower()
    fitting = [family for family in MEDIA_RULES if _names(name, family)]
    return MEDIA_RULES[max(fitting, key=len)] if fitting else UNKNOWN_RULE


def _names(name: str, family: str) -> bool:
    """Whether a family's name occurs in a model's, at the start of a word."""
    at = name.find(family)
    while at > 0 and _WORD.match(name[at - 1]):
        at = name.find(family, at + 1)
    return at >= 0
