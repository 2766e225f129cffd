"""Tokens of images, sounds and files, by the model's family and the image's size, never by their base64.

The size is read from the first bytes of a data URL. `health.tokens.calibration` corrects these counts by the server's
reports, separately from those of text.
"""

from __future__ import annotations

import math
import re
import struct
from base64 import b64decode
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

from health.compaction.terms.wire import MEDIA_PARTS

FLAT = 100  # for a sound or a file
_LOW_DETAIL = 85
_IMAGE_PARTS = frozenset({"image_url", "input_image", "image"})
_UNKNOWN_SIZE = (1024, 1024)
# PNG, GIF and WebP have their size at the start, JPEG after its metadata, which may include a thumbnail.
_HEADS = (64, 16 * 1024, 256 * 1024)
_PNG, _JPEG = b"\x89PNG\r\n\x1a\n", b"\xff\xd8"
_NO_FRAME = frozenset({0xC4, 0xC8, 0xCC})

Cost = Callable[[int, int], int]


@dataclass(frozen=True, kw_only=True, slots=True)
class Media:
    """The media of a message: their tokens as counted, and their number."""

    tokens: int = 0
    pictures: int = 0

    def __add__(self, other: Media) -> Media:
        return Media(tokens=self.tokens + other.tokens, pictures=self.pictures + other.pictures)


NO_MEDIA = Media()


def media_in(content: Any, model: str) -> Media:
    """The media of a message's content: a string, null, or a list of parts in OpenAI's format."""
    parts = content if isinstance(content, list | tuple) else ()
    costs = [_tokens(part, model) for part in parts if isinstance(part, Mapping) and part.get("type") in MEDIA_PARTS]
    return Media(tokens=sum(costs), pictures=len(costs))


def is_image(part: Mapping[str, Any]) -> bool:
    return part.get("type") in _IMAGE_PARTS


def media_tokens(message: Mapping[str, Any], model: str) -> int:
    return media_in(message.get("content"), model).tokens


def _tokens(part: Mapping[str, Any], model: str) -> int:
    if part["type"] not in _IMAGE_PARTS:
        return FLAT
    given = part.get("image_url") or part.get("image")
    image = given if isinstance(given, Mapping) else {"url": given, "detail": part.get("detail")}
    cost = _cost_for(model)
    if image.get("detail") == "low" and cost is _OPENAI:
        return _LOW_DETAIL
    return cost(*(_size(str(image.get("url") or "")) or _UNKNOWN_SIZE))


# --- by family ---


def _fixed(tokens: int, width: int, height: int) -> int:
    return tokens


def _by_tiles(base: int, tile: int, width: int, height: int) -> int:
    """OpenAI: scaled to at most 2,048 by 2,048, then its shorter side to 768; tokens for each tile of 512 by 512."""
    scale = min(1.0, 2048 / max(width, height))
    scale = min(scale, 768 / min(width, height))
    return base + tile * math.ceil(width * scale / 512) * math.ceil(height * scale / 512)


def _by_patches(side: int, most: int, factor: float, width: int, height: int) -> int:
    """One token for each square of this many pixels; a large image is scaled down until it has the most tokens."""
    return math.ceil(factor * max(1, min(most, math.ceil(width / side) * math.ceil(height / side))))


def _by_pixels(least: int, most: int, width: int, height: int) -> int:
    """Anthropic's rule, and about that of other models that do not resize an image."""
    return max(least, min(most, math.ceil(width * height / 750)))


def _by_large_tiles(width: int, height: int) -> int:
    """Gemini: 258 for a small image, else for each tile of 768 by 768."""
    return 258 * (1 if max(width, height) <= 384 else math.ceil(width / 768) * math.ceil(height / 768))


_OPENAI: Cost = partial(_by_tiles, 85, 170)
# Many models resize every image to one size, of 256 to 730 tokens; others do not resize a photograph.
_UNKNOWN: Cost = partial(_by_pixels, 768, 2048)

# As documented by the vendors. The first row wins.
_ROWS: tuple[tuple[str, Cost], ...] = (
    (r"gpt-?4o-mini", partial(_by_tiles, 2833, 5667)),
    (r"gpt-?(?:4\.1|5[.\d]*)-mini", partial(_by_patches, 32, 1536, 1.62)),
    (r"(?:^|[/:])o4-mini", partial(_by_patches, 32, 1536, 1.72)),
    (r"gpt-?(?:4\.1|5[.\d]*)-nano", partial(_by_patches, 32, 1536, 2.46)),
    (r"gpt-?4|gpt-?[5-9]|(?:^|[/:])o[1-9](?:$|[-:])", _OPENAI),
    (r"claude", partial(_by_pixels, 1, 1600)),
    (r"gemini", _by_large_tiles),
    (r"gemma-?3", partial(_fixed, 258)),
    (r"qwen[-_ ]?2(?:\.5)?[-_ ]?(?:vl|omni)", partial(_by_patches, 28, 16_384, 1.0)),
    (r"qwen[-_ ]?3(?:\.\d)?[-_ ]?(?:vl|omni)", partial(_by_patches, 32, 16_384, 1.0)),
    (r"pixtral", partial(_by_patches, 16, 4096, 1.02)),
    (r"mistral-(?:small|medium|large)|magistral", partial(_by_patches, 28, 3025, 1.02)),
    (r"llava-?(?:v)?1\.5|bakllava", partial(_fixed, 576)),
    (r"llava", partial(_fixed, 2880)),
    (r"moondream", partial(_fixed, 729)),
    (r"minicpm-?(?:v|o)", partial(_fixed, 640)),
)
_TABLE = tuple((re.compile(pattern), cost) for pattern, cost in _ROWS)


@lru_cache(maxsize=1024)
def _cost_for(model: str) -> Cost:
    name = model.lower()
    return next((cost for pattern, cost in _TABLE if pattern.search(name)), _UNKNOWN)


# --- how large ---


def _size(url: str) -> tuple[int, int] | None:
    """Width and height in pixels; None if only the server can know."""
    start = url.find(";base64,", 0, 200) + len(";base64,")
    if not url.startswith("data:") or start < len(";base64,"):
        return None
    for length in _HEADS:
        size = _size_in(url[start : start + length // 3 * 4])
        if size or start + length // 3 * 4 >= len(url):
            break
    return size if size and min(size) > 0 else None


def _size_in(base64: str) -> tuple[int, int] | None:
    try:
        head = b64decode(base64)
        if head.startswith(_PNG):
            return struct.unpack(">II", head[16:24])
        if head.startswith((b"GIF87a", b"GIF89a")):
            return struct.unpack("<HH", head[6:10])
        if head.startswith(b"RIFF"):
            return _webp_size(head)
        return _jpeg_size(head)
    except (ValueError, struct.error):
        return None


def _webp_size(head: bytes) -> tuple[int, int] | None:
    """A WebP is of one of three kinds: lossy, lossless, or extended."""
    kind = head[12:16]
    if kind == b"VP8 ":
        width, height = struct.unpack("<HH", head[26:30])
        return width & 0x3FFF, height & 0x3FFF
    if kind == b"VP8L":
        (bits,) = struct.unpack("<I", head[21:25])
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if kind == b"VP8X" and len(head) >= 30:
        return int.from_bytes(head[24:27], "little") + 1, int.from_bytes(head[27:30], "little") + 1
    return None


def _jpeg_size(head: bytes) -> tuple[int, int] | None:
    at = 2
    while head.startswith(_JPEG) and at + 9 <= len(head):
        marker, length, height, width = struct.unpack(">xBHxHH", head[at : at + 9])
        if 0xC0 <= marker <= 0xCF and marker not in _NO_FRAME:
            return width, height
        at += 2 + length
    return None
