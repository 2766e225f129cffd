"""`/mcp`: the MCP server over streamable HTTP, as an ASGI application beside Django's.

It has no sessions and answers in JSON, so any web process can answer any request. The SDK's session manager lives for
one request, since Daphne has no ASGI lifespan in which to start and end a longer one.
"""

from __future__ import annotations

from collections.abc import Mapping
from io import BytesIO
from urllib.parse import urlsplit

from django.conf import settings
from django.contrib.auth.models import User
from django.core.exceptions import DisallowedHost
from django.core.handlers.asgi import ASGIRequest
from django.http.request import split_domain_port, validate_host
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.responses import JSONResponse
from starlette.types import Receive, Scope, Send

from dialogs.api.auth import admit, authenticate, require_read, secret_in
from dialogs.api.canonical import DIALOG_HEADER, chat_in
from dialogs.api.errors import INVALID, ApiError, method_not_allowed
from dialogs.common.threads import in_db, own_threads
from dialogs.mcp_server.server import build_server
from dialogs.models import ApiKey

# The largest request body; a request is a few arguments.
MOST_BYTES = 256 * 1024


async def mcp_over_http(scope: Scope, receive: Receive, send: Send) -> None:
    with own_threads():
        try:
            # The query string is ignored, so it need not be valid.
            request = ASGIRequest({**scope, "query_string": b""}, BytesIO())
            key = await _admitted(request)
        except ApiError as error:
            answer = JSONResponse(error.as_json(), status_code=error.status, headers=error.headers)
            await answer(scope, receive, send)
        else:
            await _answered(key.owner, _here(request), scope, receive, send)


async def _admitted(request: ASGIRequest) -> ApiKey:
    _check_sender(request)
    if request.method != "POST":
        raise method_not_allowed(request.method or "", allowed=["POST"])
    key = await in_db(authenticate)(secret_in(request.headers))
    require_read(key)
    await admit(key)
    return key


def _check_sender(request: ASGIRequest) -> None:
    """Refuse unknown hosts and origins: against DNS rebinding by a page in a browser on this machine."""
    try:
        request.get_host()
    except DisallowedHost:
        raise ApiError(421, "This Dominds does not answer for this host.", type=INVALID, code="wrong_host") from None
    origin = request.headers.get("origin", "")
    if origin and not _is_ours(origin):
        raise ApiError(403, "This Dominds does not answer pages of this origin.", type=INVALID, code="wrong_origin")


def _is_ours(origin: str) -> bool:
    try:
        domain, _port = split_domain_port(urlsplit(origin).netloc)
    except ValueError:  # no address at all
        return False
    return bool(domain) and validate_host(domain, settings.ALLOWED_HOSTS)


def _here(request: ASGIRequest) -> dict[str, str]:
    """The conversation that the client names in the headers of `/v1`."""
    named = {"dialog_id": request.headers.get(DIALOG_HEADER, "").strip()[:40], "chat": chat_in(request.headers)}
    return {name: value for name, value in named.items() if value}


async def _answered(user: User, here: Mapping[str, str], scope: Scope, receive: Receive, send: Send) -> None:
    async def owner() -> User:
        return user

    manager = StreamableHTTPSessionManager(
        app=build_server(owner, here), stateless=True, json_response=True, max_request_body_size=MOST_BYTES
    )
    async with manager.run():
        await manager.handle_request(scope, receive, send)
