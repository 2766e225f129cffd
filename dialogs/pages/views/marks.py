"""Marking a message: pinned or not, its priority and of what, and that its task is done."""

from __future__ import annotations

from functools import partial
from typing import cast
from uuid import UUID

from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.views.decorators.http import require_POST

from dialogs.compaction.writes.milestones import complete
from dialogs.pages.views.dialog import act
from dialogs.transcript.views.common import dialog_or_404
from dialogs.transcript.writes.marks import set_pin, set_priority


@require_POST
def pin(request: HttpRequest, dialog_id: UUID, message_id: int) -> HttpResponse:
    dialog = dialog_or_404(request, dialog_id)
    pinned = request.POST.get("pinned") == "1"
    return act(request, dialog, partial(set_pin, dialog=dialog, message_id=message_id, pinned=pinned))


@require_POST
def priority(request: HttpRequest, dialog_id: UUID, message_id: int) -> HttpResponse:
    dialog = dialog_or_404(request, dialog_id)
    chosen, area = request.POST.get("priority", ""), request.POST.get("area", "")
    mark = partial(set_priority, dialog=dialog, message_id=message_id, priority=chosen, area=area)
    return act(request, dialog, mark)


@require_POST
def done(request: HttpRequest, dialog_id: UUID, message_id: int) -> HttpResponse:
    """The task of a P1 message. Where a fresh start is offered after it, the question comes next."""
    dialog = dialog_or_404(request, dialog_id)
    offers: list[bool] = []
    by = cast("User", request.user)
    answer = act(request, dialog, lambda: offers.append(complete(dialog=dialog, message_id=message_id, by=by)))
    if not any(offers):
        return answer
    back = reverse("dialog", args=[dialog.pk])
    question = f"{reverse('compaction_reset', args=[dialog.pk])}?milestone=1&next={back}"
    # See Other: an htmx request follows it too, and gets the question as a modal.
    return HttpResponseRedirect(question, status=303)
