"""The ASGI application: pages, `/v1` and `/mcp` without Django's middleware, and two websocket routes."""

from __future__ import annotations

import asyncio
import gc
import os
from collections.abc import Callable
from importlib import import_module
from typing import Any
from urllib.parse import urlsplit

import django
from channels.routing import ProtocolTypeRouter, URLRouter

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dominds.settings")

# Handlers and websocket routes need the apps.
django.setup(set_prefix=False)

from channels.auth import AuthMiddlewareStack  # noqa: E402
from channels.security.websocket import AllowedHostsOriginValidator, WebsocketDenier  # noqa: E402
from django.urls import path, re_path  # noqa: E402

from dialogs.pages.consumers import DialogConsumer, ListConsumer  # noqa: E402
from dominds.handlers import ApiHandler, PageHandler  # noqa: E402

api, pages = ApiHandler(), PageHandler()


async def http(scope: dict[str, Any], receive: Callable[..., Any], send: Callable[..., Any]) -> None:
    await _handler(scope["path"])(scope, receive, send)


async def mcp(*asgi: Any) -> None:
    """The SDK takes a second to import: that is done in a thread, at the first request."""
    server = await asyncio.to_thread(import_module, "dialogs.mcp_server.http")
    await server.mcp_over_http(*asgi)


def _handler(path: str) -> Callable[..., Any]:
    if path.startswith("/v1/") or path == "/chat/completions":
        return api
    return mcp if path.rstrip("/") == "/mcp" else pages


# The sockets of the list and of a dialog. Other paths are denied: Channels would raise an error.
sockets = [
    path("ws/dialogs/", ListConsumer.as_asgi()),
    path("ws/dialogs/<uuid:dialog_id>/", DialogConsumer.as_asgi()),
    re_path("", WebsocketDenier.as_asgi()),
]
watchers = AllowedHostsOriginValidator(AuthMiddlewareStack(URLRouter(sockets)))


async def websocket(scope: dict[str, Any], receive: Callable[..., Any], send: Callable[..., Any]) -> None:
    """An invalid origin is removed, so that the connection is denied: Channels would raise an error."""
    headers = [one for one in scope["headers"] if one[0] != b"origin" or _is_address(one[1])]
    await watchers({**scope, "headers": headers}, receive, send)


def _is_address(origin: bytes) -> bool:
    try:
        return urlsplit(origin.decode("latin-1")).port != 0
    except ValueError:
        return False


application = ProtocolTypeRouter(
    {
        "http": http,
        "websocket": websocket,
    }
)

# Everything imported so far is left out of garbage collection: scanning it takes a quarter of a second, during which
# nobody is answered, and long histories make full collections frequent.
gc.collect()
gc.freeze()
# A request allocates thousands of objects, few of them in cycles. Collecting after every 700 took a twelfth of its
# time.
gc.set_threshold(20_000, 20, 20)
