"""What several admin pages share: refusing to delete rows that dialogs need; and buttons that call providers, several
at once within a bounded time, and show each result as a message.

Django's page before a deletion would list the titles of the dialogs, which are private. Ours counts them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

from asgiref.sync import async_to_sync
from django.contrib import admin, messages
from django.contrib.admin import ModelAdmin
from django.contrib.admin.utils import label_for_field
from django.db.models import Model
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.text import capfirst
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from dialogs.llms.reads import settings_for
from dialogs.llms.words import better_as_ollama
from dialogs.llms.writes.providers import record_limits, record_server
from dialogs.models import LLM, Dialog, Provider
from dialogs.providers.base import ModelFacts, ProviderError
from dialogs.providers.probe import ProbeResult, read_limits, test_connection

# The longest that all calls of one click may take together: a person waits for the page.
PROBE_SECONDS = 20.0
AT_ONCE = 8
Answer = TypeVar("Answer")


class KeepsDialogs(ModelAdmin):
    """Refuses to delete rows that dialogs need. `dialogs_by` is the lookup from a dialog to such rows; by the field
    `switch` they are switched off."""

    dialogs_by: ClassVar[str]
    switch: ClassVar[str] = "enabled"

    def get_deleted_objects(self, objs: Iterable[Model], request: HttpRequest) -> Any:
        rows = list(objs)
        count = Dialog.objects.filter(**{f"{self.dialogs_by}__in": rows}).count()
        if not count:
            return super().get_deleted_objects(rows, request)
        need = ngettext("%(count)s dialog needs it", "%(count)s dialogs need it", count) % {"count": count}
        field = capfirst(str(label_for_field(self.switch, self.model)))
        instead = _("To switch it off instead, untick “%(field)s”.") % {"field": field}
        return [], {}, set(), [need, instead]


@dataclass(frozen=True)
class AdminMessage:
    """A sentence about one row, with one of Django's message levels."""

    level: int
    text: str


class CallsAfterSaving(admin.ModelAdmin):
    """A page with buttons that save first and call a server after the commit: in the transaction a slow server would
    keep everybody else from writing."""

    # The button's name, and the function that is called with the row's key.
    calls: Mapping[str, Callable[[str], list[AdminMessage]]]

    def change_view(self, request: HttpRequest, object_id: str, *args: Any, **kwargs: Any) -> HttpResponse:
        response = super().change_view(request, object_id, *args, **kwargs)
        pressed = self._pressed(request)
        if pressed and isinstance(response, HttpResponseRedirect):
            show(request, self.calls[pressed](object_id))
        return response

    def response_change(self, request: HttpRequest, obj: Any) -> HttpResponse:
        """Stay on the page, which shows the server's answer."""
        if self._pressed(request):
            return HttpResponseRedirect(request.path)
        return super().response_change(request, obj)

    def _pressed(self, request: HttpRequest) -> str:
        return next((name for name in self.calls if name in request.POST), "")


def show(request: HttpRequest, lines: Iterable[AdminMessage]) -> None:
    for line in lines:
        messages.add_message(request, line.level, line.text)


def try_providers(providers: Iterable[Provider]) -> list[AdminMessage]:
    rows = list(providers)
    results = async_to_sync(_all)([test_connection(settings_for(row)) for row in rows])
    return [_line(str(row), _answered(row, result)) for row, result in zip(rows, results, strict=True)]


def refresh_limits(llms: Iterable[LLM]) -> list[AdminMessage]:
    """Ask the servers for the limits of these LLMs, and record what they say."""
    rows = list(llms)
    results = async_to_sync(_all)([read_limits(settings_for(row.provider), row.model_id) for row in rows])
    return [_line(row.slug, _record(row, result)) for row, result in zip(rows, results, strict=True)]


def _answered(row: Provider, result: ProbeResult | AdminMessage) -> str | AdminMessage:
    if isinstance(result, AdminMessage):
        return result
    record_server(provider=row, is_ollama=result.is_ollama)
    if result.ok and row.is_hidden_ollama:
        return AdminMessage(messages.WARNING, f"{result.text} {better_as_ollama()}")
    return result.text if result.ok else AdminMessage(messages.ERROR, result.text)


def _record(row: LLM, result: ModelFacts | AdminMessage) -> str | AdminMessage:
    return result if isinstance(result, AdminMessage) else record_limits(llm=row, facts=result)


def _line(name: str, result: str | AdminMessage) -> AdminMessage:
    if isinstance(result, AdminMessage):
        return AdminMessage(result.level, f"“{name}”: {result.text}")
    return AdminMessage(messages.SUCCESS, f"“{name}”: {result}")


async def _all(calls: list[Awaitable[Answer]]) -> list[Answer | AdminMessage]:
    gate = asyncio.Semaphore(AT_ONCE)
    return list(await asyncio.gather(*(_bounded(gate, call) for call in calls)))


async def _bounded(gate: asyncio.Semaphore, call: Awaitable[Answer]) -> Answer | AdminMessage:
    try:
        async with asyncio.timeout(PROBE_SECONDS), gate:
            return await call
    except TimeoutError:
        seconds = f"{PROBE_SECONDS:g}"
        return AdminMessage(messages.ERROR, _("no answer within %(seconds)s seconds") % {"seconds": seconds})
    except ProviderError as error:
        return AdminMessage(messages.ERROR, str(error))
