"""Django's request handlers as we have them: for `/v1` without middleware and signals, for pages on one thread.

A middleware that is not async holds a thread for as long as the view runs, and hides from it that the client has left.
The signals look after database connections, on a thread of their own for each request; `dialogs.common.threads` looks
after those of `/v1`, which has no sessions, no pages and no cookies.

Also what Django does anew for each page, done once: settings name the two at the end in the place of Django's own.
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
    """Straight from the address to the view, whose exceptions still become responses."""

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
    """Nearly all requests have the same address, and it is looked for among all others."""
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

    Django's own goes back to the event loop and on to the thread again for each middleware that looks at a request or
    at its response: some twenty times a page, and each time it stands in line behind whatever the loop does.
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
    """A page names some sixty files, each always at the same address."""

    @cache  # noqa: B019  # one storage a process
    def url(self, name: str | None) -> str:
        return super().url(name)
