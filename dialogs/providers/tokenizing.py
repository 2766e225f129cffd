"""Asking a server how many tokens a text is: llama.cpp and vLLM have a `/tokenize` beside their `/v1`.

Synchronous, for the threads in which estimates are made; never for an event loop.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import httpx2

from dialogs.providers.addresses import api_root
from dialogs.providers.base import ProviderSettings
from dialogs.providers.http import LIMITS, STREAMS, certificates, content_type
from dialogs.providers.usage import as_mapping, whole
from health.compaction.terms.wire import encodable

Sizes = list[int | None]

# Bounds of the response's bytes: for each character of the text, with token ids, and for the JSON around them.
MOST_BYTES, BYTES_A_CHAR = 64 * 1024, 64


@runtime_checkable
class CountsTokens(Protocol):
    """An optional part of a provider class: its server counts the tokens of texts."""

    @classmethod
    def count_tokens(
        cls, settings: ProviderSettings, texts: Sequence[str], model: str, *, seconds: float
    ) -> list[int | None]:
        """Each text alone, in the model's own tokens; None for what there was no time for.

        Synchronous: for a thread, never for an event loop. Raises CannotCount where this server
        turns out not to count, and the HTTP library's error where it does not answer.
        """
        ...


class CannotCount(Exception):
    """The server has no `/tokenize`, or answers something else there."""


@dataclass(frozen=True, kw_only=True)
class TokenizeEndpoint:
    """The request body of one kind of server, and where its response states the count."""

    body: Callable[[str, str], dict[str, Any]]
    size: Callable[[Any], int | None]


def _number_of_tokens(body: Any) -> int | None:
    tokens = as_mapping(body).get("tokens")
    return len(tokens) if isinstance(tokens, list) else None


# Control tokens that are spelled out in a text are control tokens, as in the prompt that the server itself makes.
LLAMACPP = TokenizeEndpoint(
    body=lambda text, model: {"model": model, "content": text, "add_special": False, "parse_special": True},
    size=_number_of_tokens,
)
VLLM = TokenizeEndpoint(
    body=lambda text, model: {"model": model, "prompt": text, "add_special_tokens": False},
    size=lambda body: whole(as_mapping(body).get("count")),
)


def measure(
    endpoint: TokenizeEndpoint, settings: ProviderSettings, texts: Sequence[str], model: str, *, seconds: float
) -> Sizes:
    """Each text's size as the server counts it, None where there was no time. One connection, one text after another.

    Raises CannotCount for a server that does not count, and httpx2.HTTPError where nobody answers at all.
    """
    found: Sizes = [None] * len(texts)
    end = time.monotonic() + seconds
    # Uncompressed: the size after decompression would need a bound too.
    headers = {"accept-encoding": "identity"}
    if settings.api_key:
        headers["authorization"] = f"Bearer {settings.api_key}"
    url = f"{api_root(settings.base_url)}/tokenize"
    with httpx2.Client(verify=certificates(), limits=LIMITS, headers=headers) as client:
        # The longest texts first: there an estimate would miss by most.
        for at in sorted(range(len(texts)), key=lambda at: -len(texts[at])):
            left = end - time.monotonic()
            if left <= 0:
                break
            try:
                with client.stream(
                    "POST", url, json=endpoint.body(encodable(texts[at]), model), timeout=left
                ) as answer:
                    if answer.status_code >= 500 or answer.status_code == 429:
                        break
                    found[at] = _size_in(
                        answer, endpoint, _read(answer, most=MOST_BYTES + BYTES_A_CHAR * len(texts[at]), end=end)
                    )
            except httpx2.TimeoutException:
                break
    return found


def _read(answer: httpx2.Response, *, most: int, end: float) -> bytes:
    """The response's body, within the time left: the HTTP library's timeout is for each piece, not for all."""
    if content_type(answer) in STREAMS:
        raise CannotCount(f"a stream at {answer.url}")
    body = bytearray()
    for piece in answer.iter_raw():
        body += piece
        if len(body) > most:
            raise CannotCount(f"more than {most:,} bytes at {answer.url}")
        if time.monotonic() > end:
            raise httpx2.ReadTimeout("It did not end in time.", request=answer.request)
    return bytes(body)


def _size_in(answer: httpx2.Response, endpoint: TokenizeEndpoint, body: bytes) -> int:
    try:
        found = endpoint.size(json.loads(body)) if answer.is_success else None
    except (ValueError, RecursionError):
        found = None
    if found is None:
        raise CannotCount(f"{answer.status_code} at {answer.url}")
    return found
