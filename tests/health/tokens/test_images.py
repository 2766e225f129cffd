"""What an image costs."""

from __future__ import annotations

import struct
from base64 import b64encode
from typing import Any

import pytest

from health.tokens.images import Media, media_in, media_tokens


def png(width: int, height: int) -> str:
    return _data_url(
        "png", b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", width, height) + b"\x08\x02" * 9000
    )


def jpeg(width: int, height: int) -> str:
    metadata = b"\xff\xe1" + struct.pack(">H", 60_002) + b"\x00" * 60_000
    return _data_url(
        "jpeg", b"\xff\xd8" + metadata + b"\xff\xc0" + struct.pack(">HBHH", 17, 8, height, width) + b"\x00" * 99
    )


def gif(width: int, height: int) -> str:
    return _data_url("gif", b"GIF89a" + struct.pack("<HH", width, height) + b"\x00" * 99)


def webp(width: int, height: int) -> list[str]:
    """Lossy, lossless, extended."""
    lossy = b"VP8 " + bytes(4) + b"\x00\x00\x00\x9d\x01\x2a" + struct.pack("<HH", width, height)
    lossless = b"VP8L" + bytes(4) + b"\x2f" + struct.pack("<I", (width - 1) | (height - 1) << 14)
    extended = b"VP8X" + bytes(8) + (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
    return [_data_url("webp", b"RIFF\x00\x00\x00\x00WEBP" + kind + bytes(99)) for kind in (lossy, lossless, extended)]


def _data_url(kind: str, data: bytes) -> str:
    return f"data:image/{kind};base64,{b64encode(data).decode()}"


def cost(model: str, **image: Any) -> int:
    parts = [{"type": "text", "text": "Look:"}, {"type": "image_url", "image_url": image}]
    return media_tokens({"role": "user", "content": parts}, model)


@pytest.mark.parametrize(
    ("size", "tokens"),
    [((1024, 1024), 765), ((2048, 4096), 1105), ((512, 512), 255), ((100, 40), 255), ((4096, 512), 765)],
)
def test_an_image_costs_openais_models_its_tiles(size: tuple[int, int], tokens: int) -> None:
    assert cost("gpt-4o", url=png(*size), detail="high") == tokens
    assert cost("gpt-4o", url=jpeg(*size)) == tokens


def test_low_detail_costs_85_whatever_the_size() -> None:
    assert cost("gpt-4o", url=png(4096, 8192), detail="low") == 85


@pytest.mark.parametrize(
    "url",
    [
        "https://example.org/a.png",
        "data:image/png;base64,",
        "data:image/png;base64,iVBORw0KGgo",
        png(5, 5)[:38],
        "",
        png(0, 0),
    ],
)
def test_an_image_of_unknown_size_is_taken_for_a_middling_one(url: str) -> None:
    assert cost("gpt-4o", url=url) == 765


@pytest.mark.parametrize(
    ("model", "tokens"),
    [
        ("gpt-4o-mini", 2833 + 4 * 5667),
        ("gpt-4.1-mini", 1659),
        ("claude-sonnet-4-5", 1399),
        ("gemini-2.5-flash", 4 * 258),
        ("google/gemma-3-12b", 258),
        ("qwen2.5-vl-7b-instruct", 37 * 37),
        ("qwen3-vl-8b", 32 * 32),
        ("pixtral-12b", 4178),
        ("llava-v1.5-7b", 576),
    ],
)
def test_an_image_costs_each_family_what_its_makers_say(model: str, tokens: int) -> None:
    assert cost(model, url=png(1024, 1024)) == tokens


@pytest.mark.parametrize(("size", "tokens"), [((1, 1), 768), ((1000, 900), 1200), ((4000, 3000), 2048)])
def test_an_image_costs_a_model_that_nobody_knows_by_its_size_between_two_bounds(
    size: tuple[int, int], tokens: int
) -> None:
    assert cost("a-name-of-no-family", url=png(*size)) == tokens


@pytest.mark.parametrize("url", [jpeg(1200, 900), gif(1200, 900), *webp(1200, 900)])
def test_the_size_is_read_from_every_kind_of_image(url: str) -> None:
    assert cost("claude-3", url=url) == 1440


def test_sounds_and_files_cost_100_and_a_text_none() -> None:
    parts = [
        {"type": "input_audio", "input_audio": {"data": "AAAA"}},
        {"type": "file", "file": {}},
        {"type": "text"},
        "x",
    ]

    assert media_tokens({"role": "user", "content": parts}, "gpt-4o") == 200
    assert media_tokens({"role": "user", "content": None}, "gpt-4o") == 0


def test_responses_style_images_are_known_too() -> None:
    part = {"type": "input_image", "image_url": png(4096, 8192), "detail": "low"}

    assert media_tokens({"role": "user", "content": [part]}, "gpt-5") == 85


def test_images_are_counted_by_number_too() -> None:
    image = {"type": "image_url", "image_url": {"url": png(512, 512)}}

    assert media_in([image, {"type": "text", "text": "Look."}, image], "gpt-4o") == Media(tokens=510, pictures=2)
    assert media_in("words", "gpt-4o") == Media()
