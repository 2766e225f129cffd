"""Images of a client's messages: kept once by their hash, never as base64 inside a message.

In a message's parts a data URL is `{"blob": sha256}` instead; what is sent has the URL again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from dialogs.models import Blob

# In what is stored of a message, `{"blob": sha256}` stands for a text that is kept apart
# (`dialogs.transcript.attachments`).
BLOB = "blob"

# Shorter texts are not worth a row.
LEAST_CHARS = 200


def large_texts(value: Any) -> Iterator[str]:
    """The texts in these parts that are kept apart: data URLs, and base64 of sounds and files."""
    if isinstance(value, str):
        if len(value) >= LEAST_CHARS:
            yield value
    elif isinstance(value, Mapping):
        for key, one in value.items():
            # What the text says is the message's own.
            if not (key == "text" and value.get("type") == "text"):
                yield from large_texts(one)
    elif isinstance(value, list):
        for one in value:
            yield from large_texts(one)


def without_blobs(value: Any, hashes: Mapping[str, str]) -> Any:
    """The value with `{"blob": sha256}` in place of the texts that are kept apart."""
    return _walked(value, lambda text: {BLOB: hashes[text]} if text in hashes else text)


def with_blobs(value: Any, blobs: Mapping[str, str]) -> Any:
    """The value with the texts that were kept apart in their places again."""
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
