"""The what-if page: one's own newest dialogs with an agent, replayed under other limits and chains."""

from __future__ import annotations

from datetime import timedelta
from threading import Thread
from typing import Any
from urllib.parse import urlencode

from django.db import connections
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from dialogs.learning import what_if as service
from dialogs.learning.variants import (
    CHAINS,
    LIMITS,
    MOST_DIALOGS,
    NO_LIMIT,
    InvalidVariants,
    VariantChoice,
    agents_of,
    left_out,
    rows_of,
    variants,
    what_if_of,
)
from dialogs.learning.what_if import first_row, perform
from dialogs.models import Agent
from dialogs.transcript.views import key_in, person_of
from health.compaction.strategies import REGISTRY
from health.models import WhatIf

# How long the page waits for a worker, which does live compactions first, before this process replays itself.
PATIENCE = timedelta(seconds=15)


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def what_if(request: HttpRequest) -> HttpResponse:
    """The form. A POST queues the replays and redirects to their table."""
    if request.method != "POST":
        return _page(request, VariantChoice(), _asked_agent(request, request.GET) or _some_agent(request))
    asked, agent = _read(request.POST), _asked_agent(request, request.POST)
    if agent is None:
        problem = _("You have no dialog with this agent.")
        return _page(request, asked, _some_agent(request), problem=problem, status=422)
    try:
        rows = [first_row(variant) for variant in variants(asked, agent)]
    except InvalidVariants as error:
        return _page(request, asked, agent, problem=str(error), status=422)
    made = service.ask(owner=person_of(request), agent=agent, rows=rows, most_dialogs=MOST_DIALOGS)
    # The choice goes along, so that the form below the table shows it again.
    return redirect(reverse("what_if_shown", args=[made.pk]) + _written(asked))


@never_cache
@require_safe
def shown(request: HttpRequest, what_if_id: int) -> HttpResponse:
    """The table, as far as it is done. htmx gets only the table, and polls until it is complete."""
    row = _found(request, what_if_id)
    if _is_left_alone(row):
        Thread(target=_do_it_here, args=(row.pk,), name=f"what-if-{row.pk}", daemon=True).start()
    asked = _read(request.GET) if request.GET else VariantChoice()
    rows = list(rows_of(row, no_limit=NO_LIMIT))
    context: dict[str, Any] = {"what_if": row, "rows": rows, "query": _written(asked)}
    context["left_out"] = left_out(asked, row.agent) if request.GET else ""
    if request.htmx:  # type: ignore[attr-defined]
        return render(request, "learning/_what_if_table.html", context)
    return _page(request, asked, row.agent, **context)


@require_POST
def cancel(request: HttpRequest, what_if_id: int) -> HttpResponse:
    row = _found(request, what_if_id)
    service.cancel(row)
    return redirect(reverse("what_if_shown", args=[row.pk]) + (_written(_read(request.GET)) if request.GET else ""))


def _read(query: QueryDict) -> VariantChoice:
    return VariantChoice(
        limits=query.getlist("limit"),
        other_limits=query.get("other_limits", ""),
        chains=query.getlist("chain"),
        other_chain=query.get("other_chain", ""),
    )


def _written(asked: VariantChoice) -> str:
    """The choice as a query string, which `_read` parses."""
    typed = {"other_limits": asked.other_limits, "other_chain": asked.other_chain}
    return "?" + urlencode({"limit": asked.limits, "chain": asked.chains} | typed, doseq=True)


def _is_left_alone(row: WhatIf) -> bool:
    """Has no worker taken it for so long that this process should, as with a live compaction?"""
    return row.is_open and timezone.now() - row.free_since > PATIENCE


def _do_it_here(what_if_id: int) -> None:
    try:
        while perform(what_if_id):
            pass
    finally:
        connections.close_all()


def _page(
    request: HttpRequest, asked: VariantChoice, agent: Agent | None, *, status: int = 200, **context: Any
) -> HttpResponse:
    choices = {
        "asked": asked,
        "agent": agent,
        "agents": agents_of(person_of(request)),
        "limits": LIMITS.items(),
        "chains": CHAINS.items(),
        "strategies": sorted(REGISTRY),
        "most_dialogs": MOST_DIALOGS,
    }
    return render(request, "learning/what_if.html", choices | context, status=status)


def _asked_agent(request: HttpRequest, query: QueryDict) -> Agent | None:
    """The agent asked for, if this person has a dialog with it."""
    return agents_of(person_of(request)).filter(pk=key_in(query, "agent")).first()


def _some_agent(request: HttpRequest) -> Agent | None:
    """The agent that the page begins with."""
    return agents_of(person_of(request)).first()


def _found(request: HttpRequest, what_if_id: int) -> WhatIf:
    row = what_if_of(person_of(request), what_if_id)
    if row is None:
        raise Http404(_("There is no such comparison."))
    return row
