"""Django's request handler without middleware, for `/v1`: no sessions, no pages, no cookies.

A middleware that is not async holds a thread for as long as the view runs, and hides from it that the client has left.
"""

from __future__ import annotations

from django.core.handlers.asgi import ASGIHandler
from django.core.handlers.base import BaseHandler
from django.core.handlers.exception import convert_exception_to_response


class BareHandler(BaseHandler):
    """Straight from the address to the view, whose exceptions still become responses."""

    def load_middleware(self, is_async: bool = False) -> None:
        self._view_middleware: list[object] = []
        self._template_response_middleware: list[object] = []
        self._exception_middleware: list[object] = []
        # `BaseHandler` has it too; the stubs do not know.
        self._middleware_chain = convert_exception_to_response(self._get_response_async)  # type: ignore[attr-defined]


class ApiHandler(BareHandler, ASGIHandler):
    pass
