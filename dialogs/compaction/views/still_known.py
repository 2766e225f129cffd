"""The page "What would it still know?": what the model knows now, and after a compaction that is only tried."""

from __future__ import annotations

from uuid import UUID

from django import forms
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext_lazy as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from dialogs.compaction.reads.still_known import LEAST_LIMIT, MOST_LIMIT, still_known
from dialogs.transcript.views.common import dialog_or_404


class Trial(forms.Form):
    compacted = forms.BooleanField(required=False)
    limit = forms.IntegerField(
        label=_("Limit (tokens)"), required=False, min_value=LEAST_LIMIT, max_value=MOST_LIMIT, localize=True
    )


@never_cache
@require_GET
def page(request: HttpRequest, dialog_id: UUID) -> HttpResponse:
    dialog = dialog_or_404(request, dialog_id)
    trial = Trial(request.GET)
    wanted = trial.cleaned_data if trial.is_valid() else {"compacted": False, "limit": None}
    found = still_known(dialog, compacted=bool(wanted["compacted"]), limit=wanted["limit"])
    context = {"dialog": dialog, "found": found, "trial": trial, "wanted": wanted}
    return render(request, "dialogs/still_known.html", context, status=200 if trial.is_valid() else 422)
