"""What several pages of the admin share: deleting without showing, or losing, what other people said; and calling
providers, several at once and never for long, with what came of it as lines for people.

Django's page before a deletion lists the titles of the dialogs that hang on the row. Ours counts them.
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
class Finding:
    """A sentence about one row. `level` is one of Django's message levels."""

    level: int
    text: str


class CallsAfterSaving(admin.ModelAdmin):
    """A page with buttons that save first and then call a server.

    They call when the save is committed: a server may take long, and nobody else could write meanwhile.
    """

    # By the name of the button: what is done to the row with this key.
    calls: Mapping[str, Callable[[str], list[Finding]]]

    def change_view(self, request: HttpRequest, object_id: str, *args: Any, **kwargs: Any) -> HttpResponse:
        response = super().change_view(request, object_id, *args, **kwargs)
        pressed = self._pressed(request)
        if pressed and isinstance(response, HttpResponseRedirect):
            show(request, self.calls[pressed](object_id))
        return response

    def response_change(self, request: HttpRequest, obj: Any) -> HttpResponse:
        """Stay on the page: what is said there is what the server answered."""
        if self._pressed(request):
            return HttpResponseRedirect(request.path)
        return super().response_change(request, obj)

    def _pressed(self, request: HttpRequest) -> str:
        return next((name for name in self.calls if name in request.POST), "")


def show(request: HttpRequest, findings: Iterable[Finding]) -> None:
    for finding in findings:
        messages.add_message(request, finding.level, finding.text)


def try_providers(providers: Iterable[Provider]) -> list[Finding]:
    rows = list(providers)
    results = async_to_sync(_all)([test_connection(settings_for(row)) for row in rows])
    return [_finding(str(row), _answered(row, result)) for row, result in zip(rows, results, strict=True)]


def refresh_limits(llms: Iterable[LLM]) -> list[Finding]:
    """Ask the servers for the limits of these LLMs, and record what they say."""
    rows = list(llms)
    results = async_to_sync(_all)([read_limits(settings_for(row.provider), row.model_id) for row in rows])
    return [_finding(row.slug, _record(row, result)) for row, result in zip(rows, results, strict=True)]


def _answered(row: Provider, result: ProbeResult | Finding) -> str | Finding:
    if isinstance(result, Finding):
        return result
    record_server(provider=row, is_ollama=result.is_ollama)
    if result.ok and row.is_hidden_ollama:
        return Finding(messages.WARNING, f"{result.text} {better_as_ollama()}")
    return result.text if result.ok else Finding(messages.ERROR, result.text)


def _record(row: LLM, result: ModelFacts | Finding) -> str | Finding:
    return result if isinstance(result, Finding) else record_limits(llm=row, facts=result)


def _finding(name: str, result: str | Finding) -> Finding:
    if isinstance(result, Finding):
        return Finding(result.level, f"{name}: {result.text}")
    return Finding(messages.SUCCESS, f"{name}: {result}")


async def _all(calls: list[Awaitable[Answer]]) -> list[Answer | Finding]:
    gate = asyncio.Semaphore(AT_ONCE)
    return list(await asyncio.gather(*(_bounded(gate, call) for call in calls)))


async def _bounded(gate: asyncio.Semaphore, call: Awaitable[Answer]) -> Answer | Finding:
    try:
        async with asyncio.timeout(PROBE_SECONDS), gate:
            return await call
    except TimeoutError:
        seconds = f"{PROBE_SECONDS:g}"
        return Finding(messages.ERROR, _("no answer within %(seconds)s seconds") % {"seconds": seconds})
    except ProviderError as error:
        return Finding(messages.ERROR, str(error))
