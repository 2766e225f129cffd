"""Content parts and calls in OpenAI's form, read for the services that have a form of their own. Pure.

Nothing is left out and nothing is downloaded: a part that a service cannot take refuses the request, in words for
whoever wrote the client.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dialogs.providers.base import RequestRefused, ToolCall
from dialogs.providers.wire import as_mapping, as_text

PDF = "application/pdf"


@dataclass(frozen=True)
class Text:
    text: str


@dataclass(frozen=True)
class Data:
    """A picture, or a file, in the request itself: `base64` is its content."""

    media_type: str
    base64: str

    @property
    def is_image(self) -> bool:
        return self.media_type.startswith("image/")


@dataclass(frozen=True)
class ImageAt:
    """A picture that the service must fetch."""

    url: str


Part = Text | Data | ImageAt


def read_part(part: Mapping[str, Any]) -> Part:
    """Raises RequestRefused for a part that only some OpenAI-compatible servers take, such as sound."""
    kind = as_text(part.get("type"))
    if kind in {"text", "refusal"}:
        return Text(as_text(part.get(kind)))
    if kind == "image_url":
        image = part.get("image_url")
        return _image(as_text(image) or as_text(as_mapping(image).get("url")))
    if kind == "file" and (data := as_text(as_mapping(part.get("file")).get("file_data"))):
        return _data(data)
    raise refused(f"It takes no content part of type {kind!r}{' by its id' * (kind == 'file')}.")


def arguments_of(call: ToolCall) -> dict[str, Any]:
    """The arguments of a call for a service that takes an object only. What the model wrote wrongly is still shown to
    it."""
    try:
        parsed = json.loads(call.arguments or "{}")
    except (ValueError, RecursionError):
        parsed = call.arguments
    return parsed if isinstance(parsed, dict) else {"arguments": parsed}


def refused(why: str) -> RequestRefused:
    return RequestRefused(f"This request cannot be sent to the model's provider. {why}", status=400)


def _image(url: str) -> Part:
    return ImageAt(url) if url.startswith(("http://", "https://")) else _data(url)


def _data(url: str) -> Data:
    head, _, content = url.partition(",")
    media_type, *rest = head.removeprefix("data:").split(";")
    if not head.startswith("data:") or "base64" not in rest:
        raise refused("Write an image or a file as a data URL with base64, like data:image/png;base64,… .")
    # A name that is often written and was never registered.
    return Data("image/jpeg" if media_type == "image/jpg" else media_type, content)
