"""Marking a message: pinned or not, its priority and of what."""

from __future__ import annotations

from functools import partial
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_POST

from dialogs.services.marks import set_pin, set_priority
from dialogs.views.common import dialog_or_404
from dialogs.views.dialog import act


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
