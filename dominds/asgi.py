"""The ASGI application: pages, `/v1` and `/mcp` without Django's middleware, and one websocket route a dialog."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from channels.routing import ProtocolTypeRouter, URLRouter
from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dominds.settings")

# Importing Django's application first loads the apps that the websocket routes need.
pages = get_asgi_application()

from channels.auth import AuthMiddlewareStack  # noqa: E402
from channels.security.websocket import AllowedHostsOriginValidator  # noqa: E402

from dialogs.mcp_server.http import mcp_over_http  # noqa: E402
from dialogs.routing import websocket_urlpatterns  # noqa: E402
from dominds.api_handler import ApiHandler  # noqa: E402

api = ApiHandler()


async def http(scope: dict[str, Any], receive: Callable[..., Any], send: Callable[..., Any]) -> None:
    await _handler(scope["path"])(scope, receive, send)


def _handler(path: str) -> Callable[..., Any]:
    if path.startswith("/v1/"):
        return api
    return mcp_over_http if path.rstrip("/") == "/mcp" else pages


application = ProtocolTypeRouter(
    {
        "http": http,
        "websocket": AllowedHostsOriginValidator(AuthMiddlewareStack(URLRouter(websocket_urlpatterns))),
    }
)
