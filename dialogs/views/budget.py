"""The budget in the health panel, fetched when the panel is looked at: estimating costs more than showing."""

from __future__ import annotations

from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from dialogs.selectors.budget import budget as budget_of
from dialogs.views.common import dialog_or_404


@never_cache
@require_GET
def budget(request: HttpRequest, dialog_id: UUID) -> HttpResponse:
    """Into the panel; without JavaScript a page of its own."""
    dialog = dialog_or_404(request, dialog_id)
    template = "dialogs/_budget.html" if request.htmx else "dialogs/budget.html"  # type: ignore[attr-defined]
    return render(request, template, {"dialog": dialog, "budget": budget_of(dialog)})
