"""The Insights page: how contexts fared, for each agent with its LLM. One's own, and for staff everybody's numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from dialogs.learning.reads.insights.patterns import Pattern, patterns
from dialogs.learning.reads.insights.rows import Row, rows
from dialogs.learning.reads.insights.scope import Scope
from dialogs.learning.reads.insights.series import series
from dialogs.learning.views.filters import PERIODS, Asked
from dialogs.learning.views.insights_chart import picture
from dialogs.models import LLM, Agent, Dialog, Generation
from dialogs.transcript.views.common import render_part
from dialogs.turns.reads.events import agents_to_choose, llms_to_choose


@dataclass(frozen=True, kw_only=True)
class Shown(Row):
    """A row of the table. `url` shows its chart, `chart` is that; without, it is of all, or of something deleted."""

    url: str = ""
    chart: str = ""


@never_cache
@require_safe
def insights(request: HttpRequest) -> HttpResponse:
    asked, is_all, scope = _asked(request)
    found = rows(scope)
    owned = {} if is_all else {"owner": scope.owner_id}
    begun, made = Dialog.objects.filter(**owned), Generation.objects.filter(dialog__in=Dialog.objects.filter(**owned))
    shown = [_shown(row, asked, is_all) for row in found.pairs]
    context = {
        "asked": asked,
        "is_all": is_all,
        "other": asked.url("insights", all="" if is_all else 1),
        "agents": agents_to_choose(begun, asked=asked.agent).values_list("pk", "name"),
        "llms": [(llm.pk, llm.slug) for llm in llms_to_choose(made, asked=asked.llm)],
        "periods": PERIODS,
        "rows": shown,
        "total": found.total,
        "left_out": found.left_out,
        "sample": found.sample,
        "patterns": [_pattern(one) for one in patterns(scope.owner_id, now=timezone.now())],
        "charted": _charted(shown),
    }
    return render(request, "learning/insights.html", context)


@never_cache
@require_safe
def chart(request: HttpRequest) -> HttpResponse:
    """The page's picture, which comes after its numbers: of the agent and the LLM that are asked for."""
    asked, _is_all, scope = _asked(request)
    agent = get_object_or_404(Agent, pk=asked.agent)
    llm = get_object_or_404(LLM.objects.select_related("provider"), pk=asked.llm)
    drawn = picture(series(scope, agent=agent, llm=llm, now=timezone.now()))
    context = {"agent": agent, "llm": llm, "picture": drawn}
    return render_part(request, "learning/_insights_chart.html", context, title=gettext("Insights"))


def _asked(request: HttpRequest) -> tuple[Asked, bool, Scope]:
    """What was asked for, whether of everybody, and whose numbers that are."""
    asked, person = Asked.of(request.GET), cast("User", request.user)
    is_all = person.is_staff and "all" in request.GET
    scope = Scope(
        owner_id=None if is_all else person.pk,
        agent_id=asked.filter.agent_id,
        llm_id=asked.filter.llm_id,
        since=asked.filter.since,
    )
    return asked, is_all, scope


def _shown(row: Row, asked: Asked, is_all: bool) -> Shown:
    agent, llm = row.pair.key if row.pair else (None, None)
    if not agent or not llm:
        return Shown(**vars(row))
    own = {"agent": agent, "llm": llm, "all": 1 if is_all else ""}
    return Shown(**vars(row), url=asked.url("insights", **own) + "#chart", chart=asked.url("insights_chart", **own))


def _charted(rows: list[Shown]) -> Shown | None:
    """The first of which there is a chart: the one asked for, or where most went on."""
    return next((row for row in rows if row.url), None)


def _pattern(found: Pattern) -> dict[str, Any]:
    events = Asked(code=found.code, agent=found.agent.pk, llm=0, days="1")
    proposal = f"{reverse('proposals')}#proposal-{found.proposal_id}" if found.proposal_id else ""
    return {"found": found, "events": events.url("events"), "proposal": proposal}
