"""What an image costs."""

from __future__ import annotations

import struct
from base64 import b64encode
from typing import Any

import pytest

from health.tokens.families import family_of
from health.tokens.images import media_tokens


def png(width: int, height: int) -> str:
    return _data_url(
        "png", b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", width, height) + b"\x08\x02" * 9000
    )


def jpeg(width: int, height: int) -> str:
    metadata = b"\xff\xe1" + struct.pack(">H", 60_002) + b"\x00" * 60_000
    return _data_url(
        "jpeg", b"\xff\xd8" + metadata + b"\xff\xc0" + struct.pack(">HBHH", 17, 8, height, width) + b"\x00" * 99
    )


def _data_url(kind: str, data: bytes) -> str:
    return f"data:image/{kind};base64,{b64encode(data).decode()}"


def cost(model: str, **image: Any) -> int:
    parts = [{"type": "text", "text": "Look:"}, {"type": "image_url", "image_url": image}]
    return media_tokens({"role": "user", "content": parts}, family_of(model))


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


@pytest.mark.parametrize("model", ["llama-3.2-vision", "pixtral-12b", "qwen2-vl"])
def test_an_image_costs_any_other_model_100(model: str) -> None:
    assert cost(model, url=png(2048, 2048)) == 100


def test_sounds_and_files_cost_100_and_a_text_none() -> None:
    parts = [
        {"type": "input_audio", "input_audio": {"data": "AAAA"}},
        {"type": "file", "file": {}},
        {"type": "text"},
        "x",
    ]

    assert media_tokens({"role": "user", "content": parts}, family_of("gpt-4o")) == 200
    assert media_tokens({"role": "user", "content": None}, family_of("gpt-4o")) == 0


def test_responses_style_images_are_known_too() -> None:
    part = {"type": "input_image", "image_url": png(4096, 8192), "detail": "low"}

    assert media_tokens({"role": "user", "content": [part]}, family_of("gpt-5")) == 85
