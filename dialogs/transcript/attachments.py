"""Attachments of clients' messages: images, sounds and files. Their data is stored once by its hash, not as base64
inside a message; a URL stays a URL, since fetching it would tell its server of the reader.

In a stored message's parts `{"blob": sha256}` stands for a data URL; requests contain the URL again.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models.functions import Left, Length

from dialogs.models import Blob, Dialog, Message

# The key in a stored part that stands for a text kept as a blob.
BLOB = "blob"

# Shorter texts stay in the message, since a row of their own costs more.
LEAST_CHARS = 200


def large_texts(value: Any) -> Iterator[str]:
    """The texts in these parts to store as blobs: data URLs, and base64 of sounds and files."""
    if isinstance(value, str):
        if len(value) >= LEAST_CHARS:
            yield value
    elif isinstance(value, Mapping):
        for key, one in value.items():
            # Plain text is part of the message.
            if not (key == "text" and value.get("type") == "text"):
                yield from large_texts(one)
    elif isinstance(value, list):
        for one in value:
            yield from large_texts(one)


def without_blobs(value: Any, hashes: Mapping[str, str]) -> Any:
    """The value with `{"blob": sha256}` in place of stored texts."""
    return _walked(value, lambda text: {BLOB: hashes[text]} if text in hashes else text)


def with_blobs(value: Any, blobs: Mapping[str, str]) -> Any:
    """The value with the texts in place of `{"blob": sha256}`."""
    if isinstance(value, Mapping) and value.keys() == {BLOB}:
        return blobs.get(value[BLOB], "")
    if isinstance(value, Mapping):
        return {key: with_blobs(one, blobs) for key, one in value.items()}
    return [with_blobs(one, blobs) for one in value] if isinstance(value, list) else value


def blobs_of(parts: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """The texts that these messages' parts refer to, by hash. One query, or none."""
    hashes = set(hashes_in(parts))
    return dict(Blob.objects.filter(pk__in=hashes).values_list("pk", "content")) if hashes else {}


def hashes_in(parts: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    for one in parts:
        if wire := one.get("wire"):
            yield from _hashes(wire)


def _hashes(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        if value.keys() == {BLOB}:
            yield value[BLOB]
            return
        for one in value.values():
            yield from _hashes(one)
    elif isinstance(value, list):
        for one in value:
            yield from _hashes(one)


def _walked(value: Any, change: Callable[[str], Any]) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {
            key: one if key == "text" and value.get("type") == "text" else _walked(one, change)
            for key, one in value.items()
        }
    return [_walked(one, change) for one in value] if isinstance(value, list) else value


# Image types that browsers show and that contain no scripts.
SHOWN = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
DATA_URL = re.compile(r"data:([\w.+-]+/[\w.+-]+)?[^,]*,", re.ASCII)
HEAD_CHARS = 200
KINDS = {"image_url": "image", "input_audio": "sound", "file": "file"}
# The beginning of a text, and its whole length.
Head = tuple[str, int]


@dataclass(frozen=True, kw_only=True)
class Attachment:
    """`place`: the index of its content part. `address`: its URL. `size`: about how many bytes."""

    place: int
    kind: str
    media_type: str
    size: int
    address: str
    name: str

    @property
    def is_shown(self) -> bool:
        return self.media_type in SHOWN and not self.address


def attachments_of(messages: Iterable[Message]) -> dict[int, tuple[Attachment, ...]]:
    """The attachments of these messages, by message."""
    parts = {message.pk: message.parts for message in messages if "wire" in message.parts}
    heads = _heads(set(hashes_in(parts.values())))
    found = {pk: tuple(_attachments(one, heads)) for pk, one in parts.items()}
    return {pk: attached for pk, attached in found.items() if attached}


def _heads(hashes: set[str]) -> dict[str, Head]:
    rows = Blob.objects.filter(pk__in=hashes).annotate(head=Left("content", HEAD_CHARS), chars=Length("content"))
    return {pk: (head, chars) for pk, head, chars in rows.values_list("pk", "head", "chars")} if hashes else {}


def _attachments(parts: Mapping[str, Any], heads: Mapping[str, Head]) -> Iterable[Attachment]:
    for place, part in enumerate(parts["wire"].get("content", ())):
        if part.get("type") in KINDS:
            yield _attachment(place, part, heads)


def _attachment(place: int, part: Mapping[str, Any], heads: Mapping[str, Head]) -> Attachment:
    inside, data = part.get(part["type"]) or {}, _data(part)
    head, chars = heads.get(data[BLOB], ("", 0)) if isinstance(data, dict) else (data, len(data))
    url = DATA_URL.match(head)
    is_address = part["type"] == "image_url" and not url
    named = f"audio/{inside['format']}" if inside.get("format") else ""
    return Attachment(
        place=place,
        kind=KINDS[part["type"]],
        media_type=(url[1] or "").lower() if url else named,
        size=0 if is_address else (chars - (url.end() if url else 0)) * 3 // 4,
        address=head if is_address else "",
        name=str(inside.get("filename") or inside.get("file_id") or ""),
    )


def _data(part: Mapping[str, Any]) -> Any:
    """The text that holds it, or the hash of that: {"blob": sha256}. Empty where a client sent something else."""
    inside = part.get(part["type"]) or {}
    data = inside.get("url") or inside.get("data") or inside.get("file_data")
    is_hash = isinstance(data, dict) and data.keys() == {BLOB}
    return data if is_hash or isinstance(data, str) else ""


def attached_image(dialog: Dialog, *, message_id: int, place: int) -> tuple[str, bytes] | None:
    """Media type and bytes of an image of this dialog; None where there is none that can be shown."""
    message = Message.objects.filter(dialog=dialog, pk=message_id).first()
    listed = attachments_of([message]).get(message_id, ()) if message else ()
    found = next((one for one in listed if one.place == place and one.is_shown), None)
    if message is None or found is None:
        return None
    data = _data(message.parts["wire"]["content"][place])
    text = blobs_of([message.parts]).get(data[BLOB], "") if isinstance(data, dict) else data
    try:
        return found.media_type, base64.b64decode(text.partition(",")[2])
    except binascii.Error:
        return None
