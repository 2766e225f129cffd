"""Content parts as clients really write them."""

from __future__ import annotations

from typing import Any

import pytest

from dialogs.providers.base import RequestRefused
from dialogs.providers.options import Data, ImageAt, Part, Text, read_part

PNG = "data:image/png;base64,iVBORw0KGgo="


@pytest.mark.parametrize(
    ("part", "read"),
    [
        ({"type": "text", "text": "Look"}, Text("Look")),
        ({"type": "refusal", "refusal": "No."}, Text("No.")),
        ({"type": "image_url", "image_url": {"url": PNG, "detail": "low"}}, Data("image/png", "iVBORw0KGgo=")),
        ({"type": "image_url", "image_url": PNG}, Data("image/png", "iVBORw0KGgo=")),
        ({"type": "image_url", "image_url": {"url": "data:image/jpg;base64,/9j/"}}, Data("image/jpeg", "/9j/")),
        ({"type": "image_url", "image_url": {"url": "https://host/a.png"}}, ImageAt("https://host/a.png")),
        # Parameters may stand before the word base64.
        (
            {"type": "file", "file": {"file_data": "data:application/pdf;name=a.pdf;base64,JVBE", "filename": "a.pdf"}},
            Data("application/pdf", "JVBE"),
        ),
    ],
)
def test_a_part_is_read(part: dict[str, Any], read: Part) -> None:
    assert read_part(part) == read


@pytest.mark.parametrize(
    ("part", "words"),
    [
        ({"type": "input_audio", "input_audio": {"data": "UklG", "format": "wav"}}, "'input_audio'"),
        ({"type": "file", "file": {"file_id": "file-1"}}, "'file' by its id"),
        ({"type": "video_url", "video_url": {"url": "https://host/a.mp4"}}, "'video_url'"),
        ({"text": "without a type"}, "''"),
        ({"type": "image_url", "image_url": {"url": "file:///etc/passwd"}}, "data URL"),
        ({"type": "image_url", "image_url": {"url": "data:image/svg+xml,<svg/>"}}, "data URL"),
        ({"type": "image_url", "image_url": {"url": "iVBORw0KGgo="}}, "data URL"),
        ({"type": "image_url"}, "data URL"),
    ],
)
def test_what_cannot_be_sent_is_refused_in_words(part: dict[str, Any], words: str) -> None:
    with pytest.raises(RequestRefused) as caught:
        read_part(part)

    assert words in str(caught.value)
    assert caught.value.status == 400
