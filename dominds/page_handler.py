"""Django's request handler for pages, which does all of a request on one thread.

Django's own goes back to the event loop and on to the thread again for each middleware that looks at a request or at
its response: some twenty times a page, and each time it stands in line behind whatever the loop does.
"""

from __future__ import annotations

from typing import Any

from asgiref.sync import sync_to_async
from django.core.handlers.asgi import ASGIHandler
from django.http import HttpRequest
from django.http.response import HttpResponseBase

from dialogs.common.threads import lent_thread


class PageHandler(ASGIHandler):
    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        async with lent_thread():
            await self.handle(scope, receive, send)

    def load_middleware(self, is_async: bool = False) -> None:
        super().load_middleware(is_async=False)

    async def get_response_async(self, request: HttpRequest) -> HttpResponseBase:
        return await sync_to_async(self.get_response)(request)
