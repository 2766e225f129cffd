"""What images, sounds and files cost: 100 tokens each, or OpenAI's rule for OpenAI's models. Never their base64.

OpenAI: 85 at low detail; else the image is brought within 2,048 by 2,048, then its shorter side to 768, and costs
85 and 170 for each tile of 512 by 512. The size is read from the first bytes of a data URL.
"""

from __future__ import annotations

import math
import struct
from base64 import b64decode
from collections.abc import Mapping
from typing import Any

from health.compaction.wire import MEDIA_PARTS
from health.tokens.families import Family

FLAT = 100
_BASE, _TILE, _TILE_SIDE = 85, 170, 512
_LONG_SIDE, _SHORT_SIDE = 2048, 768
_IMAGE_PARTS = frozenset({"image_url", "input_image", "image"})
_UNKNOWN_SIZE = (1024, 1024)
# A JPEG says its size after its metadata, a thumbnail included.
_HEAD = 256 * 1024
_PNG, _JPEG = b"\x89PNG\r\n\x1a\n", b"\xff\xd8"
_NO_FRAME = frozenset({0xC4, 0xC8, 0xCC})


def media_tokens(message: Mapping[str, Any], family: Family) -> int:
    """Tokens of all that is neither text nor reasoning in a message's content."""
    content = message.get("content")
    if isinstance(content, str):
        return 0
    parts = content if isinstance(content, list | tuple) else ()
    return sum(_tokens(part, family) for part in parts if isinstance(part, Mapping) and part.get("type") in MEDIA_PARTS)


def _tokens(part: Mapping[str, Any], family: Family) -> int:
    if not family.image_tiles or part["type"] not in _IMAGE_PARTS:
        return FLAT
    given = part.get("image_url") or part.get("image")
    image = given if isinstance(given, Mapping) else {"url": given, "detail": part.get("detail")}
    if image.get("detail") == "low":
        return _BASE
    return _BASE + _TILE * _tiles(*(_size(str(image.get("url") or "")) or _UNKNOWN_SIZE))


def _tiles(width: int, height: int) -> int:
    scale = min(1.0, _LONG_SIDE / max(width, height))
    scale = min(scale, _SHORT_SIDE / min(width, height))
    return math.ceil(width * scale / _TILE_SIDE) * math.ceil(height * scale / _TILE_SIDE)


def _size(url: str) -> tuple[int, int] | None:
    """Width and height in pixels, None where only the server will know."""
    start = url.find(";base64,") + len(";base64,")
    if not url.startswith("data:") or start < len(";base64,"):
        return None
    try:
        head = b64decode(url[start : start + _HEAD // 4 * 4])
        size = struct.unpack(">II", head[16:24]) if head.startswith(_PNG) else _jpeg_size(head)
    except (ValueError, struct.error):
        return None
    return size if size and min(size) > 0 else None


def _jpeg_size(head: bytes) -> tuple[int, int] | None:
    at = 2
    while head.startswith(_JPEG) and at + 9 <= len(head):
        marker, length, height, width = struct.unpack(">xBHxHH", head[at : at + 9])
        if 0xC0 <= marker <= 0xCF and marker not in _NO_FRAME:
            return width, height
        at += 2 + length
    return None
