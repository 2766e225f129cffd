"""What the providers that speak HTTP share: their timeouts, and answers that are not what was asked for."""

from __future__ import annotations

from typing import Any, Protocol

import httpx2

from dialogs.providers.base import BadAnswer, ProviderSettings
from dialogs.providers.errors import from_answer


class Dumpable(Protocol):
    """A chunk as the SDKs hand it out."""

    def to_dict(self, *, warnings: bool = True) -> dict[str, object]: ...


def timeouts(settings: ProviderSettings) -> httpx2.Timeout:
    """The read timeout is the longest silence, not the longest answer."""
    return httpx2.Timeout(settings.read_timeout, connect=settings.connect_timeout)


async def refuse_other_than_stream(response: httpx2.Response) -> None:
    """A 200 that is a page, or one JSON object, is no stream; what it says may be an error all the same."""
    content_type = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    if content_type == "text/html":
        raise BadAnswer("The provider answered an HTML page, which no LLM service sends. Is the base URL right?")
    if content_type == "application/json":
        await response.aread()
        body = json_of(response)
        if isinstance(body, dict) and body.get("error"):
            raise from_answer(response.status_code, body)
        raise BadAnswer("The provider answered without streaming.")


def json_of(response: httpx2.Response) -> Any:
    """The body as JSON. Raises BadAnswer, so that an HTML page with status 200 is named for what it is."""
    try:
        return response.json()
    except ValueError as error:
        kind = response.headers.get("content-type", "no content type")
        raise BadAnswer(f"The provider answered no JSON ({kind}). Is the base URL right?") from error


def as_json(chunk: object) -> dict[str, Any]:
    """A chunk as plain JSON, whatever its types: the SDKs do not check what they pass on."""
    if not hasattr(chunk, "to_dict"):
        raise BadAnswer(f"The provider sent {type(chunk).__name__} where an object is due.")
    dumped: dict[str, Any] = chunk.to_dict(warnings=False)
    return dumped
