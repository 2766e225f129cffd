"""Request handlers: for `/v1` without middleware and signals, for pages on one thread.

`/v1` has no sessions and cookies. A synchronous middleware would hold a thread as long as the view runs, and the view
would not notice that the client has left. Django's signals close database connections, on a thread for each request;
for `/v1` `dialogs.common.threads` does that.

Also a session store and a static files storage that cache what Django does again for each page.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from functools import cache, lru_cache
from typing import Any

from asgiref.sync import sync_to_async
from django.contrib.sessions.backends import db
from django.contrib.staticfiles.storage import StaticFilesStorage
from django.core.exceptions import RequestAborted
from django.core.handlers.asgi import ASGIHandler
from django.core.handlers.base import BaseHandler
from django.core.handlers.exception import convert_exception_to_response
from django.db.models import CharField, DateTimeField, QuerySet
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import ResolverMatch, resolve
from django.utils import timezone

from dialogs.common.threads import lent_thread
from dominds.prepared import prepared

Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Mapping[str, Any]], Awaitable[None]]


class BareHandler(BaseHandler):
    """Without middleware. A view's exceptions still become responses."""

    def load_middleware(self, is_async: bool = False) -> None:
        self._view_middleware: list[object] = []
        self._template_response_middleware: list[object] = []
        self._exception_middleware: list[object] = []
        # `BaseHandler` has it too; the stubs do not know.
        self._middleware_chain = convert_exception_to_response(self._get_response_async)  # type: ignore[attr-defined]

    def resolve_request(self, request: HttpRequest) -> ResolverMatch:
        request.resolver_match = found = _found(request.path_info)
        return found


@lru_cache(maxsize=64)
def _found(path: str) -> ResolverMatch:
    """Cached, since nearly all requests have the same path."""
    return resolve(path)


class ApiHandler(BareHandler, ASGIHandler):
    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        try:
            body = await self.read_body(receive)
        except RequestAborted:
            return
        with body:
            request, refused = self.create_request(scope, body)
            answering = asyncio.create_task(self._answer(request, refused, send))
            # After the body the only event is that the client has disconnected.
            leaving = asyncio.ensure_future(receive())
            await asyncio.wait({answering, leaving}, return_when=asyncio.FIRST_COMPLETED)
            for task in (answering, leaving):
                task.cancel()
            await asyncio.wait({answering, leaving})
        if not answering.cancelled():
            answering.result()

    async def _answer(self, request: HttpRequest | None, refused: Any, send: Send) -> None:
        response = await self.run_get_response(request) if request is not None else refused
        await self.send_response(response, send)


class PageHandler(ASGIHandler):
    """Runs a whole request on one thread.

    Django's own handler switches between event loop and thread for each middleware, some twenty times a page, and waits
    each time for the loop.
    """

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        async with lent_thread():
            await self.handle(scope, receive, send)

    def load_middleware(self, is_async: bool = False) -> None:
        super().load_middleware(is_async=False)

    async def get_response_async(self, request: HttpRequest) -> HttpResponseBase:
        return await sync_to_async(self.get_response)(request)


class SessionStore(db.SessionStore):
    """Sessions in the database, found by a prepared query."""

    def _get_session_from_db(self) -> Any:
        found = _unexpired.first(self.session_key, timezone.now())
        if found is None:
            self._session_key = None
        return found


@prepared(CharField(), DateTimeField())
def _unexpired(key: Any, now: Any) -> QuerySet[Any]:
    sessions: QuerySet[Any] = SessionStore.get_model_class().objects.filter(session_key=key, expire_date__gt=now)
    return sessions


class StaticFiles(StaticFilesStorage):
    """Caches the files' addresses: a page has some sixty."""

    @cache  # noqa: B019  # one storage a process
    def url(self, name: str | None) -> str:
        return super().url(name)
