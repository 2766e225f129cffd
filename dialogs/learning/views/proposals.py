"""The critic's proposals, for staff: look now, accept as it is or changed, dismiss, undo."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from dialogs.common.errors import DialogError
from dialogs.learning.reads.proposals import decided_proposals, open_proposals
from dialogs.learning.writes import proposals as service
from dialogs.transcript.views import number_or_zero, person_of, staff_only
from health.models import Proposal

# A person waits for the page; the beat has more time.
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
