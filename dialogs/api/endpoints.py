"""The views of `/v1`. Async only: a disconnect is noticed at once, and no thread waits for a model."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from functools import wraps
from typing import Any

from django.contrib.auth.decorators import login_not_required
from django.core.exceptions import DisallowedHost
from django.http import HttpRequest, HttpResponse, HttpResponseBase, JsonResponse, StreamingHttpResponse
from django.views.decorators.csrf import csrf_exempt

from dialogs.api import background, chunks, responding
from dialogs.api.auth import admit, authenticate, secret_in
from dialogs.api.errors import ApiError, internal, method_not_allowed, not_found, unknown_host
from dialogs.api.model_list import counted, list_models, one_model
from dialogs.api.openapi import document
from dialogs.api.reading import ParsedRequest, raw_body, read
from dialogs.api.schemas import read_count
from dialogs.api.turn import ClientTurn
from dialogs.common.threads import in_db, own_threads
from dialogs.models import ApiKey

logger = logging.getLogger(__name__)
# Django's own types know no async views.
View = Callable[..., Any]
# How long an answer may take to begin before its headers are sent; a failure until then has its own status.
PATIENCE_SECONDS = 1.0


def api_view(*methods: str) -> Callable[[View], View]:
    """Decorates a view of `/v1`: an API key in place of a session; errors in OpenAI's shape."""

    def decorated(view: View) -> View:
        @wraps(view)
        async def answered(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            try:
                if request.method not in methods:
                    raise method_not_allowed(request.method or "", allowed=methods)
                request.get_host()
                with own_threads():
                    response: HttpResponseBase = await view(request, *args, **kwargs)
            except ApiError as error:
                response = refused(error)
            except DisallowedHost:
                response = refused(unknown_host())
            except Exception as error:
                logger.exception("%s %s failed", request.method, request.path)
                response = refused(internal(error))
            response.headers["X-Content-Type-Options"] = "nosniff"
            return response

        return csrf_exempt(login_not_required(answered))

    return decorated


def refused(error: ApiError) -> HttpResponse:
    return JsonResponse(error.as_json(), status=error.status, headers=error.headers)


async def key_of(request: HttpRequest) -> ApiKey:
    key: ApiKey = await in_db(authenticate, first=True)(secret_in(request.headers))
    await admit(key)
    return key


@api_view("GET")
async def models(request: HttpRequest) -> HttpResponse:
    return JsonResponse(await in_db(list_models, first=True)(await key_of(request)))


@api_view("GET")
async def model(request: HttpRequest, model_id: str) -> HttpResponse:
    return JsonResponse(await in_db(one_model, first=True)(await key_of(request), model_id))


@api_view("POST")
async def count_tokens(request: HttpRequest) -> HttpResponse:
    body = read_count(raw_body(request))
    return JsonResponse(await in_db(counted, first=True)(await key_of(request), body))


@api_view("GET")
async def openapi(request: HttpRequest) -> HttpResponse:
    """Needs no key: the document says nothing of this installation."""
    return JsonResponse(document())


@api_view("GET", "POST", "PUT", "PATCH", "DELETE")
async def unknown_path(request: HttpRequest) -> HttpResponse:
    raise not_found(request.path)


@api_view("POST")
async def chat_completions(request: HttpRequest) -> HttpResponseBase:
    asked: ParsedRequest = await in_db(read, first=True)(request, raw_body(request))
    await admit(asked.key)
    if asked.is_background:
        return await _aside(asked)
    turn = ClientTurn(
        key=asked.key, target=asked.target, request=asked.request, lookup=asked.lookup, speculative=asked.speculative
    )
    task = turn.start()
    sent = responding.envelope(asked.body.model)
    try:
        if not asked.body.stream:
            await asyncio.shield(task)
            return _whole(turn, sent)
        await turn.listener.begun(PATIENCE_SECONDS)
    except asyncio.CancelledError:
        turn.listener.leave()
        raise
    if task.done() and (error := responding.failed(turn)):
        raise error
    return _events(responding.stream(turn, sent, asked.notices, wants_usage=asked.wants_usage))


async def _aside(asked: ParsedRequest) -> HttpResponseBase:
    sent, request = responding.envelope(asked.body.model), await background.prepared(asked)
    if asked.body.stream:
        return _events(background.stream(asked, request, sent))
    return JsonResponse(await background.whole(asked, request, sent))


def _whole(turn: ClientTurn, sent: responding.Envelope) -> HttpResponse:
    if error := responding.failed(turn):
        raise error
    return JsonResponse(responding.whole(turn, sent))


class Events(StreamingHttpResponse):
    """A streaming response whose pieces are bytes already: Django's own wraps the iterator in two more generators."""

    def __init__(self, pieces: AsyncGenerator[bytes, None]) -> None:
        headers = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
        super().__init__(pieces, content_type="text/event-stream; charset=utf-8", headers=headers)
        self.pieces = pieces

    def __aiter__(self) -> AsyncGenerator[bytes, None]:
        return self.pieces


def _events(body: AsyncGenerator[bytes, None]) -> Events:
    return Events(_sound(body))


async def _sound(body: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    """The stream; where our own code fails, it ends with an error event."""
    try:
        async with aclosing(body) as pieces:
            async for piece in pieces:
                yield piece
    except Exception as error:
        logger.exception("An answer broke off")
        yield chunks.event(internal(error).as_json())
