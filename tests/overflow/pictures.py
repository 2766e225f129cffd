"""Pictures as clients send them: real PNGs of a size, of one colour each."""

from __future__ import annotations

import base64
import struct
import zlib
from typing import Any


def png(shade: int, *, width: int = 768, height: int = 512) -> bytes:
    rows = (b"\0" + bytes([shade % 256]) * width) * height
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", header) + _chunk(b"IDAT", zlib.compress(rows)) + _chunk(b"IEND", b"")


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def shown(text: str, shade: int) -> list[dict[str, Any]]:
    """The content of a message with words and a picture."""
    url = f"data:image/png;base64,{base64.b64encode(png(shade)).decode()}"
    return [{"type": "text", "text": text}, {"type": "image_url", "image_url": {"url": url}}]
