"""What the providers that speak HTTP share: how they connect, and answers that are not what was asked for."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from functools import cache
from threading import Lock
from typing import Any

import httpx2

from dialogs.providers.base import BadAnswer, ProviderSettings
from dialogs.providers.bounds import HOOKS
from dialogs.providers.errors import from_answer

# Under the minute after which most proxies hang up on whoever says nothing.
KEEP_ALIVE_SECONDS = 45.0
# Any number of requests at once: a queue in here, which nobody sees, would stand in their way, and a server says
# itself when it is full. Every request looks through all idle connections, so they are few.
LIMITS = httpx2.Limits(max_connections=None, max_keepalive_connections=20, keepalive_expiry=KEEP_ALIVE_SECONDS)
_one_at_a_time = Lock()


def connecting(settings: ProviderSettings) -> dict[str, Any]:
    """How an HTTP client is made, whichever SDK makes it. Redirects are not followed: a key goes nowhere else."""
    return {
        "verify": certificates(),
        "limits": LIMITS,
        "timeout": timeouts(settings),
        "follow_redirects": False,
        "event_hooks": HOOKS,
    }


def timeouts(settings: ProviderSettings) -> httpx2.Timeout:
    """The read timeout is the longest silence, not the longest answer."""
    return httpx2.Timeout(settings.read_timeout, connect=settings.connect_timeout)


def certificates() -> ssl.SSLContext:
    """One for the process: reading the system's certificates takes longer than everything else about a client."""
    with _one_at_a_time:
        return _load_certificates()


@cache
def _load_certificates() -> ssl.SSLContext:
    context = httpx2.create_ssl_context()
    context.set_alpn_protocols(["http/1.1"])
    # Every new connection would set this again, while another thread may be reading it without the interpreter's lock.
    context.set_alpn_protocols = lambda alpn_protocols: None  # type: ignore[method-assign]
    return context


async def refuse_error(response: httpx2.Response) -> None:
    if response.is_success:
        return
    await response.aread()
    try:
        body = response.json()
    except ValueError:
        body = response.text
    raise from_answer(response.status_code, body, headers=response.headers)


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


def as_event(sent: object) -> Mapping[str, Any]:
    """One event of a stream. The SDKs hand on whatever JSON came."""
    if not isinstance(sent, dict):
        raise BadAnswer(f"The provider sent {type(sent).__name__} where an object is due.")
    return sent
