"""The Insights page: levels, events and compactions of each agent with its LLM. One's own, and for staff everybody's.

Also the coordinates of its chart, in SVG user units, y downwards, time to the right. Measured tokens are one line. A
compaction is estimated, so it is a mark of its own beside the line, from the tokens before to the tokens after.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from dialogs.common.errors import DialogError
from dialogs.context.chart import HEADROOM, Tick, short
from dialogs.learning import writes as service
from dialogs.learning.reads.figures import Row, table
from dialogs.learning.reads.proposals import decided_proposals, open_proposals
from dialogs.learning.reads.series import Pattern, Point, Scope, Series, patterns, series
from dialogs.learning.views.events import PERIODS, EventQuery
from dialogs.models import LLM, Agent, Dialog, Generation
from dialogs.transcript.views import number_or_zero, person_of, render_part, staff_only
from dialogs.turns.reads.events import agents_to_choose, llms_to_choose
from health.models import Proposal

WIDTH, HEIGHT = 640.0, 220.0
LEFT, RIGHT, TOP, BOTTOM = 56.0, 10.0, 12.0, 26.0
# A limit more than so many times above all tokens does not scale the chart: it is drawn along the top. If it is the
# limit in force, its number stands beside the chart.
FARTHEST_LIMIT = 4


@dataclass(frozen=True, kw_only=True)
class ShownRow(Row):
    """A row of the table. `url` is the page with its chart, `chart` the chart's own; both empty for the total, and
    where agent or LLM was deleted."""

    url: str = ""
    chart: str = ""


@never_cache
@require_safe
def insights(request: HttpRequest) -> HttpResponse:
    asked, is_all, scope = _asked(request)
    found = table(scope)
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
    """The chart of one agent with one LLM, which the page loads after its numbers."""
    asked, _is_all, scope = _asked(request)
    agent = get_object_or_404(Agent, pk=asked.agent)
    llm = get_object_or_404(LLM.objects.select_related("provider"), pk=asked.llm)
    drawn = picture(series(scope, agent=agent, llm=llm, now=timezone.now()))
    context = {"agent": agent, "llm": llm, "picture": drawn}
    return render_part(request, "learning/_insights_chart.html", context, title=gettext("Insights"))


def _asked(request: HttpRequest) -> tuple[EventQuery, bool, Scope]:
    """The query, whether it is for everybody's numbers, and the scope that follows."""
    asked, person = EventQuery.of(request.GET), person_of(request)
    is_all = person.is_staff and "all" in request.GET
    scope = Scope(
        owner_id=None if is_all else person.pk,
        agent_id=asked.filter.agent_id,
        llm_id=asked.filter.llm_id,
        since=asked.filter.since,
    )
    return asked, is_all, scope


def _shown(row: Row, asked: EventQuery, is_all: bool) -> ShownRow:
    if not row.agent or not row.llm:
        return ShownRow(**vars(row))
    own = {"agent": row.agent.pk, "llm": row.llm.pk, "all": 1 if is_all else ""}
    return ShownRow(**vars(row), url=asked.url("insights", **own) + "#chart", chart=asked.url("insights_chart", **own))


def _charted(rows: list[ShownRow]) -> ShownRow | None:
    """The first row that has a chart: the one asked for, or the busiest."""
    return next((row for row in rows if row.url), None)


def _pattern(found: Pattern) -> dict[str, Any]:
    events = EventQuery(code=found.code, agent=found.agent.pk, llm=0, days="1")
    proposal = f"{reverse('proposals')}#proposal-{found.proposal_id}" if found.proposal_id else ""
    return {"found": found, "events": events.url("events"), "proposal": proposal}


@dataclass(frozen=True)
class Dot:
    x: float
    y: float
    point: Point


@dataclass(frozen=True)
class Mark:
    """One compaction or several: tokens before (`y`) and after (`left`)."""

    x: float
    y: float
    left: float
    point: Point

    @property
    def tip(self) -> str:
        """A triangle that points at what was left."""
        return f"{self.x - 4:.1f},{self.left - 7:.1f} {self.x + 4:.1f},{self.left - 7:.1f} {self.x},{self.left}"


@dataclass(frozen=True, kw_only=True)
class Picture:
    """`limit` is an SVG point list, empty where every limit is too far above; `limit_above` is the last limit, if that
    is too far above."""

    width: float = WIDTH
    height: float = HEIGHT
    left: float = LEFT
    right: float = WIDTH - RIGHT
    line: str = ""
    dots: tuple[Dot, ...] = ()
    marks: tuple[Mark, ...] = ()
    limit: str = ""
    limit_above: int | None = None
    ticks: tuple[Tick, ...] = ()
    start: datetime
    end: datetime

    @property
    def is_empty(self) -> bool:
        return not self.dots and not self.marks


@dataclass(frozen=True)
class _Scale:
    start: datetime
    end: datetime
    top: float

    def x(self, at: datetime) -> float:
        span = (self.end - self.start).total_seconds() or 1.0
        share = min(1.0, max(0.0, (at - self.start).total_seconds() / span))
        return round(LEFT + (WIDTH - LEFT - RIGHT) * share, 1)

    def y(self, tokens: float) -> float:
        return round(HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * min(tokens / self.top, 1.0), 1)


def picture(series: Series) -> Picture:
    highest = max((point.values[0] for point in (*series.tokens, *series.marks)), default=0)
    if not highest:
        return Picture(start=series.start, end=series.end)
    limits = [point.values[0] for point in series.limits]
    near = [limit for limit in limits if limit <= FARTHEST_LIMIT * highest]
    scale = _Scale(series.start, series.end, HEADROOM * max([highest, *near]))
    dots = tuple(Dot(scale.x(point.at), scale.y(point.values[0]), point) for point in series.tokens)
    return Picture(
        line=" ".join(f"{dot.x},{dot.y}" for dot in dots),
        dots=dots,
        marks=tuple(_mark(point, scale) for point in series.marks),
        limit=" ".join(_stepped(series.limits, scale)) if near else "",
        limit_above=limits[-1] if limits and limits[-1] not in near else None,
        ticks=tuple(
            Tick(scale.y(share), short(round(share))) for share in (0, scale.top / HEADROOM / 2, scale.top / HEADROOM)
        ),
        start=series.start,
        end=series.end,
    )


def _mark(point: Point, scale: _Scale) -> Mark:
    before, after = point.values
    return Mark(scale.x(point.at), scale.y(before), scale.y(after), point)


def _stepped(limits: tuple[Point, ...], scale: _Scale) -> Iterator[str]:
    """A limit holds until the next point; the first is drawn from the chart's left edge."""
    held = limits[0].values[0] if limits else 0
    if limits:
        yield f"{LEFT},{scale.y(held)}"
    for point in limits:
        yield f"{scale.x(point.at)},{scale.y(held)}"
        held = point.values[0]
        yield f"{scale.x(point.at)},{scale.y(held)}"


# How long replays may take while a person waits for the page.
SECONDS = 4.0


@staff_only
@never_cache
@require_safe
def proposals(request: HttpRequest) -> HttpResponse:
    context = {"waiting": list(open_proposals()), "decided": list(decided_proposals())}
    return render(request, "dialogs/proposals.html", context)


@staff_only
@require_POST
def look(request: HttpRequest) -> HttpResponse:
    count = len(service.make_proposals(seconds=SECONDS))
    said = ngettext("%(count)s new proposal.", "%(count)s new proposals.", count) % {"count": count}
    messages.success(request, said if count else _("There is nothing new to propose."))
    return redirect("proposals")


@staff_only
@require_POST
def decide(request: HttpRequest, proposal_id: int) -> HttpResponse:
    deed = DEEDS.get(request.POST.get("do", ""))
    try:
        if deed:
            messages.success(request, deed(request, proposal_id))
    except DialogError as error:
        messages.error(request, str(error))
    return redirect("proposals")


def _accept(request: HttpRequest, proposal_id: int) -> str:
    service.accept(proposal_id=proposal_id, by=person_of(request), change=_typed(request))
    return _("It is in force. You can undo it below.")


def _dismiss(request: HttpRequest, proposal_id: int) -> str:
    service.dismiss(proposal_id=proposal_id, by=person_of(request))
    return _("It is dismissed, and not proposed again this week.")


def _undo(request: HttpRequest, proposal_id: int) -> str:
    service.undo(proposal_id=proposal_id, by=person_of(request))
    return _("What was in force before is in force again.")


DEEDS: dict[str, Callable[[HttpRequest, int], str]] = {"accept": _accept, "dismiss": _dismiss, "undo": _undo}


def _typed(request: HttpRequest) -> dict[str, Any] | None:
    """The proposal as a person changed it; None where the form has no field for it."""
    if Proposal.Kind.LIMIT in request.POST:
        return {"limit": number_or_zero(request.POST["limit"].replace(",", ""))}
    if Proposal.Kind.CHAIN in request.POST:
        return {"chain": [name.strip() for name in request.POST["chain"].split(",") if name.strip()]}
    return None
