"""The page of a dialog's standing rules: what every course and compaction carries, and what a person changes of it."""

from __future__ import annotations

from functools import partial
from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST

from dialogs.common.errors import DialogError
from dialogs.context.reads.standing_rules import standing_rules
from dialogs.transcript.views import dialog_or_404, go_back
from dialogs.transcript.writes import standing_rules as service


@never_cache
@require_GET
def page(request: HttpRequest, dialog_id: UUID) -> HttpResponse:
    dialog = dialog_or_404(request, dialog_id)
    return render(request, "dialogs/standing_rules.html", {"dialog": dialog, "rules": standing_rules(dialog)})


@require_POST
def change(request: HttpRequest, dialog_id: UUID) -> HttpResponse:
    """`rule` is the text that is changed; `text` the new one. What was typed stays on the page that refuses it."""
    dialog = dialog_or_404(request, dialog_id)
    rule, text = request.POST.get("rule", ""), request.POST.get("text", "")
    changes = {
        "add": partial(service.lay_down, text=text),
        "restore": partial(service.lay_down, text=rule),
        "edit": partial(service.reword, old=rule, text=text),
        "remove": partial(service.take_back, text=rule),
    }
    made = changes.get(request.POST.get("change", ""), changes["add"])
    try:
        made(dialog=dialog)
    except DialogError as error:
        messages.error(request, str(error))
        context = {"dialog": dialog, "rules": standing_rules(dialog), "draft": text}
        return render(request, "dialogs/standing_rules.html", context, status=422)
    return go_back(request, fallback=reverse("dialog_rules", args=[dialog.pk]))
