"""The page of context events: a person's own, with filters and files; for staff also everybody's counts. `EventQuery`
is the filter in the page's address; Insights has the same.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse, JsonResponse, QueryDict
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.utils.http import content_disposition_header
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from dialogs.transcript.views import key_in, person_of, render_part, staff_only
from dialogs.turns.reads.events import (
    EventFilter,
    agents_to_choose,
    cause_of,
    codes_to_choose,
    counts_of_all,
    events_of,
    llms_to_choose,
)
from health.models import ContextEvent

DAYS = 30
PERIODS = {"1": _("The last day"), "7": _("The last 7 days"), str(DAYS): _("The last 30 days"), "": _("All time")}
PAGE = 50
MOST_IN_FILE = 10_000
# A spreadsheet runs a cell that begins with one of these as a formula.
FORMULA = ("=", "+", "-", "@", "\t", "\r")


@dataclass(frozen=True, kw_only=True)
class EventQuery:
    """The filter in an address. An invalid value is read as the default."""

    code: str
    agent: int
    llm: int
    days: str

    @classmethod
    def of(cls, query: QueryDict) -> EventQuery:
        code, days = query.get("code", ""), query.get("days", str(DAYS))
        return cls(
            code=code if code in ContextEvent.Code.values else "",
            agent=key_in(query, "agent"),
            llm=key_in(query, "llm"),
            days=days if days in PERIODS else str(DAYS),
        )

    @property
    def filter(self) -> EventFilter:
        since = timezone.now() - timedelta(days=int(self.days)) if self.days else None
        return EventFilter(code=self.code, agent_id=self.agent or None, llm_id=self.llm or None, since=since)

    def url(self, name: str, **more: Any) -> str:
        values = {"code": self.code, "agent": self.agent, "llm": self.llm, "days": self.days} | more
        return f"{reverse(name)}?{urlencode({key: value for key, value in values.items() if value or key == 'days'})}"


@never_cache
@require_safe
def events(request: HttpRequest) -> HttpResponse:
    asked, person = EventQuery.of(request.GET), person_of(request)
    # Staff filter everybody's counts too.
    there = ContextEvent.objects.all() if person.is_staff else ContextEvent.objects.filter(owner=person)
    before = key_in(request.GET, "before")
    found = list(events_of(person, asked.filter, before=before or None)[: PAGE + 1])
    context = {
        "asked": asked,
        "events": [(event, cause_of(event)) for event in found[:PAGE]],
        "older": asked.url("events", before=found[PAGE - 1].pk) if len(found) > PAGE else "",
        "newest": asked.url("events") if before else "",
        "files": {kind: asked.url(f"events_{kind}") for kind in ("csv", "json")},
        "most_in_file": MOST_IN_FILE,
        "codes": codes_to_choose(there, asked=asked.code),
        "code_labels": dict(ContextEvent.Code.choices),
        "agents": agents_to_choose(there, asked=asked.agent),
        "llms": llms_to_choose(there, asked=asked.llm),
        "periods": PERIODS,
        "counts": asked.url("events_counts") if person.is_staff else "",
    }
    return render(request, "learning/events.html", context)


@never_cache
@require_safe
@staff_only
def counts(request: HttpRequest) -> HttpResponse:
    """The counts of everybody's events, which the page loads after one's own."""
    found = {"counts": counts_of_all(EventQuery.of(request.GET).filter)}
    return render_part(request, "learning/_counts.html", found, title=gettext("Everybody’s events"))


@never_cache
@require_safe
def as_csv(request: HttpRequest) -> HttpResponse:
    rows = [_row(event) for event in _for_file(request)]
    written = io.StringIO()
    writer = csv.DictWriter(written, fieldnames=list(_row(ContextEvent())), lineterminator="\r\n")
    writer.writeheader()
    writer.writerows({name: _harmless(value) for name, value in row.items()} for row in rows)
    return HttpResponse(written.getvalue(), content_type="text/csv; charset=utf-8", headers=_named("csv"))


@never_cache
@require_safe
def as_json(request: HttpRequest) -> HttpResponse:
    rows = [_row(event) for event in _for_file(request)]
    return JsonResponse({"kind": "estimated", "events": rows}, headers=_named("json"))


def _for_file(request: HttpRequest) -> Iterable[ContextEvent]:
    return events_of(person_of(request), EventQuery.of(request.GET).filter)[:MOST_IN_FILE]


def _row(event: ContextEvent) -> dict[str, Any]:
    """Names and numbers only: no title, since files are passed on."""
    return {
        "id": event.pk,
        "happened_at": event.happened_at.isoformat() if event.happened_at else "",
        "code": event.code,
        "dialog": str(event.dialog_id),
        "agent": event.agent.slug if event.agent else "",
        "llm": event.llm.slug if event.llm else "",
        "estimated_tokens": event.estimated,
        "limit_tokens": event.limit,
        "cause": cause_of(event),
    }


def _harmless(value: object) -> object:
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA) else value


def _named(kind: str) -> dict[str, str]:
    return {"Content-Disposition": content_disposition_header(True, f"context-events.{kind}") or ""}
